"""The rounded Gaussian: matched exactly with short words, and on fresh randomness with a broken twin."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from sfumato import errors
from sfumato.core import enclosures
from sfumato.laws import RoundedGaussian
from sfumato.mechanisms import Gaussian
from sfumato.noise import SystemWords, rounded_gaussian
from sfumato.noise.rounding import _accepted, _below, _exp

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


class ShortWords:
    """Words of few bits from the system, so that refining is the rule."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._source = SystemWords()

    def fill(self, out: np.ndarray) -> None:
        self._source.fill(out)
        out >>= np.uint64(64 - self.width)


@pytest.mark.few(2)
@pytest.mark.parametrize("step", [0, 1, 5])
@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1, 200)])
def test_with_short_words_the_acceptance_is_bracketed_by_its_definition(step: int, rate: Fraction) -> None:
    """Every pair of 5-bit prefixes: what is decided without refining agrees with both ends of the true interval."""
    width = 5
    words = ShortWords(width)
    for inside in range(1 << width):
        for place in range(0, 1 << width, 3):
            low, high = Fraction(inside, 1 << width), Fraction(inside + 1, 1 << width)
            least = enclosures.exp(-rate * high * (2 * step + high)).low
            most = enclosures.exp(-rate * low * (2 * step + low)).high
            answer = _below(step, inside, place, rate, words)
            if Fraction(place + 1, 1 << width) <= least:
                assert answer
            if Fraction(place, 1 << width) >= most:
                assert not answer
            vector = _accepted(
                np.array([step]), np.array([inside], np.uint64), np.array([place], np.uint64), rate, words
            )[0]
            if Fraction(place + 1, 1 << width) <= least or Fraction(place, 1 << width) >= most:
                assert vector == answer


@pytest.mark.alpha(ALPHA)
def test_short_words_give_the_same_law() -> None:
    """All of it on 8-bit acceptance words: refining decides often, and the law must not show it (α = 1e-9, DKW)."""
    from sfumato.noise.rounding import sample_rounded_gaussian  # the alias table itself needs 64-bit words

    steps = 20_000
    rate = Fraction(1, 8)
    words = ShortWords(8)
    taken = np.zeros(steps, dtype=bool)
    inside, place = np.empty(steps, np.uint64), np.empty(steps, np.uint64)
    words.fill(inside)
    words.fill(place)
    taken = _accepted(np.full(steps, 2), inside, place, rate, words)
    truth = float(np.mean(np.exp(-float(rate) * (grid := (np.arange(10**6) + 0.5) / 10**6) * (4 + grid))))
    assert abs(taken.mean() - truth) < math.sqrt(math.log(2 / ALPHA) / (2 * steps))
    assert sample_rounded_gaussian(Fraction(3), 3, SystemWords()).shape == (3,)


def test_the_polynomial_is_within_its_stated_error() -> None:
    x = np.linspace(0, 4, 200_001)
    assert np.abs(_exp(x.copy()) - np.exp(-x)).max() < 2.0**-32


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
