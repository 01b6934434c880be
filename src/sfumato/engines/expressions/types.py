"""What a value can be, and the words of the grammar: comparisons, signs, parts and units of time, ends of a text."""

from enum import Enum

__all__ = ["Operator", "Part", "Side", "Sign", "Type", "Unit"]


class Type(Enum):
    """What a value is, as far as is supported; ``OTHER`` cannot be used in it."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    TRUTH = "truth value"
    DATE = "date"
    TIME = "time"
    SPAN = "time difference"
    OTHER = "unsupported type"


class Operator(Enum):
    """The comparisons."""

    EQUAL = "="
    UNEQUAL = "!="
    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


class Sign(Enum):
    """The operations of arithmetic."""

    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    OVER = "/"


class Part(Enum):
    """Parts of a date or time, as whole numbers.

    Weekdays are 1 for Monday to 7 for Sunday, or 0 for Sunday to 6; weeks are those of ISO 8601.
    """

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"
    WEEKDAY = "weekday"
    SUNDAY_WEEKDAY = "weekday from Sunday"
    WEEK = "week"
    YEAR_DAY = "day of the year"
    HOUR = "hour"
    MINUTE = "minute"


class Unit(Enum):
    """Units that times are cut to and counted in; weeks begin on Monday."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"


class Side(Enum):
    """The ends of a text."""

    BOTH = "both"
    START = "start"
    END = "end"
