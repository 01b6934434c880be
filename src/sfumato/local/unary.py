"""Unary encoding: one bit for each value, set for the true one, and every bit flipped by chance."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, ClassVar

from sfumato.local.odds import odds
from sfumato.local.oracle import Oracular, Report, is_bitmap

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["OptimisedUnary", "SymmetricUnary"]


class _Bits(Oracular):
    """What both encodings do with ``hit`` for the bit of the truth and ``stray`` for all other bits."""

    __slots__ = ()

    def report(self, truth: int, bits: "Bits") -> bytes:
        """Draw the report of one person: a bitmap. Every bit is drawn below the same bound, whatever the truth."""
        self._truth(truth)
        bound = lcm(self.hit.denominator, self.stray.denominator)
        limits = (int(self.stray * bound), int(self.hit * bound))
        bitmap = 0
        for value in range(self.values):
            bitmap |= (bits.below(bound) < limits[value == truth]) << value
        return bitmap.to_bytes(-(-self.values // 8), "little")

    def supports(self, report: Report, value: int) -> bool:
        """A report counts for each value whose bit is set."""
        return isinstance(report, bytes) and bool(report[value >> 3] >> (value & 7) & 1)

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        chance = Fraction(1)
        for value in range(self.values):
            one = self.hit if value == truth else self.stray
            chance *= one if self.supports(report, value) else 1 - one
        return chance

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a bitmap of the right length, with no bit beyond the last value."""
        return isinstance(report, bytes) and is_bitmap(report, self.values)

    def outputs(self) -> Iterator[bytes]:
        """All bitmaps."""
        size = -(-self.values // 8)
        return (bitmap.to_bytes(size, "little") for bitmap in range(1 << self.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnary(_Bits):
    """Each bit is kept with odds r : 1, r = odds(ε/2) ≤ e^(ε/2): the basic form of RAPPOR.

    Guarantee: ε-DP for the value of one report, replaced by any other: two bits differ, each by a factor of at most r.
    Sensitive: the true value. Proof: docs/proofs/local_oracles.md

    >>> round(float(SymmetricUnary(epsilon=1, values=128).variance()), 3)
    3.918
    """

    KIND: ClassVar[str] = "local.symmetric_unary"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int

    def __post_init__(self) -> None:
        self._read()

    @property
    def ratio(self) -> Fraction:
        """r²."""
        return odds(self.epsilon / 2) ** 2

    @property
    def hit(self) -> Fraction:
        """r/(r + 1)."""
        kept = odds(self.epsilon / 2)
        return kept / (kept + 1)

    @property
    def stray(self) -> Fraction:
        """1/(r + 1)."""
        return 1 / (odds(self.epsilon / 2) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisedUnary(_Bits):
    """The bit of the truth is a fair coin, each other bit is set with probability 1/(R + 1), R = odds(ε) ≤ e^ε.

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the true value.
    Proof: docs/proofs/local_oracles.md

    >>> round(float(OptimisedUnary(epsilon=1, values=128).variance()), 3)
    3.683
    """

    KIND: ClassVar[str] = "local.optimised_unary"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int

    def __post_init__(self) -> None:
        self._read()

    @property
    def hit(self) -> Fraction:
        """1/2."""
        return Fraction(1, 2)

    @property
    def stray(self) -> Fraction:
        """1/(R + 1)."""
        return 1 / (self.ratio + 1)
