"""The Gaussian mechanism: exact calibration, the classical formula and its limits, and the law that runs."""

import math
from fractions import Fraction

import mpmath
import pytest

from sfumato import errors
from sfumato.accounting import zcdp
from sfumato.core.events import DiscreteGaussian
from sfumato.core.guarantees import GDP
from sfumato.core.sensitivity import L1, L2, Sensitivity
from sfumato.laws import RoundedGaussian
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.advisor import least_noise

pytestmark = pytest.mark.kills


def delta_of(sigma: float, epsilon: float) -> float:
    """δ(ε) of the continuous mechanism at unit sensitivity, from mpmath."""
    with mpmath.workdps(60):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        inside, outside = mpmath.ncdf(1 / (2 * s) - e * s), mpmath.ncdf(-1 / (2 * s) - e * s)
        return float(inside - mpmath.exp(e) * outside)


def sigma(epsilon: object, delta: object) -> float:
    return float(Gaussian.calibrated(l2=1, epsilon=epsilon, delta=delta).sigma)  # type: ignore[arg-type]


@pytest.mark.claim("S2-06")
@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [(0.5, 1e-5, 7.0318), (1, 1e-5, 3.7306), (1, 1e-6, 4.2247), (3, 1e-6, 1.5439), (10, 1e-5, 0.4999)],
)
def test_the_exact_calibration(epsilon: float, delta: float, expected: float) -> None:
    found = sigma(epsilon, delta)
    assert found == pytest.approx(expected, abs=1e-4)
    assert delta_of(found, epsilon) <= delta  # met,
    assert delta_of(found * (1 - 1e-6), epsilon) > delta  # and not by waste


@pytest.mark.claim("S2-05")
def test_the_classical_formula_wastes_below_one_and_is_refused_from_one_on() -> None:
    for epsilon, ratio in [(0.1, 1.576), (0.5, 1.378)]:
        classical = float(Gaussian.classical(l2=1, epsilon=epsilon, delta=1e-5).sigma)
        assert classical / sigma(epsilon, 1e-5) == pytest.approx(ratio, abs=1e-3)
    for epsilon in (1, 1.5, 20):
        with pytest.raises(errors.Refused, match="proven for ε < 1 only"):
            Gaussian.classical(l2=1, epsilon=epsilon, delta=1e-5)
    textbook = math.sqrt(2 * math.log(1.25e5))
    assert textbook / sigma(1, 1e-5) == pytest.approx(1.299, abs=1e-3)
    assert delta_of(textbook / 20, 20) / 1e-5 == pytest.approx(152.7, rel=1e-3)
    assert delta_of(textbook / 10, 10) / 1e-5 == pytest.approx(2.3, abs=0.05)
    assert delta_of(textbook / 50, 50) / 1e-5 == pytest.approx(5.9e4, rel=1e-2)
    for delta, edge in [(1e-5, 8.42), (1e-6, 8.78), (0.1, 5.74), (1e-10, 9.85)]:
        amount = math.sqrt(2 * math.log(1.25 / delta))
        assert delta_of(amount / (edge - 0.01), edge - 0.01) < delta < delta_of(amount / (edge + 0.01), edge + 0.01)


@pytest.mark.claim("S2-07")
def test_how_sigma_scales() -> None:
    assert float(Gaussian.calibrated(l2=3, epsilon=1, delta=1e-5).sigma) == pytest.approx(3 * sigma(1, 1e-5), rel=1e-6)
    classical = [float(Gaussian.classical(l2=1, epsilon=e, delta=1e-5).sigma) for e in (0.1, 0.2)]
    assert classical[0] / classical[1] == pytest.approx(2, rel=1e-9)
    assert sigma(0.001, 1e-5) / sigma(0.002, 1e-5) > 1.7  # near 1/ε for small ε,
    for epsilon in (1000, 4000):  # and 1/√(2ε) for large
        assert sigma(epsilon, 1e-5) * math.sqrt(2 * epsilon) == pytest.approx(1, abs=0.15)


@pytest.mark.claim("S2-08")
def test_a_smaller_delta_costs_little() -> None:
    n = 10**6
    smaller = n**-1.1
    classical = [math.sqrt(2 * math.log(1.25 / delta)) for delta in (1 / n, smaller)]
    assert classical[1] / classical[0] == pytest.approx(1.0481, abs=1e-4)
    assert sigma(1, smaller) / sigma(1, 1 / n) == pytest.approx(1.0655, abs=1e-4)
    assert sigma(0.1, smaller) / sigma(0.1, 1 / n) == pytest.approx(1.0846, abs=1e-4)
    tenfold = [float(Gaussian.classical(l2=1, epsilon=0.5, delta=delta).sigma) for delta in (1e-6, 1e-7)]
    assert tenfold[1] / tenfold[0] == pytest.approx(1.0789, abs=1e-4)


def rounded(sigma_: float, value: int) -> mpmath.mpf:
    s = mpmath.mpf(sigma_)
    return mpmath.ncdf((value + mpmath.mpf(1) / 2) / s) - mpmath.ncdf((value - mpmath.mpf(1) / 2) / s)


