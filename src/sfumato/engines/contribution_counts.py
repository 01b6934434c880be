"""How persons are spread: how many of them have how many rows in how many groups, or values how large.

Each person falls into exactly one bin, worked out from that person's own rows alone; then persons are counted by bin.
No limit is applied: what is looked for is where one should lie. Sensitive: all counts are exact.

Proof: docs/proofs/choosing_limits.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.core.limits import MOST, Limit
from sfumato.engines.bounded import placed
from sfumato.engines.contribution_limits import KeyColumn, Share, kept_rows
from sfumato.engines.expressions import Expression, Term
from sfumato.engines.lattice import Lattice
from sfumato.engines.operands import whole
from sfumato.engines.totals import brought_out

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["persons_by_contribution", "persons_by_magnitude", "persons_in_bins", "persons_of_magnitude"]


def persons_by_contribution(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    person: str,
    rows: Sequence[int],
    groups: Sequence[int],
) -> list[int]:
    """How many persons lie in each pair of bins, of rows and of groups, the latter fastest; empty bins are 0.

    ``rows`` and ``groups`` are rising edges: a bin holds what is above the edge before it and up to its own; the last
    one, which has no edge, holds whatever is above all of them. Rows are those in the group where a person has most.
    """
    plan = persons_in_bins(table, where=where, keys=keys, person=person, rows=rows, groups=groups)
    return _counted(plan, (len(rows) + 1) * (len(groups) + 1))


def persons_in_bins(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    person: str,
    rows: Sequence[int],
    groups: Sequence[int],
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``bin`` and ``persons`` (and ``world``), one row for each bin that anyone is in.

    Guarantee: a person is in one bin, and which depends on that person's rows alone. ``world`` names a column that
    tells several datasets in one table apart; each is counted as if it were alone.
    """
    kept = kept_rows(table, where=where, keys=keys, share=_all_rows(person), world=world)
    side = {} if world is None else {"world": kept.rows[kept.world]}
    found = kept.rows.select(**side, person=kept.rows[kept.person], cell=kept.rows[kept.cell], one=whole(1))
    pairs = found.group_by([*side, "person", "cell"]).aggregate(rows=found.one.sum().cast("int64"), one=whole(1))
    pairs = pairs.select(*side, "person", "rows", one=whole(1))
    own = pairs.group_by([*side, "person"]).aggregate(most=pairs.rows.max(), groups=pairs.one.sum().cast("int64"))
    bins = _bin(own.most, rows) * whole(len(groups) + 1) + _bin(own.groups, groups)
    return _by_bin(own.select(*side, bin=bins, one=whole(1)), list(side))


def persons_by_magnitude(
    table: ir.Table, *, where: Expression | None, person: str, lattice: Lattice, edges: Sequence[int]
) -> list[int]:
    """How many persons' largest magnitude lies in each bin, for three kinds of persons; empty bins are 0.

    First those without a value below 0, then those without one above 0, then those with both. ``edges`` rise, in steps
    of the lattice, whose middle is 0. Persons without a value do not count.
    """
    plan = persons_of_magnitude(table, where=where, person=person, lattice=lattice, edges=edges)
    return _counted(plan, 3 * (len(edges) + 1))


def persons_of_magnitude(
    table: ir.Table,
    *,
    where: Expression | None,
    person: str,
    lattice: Lattice,
    edges: Sequence[int],
    world: str | None = None,
) -> ir.Table:
    """The plan: columns ``bin`` and ``persons`` (and ``world``), one row for each bin that anyone is in.

    Guarantee: a person is in one bin, and which depends on that person's rows alone.
    """
    import ibis

    told = ~Term(lattice.value).isnull()
    where = told if where is None else where & told
    kept = kept_rows(table, where=where, keys=(), share=_all_rows(person), values=[lattice.value], world=world)
    rows, places = placed(kept.rows, [lattice], kept.values)
    side = {} if world is None else {"world": rows[kept.world]}
    found = rows.select(**side, person=rows[kept.person], place=places[lattice])
    own = found.group_by([*side, "person"]).aggregate(least=found.place.min(), most=found.place.max())
    zero, middle = whole(0), whole(lattice.steps // 2)
    own = own.select(
        *side, "person", up=ibis.greatest(own.most - middle, zero), down=ibis.greatest(middle - own.least, zero)
    )
    sign = ibis.ifelse(own.down == zero, whole(0), ibis.ifelse(own.up == zero, whole(1), whole(2)))
    bins = sign * whole(len(edges) + 1) + _bin(ibis.greatest(own.up, own.down), edges)
    return _by_bin(own.select(*side, bin=bins, one=whole(1)), list(side))


def _all_rows(person: str) -> Share:
    """All rows of each person: nothing is left out, so no secret decides anything."""
    return Share(column=person, limit=Limit(groups=MOST, rows_per_group=MOST), secret="")


def _bin(number: ir.Value, edges: Sequence[int]) -> ir.Value:
    """How many edges a number is above of."""
    import ibis

    found: ir.Value = whole(0)
    for edge in edges:
        found = found + ibis.ifelse(number > whole(edge), whole(1), whole(0))
    return found


def _by_bin(own: ir.Table, side: Sequence[str]) -> ir.Table:
    return own.group_by([*side, "bin"]).aggregate(persons=own.one.sum().cast("int64"))


def _counted(plan: ir.Table, size: int) -> list[int]:
    found, persons = brought_out(plan), [0] * size
    for place, count in zip(found["bin"], found["persons"], strict=True):
        persons[place] = count
    return persons
