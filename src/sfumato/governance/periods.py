"""The calendar of repeated releases: which periods a year has, what tiles what, and what one entry can touch.

Days are those of the Gregorian calendar, weeks run from Monday to Sunday (ISO 8601), and a period belongs to the year
in which its last day lies: it can be released once that day is over. A year has 365 or 366 days and 52 or 53 such
weeks; nothing here says 52 because it is usual.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, timedelta
from enum import Enum
from functools import lru_cache

from sfumato.core.exact import natural

__all__ = ["Cadence", "Period", "parts", "period_of", "periods", "touched", "year_of"]

DAY = timedelta(days=1)


class Cadence(Enum):
    """How often something happens."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"


_MONTHS = {Cadence.MONTHLY: 1, Cadence.QUARTERLY: 3, Cadence.YEARLY: 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One stretch of days, both ends included; its label is the same for ever, so that it can serve as a key."""

    label: str
    first: date
    last: date

    def meets(self, other: "Period") -> bool:
        """Whether the two share a day."""
        return self.first <= other.last and other.first <= self.last


def year_of(year: object) -> int:
    """Read a year with its neighbours inside the calendar.

    >>> year_of(2026)
    2026
    """
    return natural(year, "year", least=MINYEAR + 1, most=MAXYEAR - 1)


def period_of(cadence: Cadence, day: date) -> Period:
    """The period that holds a day.

    >>> period_of(Cadence.WEEKLY, date(2026, 1, 1)).label, period_of(Cadence.QUARTERLY, date(2026, 5, 1)).label
    ('2026-W01', '2026-Q2')
    """
    match cadence:
        case Cadence.DAILY:
            return Period(label=day.isoformat(), first=day, last=day)
        case Cadence.WEEKLY:
            year, week, weekday = day.isocalendar()
            first = day - (weekday - 1) * DAY
            return Period(label=f"{year:04}-W{week:02}", first=first, last=first + 6 * DAY)
    months = _MONTHS[cadence]
    start = (day.month - 1) // months * months
    first = date(day.year, start + 1, 1)
    last = (date(day.year + 1, 1, 1) if start + months == 12 else date(day.year, start + months + 1, 1)) - DAY
    label = {1: f"-{start + 1:02}", 3: f"-Q{start // 3 + 1}", 12: ""}[months]
    return Period(label=f"{day.year:04}{label}", first=first, last=last)


@lru_cache(maxsize=256)
def periods(cadence: Cadence, year: int) -> tuple[Period, ...]:
    """The periods whose last day lies in a year, in order.

    >>> [len(periods(cadence, 2026)) for cadence in Cadence], [len(periods(cadence, 2028)) for cadence in Cadence]
    ([365, 52, 12, 4, 1], [366, 53, 12, 4, 1])
    """
    year_of(year)
    return tuple(period for period in _from(cadence, date(year, 1, 1), date(year, 12, 31)) if period.last.year == year)


@lru_cache(maxsize=256)
def parts(coarse: Cadence, fine: Cadence, year: int) -> int | None:
    """The most fine periods that one coarse period of the year is made of, or None where they do not fit into it.

    Weeks fit into nothing: they cross the ends of months and years.

    >>> parts(Cadence.WEEKLY, Cadence.DAILY, 2026), parts(Cadence.MONTHLY, Cadence.DAILY, 2026)
    (7, 31)
    >>> parts(Cadence.MONTHLY, Cadence.WEEKLY, 2026) is None
    True
    """
    counts = []
    for whole in periods(coarse, year):
        inside = list(_from(fine, whole.first, whole.last))
        if inside[0].first < whole.first or inside[-1].last > whole.last:
            return None
        counts.append(len(inside))
    return max(counts)


@lru_cache(maxsize=256)
def touched(cadence: Cadence, stretch: Cadence | None, year: int) -> int:
    """The most periods of the year that one protected entry can lie in; an entry without a stretch is one instant.

    >>> touched(Cadence.WEEKLY, None, 2026), touched(Cadence.WEEKLY, Cadence.MONTHLY, 2026)
    (1, 6)
    """
    if stretch is None:
        return 1
    due = periods(cadence, year)
    entries = _from(stretch, due[0].first, due[-1].last)
    return max(sum(entry.meets(period) for period in due) for entry in entries)


def _from(cadence: Cadence, first: date, last: date) -> Iterator[Period]:
    """All periods that meet the days from first to last."""
    period = period_of(cadence, first)
    while period.first <= last:
        yield period
        period = period_of(cadence, period.last + DAY)
