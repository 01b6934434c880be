"""HAVING: conditions on keys. They are public, so some are left out before anything is asked."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

from sfumato.engines.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Date,
    Expression,
    Literal,
    Missing,
    Named,
    Not,
    Number,
    OneOf,
    Operator,
    StartsWith,
    Text,
    Time,
    Truth,
    Whole,
    columns_of,
    microseconds,
)
from sfumato.errors import InvalidInput
from sfumato.tables.keys import Keys
from sfumato.tables.sql.refusals import refused

__all__ = ["kept"]

COMPARED = {
    Operator.EQUAL: eq,
    Operator.UNEQUAL: ne,
    Operator.BELOW: lt,
    Operator.AT_MOST: le,
    Operator.ABOVE: gt,
    Operator.AT_LEAST: ge,
}
Label = str | int | bool | Date | Time


def kept(keys: Sequence[Keys], condition: Expression) -> tuple[Keys, ...]:
    """The keys that meet a condition; each part of it, between ANDs, must be about one key.

    >>> from sfumato.engines.expressions import col
    >>> kept([Keys(column="ward", values=(1, 2, 3))], col("ward") >= 2)[0].values
    (2, 3)
    """
    found = list(keys)
    for part in condition.parts if isinstance(condition, AllOf) else (condition,):
        about = columns_of(part)
        if len(about) != 1:
            raise refused("a condition in HAVING on several keys, or on none")
        place = next(place for place, each in enumerate(found) if each.column in about)
        values = tuple(value for value in found[place].values if _meets(value, part))
        if not values:
            raise InvalidInput(f"HAVING leaves no value of {found[place].column!r}; nothing was done.")
        found[place] = replace(found[place], values=values)
    return tuple(found)


def _meets(value: Label, condition: Expression) -> bool:
    match condition:
        case Not():
            return not _meets(value, condition.part)
        case AllOf():
            return all(_meets(value, part) for part in condition.parts)
        case AnyOf():
            return any(_meets(value, part) for part in condition.parts)
        case Compare():
            mine, other = _ordered(value, condition.constant)
            return bool(COMPARED[condition.operator](mine, other))
        case OneOf():
            return any(eq(*_ordered(value, one)) for one in condition.constants)
        case StartsWith(part=Named()) if isinstance(value, str):
            return value.startswith(condition.prefix)
        case Missing():
            return False
    raise refused("a condition in HAVING that computes something")


def _moment(value: Date | Time) -> int:
    return microseconds(value.day) if isinstance(value, Date) else value.microseconds


def _ordered(value: Label, constant: Literal) -> tuple[bytes | Fraction | bool | str, bytes | Fraction | bool | str]:
    """Both as something that compares as it does on the engine."""
    match value, constant:
        case bool(), Truth():
            return value, constant.value
        case str(), Text():
            return value.encode(), constant.value.encode()
        case int(), Whole() | Number() if not isinstance(value, bool):
            return Fraction(value), Fraction(constant.value)
        case Date(), Date():
            return value.value, constant.value
        case Date() | Time(), Date() | Time():
            return Fraction(_moment(value)), Fraction(_moment(constant))
    raise InvalidInput("HAVING compares a key with a constant of another type; nothing was done.")
