"""Bounded counting in the engine: the simplest of the bounded totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.bounded import KeyColumn, Share, bounded_totals, totals_by_cell
from sfumato.engines.expressions import Expression
from sfumato.engines.sufficient_statistics import RowIndicator

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["KeyColumn", "Share", "bounded_counts", "rows_by_cell"]


def bounded_counts(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
) -> list[int]:
    """Count rows by cell of the product of ``keys``, in the order of that product; empty cells are 0."""
    return bounded_totals(table, where=where, keys=keys, share=share, gauges=[RowIndicator(height=1)])[0]


def rows_by_cell(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    world: str | None = None,
) -> ir.Table:
    """The plan of a count: columns ``cell`` and ``total`` (and ``world``), one row for each cell that anyone is in."""
    gauges = [RowIndicator(height=1)]
    found = totals_by_cell(table, where=where, keys=keys, share=share, gauges=gauges, world=world)
    return found.rename(total="part0")
