"""Questions about persons in SQL: groups by the person in a subquery, DISTINCT, and persons who are IN another one.

All of it becomes the steps of the Python API: one row a person (``per_person``), and what other rows of the same person
say beside a row (``with_persons``). Whatever is not about one person alone is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from sqlglot import exp

from sfumato.core.units import Family, User
from sfumato.engines.expressions import Expression, Named, Term, col, when
from sfumato.engines.person_values import Fold, PersonValue
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.clamped import clamped
from sfumato.tables.of_person import AskedOfPerson
from sfumato.tables.persons import PersonJoin, is_per_person, no_persons
from sfumato.tables.sql.measures import is_aggregate
from sfumato.tables.sql.refusals import AGGREGATES, name_of, only, refused, unknown
from sfumato.tables.sql.rows import RowScope, constant

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["is_grouped", "joined_person", "one_row_a_person", "person_column", "split_joins", "with_members"]

BY_ANOTHER = {"MIN_BY": Fold.FIRST, "ARG_MIN": Fold.FIRST, "MAX_BY": Fold.LAST, "ARG_MAX": Fold.LAST}
IN_ORDER = {"FIRST": Fold.FIRST, "FIRST_VALUE": Fold.FIRST, "LAST": Fold.LAST, "LAST_VALUE": Fold.LAST}
EXTREMES = {"MIN": Fold.LEAST, "MAX": Fold.GREATEST}
ADDED = {"SUM": Fold.SUM, "AVG": Fold.MEAN}
CONDITIONS = ("BOOL_OR", "BOOL_AND", "EVERY")
FUNCTIONS = frozenset({"COUNT", "NTH_VALUE", *BY_ANOTHER, *IN_ORDER, *EXTREMES, *ADDED, *CONDITIONS})

Moved = TypeVar("Moved")
Subquery = Callable[[exp.Expression], tuple["Table", RowScope]]
"""What makes the table and the names of a subquery."""


def is_grouped(select: exp.Expression) -> bool:
    """Whether a SELECT has groups, or leaves out what occurs twice."""
    return any(select.args.get(part) for part in ("group", "having", "distinct"))


def person_column(table: "Table") -> str:
    """The column that identifies persons; a table of a vault that does not protect persons is refused."""
    unit = getattr(table._gate, "unit", None)
    if not isinstance(unit, User | Family):
        raise no_persons(unit)
    return unit.column


# --------------------------------------------------------------------------------------------------- one row a person


def one_row_a_person(
    select: exp.Select, table: "Table", rows: RowScope
) -> tuple["Table", dict[str, Term | Expression]]:
    """The table with one row a person that a grouped subquery makes, and what it names."""
    reader = _Reader(rows=rows, table=table, person=person_column(table))
    distinct = select.args.get("distinct")
    if distinct is not None and (select.args.get("group") or select.args.get("having")):
        raise refused("DISTINCT")
    if distinct is not None and distinct.args.get("on") is not None:
        return reader.first_rows(select, distinct)
    if select.args.get("order"):
        raise refused("ORDER BY in a subquery")
    if distinct is None:
        reader.check_group(select)
    named = [reader.item(node) for node in select.expressions]
    reader.reserved = frozenset(name.casefold() for name, _ in named)
    if distinct is not None and any(not reader.is_person(node) for _, node in named):
        raise refused("DISTINCT")
    names: dict[str, Term | Expression] = {}
    for name, node in named:
        if name in names:
            raise InvalidInput(f"a subquery names {name!r} twice; nothing was done.")
        names[name] = reader.value(node, name)
    having = select.args.get("having")
    kept = None if having is None else reader.condition(having.this, names)
    made = table.per_person(**reader.asked)
    return (made if kept is None else made.where(kept)), names


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Reads what a grouped subquery computes of the rows of one person."""

    rows: RowScope
    table: "Table"
    person: str
    found: list[PersonValue] = field(default_factory=list)
    truths: dict[str, Term | Expression] = field(default_factory=dict)
    """What is made of several values."""
    reserved: frozenset[str] = frozenset()
    """Names that the subquery gives."""

    @property
    def asked(self) -> dict[str, AskedOfPerson]:
        return {each.name: AskedOfPerson(lambda _, each=each: each) for each in self.found}  # type: ignore[misc]  # a default binds each

    def is_person(self, node: exp.Expression) -> bool:
        """Whether something is the column that identifies persons."""
        plain = _bare(node)
        return isinstance(plain, exp.Column) and self.rows.value(plain).node == Named(column=self.person)

    def item(self, node: exp.Expression) -> tuple[str, exp.Expression]:
        """The name and the value of what is selected."""
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise refused("SELECT *")
        if isinstance(node, exp.Alias):
            only(node, "this", "alias")
            return node.alias, node.this
        if isinstance(node, exp.Column):
            return node.name, node
        plain = _function_of(node)
        return (plain.lower() if plain else "value"), node

    def check_group(self, select: exp.Select) -> None:
        """Refuse groups by anything but the person."""
        group = select.args.get("group")
        if group is None:
            raise refused("HAVING in a subquery without GROUP BY")
        only(group, "expressions")
        nodes = [self._placed(node, select) for node in group.expressions]
        if len(nodes) != 1 or not self.is_person(nodes[0]):
            raise refused("GROUP BY in a subquery", f"only by the person is: GROUP BY {self.person}")

    def _placed(self, node: exp.Expression, select: exp.Select) -> exp.Expression:
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) < 10:
            place = int(node.name)
            if not 1 <= place <= len(select.expressions):
                raise InvalidInput(
                    f"GROUP BY names a place beyond the {len(select.expressions)} that are selected; nothing was done."
                )
            return self.item(select.expressions[place - 1])[1]
        columns = ({self.person}, self.table.keys, self.table.bounds, self.rows.names)
        known = any(node.name in some for some in columns)
        for each in () if known else select.expressions:  # a column goes before what is selected AS its name
            if isinstance(node, exp.Column) and isinstance(each, exp.Alias) and each.alias == node.name:
                return each.this  # type: ignore[no-any-return]  # of the parser, without types
        return node

    def value(self, node: exp.Expression, name: str) -> Term | Expression:
        """What is selected, as a value of one row a person."""
        if self.is_person(node):
            return col(self.person)
        plain = _bare(node)
        if _function_of(plain) is not None:
            return self._read(plain, name)
        tree = self._replaced(node, {})
        return self._scope({}).value(tree)

    def condition(self, node: exp.Expression, names: dict[str, Term | Expression]) -> Expression:
        """What HAVING says, as a condition on one row a person."""
        tree = self._replaced(node, names)
        return self._scope(names).condition(tree)

    def _scope(self, names: dict[str, Term | Expression]) -> RowScope:
        own: dict[str, Term | Expression] = {self.person: col(self.person)}
        return RowScope(called=None, names={**names, **own, **self._made}, closed=True)

    @property
    def _made(self) -> dict[str, Term | Expression]:
        return {each.name: col(each.name) for each in self.found} | self.truths

    def _replaced(self, node: exp.Expression, names: dict[str, Term | Expression]) -> exp.Expression:
        """The same tree, with a column of one row a person in the place of each aggregate."""
        if _function_of(node) is not None:
            name = f"value{len(self.found) + len(self.truths) + 1}"
            taken = {each.name.casefold() for each in self.found} | self.reserved | self.truths.keys()
            while name.casefold() in taken:
                name += "_"
            made = self._once(self._read(node, name))
            if isinstance(made, Term) and isinstance(made.node, Named):
                return exp.column(exp.to_identifier(made.node.column, quoted=True))
            self.truths[name] = made
            return exp.column(exp.to_identifier(name, quoted=True))
        if isinstance(node, exp.Window | exp.Subquery | exp.Select | exp.WithinGroup):
            raise unknown(node)
        if isinstance(node, exp.Anonymous) and name_of(node) in AGGREGATES:
            raise refused(f"{name_of(node)} of the rows of one person")
        if isinstance(node, exp.Column):
            if self.is_person(node):
                return exp.column(exp.to_identifier(self.person, quoted=True))
            if node.name in names and not node.table:
                return node
            raise InvalidInput(
                f"{node.name!r} is neither the person nor inside an aggregate; nothing was done. Say which of a "
                "person's rows it is of: MIN, MAX, or MIN_BY(value, date) for the first."
            )
        copied = node.copy()
        for part, said in node.args.items():
            if isinstance(said, exp.Expression):
                copied.set(part, self._replaced(said, names))
            elif isinstance(said, list):
                copied.set(
                    part, [self._replaced(one, names) if isinstance(one, exp.Expression) else one for one in said]
                )
        return copied

    def _read(self, node: exp.Expression, name: str) -> Term | Expression:
        """One aggregate over the rows of a person."""
        kept: Expression | None = None
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            kept, node = self.rows.condition(node.expression.this), node.this
        function = name_of(node)
        only(node, "this", "expressions")
        given = node.expressions
        if function == "COUNT":
            return self._counted(name, given, kept)
        if function in BY_ANOTHER:
            value, by = self._several(function, given, 2)
            present = ~value.isnull()  # rows without the value are left out, as DuckDB does; FIRST and LAST keep them
            kept = present if kept is None else kept & present
            fold = BY_ANOTHER[function]
            return self._add(PersonValue(name=name, fold=fold, value=value.node, by=by.node, where=kept))
        if function == "NTH_VALUE":
            return self._nth(name, given, kept)
        (one,) = given if len(given) == 1 else (None,)
        if one is None:
            raise InvalidInput(f"{function} was given {len(given)} values; nothing was done. It takes one.")
        if function in IN_ORDER:
            return self._in_order(name, IN_ORDER[function], one, kept)
        if function in CONDITIONS:
            return self._met(name, one, kept, any_=function == "BOOL_OR")
        if isinstance(one, exp.Distinct | exp.Order):
            raise refused(f"{name_of(one)} in {function}")
        value = self.rows.value(one)
        if function in EXTREMES:
            return self._add(PersonValue(name=name, fold=EXTREMES[function], value=value.node, where=kept))
        held = clamped(value, self.table.bounds)
        return self._add(
            PersonValue(name=name, fold=ADDED[function], value=held.value, low=held.low, high=held.high, where=kept)
        )

    def _counted(self, name: str, given: Sequence[exp.Expression], kept: Expression | None) -> Term:
        if len(given) != 1:
            raise InvalidInput("COUNT takes * or one value; nothing was done.")
        (of,) = given
        match of:
            case exp.Star() | exp.Literal() | exp.Boolean():
                return self._add(PersonValue(name=name, fold=Fold.ROWS, where=kept))
            case exp.Distinct():
                only(of, "expressions")
                if len(of.expressions) != 1:
                    raise unknown(of)
                value = self.rows.value(of.expressions[0]).node
                return self._add(PersonValue(name=name, fold=Fold.DISTINCT, value=value, where=kept))
        present = ~self.rows.value(of).isnull()
        return self._add(PersonValue(name=name, fold=Fold.ROWS, where=present if kept is None else kept & present))

    def _nth(self, name: str, given: Sequence[exp.Expression], kept: Expression | None) -> Term:
        """NTH_VALUE(x, 2): the second of a person's values, which come in their own order."""
        place = constant(given[1]) if len(given) == 2 else None
        if type(place) is not int or place < 1:
            raise InvalidInput(
                "NTH_VALUE takes a value and a place from 1 on; nothing was done. Values come in their own order."
            )
        value = self.rows.value(given[0]).node
        return self._add(PersonValue(name=name, fold=Fold.FIRST, value=value, by=value, where=kept, place=place))

    def _in_order(self, name: str, fold: Fold, node: exp.Expression, kept: Expression | None) -> Term:
        if not isinstance(node, exp.Order):
            raise InvalidInput(
                "FIRST and LAST need an order: FIRST(ward ORDER BY admitted); nothing was done. The order in which "
                "rows are stored says nothing."
            )
        value, by, falls = self.rows.value(node.this).node, *self._ordered(node.expressions)
        if falls:
            fold = Fold.LAST if fold is Fold.FIRST else Fold.FIRST
        return self._add(PersonValue(name=name, fold=fold, value=value, by=by.node, where=kept))

    def _ordered(self, ordered: Sequence[exp.Expression]) -> tuple[Term, bool]:
        if len(ordered) != 1 or not isinstance(ordered[0], exp.Ordered):
            raise refused("an order by several values")
        (one,) = ordered
        return self.rows.value(one.this), bool(one.args.get("desc"))

    def _met(self, name: str, node: exp.Expression, kept: Expression | None, *, any_: bool) -> Term | Expression:
        """BOOL_OR and BOOL_AND leave out rows in which a condition is unknown, and are missing where all are."""
        holds, fails = self.rows.condition(node), self.rows.condition(node, false=True)
        if fails == ~holds and kept is None:
            return self._add(PersonValue(name=name, fold=Fold.ANY if any_ else Fold.EVERY, where=holds))
        one = PersonValue(name=f"{name}_true", fold=Fold.ANY, where=holds if kept is None else kept & holds)
        two = PersonValue(name=f"{name}_false", fold=Fold.ANY, where=fails if kept is None else kept & fails)
        ever, never = (self._add(each) == True for each in (one, two))  # noqa: E712 - of a term
        if any_:
            return when(ever).then(True).when(never).then(False)  # noqa: FBT003 - the values themselves
        return when(never).then(False).when(ever).then(True)  # noqa: FBT003 - the values themselves

    def _several(self, function: str, given: Sequence[exp.Expression], number: int) -> list[Term]:
        if len(given) != number:
            raise InvalidInput(f"{function} was given {len(given)} values; nothing was done. It takes {number}.")
        return [self.rows.value(each) for each in given]

    def _add(self, made: PersonValue) -> Term:
        """The column of a value."""
        self.found.append(made)
        return col(made.name)

    def _once(self, made: Term | Expression) -> Term | Expression:
        """The column of a value without a name of its own; where the same is there already, that one."""
        same = [each for each in self.found[:-1] if replace(each, name=self.found[-1].name) == self.found[-1]]
        if not same or not _is_column(made, self.found[-1].name):
            return made
        self.found.pop()
        return col(same[0].name)

    # ----------------------------------------------------------------------------------------------- DISTINCT ON

    def first_rows(self, select: exp.Select, distinct: exp.Expression) -> tuple["Table", dict[str, Term | Expression]]:
        """SELECT DISTINCT ON (person) … ORDER BY person, date: the first row of each person."""
        on = distinct.args["on"]
        listed = on.expressions if isinstance(on, exp.Tuple) else [on]
        if len(listed) != 1 or not self.is_person(listed[0]):
            raise refused("DISTINCT ON", f"only of the person is: DISTINCT ON ({self.person})")
        order = select.args.get("order")
        ordered = [] if order is None else list(order.expressions)
        if ordered and self.is_person(ordered[0].this):
            ordered = ordered[1:]
        if not ordered:
            raise InvalidInput(
                "DISTINCT ON needs an order that says which row of a person is first; nothing was done. Say ORDER BY "
                f"{self.person}, and a date."
            )
        by, falls = self._ordered(ordered)
        names: dict[str, Term | Expression] = {}
        for name, node in map(self.item, select.expressions):
            if name in names:
                raise InvalidInput(f"a subquery names {name!r} twice; nothing was done.")
            if self.is_person(node):
                names[name] = col(self.person)
                continue
            fold, value = Fold.LAST if falls else Fold.FIRST, self.rows.value(node).node
            names[name] = self._add(PersonValue(name=name, fold=fold, value=value, by=by.node))
        return self.table.per_person(**self.asked), names


