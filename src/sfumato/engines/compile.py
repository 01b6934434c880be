"""Predicates as Ibis expressions, with our own rules for null and NaN spelt out instead of trusted."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING

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
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["predicate"]

FALSE = False
OPERATORS = {
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
    Operator.BELOW: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.ABOVE: operator.gt,
    Operator.AT_LEAST: operator.ge,
}


def predicate(expression: Expression, table: ir.Table) -> ir.BooleanValue:
    """Compile a checked predicate; the result is never null."""
    match expression:
        case Not():
            return ~predicate(expression.part, table)
        case AllOf():
            return reduce(operator.and_, (predicate(part, table) for part in expression.parts))
        case AnyOf():
            return reduce(operator.or_, (predicate(part, table) for part in expression.parts))
        case Missing():
            return _missing(table[expression.column])
        case Compare():
            column = _wide(table[expression.column])
            holds = OPERATORS[expression.operator](column, _constant(expression.constant))
        case OneOf():
            column = _wide(table[expression.column])
            holds = column.isin([_constant(constant) for constant in expression.constants])
    return ~_missing(column) & holds.fill_null(FALSE)


def _wide(column: ir.Value) -> ir.Value:
    """Whole numbers as 64 bits and numbers as doubles, so that no engine picks a narrower common type."""
    if column.type().is_integer():
        return column.cast("int64")
    return column.cast("float64") if column.type().is_floating() else column


def _missing(column: ir.Value) -> ir.BooleanValue:
    if column.type().is_floating():
        return column.isnull() | column.isnan().fill_null(FALSE)
    return column.isnull()


def _constant(constant: Literal) -> str | int | float | bool:
    return float(constant.value) if isinstance(constant, Number) else constant.value
