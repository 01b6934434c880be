"""Constants: text, whole numbers, numbers, truth values, dates."""

import datetime
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.exact import rational
from sfumato.errors import InvalidInput, Unsupported

__all__ = ["LITERALS", "Date", "Literal", "Number", "Text", "Truth", "Whole", "literal"]


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


Literal = Text | Whole | Number | Truth | Date
LITERALS = (Text, Whole, Number, Truth, Date)


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
    raise Unsupported(
        f"a constant of type {type(value).__name__} is not supported; nothing was done. "
        "Instead: give text, a number, true or false, or a date (datetime.date)."
    )
