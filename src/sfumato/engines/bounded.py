"""Bounded totals in the engine: each person's share is limited before anything is added up.

A limited number of groups of each person is kept, and the person's sums in each are held to the limit. What is kept
depends on the person's own rows and a secret alone, so the bound is exact for every secret.

Proof: docs/proofs/bounded_totals.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from sfumato.engines.compile import value
from sfumato.engines.contribution_limits import KeyColumn, KeyValue, Share, kept_rows
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression, Value
from sfumato.engines.lattice import Lattice, on_lattice
from sfumato.engines.sufficient_statistics import Gauge
from sfumato.engines.totals import brought_out

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["KeyColumn", "KeyValue", "Share", "bounded_totals", "in_a_cell", "placed", "totals_by_cell"]


def bounded_totals(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    gauges: Sequence[Gauge],
) -> list[list[int]]:
    """Add up the parts of all gauges by cell of the product of ``keys``, in the order of that product.

    One list for each part, gauge after gauge; empty cells are 0. Sensitive: all of it is exact.
    """
    size = prod(key.size for key in keys)
    found = brought_out(totals_by_cell(table, where=where, keys=keys, share=share, gauges=gauges))
    places = found.pop("cell")
    totals = []
    for part in found.values():
        column = [0] * size
        for place, amount in zip(places, part, strict=True):
            column[place] = amount
        totals.append(column)
    return totals


def totals_by_cell(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    gauges: Sequence[Gauge],
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``cell`` (and ``world``) and ``part0`` …, one row for each cell that anyone is in.

    ``world`` names a column that tells several datasets in one table apart; each is counted as if it were alone. The
    brute-force laws put all neighbours of a table side by side that way. The hash does not see it.
    """
    needed = set().union(*(gauge.columns for gauge in gauges))
    lattices = [lattice for gauge in gauges for lattice in gauge.lattices]
    values = [lattice.value for lattice in lattices]
    kept = kept_rows(table, where=where, keys=keys, share=share, needed=needed, values=values, world=world)
    rows, places = placed(kept.rows, lattices, kept.values)
    measured = [gauge.of_row(rows, places) for gauge in gauges]
    if share is None:
        measured = [gauge.of_record(row) for gauge, row in zip(gauges, measured, strict=True)]
    names = _named(measured, "sum")
    side = {} if world is None else {"world": rows[kept.world]}
    person = {} if share is None else {"person": rows[kept.person]}
    rows = rows.select(**side, **person, cell=rows[kept.cell], **dict(zip(_flat(names), _flat(measured), strict=True)))
    dialect = dialect_of(table)
    if share is None:
        sums = {f"part{place}": dialect.total(rows[name]) for place, name in enumerate(_flat(names))}
        return in_a_cell(rows.group_by([*side, "cell"]).aggregate(**sums), "part0", loose=kept.loose)
    pairs = rows
    if not share.single:
        pairs = rows.group_by([*side, "person", "cell"]).aggregate(**{name: rows[name].sum() for name in _flat(names)})
    held = [
        gauge.of_person([pairs[name] for name in some], share.limit.rows_per_group)
        for gauge, some in zip(gauges, names, strict=True)
    ]
    parts = dict(zip(_flat(_named(held, "part")), _flat(held), strict=True))
    pairs = pairs.select(*side, "cell", **parts)
    return pairs.group_by([*side, "cell"]).aggregate(**{name: dialect.total(pairs[name]) for name in parts})


def in_a_cell(totals: ir.Table, total: str, *, loose: bool) -> ir.Table:
    """Totals by cell without those of rows in none, if there are such.

    A total is never null. It is asked for all the same, because DuckDB would ask a condition on the cell alone of each
    row before adding up, and work the cell out twice.
    """
    return totals.filter(totals["cell"].notnull() | totals[total].isnull()) if loose else totals


def placed(
    rows: ir.Table, lattices: Sequence[Lattice], values: Mapping[Value, str] = MappingProxyType({})
) -> tuple[ir.Table, dict[Lattice, ir.Value]]:
    """The rows with the lattice point of each value beside them; ``values`` names those that are columns already.

    Value and place are made columns one after the other, so that the parts of a gauge name them instead of repeating
    them: the text of a question would grow a hundredfold.
    """
    taken = set(rows.columns)
    free = (name for name in map("value{}".format, count()) if name not in taken)
    names = {lattice: next(free) for lattice in dict.fromkeys(lattices)}
    if not names:
        return rows, {}
    missing = {name: value(lattice.value, rows) for lattice, name in names.items() if lattice.value not in values}
    rows = rows.mutate(**missing) if missing else rows
    held = {lattice: rows[values.get(lattice.value, name)] for lattice, name in names.items()}
    rows = rows.mutate(**{name: on_lattice(lattice, held[lattice]) for lattice, name in names.items()})
    return rows, {lattice: rows[name] for lattice, name in names.items()}


def _named(parts: Sequence[Sequence[ir.Value]], prefix: str) -> list[list[str]]:
    """A running name for each of several columns, grouped as they are."""
    names, place = [], 0
    for some in parts:
        names.append([f"{prefix}{place + offset}" for offset in range(len(some))])
        place += len(some)
    return names


def _flat(parts: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
    return [part for some in parts for part in some]
