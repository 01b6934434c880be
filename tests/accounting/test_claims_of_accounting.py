"""The numbers of the catalogue's accounting entries."""

import math
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato import accounting
from sfumato.accounting import advanced, optimal, rdp, subsampling
from sfumato.core.events import DiscreteLaplace, Gaussian, PoissonSampled, Repeated, Stated
from sfumato.core.guarantees import ZCDP, Approximate, Pure
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused
from sfumato.tables.queries.count import Count, Keys
from tests.core.truth import mp, normal_cdf, number


def gauss(sigma: Fraction | int | str) -> Gaussian:
    return Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(sigma) ** 2)


def times(event, count):
    return Repeated(event=event, times=count)


def close(value: float, digits: float = 1e-4):
    return pytest.approx(value, rel=digits)


STEP = Approximate(epsilon=Fraction("0.05"), delta=Fraction("1e-8"))
DAY = times(Stated(guarantee=STEP), 1440)
PURE_DAY = times(Stated(guarantee=Pure(epsilon=Fraction("0.05"))), 1440)


@pytest.mark.claim("S4-04")
def test_a_day_of_steps_by_ever_tighter_accountants():
    total = Fraction("1.45e-5")
    assert accounting.compose([DAY]) == Approximate(epsilon=Fraction(72), delta=Fraction("1.44e-5"))
    textbook = advanced.textbook(epsilon="0.05", delta="1e-8", times=1440, slack="1e-7")
    assert textbook.epsilon == close(14.4642)
    assert textbook.delta == total
    assert accounting.epsilon(DAY, delta=total, method="advanced") == close(12.572)
    assert accounting.epsilon(DAY, delta=total, method="zcdp") == close(11.812)
    assert accounting.epsilon(DAY, delta=total, method="optimal") == close(11.160)
    assert optimal.epsilon(STEP, 1440, delta=total) == close(11.160)
    laplace = times(DiscreteLaplace(l1=Fraction(2**20), scale=Fraction(20 * 2**20)), 1440)
    assert accounting.epsilon(laplace, delta=1e-7) == pytest.approx(11.053, rel=2e-4)
    sigma = accounting.gaussian_sigma(l2=1, epsilon="0.05", delta="1e-8")
    assert accounting.epsilon(times(gauss(sigma), 1440), delta=total) == pytest.approx(1.629, rel=5e-4)


@pytest.mark.claim("S4-04")
def test_advanced_composition_is_a_bound_both_ways():
    exact = optimal.delta(STEP, 1440, epsilon=12)
    assert exact <= accounting.delta(DAY, epsilon=12, method="advanced")
    assert exact <= accounting.delta(DAY, epsilon=12, method="zcdp")
    assert exact <= accounting.delta(DAY, epsilon=12)
    assert accounting.delta(DAY, epsilon=72, method="advanced") == Fraction("1.44e-5")
    assert accounting.delta(DAY, epsilon=1, method="advanced") == 1
    assert accounting.epsilon(DAY, delta=Fraction("1.44e-5"), method="advanced") == 72
    for method in ("advanced", "zcdp", "rdp", "optimal", "basic"):
        with pytest.raises(Refused, match="Ask for"):
            accounting.epsilon(DAY, delta=1e-6, method=method)


def renyi(order: object, sigma: object, shift: object = 1) -> object:
    """Numerical Rényi divergence of N(shift, σ²) from N(0, σ²)."""

    def integrand(x: object) -> object:
        return mp.exp(-(order * (x - shift) ** 2 + (1 - order) * x**2) / (2 * sigma**2))

    centre = order * shift
    mp.dps, kept = 30, mp.dps
    total = mp.quad(integrand, [centre - 12 * sigma, centre, centre + 12 * sigma]) / (sigma * mp.sqrt(2 * mp.pi))
    mp.dps = kept
    return mp.log(total) / (order - 1)


@pytest.mark.claim("S4-06")
@pytest.mark.parametrize("order", ["3/2", "2", "8", "32"])
def test_the_renyi_divergence_of_shifted_gaussians(order):
    for sigma in ("1", "5/2"):
        assert rdp.loss_at(gauss(sigma), Fraction(order)) == Fraction(order) / (2 * Fraction(sigma) ** 2)
        assert float(renyi(number(Fraction(order)), number(Fraction(sigma)))) == close(
            float(Fraction(order) / (2 * Fraction(sigma) ** 2)), 1e-9
        )


