"""Basic composition: sums are exact and hold for adaptively chosen, different mechanisms."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import compose
from sfumato.core.events import (
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    RandomizedResponse,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import Unsupported
from tests.core.truth import four_points, hockey_stick, least_delta, mp, number, randomised_response, rounded_up

pytestmark = pytest.mark.kills

positive = st.fractions("1/50", 5, max_denominator=50)
laplaces = st.builds(DiscreteLaplace, l1=st.fractions(0, 5, max_denominator=50), scale=positive)
pures = st.builds(Stated, guarantee=st.builds(Pure, epsilon=positive))
approximates = st.builds(
    Stated, guarantee=st.builds(Approximate, epsilon=positive, delta=st.fractions(0, "1/20", max_denominator=500))
)
simple = st.one_of(laplaces, pures, approximates)


def loss(event: DiscreteLaplace | Stated) -> tuple[Fraction, Fraction]:
    if isinstance(event, DiscreteLaplace):
        return event.l1 / event.scale, Fraction(0)
    return event.guarantee.epsilon, getattr(event.guarantee, "delta", Fraction(0))


@pytest.mark.claim("S4-03")
@settings(max_examples=30, deadline=None)
@given(events=st.lists(simple, max_size=6))
def test_both_parameters_add_exactly_for_different_mechanisms(events):
    epsilon, delta = sum((loss(it)[0] for it in events), Fraction(0)), sum((loss(it)[1] for it in events), Fraction(0))
    wanted = Pure(epsilon=epsilon) if delta == 0 else Approximate(epsilon=epsilon, delta=delta)
    assert compose(events) == wanted
    assert compose([Composed(events=tuple(events))]) == wanted
    assert compose([Composed(events=tuple(events[:2])), *events[2:]]) == wanted


def test_ten_tenths_are_one():
    assert compose([DiscreteLaplace(l1=Fraction(1), scale=Fraction(10))] * 10) == Pure(epsilon=Fraction(1))
    assert compose([DiscreteLaplace(l1=Fraction(3), scale=Fraction(2))]) == Pure(epsilon=Fraction(3, 2))
    assert compose([]) == Pure(epsilon=Fraction(0))


def test_what_happens_several_times_is_charged_several_times():
    once = Stated(guarantee=Approximate(epsilon=Fraction(1, 3), delta=Fraction(1, 100)))
    assert compose([Repeated(event=once, times=5)]) == Approximate(epsilon=Fraction(5, 3), delta=Fraction(1, 20))
    assert compose([Repeated(event=once, times=0)]) == Pure(epsilon=Fraction(0))
    assert compose([Repeated(event=Composed(events=(once, once)), times=2), once]) == compose([once] * 5)


def test_events_with_an_epsilon_of_their_own_cost_that():
    assert compose([BoundedRange(epsilon=Fraction(1, 3))]) == Pure(epsilon=Fraction(1, 3))
    assert compose([RandomizedResponse(epsilon=Fraction(2, 3), categories=4)]) == Pure(epsilon=Fraction(2, 3))


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)),
        DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)),
        PoissonSampled(rate=Fraction(1, 2), event=Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1))),
        *(
            Stated(guarantee=other)
            for other in (ZCDP(rho=Fraction(1)), GDP(mu=Fraction(1)), RDP(curve=((Fraction(2), Fraction(1)),)))
        ),
    ],
)
def test_what_has_no_epsilon_of_its_own_is_not_added_up(event):
    with pytest.raises(Unsupported, match="has no ε and δ of its own that could be added up; nothing was accounted"):
        compose([DiscreteLaplace(l1=Fraction(1), scale=Fraction(1)), event])


def test_a_sampled_event_costs_what_a_secret_sample_leaves_of_it():
    """The worst mechanism, run when a coin of probability 1/4 falls one way and answering for nobody else."""
    told = Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(1, 100)))
    inside, outside = four_points(mp.exp(1), mp.mpf("0.01"))
    sampled = [a / 4 + 3 * b / 4 for a, b in zip(inside, outside, strict=True)]
    for event in (PoissonSampled(rate=Fraction(1, 4), event=told), FixedSizeSampled(size=1, population=4, event=told)):
        cost = compose([event])
        assert cost.delta == Fraction(1, 400)
        assert rounded_up(cost.epsilon, mp.log(1 + (mp.exp(1) - 1) / 4), 1e-30)
        assert rounded_up(cost.delta, hockey_stick(sampled, outside, mp.exp(number(cost.epsilon))), 1e-30)
    assert compose([FixedSizeSampled(size=3, population=4, event=told)]).delta == Fraction(3, 400)


def test_delta_stops_at_one():
    half = Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(2, 3)))
    assert compose([half, half]) == Approximate(epsilon=Fraction(2), delta=Fraction(1))


@pytest.mark.claim("S4-03")
@pytest.mark.parametrize("turn", [0, 1])
def test_the_sum_covers_a_mechanism_chosen_after_seeing_the_first_output(turn):
    """The first output decides whether a pure or an approximate mechanism follows; the divergence is exact."""
    odds = mp.exp(number(Fraction(1, 2)))
    pure, approximate = randomised_response(odds), four_points(odds, mp.mpf("0.01"))
    first = four_points(odds, mp.mpf("0.02"))
    laws = []
    for side in (0, 1):
        after = [(pure, approximate)[(output + turn) % 2][side] for output in range(4)]
        laws.append([first[side][output] * chance for output in range(4) for chance in after[output]])
    told = [
        Stated(guarantee=Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 50))),
        Stated(guarantee=Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 100))),
    ]
    total = compose(told)
    assert (total.epsilon, total.delta) == (1, Fraction(3, 100))
    truth = least_delta(laws[0], laws[1], mp.exp(1))
    assert mp.mpf("0.02") < truth <= number(total.delta)


def test_randomised_responses_attain_the_sum():
    factors = [Fraction(2), Fraction(3), Fraction(5)]
    laws = [randomised_response(factor) for factor in factors]
    ratios = []
    for outputs in product(range(2), repeat=3):
        ratio = Fraction(1)
        for (inside, outside), output in zip(laws, outputs, strict=True):
            ratio *= inside[output] / outside[output]
        ratios.append(ratio)
    assert max(ratios) == 30
    events = [Stated(guarantee=Pure(epsilon=Fraction(f))) for f in ("0.7", "1.1", "1.7")]
    assert compose(events) == Pure(epsilon=Fraction(7, 2))
