"""The laws that releases draw, attacked through their draws: distribution and bits, few and many at a time, and twins.

With n = 480,000 draws the empirical distribution strays from the true one by more than 0.0050 with probability at most
α = 1e-10 (Dvoretzky, Kiefer, Wolfowitz), and the share of draws with a certain bit by more than 0.0054 (Hoeffding).
A scale 5% off moves the distribution by at least 0.0089 where a fifth of it lies beyond, and a last bit that is set by
force once in 25 times moves its share by at least 0.019: both are missed with probability below 1e-10 (Chernoff).
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from sfumato import noise
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.noise import SystemWords
from sfumato.noise.sampler import ALIKE

N = 480_000
ALPHA = 1e-10
BAND = math.sqrt(math.log(2 / ALPHA) / (2 * N))
BITS = 40  # at most so many are looked at together, and α is shared among them
BIT_BAND = math.sqrt(math.log(2 * BITS / ALPHA) / (2 * N))

Array = np.ndarray[tuple[int], np.dtype[np.int64]]
Sampled = Callable[[Fraction, int], Array]


def laplace_cdf(k: np.ndarray, scale: float) -> np.ndarray:
    q, size = math.exp(-1 / scale), np.abs(k)
    return np.where(k >= 0, 1 - np.exp(-(size + 1) / scale) / (1 + q), np.exp(-size / scale) / (1 + q))


def rounded_cdf(k: np.ndarray, sigma: float) -> np.ndarray:
    return ndtr((k + 0.5) / sigma)


LAWS: dict[str, tuple[Sampled, Callable[[np.ndarray, float], np.ndarray]]] = {
    "laplace": (lambda scale, size: noise.discrete_laplace(scale=scale, size=size), laplace_cdf),
    "rounded": (lambda scale, size: noise.rounded_gaussian(sigma=scale, size=size), rounded_cdf),
}
SCALES = [Fraction(1, 2), Fraction(12), Fraction(25), Fraction(10**4), Fraction(2**40)]
WAYS = {"few": ALIKE, "many": N}


def drawn(law: str, scale: Fraction, way: str) -> Array:
    at_once = WAYS[way]
    return np.concatenate([LAWS[law][0](scale, at_once) for _ in range(N // at_once)])


def strays(law: str, scale: Fraction, draws: Array) -> bool:
    values, counts = np.unique(draws, return_counts=True)
    below = np.cumsum(counts) / draws.size
    stated = LAWS[law][1](values.astype(np.float64), float(scale))
    before = LAWS[law][1](values.astype(np.float64) - 1, float(scale))
    earlier = np.concatenate([[0.0], below[:-1]])
    return bool(max(np.abs(below - stated).max(), np.abs(earlier - before).max()) > BAND)


def odd(law: str, scale: Fraction, bit: int) -> float:
    """The probability that this bit of a draw is set: a half, but for small scales the sum of its numbers."""
    if scale > 1000:
        return 0.5  # to less than 1e-8: the law is level over so few numbers
    reach = np.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + 1)
    at = LAWS[law][1](reach.astype(np.float64), float(scale)) - LAWS[law][1](reach - 1.0, float(scale))
    return float(at[(reach >> bit) & 1 == 1].sum())


def bits_off(law: str, scale: Fraction, draws: Array, bits: range) -> list[int]:
    """The bits that are set too often or too rarely; those of two's complement."""
    return [bit for bit in bits if abs(float((draws >> bit & 1).mean()) - odd(law, scale, bit)) > BIT_BAND]


CASES = [(law, scale, way) for law in LAWS for scale in SCALES for way in WAYS]


@pytest.mark.parametrize(("law", "scale", "way"), CASES, ids=str)
@pytest.mark.alpha(2 * ALPHA)
def test_draws_follow_the_law_and_every_low_bit_is_fair(law: str, scale: Fraction, way: str) -> None:
    draws = drawn(law, scale, way)
    assert not strays(law, scale, draws)
    assert bits_off(law, scale, draws, range(33) if scale == 2**40 else range(2)) == []


@pytest.mark.few(6)
@pytest.mark.parametrize("factor", [Fraction(95, 100), Fraction(105, 100)], ids=["5% less", "5% more"])
@pytest.mark.parametrize(("law", "scale", "way"), CASES, ids=str)
@pytest.mark.alpha(ALPHA)
def test_a_scale_five_percent_off_is_caught(law: str, scale: Fraction, way: str, factor: Fraction) -> None:
    assert strays(law, scale, drawn(law, scale * factor, way))


@pytest.mark.parametrize(("law", "scale"), [(law, scale) for law in LAWS for scale in SCALES], ids=str)
@pytest.mark.alpha(ALPHA)
def test_a_last_bit_that_is_not_fair_is_caught(law: str, scale: Fraction) -> None:
    draws = drawn(law, scale, "many")
    forced = np.random.default_rng().random(N) < 1 / 25  # of the draws, these lose their choice of the last bit
    assert bits_off(law, scale, draws | forced, range(1)) == [0]


@pytest.mark.few(2)
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(95, 100)], ids=["right", "5% less"])
@pytest.mark.parametrize("scale", [Fraction(12), Fraction(10**4)], ids=str)
@pytest.mark.alpha(4 * ALPHA)
def test_mechanisms_are_attacked_through_what_they_release(scale: Fraction, factor: Fraction) -> None:
    """Zeros go in, noise comes out: many numbers at a time, as in a table, and few, as in a question."""
    for law, mechanism in (
        ("laplace", Laplace(scale=scale * factor, l1=Fraction(1))),
        ("rounded", Gaussian(sigma=scale * factor, l2_squared=Fraction(1))),
    ):
        words = SystemWords()
        for size in (N, 100):
            out = [mechanism.add_noise([0] * size, words) for _ in range(N // size)]
            assert strays(law, scale, np.array(out, dtype=np.int64).reshape(-1)) is (factor != 1)