def discrete(sigma_: float, value: int, total: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(-(mpmath.mpf(value) ** 2) / (2 * mpmath.mpf(sigma_) ** 2)) / total


def hockey_stick(probability: object, epsilon: float, reach: int) -> float:
    factor = mpmath.exp(epsilon)
    return float(
        sum(max(mpmath.mpf(0), probability(k) - factor * probability(k - 1)) for k in range(-reach, reach + 1))  # type: ignore[operator]
    )


@pytest.mark.claim("X-08")
@pytest.mark.parametrize(("epsilon", "delta", "excess"), [(1, 1e-5, 1.035), (3, 1e-6, 1.38), (8, 1e-6, 3.0)])
def test_the_law_that_runs_meets_its_target_where_the_discrete_gaussian_would_not(
    epsilon: float, delta: float, excess: float
) -> None:
    mechanism = Gaussian.calibrated(l2=1, epsilon=epsilon, delta=delta)
    scale, reach = float(mechanism.sigma), 60
    with mpmath.workdps(50):
        total = sum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(scale) ** 2)) for k in range(-reach, reach + 1))
        assert hockey_stick(lambda k: rounded(scale, k), epsilon, reach) <= delta
        assert hockey_stick(lambda k: discrete(scale, k, total), epsilon, reach) / delta == pytest.approx(
            excess, rel=0.01
        )
        # the discrete Gaussian's ρ is exact on the lattice all the same, and is what it is accounted with
        rho, own = zcdp.rho_of(DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=mechanism.sigma**2))
        assert own == 0
        for order in (2, 3, 8):
            moment = sum(
                discrete(scale, k, total) ** order * discrete(scale, k - 1, total) ** (1 - order)
                for k in range(-reach, reach + 1)
            )
            assert float(mpmath.log(moment) / (order - 1)) == pytest.approx(order * float(rho), rel=1e-9)


@pytest.mark.claim("S2-04")
def test_the_event_is_that_of_the_continuous_mechanism() -> None:
    mechanism = Gaussian.calibrated(l2=L2(Fraction(2)), epsilon=1, delta=1e-5)
    assert mechanism.l2_squared == 2
    event = mechanism.event
    assert event.l2_squared == 2
    assert event.sigma_squared == mechanism.sigma**2
    mu = Fraction(math.sqrt(event.l2_squared / event.sigma_squared))
    assert GDP(mu=mu).delta_at(1) == pytest.approx(1e-5, rel=1e-5)
    assert mechanism.loss(Sensitivity.of(l2_squared=8)).l2_squared == 8
    assert float(mechanism.law.variance) == pytest.approx(float(mechanism.sigma) ** 2 + 1 / 12, rel=1e-9)


@pytest.mark.claim("S2-09")
def test_the_norm_is_part_of_the_type() -> None:
    for wrong in (L1(Fraction(1)), Sensitivity.of(l1=1)):
        with pytest.raises(TypeError, match="l2 bound"):
            Gaussian.calibrated(l2=wrong, epsilon=1, delta=1e-5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="as_l2"):
        Gaussian(l2_squared=Fraction(1), sigma=Fraction(1)).loss(Sensitivity.of(l1=1))
    assert Gaussian.calibrated(l2=L1(Fraction(1)).as_l2(), epsilon=1, delta=1e-5).l2_squared == 1
    with pytest.raises(TypeError, match="l1 bound"):
        Laplace.calibrated(l1=L2(Fraction(1)), epsilon=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1, -1, 2, float("nan")])
def test_a_delta_that_makes_no_sense(delta: float) -> None:
    with pytest.raises(errors.SfumatoError, match="delta"):
        Gaussian.calibrated(l2=1, epsilon=1, delta=delta)


@pytest.mark.claim("S2-13")
@pytest.mark.parametrize(("epsilon", "flip"), [(0.1, 7), (0.5, 9), (1, 9), (3, 11)])
def test_the_advisor_flips_where_it_should(epsilon: float, flip: int) -> None:
    for numbers in range(1, flip + 4):
        moved = Sensitivity.of(l1=numbers, l2_squared=numbers)
        chosen = least_noise(moved, epsilon=epsilon, delta=1e-6)
        assert isinstance(chosen, Gaussian) == (numbers >= flip)
    one = Sensitivity.of(l1=1, l2_squared=1)
    assert isinstance(least_noise(one, epsilon=1, delta=0), Laplace)
    assert isinstance(least_noise(Sensitivity.of(l2_squared=1), epsilon=1, delta=1e-6), Gaussian)
    with pytest.raises(TypeError):
        least_noise(Sensitivity.of(l2_squared=1), epsilon=1, delta=0)


@pytest.mark.few(1)
@pytest.mark.parametrize("sigma_", ["1/5", "1/2", "99/100", "1", "7/2", "10"])
def test_the_law_against_its_definition(sigma_: str) -> None:
    law = RoundedGaussian(sigma=Fraction(sigma_))
    scale, reach = float(Fraction(sigma_)), 200
    with mpmath.workdps(40):
        mass = {k: rounded(scale, k) for k in range(-reach, reach + 1)}
        variance = float(sum(k * k * p for k, p in mass.items()))
        error = float(sum(abs(k) * p for k, p in mass.items()))
        for size in (0, 1, 5, 12):
            tail = law.tail(size)
            truth = sum(p for k, p in mass.items() if abs(k) > size)
            assert float(tail.low) <= float(truth) * (1 + 1e-9) + 1e-30
            assert float(tail.high) >= float(truth) * (1 - 1e-9)
    assert variance <= float(law.variance) * (1 + 1e-12)
    assert float(law.variance) == pytest.approx(variance, rel=1e-3)
    assert error <= float(law.mean_absolute_error) * (1 + 1e-12)
    margin = law.margin(0.95)
    assert float(law.tail(margin).high) <= 0.05
    assert margin == 0 or float(law.tail(margin - 1).high) > 0.05
    assert law.tail(10**9).low == 0
    assert law.quantile(0.5) == 0
    assert law.quantile(0.975) == -law.quantile(0.025)
