"""Events with a time, on their way into an open stream."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol

from sfumato.errors import InvalidInput, Refused
from sfumato.streams.clock import Arrival, Clock, Contents, Steps
from sfumato.streams.sources.open_stream import Answer, OpenStream, declared, has_ended, is_of_people, tell

__all__ = ["Inbox", "Positioned"]


class Positioned(Protocol):
    """A source that is read on from a position, which the stream seals with each step. Sensitive: the positions."""

    def begin(self, position: str, clock: Clock, horizon: int) -> None:
        """Go on after a position; the first time it is empty."""
        ...

    def after(self, step: int) -> str:
        """The position from which no event of a later step is missed."""
        ...

    def passed(self, position: str) -> None:
        """Hear that a position was stored: nothing before it is read again."""
        ...


class Inbox:
    """Takes events with a time, puts them into steps, and releases the steps by a public clock.

    Guarantee: an event counts in at most one step, by at most what the stream was declared for (``each``); which steps
    are released, and at which call, depends on the times that :meth:`tell` is given, and not on the events. Sensitive:
    what waits inside. Public: the clock, ``late``, ``wait``, and the times.

    ``late`` and ``wait`` are as for :class:`~sfumato.streams.clock.Steps`. Made for a stream that was resumed, it drops
    the events of all steps that the stream has had: the source may then be read from its start again, or it is
    ``source``, whose position is sealed with every step. Threads may share an inbox: a step is released once.

    >>> from datetime import UTC, timedelta
    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")
    >>> total = vault.stream(name="er", horizon=60).running_total().open(epsilon=1, delta=1e-7)
    >>> clock = Clock(start=datetime(2026, 1, 1, tzinfo=UTC), every=timedelta(hours=1))
    >>> inbox = Inbox(total, clock)
    >>> inbox.put(Arrival(at=datetime(2026, 1, 1, 0, 59, tzinfo=UTC)))
    >>> [told.step for told in inbox.tell(datetime(2026, 1, 1, 3, tzinfo=UTC))]
    [1, 2, 3]
    """

    def __init__(
        self,
        stream: OpenStream,
        clock: Clock,
        *,
        late: str = "drop",
        wait: int = 0,
        source: Positioned | None = None,
    ) -> None:
        query = declared(stream)
        people = is_of_people(stream)
        if late == "now" and query.times > 1 and not people:
            raise InvalidInput(
                "this stream protects the events of several steps together, one in each; late ones that count now "
                "could meet in one step. Nothing was done. Drop late events, or protect one event."
            )
        if late == "now" and source is not None:
            raise InvalidInput(
                "after a crash nobody could tell a late event that counted from one that still waits, so with a source "
                "that is read on from a position late events are dropped. Nothing was done. Say wait=1, or more."
            )
        self._stream, self._source = stream, source
        self._steps = Steps(
            clock,
            horizon=query.horizon,
            people=people,
            groups=getattr(query, "groups", ()),
            least=0 if query.lower == 0 else -query.each,
            most=query.each,
            late=late,
            wait=wait,
            told=stream.steps,
        )
        if source is not None:
            source.begin(stream.position, clock, query.horizon)

    @property
    def has_ended(self) -> bool:
        """Whether the stream has no further steps. Public."""
        return has_ended(self._stream)

    @property
    def next_due(self) -> datetime:
        """When the next step can be released. Public."""
        return self._steps.next_due

    def put(self, event: Arrival) -> None:
        """Take an event; one that cannot count is dropped without a word."""
        self._steps.put(event)

    def put_all(self, events: Iterable[Arrival]) -> None:
        """Take several events."""
        for event in events:
            self._steps.put(event)

    def tell(self, now: datetime) -> Iterator[Answer]:
        """Tell every step that has ended by now and was not told, also those in which nothing happened.

        ``now`` must come from a public clock, such as that of the machine, and never from the newest event.
        """
        due = self._steps.due(now)
        while (told := self._told(due)) is not None:
            yield told

    def _told(self, due: Iterator[tuple[int, Contents]]) -> Answer | None:
        """Release the next step that is due; None where there is none. No other thread releases one meanwhile."""
        with self._stream.uninterrupted():
            found = None if has_ended(self._stream) else next(due, None)
            if found is None:
                return None
            step, held = found
            if self._stream.steps != step - 1:
                raise Refused(
                    f"the stream is at step {self._stream.steps} and its inbox at {step - 1}: something else feeds it. "
                    "Nothing more was released. Make a new inbox; it goes on from where the stream is."
                )
            if self._source is None:
                return tell(self._stream, held)
            position = self._source.after(step)
            self._stream.take_position(position)
            answer = tell(self._stream, held)
            self._source.passed(position)
            return answer
