"""Zones: what a clock on the wall showed at a moment, by a declared zone.

Engines bring zone tables of their own, of different years. So the changes of a zone's clock are looked up here, by the
tables that Python has, and become a choice between whole numbers. Before 1970 and from 2050 on the offset stays as it
is there.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sfumato.engines.expressions.literals import MOST_MICROSECONDS, microseconds
from sfumato.engines.operands import FIRST_DAY, LAST_DAY, whole
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from sfumato.engines.dialect import Dialect

__all__ = ["check_zone", "on_the_wall"]

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)
STEP = timedelta(days=7)


def check_zone(column: str, zone: object) -> str:
    """Refuse what is not the name of a zone.

    >>> check_zone("admitted", "Europe/Atlantis")
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: the zone of 'admitted' is not known; ... Give a name such as 'Europe/Berlin' or 'UTC'.
    """
    try:
        return ZoneInfo(zone).key if isinstance(zone, str) else _unknown(column)
    except (KeyError, ValueError, OSError):
        return _unknown(column)


def _unknown(column: str) -> str:
    raise InvalidInput(
        f"the zone of {column!r} is not known; nothing was done. Give a name such as 'Europe/Berlin' or 'UTC'."
    ) from None


@cache
def changes(zone: str) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The first offset of a zone, and each moment (in UTC, in microseconds) from which another one holds.

    >>> first, later = changes("Europe/Berlin")
    >>> first // 3_600_000_000, len(later) > 100
    (1, True)
    """
    here = ZoneInfo(zone)
    found: list[tuple[int, int]] = []
    at, offset = FIRST, _offset(FIRST, here)
    while at < LAST:
        following = min(at + STEP, LAST)
        if _offset(following, here) != offset:
            low, high = at, following
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                middle = middle.replace(microsecond=0) if middle.replace(microsecond=0) > low else high
                if middle == high:
                    break
                low, high = (middle, high) if _offset(middle, here) == offset else (low, middle)
            offset = _offset(high, here)
            found.append((microseconds(high.replace(tzinfo=None)), offset))
            following = high
        at = following
    return _offset(FIRST, here), tuple(found)


def _offset(at: datetime, zone: ZoneInfo) -> int:
    offset = at.astimezone(zone).utcoffset()
    return 0 if offset is None else offset // timedelta(microseconds=1)


def on_the_wall(table: ir.Table, column: str, zone: str, dialect: Dialect) -> ir.Table:
    """The table with a column of timestamps on the clock of UTC put on that of a zone; null outside the calendar.

    The moment and the shifted moment are columns first, so that the choice names them instead of repeating them.
    """
    import ibis

    prefix = "clock_"
    while any(name.casefold().startswith(prefix) for name in table.columns):
        prefix += "_"
    time, before, after = table[column], f"{prefix}before", f"{prefix}after"
    day = time.cast("date")
    known = ((day >= ibis.literal(FIRST_DAY)) & (day <= ibis.literal(LAST_DAY))).fill_null(False)  # noqa: FBT003
    staged = table.mutate(**{before: dialect.microseconds(ibis.cases((known, time), else_=ibis.null(time.type())))})
    first, later = changes(zone)
    staged = staged.mutate(**{after: staged[before] + _chosen(staged[before], first, later)})
    inside = ((staged[after] >= whole(0)) & (staged[after] < whole(MOST_MICROSECONDS))).fill_null(False)  # noqa: FBT003
    local = dialect.time_of(ibis.cases((inside, staged[after]), else_=ibis.null("int64")))
    return staged.mutate(**{column: local}).drop(before, after)


def _chosen(moment: ir.Value, first: int, later: tuple[tuple[int, int], ...]) -> ir.Value:
    """The offset that holds at a moment, by halves."""
    import ibis

    if not later:
        return whole(first)
    middle = len(later) // 2
    at, offset = later[middle]
    before, after = _chosen(moment, first, later[:middle]), _chosen(moment, offset, later[middle + 1 :])
    return ibis.cases((moment < whole(at), before), else_=after)
