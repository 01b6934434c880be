"""Measures: what can be asked of the rows of a group, each one column of the answer."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.query import check_name
from sfumato.engines.expressions import Expression, Value
from sfumato.engines.lattice import check_range

__all__ = [
    "MEASURES",
    "Association",
    "Average",
    "Measure",
    "PersonCount",
    "Proportion",
    "Quotient",
    "Ranged",
    "RowCount",
    "Total",
    "Variation",
    "ranges_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranged:
    """A value of each row, held to a public range."""

    KIND: ClassVar[str] = "measure.value"
    VERSION: ClassVar[int] = 1
    value: Value
    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def width(self) -> Fraction:
        """From low to high."""
        return self.high - self.low


class _Named:
    __slots__ = ()
    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a measure")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount(_Named):
    """How many rows there are, or how many meet a condition."""

    KIND: ClassVar[str] = "measure.count"
    VERSION: ClassVar[int] = 1
    name: str
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonCount(_Named):
    """How many persons have a row; under a unit of single rows, how many rows there are."""

    KIND: ClassVar[str] = "measure.persons"
    VERSION: ClassVar[int] = 1
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(_Named):
    """The sum of a value; rows without one add nothing."""

    KIND: ClassVar[str] = "measure.sum"
    VERSION: ClassVar[int] = 1
    name: str
    of: Ranged


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(_Named):
    """The mean of a value over the rows that have one."""

    KIND: ClassVar[str] = "measure.mean"
    VERSION: ClassVar[int] = 1
    name: str
    of: Ranged


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation(_Named):
    """The variance of a value over the rows that have one, the mean of squared distances; or its root."""

    KIND: ClassVar[str] = "measure.variance"
    VERSION: ClassVar[int] = 1
    name: str
    of: Ranged
    root: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(_Named):
    """The share of the rows that meet a condition."""

    KIND: ClassVar[str] = "measure.proportion"
    VERSION: ClassVar[int] = 1
    name: str
    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient(_Named):
    """The sum of one value over the sum of another."""

    KIND: ClassVar[str] = "measure.ratio"
    VERSION: ClassVar[int] = 1
    name: str
    over: Ranged
    under: Ranged


@dataclass(frozen=True, slots=True, kw_only=True)
class Association(_Named):
    """The covariance of two values over the rows that have both; or, ``scaled``, their correlation."""

    KIND: ClassVar[str] = "measure.covariance"
    VERSION: ClassVar[int] = 1
    name: str
    first: Ranged
    second: Ranged
    scaled: bool = False


Measure = RowCount | PersonCount | Total | Average | Variation | Proportion | Quotient | Association


def ranges_of(measure: Measure) -> tuple[Ranged, ...]:
    """The values that a measure is about."""
    match measure:
        case Total(of=of) | Average(of=of) | Variation(of=of):
            return (of,)
        case Quotient(over=one, under=two) | Association(first=one, second=two):
            return (one, two)
    return ()


MEASURES = (Ranged, RowCount, PersonCount, Total, Average, Variation, Proportion, Quotient, Association)
