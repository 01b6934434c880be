"""Subset selection: a report is a set of values of fixed size, which holds the true one more often than chance."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.exact import Exact, natural
from sfumato.local.odds import local_epsilon, odds
from sfumato.local.oracle import Oracular, Report, is_bitmap

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["SubsetSelection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(Oracular):
    """Report a set of ``size`` values: a set with the true one is R times as likely as one without, R = odds(ε).

    The least variance of all oracles here, for a report of one bit a value. ``calibrated`` takes the size of least
    variance, about values/(e^ε + 1).

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the true value.
    Proof: docs/proofs/local_oracles.md

    >>> asked = SubsetSelection.calibrated(epsilon=1, values=128)
    >>> asked.size, round(float(asked.variance()), 3)
    (34, 3.61)
    """

    KIND: ClassVar[str] = "local.subset_selection"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int
    size: int

    def __post_init__(self) -> None:
        self._read()
        natural(self.size, "size", most=self.values - 1)

    @classmethod
    def calibrated(cls, *, epsilon: Exact, values: int) -> "SubsetSelection":
        """With the size of least variance."""
        exact = local_epsilon(epsilon)
        near = int(values / (odds(exact) + 1))
        sizes = {min(max(size, 1), values - 1) for size in (near - 1, near, near + 1, near + 2)}
        return min(
            (cls(epsilon=exact, values=values, size=size) for size in sorted(sizes)), key=lambda asked: asked.variance()
        )

    @property
    def hit(self) -> Fraction:
        """size·R/(size·R + values − size)."""
        return self.size * self.ratio / (self.size * self.ratio + self.values - self.size)

    @property
    def stray(self) -> Fraction:
        """(size − hit)/(values − 1): what is left of the set falls on all others alike."""
        return (self.size - self.hit) / (self.values - 1)

    def report(self, truth: int, bits: "Bits") -> bytes:
        """Draw the report of one person: a bitmap of the set."""
        self._truth(truth)
        high, of = self.hit.as_integer_ratio()
        heads = bits.below(of) < high
        others = [value for value in range(self.values) if value != truth]
        bitmap = heads << truth
        for done in range(self.size - heads):
            other = done + bits.below(len(others) - done)
            others[done], others[other] = others[other], others[done]
            bitmap |= 1 << others[done]
        return bitmap.to_bytes(-(-self.values // 8), "little")

    def supports(self, report: Report, value: int) -> bool:
        """A report counts for each value of its set."""
        return isinstance(report, bytes) and bool(report[value >> 3] >> (value & 7) & 1)

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        if self.supports(report, truth):
            return self.hit / comb(self.values - 1, self.size - 1)
        return (1 - self.hit) / comb(self.values - 1, self.size)

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a bitmap of the right length with ``size`` bits."""
        if not isinstance(report, bytes) or not is_bitmap(report, self.values):
            return False
        return int.from_bytes(report, "little").bit_count() == self.size

    def outputs(self) -> Iterator[bytes]:
        """All sets of that size."""
        size = -(-self.values // 8)
        for chosen in combinations(range(self.values), self.size):
            yield sum(1 << value for value in chosen).to_bytes(size, "little")
