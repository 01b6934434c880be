"""Figures as pages write them: what is spent is rounded up, and what is left down."""

from datetime import UTC, datetime
from fractions import Fraction

from sfumato.core.exact import decimal_down, decimal_up

__all__ = ["day", "left", "moment_words", "number", "spent"]

DIGITS = 4


def spent(amount: Fraction) -> str:
    """An amount that counts against somebody, rounded up.

    >>> spent(Fraction(1, 3)), spent(Fraction(2)), spent(Fraction(0))
    ('0.3334', '2', '0')
    """
    return decimal_up(amount, DIGITS) if amount else "0"


def left(amount: Fraction) -> str:
    """An amount that is left, rounded down.

    >>> left(Fraction(2, 3)), left(Fraction(3, 2))
    ('0.6666', '1.5')
    """
    return decimal_down(amount, DIGITS) if amount > 0 else "0"


def number(value: int | float | Fraction) -> str:
    """A noisy number or an end of its interval; whole numbers are written whole, with thousands apart.

    >>> number(12345), number(Fraction(10, 3)), number(Fraction(7, 2000)), number(-3)
    ('12,345', '3.33', '0.0035', '−3')
    """
    if isinstance(value, int) or Fraction(value).denominator == 1:
        text = f"{abs(int(value)):,}"
    else:
        size = abs(float(value))
        text = f"{size:,.0f}" if size >= 100 else f"{size:.3g}"
    return f"−{text}" if value < 0 else text


def day(at: str) -> str:
    """The day of a moment of the record."""
    return at[:10]


def moment_words(at: str | float) -> str:
    """A moment as people read it, by UTC.

    >>> moment_words("2026-01-05T09:30:12+00:00")
    '2026-01-05 09:30 UTC'
    """
    when = datetime.fromtimestamp(at, UTC) if isinstance(at, float) else datetime.fromisoformat(at).astimezone(UTC)
    return when.strftime("%Y-%m-%d %H:%M UTC")
