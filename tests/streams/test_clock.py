"""Events become steps by a public clock: one event more moves one step by one, and never which steps are told."""

import itertools
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InvalidInput
from sfumato.streams.clock import LATE, Arrival, Clock, Steps, known_person

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
CLOCK = Clock(start=START, every=HOUR)
ZURICH = ZoneInfo("Europe/Zurich")


def at(hours: float) -> datetime:
    return START + hours * HOUR


# ------------------------------------------------------------------------------------------------------- moments


@pytest.mark.parametrize(
    ("day", "hours"),
    [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 6, 1), 24)],
)
def test_no_step_is_doubled_or_left_out_where_clocks_are_put_forward_or_back(
    day: tuple[int, int, int], hours: int
) -> None:
    """An event each quarter of an hour of that day, in Zurich, as clocks on the wall showed it: four in every step."""
    midnight = datetime(*day, tzinfo=ZURICH)
    clock = Clock(start=midnight, every=HOUR)
    quarters = [(clock.start + quarter * timedelta(minutes=15)).astimezone(ZURICH) for quarter in range(4 * hours)]
    assert quarters[-1].date() == midnight.date() != (quarters[-1] + HOUR).date()
    found = [clock.step_of(moment) for moment in quarters]
    assert found == [step for step in range(1, hours + 1) for _ in range(4)]
    naive = {(moment.replace(tzinfo=None) - midnight.replace(tzinfo=None)) // HOUR + 1 for moment in quarters}
    if hours != 24:  # the twin that counts by the clock on the wall doubles a step or leaves one out
        assert naive != set(range(1, hours + 1))
    assert clock.ended(clock.begins(hours + 1)) == hours == clock.ended(clock.begins(hours + 2)) - 1


def test_a_start_and_events_of_the_same_zone_are_still_told_by_time_that_passed() -> None:
    """Python subtracts two times of one zone by the clock on the wall; a clock of steps does not."""
    start = datetime(2026, 10, 25, tzinfo=ZURICH)
    later = datetime(2026, 10, 25, 12, tzinfo=ZURICH)
    assert (later - start) // HOUR == 12
    assert Clock(start=start, every=HOUR).step_of(later) == 13 + 1


def test_one_moment_is_in_one_step_however_it_is_written() -> None:
    moment = at(2.5)
    zones = [UTC, ZURICH, timezone(timedelta(hours=-11)), timezone(timedelta(minutes=345))]
    assert {CLOCK.step_of(moment.astimezone(zone)) for zone in zones} == {3}


@pytest.mark.parametrize(
    ("moment", "step"),
    [
        (START, 1),
        (START + HOUR - timedelta(microseconds=1), 1),
        (START + HOUR, 2),
        (START - timedelta(microseconds=1), None),
        (datetime(2026, 1, 1), None),
        (None, None),
        ("2026-01-01T00:00:00Z", None),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), None),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))), 69_898_646),
    ],
)
def test_every_moment_has_a_step_or_none_and_never_an_error(moment: Any, step: int | None) -> None:
    assert CLOCK.step_of(moment) == step


def test_a_clock_needs_a_start_with_a_zone_and_steps_that_last() -> None:
    for start in (datetime(2026, 1, 1), None, "2026-01-01"):
        with pytest.raises(InvalidInput, match="time with a zone"):
            Clock(start=start, every=HOUR)  # type: ignore[arg-type]
    for every in (timedelta(0), -HOUR, 3600):
        with pytest.raises(InvalidInput, match="must last"):
            Clock(start=START, every=every)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="time with a zone"):
        CLOCK.ended(datetime(2026, 1, 1))
    assert CLOCK.ended(START - 5 * HOUR) == 0


# ------------------------------------------------------------------------------------------- late, lost, in order


def handed(steps: Steps, hours: float) -> list[Any]:
    return list(steps.due(at(hours)))


def test_events_out_of_order_and_gaps() -> None:
    steps = Steps(CLOCK, horizon=6)
    for hours in (3.5, 0.1, 3.9, 0.2):
        steps.put(Arrival(at=at(hours)))
    assert handed(steps, 0.99) == []
    assert handed(steps, 2) == [(1, 2), (2, 0)]
    assert handed(steps, 2) == []
    assert handed(steps, 1) == []  # a clock that was put back
    assert handed(steps, 99) == [(3, 0), (4, 2), (5, 0), (6, 0)]
    assert handed(steps, 999) == []
    assert steps.told == 6


