"""Private key discovery: how many persons have each key, counted in the engine. Sensitive: keys and counts are exact.

A person's pairs (person, key) are made distinct first; then a limited number of keys of that person is kept, those with
the smallest keyed hash. Other people's rows never decide what is kept, so a person moves only that many counts, each
by one, for every secret. Proof: docs/proofs/optimal_selection.md
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from sfumato.engines.clocks import as_date
from sfumato.engines.compile import predicate
from sfumato.engines.contribution_limits import Share
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression, Type
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.operands import Operand, column
from sfumato.engines.totals import brought_out
from sfumato.errors import InvalidInput, Unsupported
from sfumato.mechanisms.several_keys import in_order

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["PartitionKey", "partition_counts", "persons_by_key"]

PartitionKey = tuple[str | int | bool | date, ...]
KINDS = (Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE)


def persons_by_key(
    table: ir.Table,
    *,
    where: Expression | None,
    columns: Sequence[str],
    share: Share | None,
    world: str | None = None,
) -> dict[PartitionKey, int]:
    """How many persons have each key that occurs, without a share how many rows; in an order that only the keys decide.

    Guarantee: adding or removing a person moves at most ``share.limit.groups`` of the counts, each by 1; adding or
    removing a row moves one count by 1. A key that is not there has the count 0. Rows in which a part of the key is
    missing, or whose person is not told, do not count. Sensitive: all of it, the keys and how many they are included.

    With ``world`` each key begins with the value of that column, as in :func:`partition_counts`.
    """
    found = brought_out(partition_counts(table, where=where, columns=columns, share=share, world=world))
    names = [*([] if world is None else ["world"]), *(f"key{place}" for place in range(len(columns)))]
    counts = dict(zip(zip(*(found[name] for name in names), strict=True), found["total"], strict=True))
    return {key: counts[key] for key in in_order(counts)}


def partition_counts(
    table: ir.Table,
    *,
    where: Expression | None,
    columns: Sequence[str],
    share: Share | None,
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``key0``, ``key1``, … and ``total`` (and ``world``), one row for each key that occurs.

    ``world`` names a column that tells several datasets in one table apart; each is counted as if it were alone.
    """
    _check(table, columns)
    rows = table if where is None else table.filter(predicate(where, table))
    names = [f"key{place}" for place in range(len(columns))]
    kept: dict[str, ir.Value] = {name: _key(rows, of).nullable() for name, of in zip(names, columns, strict=True)}
    told = list(names)
    if share is not None:
        kept["person"] = rows[share.column]
        told.append("person")
    side = [] if world is None else ["world"]
    if world is not None:
        kept["world"] = rows[world]
    rows = rows.select(**kept)
    rows = rows.filter([rows[name].notnull() for name in told])
    if share is not None:
        rows = _few_keys(rows.distinct(), names, share, side)
    return rows.group_by([*side, *names]).aggregate(total=rows.count().cast("int64"))


def _key(table: ir.Table, name: str) -> Operand:
    """A column to find keys in; times by their days."""
    dialect = dialect_of(table)
    found = column(table, name, dialect)
    return as_date(found, dialect) if found.type is Type.TIME else found


def _few_keys(pairs: ir.Table, names: Sequence[str], share: Share, side: Sequence[str]) -> ir.Table:
    """Keep at most ``groups`` keys of each person: those with the smallest keyed hash."""
    import ibis

    parts = [pairs[name] for name in ("person", *names)]
    pairs = pairs.mutate(hashed=keyed_hash(share.secret, parts, dialect_of(pairs)))
    window = ibis.window(group_by=[*side, "person"], order_by=["hashed", *names])
    pairs = pairs.mutate(place=ibis.row_number().over(window))
    return pairs.filter(pairs.place < share.limit.groups)


def _check(table: ir.Table, columns: Sequence[str]) -> None:
    """Refuse what cannot be a key; no row is read."""
    if not columns or len(set(columns)) != len(columns):
        raise InvalidInput("keys are found in one column or several different ones; nothing was read.")
    for name in columns:
        if name not in table.columns:
            raise InvalidInput(f"there is no column {name!r} to find keys in; nothing was read and nothing was spent.")
        if _key(table, name).type not in KINDS:
            raise Unsupported(
                f"column {name!r} cannot identify groups: its values do not compare exactly on every engine; nothing "
                "was read. Find keys in text, whole numbers, truth values or dates, or cut numbers into bins first."
            )
