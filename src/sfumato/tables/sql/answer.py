"""What SQL does with aggregates once they are released: arithmetic, HAVING, ORDER BY and LIMIT, none of which costs.

Aggregates are asked for once each, also those that stand in HAVING or ORDER BY alone; everything around them becomes a
view of the release.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.errors import InvalidInput
from sfumato.inference.answer_terms import (
    AllHold,
    AnswerCondition,
    AnswerTerm,
    AnyHolds,
    ComparedTerms,
    Computed,
    Constant,
    IsMissing,
    Negated,
    OfColumn,
    OfKey,
    RoundedTerm,
)
from sfumato.inference.view import Order, TableView
from sfumato.tables.measures.quantile import quantile
from sfumato.tables.sql.measures import Aggregates, NamedMeasure, is_aggregate
from sfumato.tables.sql.quantiles import is_quantile, quantile_of
from sfumato.tables.sql.refusals import AGGREGATES, name_of, only, refused, unknown
from sfumato.tables.sql.rows import RowScope, constant

__all__ = ["AnswerReader", "Selected", "split", "view_of"]

ARITHMETIC: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
COMPARED: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
FUNCTIONS = {
    "ABS": ("abs", 1, 1),
    "FLOOR": ("floor", 1, 1),
    "CEIL": ("ceil", 1, 1),
    "CEILING": ("ceil", 1, 1),
    "SQRT": ("sqrt", 1, 1),
    "NULLIF": ("nullif", 2, 2),
    "COALESCE": ("coalesce", 1, 20),
    "LEAST": ("least", 1, 20),
    "GREATEST": ("greatest", 1, 20),
}
WHOLE = {exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT}
NUMBERS = {exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE, exp.DataType.Type.DECIMAL}
MOST_DIGITS = 15
MOST_SHOWN = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """What is selected: the name it was given, what it is, and whether it is about many rows."""

    alias: str | None
    node: exp.Expression
    many: bool

    @classmethod
    def of(cls, node: exp.Expression) -> "Selected":
        """What stands in SELECT, with or without AS."""
        if isinstance(node, exp.Alias):
            only(node, "this", "alias")
            return cls(alias=node.alias, node=node.this, many=is_aggregate(node.this))
        return cls(alias=None, node=node, many=is_aggregate(node))

    @property
    def name(self) -> str | None:
        """Its alias, or the column that it is."""
        return self.alias or (self.node.name if isinstance(self.node, exp.Column) else None)


@dataclass(kw_only=True)
class AnswerReader:
    """Reads what is selected, kept and ordered by; gathers the aggregates that it needs."""

    rows: RowScope
    aggregates: Aggregates
    items: Sequence[Selected]
    keys: Mapping[str, Selected]
    """What is grouped by, by the name of the key."""
    asked: dict[str, NamedMeasure] = field(default_factory=dict)
    _known: dict[exp.Expression, AnswerTerm] = field(default_factory=dict)

    def shown(self) -> tuple[tuple[str, AnswerTerm], ...]:
        """The columns that are selected, each with its name; aggregates by themselves are asked for by that name."""
        direct = {id(item): self._direct(item) for item in self.items if item.many}
        found = [(item.alias or direct[id(item)], item) for item in self.items if item.many]
        shown: list[tuple[str, AnswerTerm]] = []
        for name, item in found:
            asked = direct[id(item)]
            term = self.term(item.node) if asked is None else OfColumn(asked)
            shown.append((name or self._free("value", {each for each, _ in shown}), term))
        names = [name for name, _ in shown]
        if len(set(names)) != len(names):
            raise InvalidInput("two aggregates have the same name; nothing was done. Give each its own with AS.")
        if "self" in names:
            raise InvalidInput("an aggregate cannot be called 'self'; nothing was done. Give it another name.")
        taken = set(names) & self.keys.keys()
        if taken:
            raise InvalidInput(f"a key and an aggregate are both called {taken.pop()!r}; nothing was done.")
        return tuple(shown)

    def having(self, parts: Sequence[exp.Expression]) -> AnswerCondition | None:
        """The conditions of HAVING that are about the answer."""
        found = tuple(self.condition(part) for part in parts)
        return None if not found else found[0] if len(found) == 1 else AllHold(found)

    def order(self, clause: exp.Expression | None) -> tuple[Order, ...]:
        """What ORDER BY says: places, names, or what stands in SELECT written again."""
        if clause is None:
            return ()
        only(clause, "expressions")
        return tuple(self._ordered(each) for each in clause.expressions)

    def _ordered(self, node: exp.Expression) -> Order:
        if not isinstance(node, exp.Ordered):
            raise unknown(node)
        only(node, "this", "desc", "nulls_first")
        down = bool(node.args.get("desc"))
        first = bool(node.args.get("nulls_first"))
        return Order(term=self._by(node.this), descending=down, missing_first=first)

    def _by(self, node: exp.Expression) -> AnswerTerm:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdecimal() and node.name.isascii() and len(node.name) < 10 else 0
            if not 1 <= place <= len(self.items):
                raise InvalidInput(
                    f"ORDER BY names a place beyond the {len(self.items)} that are selected; nothing was done."
                )
            item = self.items[place - 1]
            return self.term(item.node) if item.many else self._key(item.node)
        return self.term(node)

    # ----------------------------------------------------------------------------------------------------- aggregates

    def _direct(self, item: Selected) -> str | None:
        """Ask for an aggregate that is selected by itself, under its alias; None where something is computed."""
        node = _inner(item.node)
        if not _is_call(node):
            return None
        name = self._ask(node, item.alias)
        self._known.setdefault(node, OfColumn(name))
        return name

    def _ask(self, node: exp.Expression, alias: str | None, *, hidden: bool = False) -> str:
        """Ask for one aggregate and say its name in the answer; one that is not selected by itself is ``hidden``."""
        if is_quantile(node):
            name, value, level = quantile_of(node, self.rows)
            measure = NamedMeasure(name=name, asked=quantile(value, level))
        else:
            measure = self.aggregates.read(node)
        name = alias or measure.name
        if hidden:
            name = self._free(name, {item.alias for item in self.items if item.alias is not None and item.many})
        if name in self.asked:
            raise InvalidInput("two aggregates have the same name; nothing was done. Give each its own with AS.")
        self.asked[name] = measure
        return name

    def _free(self, name: str, taken: set[str]) -> str:
        """The name, or the first of it with a number, that nothing else has."""
        numbered = (name if place == 1 else f"{name}_{place}" for place in range(1, len(self.items) + 100))
        return next(each for each in numbered if each not in {*self.asked, *taken, *self.keys})

    # ---------------------------------------------------------------------------------------------------------- terms

    def term(self, node: exp.Expression) -> AnswerTerm:
        """A number of the answer: an aggregate, a key, a constant, or what is computed from them."""
        node = _inner(node)
        if node in self._known:
            return self._known[node]
        if _is_call(node):
            self._known[node] = OfColumn(self._ask(node, None, hidden=True))
            return self._known[node]
        match node:
            case exp.Literal() | exp.Boolean():
                return Constant(constant(node))
            case exp.Neg():
                only(node, "this")
                return Computed("-", (self.term(node.this),))
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                only(node, "this", "expression", "typed", "safe")
                return self._arithmetic(ARITHMETIC[type(node)], self.term(node.this), self.term(node.expression))
            case exp.Cast():
                return self._cast(node)
            case exp.Anonymous() if name_of(node) == "ROUND":
                return self._rounded(node)
            case exp.Anonymous() if name_of(node) in FUNCTIONS:
                return self._function(node)
            case exp.Column() if not node.table and (item := self._called(node.name)) is not None:
                return self.term(item.node)
        if is_aggregate(node):
            raise refused(f"{name_of(node)} of an aggregate")
        return self._key(node)

    def _called(self, name: str) -> Selected | None:
        return next((item for item in self.items if item.many and item.alias == name), None)

    def _key(self, node: exp.Expression) -> OfKey:
        """A key, by its name or written out again."""
        if isinstance(node, exp.Column) and not node.table and node.name in self.keys:
            return OfKey(node.name)
        wanted = self.rows.value(node).node
        for name, item in self.keys.items():
            if self.rows.value(item.node).node == wanted:
                return OfKey(name)
        raise InvalidInput(
            "HAVING and ORDER BY can use what is grouped by and what is aggregated; nothing was done. Rows themselves "
            "are never released."
        )

    def _arithmetic(self, operator: str, left: AnswerTerm, right: AnswerTerm) -> AnswerTerm:
        match right:
            case Computed(operator="nullif", parts=(divisor, Constant(value=0))) if operator == "/":
                right = divisor  # what is divided by 0 is missing already
        return Computed(operator, (left, right))

    def _cast(self, node: exp.Cast) -> AnswerTerm:
        only(node, "this", "to", "safe")
        to = node.args["to"]
        inner = self.term(node.this)
        if to.this in WHOLE and not to.expressions:
            return RoundedTerm(inner, 0)
        if to.this not in NUMBERS:
            raise refused("CAST of an aggregate to another type than a number")
        if to.this is exp.DataType.Type.DECIMAL and to.expressions:
            digits = _whole(to.expressions[1].this) if len(to.expressions) > 1 else 0
            return RoundedTerm(inner, _digits(digits))
        return inner

    def _rounded(self, node: exp.Anonymous) -> AnswerTerm:
        only(node, "this", "expressions")
        if len(node.expressions) not in (1, 2):
            raise InvalidInput("ROUND takes a number and how many digits; nothing was done.")
        digits = _whole(node.expressions[1]) if len(node.expressions) == 2 else 0
        return RoundedTerm(self.term(node.expressions[0]), _digits(digits))

    def _function(self, node: exp.Anonymous) -> AnswerTerm:
        only(node, "this", "expressions")
        operator, least, most = FUNCTIONS[name_of(node)]
        if not least <= len(node.expressions) <= most:
            raise InvalidInput(f"{name_of(node)} was given {len(node.expressions)} values; nothing was done.")
        return Computed(operator, tuple(self.term(part) for part in node.expressions))

    # ----------------------------------------------------------------------------------------------------- conditions

    def condition(self, node: exp.Expression) -> AnswerCondition:
        """A condition on the answer: comparisons, BETWEEN, IN and IS NULL, with AND, OR and NOT."""
        node = _inner(node)
        match node:
            case exp.And() | exp.Or():
                only(node, "this", "expression")
                parts = (self.condition(node.this), self.condition(node.expression))
                return AllHold(parts) if isinstance(node, exp.And) else AnyHolds(parts)
            case exp.Not():
                only(node, "this")
                return Negated(self.condition(node.this))
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                only(node, "this", "expression")
                return ComparedTerms(COMPARED[type(node)], self.term(node.this), self.term(node.expression))
            case exp.Between():
                only(node, "this", "low", "high")
                value = self.term(node.this)
                low, high = self.term(node.args["low"]), self.term(node.args["high"])
                return AllHold((ComparedTerms(">=", value, low), ComparedTerms("<=", value, high)))
            case exp.In():
                only(node, "this", "expressions")
                value = self.term(node.this)
                return AnyHolds(tuple(ComparedTerms("=", value, self.term(each)) for each in node.expressions))
            case exp.Is(expression=exp.Null()):
                only(node, "this", "expression")
                return IsMissing(self.term(node.this))
        raise refused("a condition in HAVING that is no comparison")


def split(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts of a condition between its ANDs."""
    node = _inner(node)
    if isinstance(node, exp.And):
        yield from split(node.this)
        yield from split(node.expression)
    else:
        yield node


