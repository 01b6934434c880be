"""Draws from the system's randomness follow the law, and a scale that is 2% off is caught.

The largest distance between the empirical and the claimed distribution function is held to the bound of Dvoretzky,
Kiefer and Wolfowitz (with Massart's constant): above it with probability at most α = 1e-9 for each scale. Twice the
bound is below the distance between the laws of scales 2% apart, so that such a fault, the smallest that the test is
sure to find, is missed with probability at most 1e-9.
"""

from fractions import Fraction
from functools import cache
from math import exp, log, sqrt

import numpy as np
import pytest

from sfumato.noise import discrete_laplace

ALPHA = 1e-9
SIZES = {Fraction(10): 3_500_000, Fraction(10, 3): 3_500_000, Fraction(1, 2): 3_500_000}
BOUNDS = {scale: sqrt(log(2 / ALPHA) / (2 * size)) for scale, size in SIZES.items()}
REACH = np.arange(-2_000, 2_001)


def distribution(scale: float) -> np.ndarray:
    """P(z ≤ m) for every m within reach; floats err by less than 1e-12, far below the bounds."""
    q = exp(-1 / scale)
    return np.where(REACH < 0, q ** np.abs(REACH) / (1 + q), 1 - q ** (np.abs(REACH) + 1) / (1 + q))


@cache
def empirical(scale: Fraction) -> np.ndarray:
    draws = discrete_laplace(scale=scale, size=SIZES[scale])
    return np.cumsum(np.bincount(draws - REACH[0], minlength=len(REACH))) / len(draws)


@pytest.mark.parametrize("scale", SIZES, ids=str)
@pytest.mark.alpha(3 * ALPHA)
def test_draws_follow_the_law_and_not_one_with_a_scale_2_percent_off(scale: Fraction) -> None:
    found = empirical(scale)
    assert np.abs(found - distribution(float(scale))).max() <= BOUNDS[scale]
    for factor in (0.98, 1.02):
        assert np.abs(found - distribution(float(scale) * factor)).max() > BOUNDS[scale]


@pytest.mark.parametrize("scale", SIZES, ids=str)
def test_the_stated_power_is_real(scale: Fraction) -> None:
    for factor in (0.98, 1.02):
        apart = np.abs(distribution(float(scale)) - distribution(float(scale) * factor)).max()
        assert apart > 2 * BOUNDS[scale]


@pytest.mark.alpha(ALPHA)
def test_neighbouring_draws_are_independent_in_sign() -> None:
    """Hoeffding at α = 1e-9: finds a correlation of signs above 0.01."""
    signs = np.sign(discrete_laplace(scale=3, size=2_000_000))
    products = (signs[::2] * signs[1::2]).astype(float)
    assert abs(products.mean()) <= sqrt(2 * log(2 / ALPHA) / len(products))
