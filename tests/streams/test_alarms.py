"""Alarms on a stream: halting for good, private CUSUM, and how far one unit moves what is watched."""

import copy
import math
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.query import Dataset
from sfumato.reports.verify import verify
from sfumato.streams.alarms import Alarms
from sfumato.vault import Vault
from tests.reports.forgeries import signed_anew


def vault(relation: str = "add/remove", unit: Any = None) -> Vault:
    return Vault(unit=unit or sf.event(relation=relation), budget=sf.Budget(epsilon=10**6), name="arrivals")


def opened(*, alarms: int = 2, watched: str = "step", drift: int = 0, epsilon: int = 10**4, **said: Any) -> Any:
    stream = vault(**said).stream(name="er", version="1", horizon=100)
    return stream.alarms(threshold=100, alarms=alarms, watched=watched, drift=drift).open(epsilon=epsilon)


@pytest.mark.claim("S4-14")
@pytest.mark.claim("S4-15")
def test_after_the_last_alarm_every_call_gets_the_same_refusal() -> None:
    watch = opened()
    assert [watch.check(x).alarm for x in (1, 200, 3, 300)] == [False, True, False, True]
    assert watch.halted
    said = set()
    for call in (lambda: watch.check(0), lambda: watch.check(10**9), lambda: watch.check("x"), lambda: watch.check()):
        with pytest.raises(errors.Refused) as refused:
            call()
        said.add(str(refused.value))
    assert len(said) == 1
    release = watch.close()
    assert release.columns["step"].values == (2, 4)
    assert verify(release.certificate.document).consistent
    with pytest.raises(errors.Unsupported, match="no margin"):
        release.columns["gap"].interval()


def test_cusum_sees_a_small_change_that_no_single_step_shows() -> None:
    watch = opened(watched="cusum", drift=10, alarms=2)
    told = [watch.check(x).alarm for x in [9] * 20 + [15] * 30]
    assert told.index(True) == pytest.approx(20 + 19, abs=1)
    assert sum(told) == 1
    total = opened(watched="total", alarms=2)
    assert [total.check(60).alarm for _ in range(4)] == [False, True, False, True]


STEADY, CHANGED, DRIFT, LEVEL = 10, 20, 13, 30
RUNS, ALPHA = 600, 1e-9


def alarm_law(threshold_scale: float, query_scale: float) -> list[float]:
    """P(the first alarm comes at or before each step), worked out exactly: the sum over the threshold's noise."""
    import numpy as np

    noise = np.arange(-400, 401)
    one, other = np.exp(-1 / threshold_scale), np.exp(-1 / query_scale)
    silent = (1 - one) / (1 + one) * one ** np.abs(noise)
    held, found = 0, []
    for step in range(22):
        held = max(0, held + (STEADY if step < 10 else CHANGED) - DRIFT)
        room = LEVEL + noise - held  # no alarm where the noise of the query is below it
        low, high = other ** (1 - np.minimum(room, 0)) / (1 + other), 1 - other ** np.maximum(room, 0) / (1 + other)
        silent = silent * np.where(room <= 0, low, high)
        found.append(1 - float(silent.sum()))
    return found


def farthest(first: list[int], law: list[float]) -> float:
    return max(abs(sum(one <= step + 1 for one in first) / len(first) - claim) for step, claim in enumerate(law))


@pytest.mark.long
@pytest.mark.alpha(2 * ALPHA)
def test_cusum_raises_false_alarms_and_is_late_as_often_as_its_noise_says() -> None:
    """Ten steady steps, then a change: the law of the first alarm within the DKW band, α = 1e-9.

    The smallest fault that is sure to be found moves the law by twice the band, 0.27. The twin, whose queries get
    twice the noise, moves it by 0.39.
    """
    asked = (
        vault().stream(name="er", version="1", horizon=100).alarms(threshold=LEVEL, alarms=1, watched="cusum", drift=13)
    )
    noise = asked.open(epsilon=0.25)._mechanism
    law = alarm_law(float(noise.threshold_scale), float(noise.query_scale))
    assert 0.15 < law[9] < 0.25  # false alarms in ten steps
    assert law[10:].index(next(claim for claim in law[10:] if claim > 0.5)) == 3  # half of them within four steps
    band = math.sqrt(math.log(2 / ALPHA) / (2 * RUNS))

    def first(check: Any, held: Any = lambda _, value: value) -> int:
        level = 0
        for step in range(22):
            level = held(level, STEADY if step < 10 else CHANGED)
            if check(level).alarm:
                return step + 1
        return 23

    ours = [first(asked.open(epsilon=0.25).check) for _ in range(RUNS)]
    assert farthest(ours, law) < band
    wrong = replace(noise, each=noise.each / 2)
    twin = [first(wrong.watch(LEVEL).check, asked.query.moved_on) for _ in range(RUNS)]
    assert farthest(twin, law) > band