def shown_rows(clause: exp.Expression | None, what: str) -> int | None:
    """The number after LIMIT, FETCH FIRST or OFFSET."""
    if clause is None:
        return None
    node = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    if isinstance(clause, exp.Fetch):
        only(clause, "direction", "count", "limit_options")
        options = clause.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise refused("FETCH … WITH TIES or PERCENT")
        node = exp.Literal.number(1) if node is None else node
    else:
        only(clause, "expression")
    number = _whole(node) if node is not None else None
    if number is None or not 0 <= number <= MOST_SHOWN:
        raise InvalidInput(f"{what} takes a whole number from 0 on; nothing was done.")
    return number


def _inner(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        only(node, "this")
        node = node.this
    return node


def _is_call(node: exp.Expression) -> bool:
    """Whether something is one aggregate by itself, or the quotient of two sums."""
    match node:
        case exp.Filter() | exp.WithinGroup() | exp.Window():
            return True
        case exp.Anonymous():
            return name_of(node) in AGGREGATES
        case exp.Div():
            return all(
                isinstance(side, exp.Anonymous) and name_of(side) == "SUM"
                for side in (_inner(node.this), _inner(node.expression))
            )
    return False


def _whole(node: exp.Expression) -> int:
    value = constant(node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("a whole number is needed here; nothing was done.")
    return value


def _digits(digits: int) -> int:
    if not -MOST_DIGITS <= digits <= MOST_DIGITS:
        raise InvalidInput(f"ROUND takes from {-MOST_DIGITS} to {MOST_DIGITS} digits; nothing was done.")
    return digits


def view_of(
    reader: AnswerReader,
    shown: Sequence[tuple[str, AnswerTerm]],
    select: exp.Select,
    having: Sequence[exp.Expression],
) -> TableView | None:
    """The view that a SELECT asks for; None where the answer is shown as it is."""
    kept = reader.having(having)
    order = reader.order(select.args.get("order"))
    most, skipped = shown_rows(select.args.get("limit"), "LIMIT"), shown_rows(select.args.get("offset"), "OFFSET")
    plain = [(name, OfColumn(name)) for name in reader.asked]
    if kept is None and not order and most is None and not skipped and list(shown) == plain:
        return None
    counts = frozenset(name for name, measure in reader.asked.items() if measure.counts)
    return TableView(shown=tuple(shown), having=kept, order=order, most=most, skipped=skipped or 0, counts=counts)
