"""A condition as people read it: ``diagnosis = “ILI”``, ``the year of admitted ≥ 2024``."""

from collections.abc import Iterable
from functools import reduce

from sfumato.engines.expressions import (
    Absolute,
    AllOf,
    AnyOf,
    Arithmetic,
    Case,
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
    Sign,
    StartsWith,
    Text,
    Truth,
    Type,
    Value,
    ValueCompare,
    ValueMissing,
    Whole,
)
from sfumato.engines.expressions.writing import shown
from sfumato.reports.catalogue import message

__all__ = ["condition", "value"]

OPERATORS = {Operator.UNEQUAL: "≠", Operator.AT_MOST: "≤", Operator.AT_LEAST: "≥"}
SIGNS = {Sign.PLUS: "+", Sign.MINUS: "−", Sign.TIMES: "×", Sign.OVER: "/"}


def condition(expression: Expression, language: str) -> str:
    """Write a predicate in words and signs. Public: all of it, as the question is.

    >>> from sfumato.engines.expressions import col
    >>> condition((col("age") >= 65) & ~col("region").isnull(), "en")
    'age ≥ 65 and not (region is missing)'
    """
    match expression:
        case Compare():
            return _compared(expression.column, expression.operator, _constant(expression.constant, language))
        case ValueCompare():
            left, right = value(expression.left, language), value(expression.right, language)
            return _compared(left, expression.operator, right)
        case Missing():
            return message(language, "condition.missing", column=expression.column)
        case ValueMissing():
            return message(language, "condition.missing", column=value(expression.part, language))
        case StartsWith():
            prefix = message(language, "condition.text", value=expression.prefix)
            return message(language, "value.starts", part=value(expression.part, language), prefix=prefix)
        case Not():
            return message(language, "condition.not", part=condition(expression.part, language))
        case AllOf() | AnyOf():
            joined = "condition.and" if isinstance(expression, AllOf) else "condition.or"
            parts = (_bracketed(part, language) for part in expression.parts)
            return reduce(lambda left, right: message(language, joined, left=left, right=right), parts)
    part = expression.column if isinstance(expression, OneOf) else value(expression.part, language)
    constants = _listed((_constant(constant, language) for constant in expression.constants), language)
    return message(language, "condition.one_of", column=part, values=constants)


def value(node: Value, language: str) -> str:
    """Write a value of one row in words and signs.

    >>> from sfumato.engines.expressions import col
    >>> value((col("out").days_since(col("in")) - 1).node, "zh")
    '从 in 到 out 的天数 − 1'
    """
    match node:
        case Named():
            return node.column
        case Text() | Whole() | Number() | Truth() | Date():
            return _constant(node, language)
        case Arithmetic():
            return f"{_closed(node.left, language)} {SIGNS[node.sign]} {_closed(node.right, language)}"
        case Negative():
            return f"−{_closed(node.part, language)}"
        case Absolute():
            return f"|{value(node.part, language)}|"
        case Floor():
            return f"⌊{value(node.part, language)}⌋"
        case Least() | Greatest() | Coalesce():
            parts = _listed((value(part, language) for part in node.parts), language)
            return message(language, node.KIND, parts=parts)
        case Case():
            return _case(node, language)
        case Cast():
            name = "value.whole" if node.to is Type.WHOLE else "value.number"
            return message(language, name, part=_closed(node.part, language))
        case DatePart():
            return message(language, f"value.{node.of.value}", part=_closed(node.part, language))
        case DaysBetween():
            ends = {"start": value(node.start, language), "end": value(node.end, language)}
            return message(language, "value.days", **ends)
        case Length():
            return message(language, "value.length", part=_closed(node.part, language))
        case Cut():
            labels = _listed((message(language, "condition.text", value=label) for label in node.labels), language)
            return message(language, "value.cut", part=_closed(node.part, language), parts=labels)


def _case(node: Case, language: str) -> str:
    branches = [
        message(language, "value.branch", when=condition(branch.when, language), then=_closed(branch.then, language))
        for branch in node.branches
    ]
    if node.otherwise is not None:
        branches.append(message(language, "value.otherwise", then=_closed(node.otherwise, language)))
    joined = reduce(lambda left, right: message(language, "value.between", left=left, right=right), branches)
    return message(language, "value.case", branches=joined)


def _compared(left: str, operator: Operator, right: str) -> str:
    return f"{left} {OPERATORS.get(operator, operator.value)} {right}"


def _listed(parts: Iterable[str], language: str) -> str:
    return reduce(lambda left, right: message(language, "list.between", left=left, right=right), parts)


def _closed(node: Value, language: str) -> str:
    """With brackets where another sign could bind tighter."""
    words = value(node, language)
    return f"({words})" if isinstance(node, Arithmetic | Negative) else words


def _bracketed(part: Expression, language: str) -> str:
    words = condition(part, language)
    return message(language, "condition.bracket", part=words) if isinstance(part, AllOf | AnyOf) else words


def _constant(constant: Literal, language: str) -> str:
    match constant:
        case Text():
            return message(language, "condition.text", value=constant.value)
        case Truth():
            return message(language, "condition.true" if constant.value else "condition.false")
        case Number():
            return shown(constant.value)
    return str(constant.value)
