"""Formulas of composition and amplification, number by number; they kill mutants."""

from fractions import Fraction

import pytest

from sfumato import accounting
from sfumato.accounting import advanced, gaussian, optimal, subsampling, zcdp
from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.parallel import parallel
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
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused, Unsupported
from tests.core.truth import mp, number, rounded_up

pytestmark = pytest.mark.kills

TINY = 1e-25


def test_events_are_counted():
    once, other = BoundedRange(epsilon=Fraction(1)), BoundedRange(epsilon=Fraction(2))
    nested = Composed(events=(once, Repeated(event=other, times=3), Repeated(event=once, times=0)))
    assert event_counts([Repeated(event=nested, times=2), once]) == {once: 3, other: 6}
    assert event_counts(once) == {once: 1}
    assert once not in event_counts(Repeated(event=once, times=0))
    coins = PoissonSampled(rate=Fraction(1, 2), event=once)
    drawn = FixedSizeSampled(size=1, population=2, event=once)
    for alone in (coins, drawn):
        assert event_counts([alone, once, alone]) == {alone: 2, once: 1}


COINS = PoissonSampled(rate=Fraction(1, 2), event=BoundedRange(epsilon=Fraction(1)))
DRAWN = FixedSizeSampled(size=1, population=2, event=BoundedRange(epsilon=Fraction(1)))


@pytest.mark.parametrize(
    "mixed",
    [
        [COINS, DRAWN],
        [DRAWN, BoundedRange(epsilon=Fraction(1)), Repeated(event=COINS, times=2)],
        [Composed(events=(DRAWN,)), COINS],
        PoissonSampled(rate=Fraction(1, 2), event=DRAWN),
        FixedSizeSampled(size=1, population=2, event=Repeated(event=COINS, times=3)),
        [COINS, PoissonSampled(rate=Fraction(1, 2), event=Composed(events=(COINS, DRAWN)))],
    ],
)
def test_samples_that_hold_for_two_relations_are_not_added_up_by_any_method(mixed):
    for method in accounting.METHODS:
        with pytest.raises(Refused, match="under add/remove and samples of a fixed size under replace"):
            accounting.epsilon(mixed, delta="1e-6", method=method)
    with pytest.raises(Refused, match="under its own relation"):
        accounting.compose(mixed)


def test_samples_of_one_kind_may_lie_inside_each_other():
    twice = PoissonSampled(rate=Fraction(1, 2), event=COINS)
    once = subsampling.poisson(Pure(epsilon=Fraction(1)), "1/2")
    assert accounting.compose(twice) == subsampling.poisson(once, "1/2")
    assert event_counts([twice, COINS, twice]) == {twice: 2, COINS: 1}


@pytest.mark.parametrize(("epsilon", "rate"), [(1, "1/10"), ("1/2", "1/3"), (0, "1/2"), (2, 1)])
def test_amplification(epsilon, rate):
    truth = mp.log(1 + number(Fraction(rate)) * (mp.exp(number(Fraction(epsilon))) - 1))
    assert rounded_up(subsampling.poisson(Pure(epsilon=Fraction(epsilon)), rate).epsilon, truth, TINY)
    step = Approximate(epsilon=Fraction(epsilon), delta=Fraction(1, 100))
    found = subsampling.fixed_size(step, size=Fraction(rate).numerator, population=Fraction(rate).denominator)
    assert rounded_up(found.epsilon, truth, TINY)
    assert found.delta == Fraction(rate) / 100
    assert isinstance(subsampling.fixed_size(Pure(epsilon=Fraction(1)), size=1, population=2), Pure)
    assert subsampling.poisson(step, 1) == subsampling.fixed_size(step, size=5, population=5) == step
    with pytest.raises(InvalidInput, match="population"):
        subsampling.fixed_size(step, size=3, population=2)


