"""A small public table as one text constant, which a query takes apart; for databases that must not be written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from sfumato.engines.dialect import PublicColumns, PublicValue
from sfumato.engines.operands import DTYPES
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["OneText", "one_text", "table_from_text"]

SEPARATORS = [chr(code) for code in range(0xE000, 0xF900)]  # signs for private use


@dataclass(frozen=True, slots=True, kw_only=True)
class OneText:
    """Rows as one text: what stands between rows and behind each cell, and what stands for a missing value."""

    text: str
    next_row: str
    next_cell: str
    nothing: str


def one_text(columns: PublicColumns) -> OneText:
    """Public values as one text; one with a null character, which PostgreSQL cannot hold, goes with its row.

    >>> from sfumato.engines.expressions import Type
    >>> len(one_text({"n": (Type.WHOLE, [1, None])}).text)
    5
    """
    rows = [row for row in zip(*(values for _, values in columns.values()), strict=True) if not _unstorable(row)]
    cells = [[_text(value) for value in row] for row in rows]
    next_row, next_cell, nothing = _unused(cells)
    # Each cell ends with a sign, so that no row is empty: splitting an empty text gives one part here and none there.
    text = next_row.join("".join(f"{nothing if cell is None else cell}{next_cell}" for cell in row) for row in cells)
    return OneText(text=text, next_row=next_row, next_cell=next_cell, nothing=nothing)


def table_from_text(columns: PublicColumns) -> ir.Table:
    """A table of public values, taken apart by functions that Ibis knows."""
    import ibis

    given = one_text(columns)
    table = ibis.literal(given.text).split(given.next_row).unnest().name("row").as_table()
    table = table.filter(table.row != "")
    parts = table.row.split(given.next_cell)
    return table.select(
        **{
            name: parts[place].nullif(given.nothing).cast(DTYPES[kind])
            for place, (name, (kind, _)) in enumerate(columns.items())
        }
    )


def _unstorable(row: Sequence[PublicValue]) -> bool:
    return any(isinstance(value, str) and "\0" in value for value in row)


def _text(value: PublicValue) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case date():
            return value.isoformat()
    return repr(value)


def _unused(cells: Sequence[Sequence[str | None]]) -> tuple[str, str, str]:
    """Three signs that no cell holds."""
    used = {sign for row in cells for cell in row if cell is not None for sign in cell}
    free = [sign for sign in SEPARATORS if sign not in used][:3]
    if len(free) < 3:
        raise Unsupported("the declared texts use all signs that are free for private use; nothing was done.")
    return free[0], free[1], free[2]
