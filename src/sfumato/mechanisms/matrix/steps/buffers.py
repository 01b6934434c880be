"""Buffered linear Toeplitz: the square root with a few numbers of memory, for streams of any length.

c_0 = 1 and c_k = Σ_j ω_j·θ_j^(k−1). Within a block of steps the mix is worked out from its inputs; what came before
the block is held in one number a buffer. Each measurement is then rounded to the lattice; what this and the floats on
the way can move is bounded and charged.
Proof: docs/proofs/streams.md
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, isqrt
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.exact import natural, non_negative
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import moves

if TYPE_CHECKING:
    from sfumato.mechanisms.matrix.steps.inverse import Floats

__all__ = ["BLOCK", "Buffers", "buffers_for", "searched"]

BLOCK = 256
LONGEST = 2**18  # steps that a pattern is followed through one by one, with up to 8 buffers
FINEST = 2**64  # the largest denominator of a decay or a weight: who reads a certificate must not wait for ever
GUARD = 96
PRECISION = 40  # bits of decays and weights
FLOAT = Fraction(1, 2**53)  # the relative error of one float operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """Measure y_t = Σ_k c_k·x_(t−k) with c_0 = 1, c_k = Σ_j weights_j·decays_j^(k−1), in units of 2^−bits.

    ``largest`` bounds |x_t|: the rounding that :meth:`squared` counts is in proportion to it.

    >>> half = Buffers(horizon=600, decays=(Fraction(1, 2),), weights=(Fraction(1, 2),), bits=10, largest=1)
    >>> half.coefficients(4)
    (1024, 512, 256, 128)
    """

    KIND: ClassVar[str] = "strategy.buffers"
    VERSION: ClassVar[int] = 1
    horizon: int
    decays: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]
    bits: int
    largest: int

    def __post_init__(self) -> None:
        natural(self.horizon, "horizon", most=2**32)
        natural(self.bits, "bits", least=0, most=40)
        natural(self.largest, "largest", most=2**40)
        if not 1 <= len(self.decays) == len(self.weights) <= 16:
            raise InvalidInput("each buffer needs a decay and a weight, and there are 1 to 16; nothing was done.")
        for decay, weight in zip(self.decays, self.weights, strict=True):
            non_negative(weight, "weight")
            if non_negative(decay, "decay") >= 1:
                raise InvalidInput("a decay must be below 1; nothing was done.")
            if max(decay.denominator, weight.denominator) > FINEST:
                raise InvalidInput("decays and weights have denominators up to 2^64; nothing was done.")
        if sum(self.weights) > 1:
            raise InvalidInput("the weights add up to more than 1, so that the mix would rise; nothing was done.")
        if self.largest * sum(self.coefficients(min(BLOCK, self.horizon))) >= 2**52:
            raise InvalidInput("these bounds leave no room for exact sums; nothing was done. Use fewer bits.")

    def coefficients(self, count: int) -> tuple[int, ...]:
        """The first ``count`` coefficients, rounded up to the lattice: bounds on c_k that never rise."""
        return _rounded_up(self.decays, self.weights, self.bits, count)

    @property
    def slack(self) -> int:
        """How much further than Σ c_k·Δ two measurements can be apart by rounding: 2·(½ + ½ + floats), up."""
        return _slack(self.decays, self.weights, (1 << self.bits) * self.largest)

    def squared(self, pattern: Pattern) -> int:
        """A bound on Σ D_t² where a unit counts by at most 1 in each step of the pattern, with what rounding adds.

        >>> half = Buffers(horizon=2, decays=(Fraction(1, 2),), weights=(Fraction(1, 2),), bits=10, largest=1)
        >>> half.squared(Pattern(times=1, separation=1, change="added")) >= 1024**2 + 512**2
        True
        """
        linear = pattern.squares * self._linear(pattern)
        rounding = self.slack**2 * self.horizon * self._groups(pattern)
        return linear + rounding + 2 * (isqrt(linear * rounding) + 1)

    def absolute(self, pattern: Pattern) -> int:
        """A bound on Σ |D_t|: step by step, or for long streams ``times`` the sum of all coefficients there can be."""
        if self._short:
            summed = sum(moves(self.coefficients(self.horizon), pattern))
        else:
            whole = sum((w / (1 - d) for d, w in self._pairs), Fraction(1))
            summed = pattern.times * ceil(whole * (1 << self.bits))
        return pattern.sums * summed + self.slack * self.horizon * self._groups(pattern)

    @property
    def numbers(self) -> int:
        """How many numbers are released in all."""
        return self.horizon

    @property
    def _pairs(self) -> list[tuple[Fraction, Fraction]]:
        return list(zip(self.decays, self.weights, strict=True))

    @property
    def _short(self) -> bool:
        return self.horizon * max(8, len(self.decays)) <= 8 * LONGEST

    @staticmethod
    def _groups(pattern: Pattern) -> int:
        """In how many groups a unit can count: each of them is measured, and rounded, by itself."""
        return pattern.sums * pattern.times

    def _linear(self, pattern: Pattern) -> int:
        """A bound on ‖C·Δ‖² for units that are added: step by step, or for one step in closed form."""
        if pattern.times > 1 and not self._short:
            return pattern.times**2 * self._linear(replace(pattern, times=1))  # by the triangle inequality
        if pattern.times > 1:
            return sum(move * move for move in moves(self.coefficients(self.horizon), pattern))
        found = Fraction(1)
        for (d, w), (e, v) in product(self._pairs, self._pairs):
            found += w * v * (1 - _power_down(d * e, self.horizon - 1)) / (1 - d * e)
        return ceil(found * (1 << 2 * self.bits))


@lru_cache(maxsize=32)
def _slack(decays: tuple[Fraction, ...], weights: tuple[Fraction, ...], largest: int) -> int:
    size = sum((w / (1 - d) for d, w in zip(decays, weights, strict=True)), Fraction(1))
    floats = largest * size * (BLOCK + len(decays) + 16) * FLOAT
    return 2 + ceil(2 * floats)


@lru_cache(maxsize=8)
def _rounded_up(decays: tuple[Fraction, ...], weights: tuple[Fraction, ...], bits: int, count: int) -> tuple[int, ...]:
    powers, found = [1 << (bits + GUARD) for _ in decays], [1 << bits]
    ratios = [(decay.numerator, decay.denominator) for decay in decays]
    mixes = [(weight.numerator, weight.denominator) for weight in weights]
    for _ in range(1, count):
        mixed = sum(-(-top * power // bottom) for (top, bottom), power in zip(mixes, powers, strict=True))
        found.append(min(-(-mixed >> GUARD), found[-1]))
        powers = [-(-top * power // bottom) for (top, bottom), power in zip(ratios, powers, strict=True)]
    return tuple(found)


def _power_down(base: Fraction, exponent: int, bits: int = 192) -> Fraction:
    """base^exponent for 0 ≤ base < 1, rounded down, by squaring in fixed point."""
    unit = 1 << bits
    result, square = unit, int(base * unit)
    while exponent:
        if exponent & 1:
            result = result * square >> bits
        square = square * square >> bits
        exponent >>= 1
    return Fraction(result, unit)


@lru_cache(maxsize=32)
def searched(horizon: int, buffers: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Decays and weights of small error for a horizon; privacy does not rest on how they were found.

    c_k = (1/π)·∫ e^(−k·s)/√(e^s − 1) ds is the square root; the integral is taken at ``buffers`` points of
    ln s, of which a search moves the first, the last, and two factors.
    """
    import numpy as np
    from scipy.optimize import minimize

    from sfumato.mechanisms.matrix.steps.inverse import mean_error

    def parts(point: "Floats") -> "tuple[Floats, Floats]":
        first, last, end, all_ = point
        s = np.exp(np.linspace(first, last, buffers))
        wide = (last - first) / max(buffers - 1, 1) or 1.0
        weights = wide / np.pi * s * np.exp(all_ - s) / np.sqrt(np.expm1(s))
        weights[0] *= np.exp(end)
        return np.exp(-s), weights

    found = minimize(
        lambda point: mean_error(*parts(point), horizon),
        np.array([-np.log(max(horizon, 4)), 1.2, 0.3, 0.0]),
        method="Nelder-Mead",
        options={"maxiter": 300, "xatol": 1e-3, "fatol": 1e-6},
    )
    decays, weights = parts(found.x)
    unit = 2**PRECISION
    return (
        tuple(Fraction(min(round(float(one) * unit), unit - 1), unit) for one in decays),
        tuple(Fraction(round(float(one) * unit), unit) for one in weights),
    )


def buffers_for(horizon: int) -> int:
    """How many buffers come within a hair of what more of them would give.

    >>> buffers_for(1024), buffers_for(2**16), buffers_for(10**7)
    (4, 6, 8)
    """
    return min(8, max(2, (max(horizon, 2) - 1).bit_length() * 3 // 8 + (horizon <= 1024)))
