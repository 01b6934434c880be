"""The brute-force law of what is asked about limits: persons by what they have, tails of them, and layers of rows."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation, family, record, user
from sfumato.engines.bounded import Share, totals_by_cell
from sfumato.engines.contribution_counts import persons_in_bins, persons_of_magnitude
from sfumato.engines.contribution_limits import KeyColumn
from sfumato.engines.expressions import col
from sfumato.engines.sufficient_statistics import RowLayers
from sfumato.errors import NotDeclared, Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from tests.laws.neighbours import Neighbours, Rows, Visit, around_persons, around_records, furthest, slack, violations
from tests.laws.plans import loaded
from tests.laws.readings import laid_out
from tests.laws.test_choice_neighbours import one_direction

pytestmark = pytest.mark.no_cover

DATA = Dataset(name="visits", edition="1")
ZIPS = KeyColumn(column="zip", values=("a", "ä"))
BY = (Keys(column="zip", values=("a", "ä")),)
RELATIONS = list(Relation)
AGES = (None, -70, -1, 0, 1, 3, 65, 500)


def row(zip_code: str | None, age: int | None = 40, person: str | None = None) -> Visit:
    return Visit(person=person, zip=zip_code, ward=1, urgent=True, age=age)


def rows_of(first: int, second: int, *, age: int = 40) -> Rows:
    return (row("a", age),) * first + (row("ä", age),) * second


SPREADS = [rows_of(*counts) for counts in product(range(6), repeat=2)] + [(row("elsewhere"), row(None)) * 4]
VALUES = [tuple(row("a", age) for age in pair) for pair in product(AGES, repeat=2)] + [()]
TABLE: Rows = (
    *(it._replace(person="one") for it in rows_of(3, 1)),
    *(it._replace(person="two") for it in (row("a", -7), row("a", 40))),
    *rows_of(2, 2),  # of nobody
)


@cache
def neighbours(values: bool = False) -> Neighbours:
    return around_persons(TABLE, VALUES if values else SPREADS, newcomer="new")


def halved(claim: Sensitivity) -> Sensitivity:
    assert claim.l0 is not None
    assert claim.l1 is not None
    assert claim.l2 is not None
    assert claim.linf is not None
    return Sensitivity.of(
        l0=claim.l0.count, l1=claim.l1.value / 2, l2_squared=claim.l2.squared / 4, linf=claim.linf.value / 2
    )


def bins(found: Any, around: Neighbours, size: int) -> np.ndarray:
    frame = found.to_pyarrow()
    counts = np.zeros((len(around.worlds), size), dtype=np.int64)
    counts[frame["world"].to_numpy(), frame["bin"].to_numpy()] = frame["persons"].to_numpy()
    return counts


@cache
def spread(rows: tuple[int, ...], groups: tuple[int, ...], *, grouped: bool, around: Neighbours) -> np.ndarray:
    plan = persons_in_bins(
        loaded(around),
        where=None,
        keys=[ZIPS] if grouped else [],
        person="person",
        rows=rows,
        groups=groups,
        world="world",
    )
    return bins(plan, around, (len(rows) + 1) * (len(groups) + 1))


def by_hand(table: Rows, rows: Sequence[int], groups: Sequence[int], *, grouped: bool) -> list[int]:
    persons: dict[object, Counter[object]] = {}
    for it in table:
        if it.person is not None and (not grouped or it.zip in ZIPS.values):
            persons.setdefault(it.person, Counter())[it.zip if grouped else ""] += 1
    counts = [0] * ((len(rows) + 1) * (len(groups) + 1))
    for held in persons.values():
        place = sum(max(held.values()) > edge for edge in rows), sum(len(held) > edge for edge in groups)
        counts[place[0] * (len(groups) + 1) + place[1]] += 1
    return counts


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_one_person_moves_contributions_as_far_as_claimed_and_no_further(relation: Relation, grouped: bool) -> None:
    query = Contributions(dataset=DATA, most=3, by=BY if grouped else ())
    around = neighbours()
    counts = spread(query.row_edges, query.group_edges, grouped=grouped, around=around)
    assert counts.shape[1] == query.size == len(next(iter(query.labels().values())))
    claim = query.sensitivity(user("person", relation=relation), None)
    asked: dict[str, Any] = {"around": around, "relation": relation}
    assert violations(lambda _: counts, claim, **asked) == []
    assert slack(lambda _: counts, claim, **asked) == []
    assert len(violations(lambda _: counts, halved(claim), **asked)) == 3


@pytest.mark.parametrize("grouped", [False, True])
def test_persons_are_counted_where_they_belong(grouped: bool) -> None:
    query, around = Contributions(dataset=DATA, most=3, by=BY if grouped else ()), neighbours()
    counts = spread(query.row_edges, query.group_edges, grouped=grouped, around=around)
    for world, table in enumerate(around.worlds):
        assert counts[world].tolist() == by_hand(table, query.row_edges, query.group_edges, grouped=grouped)


def test_two_histograms_move_twice_as_far_as_one_joint_one() -> None:
    """The broken twin: rows and groups counted apart, under the claim of one cell a person."""
    query, around = Contributions(dataset=DATA, most=3, by=BY), neighbours()
    rows = spread(query.row_edges, (), grouped=True, around=around)
    groups = spread((), query.group_edges, grouped=True, around=around)
    claim = query.sensitivity(user("person", relation="add/remove"), None)
    found = violations(lambda _: np.hstack([rows, groups]), claim, around=around, relation=Relation.ADD_REMOVE)
    assert "l1: 2 > 1" in found


def test_under_a_record_unit_one_row_moves_a_person_between_cells() -> None:
    """Why it is refused there."""
    query, around = Contributions(dataset=DATA, most=3), around_records(TABLE, [row("a", person="one")])
    counts = spread(query.row_edges, (), grouped=False, around=around)
    assert furthest(counts, around=around, relation=Relation.ADD_REMOVE)["l1"] == 2
    of = Clamped(value=col("age").node, low=Fraction(-8), high=Fraction(8))
    asked = [query, LimitSuggestion(dataset=DATA, most=3, spends=(Fraction(1),)), Magnitudes(dataset=DATA, of=of)]
    for one in asked:
        for unit in (record(relation="add/remove"), family(2, "person", relation="replace")):
            with pytest.raises(Refused, match=r"is not one person.*Nothing was read"):
                one.sensitivity(unit, None)


# ------------------------------------------------------------------------------------------------------- tails


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_persons_above_a_limit_move_by_one_and_all_in_one_direction(relation: Relation, grouped: bool) -> None:
    query = LimitSuggestion(dataset=DATA, most=5, spends=(Fraction(1),), by=BY if grouped else ())
    around = neighbours()
    claim = query.sensitivity(user("person", relation=relation), None)
    for listed, place in zip(query.candidates, ("groups", "rows")[-len(query.candidates) :], strict=True):
        edges = (listed[:-1], ()) if place == "rows" else ((), listed[:-1])
        counts = spread(*edges, grouped=grouped, around=around)
        tails = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        assert claim.linf is not None
        assert furthest(tails, around=around, relation=relation)["linf"] == claim.linf.value == 1
        assert one_direction(tails, around, relation)


def test_bins_do_not_move_in_one_direction_when_somebody_is_replaced() -> None:
    """The broken twin: what holds of tails does not hold of the cells that they are made of."""
    counts = spread((1, 2, 3), (), grouped=False, around=neighbours())
    assert not one_direction(counts, neighbours(), Relation.REPLACE)


# -------------------------------------------------------------------------------------------------- magnitudes


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_one_person_moves_magnitudes_as_far_as_claimed_whatever_the_rows(relation: Relation) -> None:
    of = Clamped(value=col("age").node, low=Fraction(-64), high=Fraction(64))
    query, around = Magnitudes(dataset=DATA, of=of, octaves=3), neighbours(values=True)
    plan = persons_of_magnitude(
        loaded(around), where=None, person="person", lattice=query.lattice, edges=query.edges, world="world"
    )
    counts = bins(plan, around, query.size)
    claim = query.sensitivity(user("person", relation=relation), None)
    asked: dict[str, Any] = {"around": around, "relation": relation}
    assert violations(lambda _: counts, claim, **asked) == []
    assert slack(lambda _: counts, claim, **asked) == []
    assert len(violations(lambda _: counts, halved(claim), **asked)) == 3
    labels = list(zip(*query.labels().values(), strict=True))
    for world, table in enumerate(around.worlds):
        expected = Counter()
        for person in {it.person for it in table} - {None}:
            ages = [max(-64, min(64, it.age)) for it in table if it.person == person and it.age is not None]
            if ages:
                sign = "positive" if min(ages) >= 0 else "negative" if max(ages) <= 0 else "both"
                top = next(top for top in query.tops if max(map(abs, ages)) <= top)
                expected[(sign, f"{top.numerator}" if top.denominator == 1 else str(float(top)))] += 1
        assert {label: count for label, count in zip(labels, counts[world].tolist(), strict=True) if count} == expected


# ------------------------------------------------------------------------------------------------------ layers


@cache
def layers(query: LayeredCount, limit: Limit, around: Neighbours) -> np.ndarray:
    lower, upper = query.steps
    plan = totals_by_cell(
        loaded(around),
        where=None,
        keys=[ZIPS] if query.by else [],
        share=Share(column="person", limit=limit, secret="s"),  # noqa: S106
        gauges=[RowLayers(lower=lower, upper=upper, most=query.uncut_to)],
        world="world",
    )
    return laid_out(plan.to_pyarrow(), worlds=len(around.worlds), cells=query.cells)


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_one_person_moves_both_layers_as_far_as_claimed(relation: Relation, grouped: bool, share: Fraction) -> None:
    query = LayeredCount(dataset=DATA, within=2, uncut_to=4, share=share, by=BY if grouped else ())
    limit, around = Limit(groups=2 if grouped else 1, rows_per_group=2), neighbours()
    numbers = layers(query, limit, around)
    claim = query.sensitivity(user("person", relation=relation), limit)
    asked: dict[str, Any] = {"around": around, "relation": relation}
    assert violations(lambda _: numbers, claim, **asked) == []
    assert slack(lambda _: numbers, claim, **asked) == []
    assert {it.split(":")[0] for it in violations(lambda _: numbers, halved(claim), **asked)} == {
        "l1",
        "l2 squared",
        "linf",
    }
    assert claim.l1 is not None
    lower, upper = query.steps
    assert Fraction(upper * 2, upper * 2 + lower * 2) == share
    for world, table in enumerate(around.worlds):  # both layers are rows up to the most
        held = Counter((it.person, it.zip if grouped else "a") for it in table if it.person is not None)
        for cell, zip_code in enumerate(ZIPS.values[: query.cells]):
            counted = [count for (_, place), count in held.items() if place == zip_code]
            found = Fraction(int(numbers[world][cell]), lower), Fraction(int(numbers[world][query.cells + cell]), upper)
            assert found[0] == sum(min(count, 2) for count in counted)
            assert sum(found) == sum(min(count, 4) for count in counted)


def test_layers_are_refused_where_rows_would_still_be_cut() -> None:
    person = user("person", relation="add/remove")
    query = LayeredCount(dataset=DATA, within=2, uncut_to=4, by=BY)
    with pytest.raises(Refused, match=r"keeps 1 of 2 groups.*groups=2"):
        query.sensitivity(person, Limit(groups=1, rows_per_group=2))
    with pytest.raises(NotDeclared, match=r"limit of 2 rows and the limit is 3"):
        query.sensitivity(person, Limit(groups=2, rows_per_group=3))
    with pytest.raises(Refused, match=r"every row counts"):
        query.sensitivity(record(relation="add/remove"), None)
