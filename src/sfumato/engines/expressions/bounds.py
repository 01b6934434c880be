"""Public facts about a value that follow from the expression: its bounds, and the list of all it can be.

Bounds are computed with rationals, outward: what the engine computes with doubles lies within them whenever each
column that has bounds holds whole numbers or numbers, and each of its values lies within them or is missing. Which of
the two it holds need not be known, so a price is known before any data is opened. Public: everything here.

A column of dates or times, or of texts that are read as such, has a period: its first and its last day. Lengths of time
and lists of months follow from it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction

from sfumato.engines.expressions.doubles import held
from sfumato.engines.expressions.grammar import (
    Absolute,
    Arithmetic,
    CaseWhen,
    Cast,
    Coalesce,
    DatePart,
    DaysBetween,
    Floor,
    Greatest,
    Least,
    Named,
    Nearest,
    Negative,
    Rounded,
    Seconds,
    Shifted,
    Truncated,
    UnitsBetween,
    Value,
    summands,
)
from sfumato.engines.expressions.literals import (
    DAY,
    MOST_MICROSECONDS,
    Date,
    Duration,
    Number,
    Time,
    Whole,
)
from sfumato.engines.expressions.literals import microseconds as since_the_first
from sfumato.engines.expressions.terms import Term
from sfumato.engines.expressions.types import Part, Sign, Type, Unit

__all__ = ["Bounds", "bounds_of"]

Bounds = Mapping[str, tuple[Fraction, Fraction] | tuple[date, date]]
"""The public range of each column: of numbers, or the first and the last day."""

WHOLE, NUMBER = frozenset({Type.WHOLE}), frozenset({Type.NUMBER})
BOTH = WHOLE | NUMBER
ADDING = (Sign.PLUS, Sign.MINUS)
PARTS = {
    Part.YEAR: (1, 9999),
    Part.QUARTER: (1, 4),
    Part.MONTH: (1, 12),
    Part.DAY: (1, 31),
    Part.WEEKDAY: (1, 7),
    Part.SUNDAY_WEEKDAY: (0, 6),
    Part.WEEK: (1, 53),
    Part.YEAR_DAY: (1, 366),
    Part.HOUR: (0, 23),
    Part.MINUTE: (0, 59),
}
EPOCH = since_the_first(date(1970, 1, 1))
FIRST, LAST = 0, MOST_MICROSECONDS - 1
LENGTHS = {Unit.WEEK: 7 * DAY, Unit.DAY: DAY, Unit.HOUR: DAY // 24, Unit.MINUTE: DAY // 1440, Unit.SECOND: 10**6}
MONTHS = {Unit.YEAR: 12, Unit.QUARTER: 3, Unit.MONTH: 1}


@dataclass(frozen=True, slots=True)
class _Range:
    """Where a value lies, None where that is not known, and which of the two kinds of number it may be."""

    low: Fraction | None
    high: Fraction | None
    kinds: frozenset[Type] = BOTH


UNKNOWN = _Range(None, None)


def bounds_of(expression: Value | Term, bounds: Bounds) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest that a value can be, given those of its columns; None where they do not follow.

    >>> from sfumato.engines.expressions import col
    >>> public = {"weight": (Fraction(2), Fraction(300)), "height": (Fraction(1), Fraction(2))}
    >>> bounds_of(col("weight") / col("height"), public)
    (Fraction(1, 1), Fraction(300, 1))
    >>> bounds_of(col("stay").clip(0, 30) * 24, {})
    (Fraction(0, 1), Fraction(720, 1))
    """
    node = expression.node if isinstance(expression, Term) else expression
    found = range_of(node, bounds)
    return None if found.low is None or found.high is None else (found.low, found.high)


# ------------------------------------------------------------------------------------------------- dates and times


def period_of(node: Value, bounds: Bounds) -> tuple[date, date] | None:
    """The first and the last day that a date or time can lie on, where a period was declared."""
    match node:
        case Named():
            found = bounds.get(node.column)
            return found if found is not None and isinstance(found[0], date) else None
        case Cast() if node.to in (Type.DATE, Type.TIME):
            return period_of(node.part, bounds)
        case Truncated():
            inner = period_of(node.part, bounds)
            return None if inner is None else (beginning(node.to, inner[0]), inner[1])
        case Shifted():
            if period_of(node.part, bounds) is None:
                return None
            low, high = _clock(node, bounds)
            return (_day(max(low, FIRST)), _day(min(high, LAST))) if low <= LAST and high >= FIRST else None
    return None