@pytest.mark.claim("S4-05")
def test_renyi_losses_of_a_product_add():
    one, other = gauss(2), gauss(3)
    curve, own = rdp.compose([one, other, other], orders=[Fraction(3, 2), 8])
    assert own == 0
    for order, loss in curve.curve:
        assert loss == rdp.loss_at(one, order) + 2 * rdp.loss_at(other, order)
    odds = mp.exp(1)
    keep, turn = odds / (1 + odds), 1 / (1 + odds)
    for order in (mp.mpf("1.5"), mp.mpf(8)):
        single = mp.log(keep**order * turn ** (1 - order) + turn**order * keep ** (1 - order)) / (order - 1)
        pairs = [(a * c, b * d) for a, b in ((keep, turn), (turn, keep)) for c, d in ((keep, turn), (turn, keep))]
        product = mp.log(mp.fsum(p**order * q ** (1 - order) for p, q in pairs)) / (order - 1)
        assert abs(product - 2 * single) < mp.mpf(10) ** -60


@pytest.mark.claim("S4-07")
@pytest.mark.parametrize(
    ("count", "sigma", "delta", "classical", "improved", "exact"),
    [
        (1, 1, "1e-5", 5.2985, 4.7284, 4.3772),
        (1000, 40, "1e-6", 4.4682, 4.0103, 3.7472),
        (10_000, 50, "1e-5", 11.5971, 10.7248, 9.9973),
    ],
)
def test_three_conversions(count, sigma, delta, classical, improved, exact):
    rho, logarithm = count / (2 * sigma**2), -math.log(float(Fraction(delta)))
    assert rho + 2 * math.sqrt(rho * logarithm) == close(classical, 2e-5)
    best = 1 + math.sqrt(logarithm / rho)
    assert rho * best + logarithm / (best - 1) == close(classical, 2e-5)
    event = times(gauss(sigma), count)
    assert accounting.epsilon(event, delta=delta, method="zcdp") == close(improved, 2e-5)
    assert accounting.epsilon(event, delta=delta) == close(exact, 2e-5)
    assert improved * 0.99999 <= accounting.epsilon(event, delta=delta, method="rdp") <= improved * 1.002


@pytest.mark.claim("S2-16", "S1-02")
@pytest.mark.parametrize(("steps", "epsilon"), [(100, 0.726), (10_000, 10.0), (100_000, 46.2)])
def test_epsilon_grows_like_the_root_of_the_steps_only_at_first(steps, epsilon):
    assert accounting.epsilon(times(gauss(50), steps), delta=1e-5) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.claim("S2-16")
@pytest.mark.parametrize(("steps", "rate", "target"), [(10_000, "0.01", 1), (500, "0.2", 4), (200, 1, 2)])
def test_calibrating_and_accounting_again_returns_the_target_from_below(steps, rate, target):
    sigma = accounting.calibrate_sigma(epsilon=target, delta=1e-5, steps=steps, sampling=rate)
    found = accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=rate), delta=1e-5)
    assert target * (1 - 1e-3) <= found <= target
    if rate == "0.01":
        assert sigma == pytest.approx(3.813, rel=1e-3)


@pytest.mark.claim("S1-02")
def test_a_training_plan_costs_what_it_was_calibrated_to_and_less_than_the_sum_of_its_steps():
    sigma = accounting.calibrate_sigma(epsilon=2, delta=1e-6, steps=1000, sampling=0.02)
    plan = accounting.plan(sigma=sigma, steps=1000, sampling=0.02)
    found = accounting.epsilon(plan, delta=1e-6)
    assert found == pytest.approx(2, abs=1e-3)
    assert found <= 2
    one = accounting.epsilon(accounting.plan(sigma=sigma, steps=1, sampling=0.02), delta=1e-9)
    assert found < 1000 * one
    assert found < accounting.epsilon(plan, delta=1e-6, method="rdp")


@pytest.mark.claim("S3-01")
def test_poisson_sampling_amplifies_pure_guarantees():
    one = Pure(epsilon=Fraction(1))
    assert subsampling.poisson(one, "0.1").epsilon == close(0.1586, 3e-4)
    assert subsampling.poisson(one, "0.01").epsilon == close(0.01704, 3e-4)
    sampled = PoissonSampled(rate=Fraction(1, 10), event=Stated(guarantee=one))
    assert accounting.compose([sampled]) == subsampling.poisson(one, Fraction(1, 10))


@pytest.mark.claim("S3-01")
@pytest.mark.parametrize(("rate", "epsilon"), [("0.1", 27.16), ("0.03", 6.75), ("0.01", 2.108), ("0.003", 0.925)])
def test_the_moments_of_sampled_gaussians(rate, epsilon):
    event = times(PoissonSampled(rate=Fraction(rate), event=gauss(1)), 1000)
    assert rdp.epsilon(event, delta=1e-5, orders=range(2, 257)) == pytest.approx(epsilon, rel=6e-4)
    assert accounting.epsilon(event, delta=1e-5) <= epsilon


