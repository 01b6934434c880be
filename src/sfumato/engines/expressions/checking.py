"""Types: what fits the declared columns passes, what does not is refused by name before anything is read."""

from collections.abc import Mapping, Sequence

from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions.grammar import (
    Absolute,
    AllOf,
    AnyOf,
    Arithmetic,
    Cased,
    CaseWhen,
    Cast,
    Coalesce,
    Compare,
    Concatenated,
    Cut,
    DatePart,
    DaysBetween,
    Ending,
    Expression,
    Floor,
    Greatest,
    Least,
    Length,
    Missing,
    Named,
    Nearest,
    Negative,
    Not,
    OneOf,
    Replaced,
    Rounded,
    Seconds,
    Shifted,
    Slice,
    StartsWith,
    Trimmed,
    Truncated,
    UnitsBetween,
    Value,
    ValueCompare,
    ValueMissing,
    ValueOneOf,
    inside,
)
from sfumato.engines.expressions.literals import Date, Duration, Literal, Number, Text, Time, Truth, Whole
from sfumato.engines.expressions.measure import DEEPEST, LARGEST, depth_of, size_of
from sfumato.engines.expressions.terms import Term
from sfumato.engines.expressions.types import Operator, Part, Sign, Type, Unit
from sfumato.engines.expressions.writing import written
from sfumato.errors import InvalidInput, Unsupported

__all__ = ["check", "columns_of", "type_of"]

NOTHING = "nothing was read and nothing was spent"
LITERAL_TYPES: dict[type[Literal], Type] = {
    Text: Type.TEXT,
    Whole: Type.WHOLE,
    Number: Type.NUMBER,
    Truth: Type.TRUTH,
    Date: Type.DATE,
    Time: Type.TIME,
    Duration: Type.SPAN,
}
NUMERIC = (Type.WHOLE, Type.NUMBER)
CLOCK = (Type.DATE, Type.TIME)
ORDERED = (*NUMERIC, *CLOCK, Type.SPAN)
CASTS = {
    Type.WHOLE: (Type.WHOLE, Type.NUMBER, Type.TRUTH, Type.TEXT),
    Type.NUMBER: (Type.WHOLE, Type.NUMBER, Type.TEXT),
    Type.TEXT: (Type.TEXT, Type.WHOLE, Type.DATE),
    Type.DATE: (Type.DATE, Type.TIME, Type.TEXT),
    Type.TIME: (Type.DATE, Type.TIME, Type.TEXT),
}
HOURS = (Part.HOUR, Part.MINUTE)
FINE = (Unit.HOUR, Unit.MINUTE, Unit.SECOND)


def columns_of(expression: Expression | Value | Term) -> frozenset[str]:
    """All columns that an expression looks at.

    >>> from sfumato.engines.expressions import col
    >>> sorted(columns_of((col("age") >= 65) | col("sex").isnull()))
    ['age', 'sex']
    """
    node = expression.node if isinstance(expression, Term) else expression
    if isinstance(node, Named):
        return frozenset({node.column})
    return frozenset[str]().union(*map(columns_of, inside(node)))


def check(expression: Expression, columns: Mapping[str, Type]) -> None:
    """Refuse a predicate that does not fit the declared columns, naming what is wrong; nothing is read."""
    _small(expression)
    _check(expression, columns)


def type_of(expression: Value | Term, columns: Mapping[str, Type]) -> Type:
    """The type of a value; one that does not fit the declared columns is refused, naming what is wrong.

    >>> from sfumato.engines.expressions import col
    >>> type_of(col("weight") / col("height"), {"weight": Type.NUMBER, "height": Type.NUMBER})
    <Type.NUMBER: 'number'>
    """
    node = expression.node if isinstance(expression, Term) else expression
    _small(node)
    return _type(node, columns)


def _small(node: Expression | Value) -> None:
    if depth_of(node) > DEEPEST:
        raise InvalidInput(f"the expression is nested too deeply to be computed; {NOTHING}. Ask a simpler question.")
    if size_of(node) > LARGEST:
        raise InvalidInput(
            f"the expression is too large or its conditions are too entangled to be computed in one go; {NOTHING}. "
            "Ask a simpler question."
        )


# ------------------------------------------------------------------------------------------------------- predicates