# -------------------------------------------------------------------------------------- what other rows of a person say


def split_joins(select: exp.Select, named: Sequence[str]) -> tuple[list[exp.Join], exp.Select]:
    """The joins with a subquery, or with one that WITH names; and the SELECT without them."""
    joins = select.args.get("joins") or []
    persons = [
        node
        for node in joins
        if isinstance(node.this, exp.Subquery) or (node.this.name in named and _is_table(node.this))
    ]
    if not persons:
        return [], select
    rest = select.copy()
    rest.set("joins", [node for node in joins if node not in persons])
    return persons, rest


def joined_person(
    node: exp.Join, select: exp.Select, table: "Table", rows: RowScope, subquery: Subquery
) -> tuple[exp.Select, "Table", RowScope]:
    """The table with one row a person beside each row, and the SELECT with names that are known then."""
    for word in (node.method, node.kind):
        if word not in ("", "INNER", "OUTER"):
            raise refused(f"{word} JOIN")
    if node.side not in ("", "LEFT"):
        raise refused(f"{node.side} JOIN")
    only(node, "this", "on", "using", "kind", "side")
    called = node.this.alias or node.this.name
    if not called:
        raise InvalidInput("a subquery that is joined needs a name; nothing was done. Give it one with AS.")
    if called in (rows.called, *rows.beside):
        raise InvalidInput(f"two tables are called {called!r}; nothing was done. Give one another name with AS.")
    other, there = subquery(node.this)
    if not is_per_person(other.joins):
        raise refused("a JOIN with anything but a table", "or with one row a person: group the subquery by the person")
    person = person_column(table)
    _check_on(node, called, rows, there, person)
    table = table.with_persons(**{called: other})
    if node.side != "LEFT":
        table = table.where(~col(f"{called}.{person}").isnull())
    select = select.copy()
    for column in list(select.find_all(exp.Column)):
        if column.table == called and isinstance(column.this, exp.Identifier):
            if column.name not in there.names:
                known = ", ".join(map(repr, there.names))
                raise InvalidInput(
                    f"there is no column {column.name!r} in {called!r}; nothing was done. There are {known}."
                )
            column.replace(exp.column(exp.to_identifier(f"{called}.{column.name}", quoted=True)))
    named = {f"{called}.{name}": _inside(value, called, person) for name, value in there.names.items()}
    return select, table, replace(rows, names={**rows.names, **named}, beside={**rows.beside, called: called})


