"""Days of data, as documents state them: ISO text in its one form, 2026-01-31."""

from datetime import date

from sfumato.errors import InvalidInput

__all__ = ["check_days", "day_of"]


def day_of(text: str) -> date:
    """Read a day.

    >>> day_of("2026-01-31")
    datetime.date(2026, 1, 31)
    """
    try:
        day = date.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidInput(f"{text!r} is not a day; nothing was done. Write it as 2026-01-31.") from None
    if day.isoformat() != text:
        raise InvalidInput(f"{text!r} is not a day in its one form; nothing was done. Write it as 2026-01-31.")
    return day


def check_days(reads: object) -> None:
    """Refuse what is not the first and the last day of data, in this order.

    >>> check_days(("2026-01-01", "2026-01-31"))
    """
    if not isinstance(reads, tuple) or [type(day) for day in reads] != [str, str]:
        raise InvalidInput("reads must be the first and the last day of the data, as text; nothing was read or spent.")
    first, last = reads
    if day_of(first) > day_of(last):
        raise InvalidInput(f"a charge that reads from {first} to {last} reads nothing; nothing was done.")