def _check(expression: Expression, columns: Mapping[str, Type]) -> None:
    match expression:
        case Not():
            _check(expression.part, columns)
        case AllOf() | AnyOf():
            for part in expression.parts:
                _check(part, columns)
        case Missing():
            _column(expression.column, columns)
        case ValueMissing():
            _type(expression.part, columns)
        case Compare():
            _fits(expression.column, expression.constant, columns)
            _has_order(expression.column, LITERAL_TYPES[type(expression.constant)], expression.operator)
        case ValueCompare():
            both = (expression.left, expression.right)
            held = _common(expression, both, [_type(part, columns) for part in both])
            _has_order(written(expression.left), held, expression.operator)
        case OneOf():
            for constant in expression.constants:
                _fits(expression.column, constant, columns)
        case ValueOneOf():
            held = _type(expression.part, columns)
            for constant in expression.constants:
                _common(expression, (expression.part, constant), (held, LITERAL_TYPES[type(constant)]))
        case StartsWith():
            _takes(expression, expression.part, (Type.TEXT,), columns)


def _has_order(what: str, held: Type, operator: Operator) -> None:
    if held is Type.TRUTH and operator not in (Operator.EQUAL, Operator.UNEQUAL):
        raise Unsupported(f"truth values have no order: {what!r} can be compared with = and != only.")


def _fits(column: str, constant: Literal, columns: Mapping[str, Type]) -> None:
    held = _column(column, columns)
    given = LITERAL_TYPES[type(constant)]
    alike = any({held, given} <= set(kinds) for kinds in (NUMERIC, CLOCK))
    if held is not given and not alike:
        name = constant.KIND.removeprefix("literal.")
        hint = "; in SQL, write DATE '2026-01-31' or TIMESTAMP '2026-01-31 13:00:00'" if held in CLOCK else ""
        if held is Type.TRUTH:
            hint = ": True or False; in SQL, TRUE or FALSE"
        if given is Type.TRUTH and held in NUMERIC:
            hint = f". For a study of its values declare bounds={{{column!r}: (low, high)}} with the table"
        raise InvalidInput(
            f"column {column!r} holds {held.value}s and cannot be compared with a constant of type {name}; "
            f"{NOTHING}. Compare it with a constant of that type{hint}."
        )


# ----------------------------------------------------------------------------------------------------------- values


def _type(node: Value, columns: Mapping[str, Type]) -> Type:
    match node:
        case Named():
            return _column(node.column, columns)
        case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
            return LITERAL_TYPES[type(node)]
        case Arithmetic():
            return _arithmetic(node, columns)
        case Negative() | Absolute():
            return _takes(node, node.part, NUMERIC, columns)
        case Floor() | Rounded():
            return _takes(node, node.part, NUMERIC, columns)
        case Nearest():
            _takes(node, node.part, (*NUMERIC, Type.TRUTH, Type.TEXT), columns)
            return Type.WHOLE
        case Least() | Greatest():
            return _common(node, node.parts, [_takes(node, part, ORDERED, columns) for part in node.parts])
        case Coalesce():
            return _common(node, node.parts, [_type(part, columns) for part in node.parts])
        case CaseWhen():
            for branch in node.branches:
                _check(branch.when, columns)
            last = () if node.otherwise is None else (node.otherwise,)
            parts = (*(branch.then for branch in node.branches), *last)
            return _common(node, parts, [_type(part, columns) for part in parts])
        case Cast():
            return _cast(node, columns)
        case DatePart():
            _takes(node, node.part, (Type.TIME,) if node.of in HOURS else CLOCK, columns)
            return Type.WHOLE
        case DaysBetween() | UnitsBetween():
            for part in (node.start, node.end):
                _takes(node, part, CLOCK, columns)
            return Type.WHOLE
        case Truncated():
            fine = node.to in FINE
            _takes(node, node.part, (Type.TIME,) if fine else CLOCK, columns)
            return Type.TIME if fine else Type.DATE
        case Seconds():
            _takes(node, node.part, (Type.SPAN, *CLOCK), columns)
            return Type.NUMBER
        case Shifted():
            held = _takes(node, node.part, CLOCK if node.months else (Type.SPAN, *CLOCK), columns)
            return Type.SPAN if held is Type.SPAN else Type.TIME
        case Length():
            _takes(node, node.part, (Type.TEXT,), columns)
            return Type.WHOLE
        case Cased() | Trimmed() | Slice() | Ending() | Replaced():
            return _takes(node, node.part, (Type.TEXT,), columns)
        case Concatenated():
            for part in node.parts:
                _takes(node, part, (Type.TEXT,), columns)
            return Type.TEXT
        case Cut():
            held = _takes(node, node.part, ORDERED, columns)
            _common(node, (node.part, node.edges[0]), (held, LITERAL_TYPES[type(node.edges[0])]))
            return Type.TEXT


