"""The brute-force law of joins: what one unit moves once its rows stand beside a public table, or its own other rows.

Every world has both private tables: a row is a visit where ``urgent`` is true, and a result of a laboratory where it is
false. Worlds never meet, because the number of the world is part of each join.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines.counts import KeyColumn, rows_by_cell
from sfumato.engines.joined import few_rows, joined
from sfumato.engines.partition_selection import persons_by_key
from sfumato.engines.public_rows import public_rows
from sfumato.errors import InvalidInput, Refused
from sfumato.tables.joins import Join
from sfumato.tables.public import PublicTable
from sfumato.tables.queries.count import Count, Keys
from sfumato.tables.queries.partition_selection import PartitionSelection
from tests.laws.neighbours import (
    Neighbours,
    Plan,
    Rows,
    Visit,
    around_couples,
    around_persons,
    around_records,
    furthest,
    owned,
    slack,
    violations,
)
from tests.laws.plans import loaded, matrix
from tests.laws.scenarios import RELATIONS, SECRET, limit_for, share_for, unit_of

pytestmark = pytest.mark.no_cover  # thousands of worlds: measuring coverage would double their time

DATASET, HOSPITALS, LABS = (Dataset(name=name, edition="1") for name in ("visits", "hospitals", "labs"))
LIMITS = [Limit(groups=groups, rows_per_group=rows) for groups, rows in ((1, 1), (2, 2), (1, 3), (3, 1))]


def visit(zip_code: str | None, ward: int | None = 1) -> Visit:
    return Visit(person=None, zip=zip_code, ward=ward, urgent=True, age=None)


def result(zip_code: str | None, ward: int | None = 1) -> Visit:
    return visit(zip_code, ward)._replace(urgent=False)


# ------------------------------------------------------------------------------------------------- public tables

PLACES = ["a", "b", "ä", "c", None, "elsewhere"]
REGION = Keys(column="hospitals.region", values=("north", "south"))
BY_REGION = (KeyColumn(column=REGION.column, values=REGION.values),)
PUBLIC = {"zip": ["a", "b", "ä", "c", None], "region": ["north", "north", "south", None, "south"]}
TWICE = {"zip": ["a", "a", "b"], "region": ["north", "south", "north"]}


def beside_hospitals(around: Neighbours, columns: dict[str, list[str | None]] = PUBLIC) -> Any:
    """All worlds with what a public table says of each row."""
    rows, public = loaded(around), PublicTable.of(pa.table(columns), HOSPITALS)
    return joined(rows, public_rows(rows, public.columns), on=[("zip", "zip")], named="hospitals")


@cache
def around_hospitals(kind: str) -> Neighbours:
    base = (
        *owned("p", (visit("a"), visit("a"), visit("b"), visit("ä"))),
        *owned("q", (visit("c"), visit(None), visit("elsewhere"), visit("ä"))),
        *owned("r", (visit("b"),)),
        visit("a"),
    )
    if kind == "record":
        return around_records(base, [visit(place) for place in PLACES])
    sets: list[Rows] = [(), tuple(visit(place) for place in PLACES) * 4]
    sets += [(visit(place),) * times for place in PLACES for times in (1, 4)]
    sets += [(visit(one),) * 3 + (visit(two),) * 3 for one, two in product("abä", "abä")]
    if kind == "family":
        return around_couples(base, sets[:2] + sets[3:12:2], newcomers=("x", "y"))
    return around_persons(base, sets, newcomer="x")


def counted(beside: Callable[[Neighbours], Any], keys: tuple[KeyColumn, ...], kind: str, limit: Limit) -> Plan:
    """The counts of all worlds, from the plan that a release runs; asked once, whatever they are then judged by."""

    @cache
    def plan(around: Neighbours) -> np.ndarray:
        share = share_for(kind, limit)
        found = rows_by_cell(beside(around), where=None, keys=keys, share=share, world="world")
        return matrix(found, around, cells=int(np.prod([key.size for key in keys])))

    return plan


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("kind", "limit"), [("record", LIMITS[0]), *product(("user", "family"), LIMITS)], ids=lambda it: str(it)
)
def test_what_a_public_table_says_of_a_row_does_not_let_a_unit_move_more(kind: str, limit: Limit) -> None:
    query = Count(dataset=DATASET, by=(REGION,), joins=(Join(dataset=HOSPITALS, on=(("zip", "zip"),), public=True),))
    around = around_hospitals(kind)
    plan = counted(beside_hospitals, BY_REGION, kind, limit)
    for relation in RELATIONS:
        claim = query.sensitivity(unit_of(kind, relation), limit_for(kind, limit))
        assert violations(plan, claim, around=around, relation=relation) == []
        if kind != "family":
            assert slack(plan, claim, around=around, relation=relation) == []


@pytest.mark.parametrize("kind", ["record", "user"])
def test_a_public_table_with_a_key_twice_is_caught_by_the_law_and_refused_at_the_door(kind: str) -> None:
    """The broken twin: one row becomes two."""
    claim = Count(dataset=DATASET, by=(REGION,)).sensitivity(
        unit_of(kind, Relation.ADD_REMOVE), limit_for(kind, LIMITS[0])
    )
    one_row = around_records((visit("b"),), [visit("a")]) if kind == "record" else around_hospitals("user")
    # Persons are held to their limit after the join, so only single rows are hurt.
    broken = counted(lambda around: beside_hospitals(around, TWICE), BY_REGION, kind, LIMITS[0])
    found = violations(broken, claim, around=one_row, relation=Relation.ADD_REMOVE)
    assert (found != []) == (kind == "record")
    with pytest.raises(InvalidInput, match="'hospitals' has the same zip more than once"):
        PublicTable.of(pa.table(TWICE), HOSPITALS).check_unique(["zip"])


# --------------------------------------------------------------------------------------- private, on the person

WARD = Keys(column="labs.ward", values=(1, 2, 3))
KEYS = {
    "no keys": ((), ()),
    "own": ((Keys(column="zip", values=("a", "b")),), (KeyColumn(column="zip", values=("a", "b")),)),
    "theirs": ((WARD,), (KeyColumn(column="labs.ward", values=(1, 2, 3)),)),
}
ON_PERSON = (("person", "person"),)
ON_PERSON_AND_PLACE = (("person", "person"), ("zip", "zip"))


def beside_labs(
    around: Neighbours, on: tuple[tuple[str, str], ...] = ON_PERSON, most: tuple[int, int] | None = None
) -> Any:
    """Visits with results of the laboratory, where these columns are equal, each world by itself.

    ``most`` are the rows of a person that each side may have, as a release holds them to; None is without a limit.
    """
    rows = loaded(around)
    sides = [rows.filter(rows.urgent), rows.filter(~rows.urgent)]
    if most is not None:
        columns = [name for name, _ in on]
        sides = [
            few_rows(side, person="person", most=rows_of, on=columns, secret=SECRET, world="world")
            for side, rows_of in zip(sides, most, strict=True)
        ]
    return joined(*sides, on=[("world", "world"), *on], named="labs")


@cache
def around_labs(kind: str) -> Neighbours:
    base = (
        *owned("p", (visit("a"), visit("b"), result("a", 1), result("b", 2), result("a", 3))),
        *owned("q", (visit("a"), visit("a"), result("a", 1), result("c", 2))),
        *owned("r", (visit("b", 3),)),
        visit("a"),
        result("a"),
    )
    visits: list[Rows] = [(), (visit("a"),), (visit("a"), visit("b"), visit("elsewhere", 2)) * 2, (visit("b", 2),) * 4]
    results: list[Rows] = [(), (result("a", 1),), (result("a", 2), result("b", 3)), (result("b", 1),) * 5]
    results += [tuple(result("a", ward) for ward in (1, 2, 3, None)) * 3]
    results += [tuple(result("a", ward) for ward in (1, 2, 3))]
    sets = [seen + tested for seen, tested in product(visits, results)]
    if kind == "family":
        return around_couples(base, sets[6::4], newcomers=("x", "y"))
    return around_persons(base, sets, newcomer="x")


def asked(name: str, on: tuple[tuple[str, str], ...]) -> Count:
    return Count(dataset=DATASET, by=KEYS[name][0], joins=(Join(dataset=LABS, on=on, public=False),))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        ("user", LIMITS[1]),
        ("family", LIMITS[3]),
        *(
            pytest.param(kind, limit, marks=pytest.mark.long)
            for kind, limit in product(("user", "family"), LIMITS)
            if (kind, limit) not in (("user", LIMITS[1]), ("family", LIMITS[3]))
        ),
    ],
    ids=str,
)
def test_rows_joined_on_the_person_move_no_more_than_the_limit_says(kind: str, limit: Limit) -> None:
    around = around_labs(kind)
    for name, on in product(KEYS, (ON_PERSON, ON_PERSON_AND_PLACE)):
        most = (limit.rows, limit.rows)
        plan = counted(lambda some, on=on, most=most: beside_labs(some, on, most), KEYS[name][1], kind, limit)
        for relation in RELATIONS:
            claim = asked(name, on).sensitivity(unit_of(kind, relation), limit_for(kind, limit))
            assert violations(plan, claim, around=around, relation=relation) == [], (name, on)
            if kind == "user" and name == "theirs" and on == ON_PERSON:
                assert slack(plan, claim, around=around, relation=relation) == []


@pytest.mark.few(1)
@pytest.mark.parametrize("most", [(1, 1), (1, 4), (3, 2)], ids=str)
def test_the_limit_of_each_side_lets_nobody_change_the_rows_of_others(most: tuple[int, int]) -> None:
    """Whatever the limits of the sides: no other person's joined rows differ, and of one person no more are made."""
    around, limit = around_labs("user"), LIMITS[1]
    for on in (ON_PERSON, ON_PERSON_AND_PLACE):
        found = beside_labs(around, on, most)
        made = found.group_by(["world", "person"]).aggregate(n=found.count()).to_pyarrow().to_pylist()
        assert max(row["n"] for row in made) <= most[0] * most[1]
        claim = asked("theirs", on).sensitivity(unit_of("user", Relation.ADD_REMOVE), limit)
        plan = counted(lambda some, on=on: beside_labs(some, on, most), KEYS["theirs"][1], "user", limit)
        assert violations(plan, claim, around=around, relation=Relation.ADD_REMOVE) == []


