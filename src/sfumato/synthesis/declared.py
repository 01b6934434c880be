"""What was declared about synthetic rows, as whoever opens the file reads it: columns with their cells, and rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sfumato.synthesis.columns import BinnedColumn, ListedColumn, SyntheticColumn

__all__ = ["Cell", "DeclaredRows", "NeverRule", "bins_of", "kind_of", "never_rule"]

Cell = str | int | bool | date | None
NeverRule = tuple[tuple[str, tuple[Cell, ...]], tuple[str, tuple[Cell, ...]]]
"""Two columns, each with the values of it that do not occur beside those of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRows:
    """The columns of synthetic rows and the rules that hold in each row. Public: nothing of it was read off data."""

    columns: tuple[SyntheticColumn, ...]
    never: tuple[NeverRule, ...] = ()
    at_least: tuple[tuple[str, str], ...] = ()
    """Pairs of columns, the first of which is at least the second; with those that follow from others."""
    condition: str = ""
    """Which rows of the data count, as a condition; all of them if empty."""


def never_rule(one: SyntheticColumn, two: SyntheticColumn, cells: Sequence[tuple[int, int]]) -> NeverRule:
    """A rule in values, from the pairs of cells that it forbids."""
    return (
        (one.name, tuple(_value(one, cell) for cell in dict.fromkeys(first for first, _ in cells))),
        (two.name, tuple(_value(two, cell) for cell in dict.fromkeys(second for _, second in cells))),
    )


def _value(column: SyntheticColumn, cell: int) -> Cell:
    assert isinstance(column, ListedColumn)  # noqa: S101 - rules of values are for columns with keys alone
    return column.values[cell] if cell < len(column.values) else None


def kind_of(column: SyntheticColumn) -> str:
    """What the values of a column are: ``text``, ``whole``, ``truth``, ``date`` or ``number``.

    >>> kind_of(ListedColumn(name="sex", values=("F", "M")))
    'text'
    """
    if isinstance(column, BinnedColumn):
        return "date" if column.days else "whole" if column.whole else "number"
    first = column.values[0]
    return {bool: "truth", int: "whole", date: "date"}.get(type(first), "text")


def bins_of(column: BinnedColumn) -> list[tuple[int | float | date, int | float | date]]:
    """The least and the greatest value of each bin; of numbers that are not whole, its edges.

    >>> from fractions import Fraction
    >>> bins_of(BinnedColumn(name="age", edges=(Fraction(0), Fraction(18), Fraction(120)), whole=True))
    [(0, 17), (18, 120)]
    """
    ends = [column.ends(cell) for cell in range(column.bins)]
    if column.days:
        return [(date.fromordinal(int(low)), date.fromordinal(int(high))) for low, high in ends]
    if column.whole:
        return [(int(low), int(high)) for low, high in ends]
    return list(ends)