@pytest.mark.claim("S4-08")
@pytest.mark.parametrize(("late", "expected"), [("drop", 0), ("now", 2)])
def test_a_late_event_is_dropped_or_counts_now(late: str, expected: int) -> None:
    steps = Steps(CLOCK, horizon=3, late=late)
    assert handed(steps, 2) == [(1, 0), (2, 0)]
    steps.put(Arrival(at=at(0.5)))
    steps.put(Arrival(at=at(1.5)))
    assert handed(steps, 3) == [(3, expected)]
    steps.put(Arrival(at=at(0.5)))  # nothing is left for it to count in
    assert handed(steps, 99) == []


def test_waiting_gives_late_events_time() -> None:
    steps = Steps(CLOCK, horizon=9, wait=2)
    assert steps.next_due == at(3)
    assert handed(steps, 2.9) == []
    steps.put(Arrival(at=at(0.5)))
    assert handed(steps, 3) == [(1, 1)]
    assert steps.next_due == at(4)


def test_events_of_the_steps_before_a_resumption_are_dropped_whatever_late_says() -> None:
    """They have perhaps counted already, and an event must not count twice."""
    for late in LATE:
        steps = Steps(CLOCK, horizon=9, late=late, told=3)
        for hours in (0.5, 2.99, 3.0):
            steps.put(Arrival(at=at(hours)))
        assert handed(steps, 4) == [(4, 1)]


