"""The discrete Gaussian's own loss: exact tails over all integer shifts, or a continuous Gaussian that covers it.

An integer shift d = (d₁, …, d_m) makes the loss (2W − n)/(2σ²) with n = Σdᵢ² and W = Σdᵢxᵢ, so that all there is to
know is the law of Σdᵢzᵢ for each way to write a whole number n ≤ l2² as a sum of squares. Proof: docs/proofs/pld.md
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.accounting.floats import UNIT, Array
from sfumato.core import enclosures

__all__ = ["Smooth", "Tail", "enumerable", "profile", "smoothed", "tails"]

MOST_SQUARES = 64
MOST_WORK = 20_000  # patterns times σ: about a second
REACH = 12  # in standard deviations; what lies beyond has probability below 2e^(−72) < 1.1e-31
BEYOND = 2e-29  # for the at most 64 places that are cut off, and their sum
TINY = 2.0**-40  # of a difference of two tails, and of the loss at which they are taken
FACTOR = 256  # in units: e^(−x) is off by 8 + 2x, x ≤ 72 before it falls under BEYOND, and it is divided by a sum


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tail:
    """P(Σdᵢzᵢ ≥ k) for k = −reach … reach + 1, for one pattern of shifts with n = Σdᵢ², to ``rounding`` relative."""

    squared: int
    reach: int
    rounding: float
    above: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Smooth:
    """δ(ε) ≤ (1 + excess)·δ_μ(ε − shift), with δ_μ that of the continuous Gaussian at μ² = mu_squared."""

    mu_squared: Fraction
    shift: Fraction
    excess: Fraction


def enumerable(squared: int, sigma_squared: Fraction) -> bool:
    """Whether all patterns of shifts can be gone through in about a second."""
    if squared > MOST_SQUARES or sigma_squared > 10**6:
        return False
    return _patterns(squared) * (1 + math.sqrt(sigma_squared)) <= MOST_WORK


@lru_cache(maxsize=64)
def _patterns(squared: int) -> int:
    """In how many ways the numbers up to ``squared`` are sums of squares, by Euler's product."""
    ways = [1] + [0] * squared
    for root in range(1, math.isqrt(squared) + 1):
        for total in range(root * root, squared + 1):
            ways[total] += ways[total - root * root]
    return sum(ways) - 1


@lru_cache(maxsize=8)
def tails(squared: int, sigma_squared: Fraction) -> tuple[Tail, ...]:
    """The tails of all patterns.

    >>> [tail.squared for tail in tails(2, Fraction(4))]
    [1, 2]
    """
    sigma = math.sqrt(sigma_squared)
    reach = math.ceil(REACH * sigma) + 1
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    noise = np.exp(-(places**2) / (2 * float(sigma_squared)))
    noise /= noise.sum()
    root = math.isqrt(squared)
    return tuple(_grown(np.ones(1), 0, squared, root, noise, sigma))


def _grown(law: Array, used: int, squared: int, largest: int, noise: Array, sigma: float) -> Iterator[Tail]:
    """All patterns that add shifts of at most ``largest`` to those already in ``law``."""
    for shift in range(largest, 0, -1):
        total = used + shift * shift
        if total > squared:
            continue
        spread = np.zeros((len(noise) - 1) * shift + 1)
        spread[::shift] = noise
        grown = np.convolve(law, spread)
        excess = (len(grown) - 1) // 2 - (math.ceil(REACH * sigma * math.sqrt(total)) + 1)
        if excess > 0:
            grown = grown[excess:-excess]
        reach = (len(grown) - 1) // 2
        above = np.append(np.cumsum(grown[::-1])[::-1], 0.0)
        rounding = TINY + (FACTOR * total + 2 * (2 + used) * len(grown)) * UNIT
        yield Tail(squared=total, reach=reach, rounding=rounding, above=above)
        yield from _grown(grown, total, squared, shift, noise, sigma)


def profile(patterns: tuple[Tail, ...], sigma_squared: float, epsilon: Array) -> Array:
    """The largest δ over the patterns: P(W ≥ k − n) − e^ε P(W ≥ k), the loss exceeding ε from place k on."""
    worst = -np.expm1(np.minimum(epsilon, 0.0))
    factor = np.exp(np.minimum(epsilon, 700.0))
    for tail in patterns:
        first = np.floor(epsilon * sigma_squared + tail.squared / 2) + 1
        inside, outside = _at(tail, first - tail.squared), _at(tail, first)
        np.maximum(worst, inside * (1 + tail.rounding) + BEYOND - factor * outside * (1 - tail.rounding), out=worst)
    return worst


def _at(tail: Tail, place: Array) -> Array:
    index = np.clip(place + tail.reach, 0, len(tail.above) - 1).astype(np.int64)
    found: Array = tail.above[index]
    return found


def smoothed(squared: int, sigma_squared: Fraction) -> Smooth | None:
    """A continuous Gaussian with variance σ² − τ², rounded to the lattice, is the discrete one up to a tiny factor.

    With η = 2Σ e^(−2π²τ²k²) the factor is at most ((1 + η)/(1 − η)) for each of at most ``squared`` shifted places.
    None where σ² is too small for that.

    >>> cover = smoothed(100, Fraction(10_000))
    >>> float(cover.mu_squared / Fraction(1, 100)) < 1.001, float(cover.shift) < 1e-12
    (True, True)
    """
    tau_squared = Fraction(math.ceil(16 * (math.log(squared) + 40) / 19.7), 16)
    if sigma_squared <= 4 * tau_squared:
        return None
    pi = enclosures.pi().low
    ripple = 3 * enclosures.exp(-2 * pi * pi * tau_squared).high
    excess = 3 * ripple * squared
    return Smooth(mu_squared=squared / (sigma_squared - tau_squared), shift=2 * excess, excess=2 * excess)