def test_parallel_composition():
    parts = [
        Pure(epsilon=Fraction(1)),
        Approximate(epsilon=Fraction(3), delta=Fraction(1, 100)),
        Approximate(epsilon=Fraction(2), delta=Fraction(1, 50)),
    ]
    add, swap = Relation.ADD_REMOVE, Relation.REPLACE
    assert parallel(parts, relation=add) == Approximate(epsilon=Fraction(3), delta=Fraction(1, 50))
    free = [Pure(epsilon=Fraction(0))] * 3
    assert parallel(parts, relation=swap, within=free) == Approximate(epsilon=Fraction(5), delta=Fraction(3, 100))
    one_is_worse = [Pure(epsilon=Fraction(0)), Pure(epsilon=Fraction(9)), Pure(epsilon=Fraction(0))]
    assert parallel(parts, relation=swap, within=one_is_worse).epsilon == 9
    assert parallel(parts, relation=swap).epsilon == 6
    assert parallel(parts, relation=swap).delta == max(part.group(2).delta for part in parts[1:])
    assert parallel([], relation=add) == Pure(epsilon=Fraction(0))
    leaky = [Approximate(epsilon=Fraction(0), delta=Fraction(2, 3))] * 2
    assert parallel(leaky, relation=swap, within=leaky).delta == 1
    assert parallel(parts[:2], relation=swap, within=free[:2]).delta == Fraction(1, 100)
    with pytest.raises(InvalidInput, match="do not match"):
        parallel(parts, relation=swap, within=[])


def test_advanced_composition_of_different_steps():
    steps = [Stated(guarantee=Approximate(epsilon=Fraction(1, 10), delta=Fraction(1, 10**8)))] * 3 + [
        BoundedRange(epsilon=Fraction(1, 5))
    ] * 300
    found = advanced.compose(steps, slack="1e-6")
    tilt = [(e * mp.tanh(e / 2)) for e in (mp.mpf(1) / 10, mp.mpf(1) / 5)]
    truth = 3 * tilt[0] + 300 * tilt[1] + mp.sqrt(2 * mp.log(10**6) * (3 * mp.mpf("0.01") + 300 * mp.mpf("0.04")))
    assert rounded_up(found.epsilon, truth, TINY)
    assert found.delta == Fraction("1e-6") + Fraction("3e-8")
    assert advanced.compose(steps[:2], slack="1e-6").epsilon == Fraction(1, 5)
    assert advanced.epsilon(steps, delta=Fraction("1.03e-6")) == found.epsilon
    back = advanced.delta(steps, epsilon=found.epsilon)
    assert rounded_up(back, number(found.delta), 1e-20) or abs(back - found.delta) < Fraction(1, 10**26)
    assert advanced.delta(steps, epsilon=Fraction(303, 10) + 30) == Fraction("3e-8")
    assert advanced.delta(steps, epsilon=0) == 1
    leaky = [Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(2, 3)))] * 2
    assert advanced.compose(leaky, slack="1/2").delta == advanced.delta(leaky, epsilon=2) == 1
    assert advanced.delta(leaky, epsilon="3/2") == 1
    assert advanced.compose(leaky[:1], slack=1).epsilon < Fraction(1, 2)
    nothing_left = advanced.textbook(epsilon=1, delta="2/3", times=2, slack=1)
    assert nothing_left.delta == 1
    assert rounded_up(nothing_left.epsilon, 2 * (mp.exp(1) - 1), TINY)
    book = advanced.textbook(epsilon="1/5", delta="1e-8", times=50, slack="1e-6")
    spread = mp.sqrt(2 * 50 * mp.log(10**6)) / 5
    assert rounded_up(book.epsilon, spread + 10 * (mp.exp(mp.mpf(1) / 5) - 1), TINY)
    assert book.delta == Fraction("1e-6") + 50 * Fraction("1e-8")


def kov(step: object, own: object, count: int, epsilon: object) -> object:
    total = mp.fsum(
        mp.binomial(count, i) * max(mp.exp((count - i) * step) - mp.exp(epsilon + i * step), 0)
        for i in range(count + 1)
    )
    return 1 - (1 - own) ** count * (1 - total / (1 + mp.exp(step)) ** count)


