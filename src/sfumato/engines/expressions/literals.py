"""Constants: text, whole numbers, numbers, truth values, dates, times and lengths of time."""

import datetime
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.exact import rational
from sfumato.errors import InvalidInput, Unsupported

__all__ = [
    "DAY",
    "LITERALS",
    "MOST_MICROSECONDS",
    "Date",
    "Duration",
    "Literal",
    "Number",
    "Text",
    "Time",
    "Truth",
    "Whole",
    "literal",
    "microseconds",
]

DAY = 86_400_000_000
"""Microseconds in a day."""
MOST_MICROSECONDS = 3_652_059 * DAY
"""In the years 1 to 9999."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text constant."""

    KIND: ClassVar[str] = "literal.text"
    VERSION: ClassVar[int] = 1
    value: str

    def __post_init__(self) -> None:
        if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in self.value):
            raise InvalidInput("a text constant must not hold a null character or half a surrogate pair.")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number that fits 64 bits."""

    KIND: ClassVar[str] = "literal.whole"
    VERSION: ClassVar[int] = 1
    value: int

    def __post_init__(self) -> None:
        if not -(2**63) <= self.value < 2**63:
            raise InvalidInput("a whole-number constant must fit 64 bits; nothing was done.")


@dataclass(frozen=True, slots=True)
class Number:
    """A rational constant, used as the nearest double."""

    KIND: ClassVar[str] = "literal.number"
    VERSION: ClassVar[int] = 1
    value: Fraction

    def __post_init__(self) -> None:
        if abs(self.value) >= 2**1000:
            raise InvalidInput("a number constant is beyond what a double holds; nothing was done.")


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false."""

    KIND: ClassVar[str] = "literal.truth"
    VERSION: ClassVar[int] = 1
    value: bool


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the years 1 to 9999 in the Gregorian calendar, written ``2026-11-30``."""

    KIND: ClassVar[str] = "literal.date"
    VERSION: ClassVar[int] = 1
    value: str

    def __post_init__(self) -> None:
        try:
            day = datetime.date.fromisoformat(self.value)
        except ValueError:
            day = None
        if day is None or day.isoformat() != self.value:
            raise InvalidInput("a date constant must be a day of the years 1 to 9999, written YYYY-MM-DD.")

    @property
    def day(self) -> datetime.date:
        """The day itself."""
        return datetime.date.fromisoformat(self.value)


@dataclass(frozen=True, slots=True)
class Time:
    """A moment of the years 1 to 9999 on the clock, without a zone, written ``2026-11-30T13:05:00``."""

    KIND: ClassVar[str] = "literal.time"
    VERSION: ClassVar[int] = 1
    value: str

    def __post_init__(self) -> None:
        try:
            moment = datetime.datetime.fromisoformat(self.value)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is not None or moment.isoformat() != self.value:
            raise InvalidInput("a time constant must be of the years 1 to 9999, written YYYY-MM-DDTHH:MM:SS.")

    @property
    def moment(self) -> datetime.datetime:
        """The moment itself."""
        return datetime.datetime.fromisoformat(self.value)

    @property
    def microseconds(self) -> int:
        """Since the first moment of the year 1."""
        return microseconds(self.moment)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in microseconds; negative ones go back."""

    KIND: ClassVar[str] = "literal.span"
    VERSION: ClassVar[int] = 1
    value: int

    def __post_init__(self) -> None:
        if abs(self.value) > MOST_MICROSECONDS:
            raise InvalidInput("a length of time is beyond ten thousand years; nothing was done.")


Literal = Text | Whole | Number | Truth | Date | Time | Duration
LITERALS = (Text, Whole, Number, Truth, Date, Time, Duration)


def microseconds(moment: datetime.date) -> int:
    """Microseconds from the first moment of the year 1 to a time, or to the beginning of a day.

    >>> microseconds(datetime.date(1, 1, 2)), microseconds(datetime.datetime(1, 1, 1, 0, 0, 1))
    (86400000000, 1000000)
    """
    if not isinstance(moment, datetime.datetime):
        return (moment.toordinal() - 1) * DAY
    return (moment - datetime.datetime.min) // datetime.timedelta(microseconds=1)


def literal(value: object) -> Literal:
    """Read a Python value as a constant of the grammar; a float is read as the decimal that it prints as.

    >>> literal(0.1), literal(datetime.date(2026, 11, 30))
    (Number(value=Fraction(1, 10)), Date(value='2026-11-30'))
    """
    match value:
        case bool():
            return Truth(value)
        case int():
            return Whole(value)
        case str():
            return Text(value)
        case float() | Fraction():
            return Number(rational(value, "constant"))
        case datetime.date() if not isinstance(value, datetime.datetime):
            return Date(value.isoformat())
        case datetime.datetime() if value.tzinfo is None:
            return Time(value.isoformat())
        case datetime.timedelta():
            return Duration(value // datetime.timedelta(microseconds=1))
    raise Unsupported(
        f"a constant of type {type(value).__name__} is not supported; nothing was done. "
        "Instead: give text, a number, true or false, a date, a time without a zone, or a timedelta (of datetime)."
    )
