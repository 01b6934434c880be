"""Rényi curves beside the divergences themselves, summed or integrated at high precision."""

import math
from fractions import Fraction

import pytest

from sfumato import accounting
from sfumato.accounting import rdp
from sfumato.core.events import (
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    RandomizedResponse,
    Stated,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Unsupported
from tests.core.truth import mp, number

pytestmark = pytest.mark.kills

ORDERS = [Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(8), Fraction(32)]


def divergence(p: list, q: list, order: Fraction) -> object:
    a = number(order)
    return mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True))) / (a - 1)


def covered(found: Fraction, truth: object, slack: float) -> bool:
    return bool(truth <= number(found) + mp.mpf(10) ** -60) and float(found) <= float(truth) * (1 + slack) + 1e-9


def gauss(sigma: Fraction | int | str) -> Gaussian:
    return Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(sigma) ** 2)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("epsilon", "categories"), [("1/10", 2), ("1", 5), ("3", 2)])
def test_randomised_response(epsilon, categories, order):
    odds = mp.exp(number(Fraction(epsilon)))
    total = odds + categories - 1
    p = [odds / total, 1 / total, *[1 / total] * (categories - 2)]
    q = [1 / total, odds / total, *[1 / total] * (categories - 2)]
    found = rdp.loss_at(RandomizedResponse(epsilon=Fraction(epsilon), categories=categories), order)
    assert covered(found, divergence(p, q, order), 1e-9)
    if categories == 2:
        assert found == rdp.loss_at(Stated(guarantee=Pure(epsilon=Fraction(epsilon))), order)
        assert rdp.loss_at(BoundedRange(epsilon=Fraction(epsilon)), order) == min(
            order * Fraction(epsilon) ** 2 / 8, found
        )


@pytest.mark.few(8)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("shift", "scale"), [(1, 1), (1, 5), (3, 2), (7, 3)])
def test_discrete_laplace(shift, scale, order):
    r = mp.exp(-mp.mpf(1) / scale)
    law = {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-500, 520)}
    places = range(-480, 500)
    truth = divergence([law[k - shift] for k in places], [law[k] for k in places], order)
    assert covered(rdp.loss_at(DiscreteLaplace(l1=Fraction(shift), scale=Fraction(scale)), order), truth, 1e-8)


def test_no_shift_no_loss():
    assert rdp.loss_at(DiscreteLaplace(l1=Fraction(1, 2), scale=Fraction(1)), Fraction(2)) == 0


def sampled(rate: object, sigma: object, order: object) -> object:
    def term(x: object) -> object:
        base = mp.exp(-(x**2) / (2 * sigma**2))
        return base * (1 - rate + rate * mp.exp((2 * x - 1) / (2 * sigma**2))) ** order

    mp.dps, kept = 25, mp.dps
    points = [-15 * sigma, 0, order / 2, order, order + 15 * sigma]
    total = mp.quad(term, sorted(points)) / (sigma * mp.sqrt(2 * mp.pi))
    mp.dps = kept
    return mp.log(total)


@pytest.mark.parametrize(("rate", "sigma"), [("1/100", "1"), ("1/5", "2")])
def test_poisson_sampled_gaussians_are_exact_at_whole_orders_and_covered_between(rate, sigma):
    event = PoissonSampled(rate=Fraction(rate), event=gauss(sigma))
    discrete = PoissonSampled(
        rate=Fraction(rate), event=DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(sigma) ** 2)
    )
    for order in (Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(7), Fraction(33, 4)):
        truth = sampled(number(Fraction(rate)), number(Fraction(sigma)), number(order)) / number(order - 1)
        found = rdp.loss_at(event, order)
        assert float(found) >= float(truth) * (1 - 1e-12)
        assert float(found) <= float(truth) * (1 + (1e-8 if order.denominator == 1 else 1.0))
        assert rdp.loss_at(discrete, order) == found


