"""How much the floats of a clipped sum may be off, and what that allows: docs/proofs/clipped_sums.md."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from sfumato.learning.rounding_error import SLACK

__all__ = [
    "CROWD",
    "DEEPEST",
    "FAINTEST",
    "FEW",
    "HUGE",
    "LARGEST",
    "MANY",
    "OVER",
    "PIECE",
    "SLACK",
    "SMALLEST",
    "TINIEST",
    "TINY",
    "UNIT_ROUNDOFF",
    "WIDE",
    "ErrorBudget",
]

OVER = SLACK / 8
"""The part of it by which one contribution may be longer than the clip, because its norm is measured in floats."""

CROWD = 8
"""At most this many clips of absolute values may stand behind one contribution where they are summed as products."""

WIDE = 2**6
"""How many times more where the products are summed in double precision."""

UNIT_ROUNDOFF = Fraction(1, 2**24)
PIECE = 1024
"""The most squares that are summed in single precision; pieces are summed in double precision."""

TINY, TINIEST = 2.0**-126, 2.0**-1022
"""What underflow can take from a square, in single and in double precision."""
DEEPEST = 2**12
"""The most roundings of a sum in single precision: this many u, and two more for squares of u, bound its error."""

FEW = 2**10
"""The most units of a physical batch whose sum may be kept in single precision, if a unit touches two of them."""

MANY = 2**15
"""The most units of a physical batch, for which double precision is surely enough."""

FAINTEST = 2.0**-102
"""Smaller factors are 0; so is the factor of a unit whose inputs to a layer are longer than HUGE."""
HUGE = 2.0**60

SMALLEST, LARGEST = 2.0**-40, 2.0**40
"""The clips between which nothing that underflows or overflows is felt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    """The error that the sum of a physical batch may have, in clips, and how deep its float32 sums may be for it.

    ``crowded`` says that some layer is summed as products of many places; those then get 3/4, the others 1/8,
    and 1/8 is for sums in double precision.

    >>> ErrorBudget(units=256, batches=2, crowded=False).terms()
    108
    """

    units: int
    batches: int
    crowded: bool
    clean: bool = False
    """Whether every value is known to be finite: then none is looked at again."""

    def error(self) -> Fraction:
        """The error in clips: twice this for each batch that a unit can touch, and OVER, are SLACK."""
        return (SLACK - OVER) / (2 * self.batches)

    def terms(self, *, crowd: int = 1) -> int:
        """The most terms of one sum in single precision: units · crowd · (terms + 3) · u stays within the error."""
        return _terms(self, crowd)


@cache
def _terms(budget: ErrorBudget, crowd: int) -> int:
    share = budget.error() * (Fraction(6 if crowd > 1 else 1, 8) if budget.crowded else 1)
    return min(DEEPEST, int(share / (UNIT_ROUNDOFF * budget.units * crowd * (1 + OVER))) - 3)