@pytest.mark.parametrize(
    ("step", "own", "count"), [("1/2", 0, 1), ("1/10", "1e-6", 20), (2, "1/100", 7), (0, "1/10", 3)]
)
def test_optimal_composition(step, own, count):
    guarantee = Approximate(epsilon=Fraction(step), delta=Fraction(own))
    for epsilon in (Fraction(0), Fraction(step), Fraction(step) * count / 3, Fraction(step) * count):
        truth = kov(number(Fraction(step)), number(Fraction(own)), count, number(epsilon))
        assert rounded_up(optimal.delta(guarantee, count, epsilon=epsilon), truth, TINY)
    room = optimal.delta(guarantee, count, epsilon=Fraction(step) / 2)
    assert optimal.epsilon(guarantee, count, delta=room) <= Fraction(step) / 2 * (1 + Fraction(1, 10**8))
    assert optimal.epsilon(guarantee, count, delta=1) == 0
    if Fraction(own):
        with pytest.raises(Refused, match="already exceed"):
            optimal.epsilon(guarantee, count, delta=Fraction(own) / 2)
    assert optimal.delta(Pure(epsilon=Fraction(1)), 0, epsilon=0) == 0
    pure = optimal.delta(Pure(epsilon=Fraction(1)), 3, epsilon=1)
    assert rounded_up(pure, kov(mp.mpf(1), mp.mpf(0), 3, mp.mpf(1)), TINY)
    for times in (-1, "3"):
        with pytest.raises(InvalidInput, match="times"):
            optimal.delta(guarantee, times, epsilon=0)
        with pytest.raises(InvalidInput, match="times"):
            optimal.epsilon(guarantee, times, delta=0)
    with pytest.raises(Unsupported, match="too many"):
        optimal.delta(guarantee, 10**6, epsilon=0)


def test_optimal_composition_is_for_steps_of_one_loss():
    step, same = BoundedRange(epsilon=Fraction(1, 2)), Stated(guarantee=Pure(epsilon=Fraction(1, 2)))
    other = Stated(guarantee=Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)))
    found = accounting.delta([step] * 3 + [same] * 2, epsilon=1, method="optimal")
    assert found == optimal.delta(Pure(epsilon=Fraction(1, 2)), 5, epsilon=1)
    assert accounting.epsilon([step] * 5, delta="1e-3", method="optimal") == optimal.epsilon(
        Pure(epsilon=Fraction(1, 2)), 5, delta="1e-3"
    )
    assert accounting.epsilon([], delta=0, method="optimal") == accounting.delta([], epsilon=0, method="optimal") == 0
    with pytest.raises(Unsupported, match="of one ε and δ only"):
        accounting.epsilon([step, other], delta="1e-3", method="optimal")


def test_the_search_for_epsilon_ends_where_it_says():
    """To nine digits, rounded up; on the points that halving meets it is exact."""
    step = Pure(epsilon=Fraction(2))
    assert optimal.epsilon(step, 3, delta=optimal.delta(step, 3, epsilon=0)) == 0
    assert optimal.epsilon(step, 0, delta=0) == 0
    assert optimal.epsilon(step, 3, delta=0) == 6
    assert optimal.epsilon(step, 3, delta=optimal.delta(step, 3, epsilon=3)) == 3
    assert optimal.epsilon(step, 3, delta=optimal.delta(step, 3, epsilon=6 - Fraction(4, 2**30))) == 6
    for cells in (0, 1, 2):
        inside = 6 - Fraction(6 * (2 * cells + 1), 2**32)
        found = optimal.epsilon(step, 3, delta=optimal.delta(step, 3, epsilon=inside))
        assert inside <= found <= inside * (1 + Fraction(1, 2**30))
    digits = optimal.epsilon(step, 3, delta="1/10")
    assert digits == Fraction(6272557089, 2**30)
    assert optimal.delta(step, 3, epsilon=digits) <= Fraction(1, 10)
    assert optimal.delta(step, 3, epsilon=digits * (1 - Fraction(1, 2**30))) > Fraction(1, 10)


