"""Each Rényi curve beside its formula at high precision, and each decision on the way; they kill mutants."""

from fractions import Fraction

import pytest

from sfumato.accounting import rdp
from sfumato.accounting.subsampling import poisson
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Refused, Unsupported
from tests.core.truth import mp, number

pytestmark = pytest.mark.kills

ORDERS = [Fraction(11, 10), Fraction(2), Fraction(7, 2), Fraction(9)]


def just_above(found: Fraction, truth: object, order: Fraction | int) -> bool:
    """Not below, and above by no more than floats are raised before they are divided by α − 1."""
    room = mp.mpf("1e-11") * (1 + number(order) / 10) * (1 + truth) / number(order - 1)
    return bool(-(mp.mpf(10) ** -50) <= number(found) - truth <= room)


def gauss(sigma: Fraction | int | str) -> Gaussian:
    return Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(sigma) ** 2)


def pure(epsilon: Fraction | int | str) -> Stated:
    return Stated(guarantee=Pure(epsilon=Fraction(epsilon)))


# ------------------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_rational_is_exact(order):
    gaussian = Gaussian(l2_squared=Fraction(3), sigma_squared=Fraction(7))
    discrete = DiscreteGaussian(l2_squared=Fraction(3), sigma_squared=Fraction(7))
    assert rdp.loss_at(gaussian, order) == rdp.loss_at(discrete, order) == order * Fraction(3, 14)
    assert rdp.loss_at(Stated(guarantee=GDP(mu=Fraction(3))), order) == order * Fraction(9, 2)
    assert rdp.loss_at(Stated(guarantee=ZCDP(rho=Fraction(3))), order) == 3 * order


def response(epsilon: object, categories: int, order: object) -> object:
    total = mp.exp(epsilon) + categories - 1
    kept, other = mp.exp(epsilon) / total, 1 / total
    laws = kept**order * other ** (1 - order) + other**order * kept ** (1 - order) + (categories - 2) * other
    return mp.log(laws) / (order - 1)


@pytest.mark.parametrize("order", [*ORDERS, Fraction(1000)])
@pytest.mark.parametrize(("epsilon", "categories"), [("1/10", 2), ("2", 2), ("1", 5), ("1/100", 10**6), ("30", 3)])
def test_randomised_response(epsilon, categories, order):
    exact = Fraction(epsilon)
    found = rdp.loss_at(RandomizedResponse(epsilon=exact, categories=categories), order)
    truth = response(number(exact), categories, number(order))
    assert found <= exact
    assert found == exact or just_above(found, truth, order)
    if categories == 2:
        assert rdp.loss_at(pure(epsilon), order) == found
        bounded = rdp.loss_at(BoundedRange(epsilon=exact), order)
        assert bounded == min(found, order * exact**2 / 8)
    if order < 10 and exact <= 2:
        assert found < exact


def laplace(shift: int, scale: object, order: object) -> object:
    r = mp.exp(-1 / scale)
    weights = [(1 / (1 + r), 0), *(((1 - r) * r**j / (1 + r), j) for j in range(1, shift)), (r**shift / (1 + r), shift)]
    return mp.log(mp.fsum(w * mp.exp((order - 1) * (shift - 2 * j) / scale) for w, j in weights)) / (order - 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("l1", "scale"), [("1", "1"), ("1", "1/2"), ("2", "5"), ("5", "2"), ("27/5", "2"), ("9", "40")]
)
def test_discrete_laplace(l1, scale, order):
    found = rdp.loss_at(DiscreteLaplace(l1=Fraction(l1), scale=Fraction(scale)), order)
    truth = laplace(int(Fraction(l1)), number(Fraction(scale)), number(order))
    assert just_above(found, truth, order)
    assert found < Fraction(l1) / Fraction(scale)


def test_a_shift_below_one_loses_nothing_and_a_huge_order_at_most_the_pure_loss():
    assert rdp.loss_at(DiscreteLaplace(l1=Fraction(9, 10), scale=Fraction(1, 100)), Fraction(2)) == 0
    steep = DiscreteLaplace(l1=Fraction(3), scale=Fraction(2))
    assert rdp.loss_at(steep, Fraction(10**9)) <= Fraction(3, 2)


