"""Laws P(z) ∝ exp(−linear·|z| − quadratic·z²) on whole numbers, cut into columns of 2^shift neighbouring ones.

A column is drawn in proportion to the weight of its likeliest number; a number of it is then proposed uniformly and
accepted with the ratio of the two weights. With shift = 0 a column is one number, always accepted.
Weights are real numbers: here they are whole-number enclosures in units of 2^−bits, for any number of bits.
Proof: docs/proofs/exact_samplers.md
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count

from sfumato.noise.alias import AliasTable
from sfumato.noise.uniform import SPARE, Uniform, fixed_exp
from sfumato.noise.words import Words

__all__ = ["ColumnLaw", "NoiseColumns"]

_constant = lru_cache(maxsize=256)(fixed_exp)  # for exponents of a law alone: those of a draw must not be kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLaw:
    """P(z) ∝ exp(−linear·|z| − quadratic·z²) for all whole numbers z, or for z ≥ 0 alone.

    >>> ColumnLaw(linear=Fraction(1, 2), quadratic=Fraction(0), two_sided=True).exponent(-3)
    Fraction(3, 2)
    """

    linear: Fraction
    quadratic: Fraction
    two_sided: bool

    def exponent(self, z: int) -> Fraction:
        """What −log of the weight of z is; the weight of 0 is 1."""
        return self.linear * abs(z) + self.quadratic * (z * z)

    def columns(self, *, most: int, reach: int) -> "NoiseColumns":
        """Cut the law so finely that ``most`` columns a side take the exponent to ``reach``, and no finer than 1."""
        shift = 0
        while self.exponent(most << shift) < reach:
            shift += 1
        return NoiseColumns(law=self, shift=shift)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseColumns:
    """The columns of a law by falling weight: rank 0 starts at 0, rank 1 at −1, then 2^shift, −1 − 2^shift, and so on.

    >>> law = ColumnLaw(linear=Fraction(1), quadratic=Fraction(0), two_sided=True)
    >>> [NoiseColumns(law=law, shift=2).start(rank) for rank in range(4)]
    [0, -1, 4, -5]
    """

    law: ColumnLaw
    shift: int

    def start(self, rank: int) -> int:
        """The number of the column that is nearest to 0; number ``low`` of it is ``start ^ low``."""
        if not self.law.two_sided:
            return rank << self.shift
        return -(rank & 1) ^ (rank >> 1 << self.shift)

    def refusal(self, start: int, low: int) -> Fraction:
        """The x for which number ``low`` of the column at ``start`` is accepted with probability exp(−x)."""
        return low * (self.law.linear + self.law.quadratic * (2 * abs(start) + low))

    def weights(self, bits: int) -> Iterator[tuple[int, int]]:
        """Enclose the weights exp(−exponent(start)) by rank, without end."""
        if not self.law.two_sided:
            yield from self._side(0, bits)
        for pair in zip(self._side(0, bits), self._side(1, bits), strict=True):
            yield from pair

    def total(self, bits: int) -> tuple[int, int]:
        """Enclose the sum of all weights."""
        sides = [self._side_total(first, bits) for first in range(1 + self.law.two_sided)]
        return sum(low for low, _ in sides), sum(high for _, high in sides)

    def table(self, *, width: int, bits: int = 192) -> AliasTable:
        """Give each column at most its share of the 2^width words, rounded down from the enclosures."""
        most, units = self.total(bits)[1], []
        for low, _ in self.weights(bits):
            share = (low << width) // most
            if not share:
                break
            units.append(share)
        return AliasTable.of(units, width=width)

    def residual(self, units: dict[int, int], words: Words) -> int:
        """Draw a rank from what the words of a table leave over, where ``units`` counts its words by rank.

        Rank r is left with 2^width·P(r) − units[r] ≥ 0, and all ranks together with a whole number of units. The
        point of that sum at a uniform place is sought with ever finer enclosures.
        """
        where = Uniform(words)
        while True:
            where.refine()
            rank = self._found(where, units, words.width)
            if rank is not None:
                return rank

    def _found(self, where: Uniform, units: dict[int, int], width: int) -> int | None:
        bits = where.bits + width + 2 * SPARE
        least, most = self.total(bits)
        left = (1 << width) - sum(n for rank, n in units.items() if rank >= 0)
        below, above = where.prefix * left, (where.prefix + 1) * left  # the place, in units of 2^−where.bits
        low = high = given = 0
        for rank, (down, up) in enumerate(self.weights(bits)):
            low, high, given = low + down, high + up, given + units.get(rank, 0)
            if above * most <= ((low << width) - given * most) << where.bits:
                return rank
            if below * least < ((high << width) - given * least) << where.bits:
                return None
        raise AssertionError("the weights have no end")

    def _side(self, first: int, bits: int) -> Iterator[tuple[int, int]]:
        """Enclose exp(−exponent(first + i·2^shift)), i = 0, 1, …: each is the last times a ratio, which shrinks too."""
        law, step = self.law, 1 << self.shift
        low, high = _constant(law.exponent(first), bits)
        ratio_low, ratio_high = _constant(law.exponent(first + step) - law.exponent(first), bits)
        bend_low, bend_high = _constant(2 * law.quadratic * step * step, bits)
        for _ in count():
            yield low, high
            low, high = low * ratio_low >> bits, -(-high * ratio_high >> bits)
            if law.quadratic:
                ratio_low, ratio_high = ratio_low * bend_low >> bits, -(-ratio_high * bend_high >> bits)

    def _side_total(self, first: int, bits: int) -> tuple[int, int]:
        """Sum a side: to its end by the geometric series where the ratio is constant, else until nothing is left."""
        law, step, one = self.law, 1 << self.shift, 1 << bits
        ratio_low, ratio_high = _constant(law.exponent(first + step) - law.exponent(first), bits)
        total_low = total_high = 0
        for low, high in self._side(first, bits):
            if not law.quadratic:
                return (low << bits) // (one - ratio_low), -((-high << bits) // (one - ratio_high))
            if high <= 2:  # every later ratio is at most the first
                return total_low, total_high - ((-high << bits) // (one - ratio_high))
            total_low, total_high = total_low + low, total_high + high
        raise AssertionError("the weights have no end")