def test_what_each_event_costs_in_rho():
    for event, rho, own in (
        (Gaussian(l2_squared=Fraction(3), sigma_squared=Fraction(7)), Fraction(3, 14), 0),
        (DiscreteGaussian(l2_squared=Fraction(3), sigma_squared=Fraction(7)), Fraction(3, 14), 0),
        (BoundedRange(epsilon=Fraction(3)), Fraction(9, 8), 0),
        (RandomizedResponse(epsilon=Fraction(3), categories=4), Fraction(9, 2), 0),
        (DiscreteLaplace(l1=Fraction(3), scale=Fraction(2)), Fraction(9, 8), 0),
        (Stated(guarantee=ZCDP(rho=Fraction(5))), Fraction(5), 0),
        (Stated(guarantee=GDP(mu=Fraction(3))), Fraction(9, 2), 0),
        (Stated(guarantee=Pure(epsilon=Fraction(3))), Fraction(9, 2), 0),
        (Stated(guarantee=Approximate(epsilon=Fraction(3), delta=Fraction(1, 9))), Fraction(9, 2), Fraction(1, 9)),
    ):
        assert zcdp.rho_of(event) == (rho, own)
    total = zcdp.compose(
        [Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(1, 9)))] * 2
        + [BoundedRange(epsilon=Fraction(1))]
    )
    assert total == zcdp.Concentrated(rho=Fraction(9, 8), delta=Fraction(2, 9))
    sampled = PoissonSampled(rate=Fraction(1, 2), event=BoundedRange(epsilon=Fraction(1)))
    assert zcdp.rho_of(sampled)[0] == subsampling.poisson(Pure(epsilon=Fraction(1)), Fraction(1, 2)).epsilon ** 2 / 2
    fixed = FixedSizeSampled(size=1, population=2, event=BoundedRange(epsilon=Fraction(1)))
    assert zcdp.rho_of(fixed) == zcdp.rho_of(sampled)
    for event in (
        PoissonSampled(rate=Fraction(1, 2), event=Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1))),
        Stated(guarantee=RDP(curve=((Fraction(2), Fraction(1)),))),
    ):
        with pytest.raises(Unsupported, match="has no ρ"):
            zcdp.rho_of(event)


def test_conversion_of_rho_leaves_room_for_the_own_delta():
    step = Stated(guarantee=Approximate(epsilon=Fraction(1, 10), delta=Fraction("1e-8")))
    total = [step] * 10 + [Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(10))]
    rho = ZCDP(rho=Fraction(1, 20) + Fraction(1, 20))
    assert zcdp.epsilon(total, delta="1.1e-6") == rho.epsilon_at("1e-6")
    assert zcdp.delta(total, epsilon=1) == rho.delta_at(1) + Fraction("1e-7")
    assert zcdp.epsilon([], delta=0) == zcdp.epsilon([], delta="1e-6") == 0
    leaky = [Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(2, 3)))] * 2
    assert zcdp.compose(leaky).delta == zcdp.delta(leaky[:1], epsilon=0) == 1
    only_delta = Stated(guarantee=Approximate(epsilon=Fraction(0), delta=Fraction(1, 9)))
    assert zcdp.epsilon(only_delta, delta="1/9") == 0
    with pytest.raises(Refused, match="add up to 1/9"):
        zcdp.epsilon(only_delta, delta="1/10")
    for small in ("1e-7", "1e-9"):
        with pytest.raises(Refused, match="add up to 1/10000000"):
            zcdp.epsilon(total, delta=small)


def test_the_classical_and_the_exact_sigma():
    truth = 3 * mp.sqrt(2 * mp.log(mp.mpf("1.25") / mp.mpf("1e-5"))) * 2
    assert rounded_up(gaussian.classical_sigma(l2=3, epsilon="1/2", delta="1e-5"), truth, 1e-25)
    with pytest.raises(Refused):
        gaussian.classical_sigma(l2=3, epsilon=1, delta="1e-5")
    sigma = gaussian.gaussian_sigma(l2=2, epsilon=1, delta="1e-3")
    assert gaussian.gaussian_delta(l2=2, sigma=sigma, epsilon=1) <= Fraction("1e-3")
    assert gaussian.gaussian_delta(l2=2, sigma=sigma * Fraction(10**8 - 1, 10**8), epsilon=1) > Fraction("1e-3")
