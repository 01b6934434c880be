"""Totals that cannot overflow: added up by the engine in wide whole numbers, brought out as exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # numbers and texts as an engine gives them

from sfumato.engines.dialects import dialect_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["brought_out"]


def brought_out(table: ir.Table) -> dict[str, list[Any]]:
    """Run a query and bring its rows out, by column. Sensitive: they are exact.

    Whole numbers that an engine or its driver could round on the way, those of more than 64 bits, travel as text.
    """
    import pyarrow as pa

    dialect, schema = dialect_of(table), table.schema()
    wide = [name for name, dtype in schema.items() if dialect.travels_as_text(dtype)]
    found = dialect.brought_out(table.mutate(**{name: table[name].cast("string") for name in wide}))
    columns: dict[str, list[Any]] = {name: found[name].to_pylist() for name in schema if name not in wide}
    for name in wide:
        try:
            columns[name] = found[name].cast(pa.int64()).to_pylist()
        except pa.ArrowInvalid:  # beyond 64 bits
            columns[name] = [None if text is None else int(text) for text in found[name].to_pylist()]
    return columns