def test_a_join_on_anything_but_the_person_is_caught_by_the_law_and_refused_at_the_door() -> None:
    """The broken twin: one person's results stand beside everyone's visits."""
    around, limit = around_labs("user"), LIMITS[0]
    on = (("zip", "zip"),)
    plans = {name: counted(lambda some: beside_labs(some, on), keys, "user", limit) for name, (_, keys) in KEYS.items()}
    for (name, broken), relation in product(plans.items(), RELATIONS):
        claim = asked(name, ON_PERSON).sensitivity(unit_of("user", relation), limit)
        assert violations(broken, claim, around=around, relation=relation) != [], (name, relation)
        with pytest.raises(Refused, match="does not ask for the same 'person'"):
            asked(name, on).sensitivity(unit_of("user", relation), limit)


def test_single_rows_are_not_joined_with_private_ones() -> None:
    """Under the record unit one row meets any number of others, also on the person."""
    around = around_records(owned("p", (visit("a"), visit("a"), visit("b"))), owned("p", (result("a"), result("b"))))
    claim = Count(dataset=DATASET).sensitivity(unit_of("record", Relation.ADD_REMOVE), None)
    broken = counted(beside_labs, (), "record", LIMITS[0])
    assert violations(broken, claim, around=around, relation=Relation.ADD_REMOVE) != []
    with pytest.raises(Refused, match="two private tables can be joined where persons are protected"):
        asked("no keys", ON_PERSON).sensitivity(unit_of("record", Relation.ADD_REMOVE), None)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["user", "family"])
def test_keys_found_in_joined_rows_move_as_few_counts_as_claimed(kind: str) -> None:
    around = around_labs(kind)
    for groups, relation in product((1, 2), RELATIONS):
        limit = Limit(groups=groups, rows_per_group=1)
        found = persons_by_key(
            beside_labs(around, most=(3, 3)),
            where=None,
            columns=["labs.ward"],
            share=share_for(kind, limit),
            world="world",
        )
        wards = sorted({ward for _, ward in found})
        counts = np.zeros((len(around.worlds), len(wards)), dtype=np.int64)
        for (world, ward), persons in found.items():
            counts[world, wards.index(ward)] = persons
        query = PartitionSelection(
            dataset=DATASET, over=("labs.ward",), joins=(Join(dataset=LABS, on=ON_PERSON, public=False),)
        )
        claim = query.sensitivity(unit_of(kind, relation), limit)
        moved = furthest(counts, around=around, relation=relation)
        assert claim.l0 is not None
        assert claim.l1 is not None
        assert claim.linf is not None
        assert moved["l0"] <= claim.l0.count
        assert moved["l1"] <= claim.l1.value
        assert moved["linf"] <= claim.linf.value
        assert (moved["l0"], moved["linf"]) >= (groups, claim.linf.value)
