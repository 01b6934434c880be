"""Two tables of one engine beside each other, row by row where some columns are equal.

Before two private tables are joined, each is held to a number of rows a person. Without that the rows of one person
multiply: ten thousand here and ten thousand there make a hundred million, and how long that takes reveals whether the
person is there. Which rows are taken depends on the person's own rows and a secret alone, so no person changes what is
taken of another. Proof: docs/proofs/bounded_totals.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Type
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.operands import Operand, column, double, kind_of, whole

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["few_rows", "joined"]

# A number is hashed by two whole ones that every engine works out alike: steps of 2^-10, and of 2^-62 next to 0.
STEPS = ((2.0**42, 2.0**10), (2.0**-10, 2.0**62))


def joined(
    table: ir.Table, other: ir.Table, *, on: Sequence[tuple[str, str]], named: str, unmatched: bool = False
) -> ir.Table:
    """All pairs of rows in which the columns ``on`` (here, there) are equal; nothing is equal to what is missing.

    The columns of the other table are called ``named``, a dot and their own name. With ``unmatched``, a row that meets
    none stays, and what the other table would say of it is missing.
    """
    beside = other.view().rename({f"{named}.{column}": column for column in other.columns})
    pairs = [_met(table[here]) == _met(beside[f"{named}.{there}"]) for here, there in on]
    return table.left_join(beside, pairs) if unmatched else table.inner_join(beside, pairs)


def _met(column: ir.Value) -> ir.Value:
    """What is compared in a join: of a time its day."""
    return column.cast("date") if column.type().is_timestamp() else column


def few_rows(
    table: ir.Table, *, person: str, most: int, on: Sequence[str], secret: str, world: str | None = None
) -> ir.Table:
    """At most ``most`` rows of each person, of those that a join on the columns ``on`` can match.

    Guarantee: which rows are taken depends on the person's own rows and the secret alone. They are taken by the keyed
    hash of what they are joined on first, the same on both sides of a join, so that rows which match are taken
    together; then by that of their content. The same on every engine. ``world`` names a column that tells several
    datasets in one table apart; each is treated as if it were alone, and the hash does not see it.
    """
    import ibis

    dialect, prefix = dialect_of(table), "few_"
    while any(name.casefold().startswith(prefix) for name in table.columns):
        prefix += "_"
    beside = [name for name in on if name != person]
    rows = table.filter(*(table[name].notnull() for name in (person, *beside)))
    content = [name for name in rows.columns if name not in (*on, person, world)]
    known = {name: column(rows, name, dialect) for name in content if kind_of(rows[name].type()) is not Type.OTHER}
    parts = [part for name in known for part in _parts(known[name])]
    order = {f"{prefix}met": keyed_hash(secret, [rows[person], *(rows[name] for name in beside)], dialect)}
    if parts:
        order[f"{prefix}content"] = keyed_hash(secret, [rows[person], *parts], dialect, missing=True)
    marked = rows.mutate(**order)
    numbers = [column(marked, name, dialect).value for name in known if known[name].type is Type.NUMBER]
    group = [person] if world is None else [world, person]
    window = ibis.window(group_by=group, order_by=[*order, *numbers])
    marked = marked.mutate(**{f"{prefix}place": ibis.row_number().over(window).cast("int64")})
    return marked.filter(marked[f"{prefix}place"] < whole(most)).drop(*order, f"{prefix}place")


def _parts(known: Operand) -> list[ir.Value]:
    """What a value is hashed by: itself or, if it is a number, two whole ones; null where it is missing."""
    import ibis

    if known.type is not Type.NUMBER:
        return [known.nullable()]
    steps = (
        (ibis.least(ibis.greatest(known.value, double(-far)), double(far)) * double(fine)).floor().cast("int64")
        for far, fine in STEPS
    )
    return [
        step if known.missing is None else ibis.cases((known.missing, ibis.null("int64")), else_=step) for step in steps
    ]
