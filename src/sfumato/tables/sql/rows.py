"""Values and conditions of one row: from the tree of a text to terms and predicates of the closed grammar."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from sfumato.core.exact import rational
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Expression, Literal, Term, Time, coalesce, col, greatest, least, term, when
from sfumato.engines.expressions.texts import lowered
from sfumato.errors import InvalidInput
from sfumato.tables.sql.refusals import AGGREGATES, name_of, only, refused, unknown
from sfumato.tables.sql.times import date_part, interval, of_day, read_time, truncated, unit_named

__all__ = ["RowScope", "constant", "joined"]

ARITHMETIC: dict[type[exp.Expression], Callable[[Term, Term], Term]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}
COMPARISONS: dict[type[exp.Expression], Callable[[Term, Term], Expression]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
OPPOSITES: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}
CONDITIONS: tuple[type[exp.Expression], ...] = (
    *(exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike),
    *COMPARISONS,
)
WHOLE = {exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT}
NUMBER = {exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE, exp.DataType.Type.DECIMAL}
TEXT = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
TIME = {exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.DATETIME}
MOST_BUCKETS = 1_000
SIDES = {"BOTH": "both", "LEADING": "start", "TRAILING": "end"}
TRIMS = {"BTRIM": "both", "LTRIM": "start", "RTRIM": "end"}
LENGTHS = ("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScope:
    """The rows that a question or a subquery is about: what can be named in them, and how they are called.

    ``names`` are values that were given a name; unless ``closed``, any other name is a column of the table. Names are
    taken letter by letter, in quotes or not.
    """

    called: str | None
    names: Mapping[str, Term | Expression] = field(default_factory=dict)
    closed: bool = False
    beside: Mapping[str, str] = field(default_factory=dict)
    """The tables that were joined: what the text calls them, and their own names."""
    elsewhere: Mapping[str, str | None] = field(default_factory=dict)
    """Columns of the joined tables that a name without a table can mean; None where it could mean several."""

    def named(self, node: exp.Column) -> Term | Expression:
        """What a name stands for."""
        only(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise refused("SELECT *")
        if node.table in self.beside:
            return col(self.column(node))
        if node.table and node.table != self.called:
            raise InvalidInput(f"there is no table {node.table!r} here; nothing was done. Say {self.called!r}.")
        if node.name in self.names:
            return self.names[node.name]
        if not node.table and node.name in self.elsewhere:
            return col(self.column(node))
        if self.closed:
            known = ", ".join(map(repr, self.names))
            raise InvalidInput(
                f"there is no column {node.name!r} here; nothing was done. There are {known}."
                f"{did_you_mean(node.name, self.names)}"
            )
        return col(node.name)

    def column(self, node: exp.Column) -> str:
        """The name of a column itself, here or in a table that was joined."""
        only(node, "this", "table")
        if node.table in self.beside:
            return f"{self.beside[node.table]}.{node.name}"
        if node.table and node.table != self.called:
            raise InvalidInput(f"there is no table {node.table!r} here; nothing was done. Say {self.called!r}.")
        if not node.table and node.name in self.elsewhere:
            found = self.elsewhere[node.name]
            if found is None:
                raise InvalidInput(
                    f"{node.name!r} could be a column of several tables; nothing was done. Say whose it is: "
                    f"{self.called}.{node.name}."
                )
            return found
        return str(node.name)

    # ---------------------------------------------------------------------------------------------------- values

    def value(self, node: exp.Expression) -> Term:
        """A value of a row; a condition is the truth value that it has."""
        match node:
            case exp.Paren():
                only(node, "this")
                return self.value(node.this)
            case exp.Column():
                found = self.named(node)
                return found if isinstance(found, Term) else _truth(found, ~found)
            case exp.Literal() | exp.Boolean():
                return term(constant(node))
            case exp.Neg():
                only(node, "this")
                return term(constant(node)) if isinstance(node.this, exp.Literal) else -self.value(node.this)
            case exp.Case():
                return self._case(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Extract():
                only(node, "this", "expression")
                return date_part(node.name, self.value(node.expression))
            case exp.Interval():
                return term(interval(node).length)
            case exp.Trim() | exp.Substring():
                return self._written_out(node)
            case exp.DPipe():
                only(node, "this", "expression", "safe")
                return self.value(node.this).concat(self.value(node.expression))
            case exp.Add() | exp.Sub() if isinstance(_bare(node.expression), exp.Interval):
                only(node, "this", "expression", "typed", "safe")
                moved = interval(_bare(node.expression))
                return (moved if isinstance(node, exp.Add) else -moved).from_(self.value(node.this))
            case exp.Add() if isinstance(_bare(node.this), exp.Interval):
                only(node, "this", "expression", "typed", "safe")
                return interval(_bare(node.this)).from_(self.value(node.expression))
            case exp.Anonymous():
                return self._function(node)
        if type(node) in ARITHMETIC:
            only(node, "this", "expression", "typed", "safe")
            return ARITHMETIC[type(node)](self.value(node.this), self.value(node.expression))
        if isinstance(node, CONDITIONS):
            return self._truth_of(node)
        raise unknown(node)

    def _truth_of(self, node: exp.Expression) -> Term:
        """Whether a condition holds, missing where that is unknown."""
        return _truth(self.condition(node), self.condition(node, false=True))

    def is_condition(self, node: exp.Expression) -> bool:
        """Whether something is true or false by the way it is written."""
        return isinstance(_bare(node), CONDITIONS)

    def as_whole(self, node: exp.Expression) -> Term:
        """A condition as 1 where it is true and 0 where it is false; missing where it is unknown, as in SQL."""
        return when(self.condition(node)).then(1).when(self.condition(node, false=True)).then(0)

    def _case(self, node: exp.Case) -> Term:
        only(node, "this", "ifs", "default")
        of = None if node.this is None else self.value(node.this)
        choice = None
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            holds = self.condition(branch.this) if of is None else _compared(exp.EQ, of, self.value(branch.this))
            begun = when(holds) if choice is None else choice.when(holds)
            choice = begun.then(self.value(branch.args["true"]))
        last = node.args.get("default")
        if choice is None:
            raise refused("CASE without WHEN")
        return choice if last is None or isinstance(last, exp.Null) else choice.otherwise(self.value(last))

    def _cast(self, node: exp.Cast) -> Term:
        only(node, "this", "to", *(("safe", "requires_string") if isinstance(node, exp.TryCast) else ()))
        to = node.to
        only(to, "this", "nested", *(("expressions",) if to.this is exp.DataType.Type.DECIMAL else ()))
        if (to.this is exp.DataType.Type.DATE or to.this in TIME) and isinstance(node.this, exp.Literal):
            return term(constant(node))
        if to.this in WHOLE and self.is_condition(node.this):
            return self.as_whole(node.this)
        value = self.value(node.this)
        if to.this in WHOLE:
            return value.nearest()
        if to.this in NUMBER:
            return _scaled(value.cast("number"), to)
        if to.this is exp.DataType.Type.DATE:
            return value.cast("date")
        if to.this in TIME or to.this in TEXT:
            return value.cast("time" if to.this in TIME else "text")
        raise refused(f"CAST to {to.this.value if isinstance(to.this, exp.DataType.Type) else 'that type'}")

    def _written_out(self, node: exp.Trim | exp.Substring) -> Term:
        """TRIM and SUBSTRING, with commas or with words between what they are given."""
        value = self.value(node.this)
        if isinstance(node, exp.Trim):
            only(node, "this", "position", "expression")
            sign = node.expression
            if sign is not None and (not isinstance(sign, exp.Literal) or sign.this != " "):
                raise refused("TRIM of other signs than spaces")
            return value.strip(SIDES[(node.args.get("position") or "BOTH").upper()])
        only(node, "this", "start", "length")
        start, length = node.args.get("start"), node.args.get("length")
        first = 1 if start is None else _whole(start, "SUBSTRING")
        return value.substring(first, None if length is None else _whole(length, "SUBSTRING"))

    def _function(self, node: exp.Anonymous) -> Term:
        only(node, "this", "expressions")
        name, given = name_of(node), node.expressions
        if name in AGGREGATES:
            raise refused("an aggregate inside a row-wise value")
        match name, len(given):
            case "COALESCE", count if count:
                return coalesce(*map(self.value, given))
            case "LEAST", count if count:
                return _of_those_present(least, [self.value(each) for each in given])
            case "GREATEST", count if count:
                return _of_those_present(greatest, [self.value(each) for each in given])
            case "NULLIF", 2:
                first, second = map(self.value, given)
                return when(~(first == second)).then(first)
            case "ABS", 1:
                return abs(self.value(given[0]))
            case "FLOOR", 1:
                return self.value(given[0]).floor()
            case word, 1 if word in LENGTHS:
                return self.value(given[0]).length()
            case "STARTS_WITH", 2:
                return self._truth_of(node)
            case "DATE_PART", 2:
                return date_part(_text(given[0], "DATE_PART"), self.value(given[1]))
            case "DATE_TRUNC", 2:
                return truncated(_text(given[0], name), self.value(given[1]))
            case "DATE_DIFF" | "DATEDIFF", 3:
                return self.value(given[2]).since(self.value(given[1]), unit_named(_text(given[0], name)))
            case "CEIL" | "CEILING", 1:
                return self.value(given[0]).ceil()
            case "ROUND", 1 | 2:
                return self.value(given[0]).round(_whole(given[1], name) if len(given) > 1 else 0)
            case "LOWER", 1:
                return self.value(given[0]).lower()
            case "UPPER", 1:
                return self.value(given[0]).upper()
            case "BTRIM" | "LTRIM" | "RTRIM", 1:
                return self.value(given[0]).strip(TRIMS[name])
            case "LEFT", 2:
                return self.value(given[0]).left(_whole(given[1], name))
            case "RIGHT", 2:
                return self.value(given[0]).right(_whole(given[1], name))
            case "SUBSTR", 2 | 3:
                return self.value(given[0]).substring(*(_whole(each, name) for each in given[1:]))
            case "REPLACE", 3:
                return self.value(given[0]).replace(_text(given[1], name), _text(given[2], name))
            case "WIDTH_BUCKET", 4:
                return _buckets(self.value(given[0]), *map(constant, given[1:]))
        if name in KNOWN:
            raise InvalidInput(f"{name} was given {len(given)} values; nothing was done. It takes {KNOWN[name]}.")
        raise unknown(node, KNOWN)

    # ------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: exp.Expression, *, false: bool = False) -> Expression:
        """The rows where a condition is true; with ``false`` those where it is false.

        A row where something is missing may be neither: the condition is then unknown, as in SQL, and NOT leaves it so.
        """
        match node:
            case exp.Paren():
                only(node, "this")
                return self.condition(node.this, false=false)
            case exp.And() | exp.Or():
                parts = [self.condition(part, false=false) for part in _flat(node, type(node))]
                return joined(parts, exp.Or if isinstance(node, exp.And) == false else exp.And)
            case exp.Not():
                only(node, "this")
                return self.condition(node.this, false=not false)
            case exp.Between():
                only(node, "this", "low", "high")
                value, low, high = (self.value(node.args[name]) for name in ("this", "low", "high"))
                if false:
                    return _compared(exp.LT, value, low) | _compared(exp.GT, value, high)
                return _compared(exp.GTE, value, low) & _compared(exp.LTE, value, high)
            case exp.In():
                only(node, "this", "expressions")
                value = self.value(node.this)
                among = [_exact(value, constant(each)) for each in node.expressions]
                return _known(value, value.isin(among), false=false)
            case exp.Is():
                only(node, "this", "expression", "negate")
                found = self._is(node)
                return ~found if bool(node.args.get("negate")) != false else found
            case exp.Like() | exp.ILike():
                only(node, "this", "expression", "negate")
                false = bool(node.args.get("negate")) != false
                return _known(self.value(node.this), self._like(node), false=false)
            case exp.Anonymous() if name_of(node) == "STARTS_WITH" and len(node.expressions) == 2:
                text, prefix = self.value(node.expressions[0]), _text(node.expressions[1], "STARTS_WITH")
                return _known(text, text.startswith(prefix), false=false)
            case exp.Column():
                named = self.named(node)
                if isinstance(named, Expression):
                    return ~named if false else named
                return named == (not false)
            case exp.Case() | exp.Anonymous():
                return self.value(node) == (not false)
            case exp.Boolean() | exp.Literal():
                raise refused("a condition that is always the same")
        if type(node) in COMPARISONS:
            only(node, "this", "expression")
            for side in (node.this, node.expression):
                if isinstance(side, exp.Is | exp.Between | exp.In | exp.Like) or type(side) in COMPARISONS:
                    raise refused("a comparison of a comparison without brackets")
            kind = OPPOSITES[type(node)] if false else type(node)
            return _compared(kind, self.value(node.this), self.value(node.expression))
        raise unknown(node)

    def _is(self, node: exp.Is) -> Expression:
        """IS NULL, IS TRUE and IS FALSE are true or false of every row."""
        match node.expression:
            case exp.Null():
                return self.value(node.this).isnull()
            case exp.Boolean() if isinstance(_bare(node.this), (exp.Column, exp.Case, exp.Anonymous, *CONDITIONS)):
                return self.condition(node.this, false=not node.expression.this)
        raise refused("IS with something else than NULL, or than TRUE or FALSE after a condition")

    def _like(self, node: exp.Like | exp.ILike) -> Expression:
        if not isinstance(node.expression, exp.Literal) or not node.expression.is_string:
            raise refused("LIKE")
        pattern = node.expression.name
        prefix = pattern.rstrip("%")
        if any(sign in prefix for sign in "%_\\"):
            raise refused("LIKE")
        text = self.value(node.this)
        if isinstance(node, exp.ILike):
            text, pattern, prefix = text.lower(), lowered(pattern), lowered(prefix)
        return text == pattern if prefix == pattern else text.startswith(prefix)


KNOWN = {
    "COALESCE": "at least one",
    "LEAST": "at least one",
    "GREATEST": "at least one",
    "NULLIF": "two",
    "ABS": "one",
    "FLOOR": "one",
    **dict.fromkeys(LENGTHS, "one"),
    "STARTS_WITH": "two",
    "DATE_PART": "two",
    "DATE_DIFF": "three: a unit such as 'day', the start and the end",
    "DATEDIFF": "three: a unit such as 'day', the start and the end",
    "DATE_TRUNC": "two: a unit such as 'month', and a date or time",
    "CEIL": "one",
    "CEILING": "one",
    "ROUND": "one, or two: a number, and how many digits",
    "LOWER": "one",
    "UPPER": "one",
    **dict.fromkeys(("BTRIM", "LTRIM", "RTRIM"), "one"),
    **dict.fromkeys(("LEFT", "RIGHT"), "two: a text, and how many characters"),
    "SUBSTR": "two or three: a text, the place of the first character, and how many",
    "REPLACE": "three: a text, what to replace, and what by",
    "WIDTH_BUCKET": "four: a value, and the constants low, high and number of buckets",
}


def constant(node: exp.Expression) -> str | int | Fraction | bool | date | datetime:
    """A constant as Python writes it; numbers with a point or an exponent are exact rationals."""
    match node:
        case exp.Paren():
            return constant(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            return _number(str(node.this))
        case exp.Neg(this=exp.Literal(is_string=False) as positive):
            return -_number(str(positive.this))
        case exp.Cast(this=exp.Literal(is_string=True) as text) if node.to.this is exp.DataType.Type.DATE:
            return _day(str(text.this))
        case exp.Cast(this=exp.Literal(is_string=True) as text) if node.to.this in TIME:
            return read_time(str(text.this))
        case exp.Null() | exp.Subquery() | exp.Select() | exp.Neg():
            raise unknown(node)
    raise refused(f"{name_of(node)} where a constant is needed")


def joined(parts: list[Expression], kind: type[exp.Expression]) -> Expression:
    """All parts with AND, or with OR; halves first, since each join looks at all parts of its sides."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    one, two = joined(parts[:half], kind), joined(parts[half:], kind)
    return one & two if kind is exp.And else one | two


