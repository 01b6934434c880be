"""Randomised response over any number of values; with two of them, the coin of Warner."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.local.oracle import Oracular, Report, is_below

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["KaryResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KaryResponse(Oracular):
    """Report the true value with odds R : 1 against each other value, R = odds(ε) ≤ e^ε.

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the true value.
    For few values: with more than about 3e^ε + 2 OptimisedUnary errs less. Proof: docs/proofs/local_oracles.md

    >>> asked = KaryResponse(epsilon=1, values=2)
    >>> round(float(asked.variance()) / 1000, 6)  # of 1,000 persons
    0.000921
    """

    KIND: ClassVar[str] = "local.kary_response"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int

    def __post_init__(self) -> None:
        self._read()

    @property
    def hit(self) -> Fraction:
        """R/(R + values − 1)."""
        return self.ratio / (self.ratio + self.values - 1)

    @property
    def stray(self) -> Fraction:
        """1/(R + values − 1)."""
        return 1 / (self.ratio + self.values - 1)

    def report(self, truth: int, bits: "Bits") -> int:
        """Draw the report of one person: a value."""
        self._truth(truth)
        top, bottom = self.ratio.as_integer_ratio()
        drawn = bits.below(top + (self.values - 1) * bottom)
        return truth if drawn < top else (truth + 1 + (drawn - top) // bottom) % self.values

    def supports(self, report: Report, value: int) -> bool:
        """A report counts for the value that it names."""
        return report == value

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        return self.hit if report == truth else self.stray

    @property
    def kinds(self) -> int:
        """How many different reports there are."""
        return self.values

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a whole number below ``kinds``."""
        return is_below(report, self.kinds)

    def outputs(self) -> Iterator[int]:
        """All values."""
        return iter(range(self.kinds))