def _arithmetic(node: Arithmetic, columns: Mapping[str, Type]) -> Type:
    """Numbers with numbers; of dates and times the difference, and a date some days later."""
    both = (node.left, node.right)
    left, right = (_type(part, columns) for part in both)
    match node.sign, left, right:
        case Sign.MINUS, Type.DATE, Type.DATE:
            return Type.WHOLE
        case Sign.MINUS, Type.DATE | Type.TIME, Type.DATE | Type.TIME:
            return Type.SPAN
        case Sign.PLUS | Sign.MINUS, Type.SPAN, Type.SPAN:
            return Type.SPAN
        case (Sign.PLUS | Sign.MINUS, Type.DATE | Type.TIME, Type.SPAN) | (Sign.PLUS, Type.SPAN, Type.DATE | Type.TIME):
            return Type.TIME
        case (Sign.PLUS | Sign.MINUS, Type.DATE, Type.WHOLE) | (Sign.PLUS, Type.WHOLE, Type.DATE):
            return Type.DATE
    for part, held in zip(both, (left, right), strict=True):
        _allowed(node, part, held, NUMERIC)
    common = _common(node, both, (left, right))
    return Type.NUMBER if node.sign is Sign.OVER else common


def _cast(node: Cast, columns: Mapping[str, Type]) -> Type:
    held = _type(node.part, columns)
    if node.to not in CASTS or held not in CASTS[node.to]:
        raise Unsupported(
            f"{written(node.part)!r} is a {held.value} and cannot be cast to a {node.to.value}; {NOTHING}. Casts lead "
            "to a whole number from a number, truth value or text, to a number from a whole number or text, to a date "
            "or time from each other or a text, and to a text from a whole number or date."
        )
    return node.to


def _takes(node: Value | Expression, part: Value, allowed: Sequence[Type], columns: Mapping[str, Type]) -> Type:
    held = _type(part, columns)
    _allowed(node, part, held, allowed)
    return held


def _allowed(node: Value | Expression, part: Value, held: Type, allowed: Sequence[Type]) -> None:
    if held not in allowed:
        wanted = " or ".join(f"{it.value}s" for it in allowed)
        raise InvalidInput(
            f"in {written(node)}, {written(part)!r} is a {held.value} where {wanted} are taken; {NOTHING}."
        )


def _common(node: Value | Expression, parts: Sequence[Value], types: Sequence[Type]) -> Type:
    """The one type of several values; a whole number beside a number is read as one, a time beside a date as its day.

    A constant time is not: a date beside it is its own first moment.
    """
    held = set(types)
    if held == set(NUMERIC):
        return Type.NUMBER
    if held == set(CLOCK):
        return Type.TIME if any(isinstance(part, Time) for part in parts) else Type.DATE
    if len(held) > 1:
        what = {CaseWhen: "branches", Cut: "value and the edges", Coalesce: "parts", Least: "parts", Greatest: "parts"}
        names = " and ".join(sorted(f"{kind.value}s" for kind in held))
        raise InvalidInput(
            f"the {what.get(type(node), 'two sides')} of {written(node)} must have one type and are {names}; {NOTHING}."
        )
    return held.pop()


def _column(column: str, columns: Mapping[str, Type]) -> Type:
    if column not in columns:
        raise InvalidInput(
            f"there is no column {column!r}; {NOTHING}. The columns are {', '.join(sorted(columns))}."
            f"{did_you_mean(column, columns)}"
        )
    if columns[column] is Type.OTHER:
        raise Unsupported(
            f"column {column!r} has a type that is not supported, or values of several types; {NOTHING}. Give it one "
            "type: text, whole numbers, numbers, truth values, dates or times. A time with a zone is, once the zone "
            f"is declared: zones={{{column!r}: 'Europe/Berlin'}}."
        )
    return columns[column]
