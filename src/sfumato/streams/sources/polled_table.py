"""A table of PostgreSQL that rows are added to."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from sfumato.engines.incremental_read import check_polled, rows_since
from sfumato.engines.sources.databases import DatabaseTable
from sfumato.errors import InvalidInput
from sfumato.streams.clock import Arrival, Clock, utc_now
from sfumato.streams.sources.columns import Columns
from sfumato.streams.sources.one_poll import one_poll

__all__ = ["PolledTable"]


class PolledTable:
    """The events of a PostgreSQL table, each read once.

    The first poll reads the rows from the start of the ``clock`` on, each later one those whose time is at most
    ``back`` before the poll before it, and passes over the keys that it has had. So a row is found, in whatever order
    transactions end, if it shows up within ``back`` of its time, and else not: that depends on its time and on public
    times, never on other rows. (The highest key so far would be simpler to go by, and one row with a high key would
    then hide others.)

    No value of a row is an error: what is missing, no time, or longer than 4,096 bytes makes an event that is dropped.

    Assumes: one row is one event; rows are added and not changed, and no key is given twice. That the ``key`` is
    unique and not null is checked at the first poll, and that the database is in UTF8 or LATIN1: in others a text can
    be none. Sensitive: the rows. Public: the table, the columns, and when it is polled.

    >>> from datetime import UTC
    >>> from sfumato.engines.sources import postgres
    >>> hours = Clock(start=datetime(2026, 1, 1, tzinfo=UTC), every=timedelta(hours=1))
    >>> table = postgres("postgresql://reader@db.example/clinic", table="visits")  # nothing is opened yet
    >>> visits = PolledTable(table, Columns(time="at", person="patient"), hours, key="id")
    """

    def __init__(
        self,
        table: DatabaseTable,
        columns: Columns,
        clock: Clock,
        *,
        key: str,
        back: timedelta = timedelta(hours=1),
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        if not isinstance(key, str) or not key:
            raise InvalidInput("a polled table needs the name of its unique key; nothing was done. Say key='id'.")
        if not isinstance(back, timedelta) or back < timedelta(0):
            raise InvalidInput("how far to look back is a timedelta that is not negative; nothing was done.")
        self._origin, self._columns, self._key = check_polled(table), columns, key
        self._back, self._now = back, now
        self._since = self._start = clock.start
        self._seen: set[int] = set()
        self._turn = threading.Lock()

    def poll(self) -> Iterator[Arrival]:
        """The events of the rows that are new since the last time; one poll at a time."""
        with one_poll(self._turn, "this table"):
            yield from self._new()

    def _new(self) -> Iterator[Arrival]:
        moment = self._now()
        whole = () if self._columns.amount is None else (self._columns.amount,)
        found: set[int] = set()
        for key, row in rows_since(
            self._origin,
            self._since,
            key=self._key,
            time=self._columns.time,
            columns=self._columns.names,
            whole=whole,
        ):
            found.add(key)
            if key not in self._seen:
                self._seen.add(key)
                yield self._columns.event(row)
        self._seen = found  # what is not found any more lies before all later polls
        self._since = max(self._since, self._start, moment - self._back)