def members_only(table: "Table", rows: RowScope) -> "Table":
    """One row for each person of a subquery that selects the person and nothing else."""
    person = person_column(table)
    selected = list(rows.names.values())
    if not rows.closed or len(selected) != 1 or not _is_column(selected[0], person):
        raise _not_of_persons(person)
    return table if is_per_person(table.joins) else table.per_person()


def with_members(
    select: exp.Select, table: "Table", rows: RowScope, subquery: Subquery
) -> tuple[exp.Select, "Table", RowScope]:
    """The SELECT with a plain condition in the place of each person IN (SELECT …) and EXISTS (…).

    What is written twice, such as an aggregate in SELECT and again in HAVING, is the same condition.
    """
    nodes = list(_own_members(select))
    if not nodes:
        return select, table, rows
    changed = select.copy()
    known: dict[exp.Expression, exp.Expression] = {}
    for node in list(_own_members(changed)):
        if node in known:
            node.replace(known[node].copy())
            continue
        if isinstance(node, exp.In):
            only(node, "this", "query")
            if not _is_column(rows.value(node.this), person_column(table)):
                raise _not_of_persons(person_column(table))
            inner = node.args["query"]
        else:
            only(node, "this")
            inner = _correlated(node.this, rows)
        other = members_only(*subquery(inner))
        taken = {step.name for step in table._beside if isinstance(step, PersonJoin)} | {*rows.beside}
        number = 1
        while f"within{number}" in taken:
            number += 1
        name = f"within{number}"
        table = table.with_persons(**{name: other})
        rows = replace(rows, beside={**rows.beside, name: name})
        column = exp.column(exp.to_identifier(person_column(table), quoted=True), table=exp.to_identifier(name))
        known[node.copy()] = exp.Paren(this=exp.Not(this=exp.Is(this=column, expression=exp.Null())))
        node.replace(known[node].copy())
    return changed, table, rows


