"""Expressions as SQL; what has no form there raises ``Unwritable``."""

from fractions import Fraction

from sfumato.engines.expressions import (
    Absolute,
    AllOf,
    AnyOf,
    Arithmetic,
    CaseWhen,
    Cast,
    Coalesce,
    Compare,
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
    StartsWith,
    Text,
    Truth,
    Type,
    Value,
    ValueCompare,
    ValueMissing,
    ValueOneOf,
    Whole,
)
from sfumato.engines.expressions.types import Part

FUNCTIONS = {
    Absolute: "ABS",
    Floor: "FLOOR",
    Length: "LENGTH",
    Coalesce: "COALESCE",
}


class Unwritable(Exception):
    """Bins, and numbers that no decimal writes."""


def name(column: str) -> str:
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def constant(value: Literal) -> str:
    match value:
        case Text():
            return quoted(value.value)
        case Truth():
            return str(value.value).upper()
        case Date():
            return f"DATE '{value.value}'"
        case Whole():
            return f"({value.value})" if value.value < 0 else str(value.value)
        case Number():
            return number(value.value)


def number(value: Fraction) -> str:
    """A decimal that is this very number, with a point or an exponent, so that it is no whole number."""
    places = next((places for places in range(401) if (value * 10**places).denominator == 1), None)
    if places is None:
        raise Unwritable
    digits = int(value * 10**places)
    while digits and digits % 10 == 0:
        digits, places = digits // 10, places - 1
    text = f"{abs(digits)}e{-places}"
    return f"(-{text})" if digits < 0 else text


def sql(node: Value | Expression) -> str:
    match node:
        case Named():
            return name(node.column)
        case Text() | Whole() | Number() | Truth() | Date():
            return constant(node)
        case Arithmetic():
            return f"({sql(node.left)} {node.sign.value} {sql(node.right)})"
        case Negative():
            return f"(-({sql(node.part)}))"
        case Absolute() | Floor() | Length():
            return f"{FUNCTIONS[type(node)]}({sql(node.part)})"
        case Least() | Greatest():
            raise Unwritable  # in SQL they leave out what is missing
        case Coalesce():
            return f"{FUNCTIONS[type(node)]}({', '.join(map(sql, node.parts))})"
        case CaseWhen():
            branches = " ".join(f"WHEN {sql(each.when)} THEN {sql(each.then)}" for each in node.branches)
            return f"(CASE {branches}{'' if node.otherwise is None else f' ELSE {sql(node.otherwise)}'} END)"
        case Cast():
            return f"CAST({sql(node.part)} AS {'BIGINT' if node.to is Type.WHOLE else 'DOUBLE PRECISION'})"
        case DatePart():
            part = "ISODOW" if node.of is Part.WEEKDAY else node.of.value.upper()
            return f"EXTRACT({part} FROM {sql(node.part)})"
        case DaysBetween():
            return f"DATE_DIFF('day', {sql(node.start)}, {sql(node.end)})"
        case Compare():
            return f"({name(node.column)} {node.operator.value} {constant(node.constant)})"
        case ValueCompare():
            return f"({sql(node.left)} {node.operator.value} {sql(node.right)})"
        case OneOf():
            return f"({name(node.column)} IN ({', '.join(map(constant, node.constants))}))"
        case ValueOneOf():
            return f"({sql(node.part)} IN ({', '.join(map(constant, node.constants))}))"
        case Missing():
            return f"({name(node.column)} IS NULL)"
        case ValueMissing():
            return f"({sql(node.part)} IS NULL)"
        case StartsWith():
            return f"STARTS_WITH({sql(node.part)}, {quoted(node.prefix)})"
        case Not():
            return f"({sql(node.part)} IS NOT TRUE)"  # NOT leaves what is unknown unknown
        case AllOf() | AnyOf():
            return f"({(' AND ' if isinstance(node, AllOf) else ' OR ').join(map(sql, node.parts))})"
    raise Unwritable
