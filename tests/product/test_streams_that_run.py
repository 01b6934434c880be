"""Streams as a user opens them: what they add to a series, what a person can do to them, and what is charged for it.

Where draws are compared with a law, α is below 1e-9: 10% are 6.6 standard errors of 2,500 Gaussian draws.
"""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.filters import distance
from sfumato.audit.trajectories import best_guess, in_rooms, read_off
from sfumato.demo.building import DAY, building
from sfumato.streams.post.measurements import Measured
from sfumato.streams.sources import Arrival, Clock, Inbox
from tests.product.measures import check

MULTIPLIER = 4.2247  # σ over the sensitivity for ε = 1, δ = 1e-6
FINE = {"epsilon": 10**5, "delta": 1e-7}  # hardly any noise
START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = Clock(start=START, every=timedelta(hours=1))


def vault(unit: Any) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6, delta=1e-6), name="arrivals")


def person() -> Any:
    return sf.user("id", relation="add/remove")


@pytest.mark.claim("S4-18", "X-02")
@pytest.mark.parametrize("strategy", ["best", "increments"])
@pytest.mark.alpha(1e-9)
def test_the_filter_finds_a_person_in_a_running_stream_no_better_than_the_charge_says(strategy: str) -> None:
    """2,500 streams of nobody, side by side: the adversary's score of somebody who came in all 24 steps is N(0, 1)."""
    wards = [f"ward {place}" for place in range(2500)]
    home = vault(person())
    declared = home.stream(
        name="wards", version="1", horizon=24, groups=wards, limit=sf.Limit(groups=24, rows_per_group=1)
    )
    total = declared.running_total(strategy=strategy).open(epsilon=1, delta=1e-6)
    assert home.spent == sf.Budget(epsilon=1, delta=1e-6)
    total.add_many(people=[{} for _ in range(24)])
    seen = Measured.of(total.close())
    shift = seen.matrix @ np.ones(24)
    apart = float(np.linalg.norm(shift)) / math.sqrt(seen.variance)
    assert apart <= 1 / MULTIPLIER * 1.0001
    check(shift @ seen.y / np.linalg.norm(shift) / math.sqrt(seen.variance), math.sqrt(2 / math.pi))


@pytest.mark.claim("S4-16", "S4-19")
@pytest.mark.alpha(1e-8)
def test_ways_through_a_building_are_read_off_event_level_streams_and_not_off_user_level_ones() -> None:
    """The same invented people and rooms, each stream opened, told and closed: ε = 16 for an event, ε = 1 for a person.

    Two ways are two persons apart at the most, and at user level the noise hides them as far as it must. At event level
    a wrong guess among eight has a chance (α) below 1e-8.
    """
    rooms, steps, listed, true = 4, 99, 8, 3
    room = building(people=20, rooms=rooms, steps=2 * DAY).room[:, 36 : 36 + steps]
    ways = in_rooms(room, rooms)
    there = [true, *range(listed, 20)]
    groups = tuple(f"room {place}" for place in range(rooms))
    told = {}
    for unit, epsilon in ((sf.event(relation="add/remove"), 16), (person(), 1)):
        events = unit.KIND == "unit.event"
        declared = vault(unit).stream(
            name="rooms",
            version="1",
            horizon=steps,
            groups=groups,
            **({"bounds": (0, 20)} if events else {"limit": sf.Limit(groups=steps, rows_per_group=1)}),
        )
        running = declared.running_total().open(epsilon=epsilon, delta=1e-6)
        if events:
            running.add_many(ways[there].sum(axis=0))
        else:
            in_step = [
                {group: [str(who) for who in there if room[who, step] == place] for place, group in enumerate(groups)}
                for step in range(steps)
            ]
            running.add_many(people=in_step)
        told[unit.KIND] = running.close()

    def apart(release: Any) -> list[float]:
        said = release.statement.mechanism
        gaps = [ways[true] - ways[other] for other in range(listed) if other != true]
        return [math.hypot(*(distance(said, gap[:, place].tolist()) for place in range(rooms))) for gap in gaps]

    assert max(apart(told["unit.user"])) <= 2 / MULTIPLIER * 1.0001
    release = told["unit.event"]
    assert sum(math.erfc(each / 2 / math.sqrt(2)) / 2 for each in apart(release)) < 1e-8
    others = ways[listed:].sum(axis=0)
    assert best_guess(read_off(release), release.statement.mechanism, others, ways[:listed]) == true