def _own_members(select: exp.Select) -> Iterator[exp.Expression]:
    """IN (SELECT …) and EXISTS of a SELECT itself, not of subqueries; in HAVING and ORDER BY those of FILTER."""
    waiting = [part for name in ("where", "expressions") for part in _listed(select.args.get(name))]
    after = [part for name in ("having", "order") for part in _listed(select.args.get(name))]
    within = (one for part in after for one in part.walk(prune=lambda node: isinstance(node, exp.Query)))
    waiting += [one for one in within if isinstance(one, exp.Filter)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
            yield node
            continue
        if _is_select(node):
            continue
        waiting += [one for said in node.args.values() for one in _listed(said) if isinstance(one, exp.Expression)]


def _correlated(inner: exp.Expression, rows: RowScope) -> exp.Expression:
    """EXISTS (SELECT … WHERE there.person = here.person AND …) as the SELECT of these persons."""
    inner = inner.this if isinstance(inner, exp.Subquery) else inner
    if isinstance(inner, exp.Select) and any(is_aggregate(each) for each in inner.expressions):
        raise refused("an aggregate in EXISTS", "it is there for everyone")
    where = inner.args.get("where") if isinstance(inner, exp.Select) else None
    parts = [] if where is None else [*(where.this.flatten() if isinstance(where.this, exp.And) else [where.this])]
    for part in parts:
        plain = _bare(part)
        sides = [plain.this, plain.expression] if isinstance(plain, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) and side.table for side in sides):
            continue
        here = [side for side in sides if side.table == rows.called]
        there = [side for side in sides if side.table != rows.called]
        if len(here) != 1 or len(there) != 1 or not isinstance(rows.value(here[0]).node, Named):
            continue
        made = inner.copy()
        rest = [each.copy() for each in parts if each is not part]
        made.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        made.set("expressions", [there[0].copy()])
        if rows.value(here[0]).node == Named(column=there[0].name):
            return made
    raise refused("EXISTS", "only of the same person is: EXISTS (SELECT 1 FROM t AS u WHERE u.person = s.person AND …)")


