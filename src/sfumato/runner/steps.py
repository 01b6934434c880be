"""The steps of a plan's year: each release and each derived figure of each period, and how it stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum

from sfumato.governance.periods import Cadence, Period, period_of
from sfumato.governance.plans import FigureSource

__all__ = ["Ingredient", "Standing", "Step", "due_at", "inside"]

DAY = timedelta(days=1)


class Standing(Enum):
    """How a step stands: done; cut off after its charge; due; without its data; closed; or not over yet."""

    DONE = "done"
    OPEN = "open"
    DUE = "due"
    MISSING = "missing"
    CLOSED = "closed"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Ingredient:
    """A release that a figure is made of."""

    release: str
    period: Period


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One release, or one figure that is computed from releases, of one period.

    ``source`` says which: OWN for what is charged and released, DERIVED and COMBINED for figures, which cost nothing.
    ``version`` is that of the data, which is the label of the period until a corrected one is declared.
    """

    name: str
    period: Period
    source: FigureSource
    standing: Standing
    why: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        """The label of the period, or of the corrected version of its data."""
        return self.version or self.period.label


def due_at(period: Period) -> datetime:
    """When a period can be released: the moment after its last day, by UTC.

    >>> from datetime import date
    >>> due_at(period_of(Cadence.MONTHLY, date(2026, 2, 1))).isoformat()
    '2026-03-01T00:00:00+00:00'
    """
    return datetime.combine(period.last + DAY, time(), tzinfo=UTC)


def inside(every: Cadence, whole: Period) -> Iterator[Period]:
    """The finer periods that a period is made of.

    >>> from datetime import date
    >>> [part.label for part in inside(Cadence.MONTHLY, period_of(Cadence.QUARTERLY, date(2026, 2, 1)))]
    ['2026-01', '2026-02', '2026-03']
    """
    day = whole.first
    while day <= whole.last:
        part = period_of(every, day)
        yield part
        day = part.last + DAY
