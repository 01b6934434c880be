"""Predicates evaluated row by row in plain Python: a second, independent statement of the grammar's rules."""

import math
from collections.abc import Mapping

from sfumato.engines.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Expression,
    Literal,
    Missing,
    Not,
    Number,
    OneOf,
    Operator,
    Text,
)

Value = str | int | float | bool | None


def holds(expression: Expression, row: Mapping[str, Value]) -> bool:
    """Whether a row meets a predicate; always true or false, never unknown."""
    match expression:
        case Not():
            return not holds(expression.part, row)
        case AllOf():
            return all(holds(part, row) for part in expression.parts)
        case AnyOf():
            return any(holds(part, row) for part in expression.parts)
        case Missing():
            return is_missing(row[expression.column])
        case Compare():
            return _compares(row[expression.column], expression.operator, expression.constant)
        case OneOf():
            value = row[expression.column]
            return any(_compares(value, Operator.EQUAL, constant) for constant in expression.constants)
    raise AssertionError(expression)


def is_missing(value: Value) -> bool:
    """Null and NaN are missing; infinities, empty text and -0.0 are not."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _compares(value: Value, operator: Operator, constant: Literal) -> bool:
    if value is None or is_missing(value):
        return False
    order = _order(value, constant)
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


def _order(value: str | int | float | bool, constant: Literal) -> int:
    """-1, 0 or 1: text by its bytes, whole numbers exactly, anything beside a double as doubles."""
    if isinstance(constant, Text):
        assert isinstance(value, str)
        mine, given = value.encode(), constant.value.encode()
        return (mine > given) - (mine < given)
    assert not isinstance(value, str)
    other = float(constant.value) if isinstance(value, float) or isinstance(constant, Number) else constant.value
    return (value > other) - (value < other)
