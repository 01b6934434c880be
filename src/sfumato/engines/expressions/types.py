"""What a value can be, and the words of the grammar: comparisons, signs, parts of a date."""

from enum import Enum

__all__ = ["Operator", "Part", "Sign", "Type"]


class Type(Enum):
    """What a value is, as far as is supported; ``OTHER`` cannot be used in it."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    TRUTH = "truth value"
    DATE = "date"
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
    """Parts of a date, as whole numbers; weekdays are 1 for Monday to 7 for Sunday."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"
    WEEKDAY = "weekday"