@pytest.mark.claim("S3-01")
def test_without_sampling_the_same_steps_cost_far_more():
    assert accounting.epsilon(times(gauss(1), 1000), delta=1e-5) == close(633.9)


@pytest.mark.claim("S0-06")
def test_a_thousand_disjoint_bins_are_charged_once_for_events_and_by_the_sensitivity_for_users():
    bins = tuple(range(1000))
    each = Pure(epsilon=Fraction(1, 10))
    assert accounting.parallel([each] * 1000, relation=Relation.ADD_REMOVE) == each
    assert accounting.parallel([each] * 1000, relation=Relation.REPLACE) == Pure(epsilon=Fraction(1, 5))
    histogram = Count(dataset=Dataset(name="visits", edition="1"), by=(Keys(column="minute", values=bins),))
    people = sf.user("id", relation="add/remove"), sf.Limit(groups=20, rows_per_group=1)
    for (unit, limit), l1 in (((sf.record(relation="add/remove"), None), 1), (people, 20)):
        moved = histogram.sensitivity(unit, limit).l1.value
        assert moved == l1
        event = DiscreteLaplace(l1=moved, scale=Fraction(10))
        assert accounting.compose([event]) == Pure(epsilon=l1 * Fraction(1, 10))


def excess(epsilon: Fraction, delta: Fraction) -> float:
    """By how much the classical σ misses its δ."""
    sigma = mp.sqrt(2 * mp.log(mp.mpf("1.25") / number(delta))) / number(epsilon)
    return float(exact_delta(sigma, number(epsilon)) / number(delta))


def exact_delta(sigma: object, epsilon: object) -> object:
    return normal_cdf(1 / (2 * sigma) - epsilon * sigma) - mp.exp(epsilon) * normal_cdf(
        -1 / (2 * sigma) - epsilon * sigma
    )


@pytest.mark.claim("S2-02")
@pytest.mark.parametrize(("epsilon", "ratio"), [("0.5", 28.6), ("1", 16.1), ("3", 6.9)])
def test_delta_is_not_the_probability_that_the_loss_exceeds_epsilon(epsilon, ratio):
    sigma = accounting.gaussian_sigma(l2=1, epsilon=epsilon, delta="1e-5")
    mu = 1 / number(sigma)
    beyond = normal_cdf(mu / 2 - number(Fraction(epsilon)) / mu)
    assert float(beyond / mp.mpf("1e-5")) == pytest.approx(ratio, rel=0.01)


@pytest.mark.claim("S2-06", "S2-04")
@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [("0.5", "1e-5", 7.0318), (1, "1e-5", 3.7306), (1, "1e-6", 4.2247), (3, "1e-6", 1.5439), (10, "1e-5", 0.4999)],
)
def test_exact_gaussian_calibration(epsilon, delta, sigma):
    found = accounting.gaussian_sigma(l2=1, epsilon=epsilon, delta=delta)
    assert found == close(sigma)
    room = number(Fraction(delta))
    assert exact_delta(number(found), number(Fraction(epsilon))) <= room
    assert exact_delta(number(found) * (1 - mp.mpf(10) ** -8), number(Fraction(epsilon))) > room
    assert accounting.gaussian_delta(l2=1, sigma=found, epsilon=epsilon) <= Fraction(delta)
    assert accounting.gaussian_sigma(l2=3, epsilon=epsilon, delta=delta) == 3 * found


@pytest.mark.claim("S2-05")
def test_the_classical_formula_wastes_noise_below_one_and_is_refused_from_there_on():
    for epsilon, ratio in (("0.1", 1.576), ("0.5", 1.378)):
        classical = accounting.classical_sigma(l2=1, epsilon=epsilon, delta="1e-5")
        assert classical / accounting.gaussian_sigma(l2=1, epsilon=epsilon, delta="1e-5") == pytest.approx(
            ratio, rel=4e-4
        )
    at_one = accounting.classical_sigma(l2=1, epsilon="0.999999", delta="1e-5")
    assert at_one / accounting.gaussian_sigma(l2=1, epsilon=1, delta="1e-5") == pytest.approx(1.299, rel=4e-4)
    for epsilon in (1, 2, 20):
        with pytest.raises(Refused, match="proven for ε < 1 only"):
            accounting.classical_sigma(l2=1, epsilon=epsilon, delta="1e-5")
    with pytest.raises(InvalidInput, match="guarantees nothing"):
        accounting.gaussian_sigma(l2=1, epsilon=1, delta=1)


