"""Totals that cannot overflow: added up by the engine in wide whole numbers, brought out as exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # numbers and texts as an engine gives them

from sfumato.engines.dialects import dialect_of

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    import pyarrow as pa

__all__ = ["brought_out", "whole_numbers"]


def brought_out(table: ir.Table) -> dict[str, list[Any]]:
    """Run a query and bring its rows out, by column. Sensitive: they are exact.

    Whole numbers that an engine or its driver could round on the way, those of more than 64 bits, travel as text.
    """
    return {name: column if isinstance(column, list) else column.to_pylist() for name, column in _run(table).items()}


def whole_numbers(table: ir.Table) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The same for a query of whole numbers of 64 bits, many rows of them, which never become objects of Python."""
    import numpy as np

    return {name: np.asarray(column, dtype=np.int64) for name, column in _run(table).items()}


def _run(table: ir.Table) -> dict[str, pa.ChunkedArray | list[int | None]]:
    """Each column as Arrow has it, or as a list where numbers are beyond 64 bits."""
    import pyarrow as pa

    dialect, schema = dialect_of(table), table.schema()
    wide = [name for name, dtype in schema.items() if dialect.travels_as_text(dtype)]
    found = dialect.brought_out(table.mutate(**{name: table[name].cast("string") for name in wide}))
    columns: dict[str, pa.ChunkedArray | list[int | None]] = {name: found[name] for name in schema}
    for name in wide:
        try:
            columns[name] = found[name].cast(pa.int64())
        except pa.ArrowInvalid:  # beyond 64 bits
            columns[name] = [None if text is None else int(text) for text in found[name].to_pylist()]
    return columns