@pytest.mark.parametrize(
    "event",
    [
        Arrival(at=None),
        Arrival(at=datetime(2026, 1, 1, 0, 30)),
        Arrival(at=at(-1)),
        Arrival(at=at(3)),
        Arrival(at=at(0.5), amount=None),
        Arrival(at=at(0.5), amount=1.5),  # type: ignore[arg-type]
        Arrival(at=at(0.5), amount=float("nan")),  # type: ignore[arg-type]
        Arrival(at=at(0.5), amount=float("inf")),  # type: ignore[arg-type]
        Arrival(at=pd.NaT),
        Arrival(at=at(0.5), amount=True),
        Arrival(at=at(0.5), amount="1"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_counted_is_dropped_without_a_word(event: Arrival) -> None:
    steps = Steps(CLOCK, horizon=3)
    steps.put(event)
    assert handed(steps, 9) == [(1, 0), (2, 0), (3, 0)]


def test_numbers_of_data_frames_are_whole_numbers_and_what_they_miss_is_dropped() -> None:
    """Where one number is missing, a data frame makes floats of all; and its missing cells compare with nothing."""
    steps = Steps(CLOCK, horizon=1, groups=("x",), most=9)
    for amount in (2.0, np.float32(2), np.int16(3), None, np.nan, pd.NA, pd.NaT, np.bool_(True), np.array([1, 2])):
        steps.put(Arrival(at=pd.Timestamp(START), amount=amount, group="x"))  # type: ignore[arg-type]
    for group in (None, np.nan, pd.NA, pd.NaT, np.array(["x", "y"])):
        steps.put(Arrival(at=START, group=group))  # type: ignore[arg-type]
    assert handed(steps, 1) == [(1, {"x": 7})]
    people = Steps(CLOCK, horizon=1, people=True)
    for person in (7, 7.0, np.float64(7), np.int64(7), np.nan, pd.NA, 7.5, np.array([7, 8])):
        people.put(Arrival(at=START, person=person))  # type: ignore[arg-type]
    assert handed(people, 1) == [(1, {7: 4})]


def test_numbers_are_held_to_what_one_event_may_count() -> None:
    steps = Steps(CLOCK, horizon=1, least=-2, most=2)
    for amount in (10**9, -3, 1):
        steps.put(Arrival(at=START, amount=amount))
    assert handed(steps, 1) == [(1, 1)]


def test_persons_and_groups() -> None:
    people = Steps(CLOCK, horizon=1, people=True)
    for person in ("a", 7, None, "", 3.5, True, "\ud800", 2**70, "a"):
        people.put(Arrival(at=START, person=person))  # type: ignore[arg-type]
    people.put(Arrival(at=START, person="a", amount=3))
    people.put(Arrival(at=START, person="a", amount=-9))
    people.put(Arrival(at=START, person="b", amount=None))
    assert handed(people, 1) == [(1, {"a": 5, 7: 1})]
    both = Steps(CLOCK, horizon=2, people=True, groups=("x", "y"))
    both.put(Arrival(at=START, person="a", group="y"))
    both.put(Arrival(at=START, person="a", group="z"))
    both.put(Arrival(at=START, person="a"))
    assert handed(both, 2) == [(1, {"x": {}, "y": {"a": 1}}), (2, {"x": {}, "y": {}})]
    counted = Steps(CLOCK, horizon=1, groups=("x", "y"))
    for group in ("x", "x", "y", None):
        counted.put(Arrival(at=START, group=group))
    assert handed(counted, 1) == [(1, {"x": 2, "y": 1})]


def test_ids_that_are_told_apart_stay_apart() -> None:
    assert known_person(1) != known_person("1")
    assert known_person("é") == "é"


@pytest.mark.parametrize("wrong", [{"late": "refuse"}, {"wait": -1}, {"horizon": 0}, {"told": 1.5}])
def test_rules_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Steps(CLOCK, **{"horizon": 4, **wrong})


# ------------------------------------------------------------------------------------------------- neighbours

MOMENTS = (-0.5, 0.5, 1.5, 2.5, 3.5)  # before the start, in each of three steps, after the horizon
ASKED = (0.0, 1.0, 1.2, 3.0)  # when the clock is looked at: public


class Watermark(Steps):
    """The broken twin: time goes on when an event comes, and not by a clock."""

    def put(self, event: Arrival) -> None:
        super().put(event)
        self.seen = max(getattr(self, "seen", START), event.at or START)

    def due(self, now: datetime) -> Any:
        return super().due(getattr(self, "seen", START))


def run(kind: type[Steps], plan: list[tuple[int, float]], **rules: Any) -> list[list[tuple[int, int]]]:
    """What is handed out at each look at the clock, where ``plan`` has events as (before which look, when)."""
    steps = kind(CLOCK, horizon=3, **rules)
    told = []
    for place, now in enumerate(ASKED):
        for before, hours in plan:
            if before == place:
                steps.put(Arrival(at=at(hours)))
        told.append([(step, int(held)) for step, held in steps.due(at(now))])  # type: ignore[call-overload]
    return told


def neighbours() -> list[tuple[list[tuple[int, float]], list[tuple[int, float]]]]:
    """All sequences of up to two events in all orders, and each with one event more."""
    places = list(itertools.product(range(len(ASKED)), MOMENTS))
    sequences = [list(chosen) for count in (0, 1, 2) for chosen in itertools.product(places, repeat=count)]
    return [(here, [*here, one]) for here in sequences for one in places]


def moved(kind: type[Steps], **rules: Any) -> tuple[int, bool]:
    """By how much one event more moves the steps at most, in all, and whether it moves which are told when."""
    worst, shown = 0, False
    cache: dict[Any, Any] = {}

    def told(plan: list[tuple[int, float]]) -> Any:
        key = tuple(plan)
        if key not in cache:
            cache[key] = run(kind, plan, **rules)
        return cache[key]

    for here, there in neighbours():
        one, other = told(here), told(there)
        shown |= [[step for step, _ in look] for look in one] != [[step for step, _ in look] for look in other]
        steps = [dict(pair for look in each for pair in look) for each in (one, other)]
        changes = [abs(steps[0].get(step, 0) - steps[1].get(step, 0)) for step in (1, 2, 3)]
        worst = max(worst, sum(changes))
    return worst, shown


@pytest.mark.few(2)
@pytest.mark.claim("S4-08")
@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("wait", [0, 1])
def test_one_event_more_moves_one_step_by_one_and_never_which_steps_are_told(late: str, wait: int) -> None:
    assert moved(Steps, late=late, wait=wait) == (1, False)


@pytest.mark.long
def test_a_clock_that_events_drive_shows_that_one_came() -> None:
    """The broken twin must fail, and does: with it, which steps are told depends on the events."""
    assert moved(Watermark)[1]
