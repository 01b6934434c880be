"""The closed forms of fine lattices never say more than the exact law, and hardly less."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato import laws
from sfumato.inference.continuous_bound import ContinuousBound, continuous_bound
from sfumato.inference.linear_combination import LinearCombination, Noise

SCALE = 1500
REACH = 16 * SCALE
COMBINATIONS = [(1,), (1, 1), (1, -1), (1, 2), (3, -2), (1, 1, 1), (1, 2, 3), (1, 1, 1, 1), (1, 1, 2, 2)]


def exact_within(coefficients: tuple[int, ...], law: str) -> np.ndarray:
    """P(|Σ c·z| ≤ x) for x = 0, 1, …, by convolution of the whole-number laws."""
    places = np.arange(-REACH, REACH + 1)
    if law == "laplace":
        one = np.exp(-np.abs(places) / SCALE)
    else:
        from scipy.special import ndtr

        one = ndtr((places + 0.5) / SCALE) - ndtr((places - 0.5) / SCALE)
    one /= one.sum()
    total = np.ones(1)
    for coefficient in coefficients:
        spread = np.zeros((len(one) - 1) * abs(coefficient) + 1)
        spread[:: abs(coefficient)] = one
        size = len(total) + len(spread) - 1
        length = 1 << (size - 1).bit_length()
        total = np.fft.irfft(np.fft.rfft(total, length) * np.fft.rfft(spread, length), length)[:size]
    middle = len(total) // 2
    return np.cumsum(np.concatenate([[total[middle]], total[middle + 1 :] + total[:middle][::-1]]))


def of(coefficients: tuple[int, ...], law: str) -> ContinuousBound:
    noise = (
        laws.DiscreteLaplace(scale=Fraction(SCALE)) if law == "laplace" else laws.RoundedGaussian(sigma=Fraction(SCALE))
    )
    found = continuous_bound((Fraction(coefficient), noise) for coefficient in coefficients)
    assert found is not None
    return found


@pytest.mark.few(8)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("coefficients", COMBINATIONS, ids=str)
def test_a_closed_form_is_never_above_the_exact_law_and_close_to_it(coefficients: tuple[int, ...], law: str) -> None:
    exact, found = exact_within(coefficients, law), of(coefficients, law)
    for share in (0.01, 0.1, 0.5, 1, 2, 3, 5):
        place = int(share * found.deviation)
        told = found.within(float(place))
        assert told <= exact[place] + 1e-11  # the convolution itself is right to that
        assert told >= exact[place] - 0.003


def test_twin_a_scale_that_is_a_hundredth_too_small_is_caught() -> None:
    exact = exact_within((1, 2), "laplace")
    broken = ContinuousBound(scales=[0.99 * SCALE, 0.99 * 2 * SCALE], sigma=0.0, slack=3.0)
    place = int(broken.deviation)
    assert broken.within(float(place)) > exact[place] + 1e-11


@pytest.mark.parametrize("noises", [2, 3, 9, 16])
def test_a_margin_covers_what_it_says(noises: int) -> None:
    law = laws.DiscreteLaplace(scale=Fraction(2**30))
    found = continuous_bound((Fraction(place + 1, 2**30), law) for place in range(noises))
    assert found is not None
    margin = found.margin(Fraction(19, 20))
    assert found.within(float(margin)) >= 0.95
    assert found.within(float(margin) * 0.9999) < 0.95


def test_coarse_lattices_mixed_laws_and_many_noises_are_left_to_the_series() -> None:
    coarse, wide = laws.DiscreteLaplace(scale=Fraction(20)), laws.DiscreteLaplace(scale=Fraction(2**20))
    assert continuous_bound([(Fraction(1), coarse)]) is None
    assert continuous_bound([(Fraction(1), wide), (Fraction(1), laws.RoundedGaussian(sigma=Fraction(2**20)))]) is None
    assert continuous_bound([(Fraction(1), wide)] * 17) is None
    assert continuous_bound([(Fraction(1), laws.Laplace(scale=Fraction(2**20)))]) is None
    noises = {Noise("a", place, coarse): Fraction(1) for place in range(2)}
    assert LinearCombination(Fraction(0), noises).margin(Fraction(19, 20)) == 82  # e^(-x/20)·(1 + x/40) = 0.05
