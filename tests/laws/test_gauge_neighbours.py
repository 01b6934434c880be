"""The brute-force law of the bounded totals: every gauge, alone and with others, through the engine's real plan.

All neighbours of a tiny table stand side by side in one table; one grouped query adds up all gauges in all of them.
"""

import os
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.units import Relation
from sfumato.tables.contribution import Reach, contribution, joint_reach
from sfumato.tables.statistic_plan import _reach
from tests.laws import gauge_by_hand as by_hand
from tests.laws.neighbours import verdict, violations
from tests.laws.readings import EVERYONE, GAUGES, LAYOUTS, Layout, Reading, load, totals
from tests.laws.scenarios import LIMITS, RELATIONS, limit_for, share_for, unit_of

pytestmark = pytest.mark.no_cover  # thousands of worlds: measuring coverage would double their time

NORMS = ("l1", "l2 squared", "linf")
CASES = [
    ("record", LIMITS[0]),
    *(("user", limit) for limit in LIMITS),
    *(("family", limit) for limit in (LIMITS[1], LIMITS[3])),
]
FEW = [("record", LIMITS[0]), ("user", LIMITS[0]), ("user", LIMITS[4]), ("user", LIMITS[5]), ("family", LIMITS[3])]
LONG = os.environ.get("SFUMATO_LONG") == "1"
ALONE = {name: _reach(gauge) for name, gauge in GAUGES.items()}


@cache
def numbers(layout: Layout, kind: str, limit: Limit) -> np.ndarray:
    """The totals of all gauges in all worlds, from one query."""
    around = layout.neighbours(kind)
    asked: dict[str, Any] = {"where": None, "keys": layout.keys, "share": share_for(kind, limit)}
    table = load(around, f"readings {layout.name} {kind}")
    return totals(table, worlds=len(around.worlds), gauges=list(GAUGES.values()), **asked)


def columns(names: tuple[str, ...], cells: int) -> list[int]:
    """Where the numbers of some gauges are."""
    first, found = 0, []
    for name, reach in ALONE.items():
        if name in names:
            found += range(first, first + reach.numbers * cells)
        first += reach.numbers * cells
    return found


def judge(layout: Layout, names: tuple[str, ...], kind: str, limit: Limit, relation: Relation) -> tuple[list, list]:
    """In which norms the claim for some gauges together is broken, and in which it is not attained."""
    given = contribution(unit_of(kind, relation), limit_for(kind, limit))
    claim = joint_reach([ALONE[name] for name in names], given, cells=layout.cells)
    part = numbers(layout, kind, limit)[:, columns(names, layout.cells)]
    asked: dict[str, Any] = {"around": layout.neighbours(kind), "relation": relation}
    return verdict(lambda _: part, claim, **asked)


def lost(names: tuple[str, ...], layout: Layout, kind: str, relation: Relation) -> bool:
    """Whether a replaced row stays in the one cell that there is, so that nothing counts rows up or down."""
    stays = {"rows", "persons"} & set(names)
    return bool(stays) and kind == "record" and relation is Relation.REPLACE and layout.name == "no keys"


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_no_unit_moves_a_gauge_further_than_claimed_and_some_as_far(layout: Layout, relation: Relation) -> None:
    for kind, limit in CASES if LONG and layout.name == "two keys and the rest" else FEW:
        for name in GAUGES:
            broken, loose = judge(layout, (name,), kind, limit, relation)
            assert broken == [], (name, kind, limit)
            if not lost((name,), layout, kind, relation) and kind != "family":
                assert [it for it in loose if it.startswith(NORMS)] == [], (name, kind, limit)


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_no_unit_moves_several_gauges_together_further_than_claimed(layout: Layout, relation: Relation) -> None:
    for kind, limit in FEW:
        for names in [*pairwise(GAUGES), tuple(GAUGES)]:
            broken, _ = judge(layout, names, kind, limit, relation)
            assert broken == [], (names, kind, limit)


@pytest.mark.few(2)
@pytest.mark.parametrize("names", [("rows", "split"), ("good rows", "powers of degree 2"), ("persons", "both signs")])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_what_gauges_move_adds_up_and_some_neighbours_show_it(names: tuple[str, ...], relation: Relation) -> None:
    layout = LAYOUTS["two keys and the rest"]
    # Where old and new must meet in some cell, one gauge wants both there and the other one of them alone.
    several = [("user", LIMITS[4])] if relation is Relation.ADD_REMOVE else []
    for kind, limit in [("record", LIMITS[0]), ("user", LIMITS[2]), *several]:
        _, loose = judge(layout, names, kind, limit, relation)
        assert [it for it in loose if it.startswith(NORMS[1:])] == [], (kind, limit)


