"""Expressions as people write them, for error messages and labels; public, as every question is."""

from fractions import Fraction

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
)
from sfumato.engines.expressions.literals import DAY, Date, Duration, Literal, Number, Text, Time, Truth, Whole
from sfumato.engines.expressions.types import Side, Type

__all__ = ["constant", "length", "shown", "written"]

SHORT = {Type.WHOLE: "whole", Type.NUMBER: "number"}


def constant(value: Literal) -> str:
    """A constant as it would be typed.

    >>> constant(Text('a "b"')), constant(Number(Fraction(1, 8))), constant(Number(Fraction(1, 3)))
    ('"a \\\\"b\\\\""', '0.125', '1/3')
    """
    match value:
        case Text():
            signs = value.value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{signs}"'
        case Truth():
            return "true" if value.value else "false"
        case Number():
            return shown(value.value)
        case Time():
            return value.value.replace("T", " ")
        case Duration():
            return length(value.value)
    return str(value.value)


def length(microseconds: int) -> str:
    """A length of time in days or in seconds.

    >>> length(2 * DAY), length(-1_500_000)
    ('2 days', '-1.5 seconds')
    """
    if microseconds % DAY == 0:
        return f"{microseconds // DAY} days"
    return f"{shown(Fraction(microseconds, 10**6))} seconds"


def shown(value: Fraction) -> str:
    """A rational as a decimal where that is exact and short, as a fraction elsewhere.

    >>> shown(Fraction(5, 2)), shown(Fraction(3)), shown(Fraction(2, 3)), shown(Fraction(1, 10**30))
    ('2.5', '3', '2/3', '1/1000000000000000000000000000000')
    """
    places = next((places for places in range(13) if (value * 10**places).denominator == 1), None)
    if not places:
        return str(value)
    digits = f"{abs(int(value * 10**places)):0{places + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def written(node: Value | Expression) -> str:
    """Write an expression in one line.

    >>> from sfumato.engines.expressions import col
    >>> written((col("out").days_since(col("in")) + 1) * 2 >= 14)
    '2 * (days_between(in, out) + 1) >= 14'
    """
    match node:
        case Named():
            return node.column
        case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
            return constant(node)
        case Arithmetic():
            return f"{_closed(node.left)} {node.sign.value} {_closed(node.right)}"
        case Negative():
            return f"-{_closed(node.part)}"
        case Absolute() | Floor() | Length() | Seconds() | Nearest():
            return f"{node.KIND.removeprefix('value.')}({written(node.part)})"
        case Least() | Greatest() | Coalesce() | Concatenated():
            return f"{node.KIND.removeprefix('value.')}({', '.join(map(written, node.parts))})"
        case CaseWhen():
            cases = [f"when {written(branch.when)} then {written(branch.then)}" for branch in node.branches]
            last = [] if node.otherwise is None else [f"otherwise {written(node.otherwise)}"]
            return f"({' '.join([*cases, *last])})"
        case Cast():
            return f"{SHORT.get(node.to, node.to.value)}({written(node.part)})"
        case DatePart():
            return f"{node.of.value}({written(node.part)})"
        case DaysBetween():
            return f"days_between({written(node.start)}, {written(node.end)})"
        case Truncated():
            return f"{node.to.value}_of({written(node.part)})"
        case UnitsBetween():
            return f"{node.unit.value}s_between({written(node.start)}, {written(node.end)})"
        case Shifted():
            months = f"{node.months} months" if node.months else ""
            rest = length(node.microseconds) if node.microseconds or not months else ""
            return f"shifted({written(node.part)}, {' and '.join(each for each in (months, rest) if each)})"
        case Cased():
            return f"{'upper' if node.capital else 'lower'}({written(node.part)})"
        case Trimmed():
            return f"trimmed({written(node.part)}{'' if node.side is Side.BOTH else f', {node.side.value}'})"
        case Slice():
            many = "" if node.length is None else f", {node.length}"
            return f"substring({written(node.part)}, {node.start}{many})"
        case Ending():
            return f"right({written(node.part)}, {node.length})"
        case Replaced():
            return f"replaced({written(node.part)}, {constant(Text(node.old))}, {constant(Text(node.new))})"
        case Rounded():
            return f"rounded({written(node.part)}, {node.digits})"
        case Cut():
            return f"cut({written(node.part)}, {', '.join(map(constant, node.edges))})"
        case Compare():
            return f"{node.column} {node.operator.value} {constant(node.constant)}"
        case ValueCompare():
            return f"{written(node.left)} {node.operator.value} {written(node.right)}"
        case OneOf():
            return f"{node.column} in ({', '.join(map(constant, node.constants))})"
        case ValueOneOf():
            return f"{written(node.part)} in ({', '.join(map(constant, node.constants))})"
        case Missing():
            return f"{node.column} is missing"
        case ValueMissing():
            return f"{written(node.part)} is missing"
        case StartsWith():
            return f"{written(node.part)} starts with {constant(Text(node.prefix))}"
        case Not():
            return f"not ({written(node.part)})"
        case AllOf() | AnyOf():
            word = " and " if isinstance(node, AllOf) else " or "
            return word.join(f"({written(part)})" for part in node.parts)


def _closed(node: Value) -> str:
    """With brackets where another sign could bind tighter."""
    return f"({written(node)})" if isinstance(node, Arithmetic | Negative) else written(node)