def _flat(node: exp.Expression, kind: type[exp.Expression]) -> Iterable[exp.Expression]:
    """The parts of a run of ANDs, or of ORs, however long, from left to right."""
    waiting = [node]
    while waiting:
        part = _bare(waiting.pop())
        if type(part) is kind:
            only(part, "this", "expression")
            waiting += [part.expression, part.this]
        else:
            yield part


def _bare(node: exp.Expression) -> exp.Expression:
    """Without brackets."""
    while isinstance(node, exp.Paren):
        only(node, "this")
        node = node.this
    return node


def _truth(holds: Expression, fails: Expression) -> Term:
    """A truth value; missing where a condition is neither true nor false."""
    if fails == ~holds:
        return when(holds).then(True).otherwise(False)  # noqa: FBT003 - the values themselves
    return when(holds).then(True).when(fails).then(False)  # noqa: FBT003 - the values themselves


def _known(value: Term, found: Expression, *, false: bool) -> Expression:
    """Where something is found of a value; with ``false`` where the value is there and it is not."""
    return ~found & ~value.isnull() if false else found


def _of_those_present(choice: Callable[..., Term], values: list[Term]) -> Term:
    """The least or greatest of the values that are not missing, as PostgreSQL has it; constants are always there."""
    constants = [value for value in values if isinstance(value.node, Literal)]
    others = [value for value in values if not isinstance(value.node, Literal)]
    found = others[0] if others else constants.pop()
    for value in others[1:]:
        found = coalesce(choice(found, value), found, value)
    if not constants:
        return found
    return coalesce(choice(found, *constants), choice(*constants) if len(constants) > 1 else constants[0])