def test_a_stated_curve_is_read_at_the_next_higher_order():
    event = Stated(
        guarantee=RDP(curve=((Fraction(4), Fraction(2)), (Fraction(2), Fraction(1)), (Fraction(8), Fraction(2))))
    )
    for order, loss in (("3/2", 1), (2, 1), (3, 2), (4, 2), (5, 2), (8, 2)):
        assert rdp.loss_at(event, Fraction(order)) == loss
    with pytest.raises(Unsupported, match="ends below order 9"):
        rdp.loss_at(event, Fraction(9))


# ------------------------------------------------------------------------------------------------------ samples


@pytest.mark.parametrize("order", [1, 2, 3, 8, 1030])
def test_binomial_coefficients_of_any_size(order):
    """From order 1030 on the largest of them is no float."""
    truth = [mp.log(mp.binomial(order, k)) for k in range(order + 1)]
    found = rdp._log_binomials(order).tolist()
    assert len(found) == order + 1
    assert all(abs(mp.mpf(a) - b) <= b * mp.mpf("1e-15") for a, b in zip(found, truth, strict=True))


def drawn_by_coins(rate: object, losses: dict[int, object], order: int, factor: int) -> object:
    """(α − 1)·D_α by the binomial theorem, from k = 3 on with a factor."""
    return mp.log(
        mp.fsum(
            mp.binomial(order, k) * rate**k * (1 - rate) ** (order - k) * mp.exp((k - 1) * losses.get(k, 0)) * weight
            for k in range(order + 1)
            for weight in [factor if k >= 3 else 1]
        )
    )


@pytest.mark.parametrize("rate", ["1/100", "1/2", "3/5", "999999999999/1000000000000"])
@pytest.mark.parametrize("order", [2, 3, 4, 17])
def test_samples_by_coins_at_whole_orders(rate, order):
    for event, factor in ((gauss(2), 1), (Stated(guarantee=ZCDP(rho=Fraction(1, 8))), 3), (pure(1), 1)):
        losses = {k: number(rdp.loss_at(event, Fraction(k))) for k in range(2, order + 1)}
        truth = drawn_by_coins(number(Fraction(rate)), losses, order, factor) / (order - 1)
        found = rdp.loss_at(PoissonSampled(rate=Fraction(rate), event=event), Fraction(order))
        assert just_above(found, truth, order)


@pytest.mark.parametrize(
    ("event", "factor"),
    [
        (gauss(2), 1),
        (DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(4)), 1),
        (DiscreteLaplace(l1=Fraction(1), scale=Fraction(2)), 1),
        (RandomizedResponse(epsilon=Fraction(1), categories=3), 1),
        (pure("1/2"), 1),
        (Stated(guarantee=GDP(mu=Fraction(1, 2))), 1),
        (BoundedRange(epsilon=Fraction(1, 2)), 3),
        (Stated(guarantee=ZCDP(rho=Fraction(1, 8))), 3),
        (Stated(guarantee=RDP(curve=((Fraction(3), Fraction(1)),))), 3),
    ],
)
def test_only_pairs_that_a_reflection_exchanges_are_spared_the_factor(event, factor):
    losses = {k: number(rdp.loss_at(event, Fraction(k))) for k in (2, 3)}
    truth = drawn_by_coins(mp.mpf(1) / 4, losses, 3, factor) / 2
    assert just_above(rdp.loss_at(PoissonSampled(rate=Fraction(1, 4), event=event), Fraction(3)), truth, 3)


def drawn_without_return(size: int, population: int, event: PrivacyEvent, most: object, order: int) -> object:
    """Wang, Balle and Kasiviswanathan 2019, Theorem 9, as printed: (α − 1)·D_α."""
    share = mp.mpf(size) / population
    loss = {k: number(rdp.loss_at(event, Fraction(k))) for k in range(2, order + 1)}
    cap = [min(mp.mpf(2), mp.expm1(most) ** k) if mp.isfinite(most) else mp.mpf(2) for k in range(order + 1)]
    total = 1 + share**2 * mp.binomial(order, 2) * min(4 * mp.expm1(loss[2]), mp.exp(loss[2]) * cap[2])
    total += mp.fsum(share**k * mp.binomial(order, k) * mp.exp((k - 1) * loss[k]) * cap[k] for k in range(3, order + 1))
    return mp.log(total)