@pytest.mark.claim("S4-09")
@pytest.mark.parametrize("steps", [1, 4, 9])
def test_a_series_costs_a_person_in_every_step_as_much_as_their_number(steps: int) -> None:
    """σ and scale of the measurements of a stream that was opened: l2 √T and l1 T for a person, 1 for an event."""
    for unit, times in ((sf.event(relation="add/remove"), 1), (person(), steps)):
        declared = vault(unit).stream(name="er", version="1", horizon=steps)
        question = declared.running_total(strategy="increments")
        for spend, law in (({"epsilon": 1, "delta": 1e-6}, "l2"), ({"epsilon": 1}, "l1")):
            said = question.open(**spend).close().statement.mechanism
            found = float(said.noise) / 2**said.strategy.bits
            assert found == pytest.approx(MULTIPLIER * math.sqrt(times) if law == "l2" else times, rel=1e-4)
            assert said.norm == law


@pytest.mark.claim("S4-08")
def test_a_release_of_a_stream_says_whom_it_protects_and_is_charged_for_it() -> None:
    costs = {}
    for name, unit in (("event", sf.event(relation="add/remove")), ("user", person())):
        declared = vault(unit).stream(name="er", version="1", horizon=4)
        total = declared.running_total(strategy="increments").open(epsilon=1)
        total.add_many(**({"values": [1, 0, 1, 1]} if name == "event" else {"people": [["a"], [], ["b"], ["a"]]}))
        said = total.close().statement
        assert said.unit == unit
        costs[name] = said.mechanism.noise / 2**said.mechanism.strategy.bits
    assert costs == {"event": Fraction(1), "user": Fraction(4)}


def told(inbox: Inbox, hours: int) -> None:
    for _ in inbox.tell(START + timedelta(hours=hours)):
        pass


@pytest.mark.claim("S4-08")
@pytest.mark.parametrize(("late", "expected"), [("drop", (1, 1, 1, 1)), ("now", (1, 1, 2, 2))])
def test_a_late_event_counts_once_or_not_at_all_in_a_stream_that_runs(late: str, expected: tuple[int, ...]) -> None:
    """One event is charged for, so one event may move one step: an early one, and one that comes for a told step."""
    total = vault(sf.event(relation="add/remove")).stream(name="er", version="1", horizon=4)
    running = total.running_total(strategy="increments").open(**FINE)
    inbox = Inbox(running, HOURS, late=late)
    inbox.put(Arrival(at=START + timedelta(minutes=10)))
    told(inbox, 2)
    inbox.put(Arrival(at=START + timedelta(minutes=50)))  # its step was told
    told(inbox, 4)
    assert tuple(map(round, running.totals)) == expected


@pytest.mark.claim("S4-08", "S4-09")
@pytest.mark.parametrize("late", ["drop", "now"])
def test_a_person_counts_within_the_limit_that_was_charged_for_late_or_not(late: str) -> None:
    """Two steps of a person at least three apart are charged for; this one comes in every step, and late as well."""
    limit = sf.Limit(groups=2, rows_per_group=1)
    declared = vault(person()).stream(name="er", version="1", horizon=12, limit=limit, separation=3)
    running = declared.running_total(strategy="increments").open(**FINE)
    inbox = Inbox(running, HOURS, late=late)
    for hour in range(12):
        for minutes in (5, 25):
            inbox.put(Arrival(at=START + timedelta(hours=hour, minutes=minutes), person="p"))
            inbox.put(Arrival(at=START + timedelta(minutes=minutes), person="p"))
        told(inbox, hour + 1)
    steps = np.diff([0, *map(round, running.totals)])
    places = steps.nonzero()[0]
    assert set(steps) == {0, 1}
    assert len(places) == 2
    assert places[1] - places[0] >= 3