@pytest.mark.claim("S2-05")
@pytest.mark.parametrize(
    ("delta", "crossing"), [("1e-5", "8.42"), ("1e-6", "8.78"), ("0.1", "5.74"), ("1e-10", "9.85")]
)
def test_where_the_classical_formula_begins_to_fail(delta, crossing):
    assert (
        excess(Fraction(crossing) - Fraction("0.01"), Fraction(delta))
        < 1
        < excess(Fraction(crossing) + Fraction("0.01"), Fraction(delta))
    )


@pytest.mark.claim("S2-05")
def test_how_far_the_classical_formula_fails():
    assert excess(Fraction(10), Fraction("1e-5")) == pytest.approx(2.3, rel=0.02)
    assert excess(Fraction(20), Fraction("1e-5")) == pytest.approx(152.7, rel=1e-3)
    assert excess(Fraction(50), Fraction("1e-5")) == pytest.approx(5.9e4, rel=0.01)


@pytest.mark.claim("S2-07")
def test_how_sigma_scales():
    exact, classical = accounting.gaussian_sigma, accounting.classical_sigma
    assert classical(l2=2, epsilon=0.5, delta=1e-6) == 2 * classical(l2=1, epsilon=0.5, delta=1e-6)
    assert classical(l2=1, epsilon=0.25, delta=1e-6) == 2 * classical(l2=1, epsilon=0.5, delta=1e-6)
    assert exact(l2=2, epsilon=1, delta=1e-6) == 2 * exact(l2=1, epsilon=1, delta=1e-6)
    small = exact(l2=1, epsilon=Fraction(1, 1000), delta=Fraction(1, 10**9)) / exact(
        l2=1, epsilon=Fraction(1, 500), delta=Fraction(1, 10**9)
    )
    assert small == pytest.approx(2, rel=0.05)
    large = exact(l2=1, epsilon=10_000, delta=1e-5)
    assert large == pytest.approx(1 / math.sqrt(2 * 10_000), rel=0.05)


@pytest.mark.claim("S2-08")
def test_what_a_smaller_delta_costs():
    exact, classical = accounting.gaussian_sigma, accounting.classical_sigma
    before, after = Fraction("1e-6"), Fraction(10 ** (-6.6))
    for found, ratio in (
        (classical(l2=1, epsilon=0.5, delta=after) / classical(l2=1, epsilon=0.5, delta=before), 1.0481),
        (exact(l2=1, epsilon=1, delta=after) / exact(l2=1, epsilon=1, delta=before), 1.0655),
        (exact(l2=1, epsilon=0.1, delta=after) / exact(l2=1, epsilon=0.1, delta=before), 1.0846),
        (classical(l2=1, epsilon=0.5, delta=1e-7) / classical(l2=1, epsilon=0.5, delta=1e-6), 1.0789),
    ):
        assert found == pytest.approx(ratio, rel=1e-4)


def test_an_unknown_method_is_named_and_so_are_unequal_steps():
    with pytest.raises(InvalidInput, match="'moments' is not one of pld, rdp"):
        accounting.epsilon([], delta=1e-6, method="moments")
    with pytest.raises(InvalidInput, match="'moments' is not one of pld, rdp"):
        accounting.delta([], epsilon=1, method="moments")
    uneven = [Stated(guarantee=Pure(epsilon=Fraction(1))), Stated(guarantee=Pure(epsilon=Fraction(2)))]
    with pytest.raises(Exception, match="these differ"):
        accounting.epsilon(uneven, delta=1e-6, method="optimal")
    assert accounting.epsilon([], delta=1e-6, method="optimal") == 0


@pytest.mark.parametrize("method", accounting.METHODS)
def test_every_method_gives_delta_and_epsilon_that_agree(method):
    events = times(Stated(guarantee=Pure(epsilon=Fraction(1, 10))), 50)
    epsilon = accounting.epsilon(events, delta=1e-5, method=method)
    assert accounting.delta(events, epsilon=epsilon, method=method) <= Fraction("1e-5") * Fraction(1.01)
    assert optimal.epsilon(Pure(epsilon=Fraction(1, 10)), 50, delta=1e-5) * Fraction("0.99999") <= epsilon <= 5


def test_zcdp_of_one_gaussian_is_the_stated_one():
    assert accounting.epsilon(gauss(3), delta=1e-6, method="zcdp") == ZCDP(rho=Fraction(1, 18)).epsilon_at(1e-6)
