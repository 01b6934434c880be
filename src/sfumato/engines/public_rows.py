"""Public rows beside private ones: a small table that we bring along, on the engine of the private one.

The embedded engine is handed an Arrow table. A database would need a temporary table for that, which a read-only
transaction does not allow and a steward does not want; it gets the rows as one text constant, which the query takes
apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.engines.dialect import PublicColumns
from sfumato.engines.dialects import dialect_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["public_rows"]


def public_rows(beside: ir.Table, columns: PublicColumns) -> ir.Table:
    """A table of public values on the engine that ``beside`` lives on; nothing is created there.

    Each column is its type and its values, all of one length. A text with a null character, which PostgreSQL cannot
    hold, is left out there with its row: no private row could be equal to it.
    """
    return dialect_of(beside).public_table(columns)
