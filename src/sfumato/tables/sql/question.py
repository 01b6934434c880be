"""A SELECT as a question to a table: what it is about, how it is grouped, and what is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from sfumato.engines.expressions import Expression, Named, Term, col, columns_of
from sfumato.errors import InvalidInput
from sfumato.tables.keys import Keys
from sfumato.tables.persons import is_per_person
from sfumato.tables.sql.answer import AnswerReader, Selected, split, view_of
from sfumato.tables.sql.having import kept
from sfumato.tables.sql.joining import joined
from sfumato.tables.sql.measures import Aggregates, is_aggregate
from sfumato.tables.sql.persons import is_grouped, joined_person, one_row_a_person, split_joins, with_members
from sfumato.tables.sql.reading import condition_tree, select_tree, shallow
from sfumato.tables.sql.refusals import name_of, only, refused, unknown
from sfumato.tables.sql.rows import RowScope

if TYPE_CHECKING:
    from sfumato.core.question import Question
    from sfumato.tables.public import PublicTable
    from sfumato.tables.table import Table

__all__ = ["condition", "question"]

AFTER = ("order", "limit", "offset")  # what is done with the answer


def condition(text: str, called: str, beside: Sequence[str] = ()) -> Expression:
    """The condition that a text states on the rows of a table that is ``called`` so, and of those joined with it.

    >>> condition("age >= 65 AND diagnosis = 'ILI'", "visits") == (col("age") >= 65) & (col("diagnosis") == "ILI")
    True
    """
    with shallow():
        return RowScope(called=called, beside={name: name for name in beside}).condition(condition_tree(text))


def question(table: "Table", text: str, others: "Sequence[Table | PublicTable]" = ()) -> "Question":
    """The question that a SELECT asks of a table. Nothing is read, and no engine sees the text."""
    if table.by:
        raise InvalidInput("the table is grouped already; nothing was done. Let the SQL say GROUP BY, or the methods.")
    with shallow():
        select = select_tree(text)
        while isinstance(select, exp.Paren | exp.Subquery):
            only(select, "this")
            select = select.this
        if not isinstance(select, exp.Select):
            raise unknown(select)
        only(
            select,
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "with_",
            "kind",
            "order",
            "limit",
            "offset",
        )
        select, table, rows = _origin(select, table, _named_subqueries(select), others)
        items = [Selected.of(node) for node in select.expressions]
        chosen = _chosen_keys(select, table, rows, items)
        about_keys, about_answer = _having(select, items)
        keys = _kept(tuple(_key(item, table, rows) for item in chosen), rows, about_keys)
        table = replace(table, gate=table._gate, by=keys)
        named = {each.column: item for each, item in zip(keys, chosen, strict=True)}
        reader = AnswerReader(
            rows=rows,
            aggregates=_aggregates(table, rows),
            items=items,
            keys=named,
        )
        return _asked(table, select, reader, about_answer)


# -------------------------------------------------------------------------------------------------- where rows are from


def _named_subqueries(select: exp.Select) -> dict[str, exp.Expression]:
    """The subqueries that WITH names, each as a row-wise one."""
    found: dict[str, exp.Expression] = {}
    clause = select.args.get("with_")
    if clause is None:
        return found
    only(clause, "expressions")
    for each in clause.expressions:
        only(each, "this", "alias")
        only(each.args["alias"], "this")
        if each.alias in found:
            raise InvalidInput(f"WITH names {each.alias!r} twice; nothing was done.")
        found[each.alias] = each.this
    return found


def _origin(
    select: exp.Select,
    table: "Table",
    named: Mapping[str, exp.Expression],
    others: "Sequence[Table | PublicTable]" = (),
    *,
    inside: bool = False,
) -> tuple[exp.Select, "Table", RowScope]:
    """The table with the conditions of all subqueries, and what can be named in its rows.

    Of the SELECT comes back what is left to read: who is IN a subquery has become a plain condition. ``inside`` a
    subquery rows may be from any of the tables.
    """
    clause = select.args.get("from_")
    if clause is None:
        raise InvalidInput(f"the SQL does not say where rows are from; nothing was done. Say FROM {_own(table)}.")
    only(clause, "this")
    origin, declared = clause.this, table
    only(origin, "this", "alias")
    alias = origin.args.get("alias")
    if alias is not None:
        only(alias, "this")
    private = [cast("Table", each) for each in others if hasattr(each, "per_person")] if inside else []
    tables = {each.dataset.name: each for each in private}
    match origin:
        case exp.Table(this=exp.Identifier()) if origin.name in named:
            table, rows = _row_wise(
                named[origin.name], table, _before(named, origin.name), others, called=origin.alias or origin.name
            )
        case exp.Table(this=exp.Identifier()) if origin.name == table.dataset.name:
            rows = RowScope(called=origin.alias or origin.name)
        case exp.Table(this=exp.Identifier()) if origin.name in tables:
            table, rows = tables[origin.name], RowScope(called=origin.alias or origin.name)
        case exp.Table(this=exp.Identifier()):
            raise InvalidInput(f"there is no table {origin.name!r} here; nothing was done. Say FROM {_own(table)}.")
        case exp.Subquery():
            table, rows = _row_wise(origin.this, table, named, others, called=origin.alias or None)
        case exp.Table():
            raise refused(f"{name_of(origin.this)} as a table")
        case _:
            raise unknown(origin)

    def subquery(node: exp.Expression) -> tuple["Table", RowScope]:
        """A subquery in a condition or a join, or one that WITH names; over the tables as they were declared."""
        if isinstance(node, exp.Table):
            only(node, "this", "alias")
            return _row_wise(named[node.name], declared, _before(named, node.name), others, called=None)
        while isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            node = node.this
        return _row_wise(node, declared, named, others, called=None)

    persons, select = split_joins(select, list(named))
    table, rows = _joined(select, table, rows, others)
    for node in persons:
        select, table, rows = joined_person(node, select, table, rows, subquery)
    select, table, rows = with_members(select, table, rows, subquery)
    where = select.args.get("where")
    return select, (table if where is None else table.where(rows.condition(where.this))), rows


def _before(named: Mapping[str, exp.Expression], name: str) -> dict[str, exp.Expression]:
    """WITH sees what stands before it."""
    return dict(list(named.items())[: list(named).index(name)])


def _joined(
    select: exp.Select, table: "Table", rows: RowScope, others: "Sequence[Table | PublicTable]"
) -> tuple["Table", RowScope]:
    """The joins with tables; one row a person is joined by the columns that it has."""
    if not is_per_person(table.joins) or not rows.closed:
        return joined(select, table, rows, others)
    table, beside = joined(select, table, replace(rows, names={}, closed=False), others)
    return table, replace(beside, names=rows.names, closed=True)


def _row_wise(
    select: exp.Expression,
    table: "Table",
    named: Mapping[str, exp.Expression],
    others: "Sequence[Table | PublicTable]",
    *,
    called: str | None,
) -> tuple["Table", RowScope]:
    """A subquery that computes values of each row and leaves rows out, or makes one row a person of them."""
    if not isinstance(select, exp.Select):
        if isinstance(select, exp.Table):
            only(select, "this", "alias")  # a join in brackets is refused as a join
        raise unknown(select)
    if is_grouped(select):
        only(select, "expressions", "from_", "joins", "where", "group", "having", "distinct", "order")
        select, table, rows = _origin(select, table, named, others, inside=True)
        table, made = one_row_a_person(select, table, rows)
        return table, RowScope(called=called, names=made, closed=True)
    only(select, "expressions", "from_", "where")
    select, table, rows = _origin(select, table, named, others, inside=True)
    names: dict[str, Term | Expression] = {}
    closed = True
    for node in select.expressions:
        if isinstance(node, exp.Star):
            only(node)
            names, closed = {**rows.names, **names}, rows.closed
            continue
        item = Selected.of(node)
        if item.name is None:
            raise InvalidInput("a value in a subquery has no name; nothing was done. Give it one with AS.")
        if item.name in names:
            raise InvalidInput(f"a subquery names {item.name!r} twice; nothing was done.")
        names[item.name] = rows.named(item.node) if isinstance(item.node, exp.Column) else rows.value(item.node)
    return table, RowScope(called=called, names=names, closed=closed)


def _own(table: "Table") -> str:
    name = table.dataset.name
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


# ------------------------------------------------------------------------------------------------- what is grouped by


def _chosen_keys(select: exp.Select, table: "Table", rows: RowScope, items: Sequence[Selected]) -> list[Selected]:
    group = select.args.get("group")
    chosen: list[Selected] = []
    if group is not None:
        only(group, "expressions")
        chosen = [_chosen(node, table, rows, items) for node in group.expressions]
    for item in items:
        if isinstance(item.node, exp.Star):
            raise refused("SELECT *")
        if not item.many and item not in chosen:
            rows.value(item.node)  # what is not understood is refused by its name first
            raise InvalidInput(
                f"{item.name or name_of(item.node)!r} is neither grouped by nor inside an aggregate; nothing was done. "
                "Rows themselves are never released."
            )
    return chosen


def _having(select: exp.Select, items: Sequence[Selected]) -> tuple[list[exp.Expression], list[exp.Expression]]:
    """The parts of HAVING that are about keys, which are public, and those about what is aggregated."""
    clause = select.args.get("having")
    if clause is None:
        return [], []
    aliases = {item.alias for item in items if item.many and item.alias is not None}
    keys: list[exp.Expression] = []
    answer: list[exp.Expression] = []
    for part in split(clause.this):
        names = {each.name for each in part.find_all(exp.Column) if not each.table}
        (answer if is_aggregate(part) or names & aliases else keys).append(part)
    return keys, answer


def _kept(keys: tuple[Keys, ...], rows: RowScope, parts: Sequence[exp.Expression]) -> tuple[Keys, ...]:
    labels = RowScope(called=rows.called, names={each.column: col(each.column) for each in keys}, closed=True)
    for part in parts:
        keys = kept(keys, labels.condition(part))
    return keys


def _chosen(node: exp.Expression, table: "Table", rows: RowScope, items: Sequence[Selected]) -> Selected:
    """The selected item that is grouped by: given by its place, its alias, or written out again."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.name) if node.name.isdecimal() and node.name.isascii() and len(node.name) < 10 else 0
        if not 1 <= place <= len(items):
            raise InvalidInput(f"GROUP BY names a place beyond the {len(items)} that are selected; nothing was done.")
        return _single(items[place - 1])
    if isinstance(node, exp.Column) and not node.table:
        called = [item for item in items if item.alias == node.name]
        if len(called) > 1:
            raise InvalidInput(
                f"two selected values are called {node.name!r}; nothing was done. Give each its own name."
            )
        if called and called[0].node != node and _is_column(node.name, table, rows, called[0]):
            raise InvalidInput(
                f"{node.name!r} in GROUP BY could be the column or what is selected AS that; nothing was done. Give "
                "what is selected another name."
            )
        if called:
            return _single(called[0])
    if is_aggregate(node):
        raise refused("an aggregate in GROUP BY")
    wanted = rows.value(node).node
    for item in items:
        if not item.many and not isinstance(item.node, exp.Star) and rows.value(item.node).node == wanted:
            return item
    raise InvalidInput("what is grouped by is not selected; nothing was done. Select it too: groups have names.")


