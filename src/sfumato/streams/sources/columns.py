"""Which columns of a row make an event."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any  # rows hold whatever their file holds

from sfumato.errors import InvalidInput
from sfumato.streams.clock import Arrival, has_zone, whole_amount

__all__ = ["Columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names of the columns that make an event of a row. Public.

    ``time`` holds ISO 8601 times. ``zone`` says in which zone those are meant that name none; without it such rows are
    dropped. (Where clocks were put back, such a time came twice; the first is meant.) ``person`` is for streams of
    persons, ``group`` for those that have groups; ``amount`` holds what a row counts, and without it each counts 1.

    >>> visits = Columns(time="at", person="patient")
    >>> visits.event({"at": "2026-01-01T10:30:00+01:00", "patient": "p17"}).person
    'p17'
    """

    time: str
    person: str | None = None
    amount: str | None = None
    group: str | None = None
    zone: tzinfo | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(name, str) and name for name in self.names):
            raise InvalidInput("the columns of an event are named by texts; nothing was done.")
        if self.zone is not None and not isinstance(self.zone, tzinfo):
            raise InvalidInput("a zone is one of zoneinfo, such as ZoneInfo('Europe/Zurich'); nothing was done.")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are needed."""
        return tuple(name for name in (self.time, self.person, self.amount, self.group) if name is not None)

    def event(self, row: Mapping[str, Any]) -> Arrival:
        """The event of a row; what is missing or unreadable is None, and an event that lacks what counts is dropped.

        >>> Columns(time="at").event({"at": "yesterday"}).at is None
        True
        """
        return Arrival(
            at=self._moment(row.get(self.time)),
            person=None if self.person is None else row.get(self.person),
            amount=1 if self.amount is None else _whole(row.get(self.amount)),
            group=None if self.group is None else row.get(self.group),
        )

    def _moment(self, found: object) -> datetime | None:
        if isinstance(found, str):
            try:
                found = datetime.fromisoformat(found.strip())
            except (ValueError, OverflowError):
                return None
        if isinstance(found, datetime) and self.zone is not None and found.tzinfo is None:
            found = found.replace(tzinfo=self.zone)
        return found if has_zone(found) else None


def _whole(found: object) -> int | None:
    """A whole number, also one that is written as a text or a float."""
    if isinstance(found, str):
        try:
            return int(found)
        except ValueError:
            return None
    return whole_amount(found)
