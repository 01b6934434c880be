"""The scenario behind ``sfumato stream demo``: a generated building, watched at event level and at user level.

Three streams run over the same steps. Two count how many people were in the building, on average over the last hour:
one protects a person's single quarter of an hour, the other a person with all of theirs. The third raises an alarm when
the hall is crowded, and protects a person with everything.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypedDict

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural
from sfumato.core.units import event, user
from sfumato.demo.building import DAY, Building, building
from sfumato.demo.live_chart import Point
from sfumato.streams.running import RunningTotals
from sfumato.streams.stream import GrowthWarning
from sfumato.vault import Vault

__all__ = ["ALARMS", "HOUR", "Moment", "WatchedBuilding", "clock_time"]

HOUR = 4  # steps
ALARMS = 6
DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What was released at a step, beside what is true of the generated building."""

    step: int
    event: Point
    user: Point
    alarm: bool | None

    @property
    def time(self) -> str:
        """The day and the time at which the step ends."""
        return clock_time(self.step)


def clock_time(step: int) -> str:
    """When a step ends, as clocks in the building show it.

    >>> clock_time(1), clock_time(96), clock_time(96 + 54)
    ('day 1 00:15', 'day 1 24:00', 'day 2 13:30')
    """
    day, quarter = divmod(step - 1, DAY)
    hours, minutes = divmod(15 * (quarter + 1), 60)
    return f"day {day + 1} {hours:02}:{minutes:02}"


class _Said(TypedDict):
    """What is said of each stream."""

    horizon: int
    version: str
    bounds: tuple[int, int]


class WatchedBuilding:
    """A building with three streams, all charged before its first step.

    ``epsilon`` is what each of the two series costs; the alarms cost half of it, also at user level. The true numbers
    in a :class:`Moment` may be shown because the building is generated.

    >>> watched = WatchedBuilding(epsilon=1, steps=3, people=20)
    >>> [moment.time for moment in watched]
    ['day 1 00:15', 'day 1 00:30', 'day 1 00:45']
    >>> str(watched.user_level.spent.epsilon)
    '3/2'
    """

    def __init__(self, *, epsilon: Exact, steps: int = 480, people: int = 1200, seed: int = 7) -> None:
        spend = Budget.asked(epsilon=epsilon, delta=DELTA)
        self.steps, self.people = natural(steps, "steps"), natural(people, "people")
        self.threshold = max(1, people // 3)
        self.event_level = Vault(unit=event(relation="add/remove"), budget=spend, name="building, event level")
        self.user_level = Vault(
            unit=user("person", relation="add/remove"),
            budget=Budget(epsilon=spend.epsilon * Fraction(3, 2), delta=DELTA),
            name="building, user level",
        )
        said: _Said = {"horizon": steps, "version": "demo", "bounds": (0, people)}
        self.warning: str | None = None
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", GrowthWarning)
            self._event, self._user = (
                vault.stream(name="people in the building", **said).running_total().open(epsilon=epsilon, delta=DELTA)
                for vault in (self.event_level, self.user_level)
            )
        if heard:
            self.warning = str(heard[0].message)
        hall = self.user_level.stream(name="people in the hall", **said)
        self._alarms = hall.alarms(threshold=self.threshold, alarms=ALARMS).open(epsilon=spend.epsilon / 2)
        self.raised: list[int] = []
        self.twin: Building = building(people=people, steps=steps, seed=seed)

    @property
    def halted(self) -> bool:
        """Whether all alarms were raised, after which there are none."""
        return self._alarms.halted

    def __iter__(self) -> Iterator[Moment]:
        """Run the building, step by step."""
        counts = self.twin.counts
        for place in range(self.steps):
            self._event.add(int(counts[place]))
            self._user.add(people=self.twin.people_at(place))
            alarm = None
            if not self._alarms.halted:
                alarm = self._alarms.check(people=self.twin.people_at(place, room=0)).alarm
                self.raised += [place + 1] if alarm else []
            wide = min(HOUR, place + 1)
            true = float(counts[place + 1 - wide : place + 1].mean())
            yield Moment(
                step=place + 1,
                event=_mean(self._event, wide, true),
                user=_mean(self._user, wide, true),
                alarm=alarm,
            )


def _mean(stream: RunningTotals, wide: int, true: float) -> Point:
    """The mean of the last steps: a difference of released totals, which costs nothing."""
    told = stream.window(wide)
    return Point(true=true, released=float(told) / wide, margin=told.margin / wide)