def _not_of_persons(person: str) -> Unsupported:
    return refused("IN (SELECT …)", f"only persons can be in a subquery, selected by the column {person!r} alone")


def _check_on(node: exp.Join, called: str, rows: RowScope, names: RowScope, person: str) -> None:
    """Refuse a join with one row a person on anything but the person."""
    using, on = node.args.get("using"), node.args.get("on")
    if using and [each.name for each in using] == [person] and _is_column(names.names.get(person, person), person):
        return
    plain = None if on is None else _bare(on)
    if isinstance(plain, exp.EQ):
        sides = [plain.this, plain.expression]
        if all(isinstance(side, exp.Column) for side in sides):
            there = [side for side in sides if side.table == called]
            here = [side for side in sides if side.table != called]
            if len(there) == 1 and len(here) == 1:
                known = names.names.get(there[0].name)
                if known is not None and _is_column(known, person) and _is_column(rows.value(here[0]), person):
                    return
    raise refused("a JOIN with a subquery", f"only on the person is: ON a.{person} = {called}.{person}")


def _inside(value: Term | Expression, name: str, person: str) -> Term:
    """The same value, of columns that are called by a name and a dot; missing where the person has no row there."""
    there = ~col(f"{name}.{person}").isnull()
    if not isinstance(value, Term):
        return when(there & _moved(value, name)).then(True).when(there).then(False)  # noqa: FBT003 - the values themselves
    if isinstance(value.node, Named):
        return col(f"{name}.{value.node.column}")
    return when(there).then(Term(_moved(value.node, name)))


def _moved(node: Moved, name: str) -> Moved:
    made: object = node
    if isinstance(node, tuple):
        made = tuple(_moved(each, name) for each in node)
    elif is_dataclass(node) and not isinstance(node, type):
        parts = {each.name: getattr(node, each.name) for each in fields(node)}
        made = replace(
            node, **{part: f"{name}.{said}" if part == "column" else _moved(said, name) for part, said in parts.items()}
        )
    return cast("Moved", made)


def _is_column(value: object, column: str) -> bool:
    return isinstance(value, Term) and value.node == Named(column=column)


def _is_select(node: exp.Expression) -> bool:
    return isinstance(node, exp.Select | exp.Subquery)


def _is_table(node: exp.Expression) -> bool:
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)


def _function_of(node: exp.Expression) -> str | None:
    """The name of an aggregate over the rows of a person, if something is one."""
    inner = node.this if isinstance(node, exp.Filter) else node
    return name_of(inner) if isinstance(inner, exp.Anonymous) and name_of(inner) in FUNCTIONS else None


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        only(node, "this")
        node = node.this
    return node


def _listed(said: object) -> list[exp.Expression]:
    return said if isinstance(said, list) else [] if said is None else [said]  # type: ignore[list-item]  # parts of a tree