def query(watched: str, *, times: int = 1, each: int = 1, lower: int = 0) -> Alarms:
    return Alarms(
        dataset=Dataset(name="er", edition="1"),
        watched=watched,
        threshold=3,
        drift=1,
        alarms=1,
        horizon=9,
        told=0,
        lower=lower,
        upper=9,
        each=each,
        times=times,
        separation=1,
    )


@pytest.mark.parametrize("watched", ["step", "total", "cusum"])
def test_no_neighbour_moves_what_is_watched_further_than_claimed(watched: str) -> None:
    """All short streams, all ways in which a unit counts in two steps; resets at alarms are outputs, hence equal."""
    asked = query(watched, times=2)
    limit = sf.Limit(groups=2, rows_per_group=1)
    claim = asked.sensitivity(sf.user("id", relation="add/remove"), limit).linf
    worst = 0
    for base in product(range(3), repeat=4):
        for places in product(range(4), repeat=2):
            held, moved = 0, 0
            for step, value in enumerate(base):
                held = asked.moved_on(held, value)
                moved = asked.moved_on(moved, value + (step in places))
                assert moved >= held  # one direction: monotone
                worst = max(worst, moved - held)
    assert claim is not None
    assert worst == claim.value
    if watched != "step":  # the twin: a claim for one step is broken
        single = query(watched).sensitivity(sf.event(relation="add/remove"), None).linf
        assert single is not None
        assert worst > single.value


@pytest.mark.parametrize("watched", ["step", "total", "cusum"])
def test_a_swap_moves_what_is_watched_no_further(watched: str) -> None:
    """One person's two steps are exchanged for another's: both ways, and still within times·each."""
    asked = query(watched, times=2)
    claim = asked.sensitivity(sf.user("id", relation="replace"), sf.Limit(groups=2, rows_per_group=1)).linf
    worst, lowest = 0, 0
    for base in product(range(3), repeat=4):
        for out, into in product(combinations(range(4), 2), repeat=2):
            here, there = 0, 0
            for step, value in enumerate(base):
                here = asked.moved_on(here, value + (step in out))
                there = asked.moved_on(there, value + (step in into))
                worst, lowest = max(worst, there - here), min(lowest, there - here)
    assert claim is not None
    assert (worst, lowest) == (claim.value, -claim.value)  # not monotone


def test_a_watch_is_monotone_only_where_units_are_added_and_count_upwards() -> None:
    assert query("step").monotone(sf.event(relation="add/remove"))
    assert not query("step").monotone(sf.event(relation="replace"))
    assert not query("step", lower=-1).monotone(sf.event(relation="add/remove"))
    kinds = {relation: opened(relation=relation)._mechanism.monotone for relation in ("add/remove", "replace")}
    assert kinds == {"add/remove": True, "replace": False}


def test_a_certificate_that_counts_on_one_direction_under_replace_is_caught() -> None:
    watch = opened(relation="replace", alarms=1)
    watch.check(200)
    document: Any = watch.close().certificate.document
    for change, holds in (({}, True), ({"monotone": True}, False), ({"alarms": 2}, False)):
        changed = copy.deepcopy(document)
        changed["statement"]["mechanism"].update(change)
        signed_anew(changed)
        assert verify(changed).consistent is holds
    for values in ([5, 1], [1], [1, -1], [1, 1, 1, 1]):  # a step never told, no gap, an impossible one, too many
        changed = copy.deepcopy(document)
        changed["statement"]["values"] = values
        signed_anew(changed)
        assert not verify(changed).consistent


def test_persons_are_held_to_their_limit_and_numbers_refused() -> None:
    home = vault(unit=sf.user("id", relation="add/remove"))
    stream = home.stream(name="er", horizon=9, limit=sf.Limit(groups=1, rows_per_group=1))
    watch = stream.alarms(threshold=2, alarms=1).open(epsilon=10**5)
    assert not watch.check(people=["a", "a", "a"]).alarm
    assert watch.check(people=["a", "b", "c", "d"]).alarm
    with pytest.raises(errors.Refused, match="does not say whose"):
        stream.alarms(threshold=2, alarms=1).open(epsilon=1).check(3)


def test_alarms_cost_their_epsilon_and_take_no_groups() -> None:
    home = vault()
    home.stream(name="er", horizon=9).alarms(threshold=1, alarms=3).open(epsilon="1/2")
    assert home.spent == sf.Budget(epsilon="1/2")
    with pytest.raises(errors.InvalidInput, match="groups"):
        home.stream(name="er", horizon=9, groups=("A",)).alarms(threshold=1, alarms=1)
