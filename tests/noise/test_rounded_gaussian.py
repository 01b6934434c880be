"""The rounded Gaussian: matched exactly with short words, and on fresh randomness with a broken twin."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from sfumato import errors
from sfumato.laws import RoundedGaussian
from sfumato.mechanisms import Gaussian
from sfumato.noise import SystemWords, rounded_gaussian
from sfumato.noise.columns import ColumnLaw
from sfumato.noise.sampler import Sampler

DRAWS = 480_000
ALPHA = 1e-9
LIMIT = math.sqrt(math.log(2 / ALPHA) / (2 * DRAWS))  # Dvoretzky-Kiefer-Wolfowitz; a 5% wrong σ is found as surely


def distance(draws: np.ndarray, sigma: float) -> float:
    """The largest difference between the empirical and the stated distribution function."""
    values, counts = np.unique(draws, return_counts=True)
    empirical = np.cumsum(counts) / len(draws)
    stated = ndtr((values + 0.5) / sigma)
    before = ndtr((values - 0.5) / sigma)
    return float(max(np.abs(empirical - stated).max(), np.abs(np.concatenate([[0], empirical[:-1]]) - before).max()))


@pytest.mark.claim("S2-04")
@pytest.mark.parametrize("sigma", ["1/4", "1", "37/10", "1000", "1099511627776"])
@pytest.mark.alpha(3 * ALPHA)
def test_fresh_draws_follow_the_law_and_a_wrong_scale_would_be_seen(sigma: str) -> None:
    scale = float(Fraction(sigma))
    draws = rounded_gaussian(sigma=sigma, size=DRAWS)
    assert distance(draws, scale) < LIMIT
    assert abs(draws.mean()) < 6.5 * math.sqrt((scale**2 + 0.25) / DRAWS)  # the moments of N(0, σ²), rounded
    if scale >= 1:
        assert draws.astype(float).var() == pytest.approx(scale**2 + 1 / 12, rel=6.5 * math.sqrt(2 / DRAWS))
    if scale >= 1:
        assert distance(rounded_gaussian(sigma=Fraction(sigma) * 95 / 100, size=DRAWS), scale) > LIMIT


@pytest.mark.parametrize("sigma", ["1/1000", "1/7", "1/2", "1", "7/2", "12", "100"])
def test_every_column_lies_in_the_cell_of_its_number(sigma: str) -> None:
    """Half-way points between whole numbers are edges of columns, so that a column decides the rounding."""
    law = ColumnLaw(linear=Fraction(0), quadratic=1 / (2 * Fraction(sigma) ** 2), two_sided=True, rounded=True)
    columns = Sampler(law).few.columns
    width, half = Fraction(2) ** columns.place, Fraction(1, 2)
    for j in range(600):
        near, number, side = columns.edge(j), columns.start(j), -1 if j % 2 else 1
        for along in (Fraction(0), width / 3, width * 2 / 3, width * 9999 / 10_000):
            low = int(along) if columns.place > 0 else 0
            assert abs(side * (near + along) - (number ^ low)) <= half
    ends = [(columns.edge(j), j % 2) for j in range(600)]
    assert {b[0] - a[0] for a, b in zip(ends[::2], ends[2::2], strict=False)} == {width}
    assert columns.edge(0) == -columns.edge(1)  # the two sides meet: nothing is left out, nothing counted twice


@pytest.mark.alpha(ALPHA)
def test_the_mechanism_adds_it_and_holds_sums_at_64_bits() -> None:
    mechanism = Gaussian.calibrated(l2=1, epsilon=1, delta=1e-5)
    noisy = mechanism.add_noise([0, 2**63 - 1, 5], SystemWords())
    assert len(noisy) == 3
    assert abs(noisy[0]) < 200
    assert noisy[1] <= 2**63 - 1
    with pytest.raises(errors.InvalidInput, match="whole numbers"):
        mechanism.add_noise([0.5], SystemWords())  # type: ignore[list-item]
    with pytest.raises(errors.InvalidInput, match="coarser lattice"):
        rounded_gaussian(sigma=2**60, size=1)
    sample = np.abs(rounded_gaussian(sigma=mechanism.sigma, size=200_000))
    law = RoundedGaussian(sigma=mechanism.sigma)
    assert (sample > law.margin(0.95)).sum() <= binom.isf(ALPHA, 200_000, 0.05)
