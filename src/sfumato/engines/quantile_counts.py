"""Rows by cell and lattice value, for quantiles: each person's share is limited before anything is counted.

At most so many groups of a person are kept, those with the smallest keyed hash, and in each at most so many rows: a
person's values in a group are put in the order of their own keyed hashes, and rows count until there are enough.
Other people's rows never decide what is kept. Proof: docs/proofs/quantiles.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from sfumato.engines.bounded import KeyColumn, Share, cells_of, placed
from sfumato.engines.compile import predicate
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.lattice import Lattice
from sfumato.engines.totals import brought_out, total

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np

    Counts = tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]

__all__ = ["lattice_counts", "rows_by_value"]


def lattice_counts(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    lattice: Lattice,
) -> list[Counts]:
    """For each cell of the product of ``keys``, in its order: the lattice values that occur, rising, and their rows.

    Rows whose value is missing do not count. Sensitive: all of it is exact.
    """
    import numpy as np

    found = brought_out(rows_by_value(table, where=where, keys=keys, share=share, lattice=lattice))
    cells, values, rows = (np.array(found[name], dtype=np.int64) for name in ("cell", "value", "total"))
    order = np.lexsort((values, cells))
    cells, values, rows = cells[order], values[order], rows[order]
    size = prod(key.size for key in keys)
    cuts = np.searchsorted(cells, np.arange(size + 1))
    return [(values[cuts[cell] : cuts[cell + 1]], rows[cuts[cell] : cuts[cell + 1]]) for cell in range(size)]


def rows_by_value(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    lattice: Lattice,
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``cell``, ``value`` and ``total`` (and ``world``), one row for each pair that occurs.

    Guarantee: with a share, a person adds at most ``rows_per_group`` rows to each of at most ``groups`` cells; which
    they are hangs on that person's own rows and the secret alone. ``world`` names a column that tells several datasets
    in one table apart; each is counted as if it were alone.
    """
    import ibis

    rows = table if where is None else table.filter(predicate(where, table))
    rows, places = placed(rows, [lattice])
    kept: dict[str, Any] = {"value": places[lattice], "one": ibis.literal(1, type="int64")}
    if share is not None:
        kept["person"] = rows[share.column]
    if world is not None:
        kept["world"] = rows[world]
    cells = cells_of(rows, keys, kept)
    cells = cells.filter(cells.value.notnull())
    side = [] if world is None else ["world"]
    dialect = dialect_of(table)
    if share is None:
        return cells.group_by([*side, "cell", "value"]).aggregate(total=total(cells.one, dialect))
    cells = cells.filter(cells.person.notnull())
    own = cells.group_by([*side, "person", "cell", "value"]).aggregate(rows=cells.one.sum().cast("int64"))
    if keys:
        own = _few_groups(own, share, side)
    own = _few_rows(own, share, side)
    return own.group_by([*side, "cell", "value"]).aggregate(total=total(own.rows, dialect))


def _few_groups(own: ir.Table, share: Share, side: Sequence[str]) -> ir.Table:
    """Keep all rows of at most ``groups`` groups of each person: those with the smallest keyed hash."""
    import ibis

    own = own.mutate(hashed=keyed_hash(share.secret, [own.person, own.cell], dialect_of(own)))
    window = ibis.window(group_by=[*side, "person"], order_by=["hashed", "cell"])
    own = own.mutate(place=ibis.dense_rank().over(window))
    return own.filter(own.place < share.limit.groups).drop("hashed", "place")


def _few_rows(own: ir.Table, share: Share, side: Sequence[str]) -> ir.Table:
    """Keep at most ``rows_per_group`` rows of each person in each group, by the keyed hash of each value there."""
    import ibis

    own = own.mutate(hashed=keyed_hash(share.secret, [own.person, own.cell, own.value], dialect_of(own)))
    window = ibis.cumulative_window(group_by=[*side, "person", "cell"], order_by=["hashed", "value"])
    own = own.mutate(upto=own.rows.sum().over(window).cast("int64"))
    most, none = (ibis.literal(number, type="int64") for number in (share.limit.rows_per_group, 0))
    left = ibis.greatest(most - (own.upto - own.rows), none)
    own = own.mutate(rows=ibis.least(own.rows, left))
    return own.filter(own.rows > none).drop("hashed", "upto")
