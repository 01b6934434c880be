"""Steps that come from an iterator, one item a step."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.streams.sources.open_stream import Answer, OpenStream, declared, has_ended, tell

__all__ = ["follow", "follow_async"]


def follow(stream: OpenStream, steps: Iterable[object], *, first: int | None = None) -> Iterator[Answer]:
    """Tell a step for each item, as it comes.

    An item is what a step counts: a whole number; where persons are protected a list of the ids of its events, or
    amounts by id; with groups a mapping from groups to these; and None for a step in which nothing happened. It ends
    with the items, with the horizon, or after the last alarm.

    ``first`` is the step that the first item belongs to, if not the next one: after a crash the source can be read
    again from its start with ``first=1``, and the steps that were released already are skipped.

    Public: how many items there are and when they come; let a clock make the items, not the events. Sensitive: what
    they hold.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")
    >>> total = vault.stream(name="er", horizon=60).running_total().open(epsilon=1, delta=1e-7)
    >>> [told.step for told in follow(total, [17, 12, None, 9])]
    [1, 2, 3, 4]
    """
    declared(stream)
    step = _before(stream, first)
    if has_ended(stream):
        return
    for held in steps:
        step += 1
        told = _told(stream, held, step)
        if told is not None:
            yield told
            if has_ended(stream):  # asked now: waiting for an item that cannot count would be in vain
                return


async def follow_async(
    stream: OpenStream, steps: AsyncIterable[object], *, first: int | None = None
) -> AsyncIterator[Answer]:
    """As :func:`follow`, for a source that is waited for. A step is counted and written down in a thread of its own.

    Who cancels it while a step is written down loses the answer and not the step: it is in the state of the stream.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")
    >>> total = vault.stream(name="er", horizon=60).running_total().open(epsilon=1, delta=1e-7)
    >>> async def counter():
    ...     for count in (17, 12):
    ...         yield count
    >>> async def main():
    ...     return [told.step async for told in follow_async(total, counter())]
    >>> asyncio.run(main())
    [1, 2]
    """
    declared(stream)
    step = _before(stream, first)
    if has_ended(stream):
        return
    async for held in steps:
        step += 1
        told = await asyncio.to_thread(_told, stream, held, step)
        if told is not None:
            yield told
            if has_ended(stream):
                return


def _told(stream: OpenStream, held: object, step: int) -> Answer | None:
    """Release a step, unless it was released; no other thread releases one between the question and the step."""
    with stream.uninterrupted():
        return tell(stream, held) if step > stream.steps else None


def _before(stream: OpenStream, first: int | None) -> int:
    """How many steps come before the first item."""
    if first is None:
        return stream.steps
    if natural(first, "first") > stream.steps + 1:
        raise InvalidInput(f"the next step is {stream.steps + 1}; nothing was released. Begin no later than there.")
    return first - 1
