"""The distribution of one number of the noise with cubes as level sets, and of the largest of several."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import ClassVar

from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.laws.margins import WholeNumberLaw
from sfumato.laws.tails import exponential

__all__ = ["Cube"]

MOST_BITS = 1 << 14  # of a q so small that its bounds are 0 and 2^−MOST_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cube(WholeNumberLaw):
    """One of ``dimensions`` whole numbers z with P(z) ∝ exp(−max|z_i|/scale): they are dependent, all alike.

    Sums Σ_r p(r)·q^r over a polynomial p are Σ_i Δ^i p(0)·q^i/(1 − q)^(i+1): finite, and without cancellation where no
    difference is negative. So tail and moments are rational in q = exp(−1/scale). Proof: docs/proofs/k_norm.md

    >>> law = Cube(dimensions=4, scale=Fraction(2))
    >>> law.margin(0.95), law.margin(0.95, numbers=4), round(float(law.variance), 3)
    (12, 15, 39.917)
    """

    KIND: ClassVar[str] = "law.cube"
    VERSION: ClassVar[int] = 1
    dimensions: int
    scale: Fraction

    def __post_init__(self) -> None:
        natural(self.dimensions, "dimensions", most=1024)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @property
    def variance(self) -> Fraction:
        """The mean of r(r + 1)/3, the variance within a cube of radius r; rounded up."""
        return self._mean(lambda r: r * (r + 1) * (2 * r + 1) ** self.dimensions, 2).high / 3

    @property
    def mean_absolute_error(self) -> Fraction:
        """The mean of r(r + 1)/(2r + 1), the expected size within a cube of radius r; rounded up."""
        return self._mean(lambda r: r * (r + 1) * (2 * r + 1) ** (self.dimensions - 1), 1).high

    def tail(self, size: int) -> Enclosure:
        """P(|z₁| > size)."""
        return self.largest_tail(size, 1)

    def largest_tail(self, size: int, numbers: int) -> Enclosure:
        """P(|z_i| > size at some of ``numbers`` places): in a cube of radius r, 1 − ((2·size + 1)/(2r + 1))^numbers."""
        within = 2 * natural(size, "size", least=0) + 1
        if natural(numbers, "numbers") > self.dimensions:
            raise InvalidInput(f"this noise has {self.dimensions} numbers and not {numbers}; nothing was done.")
        rest = self.dimensions - numbers
        beyond = self._mean(
            lambda r: ((2 * r + within + 2) ** numbers - within**numbers) * (2 * r + within + 2) ** rest, 0
        )
        far = exponential((size + 1) / self.scale)
        return Enclosure(far.low * beyond.low, min(Fraction(1), far.high * beyond.high))

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` errors of one draw all lie within ±margin with at least this confidence."""
        return _Largest(self, numbers).covers(margin, confidence)

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        return _Largest(self, numbers).margin(confidence)

    def _mean(self, polynomial: Callable[[int], int], more: int) -> Enclosure:
        """Enclose Σ_r p(r)·q^r over Σ_r (2r + 1)^d·q^r, for p of degree d + ``more`` without negative differences.

        Both are 1/(1 − q) times a polynomial in u = q/(1 − q).
        """
        rate = 1 / self.scale
        top = _differences([polynomial(r) for r in range(self.dimensions + more + 1)])
        bottom = _volumes(self.dimensions)
        bits = 160 + self.scale.numerator.bit_length() + min(2 * ceil(rate), MOST_BITS)
        q = exponential(rate, bits=bits)
        least, most = (end / (1 - end) for end in (q.low, q.high))
        low, high = (least.numerator << bits) // least.denominator, -((-most.numerator << bits) // most.denominator)
        return Enclosure(
            _ratio(_value(top, low, bits), _value(bottom, high, bits) << bits * more),
            -_ratio(-_value(top, high, bits), _value(bottom, low, bits) << bits * more),
        )


@dataclass(frozen=True, slots=True)
class _Largest(WholeNumberLaw):
    """The largest size among several numbers of one draw."""

    law: Cube
    numbers: int

    @property
    def variance(self) -> Fraction:
        return self.law.variance  # of one: a search begins there

    def tail(self, size: int) -> Enclosure:
        return self.law.largest_tail(size, self.numbers)


def _differences(values: list[int]) -> list[int]:
    """Δ^i p(0) for i = 0, 1, …, from p(0), p(1), …"""
    found = []
    while values:
        found.append(values[0])
        values = [after - before for before, after in pairwise(values)]
    return found


@lru_cache(maxsize=8)
def _volumes(dimensions: int) -> list[int]:
    """The differences of the numbers of points in cubes of radius 0, 1, …"""
    return _differences([(2 * r + 1) ** dimensions for r in range(dimensions + 1)])


def _value(coefficients: list[int], place: int, bits: int) -> int:
    """Σ c_i·u^i at u = place·2^−bits, times 2^(bits·degree), exactly."""
    total, shift = 0, 0
    for coefficient in reversed(coefficients):
        total = total * place + (coefficient << shift)
        shift += bits
    return total


def _ratio(top: int, bottom: int) -> Fraction:
    """A quotient to 256 digits, rounded down: the numbers of a high dimension are too long for a common divisor."""
    shift = 256 + bottom.bit_length() - top.bit_length()
    return Fraction((top << shift) // bottom, 1 << shift) if shift >= 0 else Fraction(top // bottom)
