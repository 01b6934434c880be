"""Basic composition: sums are exact and hold for adaptively chosen, different mechanisms."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import compose
from sfumato.accounting.basic import cost, guarantee_of
from sfumato.core.budget import Budget
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
from sfumato.errors import Refused, Unsupported
from tests.core.truth import (
    four_points,
    gaussian_delta,
    hockey_stick,
    least_delta,
    mp,
    number,
    randomised_response,
    rounded_up,
)

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
    with pytest.raises(Unsupported, match="has no single ε and δ to add up; nothing was accounted"):
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


def test_a_guarantee_is_charged_what_it_states():
    assert cost(Pure(epsilon=Fraction(1, 3))) == Budget(epsilon="1/3")
    assert cost(Approximate(epsilon=Fraction(1, 3), delta=Fraction(1, 9))) == Budget(epsilon="1/3", delta="1/9")


def test_pure_noise_promises_its_own_loss_and_never_more_than_was_asked():
    event = DiscreteLaplace(l1=Fraction(1), scale=Fraction(2))
    for asked in (Budget(epsilon="1/2"), Budget(epsilon=1, delta="1/10")):
        assert guarantee_of(event, asked) == Pure(epsilon=Fraction(1, 2))
    with pytest.raises(Refused, match=r"does not keep ε = 0.499, δ = 1/10 for this event; nothing was done"):
        guarantee_of(event, Budget(epsilon="499/1000", delta="1/10"))


def test_gaussian_noise_promises_what_was_asked_if_its_exact_curve_keeps_it():
    event = Gaussian(l2_squared=Fraction(9), sigma_squared=Fraction(36))
    truth = gaussian_delta(Fraction(1, 2), Fraction(1))
    least = GDP(mu=Fraction(1, 2)).delta_at(1)
    assert rounded_up(least, truth, 1e-20)
    for kept in (least, 2 * least, Fraction(1)):
        assert guarantee_of(event, Budget(epsilon=1, delta=kept)) == Approximate(epsilon=Fraction(1), delta=kept)
    for broken in (least * Fraction(999, 1000), Fraction(0)):
        with pytest.raises(Refused, match="does not keep"):
            guarantee_of(event, Budget(epsilon=1, delta=broken))
    still = Gaussian(l2_squared=Fraction(0), sigma_squared=Fraction(1))
    assert guarantee_of(still, Budget(epsilon=1, delta="1/10")) == Approximate(
        epsilon=Fraction(1), delta=Fraction(1, 10)
    )


@pytest.mark.parametrize(
    ("event", "curve"),
    [
        (DiscreteGaussian(l2_squared=Fraction(9), sigma_squared=Fraction(36)), ZCDP(rho=Fraction(1, 8))),
        (Stated(guarantee=ZCDP(rho=Fraction(1, 8))), ZCDP(rho=Fraction(1, 8))),
        (Stated(guarantee=GDP(mu=Fraction(1, 2))), GDP(mu=Fraction(1, 2))),
        (
            Stated(guarantee=RDP(curve=((Fraction(3), Fraction(1, 2)),))),
            RDP(curve=((Fraction(3), Fraction(1, 2)),)),
        ),
    ],
)
def test_whatever_has_a_curve_promises_what_was_asked_if_the_curve_keeps_it(event, curve):
    least = curve.delta_at(1)
    assert guarantee_of(event, Budget(epsilon=1, delta=least)) == Approximate(epsilon=Fraction(1), delta=least)
    with pytest.raises(Refused, match="does not keep"):
        guarantee_of(event, Budget(epsilon=1, delta=least * Fraction(999, 1000)))
