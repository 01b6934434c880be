"""Expressions as SQL; what has no form there raises ``Unwritable``."""

from fractions import Fraction

from sfumato.engines.expressions import (
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
    Date,
    DatePart,
    DaysBetween,
    Duration,
    Expression,
    Floor,
    Greatest,
    Least,
    Length,
    Literal,
    Missing,
    Named,
    Nearest,
    Negative,
    Not,
    Number,
    OneOf,
    Operator,
    Replaced,
    Rounded,
    Seconds,
    Shifted,
    Side,
    Slice,
    StartsWith,
    Text,
    Time,
    Trimmed,
    Truncated,
    Truth,
    Type,
    UnitsBetween,
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


CASTS = {
    Type.NUMBER: "DOUBLE PRECISION",
    Type.TEXT: "TEXT",
    Type.DATE: "DATE",
    Type.TIME: "TIMESTAMP",
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
        case Time():
            return f"TIMESTAMP '{value.value}'"
        case Duration():
            raise Unwritable
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


def _of_day(node: Compare | ValueCompare) -> bool:
    other = node.constant if isinstance(node, Compare) else node.right
    return isinstance(other, Date) and node.operator not in (Operator.AT_LEAST, Operator.BELOW)


def sql(node: Value | Expression) -> str:
    match node:
        case Named():
            return name(node.column)
        case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
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
            if node.to is Type.WHOLE:
                raise Unwritable  # in SQL a cast goes to the nearest
            if isinstance(node.part, Text) and node.to in (Type.DATE, Type.TIME):
                raise Unwritable  # in SQL this is a date or a time as it stands, and must be one
            return f"CAST({sql(node.part)} AS {CASTS[node.to]})"
        case Nearest():
            return f"CAST({sql(node.part)} AS BIGINT)"
        case Rounded():
            return f"ROUND({sql(node.part)}, {node.digits})"
        case Seconds():
            return f"EXTRACT(EPOCH FROM {sql(node.part)})"
        case Truncated():
            return f"DATE_TRUNC('{node.to.value}', {sql(node.part)})"
        case UnitsBetween():
            return f"DATE_DIFF('{node.unit.value}', {sql(node.start)}, {sql(node.end)})"
        case Cased():
            return f"{'UPPER' if node.capital else 'LOWER'}({sql(node.part)})"
        case Trimmed(side=Side.BOTH):
            return f"TRIM({sql(node.part)})"
        case Slice():
            return f"SUBSTRING({sql(node.part)}, {node.start}{'' if node.length is None else f', {node.length}'})"
        case Replaced():
            return f"REPLACE({sql(node.part)}, {quoted(node.old)}, {quoted(node.new)})"
        case Concatenated():
            return f"({' || '.join(map(sql, node.parts))})"
        case Shifted():
            if node.microseconds % 10**6:
                raise Unwritable
            return f"({sql(node.part)} + INTERVAL '{node.months} months {node.microseconds // 10**6} seconds')"
        case DatePart():
            part = "ISODOW" if node.of is Part.WEEKDAY else node.of.value.upper()
            return f"EXTRACT({part} FROM {sql(node.part)})"
        case DaysBetween():
            return f"DATE_DIFF('day', {sql(node.start)}, {sql(node.end)})"
        case Compare() | ValueCompare() if _of_day(node):
            raise Unwritable  # in SQL a day is its first moment there
        case OneOf() | ValueOneOf() if any(isinstance(each, Date) for each in node.constants):
            raise Unwritable
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
