"""Alarms on a stream: halting for good, private CUSUM, and how far one unit moves what is watched."""

import copy
from itertools import product
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


def query(watched: str, *, times: int = 1, each: int = 1, lower: int = 0) -> Alarms:
    return Alarms(
        dataset=Dataset(name="er", edition="1"),
        watched=watched,
        threshold=3,
        drift=1,
        alarms=1,
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
