"""JOIN in SQL: the same joins as in Python, with tables that the caller hands over."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from sfumato.errors import InvalidInput
from sfumato.tables.sql.refusals import name_of, only, refused
from sfumato.tables.sql.rows import RowScope

if TYPE_CHECKING:
    from sfumato.tables.public import PublicTable
    from sfumato.tables.table import Table

__all__ = ["joined"]


def joined(
    select: exp.Select, table: "Table", rows: RowScope, others: Sequence["Table | PublicTable"]
) -> tuple["Table", RowScope]:
    """The table with those that JOIN names, and what can be named in its rows then."""
    known = {other.dataset.name: other for other in others}
    if select.args.get("joins") and (rows.names or rows.closed):
        raise refused("a JOIN with a subquery")
    for node in select.args.get("joins") or ():
        left = node.side == "LEFT"
        for word in (node.method, "" if left else node.side, "" if left and node.kind == "OUTER" else node.kind):
            if word not in ("", "INNER"):
                raise refused(f"{word} JOIN")
        only(node, "this", "on", "using", "kind", "side")
        if not (node.args.get("on") or node.args.get("using")):
            raise refused("a JOIN without ON")
        there = node.this
        if not isinstance(there, exp.Table) or not isinstance(there.this, exp.Identifier):
            raise refused("a JOIN with anything but a table")
        only(there, "this", "alias")
        if there.name not in known:
            names = ", ".join(map(repr, known)) or "none"
            raise InvalidInput(
                f"there is no table {there.name!r} to join; nothing was done. Hand it over: sql(text, other). "
                f"There are: {names}."
            )
        other, called = known[there.name], there.alias or there.name
        if called in (rows.called, *rows.beside):
            raise InvalidInput(f"two tables are called {called!r}; nothing was done. Give one another name with AS.")
        beside = replace(rows, beside={**rows.beside, called: other.dataset.name})
        public = hasattr(other, "content")
        if left and not public:
            raise refused("LEFT JOIN of a private table")
        pairs = _pairs(node, beside, called)
        rows = replace(beside, elsewhere=_elsewhere(beside, table, other, pairs if node.args.get("using") else ()))
        table = table.join(other, on=pairs, how="left" if left else "inner")
    return table, rows


def _elsewhere(
    rows: RowScope, table: "Table", other: "Table | PublicTable", merged: Sequence[tuple[str, str]]
) -> dict[str, str | None]:
    """What a name without a table can mean: a column that a joined table is known to have, and this one is not.

    Columns that USING makes one are those of the table that is asked.
    """
    found = dict(rows.elsewhere)
    known = (*other.columns,) if hasattr(other, "columns") else (*other.keys, *other.bounds)
    taken = {there for _, there in merged}
    for column in dict.fromkeys(known):
        if column in taken or column in table.keys or column in table.bounds:
            continue
        found[column] = None if column in found else f"{other.dataset.name}.{column}"
    return found


def _pairs(node: exp.Join, rows: RowScope, called: str) -> list[tuple[str, str]]:
    """The columns that must be equal, here and there."""
    using = node.args.get("using")
    if using:
        return [(column.name, column.name) for column in using]
    condition = node.args["on"]
    pairs = []
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        plain = cast("exp.Expression", part.unnest() if isinstance(part, exp.Paren) else part)
        if not isinstance(plain, exp.EQ):
            raise refused(f"{name_of(plain)} in ON")
        sides = [plain.this, plain.expression]
        if not all(isinstance(side, exp.Column) for side in sides):
            raise refused("a computed value in ON")
        if sides[0].table == called:
            sides.reverse()
        here, there = sides
        if there.table != called or here.table == called:
            raise InvalidInput(
                f"ON must say which column of {called!r} equals which column before it, each with its table's name; "
                "nothing was done."
            )
        pairs.append((rows.column(here), there.name))
    return pairs