@pytest.mark.parametrize("order", [2, 3, 4, 11])
@pytest.mark.parametrize(("size", "population"), [(1, 4), (3, 10), (10, 1000), (7, 7)])
def test_samples_of_a_fixed_size_at_whole_orders(size, population, order):
    cases = [
        (gauss(3), mp.inf),
        (gauss("1/2"), mp.inf),
        (pure("1/10"), mp.mpf(1) / 10),
        (pure(1), mp.mpf(1)),
        (pure(20), mp.mpf(20)),
        (pure(800), mp.mpf(800)),
    ]
    for event, most in cases:
        found = rdp.loss_at(FixedSizeSampled(size=size, population=population, event=event), Fraction(order))
        truth = drawn_without_return(size, population, event, most, order) / (order - 1)
        assert just_above(found, truth, order)


def test_samples_of_what_loses_nothing_lose_next_to_nothing():
    still = pure(0)
    for event in (
        FixedSizeSampled(size=1, population=2, event=still),
        PoissonSampled(rate=Fraction(1, 2), event=still),
    ):
        assert 0 <= rdp.loss_at(event, Fraction(5)) < Fraction(1, 10**11)


def test_a_rate_that_no_float_could_hold_is_rounded_up():
    tiny = PoissonSampled(rate=Fraction(1, 10**400), event=gauss(1))
    assert 0 <= rdp.loss_at(tiny, Fraction(4)) < Fraction(1, 10**10)
    almost = PoissonSampled(rate=1 - Fraction(1, 10**400), event=gauss(1))
    assert just_above(rdp.loss_at(almost, Fraction(4)), number(Fraction(2)), 4)


def test_sampling_everyone_is_no_sampling():
    for order in (2, 5):
        assert rdp.loss_at(PoissonSampled(rate=Fraction(1), event=gauss(2)), Fraction(order)) == Fraction(order, 8)


def test_between_whole_orders_the_chord_is_taken():
    event = PoissonSampled(rate=Fraction(1, 10), event=gauss(1))
    whole = {order: (order - 1) * rdp.loss_at(event, Fraction(order)) for order in (2, 3, 4)}
    assert rdp.loss_at(event, Fraction(7, 4)) * Fraction(3, 4) == Fraction(3, 4) * whole[2]
    assert rdp.loss_at(event, Fraction(9, 4)) * Fraction(5, 4) == (3 * whole[2] + whole[3]) / 4
    assert rdp.loss_at(event, Fraction(10, 3)) * Fraction(7, 3) == (2 * whole[3] + whole[4]) / 3


# -------------------------------------------------------------------------------------------------- composition


def test_losses_add_at_each_order_and_own_deltas_beside_them():
    told = Stated(guarantee=Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 50)))
    curve, own = rdp.compose([Repeated(event=told, times=3), gauss(2)], orders=["3/2", 4])
    for order, loss in curve.curve:
        assert loss == 3 * rdp.loss_at(pure("1/2"), order) + order / 8
    assert [order for order, _ in curve.curve] == [Fraction(3, 2), 4]
    assert own == Fraction(3, 50)
    assert rdp.compose([told] * 60)[1] == 1


@pytest.mark.parametrize("order", [2, 7])
def test_an_own_delta_inside_a_sample_is_amplified_with_its_epsilon(order):
    told = Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(1, 50)))
    smaller = poisson(Pure(epsilon=Fraction(1)), "1/4")
    for event in (PoissonSampled(rate=Fraction(1, 4), event=told), FixedSizeSampled(size=1, population=4, event=told)):
        curve, own = rdp.compose(event, orders=[order])
        assert own == Fraction(1, 200)
        assert curve.curve[0][1] == rdp.loss_at(Stated(guarantee=smaller), Fraction(order))


@pytest.mark.parametrize("order", [1, "1/2", 0, -3])
def test_orders_lie_above_one(order):
    for event in (gauss(1), pure(1)):
        with pytest.raises(InvalidInput, match="above 1"):
            rdp.compose(event, orders=[2, order])


def test_what_the_own_deltas_leave_pays_for_the_conversion():
    told = Stated(guarantee=Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 50)))
    curve, own = rdp.compose([told, gauss(2)])
    assert rdp.epsilon([told, gauss(2)], delta=own + Fraction(1, 1000)) == curve.epsilon_at("1/1000")
    assert rdp.delta([told, gauss(2)], epsilon=3) == own + curve.delta_at(3)
    for small in (own, own / 2):
        with pytest.raises(Refused, match="add up to 1/50"):
            rdp.epsilon([told, gauss(2)], delta=small)
    assert rdp.delta([told] * 49 + [gauss(1)], epsilon=0) == 1
