"""The brute-force law of Count through the engine's real plan, and broken twins that the same law catches.

All neighbours of a tiny table stand side by side in one table of the engine with a ``world`` column; each plan is one
grouped query. Every claim must hold for all of them and, where the rows are rich enough, be attained by some.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation, user
from sfumato.engines.counts import KeyColumn, Share
from sfumato.tables.queries.count import Count, Keys
from tests.laws.neighbours import (
    Neighbours,
    Plan,
    Visit,
    around_couples,
    around_persons,
    around_records,
    fillings,
    furthest,
    owned,
    stated,
    verdict,
    violations,
)
from tests.laws.plans import by_engine, by_hand, loaded, matrix
from tests.laws.scenarios import (
    LIMITS,
    RELATIONS,
    RICH,
    SCENARIOS,
    SECRET,
    UNITS,
    WHERE,
    Scenario,
    limit_for,
    share_for,
    unit_of,
)

pytestmark = pytest.mark.no_cover  # thousands of worlds: measuring coverage would double their time

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE


def check(scenario: Scenario, kind: str, limit: Limit, where: str) -> None:
    """Hold one plan to what is claimed of it, under both relations."""
    predicate, around = WHERE[where], scenario.neighbours(kind)
    plan = by_engine(where=predicate, keys=scenario.keys, share=share_for(kind, limit))
    for relation in RELATIONS:
        claim = scenario.count(predicate).sensitivity(unit_of(kind, relation), limit_for(kind, limit))
        broken, loose = verdict(plan, claim, around=around, relation=relation)
        assert broken == []
        # Under replace, a table whose every row counts has a public number of rows: no row can be lost in it.
        if where in RICH and not (kind == "record" and relation is REPLACE and not scenario.keys and where == "all"):
            assert loose == []


@pytest.mark.few(8)
@pytest.mark.parametrize("limit", LIMITS, ids=lambda it: f"{it.groups}x{it.rows_per_group}")
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_no_person_and_no_family_moves_a_count_further_than_claimed(scenario: Scenario, limit: Limit) -> None:
    check(scenario, "user", limit, "all")
    if limit in (LIMITS[1], LIMITS[5], LIMITS[6]):
        check(scenario, "family", limit, "all")


@pytest.mark.few(4)
@pytest.mark.parametrize("where", [it for it in WHERE if it != "all"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_filters_change_nothing_about_the_claim(scenario: Scenario, where: str) -> None:
    check(scenario, "user", Limit(groups=2, rows_per_group=2), where)
    if scenario.name == "four values":
        check(scenario, "family", Limit(groups=2, rows_per_group=2), where)


@pytest.mark.few(9)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_no_row_moves_a_count_further_than_claimed(scenario: Scenario, where: str) -> None:
    check(scenario, "record", LIMITS[0], where)


@pytest.mark.few(1)
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_engine_counts_as_by_hand(scenario: Scenario) -> None:
    for kind in UNITS:
        asked = {"where": WHERE["not young"], "keys": scenario.keys, "share": share_for(kind, LIMITS[4])}
        around = scenario.neighbours(kind)
        assert (by_engine(**asked)(around) == by_hand(**asked)(around)).all()


def test_there_are_enough_neighbours_to_mean_something() -> None:
    pairs = 0
    for scenario in SCENARIOS.values():
        for kind in UNITS:
            around = scenario.neighbours(kind)
            assert len(set(around.worlds)) > 20
            pairs += sum(len(plus) + len(plus) ** 2 for _, plus in around.around)
    assert pairs > 300_000


# ---------------------------------------------------------------------------------------- the heat map of cases

REGIONS = ("north", "south", "east", "nobody lives here")


def cases(*, rows: int, relation: Relation) -> tuple[Count, Neighbours, Plan, Sensitivity]:
    """Patients with ``rows`` records each, all in one region, counted over a public list that has an empty region."""
    region = KeyColumn(column="zip", values=REGIONS)
    visits = {place: Visit(person=None, zip=place, ward=None, urgent=None, age=None) for place in REGIONS}
    table = tuple(
        visits[place]._replace(person=person)
        for person, place in enumerate(("north", "north", "south", "east"))
        for _ in range(rows)
    )
    around = around_persons(table, [(visits[place],) * rows for place in REGIONS], newcomer=99)
    limit = Limit(groups=1, rows_per_group=rows)
    share = Share(column="person", limit=limit, secret=SECRET)
    count = Count(dataset=Dataset(name="cases", edition="1"), by=(Keys(column="zip", values=REGIONS),))
    claim = count.sensitivity(user("person", relation=relation), limit)
    return count, around, by_engine(where=None, keys=[region], share=share), claim


@pytest.mark.claim("S1-04")
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_regional_counts_move_by_k_under_add_remove_and_2k_under_replace(rows: int) -> None:
    for relation, l1 in ((ADD_REMOVE, rows), (REPLACE, 2 * rows)):
        _, around, plan, claim = cases(rows=rows, relation=relation)
        assert stated(claim)["l1"] == l1
        assert furthest(plan(around), around=around, relation=relation) == stated(claim)


@pytest.mark.claim("S1-04")
def test_a_patient_with_more_records_than_k_is_held_to_k() -> None:
    _, _, plan, claim = cases(rows=2, relation=ADD_REMOVE)
    visit = Visit(person=None, zip="south", ward=None, urgent=None, age=None)
    greedy = around_persons((), [(visit,) * 50, (visit,) * 30 + (visit._replace(zip="east"),) * 30], newcomer=1)
    assert plan(greedy).sum(axis=1).tolist() == [0, 2, 2]
    assert violations(plan, claim, around=greedy, relation=ADD_REMOVE) == []


@pytest.mark.claim("S1-04")
def test_empty_regions_are_part_of_the_answer_and_unlisted_ones_are_not() -> None:
    count, around, plan, _ = cases(rows=1, relation=ADD_REMOVE)
    assert plan(around)[0].tolist() == [2, 1, 1, 0]
    assert count.labels() == {"zip": list(REGIONS)}
    elsewhere = Visit(person=7, zip="abroad", ward=None, urgent=None, age=None)
    assert (plan(around_records((), [elsewhere])) == 0).all()


# ------------------------------------------------------------------------------------------------ broken twins

KEYS = (KeyColumn(column="zip", values=("a", "b", "c", "d")),)
COUNT = Count(dataset=Dataset(name="visits", edition="1"), by=(Keys(column="zip", values=KEYS[0].values),))
VISITS = [Visit(person=None, zip=zip_code, ward=None, urgent=None, age=70) for zip_code in KEYS[0].values]
CROWD = tuple(visit._replace(person=f"p{number}") for number in range(7) for visit in VISITS)
ONE, TWO = Limit(groups=1, rows_per_group=1), Limit(groups=2, rows_per_group=2)
AROUND = around_persons(CROWD, [*fillings(VISITS, groups=3, rows=3), tuple(VISITS) * 5], newcomer="p7")
COUPLES = around_couples(CROWD, fillings(VISITS, groups=2, rows=2), newcomers=("p7", "p8"))
Order = Callable[[Any], Any]


def claimed(limit: Limit, relation: Relation = ADD_REMOVE, kind: str = "user") -> Sensitivity:
    return COUNT.sensitivity(unit_of(kind, relation), limit)


def ordered(order: Order, limit: Limit, *, elderly: str = "ignored") -> Plan:
    """The engine's plan written again, keeping the groups that come first in any order.

    ``elderly`` says when rows of younger persons are dropped: never, before the limit, or after it.
    """
    import ibis

    def plan(around: Neighbours) -> np.ndarray:
        rows = loaded(around)
        codes = enumerate(KEYS[0].values)
        cell = ibis.cases(*((rows.zip == value, code) for code, value in codes), else_=-1)
        old = (rows.age >= 65).fill_null(False)
        rows = rows.mutate(cell=cell, one=old.cast("int64") if elderly == "after" else ibis.literal(1))
        rows = rows.filter((rows.cell >= 0) & rows.person.notnull() & (old if elderly == "before" else True))
        pairs = rows.group_by("world", "person", "cell").aggregate(rows=rows.one.sum())
        pairs = pairs.mutate(rows=ibis.least(pairs.rows, limit.rows_per_group))
        pairs = pairs.mutate(order=order(pairs))
        window = ibis.window(group_by=["world", "person"], order_by=["order", "cell"])
        pairs = pairs.mutate(place=ibis.row_number().over(window))
        pairs = pairs.filter(pairs.place < limit.groups)
        return matrix(pairs.group_by("world", "cell").aggregate(total=pairs.rows.sum()), around, cells=4)

    return plan


def hashed(pairs: Any, *more: Any) -> Any:
    """A keyed hash of the person, the group, and whatever should have been left out."""
    text = pairs.person + "|" + pairs.cell.cast("string") + "|" + SECRET
    for part in more:
        text = text + "|" + part.cast("string")
    return text.hexdigest("md5")


def own(pairs: Any) -> Any:
    return hashed(pairs)


def most_popular_first(pairs: Any) -> Any:
    return -pairs.rows.sum().over(group_by=["world", "cell"])


def number_of_persons(pairs: Any) -> Any:
    return hashed(pairs, pairs.person.nunique().over(group_by="world"))


def shared_stream(pairs: Any) -> Any:
    import ibis

    place = ibis.row_number().over(group_by="world", order_by=["person", "cell"])
    return (place.cast("string") + SECRET).hexdigest("md5")


def test_the_rewritten_plan_obeys_the_law_when_a_person_alone_decides() -> None:
    for limit in (ONE, TWO):
        assert violations(ordered(own, limit), claimed(limit), around=AROUND, relation=ADD_REMOVE) == []


@pytest.mark.few(2)
@pytest.mark.parametrize("order", [most_popular_first, number_of_persons, shared_stream])
@pytest.mark.parametrize("limit", [ONE, TWO], ids=["1x1", "2x2"])
def test_a_choice_of_groups_that_depends_on_others_is_caught(order: Order, limit: Limit) -> None:
    # The number of persons is public under replace, so what depends on it alone is wrong under add/remove alone.
    for relation in [ADD_REMOVE] if order is number_of_persons else RELATIONS:
        found = violations(ordered(order, limit), claimed(limit, relation), around=AROUND, relation=relation)
        assert any(line.startswith("l1") for line in found)


def test_a_limit_that_is_declared_and_not_enforced_is_caught() -> None:
    plan = by_engine(where=None, keys=KEYS, share=None)
    for kind, around in (("user", AROUND), ("family", COUPLES)):
        for relation in RELATIONS:
            found = violations(plan, claimed(ONE, relation, kind), around=around, relation=relation)
            assert any(line.startswith("l1") for line in found)


@pytest.mark.parametrize("enforced", [Limit(groups=3, rows_per_group=2), Limit(groups=2, rows_per_group=3)])
def test_a_limit_looser_than_the_claimed_one_is_caught(enforced: Limit) -> None:
    plan = by_engine(where=None, keys=KEYS, share=share_for("user", enforced))
    assert violations(plan, claimed(TWO), around=AROUND, relation=ADD_REMOVE)


def test_a_limit_for_single_rows_is_caught() -> None:
    """One added row can displace another of the same person, so a row would move more than the cell that it is in."""
    plan = by_engine(where=None, keys=KEYS, share=share_for("user", ONE))
    claim = COUNT.sensitivity(unit_of("record", ADD_REMOVE), None)
    newest = [visit._replace(person=f"p{number}") for number in range(4) for visit in VISITS]
    found = violations(plan, claim, around=around_records(tuple(newest[::5]), newest), relation=ADD_REMOVE)
    assert [line.partition(":")[0] for line in found] == ["l0", "l1", "l2 squared"]


@pytest.mark.parametrize("kind", ["user", "family"])
def test_counting_a_replaced_person_once_is_caught(kind: str) -> None:
    plan = by_engine(where=None, keys=KEYS, share=share_for(kind, ONE))
    once, around = claimed(ONE, ADD_REMOVE, kind), AROUND if kind == "user" else COUPLES
    found = violations(plan, once, around=around, relation=REPLACE)
    assert [line.partition(":")[0] for line in found] == ["l0", "l1", "l2 squared"]


def test_counting_a_family_as_one_person_is_caught() -> None:
    plan = by_engine(where=None, keys=KEYS, share=share_for("family", ONE))
    assert len(violations(plan, claimed(ONE), around=COUPLES, relation=ADD_REMOVE)) == 4


def test_the_square_root_of_the_groups_for_merged_cells_is_caught() -> None:
    """All groups of a person can land in one cell of a roll-up: l2 is groups·rows there, not √groups·rows."""
    fine = by_engine(where=None, keys=KEYS, share=share_for("user", TWO))
    claim = Sensitivity.of(l0=1, l1=4, l2_squared=2 * 2**2, linf=4)

    def merged(around: Neighbours) -> np.ndarray:
        return fine(around).sum(axis=1, keepdims=True)

    found = violations(merged, claim, around=AROUND, relation=ADD_REMOVE)
    assert found == ["l2 squared: 16 > 8"]
    assert violations(merged, claimed(TWO), around=AROUND, relation=ADD_REMOVE) != []


@pytest.mark.long
def test_limiting_before_the_filter_would_be_sound_and_lose_rows() -> None:
    """Still a function of the person alone, so no bound breaks; but groups are kept that the filter then empties."""
    young = tuple(visit._replace(age=10) for visit in VISITS)
    sets = [*fillings(VISITS, groups=3, rows=3), *((visit, *young) for visit in VISITS), tuple(VISITS) * 5]
    around = around_persons(
        tuple(row for number in range(5) for row in owned(f"p{number}", sets[-2])), sets, newcomer="p"
    )
    real = by_engine(where=WHERE["elderly"], keys=KEYS, share=share_for("user", TWO))
    before, after = (ordered(own, TWO, elderly=when) for when in ("before", "after"))
    for plan in (real, before, after):
        for relation in RELATIONS:
            assert verdict(plan, claimed(TWO, relation), around=around, relation=relation) == ([], [])
    assert (after(around) <= before(around)).all()
    assert after(around).sum() < before(around).sum()
