"""Trajectories from counts by room: event-level releases give them away as they go on, user-level ones do not."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import sfumato as sf
from sfumato.audit.filters import distance
from sfumato.audit.trajectories import ReconstructionRate, best_guess, in_rooms, read_off, reconstruction
from sfumato.demo.building import DAY, building
from sfumato.errors import InvalidInput
from sfumato.streams.noise import SeriesNoise

ROOMS, PEOPLE, LISTED, TRIES = 4, 30, 10, 120
TWIN = building(people=PEOPLE, rooms=ROOMS, steps=3 * DAY, seed=7)
WAYS = TWIN.room[:, 36:]  # from the first morning on
EVENT, USER = sf.event(relation="add/remove"), sf.user("id", relation="add/remove")
ALPHA = 1e-9


def played(unit: Any, steps: int, **said: Any) -> ReconstructionRate:
    asked = {"epsilon": 1, "delta": "1/1000000", "tries": TRIES, "candidates": LISTED} | said
    return reconstruction(WAYS, rooms=ROOMS, steps=steps, unit=unit, **asked)


def passes(found: ReconstructionRate) -> bool:
    """Whether more guesses were right than the promise allows, by an exact test at ALPHA."""
    return bool(binom.sf(found.right - 1, found.tries, found.allowed) < ALPHA)


@pytest.mark.claim("S4-19")
@pytest.mark.claim("S4-16")
@pytest.mark.alpha(4e-9)
def test_accuracy_rises_with_the_steps_at_event_level_and_stays_within_the_bound_at_user_level() -> None:
    lengths = (3, 32, 240)
    events, persons = ([played(unit, steps) for steps in lengths] for unit in (EVENT, USER))
    assert events[0].accuracy < 0.45
    assert events[-1].accuracy > 0.7
    assert events[0].accuracy < events[1].accuracy < events[2].accuracy
    assert [each.epsilon for each in persons] == [1.0] * 3
    assert [each.epsilon for each in events] == [float(steps) for steps in lengths]
    assert not any(passes(each) for each in persons)
    assert persons[0].allowed == pytest.approx(math.e / LISTED + 1e-6)
    # the broken reading: an event-level ε taken for a person's promise
    from dataclasses import replace

    assert passes(replace(events[-1], epsilon=1.0, delta=1e-6))


@pytest.mark.claim("S4-19")
@pytest.mark.alpha(1e-8)
def test_the_attack_on_a_stream_that_was_opened_charged_and_closed() -> None:
    """The same attack on a certificate alone: two days of a real stream by room, at event level. The trajectories are
    so far apart in the noise that a wrong guess has a chance below 1e-8."""
    steps, true = 2 * DAY, 3
    vault = sf.Vault(unit=EVENT, budget=sf.Budget(epsilon=8, delta=1e-6), name="twin")
    groups = tuple(f"room {room}" for room in range(ROOMS))
    stream = vault.stream(name="rooms", version="1", horizon=steps, bounds=(0, PEOPLE), groups=groups)
    running = stream.running_total().open(epsilon=8, delta=1e-6)
    ways = in_rooms(WAYS[:, :steps], ROOMS)
    others = ways[LISTED:].sum(axis=0)
    running.add_many(others + ways[true])
    release = running.close()
    mechanism = release.statement.mechanism
    assert isinstance(mechanism, SeriesNoise)
    gaps = [ways[true] - ways[other] for other in range(LISTED) if other != true]
    apart = [math.hypot(*(distance(mechanism, gap[:, room].tolist()) for room in range(ROOMS))) for gap in gaps]
    assert sum(norm.sf(each / 2) for each in apart) < 1e-8
    assert best_guess(read_off(release), mechanism, others, ways[:LISTED]) == true


def test_without_the_person_every_guess_is_blind() -> None:
    """The bound rests on this: somebody who is never there leaves a guess that the list alone decides."""
    away = WAYS.copy()
    away[:LISTED] = -1
    found = reconstruction(
        away, rooms=ROOMS, steps=16, unit=EVENT, epsilon=1, delta="1/1000000", tries=LISTED * 4, candidates=LISTED
    )
    assert found.right == 4  # all fit alike, and the first is named


def test_group_privacy_of_an_outcome() -> None:
    found = played(EVENT, 4, tries=2)
    assert found.epsilon == 4.0
    assert found.delta == pytest.approx(1e-6 * np.expm1(4) / np.expm1(1))
    assert played(EVENT, 120, tries=2).allowed == 1.0
    with pytest.raises(InvalidInput, match="two candidates"):
        played(EVENT, 4, candidates=1)
