"""From events with a time to numbered steps: which step an event belongs to, and when a step is released.

Which steps are released, and when, depends on a public clock alone: the time that the caller gives. If it depended on
the events (a step is released once a later event has come), then one event more would move a step, and whoever watches
the steps would see that it happened. Nothing here raises an error because of an event: an error would reveal it.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from numbers import Real
from operator import index
from typing import Any, TypeGuard  # what a step holds: a number, or amounts by person

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

__all__ = ["LATE", "Arrival", "Clock", "Contents", "Steps", "has_zone", "known_person", "utc_now", "whole_amount"]

LATE = ("drop", "now")
WHOLE = 2**63

Tally = dict[str | int, int]  # what each person has in a step
Contents = int | Tally | dict[str, int] | dict[str, Tally]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Steps of equal length from a start on: step 1 begins at ``start``, and each lasts ``every``. Public.

    Length is time that passed (UTC), so that where clocks are put forward or back no step is left out or comes twice;
    a step of a day is 24 hours and not always from midnight to midnight.

    >>> from zoneinfo import ZoneInfo
    >>> zurich = ZoneInfo("Europe/Zurich")
    >>> hours = Clock(start=datetime(2026, 10, 25, tzinfo=zurich), every=timedelta(hours=1))
    >>> [hours.step_of(datetime(2026, 10, 25, 2, 30, tzinfo=zurich, fold=fold)) for fold in (0, 1)]  # 2:30 comes twice
    [3, 4]
    >>> hours.step_of(datetime(2026, 10, 26, tzinfo=zurich))  # that day had 25 hours
    26
    """

    start: datetime
    every: timedelta

    def __post_init__(self) -> None:
        if not isinstance(self.every, timedelta) or self.every <= timedelta(0):
            raise InvalidInput("a step must last longer than no time; nothing was done. Say every=timedelta(hours=1).")
        object.__setattr__(self, "start", _aware(self.start, "the start of a clock").astimezone(UTC))

    def step_of(self, moment: datetime) -> int | None:
        """The step in which a moment lies, from 1; none where it lies before the start or has no zone."""
        if not has_zone(moment):
            return None
        step = (moment - self.start) // self.every + 1  # both know their zone: the difference is time that passed
        return step if step >= 1 else None

    def begins(self, step: int) -> datetime:
        """When a step begins, in UTC.

        >>> Clock(start=datetime(2026, 1, 1, tzinfo=UTC), every=timedelta(minutes=15)).begins(3)
        datetime.datetime(2026, 1, 1, 0, 30, tzinfo=datetime.timezone.utc)
        """
        return self.start + (natural(step, "step") - 1) * self.every

    def ended(self, now: datetime) -> int:
        """How many steps have ended by now.

        >>> Clock(start=datetime(2026, 1, 1, tzinfo=UTC), every=timedelta(hours=1)).ended(datetime(2026, 1, 1, 2, 59,
        ...       tzinfo=UTC))
        2
        """
        return max(0, (_aware(now, "the time now") - self.start) // self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One event, with its time. Sensitive: all of it.

    ``person`` is for streams of persons, ``group`` for streams that have groups; ``amount`` is what the event counts.
    """

    at: datetime | None
    person: str | int | None = None
    amount: int | None = 1
    group: str | None = None


class Steps:
    """Puts events into their steps and hands out the steps that have ended, in their order, none left out.

    Guarantee: an event more or less changes what one step holds, by that event (a number is held to ``least`` …
    ``most``; of ``people``, what each has in the step is added up), and changes nothing about which steps are handed
    out when. Checked by enumeration. Sensitive: what was put in. Public: the clock, the rules, and the times that
    :meth:`due` is asked with. Proof: docs/proofs/streams.md

    A step is handed out once the clock has passed its end by ``wait`` steps. What then becomes of an event for it is
    said beforehand: ``late`` is ``drop``, or ``now``, and then it counts in the next step that is handed out. Dropped
    are also events without a readable time, before the start, after the ``horizon``, of a group that was not declared,
    and those of the first ``told`` steps, whatever ``late`` says: a stream that goes on after a crash has perhaps
    counted them already. Threads may share it: each step is handed out once.

    >>> clock = Clock(start=datetime(2026, 1, 1, tzinfo=UTC), every=timedelta(hours=1))
    >>> steps = Steps(clock, horizon=24)
    >>> for minute in (5, 125, 30):
    ...     steps.put(Arrival(at=clock.start + timedelta(minutes=minute)))
    >>> list(steps.due(clock.begins(4)))
    [(1, 2), (2, 0), (3, 1)]
    """

    def __init__(
        self,
        clock: Clock,
        *,
        horizon: int | None,
        people: bool = False,
        groups: Sequence[str] = (),
        least: int = 0,
        most: int = 1,
        late: str = "drop",
        wait: int = 0,
        told: int = 0,
    ) -> None:
        if late not in LATE:
            raise InvalidInput(f"what becomes of a late event is one of {', '.join(LATE)}; nothing was done.")
        self._clock, self._late, self._people = clock, late, people
        self._horizon = None if horizon is None else natural(horizon, "horizon")
        self._wait, self._floor = natural(wait, "wait", least=0), natural(told, "told", least=0)
        self._told, self._groups, self._least, self._most = self._floor, tuple(groups), least, most
        self._held: dict[int, dict[str | None, Any]] = {}
        self._lock = threading.Lock()

    @property
    def told(self) -> int:
        """How many steps were handed out. Public."""
        return self._told

    @property
    def next_due(self) -> datetime:
        """When the next step can be handed out. Public."""
        return self._clock.begins(self._told + 2 + self._wait)

    def put(self, event: Arrival) -> None:
        """Put an event into its step, or drop it; never an error."""
        step = None if event.at is None else self._clock.step_of(event.at)
        with self._lock:
            self._put(step, event)

    def _put(self, step: int | None, event: Arrival) -> None:
        if step is None or step <= self._floor:
            return
        if step <= self._told:
            if self._late == "drop":
                return
            step = self._told + 1
        if self._horizon is not None and step > self._horizon:
            return
        if self._groups and not (isinstance(event.group, str) and event.group in self._groups):
            return
        amount = whole_amount(event.amount)
        if amount is None:
            return
        group = event.group if self._groups else ""
        held = self._held.setdefault(step, {})
        if not self._people:
            held[group] = held.get(group, 0) + min(max(amount, self._least), self._most)
        elif (person := known_person(event.person)) is not None:
            tally = held.setdefault(group, {})
            tally[person] = tally.get(person, 0) + max(0, amount)  # the stream holds a person to its limit

    def due(self, now: datetime) -> Iterator[tuple[int, Contents]]:
        """The steps that have ended by now and were not handed out yet, with what each holds. Sensitive: the latter.

        A clock that goes back takes no step back.
        """
        last = self._clock.ended(now) - self._wait
        if self._horizon is not None:
            last = min(last, self._horizon)
        while (handed := self._next(last)) is not None:
            yield handed

    def _next(self, last: int) -> tuple[int, Contents] | None:
        """The next step up to the last one, counted as handed out; none where there is none."""
        with self._lock:
            if self._told >= last:
                return None
            self._told += 1
            return self._told, self._contents(self._held.pop(self._told, {}))

    def _contents(self, held: dict[str | None, Any]) -> Contents:
        blank: Any = dict if self._people else int
        if self._groups:
            return {name: held.get(name, blank()) for name in self._groups}
        found: Contents = held.get("", blank())
        return found


def known_person(person: object) -> str | int | None:
    """The id of a person, if it is one: a text that can be written down, or a whole number; else None.

    >>> known_person("p17"), known_person(7.0), known_person(""), known_person(3.5), known_person(None)
    ('p17', 7, None, None, None)
    """
    number = whole_amount(person)
    if number is not None:
        return number if abs(number) < WHOLE else None
    if isinstance(person, str) and person and person.encode("utf-8", "ignore").decode("utf-8") == person:
        return person
    return None


def whole_amount(found: object) -> int | None:
    """A whole number, of whatever type; None for anything else, and never an error.

    A float can be one: where a number is missing, data frames make floats of the whole column.

    >>> whole_amount(3), whole_amount(3.0), whole_amount(3.5), whole_amount(float("nan")), whole_amount(None)
    (3, 3, None, None, None)
    """
    if not isinstance(found, int) and isinstance(found, Real) and hasattr(found, "is_integer"):
        return int(found) if found.is_integer() else None  # type: ignore[call-overload]  # what says so can be made whole
    try:
        return None if isinstance(found, bool) else index(found)  # type: ignore[arg-type]  # what has no index raises
    except TypeError:
        return None


def has_zone(moment: object) -> TypeGuard[datetime]:
    """Whether this is a time with a zone. The missing time of a data frame is not, though it is a datetime."""
    try:
        return isinstance(moment, datetime) and moment.utcoffset() is not None
    except ValueError:
        return False


def utc_now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


def _aware(moment: datetime, name: str) -> datetime:
    if not has_zone(moment):
        raise InvalidInput(
            f"{name} must be a time with a zone; nothing was done. Say datetime(2026, 1, 1, tzinfo=UTC), or "
            "tzinfo=ZoneInfo('Europe/Zurich')."
        )
    return moment
