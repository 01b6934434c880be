"""Laws that fall off from 0 on both sides, or on one, cut into columns of neighbouring numbers.

A law is P(z) = K·exp(−linear·t − quadratic·t²) at the distance t = |z| from 0 for whole numbers z, or that density for
real numbers T at t = |T|, of which the nearest whole number is kept. K is a real number: what depends on it is enclosed
between rationals, as narrowly as asked. Proof: docs/proofs/exact_samplers.md
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import ceil, isqrt

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.noise.uniform import SPARE, fixed_exp

__all__ = ["ColumnLaw", "NoiseColumns"]

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLaw:
    """A law by its exponent, of which one part is 0; ``rounded``: the nearest whole number to a real one.

    >>> ColumnLaw(linear=Fraction(1, 2), quadratic=Fraction(0), two_sided=True).exponent(3)
    Fraction(3, 2)
    """

    linear: Fraction
    quadratic: Fraction
    two_sided: bool
    rounded: bool = False

    def exponent(self, t: Fraction | int) -> Fraction:
        """What −log of the weight at distance t is; the weight at 0 is 1."""
        return self.linear * t + self.quadratic * (t * t)

    def place(self, finest: int) -> int:
        """The largest width of columns, as a power of two, of which ``finest`` fit into the scale.

        A law on whole numbers has no columns narrower than one of them.
        """
        ratio = 1 / (2 * self.quadratic * finest**2) if self.quadratic else 1 / (self.linear * finest)
        e = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        e -= ratio < Fraction(2) ** e  # 2^e ≤ ratio < 2^(e + 1)
        place = e // 2 if self.quadratic else e
        return place if self.rounded else max(place, 0)

    def enough(self, place: int, reach: int) -> int:
        """How many columns of this width a side take the exponent to ``reach``, or one more."""
        linear, quadratic = self.linear * Fraction(2) ** place, self.quadratic * Fraction(4) ** place
        return isqrt(ceil(reach / quadratic)) + 1 if quadratic else ceil(reach / linear)

    def peak(self, bits: int) -> Enclosure:
        """K, with a width of at most 2^−bits of its value.

        For a rounded law √(quadratic/π); for whole numbers 1 over the sum of all weights: a geometric series, or a
        theta function, by its own series or by that of its Fourier transform, whichever falls faster.

        >>> ColumnLaw(linear=Fraction(0), quadratic=Fraction(1, 2), two_sided=True, rounded=True).peak(60)
        Enclosure(about 0.398942280401433, width < 2**-93)
        """
        fine = bits + SPARE
        if not self.quadratic:
            fine += ceil(1 / self.linear).bit_length()  # 1 − q is as small as the scale is large
            q = _around(self.linear, fine)
            return (1 - q) / (1 + q) if self.two_sided else 1 - q
        pi = enclosures.pi(bits=fine)
        if self.rounded:
            return enclosures.monotone(enclosures.sqrt, self.quadratic / pi, bits=fine)
        if self.quadratic > 1:
            return 1 / _theta(Enclosure(self.quadratic, self.quadratic), fine)
        root = enclosures.monotone(enclosures.sqrt, self.quadratic / pi, bits=fine)
        return root / _theta(pi * pi / self.quadratic, fine)


def _around(x: Fraction, bits: int) -> Enclosure:
    low, high = fixed_exp(x, bits)
    return Enclosure(Fraction(low, 1 << bits), Fraction(high, 1 << bits))


def _theta(rate: Enclosure, bits: int) -> Enclosure:
    """1 + 2·Σ exp(−rate·k²), k = 1, 2, …, for a rate above 1: what follows a term is less than the term itself."""
    total = Enclosure(Fraction(1), Fraction(1))
    for k in count(1):
        term = Enclosure(_around(rate.high * k**2, bits).low, _around(rate.low * k**2, bits).high)
        if term.high <= Fraction(4, 1 << bits):
            return total + Enclosure(Fraction(0), 4 * term.high)
        total += 2 * term
    raise AssertionError("the terms have no end")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseColumns:
    """The columns of a law, 2^place wide, by their distance from 0; in pairs where the law has two sides.

    A column begins at its edge and runs away from 0; a number or a real number of it is ``edge + along`` away from 0,
    0 ≤ along < 2^place. Columns of whole numbers hold ``start ^ low`` for the whole part ``low`` of ``along``. Those of
    a rounded law are wide enough to hold whole cells [z − ½, z + ½), or so narrow that a cell holds whole columns.

    >>> law = ColumnLaw(linear=Fraction(1), quadratic=Fraction(0), two_sided=True)
    >>> columns = NoiseColumns(law=law, place=2)
    >>> [columns.start(j) for j in range(4)], [int(columns.edge(j)) for j in range(4)]
    ([0, -1, 4, -5], [0, 1, 4, 5])
    """

    law: ColumnLaw
    place: int

    @property
    def sides(self) -> int:
        """How many columns are equally far from 0."""
        return 1 + self.law.two_sided

    @property
    def narrow(self) -> bool:
        """Whether columns are parts of cells."""
        return self.place < 0

    @property
    def shifts(self) -> tuple[Fraction, ...]:
        """By how much the edges of each side differ from multiples of the width."""
        if self.law.rounded:
            return (Fraction(0), Fraction(0)) if self.narrow else (-_HALF, _HALF)
        return (Fraction(0), Fraction(1))[: self.sides]

    def edge(self, column: int) -> Fraction:
        """Where a column begins; −½ for the one that holds 0 and is as wide as a cell or wider."""
        rank, side = divmod(column, self.sides)
        return rank * Fraction(2) ** self.place + self.shifts[side]

    def start(self, column: int) -> int:
        """The number of the column that is nearest to 0."""
        rank, side = divmod(column, self.sides)
        if self.narrow:  # half-way points are edges of half-steps
            size = ((rank >> (-self.place - 1)) + 1) >> 1
            return -size if side else size
        return -side ^ (rank << self.place)

    def share(self, t: Fraction, bits: int) -> Enclosure:
        """What a column would get of the whole law by the weight at this distance: K·2^place·exp(−exponent(t))."""
        return _peak(self, bits) * _around(self.law.exponent(t), bits)


@lru_cache(maxsize=256)
def _peak(columns: NoiseColumns, bits: int) -> Enclosure:
    """A fact of the law alone: what depends on a draw is not kept."""
    return columns.law.peak(bits) * Fraction(2) ** columns.place
