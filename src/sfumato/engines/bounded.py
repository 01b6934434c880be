"""Bounded totals in the engine: each person's share is limited before anything is added up.

A person's sums in a group are held to the limit first; then at most so many groups of that person are kept, those
with the smallest keyed hash. The hash is of the person's id and the group, under a secret: other people's rows never
decide what is kept, so the bound is exact for every secret. Proof: docs/proofs/bounded_totals.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any

from sfumato.core.limits import Limit
from sfumato.engines.compile import predicate, value
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression, Type, Value
from sfumato.engines.gauges import Gauge
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.lattice import Lattice, on_lattice
from sfumato.engines.public_rows import public_rows
from sfumato.engines.totals import brought_out, total

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "KeyColumn",
    "KeyValue",
    "Share",
    "bounded_totals",
    "cells_of",
    "few_groups",
    "placed",
    "totals_by_cell",
]

KeyValue = str | int | bool | date
TYPES = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH, date: Type.DATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column to group by and the public list of its values.

    ``value`` computes it where it is not a column of the table. Rows with any other value do not count, or with
    ``other`` they make a last group of their own.
    """

    column: str
    values: tuple[KeyValue, ...]
    value: Value | None = None
    other: bool = False

    @property
    def size(self) -> int:
        """How many groups it makes."""
        return len(self.values) + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of each person counts: the column that tells persons apart, the limit, and the secret of the hash."""

    column: str
    limit: Limit
    secret: str


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
    rows = table if where is None else table.filter(predicate(where, table))
    rows, places = placed(rows, [lattice for gauge in gauges for lattice in gauge.lattices])
    measured = [gauge.of_row(rows, places) for gauge in gauges]
    if share is None:
        measured = [gauge.of_record(row) for gauge, row in zip(gauges, measured, strict=True)]
    names = _named(measured, "sum")
    kept = {
        name: column
        for some, columns in zip(names, measured, strict=True)
        for name, column in zip(some, columns, strict=True)
    }
    if share is not None:
        kept["person"] = rows[share.column]
    if world is not None:
        kept["world"] = rows[world]
    cells = cells_of(rows, keys, kept)
    if share is not None:
        cells = cells.filter(cells.person.notnull())
    side = [] if world is None else ["world"]
    dialect = dialect_of(table)
    if share is None:
        flat = [name for some in names for name in some]
        return cells.group_by([*side, "cell"]).aggregate(
            **{f"part{place}": total(cells[name], dialect) for place, name in enumerate(flat)}
        )
    pairs = cells.group_by([*side, "person", "cell"]).aggregate(
        **{name: cells[name].sum() for some in names for name in some}
    )
    held = [
        gauge.of_person([pairs[name] for name in some], share.limit.rows_per_group)
        for gauge, some in zip(gauges, names, strict=True)
    ]
    parts = dict(zip(_flat(_named(held, "part")), _flat(held), strict=True))
    pairs = pairs.select(*side, "person", "cell", **parts)
    if keys:
        pairs = few_groups(pairs, ["cell"], share, side)
    return pairs.group_by([*side, "cell"]).aggregate(**{name: total(pairs[name], dialect) for name in parts})


def placed(rows: ir.Table, lattices: Sequence[Lattice]) -> tuple[ir.Table, dict[Lattice, Any]]:
    """The rows with the lattice point of each value beside them.

    Value and place are made columns one after the other, so that the parts of a gauge name them instead of repeating
    them: the text of a question would grow a hundredfold.
    """
    taken = set(rows.columns)
    free = (name for name in map("value{}".format, count()) if name not in taken)
    names = {lattice: next(free) for lattice in dict.fromkeys(lattices)}
    if not names:
        return rows, {}
    rows = rows.mutate(**{name: value(lattice.value, rows) for lattice, name in names.items()})
    rows = rows.mutate(**{name: on_lattice(lattice, rows[name]) for lattice, name in names.items()})
    return rows, {lattice: rows[name] for lattice, name in names.items()}


def cells_of(rows: ir.Table, keys: Sequence[KeyColumn], kept: dict[str, Any]) -> ir.Table:
    """The columns ``kept`` of the rows that lie in a cell, and the number of the ``cell``, the last key fastest."""
    import ibis

    for place, key in enumerate(keys):
        kept[f"key{place}"] = rows[key.column] if key.value is None else value(key.value, rows)
    found = rows.select(**kept, cell=ibis.literal(0, type="int64"))
    for place, key in enumerate(keys):
        codes = public_rows(rows, _codes(key, place))
        found = (found.left_join if key.other else found.inner_join)(codes, f"key{place}")
        code = found[f"code{place}"]
        if key.other:
            code = code.fill_null(ibis.literal(len(key.values), type="int64"))
        found = found.mutate(cell=found.cell * key.size + code)
    return found.select(*(name for name in kept if not name.startswith("key")), "cell")


def few_groups(pairs: ir.Table, names: Sequence[str], share: Share, side: Sequence[str]) -> ir.Table:
    """Keep at most ``groups`` groups of each person: those with the smallest keyed hash."""
    import ibis

    parts = [pairs[name] for name in ("person", *names)]
    pairs = pairs.mutate(hashed=keyed_hash(share.secret, parts, dialect_of(pairs)))
    window = ibis.window(group_by=[*side, "person"], order_by=["hashed", *names])
    pairs = pairs.mutate(place=ibis.row_number().over(window))
    return pairs.filter(pairs.place < share.limit.groups)


def _codes(key: KeyColumn, place: int) -> dict[str, tuple[Type, Sequence[KeyValue]]]:
    codes = range(len(key.values))
    return {f"key{place}": (TYPES[type(key.values[0])], key.values), f"code{place}": (Type.WHOLE, codes)}


def _named(parts: Sequence[Sequence[Any]], prefix: str) -> list[list[str]]:
    """A running name for each of several columns, grouped as they are."""
    names, place = [], 0
    for some in parts:
        names.append([f"{prefix}{place + offset}" for offset in range(len(some))])
        place += len(some)
    return names


def _flat(parts: Sequence[Sequence[Any]]) -> list[Any]:
    return [part for some in parts for part in some]
