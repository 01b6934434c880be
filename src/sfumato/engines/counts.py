"""Bounded counting in the engine: each person's share is limited before anything is added up.

A person's rows in a group are clipped to a number first; then at most so many groups of that person are kept, those
with the smallest keyed hash. The hash is of the person's id and the group's own key, under a secret: other people's
rows never decide what is kept, so the bound is exact for every secret. Proof: docs/proofs/bounded_counts.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from sfumato.core.limits import Limit
from sfumato.engines.compile import predicate
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression, Type
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.public_rows import public_rows
from sfumato.engines.totals import brought_out, total

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["KeyColumn", "Share", "bounded_counts", "rows_by_cell"]

KeyValue = str | int | bool | date
TYPES = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH, date: Type.DATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column to group by and the public list of its values; rows with any other value do not count."""

    column: str
    values: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of each person counts: the column that tells persons apart, the limit, and the secret of the hash."""

    column: str
    limit: Limit
    secret: str


def bounded_counts(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
) -> list[int]:
    """Count rows by cell of the product of ``keys``, in the order of that product; empty cells are 0."""
    size = 1
    for key in keys:
        size *= len(key.values)
    found = brought_out(rows_by_cell(table, where=where, keys=keys, share=share))
    counts = [0] * size
    for cell, rows in zip(found["cell"], found["total"], strict=True):
        counts[cell] = rows
    return counts


def rows_by_cell(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``cell`` and ``total`` (and ``world``), one row for each cell that anyone is in.

    ``world`` names a column that tells several datasets in one table apart; each is counted as if it were alone. The
    brute-force laws put all neighbours of a table side by side that way. The hash does not see it.
    """
    import ibis

    rows = table if where is None else table.filter(predicate(where, table))
    kept = {f"key{place}": rows[key.column] for place, key in enumerate(keys)}
    if share is not None:
        kept["person"] = rows[share.column]
    if world is not None:
        kept["world"] = rows[world]
    rows = rows.select(one=ibis.literal(1, type="int64"), **kept)
    if share is not None:
        rows = rows.filter(rows.person.notnull())
    rows = rows.mutate(cell=ibis.literal(0, type="int64"))
    for place, key in enumerate(keys):
        rows = rows.inner_join(public_rows(table, _codes(key, place)), f"key{place}")
        rows = rows.mutate(cell=rows.cell * len(key.values) + rows[f"code{place}"])
    side = [] if world is None else ["world"]
    dialect = dialect_of(table)
    if share is None:
        return rows.group_by([*side, "cell"]).aggregate(total=total(rows.one, dialect))
    names = [f"key{place}" for place in range(len(keys))]
    pairs = rows.group_by([*side, "person", "cell", *names]).aggregate(rows=rows.one.sum())
    pairs = pairs.mutate(rows=ibis.least(pairs.rows, ibis.literal(share.limit.rows_per_group, type="int64")))
    if keys:
        pairs = _few_groups(pairs, names, share, side)
    return pairs.group_by([*side, "cell"]).aggregate(total=total(pairs.rows, dialect))


def _few_groups(pairs: ir.Table, names: Sequence[str], share: Share, side: Sequence[str]) -> ir.Table:
    """Keep at most ``groups`` groups of each person: those with the smallest keyed hash."""
    import ibis

    parts = [pairs[name] for name in ("person", *names)]
    pairs = pairs.mutate(hashed=keyed_hash(share.secret, parts, dialect_of(pairs)))
    window = ibis.window(group_by=[*side, "person"], order_by=["hashed", "cell"])
    pairs = pairs.mutate(place=ibis.row_number().over(window))
    return pairs.filter(pairs.place < share.limit.groups)


def _codes(key: KeyColumn, place: int) -> dict[str, tuple[Type, Sequence[KeyValue]]]:
    codes = range(len(key.values))
    return {f"key{place}": (TYPES[type(key.values[0])], key.values), f"code{place}": (Type.WHOLE, codes)}