def judge_everyone(kind: str) -> list[tuple[str, list[str], list[str]]]:
    layout, limit, relation = LAYOUTS["no keys"], LIMITS[0], Relation.REPLACE
    around = layout.neighbours(kind)
    given = contribution(unit_of(kind, relation), limit_for(kind, limit))
    table = load(around, f"everyone {kind}")
    gauges = list(EVERYONE.values())
    found = totals(table, worlds=len(around.worlds), where=None, keys=(), share=share_for(kind, limit), gauges=gauges)
    verdicts, first = [], 0
    for name, gauge in EVERYONE.items():
        reach = _reach(gauge)
        part = found[:, first : first + reach.numbers]
        claim = joint_reach([reach], given, cells=1)
        asked: dict[str, Any] = {"around": around, "relation": relation}
        verdicts.append((name, *verdict(lambda _, it=part: it, claim, **asked)))
        first += reach.numbers
    return verdicts


@pytest.mark.parametrize("kind", ["record", "user", "family"])
def test_where_everyone_counts_once_no_unit_moves_the_parts_further_than_claimed(kind: str) -> None:
    for name, broken, _ in judge_everyone(kind):
        assert broken == [], name


@pytest.mark.parametrize("kind", ["record", "user"])
def test_where_everyone_counts_once_the_largest_number_moves_as_far_as_claimed(kind: str) -> None:
    verdicts = {name: loose for name, _, loose in judge_everyone(kind)}
    assert [it for it in verdicts["everyone, degree 1"] if not it.startswith("l0")] == []
    assert [it for it in verdicts["everyone, degree 2"] if it.startswith("linf")] == []


@pytest.mark.long
def test_the_engine_adds_up_as_by_hand_where_no_group_is_left_out() -> None:
    layout, limit = LAYOUTS["two keys and the rest"], Limit(groups=3, rows_per_group=2)
    around = layout.neighbours("user")
    assert numbers(layout, "user", limit).tolist() == [worked_out(world, layout, limit) for world in around.worlds]


def worked_out(world: tuple[Reading, ...], layout: Layout, limit: Limit) -> list[int]:
    """Every gauge of one world in plain Python, all groups of each person kept."""
    places = {value: place for place, value in enumerate(layout.keys[0].values)}
    rows: dict[tuple[str, int], list[Reading]] = {}
    for row in world:
        if row.person is not None:
            cell = places.get(row.zip, len(places))
            rows.setdefault((row.person, cell), []).append(row._replace(person=None, zip=None))
    found: list[int] = []
    for name, reach in ALONE.items():
        parts = [[0] * layout.cells for _ in range(reach.numbers)]
        for (_, cell), some in rows.items():
            for part, amount in enumerate(_of_person(name, tuple(some), limit)):
                parts[part][cell] += amount
        found += [number for part in parts for number in part]
    return found


@cache
def _of_person(name: str, rows: tuple[Reading, ...], limit: Limit) -> list[int]:
    """What the rows of one person in one group come to; most persons are in many worlds."""
    gauge = GAUGES[name]
    sums = [sum(column) for column in zip(*(by_hand.of_row(gauge, row._asdict()) for row in rows), strict=True)]
    return by_hand.of_person(gauge, sums, limit.rows_per_group)


# -------------------------------------------------------------------------------------------------- broken twins


def test_a_limit_that_is_not_enforced_is_caught_for_every_gauge() -> None:
    layout, around = LAYOUTS["two keys and the rest"], LAYOUTS["two keys and the rest"].neighbours("user")
    given = contribution(unit_of("user", Relation.ADD_REMOVE), LIMITS[0])
    for loose in (Limit(groups=1, rows_per_group=2), Limit(groups=2, rows_per_group=1)):
        for name in GAUGES:
            if name == "persons" and loose.groups == 1:
                continue  # they count once, however many rows
            part = numbers(layout, "user", loose)[:, columns((name,), layout.cells)]
            claim = joint_reach([ALONE[name]], given, cells=layout.cells)
            assert violations(lambda _, it=part: it, claim, around=around, relation=Relation.ADD_REMOVE), name


def test_a_replaced_value_counted_once_is_caught_where_old_and_new_meet() -> None:
    layout, limit = LAYOUTS["no keys"], LIMITS[4]
    given = contribution(unit_of("user", Relation.REPLACE), limit)
    for name, reach in ALONE.items():
        if reach.met == reach.alone:
            continue
        once = Reach(numbers=reach.numbers, alone=reach.alone, met=reach.alone)
        part = numbers(layout, "user", limit)[:, columns((name,), 1)]
        claim = joint_reach([once], given, cells=1)
        around = layout.neighbours("user")
        assert violations(lambda _, it=part: it, claim, around=around, relation=Relation.REPLACE), name
