"""Rows by cell and lattice value, for quantiles and histograms: a person's share is limited before anything is counted.

A limited number of groups of a person is kept, those with the smallest keyed hash, and in each a limit on rows: a
person's values in a group are put in the order of their own keyed hashes, and rows count until there are enough.
Other people's rows never decide what is kept. Proof: docs/proofs/quantiles.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from sfumato.engines.bounded import in_a_cell, placed
from sfumato.engines.contribution_limits import KeyColumn, Share, kept_rows
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression, Term
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.lattice import Lattice
from sfumato.engines.operands import whole
from sfumato.engines.sufficient_statistics import Histogram
from sfumato.engines.totals import whole_numbers

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np

    Counts = tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]

__all__ = ["bounded_histogram", "lattice_counts", "rows_by_value", "rows_by_values"]


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

    found = whole_numbers(rows_by_value(table, where=where, keys=keys, share=share, lattice=lattice))
    cells, values, rows = (found[name] for name in ("cell", "value", "total"))
    order = np.lexsort((values, cells))
    cells, values, rows = cells[order], values[order], rows[order]
    size = prod(key.size for key in keys)
    cuts = np.searchsorted(cells, np.arange(size + 1))
    return [(values[cuts[cell] : cuts[cell + 1]], rows[cuts[cell] : cuts[cell + 1]]) for cell in range(size)]


def bounded_histogram(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    histogram: Histogram,
) -> list[list[int]]:
    """The parts of a histogram by cell of the product of ``keys``, in its order: one list for each lattice point.

    The engine counts rows by cell and lattice point, and no more than one number for each of these leaves it.
    Sensitive: all of it is exact.
    """
    import numpy as np

    found = whole_numbers(rows_by_value(table, where=where, keys=keys, share=share, lattice=histogram.lattice))
    totals = np.zeros((histogram.lattice.steps + 1, prod(key.size for key in keys)), dtype=np.int64)
    totals[found["value"], found["cell"]] = found["total"]
    return [[rows * histogram.height for rows in part] for part in totals.tolist()]


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

    Guarantee and ``world``: as for :func:`rows_by_values`.
    """
    return rows_by_values(table, where=where, keys=keys, share=share, lattices={"value": lattice}, world=world)


def rows_by_values(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    lattices: Mapping[str, Lattice],
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``cell``, one for each lattice by its name, and ``total`` (and ``world``), for all that occur.

    Rows in which a value is missing do not count. ``world`` names a column that separates several datasets in one
    table; each is counted as if it were alone.

    Guarantee: with a share, a person adds at most ``rows_per_group`` rows to each of at most ``groups`` cells; which
    they are depends on that person's own rows and the secret alone.
    """
    for lattice in lattices.values():
        told = ~Term(lattice.value).isnull()  # rows without a value must not take a place of those that have one
        where = told if where is None else where & told
    worked_out = [lattice.value for lattice in lattices.values()]
    kept = kept_rows(table, where=where, keys=keys, share=share, values=worked_out, world=world)
    rows, places = placed(kept.rows, list(lattices.values()), kept.values)
    side = {} if world is None else {"world": rows[kept.world]}
    person = {} if share is None else {"person": rows[kept.person]}
    values = {name: places[lattice] for name, lattice in lattices.items()}
    rows = rows.select(**side, **person, cell=rows[kept.cell], **values, one=whole(1))
    dialect = dialect_of(table)
    if share is None or share.single:
        totals = rows.group_by([*side, "cell", *values]).aggregate(total=dialect.total(rows.one))
        return in_a_cell(totals, "total", loose=kept.loose)
    own = rows.group_by([*side, "person", "cell", *values]).aggregate(rows=rows.one.sum().cast("int64"))
    own = _few_rows(own, share, list(side), list(values))
    return own.group_by([*side, "cell", *values]).aggregate(total=dialect.total(own.rows))


def _few_rows(own: ir.Table, share: Share, side: Sequence[str], values: Sequence[str]) -> ir.Table:
    """Keep at most ``rows_per_group`` rows of each person in each group, by the keyed hash of their values there."""
    import ibis

    held = [own[name] for name in values]
    own = own.mutate(hashed=keyed_hash(share.secret, [own.person, own.cell, *held], dialect_of(own)))
    window = ibis.cumulative_window(group_by=[*side, "person", "cell"], order_by=["hashed", *values])
    own = own.mutate(upto=own.rows.sum().over(window).cast("int64"))
    most, none = (ibis.literal(number, type="int64") for number in (share.limit.rows_per_group, 0))
    left = ibis.greatest(most - (own.upto - own.rows), none)
    own = own.mutate(rows=ibis.least(own.rows, left))
    return own.filter(own.rows > none).drop("hashed", "upto")