def test_sampling_everyone_changes_nothing_and_general_curves_are_tripled():
    for order in (Fraction(2), Fraction(5)):
        assert rdp.loss_at(PoissonSampled(rate=Fraction(1), event=gauss(2)), order) == rdp.loss_at(gauss(2), order)
    mirrored = PoissonSampled(rate=Fraction(1, 10), event=Stated(guarantee=GDP(mu=Fraction(1, 2))))
    general = PoissonSampled(rate=Fraction(1, 10), event=Stated(guarantee=ZCDP(rho=Fraction(1, 8))))
    assert rdp.loss_at(mirrored, Fraction(2)) == rdp.loss_at(general, Fraction(2))
    for order in (3, 6):
        one = math.expm1(float((order - 1) * rdp.loss_at(mirrored, Fraction(order))))
        other = math.expm1(float((order - 1) * rdp.loss_at(general, Fraction(order))))
        assert one < other < 3 * one


def replaced(size: int, population: int, odds: object) -> tuple[list, list]:
    """Randomised response on one unit, drawn uniformly: the replaced one with probability size/population."""
    share = mp.mpf(size) / population
    keep, turn = odds / (1 + odds), 1 / (1 + odds)
    return [share * keep + (1 - share) * turn, share * turn + (1 - share) * keep], [turn, keep]


def test_samples_of_a_fixed_size_are_covered():
    p, q = replaced(1, 4, mp.exp(1))
    event = FixedSizeSampled(size=1, population=4, event=Stated(guarantee=Pure(epsilon=Fraction(1))))
    for order in (Fraction(2), Fraction(3), Fraction(9, 2), Fraction(10)):
        truth = max(divergence(p, q, order), divergence(q, p, order))
        assert truth <= number(rdp.loss_at(event, order)) <= number(Fraction(1))
    event = FixedSizeSampled(size=10, population=1000, event=gauss(3))
    assert rdp.loss_at(event, Fraction(2)) < rdp.loss_at(gauss(3), Fraction(2)) / 100
    exact = accounting.epsilon([event] * 100, delta=1e-5)
    assert exact <= accounting.epsilon([event] * 100, delta=1e-5, method="rdp")


def test_stated_curves_are_read_at_the_next_higher_order():
    event = Stated(guarantee=RDP(curve=((Fraction(2), Fraction(1)), (Fraction(4), Fraction(2)))))
    assert [rdp.loss_at(event, order) for order in (Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4))] == [
        1,
        1,
        2,
        2,
    ]
    with pytest.raises(Unsupported, match="ends below order 5"):
        rdp.loss_at(event, Fraction(5))
    with pytest.raises(Unsupported, match="no Rényi curve"):
        rdp.loss_at(Composed(events=()), Fraction(2))
    with pytest.raises(InvalidInput, match="above 1"):
        rdp.compose([], orders=[1])


def test_the_own_delta_of_events_is_set_aside():
    step = Stated(guarantee=Approximate(epsilon=Fraction(1, 10), delta=Fraction("1e-8")))
    pure = Stated(guarantee=Pure(epsilon=Fraction(1, 10)))
    curve, own = rdp.compose([step] * 5)
    assert own == Fraction("5e-8")
    assert curve == rdp.compose([pure] * 5)[0]
    assert accounting.epsilon([step] * 5, delta=Fraction("1.05e-6"), method="rdp") == accounting.epsilon(
        [pure] * 5, delta=Fraction("1e-6"), method="rdp"
    )
    sampled_step = PoissonSampled(rate=Fraction(1, 10), event=step)
    assert rdp.compose(sampled_step)[1] == Fraction("1e-9")
    assert accounting.delta([step], epsilon=2, method="rdp") >= Fraction("1e-8")


@pytest.mark.parametrize(
    "event",
    [
        gauss(3),
        PoissonSampled(rate=Fraction(1, 50), event=gauss(1)),
        DiscreteLaplace(l1=Fraction(2), scale=Fraction(20)),
        BoundedRange(epsilon=Fraction(1, 10)),
        FixedSizeSampled(size=5, population=100, event=gauss(2)),
    ],
)
def test_pld_is_never_above_rdp_and_grows_with_the_list(event):
    found = [accounting.epsilon([event] * times, delta=1e-5) for times in (1, 4, 16)]
    assert found == sorted(found)
    assert found[2] <= accounting.epsilon([event] * 16, delta=1e-5, method="rdp") * Fraction("1.0002")
