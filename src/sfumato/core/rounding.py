"""Numbers as people read them: with as many digits as their interval makes worth reading, and none beside."""

import math
from fractions import Fraction

from sfumato.core.columns import Value

__all__ = ["MISSING", "OPEN", "fixed", "places_of", "rounded", "short"]

MISSING, OPEN = "–", "∞"
MOST_PLACES = 12
LEAST_EXPONENT = -4
NEARLY = Fraction(10**9 + 1, 10**9)  # a margin of 0.1 that a double holds as a little less has the digits of 0.1


def rounded(value: Value, low: Value, high: Value, *, whole: bool = False) -> tuple[str, str, str] | None:
    """A number to the nearest digit that says something, and both ends of its interval, rounded outward.

    ``whole`` says that it counts something; None where one of the three is not finite.

    >>> rounded(1234, 1228, 1240), rounded(Fraction(1, 3), 0.2, 0.456), rounded(0, 0, 0)
    (('1,234', '1,228', '1,240'), ('0.33', '0.20', '0.46'), ('0', '0', '0'))
    >>> rounded(5.13e-14, Fraction('4e-14'), Fraction('6e-14')), rounded(0.5, -math.inf, 2.0)
    (('5.1e-14', '4.0e-14', '6.0e-14'), None)
    """
    if not all(map(math.isfinite, (value, low, high))):
        return None
    if all(isinstance(number, int) for number in (value, low, high)):
        return f"{value:,}", f"{low:,}", f"{high:,}"
    middle, least, most = Fraction(value), Fraction(low), Fraction(high)
    margin = max(most - middle, middle - least)
    if margin <= 0:
        return short(value), short(low), short(high)
    places = 0 if whole else max(0, 1 - _exponent(margin * NEARLY))
    largest = max(abs(middle), abs(least), abs(most))
    tiny = places > MOST_PLACES and largest > 0 and _exponent(largest) < LEAST_EXPONENT
    places = places if tiny else min(places, MOST_PLACES)
    power = _exponent(largest) if tiny else 0
    step = Fraction(10) ** places
    return tuple(  # type: ignore[return-value]  # three of them
        _text(steps, places + power, power)
        for steps in (round(middle * step), math.floor(least * step), math.ceil(most * step))
    )


def short(value: Value) -> str:
    """A number that nobody knows the error of, or a name: six digits at most, and no empty ones.

    >>> short(0.0), short(Fraction(1, 3)), short(1234567.0), short("north")
    ('0', '0.333333', '1,234,567', 'north')
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        return str(value)
    if isinstance(value, int) or (-(10**15) < value < 10**15 and value == int(value)):
        return f"{int(value):,}"
    return f"{float(value):,.6g}"


def places_of(size: float, digits: int = 2) -> int:
    """How many decimals show this many digits of a size, such as that of an error.

    >>> places_of(0.0123), places_of(45.6)
    (3, 0)
    """
    return min(MOST_PLACES, max(0, digits - 1 - math.floor(math.log10(size))))


def fixed(value: float, places: int, outward: int = 0) -> str:
    """A number with this many decimals; ``outward`` is -1 for a low end of an interval, 1 for a high end.

    An end is rounded so that the interval holds no less. What does not exist is –, an end that is open ∞.

    >>> fixed(-1234.5678, 2), fixed(0.101, 2, outward=1), fixed(0.47, 2, outward=-1), fixed(math.inf, 2)
    ('-1,234.57', '0.11', '0.47', '∞')
    """
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else OPEN if value > 0 else f"-{OPEN}"
    if value and abs(value) < 10.0 ** -(MOST_PLACES + 1):
        return f"{value:.1e}"
    step = Fraction(10) ** places
    exact = Fraction(value) * step
    # What a double adds to a decimal is no reason to go on to the next one.
    if outward and abs(exact - round(exact)) > Fraction(1, 10**6):
        exact = Fraction((math.floor if outward < 0 else math.ceil)(exact))
    text = _text(round(exact), places, 0)
    return text.removeprefix("-") if not text.strip("-0.,") else text


def _exponent(size: Fraction) -> int:
    """The power of ten that a size starts at."""
    guess = len(str(size.numerator)) - len(str(size.denominator))
    return guess if Fraction(10) ** guess <= size else guess - 1


def _text(steps: int, places: int, power: int) -> str:
    """A number of steps of 10^-places, times a power of ten that is written behind."""
    sign, places = "-" if steps < 0 else "", max(0, places)
    whole, rest = divmod(abs(steps), 10**places)
    digits = f"{sign}{whole:,}.{rest:0{places}d}" if places else f"{sign}{whole:,}"
    return f"{digits}e{power}" if power and steps else "0" if power else digits
