"""Times in SQL: parts, units, intervals and moments, as they are written."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlglot import exp

from sfumato.engines.expressions import Cast, Date, Literal, Term, Time, Truncated, Type, term
from sfumato.engines.expressions.grammar import DatePart
from sfumato.engines.expressions.types import Part
from sfumato.errors import InvalidInput
from sfumato.tables.sql.refusals import only, refused

__all__ = ["Interval", "date_part", "interval", "of_day", "read_time", "truncated", "unit_named"]

PARTS: dict[str, Callable[[Term], Term]] = {
    "YEAR": Term.year,
    "QUARTER": Term.quarter,
    "MONTH": Term.month,
    "WEEK": Term.week,
    "DAY": Term.day,
    "ISODOW": Term.weekday,
    "DOW": lambda of: Term(DatePart(of=Part.SUNDAY_WEEKDAY, part=of.node)),
    "DOY": lambda of: Term(DatePart(of=Part.YEAR_DAY, part=of.node)),
    "HOUR": Term.hour,
    "MINUTE": Term.minute,
    "EPOCH": Term.seconds,
}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
MONTHS = {"year": 12, "quarter": 3, "month": 1}
SECONDS = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
FORM = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A length of time: months, which differ in length, and seconds."""

    months: int
    seconds: int

    def __neg__(self) -> "Interval":
        return Interval(months=-self.months, seconds=-self.seconds)

    def from_(self, value: Term) -> Term:
        """The time at the end of the interval."""
        return value.shift(months=self.months, seconds=self.seconds)

    @property
    def length(self) -> timedelta:
        """By itself; months have none."""
        if self.months:
            raise refused("INTERVAL in months by itself")
        return timedelta(seconds=self.seconds)


def date_part(name: str, of: Term) -> Term:
    """A part of a date or time, by the name that EXTRACT gives it."""
    part = name.upper()
    if part not in PARTS:
        raise refused(f"EXTRACT({part if part.isidentifier() and part.isascii() else '?'} …)")
    return PARTS[part](of)


def unit_named(name: str) -> str:
    """A unit of time, also in its plural.

    >>> unit_named("Months")
    'month'
    """
    unit = name.lower().removesuffix("s")
    if unit not in UNITS:
        raise InvalidInput(f"there is no such unit of time; nothing was done. There are {', '.join(map(repr, UNITS))}.")
    return unit


def truncated(unit: str, value: Term) -> Term:
    """The beginning of a unit."""
    return value.truncate(unit_named(unit))


def interval(node: exp.Expression) -> Interval:
    """A constant length of time: ``INTERVAL '30 days'``, ``INTERVAL '1' DAY``, ``INTERVAL '1 year 6 months'``."""
    only(node, "this", "unit")
    said, unit = node.this, node.args.get("unit")
    if not isinstance(said, exp.Literal):
        raise refused("INTERVAL of a computed length")
    text = f"{said.this} {unit.name if unit is not None else ''}".strip()
    found = re.fullmatch(r"([-+]?\d{1,9} [a-zA-Z]+ ?)+", text, re.ASCII)
    if found is None:
        raise InvalidInput("an INTERVAL is written INTERVAL '30 days' or INTERVAL '1 year 6 months'; nothing was done.")
    months = seconds = 0
    for number, word in re.findall(r"([-+]?\d+) ([a-zA-Z]+)", text, re.ASCII):
        name = unit_named(word)
        months += int(number) * MONTHS.get(name, 0)
        seconds += int(number) * SECONDS.get(name, 0)
    return Interval(months=months, seconds=seconds)


def read_time(text: str) -> datetime:
    """A moment as it is written in ``TIMESTAMP '2026-01-31 13:00:00'``."""
    try:
        found = datetime.fromisoformat(text) if FORM.fullmatch(text) else None
    except ValueError:
        found = None
    if found is None:
        raise InvalidInput("a time must be one of a clock, written TIMESTAMP '2026-01-31 13:00:00'; nothing was done.")
    return found


def of_day(beside: Term, value: Term) -> Term:
    """A constant day as its first moment, beside what may be a time; what else, as it is."""
    known = isinstance(beside.node, Literal) or (
        isinstance(beside.node, Cast | Truncated)
        and (isinstance(beside.node, Truncated) or beside.node.to is Type.DATE)
    )
    if known or not isinstance(value.node, Date):
        return value
    return term(Time(f"{value.node.value}T00:00:00").moment)
