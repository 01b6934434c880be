"""The law and the mechanism of noise that sites share: margins that hold, and a charge that was accounted."""

from fractions import Fraction

import pytest
from scipy.stats import skellam

import sfumato as sf
from sfumato.accounting.basic import guarantee_of
from sfumato.core.events import Skellam
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import Refused, WrongNorm
from sfumato.federated.shared_skellam import SharedSkellam, shared_variance
from sfumato.inference.spectrum import spectrum
from sfumato.laws import RoundedGaussian, SkellamNoise

SPEND = sf.Budget(epsilon=1, delta=1e-6)


@pytest.mark.parametrize("spread", [Fraction(1, 100), Fraction(1, 3), Fraction(4), Fraction(2513, 10)])
def test_the_law_is_that_of_a_difference_of_poisson_numbers(spread: Fraction) -> None:
    law, half = SkellamNoise(spread=spread), float(spread) / 2
    known = skellam(half, half)
    for size in (0, 1, 2, 5, 17, 40):
        tail = law.tail(size)
        assert 0 <= tail.low <= tail.high <= 1
        assert float(tail.high) == pytest.approx(2 * known.sf(size), rel=1e-6, abs=1e-13)
        assert tail.high - tail.low < Fraction(1, 2**140)
    mean = sum(2 * k * known.pmf(k) for k in range(1, 400))
    assert float(law.mean_absolute_error) == pytest.approx(mean, rel=1e-9)
    assert law.tail(10**9).high < Fraction(1, 2**150)


def test_the_law_brings_its_characteristic_function_and_moments() -> None:
    found = spectrum(SkellamNoise(spread=Fraction(3)))
    known = skellam(1.5, 1.5)
    import numpy as np

    points = np.arange(-60, 61)
    for t in (0.1, 1.0, 3.0):
        assert found.wave(np.array([t]))[0] == pytest.approx(float((np.cos(t * points) * known.pmf(points)).sum()))
    assert found.log_moment(0.5) == pytest.approx(float(np.log((np.exp(0.5 * points) * known.pmf(points)).sum())))


@pytest.mark.parametrize("confidence", [Fraction(7, 10), Fraction(19, 20), 1 - Fraction(1, 10**6)])
@pytest.mark.parametrize("sites", [2, 10, 100])
def test_in_a_coarse_unit_the_margin_covers_noise_and_rounding(confidence: Fraction, sites: int) -> None:
    unit, variance = 1 << 19, Fraction(1 << 24)
    law = SharedSkellam(variance=variance, unit=unit, sites=sites).law
    assert isinstance(law, RoundedGaussian)
    exact = skellam(2**23, 2**23).isf(float(1 - confidence) / 2)
    assert law.margin(confidence) >= unit * (exact + sites / 2)
    assert law.margin(confidence) <= unit * (exact * (1 + 2 * sites / 2**12) + 2)


@pytest.mark.parametrize(("l1", "square"), [(1, 1), (3, 9), (40, 100)])
def test_the_variance_was_accounted_and_is_near_the_least(l1: int, square: int) -> None:
    found = shared_variance(l1=Fraction(l1), l2_squared=Fraction(square), spend=SPEND)
    guarantee_of(Skellam(l1=Fraction(l1), l2_squared=Fraction(square), variance=found), SPEND)
    with pytest.raises(Refused):
        guarantee_of(Skellam(l1=Fraction(l1), l2_squared=Fraction(square), variance=found * Fraction(97, 100)), SPEND)


def test_without_a_delta_or_an_l2_bound_there_is_no_shared_noise() -> None:
    with pytest.raises(Refused, match="needs a δ"):
        shared_variance(l1=Fraction(1), l2_squared=Fraction(1), spend=sf.Budget(epsilon=1))
    with pytest.raises(WrongNorm, match="needs an l2 bound"):
        SharedSkellam(variance=Fraction(9)).loss(Sensitivity.of(l1=1))
