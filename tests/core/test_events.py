"""Events: a closed, versioned vocabulary that is read back as it was written, or refused by name."""

import json
from fractions import Fraction

import pytest

from sfumato.core.events import (
    EVENTS,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    RandomizedResponse,
    Repeated,
    SampledOccurrences,
    Skellam,
    Stated,
    Tuned,
    from_json,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Unsupported

LAPLACE = DiscreteLaplace(l1=Fraction(1), scale=Fraction(2))
EXAMPLES = (
    LAPLACE,
    DiscreteGaussian(l2_squared=Fraction(2), sigma_squared=Fraction(9, 4)),
    Gaussian(l2_squared=Fraction(0), sigma_squared=Fraction(9, 4)),
    Skellam(l1=Fraction(2), l2_squared=Fraction(4), variance=Fraction(9, 4)),
    BoundedRange(epsilon=Fraction(1, 3)),
    RandomizedResponse(epsilon=Fraction(1), categories=4),
    PoissonSampled(rate=Fraction(1, 100), event=LAPLACE),
    FixedSizeSampled(size=3, population=3, event=LAPLACE),
    SampledOccurrences(rate=Fraction(1, 9), gone=1, changed=3, l2_squared=Fraction(1), sigma_squared=Fraction(9, 4)),
    *(
        Stated(guarantee=each)
        for each in (Pure(epsilon=Fraction(1)), Approximate(epsilon=Fraction(1), delta=Fraction(1, 10**30)))
    ),
    *(
        Stated(guarantee=each)
        for each in (ZCDP(rho=Fraction(1)), GDP(mu=Fraction(1)), RDP(curve=((Fraction(2), Fraction(1)),)))
    ),
    Repeated(event=LAPLACE, times=0),
    Composed(events=()),
    Composed(events=(LAPLACE, Composed(events=(LAPLACE, Repeated(event=LAPLACE, times=7))))),
    Tuned(events=(LAPLACE, BoundedRange(epsilon=Fraction(1))), eta=Fraction(1, 2), gamma=Fraction(1, 10), most=40),
)


def test_there_is_an_example_of_every_event():
    assert {type(example) for example in EXAMPLES} == set(EVENTS)


@pytest.mark.parametrize("event", EXAMPLES)
def test_an_event_is_read_as_it_was_written(event):
    text = event.to_json()
    assert from_json(text) == event
    assert from_json(text).to_json() == text
    assert " " not in text
    assert json.loads(text)["version"] == type(event).VERSION == 1


def test_the_kinds_that_are_written_never_change():
    """Certificates outlive versions of this code: a kind may be added here, never renamed."""
    assert {cls.KIND for cls in EVENTS} >= {
        "event.bounded_range",
        "event.composed",
        "event.discrete_gaussian",
        "event.discrete_laplace",
        "event.fixed_size_sampled",
        "event.gaussian",
        "event.poisson_sampled",
        "event.randomized_response",
        "event.repeated",
        "event.stated",
    }


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"kind": "event.laplace"}, Unsupported, r"^event\.kind = 'event\.laplace' is unknown; known are event\."),
        ({"kind": None}, Unsupported, r"^event\.kind = None is unknown"),
        ({"version": 2}, Unsupported, r"^event\.version = 2 of 'event\.discrete_laplace' is newer .*Update sfumato"),
        ({"version": 0}, InvalidInput, r"^event\.version = 0 is not a version number"),
        ({"version": True}, InvalidInput, r"^event\.version = True is not a version number"),
        ({"version": "1"}, InvalidInput, r"^event\.version = '1' is not a version number"),
        ({"l1": None}, InvalidInput, r"^event\.l1 has the wrong type"),
        ({"l1": 1}, InvalidInput, r"^event\.l1 has the wrong type"),
        ({"l1": "2/4"}, InvalidInput, r"^event\.l1 is not a rational"),
        ({"scale": "0/1"}, InvalidInput, r"^event: scale = 0 must be above 0"),
        ({"l1": "-1/1"}, InvalidInput, r"^event: l1 = -1 must not be below 0"),
        ({"epsilon": "1/1"}, InvalidInput, r"^event\.epsilon is not a field of 'event\.discrete_laplace'"),
    ],
)
def test_what_is_not_in_the_vocabulary_is_refused_by_name(changes, error, says):
    with pytest.raises(error, match=says):
        from_json(json.dumps(json.loads(LAPLACE.to_json()) | changes))


def test_a_guarantee_is_not_an_event():
    with pytest.raises(Unsupported, match=r"^event\.kind = 'guarantee\.pure' is not an event; it was not read"):
        from_json('{"kind":"guarantee.pure","version":1,"epsilon":"1/1"}')
    with pytest.raises(InvalidInput, match=r"^event\.events\[0\] has the wrong type"):
        from_json(
            '{"kind":"event.composed","version":1,"events":[{"kind":"guarantee.pure","version":1,"epsilon":"1/1"}]}'
        )
    with pytest.raises(Unsupported, match=r"^event\.events\[0\]\.kind = 'unit\.record' is unknown"):
        from_json('{"kind":"event.composed","version":1,"events":[{"kind":"unit.record","version":1}]}')


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: DiscreteLaplace(l1=Fraction(-1), scale=Fraction(1)), "l1 = -1 must not be below 0"),
        (lambda: DiscreteLaplace(l1=Fraction(1), scale=Fraction(0)), "scale = 0 must be above 0"),
        (lambda: DiscreteLaplace(l1=True, scale=Fraction(1)), "l1 is bool"),
        (
            lambda: DiscreteGaussian(l2_squared=Fraction(-1), sigma_squared=Fraction(1)),
            "l2 squared = -1 must not be below 0",
        ),
        (
            lambda: DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(0)),
            "sigma squared = 0 must be above 0",
        ),
        (lambda: Gaussian(l2_squared=Fraction(-1), sigma_squared=Fraction(1)), "l2 squared = -1 must not be below 0"),
        (lambda: Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(0)), "sigma squared = 0 must be above 0"),
        (lambda: BoundedRange(epsilon=Fraction(-1)), "epsilon = -1 must not be below 0"),
        (lambda: RandomizedResponse(epsilon=Fraction(-1), categories=2), "epsilon = -1 must not be below 0"),
        (lambda: RandomizedResponse(epsilon=Fraction(1), categories=1), "categories = 1 must be .* at least 2"),
        (lambda: PoissonSampled(rate=Fraction(0), event=LAPLACE), "rate = 0 must be above 0"),
        (lambda: PoissonSampled(rate=Fraction(3, 2), event=LAPLACE), "rate = 3/2 is outside 0 to 1"),
        (lambda: FixedSizeSampled(size=0, population=3, event=LAPLACE), "size = 0 must be .* at least 1"),
        (lambda: FixedSizeSampled(size=4, population=3, event=LAPLACE), "population = 3 must be .* at least 4"),
        (lambda: Repeated(event=LAPLACE, times=-1), "times = -1 must be .* at least 0"),
        (lambda: Repeated(event=LAPLACE, times=True), "times = True must be"),
    ],
)
def test_an_event_out_of_range_cannot_be_stated(build, says):
    with pytest.raises(InvalidInput, match=says):
        build()
