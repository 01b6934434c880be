"""Expressions evaluated row by row in plain Python: a second, independent statement of the grammar's rules.

Whole numbers are Python's own, saturated afterwards; numbers are Python's floats, held; text is bytes; dates are
:class:`datetime.date`. None is what is missing.
"""

import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

from sfumato.engines.expressions import (
    Absolute,
    AllOf,
    AnyOf,
    Arithmetic,
    CaseWhen,
    Cast,
    Coalesce,
    Compare,
    Cut,
    Date,
    DatePart,
    DaysBetween,
    Expression,
    Floor,
    Greatest,
    Least,
    Length,
    Literal,
    Missing,
    Named,
    Negative,
    Not,
    Number,
    OneOf,
    Operator,
    Part,
    Sign,
    StartsWith,
    Term,
    Text,
    Truth,
    Type,
    Value,
    ValueCompare,
    ValueMissing,
    ValueOneOf,
    Whole,
)

Cell = str | int | float | bool | datetime.date | None  # what a row holds
Present = str | int | float | bool | datetime.date


class Row(dict[str, Cell]):
    """A row that knows which of its columns hold numbers, so that 1 beside a missing one is still 1.0."""

    def __init__(self, cells: Mapping[str, Cell], numbers: frozenset[str]) -> None:
        super().__init__(cells)
        self.numbers = numbers


FAR = 2.0**480


def holds(expression: Expression, row: Mapping[str, Cell]) -> bool:
    """Whether a row meets a predicate; always true or false, never unknown."""
    match expression:
        case Not():
            return not holds(expression.part, row)
        case AllOf():
            return all(holds(part, row) for part in expression.parts)
        case AnyOf():
            return any(holds(part, row) for part in expression.parts)
        case Missing():
            return leaf(row[expression.column]) is None
        case ValueMissing():
            return value_of(expression.part, row) is None
        case Compare():
            return _compares(leaf(row[expression.column]), expression.operator, _plain(expression.constant))
        case ValueCompare():
            return _compares(value_of(expression.left, row), expression.operator, value_of(expression.right, row))
        case OneOf():
            mine = leaf(row[expression.column])
            return any(_compares(mine, Operator.EQUAL, _plain(one)) for one in expression.constants)
        case ValueOneOf():
            mine = value_of(expression.part, row)
            return any(_compares(mine, Operator.EQUAL, _plain(one)) for one in expression.constants)
        case StartsWith():
            text = value_of(expression.part, row)
            assert text is None or isinstance(text, str)
            return text is not None and text.encode().startswith(expression.prefix.encode())


def value_of(expression: Value | Term, row: Mapping[str, Cell]) -> Present | None:
    """The value of an expression for a row, None where it is missing."""
    node = expression.node if isinstance(expression, Term) else expression
    match node:
        case Named():
            return leaf(row[node.column])
        case Text() | Whole() | Number() | Truth() | Date():
            return _plain(node)
        case Coalesce():
            parts = _alike(node.parts, row)
            return next((part for part in parts if part is not None), None)
        case CaseWhen():
            return _choice(node, row)
        case Cut():
            return _label(node, value_of(node.part, row))
    return _computed(node, row)


