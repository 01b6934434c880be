"""A small public table as one text constant, which a query takes apart; for databases that must not be written to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from sfumato.engines.dialect import PublicColumns, PublicValue
from sfumato.engines.operands import DTYPES
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["table_from_text"]

SEPARATORS = [chr(code) for code in range(0xE000, 0xF900)]  # signs for private use


def table_from_text(columns: PublicColumns) -> ir.Table:
    """A table of public values; a text with a null character, which PostgreSQL cannot hold, goes with its row."""
    import ibis

    rows = [row for row in zip(*(values for _, values in columns.values()), strict=True) if not _unstorable(row)]
    cells = [[_text(value) for value in row] for row in rows]
    next_row, next_cell, nothing = _unused(cells)
    # Each cell ends with a sign, so that no row is empty: splitting an empty text gives one part here and none there.
    text = next_row.join("".join(f"{nothing if cell is None else cell}{next_cell}" for cell in row) for row in cells)
    table = ibis.literal(text).split(next_row).unnest().name("row").as_table()
    table = table.filter(table.row != "")
    parts = table.row.split(next_cell)
    return table.select(
        **{
            name: parts[place].nullif(nothing).cast(DTYPES[kind])
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
