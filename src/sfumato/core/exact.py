"""Exact numbers at the door, decimal text on the way out, both rounded against us.

Every ε, δ, scale and sensitivity is a :class:`fractions.Fraction`. A ``float`` is read as the decimal that it
prints as, so that ``0.1`` means 1/10 and ten charges of it fit a budget of 1 exactly.
"""

import math
from decimal import Decimal
from fractions import Fraction

from sfumato.errors import InvalidInput

__all__ = [
    "Exact",
    "confidence_level",
    "decimal_down",
    "decimal_up",
    "fraction_text",
    "natural",
    "non_negative",
    "positive",
    "probability",
    "rational",
]

type_error = "a number (int, Fraction, Decimal, float) or text such as '1/10' or '0.1'"

Exact = int | float | str | Fraction | Decimal


def rational(value: Exact, name: str) -> Fraction:
    """Read ``value`` as the exact rational that it is written as.

    >>> rational(0.1, "epsilon"), rational("1/3", "epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if type(value) is Fraction:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction | Decimal):
        raise InvalidInput(f"{name} is {type(value).__name__}; nothing was done. Give {type_error}.")
    if isinstance(value, int | Fraction):
        return Fraction(value)
    if isinstance(value, str | Decimal) and not _short(value):
        raise InvalidInput(f"{name} has too many digits; nothing was done. Give fewer digits.")
    if not (value.is_finite() if isinstance(value, Decimal) else isinstance(value, str) or math.isfinite(value)):
        raise InvalidInput(f"{name} = {value} is not a finite number; nothing was done. Give a finite {name}.")
    try:
        return Fraction(repr(value)) if type(value) is float else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"{name} = {value!r} is not a number; nothing was done. Give {type_error}.") from None


def _short(value: str | Decimal) -> bool:
    """Whether the text has few digits and a small exponent, looked at before anything is multiplied out."""
    text = "".join(str(value).lower().split()).replace("_", "")  # Fraction reads past blanks and underscores
    _, _, exponent = text.partition("e")
    size = exponent.lstrip("+-")
    return len(str(value)) <= 200 and (not size.isdecimal() or int(size) <= 400)


def decimal_down(value: Fraction, digits: int = 4) -> str:
    """Write a rational as a decimal rounded down, for what must not be shown larger than it is: a confidence.

    >>> decimal_down(Fraction(99999, 1000)), decimal_down(Fraction(95))
    ('99.99', '95')
    """
    shown = decimal_up(-value, digits)
    return shown.removeprefix("-") if shown.startswith("-") else f"-{shown}" if value else shown


def positive(value: Exact, name: str) -> Fraction:
    """Read a rational above zero.

    >>> positive(2, "scale")
    Fraction(2, 1)
    """
    number = rational(value, name)
    if number <= 0:
        raise InvalidInput(f"{name} = {value} must be above 0; nothing was done. Give a positive {name}.")
    return number


def non_negative(value: Exact, name: str) -> Fraction:
    """Read a rational of at least zero.

    >>> non_negative(0, "delta")
    Fraction(0, 1)
    """
    number = rational(value, name)
    if number.numerator < 0:
        raise InvalidInput(f"{name} = {value} must not be below 0; nothing was done. Give {name} ≥ 0.")
    return number


def probability(value: Exact, name: str) -> Fraction:
    """Read a rational from 0 to 1.

    >>> probability(0.95, "confidence")
    Fraction(19, 20)
    """
    number = rational(value, name)
    if not 0 <= number.numerator <= number.denominator:
        raise InvalidInput(f"{name} = {value} is outside 0 to 1; nothing was done. Give a {name} from 0 to 1.")
    return number


def confidence_level(value: Exact) -> Fraction:
    """Read the confidence of an interval: a rational between 0 and 1, and neither of them.

    >>> confidence_level(0.95)
    Fraction(19, 20)
    """
    level = probability(value, "confidence")
    if level in (0, 1):
        raise InvalidInput(f"confidence = {level} has no interval; give one between 0 and 1, such as 0.95.")
    return level


def natural(value: object, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Read a whole number of at least ``least`` and, where given, at most ``most``.

    >>> natural(3, "groups")
    3
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{name} = {value!r} must be a whole number of at least {least}; nothing was done.")
    if most is not None and value > most:
        raise InvalidInput(f"{name} must be at most {most:,}; nothing was done.")
    return value


def fraction_text(value: Fraction) -> str:
    """Write a rational as people write it, exactly: ``1/2``, ``3``, and ``0.4381`` for many ten-thousandths.

    >>> fraction_text(Fraction(1, 2)), fraction_text(Fraction(3)), fraction_text(Fraction("0.4381"))
    ('1/2', '3', '0.4381')
    """
    if value.denominator < 1000 or 1000 * abs(value) < 1 or abs(value.numerator) == 1 or 10**6 % value.denominator:
        return str(value)
    whole, rest = divmod(abs(value.numerator) * (10**6 // value.denominator), 10**6)
    return f"{'-' if value < 0 else ''}{whole}.{rest:06d}".rstrip("0")


def decimal_up(value: Fraction, digits: int = 4) -> str:
    """Write a rational as a decimal with ``digits`` significant digits, rounded up.

    Rounding up is rounding against us: a loss, a margin or a belief is never shown smaller than it is.

    >>> decimal_up(Fraction(2, 3)), decimal_up(Fraction(1, 10**6)), decimal_up(Fraction(12345678))
    ('0.6667', '1e-6', '12350000')
    """
    if value == 0:
        return "0"
    sign, size = ("-", -value) if value < 0 else ("", value)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    while Fraction(10) ** exponent > size:
        exponent -= 1
    while Fraction(10) ** (exponent + 1) <= size:
        exponent += 1
    step = Fraction(10) ** (exponent - digits + 1)
    units = math.floor(size / step) if sign else math.ceil(size / step)
    if units == 10**digits:
        units, exponent = units // 10, exponent + 1
    if exponent < -4:
        text = str(units)
        return f"{sign}{text[0]}.{text[1:]}".rstrip("0").rstrip(".") + f"e{exponent}"
    places = digits - 1 - exponent
    if places <= 0:
        return f"{sign}{units * 10**-places}"
    text = f"{units:0{places + 1}d}"
    return f"{sign}{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")