def leaf(value: Cell) -> Present | None:
    """A cell as the grammar sees it: null and NaN are missing; infinities, empty text and -0.0 are not."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.date() if isinstance(value, datetime.datetime) else value


# ------------------------------------------------------------------------------------------------------ comparisons


def _compares(mine: Present | None, operator: Operator, other: Present | None) -> bool:
    if mine is None or other is None:
        return False
    order = _order(mine, other)
    match operator:
        case Operator.EQUAL:
            return order == 0
        case Operator.UNEQUAL:
            return order != 0
        case Operator.BELOW:
            return order < 0
        case Operator.AT_MOST:
            return order <= 0
        case Operator.ABOVE:
            return order > 0
        case Operator.AT_LEAST:
            return order >= 0


def _order(mine: Present, other: Present) -> int:
    """-1, 0 or 1: text by its bytes, whole numbers exactly, anything beside a double as doubles."""
    if isinstance(mine, str) and isinstance(other, str):
        one, two = mine.encode(), other.encode()
        return (one > two) - (one < two)
    if isinstance(mine, float) or isinstance(other, float):
        mine, other = float(mine), float(other)  # type: ignore[arg-type]
    return (mine > other) - (mine < other)  # type: ignore[operator]


def _plain(constant: Literal) -> Present:
    match constant:
        case Number():
            return float(constant.value)
        case Date():
            return datetime.date.fromisoformat(constant.value)
    return constant.value


# ---------------------------------------------------------------------------------------------------------- choices


def _choice(node: CaseWhen, row: Mapping[str, Cell]) -> Present | None:
    thens = [branch.then for branch in node.branches]
    values = _alike(thens if node.otherwise is None else [*thens, node.otherwise], row)
    for branch, value in zip(node.branches, values, strict=False):
        if holds(branch.when, row):
            return value
    return None if node.otherwise is None else values[-1]


def _label(node: Cut, value: Present | None) -> str | None:
    if value is None:
        return None
    edges = [_plain(edge) for edge in node.edges]
    bins = list(itertools.pairwise(edges))
    labels = list(node.labels)
    lowest = labels.pop(0) if node.below else None
    highest = labels.pop() if node.above else None
    if _order(value, edges[0]) < 0:
        return lowest
    for (low, high), label in zip(bins, labels, strict=True):
        if _order(value, low) >= 0 and _order(value, high) < 0:
            return label
    return highest


def _alike(nodes: Sequence[Value], row: Mapping[str, Cell]) -> list[Present | None]:
    """The values of several nodes; whole-number constants beside numbers are numbers."""
    values = [value_of(node, row) for node in nodes]
    if any(_is_number(node, row) for node in nodes):
        return [float(value) if type(value) is int else value for value in values]
    return values


def _is_number(node: Value, row: Mapping[str, Cell]) -> bool:
    match node:
        case Number():
            return True
        case Named():
            return isinstance(row[node.column], float) or node.column in getattr(row, "numbers", ())
        case Arithmetic():
            return node.sign is Sign.OVER or _is_number(node.left, row) or _is_number(node.right, row)
        case Negative() | Absolute() | Floor():
            return _is_number(node.part, row)
        case Least() | Greatest() | Coalesce():
            return any(_is_number(part, row) for part in node.parts)
        case CaseWhen():
            thens = [branch.then for branch in node.branches]
            last = [] if node.otherwise is None else [node.otherwise]
            return any(_is_number(part, row) for part in (*thens, *last))
        case Cast():
            return node.to is Type.NUMBER
    return False


# ------------------------------------------------------------------------------------------------------- operations


def _computed(node: Value, row: Mapping[str, Cell]) -> Present | None:
    match node:
        case Arithmetic(sign=Sign.PLUS | Sign.MINUS):
            return _total(node, row)
        case Arithmetic():
            parts = _alike([node.left, node.right], row)
        case DaysBetween():
            parts = _alike([node.start, node.end], row)
        case Least() | Greatest():
            parts = _alike(node.parts, row)
        case _:
            parts = [value_of(node.part, row)]  # type: ignore[union-attr]
    present = [part for part in parts if part is not None]
    return _operation(node, *present) if len(present) == len(parts) else None


def _total(node: Value, row: Mapping[str, Cell]) -> Present | None:
    """A whole run of additions and subtractions: operands are held, and the total once more."""
    numbers = _is_number(node, row)

    def added(part: Value) -> int | float | None:
        if isinstance(part, Arithmetic) and part.sign in (Sign.PLUS, Sign.MINUS):
            left, right = added(part.left), added(part.right)
            if left is None or right is None:
                return None
            return left + right if part.sign is Sign.PLUS else left - right
        value = value_of(part, row)
        assert value is None or isinstance(value, int | float)
        return held(float(value)) if numbers and value is not None else value

    found = added(node)
    if found is None:
        return None
    return held(found) if isinstance(found, float) else saturated(found)


def _operation(node: Value, *parts: Present) -> Present | None:
    match node, parts:
        case Arithmetic(), (float() | int() as mine, float() | int() as other):
            return _product_or_quotient(node.sign, mine, other)
        case Negative(), (float() as mine,):
            return -mine
        case Negative(), (int() as mine,):
            return saturated(-mine)
        case Absolute(), (float() as mine,):
            return abs(mine)
        case Absolute(), (int() as mine,):
            return saturated(abs(mine))
        case Floor(), (float() as mine,):
            return mine if math.isinf(mine) else float(math.floor(mine))
        case Least(), _:
            return min(parts)  # type: ignore[type-var]
        case Greatest(), _:
            return max(parts)  # type: ignore[type-var]
        case Cast(to=Type.NUMBER), (int() as mine,):
            return float(mine)
        case Cast(to=Type.WHOLE), (float() as mine,):
            if math.isinf(mine):
                return saturated(2**63 if mine > 0 else -(2**63))
            return saturated(math.floor(mine))
        case Cast(to=Type.WHOLE), (bool() as mine,):
            return int(mine)
        case Cast(to=Type.WHOLE), (str() as mine,):
            return int(mine) if re.fullmatch("-?[0-9]{1,18}", mine, re.ASCII) else None
        case DatePart(), (datetime.date() as mine,):
            return _date_part(node.of, mine)
        case DaysBetween(), (datetime.date() as start, datetime.date() as end):
            return end.toordinal() - start.toordinal()
        case Length(), (str() as mine,):
            return len(mine)
    raise AssertionError((node, parts))


def _product_or_quotient(sign: Sign, mine: float, other: float) -> float | None:
    if sign is Sign.OVER:
        top, bottom = held(float(mine)), held(float(other))
        return None if bottom == 0 else held(top / bottom)
    if isinstance(mine, int) and isinstance(other, int):
        return saturated(mine * other)
    return held(held(mine) * held(other))


def saturated(value: int) -> int:
    """Brought into 64 bits."""
    return max(-(2**63), min(2**63 - 1, value))


@cache
def held(value: float) -> float:
    """Brought into ±2^480, then rounded as doubles are beside 3 * 2^-429: near 0 to a multiple of 2^-480.

    Said with rationals: the nearest double to the sum, less what was added, is a double again.
    """
    inside = max(-FAR, min(FAR, value))
    added = 3 * Fraction(1, 2**429)
    beside = Fraction(float(Fraction(inside) + added))
    return float(beside - added)


def _date_part(of: Part, day: datetime.date) -> int:
    match of:
        case Part.YEAR:
            return day.year
        case Part.QUARTER:
            return (day.month + 2) // 3
        case Part.MONTH:
            return day.month
        case Part.DAY:
            return day.day
        case Part.WEEKDAY:
            return day.isoweekday()