def _day(microseconds: int) -> date:
    return date.fromordinal(microseconds // DAY + 1)


def beginning(unit: Unit, day: date) -> date:
    """The first day of the year, quarter, month or week that a day is in."""
    if unit is Unit.WEEK:
        back = min(day.weekday(), day.toordinal() - 1)
        return day - timedelta(days=back)
    if unit in MONTHS:
        return day.replace(month=(day.month - 1) // MONTHS[unit] * MONTHS[unit] + 1, day=1)
    return day


def _clock(node: Value, bounds: Bounds) -> tuple[int, int]:
    """The least and the greatest of a date, time or length of time, in microseconds, within the calendar at most."""
    match node:
        case Date():
            at = since_the_first(node.day)
            return at, at
        case Time():
            return node.microseconds, node.microseconds
        case Duration():
            return node.value, node.value
        case Cast() if node.to in (Type.DATE, Type.TIME):
            low, high = _clock(node.part, bounds)
            return (low // DAY * DAY if node.to is Type.DATE else low), high
        case Truncated():
            low, high = _clock(node.part, bounds)
            step = LENGTHS.get(node.to, 366 * DAY)
            return max(FIRST, low - step), high
        case Shifted():
            low, high = _clock(node.part, bounds)
            least, most = sorted((node.months * 28 * DAY, node.months * 31 * DAY + (31 * DAY if node.months else 0)))
            least -= 31 * DAY if node.months < 0 else 0
            return low + least + node.microseconds, high + most + node.microseconds
        case Arithmetic(sign=Sign.MINUS):
            (low, high), (first, last) = _clock(node.left, bounds), _clock(node.right, bounds)
            return low - last, high - first
        case Arithmetic(sign=Sign.PLUS):
            (low, high), (first, last) = _clock(node.left, bounds), _clock(node.right, bounds)
            return low + first, high + last
        case Least() | Greatest() | Coalesce() | CaseWhen():
            ends = [_clock(part, bounds) for part in _choices(node)]
            return min(low for low, _ in ends), max(high for _, high in ends)
    period = period_of(node, bounds)
    return (FIRST, LAST) if period is None else (since_the_first(period[0]), since_the_first(period[1]) + DAY - 1)


def _choices(node: Least | Greatest | Coalesce | CaseWhen) -> list[Value]:
    if not isinstance(node, CaseWhen):
        return list(node.parts)
    return [*(branch.then for branch in node.branches), *(() if node.otherwise is None else (node.otherwise,))]


def _is_clock(node: Value, bounds: Bounds) -> bool:
    """Whether a value is seen to be a date or time: its period was declared, or it was made one."""
    match node:
        case Date() | Time() | Truncated() | Shifted():
            return True
        case Cast():
            return node.to in (Type.DATE, Type.TIME)
        case Least() | Greatest() | Coalesce() | CaseWhen():
            return any(_is_clock(part, bounds) for part in _choices(node))
    return period_of(node, bounds) is not None


def _units(node: DaysBetween | UnitsBetween, bounds: Bounds) -> _Range:
    """How many beginnings of a unit lie between two times, at most."""
    (first, last), (low, high) = _clock(node.start, bounds), _clock(node.end, bounds)
    unit = Unit.DAY if isinstance(node, DaysBetween) else node.unit

    def place(at: int) -> int:
        inside = max(FIRST, min(LAST, at))
        if unit in MONTHS:
            day = _day(inside)
            return (day.year * 12 + day.month - 1) // MONTHS[unit]
        return inside // LENGTHS[unit]

    return _Range(Fraction(place(low) - place(last)), Fraction(place(high) - place(first)), WHOLE)


# --------------------------------------------------------------------------------------------- interval arithmetic


def range_of(node: Value, bounds: Bounds) -> _Range:
    match node:
        case Named():
            return _of_column(node.column, bounds)
        case Whole():
            exact, nearest = Fraction(node.value), Fraction(float(node.value))
            return _Range(min(exact, nearest), max(exact, nearest))  # beside a number it is the nearest double
        case Number():
            nearest = Fraction(float(node.value))
            return _Range(nearest, nearest, NUMBER)
        case Arithmetic():
            return _arithmetic(node, bounds)
        case Negative():
            return _opposite(range_of(node.part, bounds))
        case Absolute():
            return _absolute(range_of(node.part, bounds))
        case Floor():
            part = range_of(node.part, bounds)
            return _Range(_floor(part.low), _floor(part.high), part.kinds)
        case Least():
            parts = [range_of(part, bounds) for part in node.parts]
            low, high = [part.low for part in parts], [part.high for part in parts]
            return _Range(_of_all(min, low), _of_some(min, high), _kinds(parts))
        case Greatest():
            parts = [range_of(part, bounds) for part in node.parts]
            low, high = [part.low for part in parts], [part.high for part in parts]
            return _Range(_of_some(max, low), _of_all(max, high), _kinds(parts))
        case Coalesce():
            return _hull([range_of(part, bounds) for part in node.parts])
        case CaseWhen():
            last = () if node.otherwise is None else (node.otherwise,)
            return _hull([range_of(part, bounds) for part in (*(branch.then for branch in node.branches), *last)])
        case Cast():
            return _cast(node, bounds)
        case DatePart():
            first, last_one = PARTS[node.of]
            period = period_of(node.part, bounds) if node.of is Part.YEAR else None
            first, last_one = (first, last_one) if period is None else (period[0].year, period[1].year)
            return _Range(Fraction(first), Fraction(last_one), WHOLE)
        case DaysBetween() | UnitsBetween():
            return _units(node, bounds)
        case Seconds():
            least, most = _clock(node.part, bounds)
            start = 0 if _is_length(node.part) else EPOCH
            return _Range(_down(Fraction(least - start, 10**6)), _up(Fraction(most - start, 10**6)), NUMBER)
        case Rounded():
            part = range_of(node.part, bounds)
            step = Fraction(1, 10**node.digits)
            return _Range(_step_down(part.low, step), _step_up(part.high, step), part.kinds)
        case Nearest():
            part = range_of(node.part, bounds)
            return _Range(_saturated(_floor(part.low)), _saturated(_ceiling(part.high)), WHOLE)
    return UNKNOWN  # texts, truth values, dates and times


def _of_column(column: str, bounds: Bounds) -> _Range:
    found = bounds.get(column)
    if found is None or not isinstance(found[0], Fraction) or not isinstance(found[1], Fraction):
        return UNKNOWN
    return _Range(found[0], found[1])


def _is_length(node: Value) -> bool:
    """Whether what seconds are of is a difference, and not a date or time."""
    match node:
        case Duration():
            return True
        case Arithmetic():
            right = _is_length(node.right)
            return (node.sign is Sign.MINUS and not right) or (right and _is_length(node.left))
        case Shifted():
            return _is_length(node.part)
        case Least() | Greatest() | Coalesce() | CaseWhen():
            return all(_is_length(part) for part in _choices(node))
    return False


def _cast(node: Cast, bounds: Bounds) -> _Range:
    if node.to not in (Type.WHOLE, Type.NUMBER):
        return UNKNOWN
    part = range_of(node.part, bounds)
    if node.to is Type.NUMBER:
        return _Range(_down(part.low), _up(part.high), NUMBER)
    return _Range(_saturated(_floor(part.low)), _saturated(_floor(part.high)), WHOLE)


def _arithmetic(node: Arithmetic, bounds: Bounds) -> _Range:
    adds = node.sign in ADDING
    if node.sign is Sign.MINUS and (_is_clock(node.left, bounds) or _is_clock(node.right, bounds)):
        return _units(DaysBetween(start=node.right, end=node.left), bounds)
    parts = [range_of(part, bounds) for part in (summands(node) if adds else (node.left, node.right))]
    kinds = _kinds(parts)
    if node.sign is Sign.OVER or kinds == NUMBER:  # whole numbers are made numbers before they are divided
        return _of_numbers(node, parts)
    exact = _combined(node, iter(parts), lambda found: found)
    whole = _Range(_saturated(exact.low), _saturated(exact.high), WHOLE)
    return whole if kinds == WHOLE else replace(_hull([whole, _of_numbers(node, parts)]), kinds=kinds)


def _of_numbers(node: Arithmetic, parts: Sequence[_Range]) -> _Range:
    """Operands are held, each step is rounded to a double, and the result is held; all that keeps the order."""
    entered = (_Range(_held(_down(part.low)), _held(_up(part.high))) for part in parts)
    found = _combined(node, entered, lambda one: _Range(_down(one.low), _up(one.high)))
    return _Range(_held(found.low), _held(found.high), NUMBER)


def _combined(node: Arithmetic, parts: Iterator[_Range], rounded: Callable[[_Range], _Range]) -> _Range:
    """One operation, or a whole run of additions and subtractions, over its operands in order."""
    if node.sign in (Sign.TIMES, Sign.OVER):
        return rounded(_corners(node.sign, next(parts), next(parts)))
    left, right = (
        _combined(part, parts, rounded) if isinstance(part, Arithmetic) and part.sign in ADDING else next(parts)
        for part in (node.left, node.right)
    )
    if node.sign is Sign.PLUS:
        return rounded(_Range(_plus(left.low, right.low), _plus(left.high, right.high)))
    return rounded(_Range(_plus(left.low, _minus(right.high)), _plus(left.high, _minus(right.low))))


def _corners(sign: Sign, one: _Range, two: _Range) -> _Range:
    if one.low is None or one.high is None or two.low is None or two.high is None:
        return UNKNOWN
    if sign is Sign.TIMES:
        found = [mine * other for mine in (one.low, one.high) for other in (two.low, two.high)]
    elif two.low <= 0 <= two.high:
        return UNKNOWN
    else:
        found = [top / bottom for top in (one.low, one.high) for bottom in (two.low, two.high)]
    return _Range(min(found), max(found))


def _opposite(part: _Range) -> _Range:
    low, high = _minus(part.high), _minus(part.low)
    if part.kinds == NUMBER:
        return _Range(low, high, NUMBER)
    saturated = _Range(_saturated(low), _saturated(high), WHOLE)
    return saturated if part.kinds == WHOLE else replace(_hull([saturated, _Range(low, high)]), kinds=BOTH)


def _absolute(part: _Range) -> _Range:
    if part.low is not None and part.low >= 0:
        return part
    other = _opposite(part)
    if part.high is not None and part.high <= 0:
        return other
    high = None if part.high is None or other.high is None else max(part.high, other.high)
    return _Range(Fraction(0), high, part.kinds)


def _hull(parts: Sequence[_Range]) -> _Range:
    return _Range(
        _of_all(min, [part.low for part in parts]), _of_all(max, [part.high for part in parts]), _kinds(parts)
    )


def _kinds(parts: Sequence[_Range]) -> frozenset[Type]:
    return frozenset.intersection(*(part.kinds for part in parts)) or BOTH


def _of_all(pick: Callable[[list[Fraction]], Fraction], ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return pick(known) if len(known) == len(ends) else None


def _of_some(pick: Callable[[list[Fraction]], Fraction], ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return pick(known) if known else None


def _held(value: Fraction | None) -> Fraction | None:
    return None if value is None else Fraction(held(float(value)))


def _saturated(value: Fraction | None) -> Fraction | None:
    return None if value is None else max(Fraction(-(2**63)), min(Fraction(2**63 - 1), value))


def _down(value: Fraction | None) -> Fraction | None:
    """The greatest double that is not above; beyond 2^1000, which no held number reaches, that end."""
    if value is None:
        return None
    inner = max(Fraction(-(2**1000)), min(Fraction(2**1000), value))
    near = float(inner)
    return Fraction(near if Fraction(near) <= inner else math.nextafter(near, -math.inf))


def _up(value: Fraction | None) -> Fraction | None:
    return _minus(_down(_minus(value)))


def _minus(value: Fraction | None) -> Fraction | None:
    return None if value is None else -value


def _plus(one: Fraction | None, two: Fraction | None) -> Fraction | None:
    return None if one is None or two is None else one + two


def _ceiling(value: Fraction | None) -> Fraction | None:
    return None if value is None else Fraction(math.ceil(value))


def _step_down(value: Fraction | None, step: Fraction) -> Fraction | None:
    """The multiple of a step that is not above, as the double next below."""
    return None if value is None else _down(math.floor(value / step) * step)


def _step_up(value: Fraction | None, step: Fraction) -> Fraction | None:
    return None if value is None else _up(math.ceil(value / step) * step)


def _floor(value: Fraction | None) -> Fraction | None:
    return None if value is None else Fraction(math.floor(value))
