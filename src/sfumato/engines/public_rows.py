"""Public rows beside private ones: a small table that we bring along, on the engine of the private one.

The embedded engine is handed an Arrow table. A database would need a temporary table for that, which a read-only
transaction does not allow and a steward does not want; it gets the rows as one text constant, which the query takes
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from sfumato.engines.dialects import Dialect, dialect_of
from sfumato.engines.expressions import Type
from sfumato.engines.operands import DTYPES
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["PublicValue", "public_rows"]

PublicValue = str | int | float | bool | date | None
SEPARATORS = [chr(code) for code in range(0xE000, 0xF900)]  # signs for private use


def public_rows(beside: ir.Table, columns: Mapping[str, tuple[Type, Sequence[PublicValue]]]) -> ir.Table:
    """A table of public values on the engine that ``beside`` lives on; nothing is created there.

    Each column is its type and its values, all of one length. A text with a null character, which PostgreSQL cannot
    hold, is left out there with its row: no private row could be equal to it.
    """
    import ibis
    import pyarrow as pa

    if dialect_of(beside) is Dialect.DUCKDB:
        arrays = {
            name: pa.array(list(values), type=ibis.dtype(DTYPES[kind]).to_pyarrow())
            for name, (kind, values) in columns.items()
        }
        return ibis.memtable(pa.table(arrays))
    return _from_text(columns)


def _from_text(columns: Mapping[str, tuple[Type, Sequence[PublicValue]]]) -> ir.Table:
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
