"""The generated building has the shapes that make a series of counts dangerous, and the same ones each time."""

import subprocess
import sys

import numpy as np
import pytest

from sfumato.demo.building import ABSENT, DAY, building
from sfumato.errors import InvalidInput


@pytest.fixture(scope="module")
def twin():
    return building()


def test_the_views_agree_with_the_rooms(twin):
    assert twin.room.shape == (60, 480)
    assert set(np.unique(twin.room)) == {ABSENT, *range(6)}
    assert (twin.present == (twin.room >= 0)).all()
    assert (twin.counts == twin.present.sum(axis=0)).all()
    assert (twin.by_room.sum(axis=1) == twin.counts).all()
    assert twin.names[17] == "p017"
    assert len(set(twin.names)) == 60
    there = twin.present[:, 50]
    assert twin.people_at(50) == [name for name, is_in in zip(twin.names, there, strict=True) if is_in]
    assert sorted(name for room in range(6) for name in twin.people_at(50, room=room)) == twin.people_at(50)


def test_nights_are_empty_and_days_are_not(twin):
    quarter = np.arange(480) % DAY
    assert twin.counts[quarter < 20].max() == 0
    assert twin.counts[(quarter > 40) & (quarter < 60)].min() > 20


@pytest.mark.claim("S4-16")
def test_the_steps_of_a_person_are_correlated(twin):
    """Within the day, far above what independent steps with the same shares would show."""
    day = np.flatnonzero((np.arange(480) % DAY >= 40) & (np.arange(480) % DAY < 60))
    pairs = day[:-1][np.diff(day) == 1]
    now, then = twin.present[:, pairs], twin.present[:, pairs + 1]
    share = now.mean()
    stays_out = (~now & ~then).sum() / (~now).sum()
    assert stays_out > 0.6
    assert 1 - share < 0.35
    both = now & then
    same_room = (twin.room[:, pairs] == twin.room[:, pairs + 1])[both].mean()
    assert same_room > 0.75
    shuffled = np.random.default_rng(1).permuted(twin.room, axis=1)
    assert (shuffled[:, pairs] == shuffled[:, pairs + 1])[both].mean() < 0.75


def test_people_have_a_room_of_their_own(twin):
    there = twin.present
    at_home = (twin.room == twin.home[:, None])[there].mean()
    assert at_home > 0.5


def test_on_every_other_day_most_meet_in_one_room(twin):
    hall = twin.by_room[:, 0]
    quarter, day = np.arange(480) % DAY, np.arange(480) // DAY
    meeting = (quarter >= 54) & (quarter < 58) & (day % 2 == 1)
    assert hall[meeting].min() > hall[~meeting].max()


def test_the_same_seed_invents_the_same_building():
    one, two, other = (building(people=9, steps=120, seed=seed) for seed in (1, 1, 2))
    assert (one.room == two.room).all()
    assert (one.room != other.room).any()


def test_a_longer_building_begins_as_a_shorter_one():
    short, long = building(steps=100), building(steps=300)
    assert (long.room[:, :100] == short.room).all()


@pytest.mark.parametrize("wrong", [{"people": 0}, {"rooms": 1.5}, {"steps": 0}, {"seed": -1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(InvalidInput):
        building(**wrong)


def test_a_step_outside_is_refused(twin):
    for step in (-1, 480):
        with pytest.raises(InvalidInput, match="steps 0 to 479"):
            twin.people_at(step)


def test_importing_it_needs_no_numpy():
    code = "import sys, sfumato.demo.building; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
