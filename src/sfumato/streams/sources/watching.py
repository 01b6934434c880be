"""Feeding an inbox until its stream has ended: from what is polled, and from what is waited for."""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Protocol

from sfumato.errors import InvalidInput
from sfumato.streams.clock import Arrival, utc_now
from sfumato.streams.sources.inbox import Inbox
from sfumato.streams.sources.open_stream import Answer

__all__ = ["Polled", "watch", "watch_async"]

SECOND = timedelta(seconds=1)


class Polled(Protocol):
    """What can be asked for the events that are new since the last time."""

    def poll(self) -> Iterable[Arrival]:
        """The new events."""
        ...


def watch(
    inbox: Inbox,
    source: Polled,
    *,
    pause: timedelta = SECOND,
    now: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Answer]:
    """Poll a source again and again, and release each step when the clock has passed it, until the stream has ended.

    Steps are released whether or not events came. ``now`` is the public clock: that of the machine, unless you say
    another.

    >>> from datetime import UTC
    >>> import sfumato as sf
    >>> from sfumato.streams.sources import Clock
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")
    >>> total = vault.stream(name="er", horizon=3).running_total().open(epsilon=1, delta=1e-7)
    >>> class Quiet:
    ...     def poll(self):
    ...         return []
    >>> inbox = Inbox(total, Clock(start=datetime(2024, 1, 1, tzinfo=UTC), every=timedelta(hours=1)))
    >>> [told.step for told in watch(inbox, Quiet())]  # three hours that are long over
    [1, 2, 3]
    """
    if not isinstance(pause, timedelta) or pause < timedelta(0):
        raise InvalidInput("a pause is a timedelta that is not negative; nothing was released.")
    while not inbox.has_ended:
        moment = now()  # before the events are read: what was there at that moment is read
        inbox.put_all(source.poll())
        yield from inbox.tell(moment)
        if not inbox.has_ended:
            sleep(pause.total_seconds())


async def watch_async(
    inbox: Inbox,
    events: AsyncIterable[Arrival],
    *,
    now: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Answer]:
    """Take events as they come, and release each step when the clock has passed it, until the stream has ended.

    Where the events end earlier, the steps go on without any: that they ended is not told. An error of their source
    is raised.
    """

    async def collect() -> None:
        async for event in events:
            inbox.put(event)

    collecting = asyncio.create_task(collect())
    try:
        while not inbox.has_ended:
            await sleep(max(0.0, (inbox.next_due - now()).total_seconds()))
            if collecting.done():
                collecting.result()
            for told in inbox.tell(now()):
                yield told
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)