def _is_column(name: str, table: "Table", rows: RowScope, item: Selected) -> bool:
    """Whether a name is known to be that of a column too; not all columns are declared."""
    used = () if item.many else columns_of(rows.value(item.node))
    return any(name in known for known in (table.keys, table.bounds, rows.names, used))


def _single(item: Selected) -> Selected:
    if item.many:
        raise refused("an aggregate in GROUP BY")
    return item


def _key(item: Selected, table: "Table", rows: RowScope) -> Keys:
    value = rows.value(item.node)
    if item.name is None:
        raise InvalidInput("a computed value to group by has no name; nothing was done. Give it one with AS.")
    if isinstance(value.node, Named):
        declared = table.group_by(value.node.column).by[-1]
        same = item.name == declared.column
        return declared if same else replace(declared, column=item.name, value=value.node)
    return replace(table.group_by(key=value).by[-1], column=item.name)


# ------------------------------------------------------------------------------------------------------ what is asked


def _aggregates(table: "Table", rows: RowScope) -> Aggregates:
    return Aggregates(rows=rows, unit=getattr(getattr(table._gate, "unit", None), "column", None))


def _asked(table: "Table", select: exp.Select, reader: AnswerReader, having: Sequence[exp.Expression]) -> "Question":
    shown = reader.shown()
    if not shown:
        raise InvalidInput("no aggregate is selected; nothing was done. Ask for COUNT(*), SUM(…), AVG(…) or the like.")
    view = view_of(reader, shown, select, having)
    if list(reader.asked) == ["count"] and reader.asked["count"].plain_count:
        question = table.count()
    else:
        question = table.agg(**{name: each.asked for name, each in reader.asked.items()})
    if view is None:
        return question
    labels = question.query.labels()
    view.check(labels, question.query.names, len(next(iter(labels.values()), (None,))))
    return replace(question, gate=question._gate, view=view)
