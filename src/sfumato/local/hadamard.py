"""Hadamard response: a report is a column of a Hadamard matrix, and supports the rows that are +1 there."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.local.oracle import Oracular, Report, is_below

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["HadamardResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(Oracular):
    """Report a column: those where the row of the true value is +1 are R times as likely as the others, R = odds(ε).

    Value v has row v + 1 of Sylvester's matrix of the least order above the number of values; entry (r, c) is −1 to
    the number of bits that r and c share. The shortest report and the fastest server for very many values; the error
    is close to the best for ε up to about 1, and above that the hash and the projective response err less.

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the true value.
    Proof: docs/proofs/local_oracles.md

    >>> asked = HadamardResponse(epsilon=1, values=128)
    >>> asked.columns, round(float(asked.variance()), 3)
    (256, 4.683)
    """

    KIND: ClassVar[str] = "local.hadamard_response"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int

    def __post_init__(self) -> None:
        self._read()

    @property
    def columns(self) -> int:
        """The order of the matrix: a power of two above the number of values, for row 0 reveals nothing."""
        return 1 << self.values.bit_length()

    @property
    def hit(self) -> Fraction:
        """R/(R + 1)."""
        return self.ratio / (self.ratio + 1)

    @property
    def stray(self) -> Fraction:
        """1/2: two rows agree in half of the columns, and in half of those where one is +1."""
        return Fraction(1, 2)

    def report(self, truth: int, bits: "Bits") -> int:
        """Draw the report of one person: a column."""
        row = self._truth(truth) + 1
        top, bottom = self.ratio.as_integer_ratio()
        odd = bits.below(top + bottom) >= top
        column = bits.below(self.columns)
        wrong = ((row & column).bit_count() & 1) != odd
        return column ^ (row & -row if wrong else 0)

    def supports(self, report: Report, value: int) -> bool:
        """A report counts for the values whose row is +1 there."""
        return not (value + 1 & int(report)).bit_count() & 1

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        return (self.hit if self.supports(report, truth) else 1 - self.hit) * 2 / self.columns

    @property
    def kinds(self) -> int:
        """How many different reports there are."""
        return self.columns

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a whole number below ``kinds``."""
        return is_below(report, self.kinds)

    def outputs(self) -> Iterator[int]:
        """All columns."""
        return iter(range(self.kinds))