def _number(text: str) -> int | Fraction:
    if not text.isascii():
        raise InvalidInput("a number is written in the digits 0 to 9; nothing was done.")
    found = rational(text, "a number")
    return int(found) if text.isdecimal() else found


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise InvalidInput("a date must be a day, written DATE '2026-01-31'; nothing was done.")
    return day


def _text(node: exp.Expression, where: str) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise InvalidInput(f"{where} takes a text in quotes there; nothing was done.")
    return str(node.this)


def _whole(node: exp.Expression, where: str) -> int:
    found = constant(node)
    if type(found) is not int:
        raise InvalidInput(f"{where} takes a constant whole number there; nothing was done.")
    return found


def _scaled(value: Term, to: exp.DataType) -> Term:
    """A number rounded to the scale of a decimal type, where one is said."""
    if not to.expressions:
        return value
    sizes = [_whole(each.this, "DECIMAL") for each in to.expressions]
    return value.round(sizes[1] if len(sizes) > 1 else 0)


def _compared(kind: type[exp.Expression], left: Term, right: Term) -> Expression:
    """Two values as SQL compares them: a date beside a time is its first moment.

    In this grammar a time beside a date is its day. Where the two differ, a constant day is written as a moment.
    """
    if kind not in (exp.GTE, exp.LT):
        right = of_day(left, right)
    if kind not in (exp.LTE, exp.GT):
        left = of_day(right, left)
    return COMPARISONS[kind](left, right)


def _exact(value: Term, one: object) -> object:
    found = of_day(value, term(one)).node if isinstance(one, date) else None
    return found.moment if isinstance(found, Time) else one


def _buckets(value: Term, low: object, high: object, count: object) -> Term:
    """Which of the equal parts from low to high the value lies in: 0 below them, one more than there are above."""
    if (
        not isinstance(low, int | Fraction)
        or not isinstance(high, int | Fraction)
        or type(count) is not int
        or not low < high
        or not 1 <= count <= MOST_BUCKETS
    ):
        raise InvalidInput(
            "WIDTH_BUCKET takes constants: low, a higher high, and a number of buckets from 1 to "
            f"{MOST_BUCKETS:,}; nothing was done."
        )
    edges: list[int] | list[Fraction] = [low + Fraction(place * (high - low), count) for place in range(count + 1)]
    plain = all(edge.denominator == 1 for edge in edges)
    edges = [int(edge) for edge in edges] if plain else edges
    choice = when(value < edges[0]).then(0)
    for place, edge in enumerate(edges[1:], 1):
        choice = choice.when(value < edge).then(place)
    return choice.when(value >= edges[-1]).then(len(edges))
