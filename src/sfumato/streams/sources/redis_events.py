"""A stream of Redis that events are added to, read on from a position that is sealed with every step."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar  # what the client of Redis gives

from sfumato.core.exact import natural
from sfumato.core.extras import need
from sfumato.errors import EngineFailed, InvalidInput
from sfumato.streams.clock import Arrival, Clock
from sfumato.streams.sources.columns import Columns
from sfumato.streams.sources.one_poll import one_poll

__all__ = ["RedisEvents"]

LONGEST = 4096  # bytes of a value: longer ones are missing
Place = tuple[int, int]
"""The id of an entry: milliseconds, and a number within them."""
BEFORE_ALL: Place = (0, 0)
Answered = TypeVar("Answered")
PAUSE = 0.2


class RedisEvents:
    """The events of a Redis stream, one for each entry, whose fields are the columns.

    Guarantee: given to an :class:`Inbox` as its ``source``, after a crash an event that had not counted counts, and one
    that had counts no second time: where to go on is sealed with the step, both or neither. Assumes: one entry is one
    event; whoever adds an event twice makes it two. Sensitive: the entries, and the positions. Public: the name of the
    stream, and when it is polled.

    A poll reads what was there when it began, in batches of ``batch`` entries: what waits does so in Redis and not
    here. While Redis does not answer no step is released, so that no event is late for that; after ``patience`` it is
    an error, and the stream can be resumed. No value of an entry is one: what is missing, unreadable, or longer than
    4,096 bytes makes an event that is dropped.

    Entries are read by their ids and not through the group, so that nobody else who reads with it can take any. The
    consumer ``group`` is moved on behind the position, for Redis' own tools (``XINFO GROUPS``). With ``trim`` what was
    counted is removed from the stream.

    >>> arrivals = RedisEvents("redis://127.0.0.1:6379/0", "er:arrivals", Columns(time="at"))  # nothing is opened yet
    >>> arrivals
    <events of the Redis stream 'er:arrivals'>
    """

    def __init__(
        self,
        url: str,
        stream: str,
        columns: Columns,
        *,
        group: str | None = None,
        trim: bool = False,
        batch: int = 1000,
        patience: timedelta = timedelta(minutes=1),
    ) -> None:
        if not isinstance(stream, str) or not stream or (group is not None and not (isinstance(group, str) and group)):
            raise InvalidInput("a stream of Redis and a consumer group are named by texts; nothing was done.")
        if not isinstance(patience, timedelta) or patience < timedelta(0):
            raise InvalidInput("how long to wait for Redis is a timedelta that is not negative; nothing was done.")
        self._stream, self._columns, self._group, self._trim = stream, columns, group, trim
        self._batch, self._patience = natural(batch, "batch"), patience.total_seconds()
        self._redis = _client(url)
        self._clock: Clock | None = None
        self._horizon, self._read, self._passed = 0, BEFORE_ALL, ""
        self._first: dict[int, Place] = {}
        self._turn, self._places = threading.Lock(), threading.Lock()

    def __repr__(self) -> str:
        return f"<events of the Redis stream {self._stream!r}>"

    def begin(self, position: str, clock: Clock, horizon: int) -> None:
        """Go on after a position, or from the first entry; an :class:`Inbox` calls it."""
        if self._clock is not None:
            raise InvalidInput("these events belong to an inbox already; nothing was done. Make them anew for another.")
        self._clock, self._horizon, self._passed = clock, horizon, position
        self._read = _place(position) if position else BEFORE_ALL

    def after(self, step: int) -> str:
        """The last id before which no entry of a later step lies."""
        with self._places:
            self._first = {each: place for each, place in self._first.items() if each > step}
            return _text(_before(min(self._first.values())) if self._first else self._read)

    def passed(self, position: str) -> None:
        """Hear that a position is stored; Redis is told at the next poll."""
        self._passed = position

    def poll(self) -> Iterator[Arrival]:
        """The events that are new since the last time; one poll at a time."""
        if self._clock is None:
            raise InvalidInput("these events have no inbox; nothing was read. Say Inbox(total, clock, source=events).")
        with one_poll(self._turn, "this stream of Redis"):
            yield from self._new(self._clock)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def _new(self, clock: Clock) -> Iterator[Arrival]:
        self._tell_redis()
        last = self._asked(self._last)
        while self._read < last:
            entries = self._asked(
                lambda: self._redis.xrange(self._stream, f"({_text(self._read)}", _text(last), self._batch)
            )
            if not entries:
                self._read = last  # what lay between was deleted
            for name, fields in entries:
                event = self._columns.event(_row(fields))
                step = None if event.at is None else clock.step_of(event.at)
                with self._places:
                    self._read = _place(name)
                    if step is not None and step <= self._horizon:
                        self._first.setdefault(step, self._read)
                yield event

    def _last(self) -> Place:
        """The id of the newest entry there is."""
        newest = self._redis.xrevrange(self._stream, count=1)
        return _place(newest[0][0]) if newest else BEFORE_ALL

    def _tell_redis(self) -> None:
        """Move the group behind what was stored, and remove that, where either is wanted."""
        position, self._passed = self._passed, ""
        if not position:
            return
        if self._group is not None:
            self._asked(lambda: self._move_group(position))
        if self._trim:
            least = _text(_after(_place(position)))
            self._asked(lambda: self._redis.execute_command("XTRIM", self._stream, "MINID", "=", least))

    def _move_group(self, position: str) -> None:
        from redis.exceptions import ResponseError

        try:
            self._redis.xgroup_create(self._stream, self._group, id=position, mkstream=True)
        except ResponseError as wrong:
            if not str(wrong).startswith("BUSYGROUP"):
                raise
            self._redis.xgroup_setid(self._stream, self._group, id=position)

    def _asked(self, ask: Callable[[], Answered]) -> Answered:
        """What Redis answers, asked again until patience ends."""
        from redis.exceptions import ConnectionError as Unreachable
        from redis.exceptions import RedisError
        from redis.exceptions import TimeoutError as TooSlow

        until = time.monotonic() + self._patience
        while True:
            try:
                return ask()
            except (Unreachable, TooSlow):
                if time.monotonic() >= until:
                    raise EngineFailed(
                        f"Redis did not answer for {self._patience:g} seconds; no further step was released and no "
                        "event is lost. Resume the stream from its state once Redis answers again."
                    ) from None
                time.sleep(min(PAUSE, self._patience))
            except RedisError:  # its words may hold what an entry holds
                raise EngineFailed(
                    f"Redis refused to read the stream {self._stream!r}; no further step was released and no event is "
                    "lost. Check that the name is that of a stream, that its user may read it, and that it is Redis "
                    "6.2 or newer; then resume the stream from its state."
                ) from None


def _client(url: str) -> Any:
    redis = need("redis", 'pip install "sfumato[server]"')
    try:
        return redis.Redis.from_url(url, socket_timeout=10, socket_connect_timeout=5, decode_responses=False)
    except (ValueError, TypeError, AttributeError):  # the address may hold a password
        raise InvalidInput("this is no address of Redis; nothing was done. Say redis://host:6379/0.") from None


def _row(fields: dict[bytes, bytes]) -> dict[str, str]:
    """The fields that can be read as texts. Sensitive."""
    row = {}
    for name, value in fields.items():
        if len(value) <= LONGEST:
            try:
                row[name.decode()] = value.decode()
            except UnicodeDecodeError:
                continue  # a value that is no text is missing
    return row


def _place(name: str | bytes) -> Place:
    text = name if isinstance(name, str) else name.decode()
    first, _, second = text.partition("-")
    return int(first), int(second)


def _text(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _before(place: Place) -> Place:
    """The largest id below one; ids begin at 0-1.

    >>> _before((5, 0)), _before((5, 2))
    ((4, 18446744073709551615), (5, 1))
    """
    return (place[0], place[1] - 1) if place[1] else (max(0, place[0] - 1), 2**64 - 1)


def _after(place: Place) -> Place:
    return (place[0], place[1] + 1) if place[1] < 2**64 - 1 else (place[0] + 1, 0)
