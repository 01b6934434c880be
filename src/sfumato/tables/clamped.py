"""Values held to a public range: what every sum over rows is made of."""

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import ClassVar

from sfumato.core.exact import rational
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import (
    Bounds,
    CaseWhen,
    Coalesce,
    Literal,
    Named,
    Term,
    Value,
    bounds_of,
    col,
    columns_of,
    term,
    written,
)
from sfumato.engines.lattice import check_range
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.column_facts import period

__all__ = ["Bounds", "Clamped", "clamped", "range_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamped:
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

    @property
    def complete(self) -> bool:
        """Whether every row has it, whatever the data: something stands in where it would be missing."""
        return _complete(self.value)


def _complete(value: Value | None) -> bool:
    match value:
        case Coalesce():
            return any(_complete(part) for part in value.parts)
        case CaseWhen():
            return _complete(value.otherwise) and all(_complete(branch.then) for branch in value.branches)
    return isinstance(value, Literal)


def clamped(value: str | Term, bounds: Bounds) -> Clamped:
    """A value with the range that follows from the declared bounds of its columns.

    >>> found = clamped("age", {"age": (Fraction(0), Fraction(120))})
    >>> found.low, found.high
    (Fraction(0, 1), Fraction(120, 1))
    """
    node: Value = term(col(value) if isinstance(value, str) else value).node
    found = bounds_of(node, bounds)
    if found is None:
        declared = ", ".join(sorted(bounds)) or "none"
        truth = (
            f" If it holds truth values, ask for their share: sf.proportion({node.column!r}), in SQL "
            f'AVG("{node.column}" = TRUE).'
            if isinstance(node, Named)
            else ""
        )
        raise NotDeclared(
            f"the range of {written(node)} does not follow from declared bounds, and reading it off the data would "
            f"reveal something about people in it. Nothing was done. Declare bounds={{column: (low, high)}} for the "
            f"table (declared: {declared}), of dates and times their first and last day, or clip the value: "
            f"sf.col('x').clip(0, 100).{truth}{_meant(node, bounds)}"
        )
    return Clamped(value=node, low=found[0], high=found[1])


def range_of(column: str, pair: object) -> tuple[Fraction, Fraction] | tuple[date, date]:
    """A pair of public bounds, exactly, or a period from a first to a last day; refused where it is none.

    >>> range_of("age", (0, 0.5))
    (Fraction(0, 1), Fraction(1, 2))
    """
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidInput(f"the bounds of {column!r} are not a pair; nothing was done. Give (low, high).")
    lower, upper = pair
    if isinstance(lower, date) or isinstance(upper, date):
        return period(column, lower, upper)
    low, high = rational(lower, f"lower bound of {column!r}"), rational(upper, f"upper bound of {column!r}")
    if low > high:
        raise InvalidInput(f"the bounds of {column!r} are the wrong way round; nothing was done. Give (low, high).")
    return low, high


def _meant(node: Value, bounds: Bounds) -> str:
    """Declared columns whose names are close to one that is not."""
    return "".join(did_you_mean(name, bounds) for name in sorted(columns_of(node) - bounds.keys()))
