"""Dates and times as operands: parts, beginnings, differences and shifts, made of whole numbers alone.

A time is microseconds since the first moment of the year 1, and so never negative; a date has the number of its day.
What would leave the years 1 to 9999 is missing. No zone, no setting and no calendar of an engine has a say in it, but
for the year, month and day of a date, which all engines count alike.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect
from sfumato.engines.expressions import Part, Sign, Type, Unit
from sfumato.engines.expressions.literals import DAY, MOST_MICROSECONDS, microseconds
from sfumato.engines.operands import FIRST_DAY, LAST_DAY, Operand, any_of, double, harmless, whole

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "as_date",
    "as_time",
    "difference",
    "from_text",
    "part_of",
    "seconds",
    "shifted",
    "truncated",
    "units_between",
]

DAYS = MOST_MICROSECONDS // DAY
EPOCH = microseconds(datetime.date(1970, 1, 1))
LENGTHS = {Unit.HOUR: DAY // 24, Unit.MINUTE: DAY // 1440, Unit.SECOND: 10**6}
FURTHEST = 12 * 9999 - 1  # months between the first day and the last
# The days of the calendar, each month by its own length and a leap day by its year. Digits are written out: what a
# range such as 0-9 holds may depend on a collation. The last sign stands for the end, which engines see differently.
D = "[0123456789]"
LONG, SHORT = "(0[13578]|1[02])", "(0[469]|11)"
DAY_28, DAY_30, DAY_31 = (
    f"(0[123456789]|1{D}|2[012345678])",
    f"(0[123456789]|[12]{D}|30)",
    f"(0[123456789]|[12]{D}|3[01])",
)
FOURTH = "(0[48]|[2468][048]|[13579][26])"
LEAP = f"({D}{D}{FOURTH}|([02468][048]|[13579][26])00)-02-29"
CALENDAR = f"({D}{D}{D}{D}-({LONG}-{DAY_31}|{SHORT}-{DAY_30}|02-{DAY_28})|{LEAP})"
OF_DAY = f"([01]{D}|2[0123]):[012345]{D}(:[012345]{D}([.]{D}{{1,6}})?)?"
FORM = f"^{CALENDAR}([ T]{OF_DAY})?#"
SPOILED = "^0000|#"


def as_date(part: Operand, dialect: Dialect) -> Operand:
    """The day of a time; a date as it is."""
    if part.type is Type.DATE:
        return part
    return Operand(type=Type.DATE, value=dialect.day_of(_number(part, dialect)), missing=part.missing)


def as_time(part: Operand, dialect: Dialect) -> Operand:
    """The first moment of a date; a time as it is."""
    if part.type is Type.TIME:
        return part
    return Operand(type=Type.TIME, value=_moment(part, dialect), missing=part.missing, constant=part.constant)


def part_of(part: Operand, of: Part, dialect: Dialect) -> Operand:
    """A part of a date or time, as a whole number."""
    match of:
        case Part.HOUR:
            found = dialect.divided(part.value % whole(DAY), LENGTHS[Unit.HOUR])
        case Part.MINUTE:
            found = dialect.divided(part.value % whole(LENGTHS[Unit.HOUR]), LENGTHS[Unit.MINUTE])
        case Part.WEEKDAY:
            found = _number(part, dialect) % whole(7) + whole(1)  # the first day of the year 1 was a Monday
        case Part.SUNDAY_WEEKDAY:
            found = (_number(part, dialect) + whole(1)) % whole(7)
        case _:
            found = _calendar(as_date(part, dialect).value, of)
    return Operand(type=Type.WHOLE, value=found.cast("int64"), missing=part.missing)


def truncated(part: Operand, to: Unit, dialect: Dialect) -> Operand:
    """The beginning of the unit that a date or time lies in."""
    if to in LENGTHS:
        return Operand(type=Type.TIME, value=part.value - part.value % whole(LENGTHS[to]), missing=part.missing)
    day = as_date(part, dialect)
    match to:
        case Unit.DAY:
            return day
        case Unit.WEEK:
            number = _number(part, dialect)
            first = number - number % whole(7)
        case _:
            return Operand(type=Type.DATE, value=dialect.begun(day.value, to), missing=part.missing)
    return Operand(type=Type.DATE, value=dialect.day_of(first), missing=part.missing)


def units_between(start: Operand, end: Operand, unit: Unit, dialect: Dialect) -> Operand:
    """How many beginnings of a unit lie between two dates or times."""

    def place(part: Operand) -> ir.Value:
        if unit in LENGTHS:
            return dialect.divided(_moment(part, dialect), LENGTHS[unit])
        if unit in (Unit.DAY, Unit.WEEK):
            return _number(part, dialect) if unit is Unit.DAY else dialect.divided(_number(part, dialect), 7)
        day = as_date(part, dialect).value
        year = _calendar(day, Part.YEAR)
        match unit:
            case Unit.QUARTER:
                return year * whole(4) + _calendar(day, Part.QUARTER)
            case Unit.MONTH:
                return year * whole(12) + _calendar(day, Part.MONTH)
        return year

    return Operand(type=Type.WHOLE, value=place(end) - place(start), missing=any_of([start.missing, end.missing]))


def seconds(part: Operand, dialect: Dialect) -> Operand:
    """A length of time in seconds; of a date or time, those since 1970."""
    length = part.value if part.type is Type.SPAN else _moment(part, dialect) - whole(EPOCH)
    return Operand(type=Type.NUMBER, value=length.cast("float64") / double(1e6), missing=part.missing)


def shifted(part: Operand, months: int, length: int, dialect: Dialect) -> Operand:
    """A date, time or length of time, moved."""
    if part.type is Type.SPAN:
        return _length(part.value + whole(length), [part])
    moved = as_time(part, dialect) if not months else _months_later(part, months, dialect)
    return _inside(moved.value + whole(length), [moved])


def difference(sign: Sign, left: Operand, right: Operand, dialect: Dialect) -> Operand | None:
    """What is added or subtracted where a date, time or length of time is among it; None where none is."""
    match sign, left.type, right.type:
        case Sign.MINUS, Type.DATE, Type.DATE:
            return units_between(right, left, Unit.DAY, dialect)
        case Sign.MINUS, Type.DATE | Type.TIME, Type.DATE | Type.TIME:
            return _length(_moment(left, dialect) - _moment(right, dialect), [left, right])
        case Sign.PLUS, Type.SPAN | Type.WHOLE, Type.DATE | Type.TIME:
            return difference(sign, right, left, dialect)
        case _, Type.DATE | Type.TIME, Type.SPAN:
            moved = _moment(left, dialect) + right.value if sign is Sign.PLUS else _moment(left, dialect) - right.value
            return _inside(moved, [left, right])
        case _, Type.DATE, Type.WHOLE:
            return _days_later(left, right, sign, dialect)
        case _, Type.SPAN, Type.SPAN:
            found = left.value + right.value if sign is Sign.PLUS else left.value - right.value
            return _length(found, [left, right])
    return None


def from_text(part: Operand, to: Type, dialect: Dialect) -> Operand:
    """A text as a date or time, if it is written ``2026-01-31``, perhaps with ``13:05`` or ``13:05:00.25`` after it.

    What is not of this form, or no day or time of day, is missing. Between the two may stand a space or a T. A text
    that is longer than every form cannot have it, so that only its head is looked at. What is read by the engine is a
    day of the calendar and a time of the day, so that there is nothing to fail on.
    """
    import ibis

    head = part.value.left(30)
    valid = (head + ibis.literal("#")).re_search(FORM) & ~head.re_search(SPOILED)
    safe = ibis.cases((valid, head), else_=ibis.literal("0001-01-01"))
    missing = any_of([part.missing, ~valid])
    if to is Type.DATE:
        return Operand(type=to, value=safe.left(10).cast("date"), missing=missing)
    return Operand(type=to, value=dialect.microseconds(safe.cast("timestamp(6)")), missing=missing)


def _calendar(day: ir.Value, of: Part) -> ir.Value:
    match of:
        case Part.YEAR:
            found = day.year()
        case Part.QUARTER:
            found = day.quarter()
        case Part.MONTH:
            found = day.month()
        case Part.DAY:
            found = day.day()
        case Part.WEEK:
            found = day.week_of_year()
        case _:
            found = day.day_of_year()
    return found.cast("int64")


def _number(part: Operand, dialect: Dialect) -> ir.Value:
    """The number of a day, 0 for the first."""
    import ibis

    if part.type is Type.TIME:
        return dialect.divided(part.value, DAY)
    return part.value.delta(ibis.literal(FIRST_DAY), unit="day").cast("int64")


def _moment(part: Operand, dialect: Dialect) -> ir.Value:
    """Microseconds since the first moment."""
    return part.value if part.type is Type.TIME else _number(part, dialect) * whole(DAY)


def _inside(moment: ir.Value, parts: list[Operand]) -> Operand:
    """A time; missing where it left the calendar."""
    import ibis

    inside = (moment >= whole(0)) & (moment < whole(MOST_MICROSECONDS))
    missing = any_of([*(part.missing for part in parts), ~inside])
    return Operand(type=Type.TIME, value=ibis.cases((inside, moment), else_=whole(0)), missing=missing)


def _length(length: ir.Value, parts: list[Operand]) -> Operand:
    """A length of time, of ten thousand years at most."""
    import ibis

    value = ibis.greatest(ibis.least(length, whole(MOST_MICROSECONDS)), whole(-MOST_MICROSECONDS))
    return Operand(type=Type.SPAN, value=value, missing=any_of([part.missing for part in parts]))


def _days_later(day: Operand, days: Operand, sign: Sign, dialect: Dialect) -> Operand:
    import ibis

    some = ibis.greatest(ibis.least(days.value, whole(DAYS)), whole(-DAYS))
    moved = _number(day, dialect) + some if sign is Sign.PLUS else _number(day, dialect) - some
    inside = (moved >= whole(0)) & (moved < whole(DAYS))
    value = dialect.day_of(ibis.cases((inside, moved), else_=whole(0)))
    return Operand(type=Type.DATE, value=value, missing=any_of([day.missing, days.missing, ~inside]))


def _months_later(part: Operand, months: int, dialect: Dialect) -> Operand:
    """On the clock the same; where the month is too short, on its last day."""
    import ibis

    if abs(months) > FURTHEST:
        return Operand(type=Type.TIME, value=harmless(Type.TIME), missing=ibis.literal(True))  # noqa: FBT003
    day, of_day = as_date(part, dialect).value, _moment(part, dialect) % whole(DAY)
    reached = _calendar(day, Part.YEAR) * whole(12) + _calendar(day, Part.MONTH) + whole(months)
    inside = (reached >= whole(13)) & (reached <= whole(9999 * 12 + 12))
    # What would leave the calendar is moved from a day that does not.
    safe = ibis.cases((inside, day), else_=ibis.literal(FIRST_DAY if months > 0 else LAST_DAY))
    moved = Operand(type=Type.DATE, value=dialect.months_later(safe, months), missing=None)
    return Operand(type=Type.TIME, value=_moment(moved, dialect) + of_day, missing=any_of([part.missing, ~inside]))
