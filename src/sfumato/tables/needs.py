"""Needs: the sums over rows that a measure is computed from, before it is decided which sums tell which.

A measure states its needs and knows nothing of other measures; :mod:`sfumato.tables.statistic_plan` finds the fewest
sums that meet the needs of all measures of a question.
"""

from dataclasses import dataclass

from sfumato.engines.expressions import Expression
from sfumato.engines.lattice import Lattice
from sfumato.engines.sufficient_statistics import Gauge
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Reach

__all__ = ["CountPersons", "CountRows", "Need", "OwnSums", "PowersOf", "ProductsOf", "RowsByBin", "SplitRows", "SumOf"]


@dataclass(frozen=True, slots=True)
class CountRows:
    """How many rows there are, or how many meet a condition."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class CountPersons:
    """How many persons have a row."""


@dataclass(frozen=True, slots=True)
class SplitRows:
    """How many rows meet a condition, and how many do not."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class SumOf:
    """The sum of a value."""

    of: Clamped


@dataclass(frozen=True, slots=True)
class PowersOf:
    """How many rows have a value, and its sum; of degree 2 also the sum of its squares.

    With ``squares`` the squares are asked for where they cost no privacy loss: not for a public number of units.
    """

    of: Clamped
    degree: int
    squares: bool = False


@dataclass(frozen=True, slots=True)
class ProductsOf:
    """How many rows have both values, their sums and that of their products; of degree 2 also of their squares."""

    first: Clamped
    second: Clamped
    degree: int


@dataclass(frozen=True, slots=True)
class RowsByBin:
    """How many rows have each value of a lattice, whose points are the middles of bins."""

    lattice: Lattice


@dataclass(frozen=True, slots=True)
class OwnSums:
    """Sums that one measure brings itself.

    Guarantee: none of its own; the sensitivity of a question adds up what ``reach`` states. Assumes: ``reach`` bounds
    how far one row moves the parts of ``gauge``, and a person's parts are held to as many rows. A gauge of 2^30 steps
    gets the same share of the privacy loss as the other sums of a question.
    """

    gauge: Gauge
    reach: Reach


Need = CountRows | CountPersons | SplitRows | SumOf | PowersOf | ProductsOf | RowsByBin | OwnSums
