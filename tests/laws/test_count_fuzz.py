"""Random tables, predicates, keys, limits and units: the engine counts as by hand, and the claim of Count holds."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines.counts import KeyColumn, Share, bounded_counts, rows_by_cell
from sfumato.engines.expressions import Expression, col
from sfumato.tables.queries.count import Count, Keys
from tests.laws.neighbours import Neighbours, Rows, Visit, around_couples, around_persons, around_records, violations
from tests.laws.plans import count_by_hand, load, matrix
from tests.laws.scenarios import SECRET, UNITS, limit_for, unit_of

pytestmark = pytest.mark.no_cover  # thousands of worlds: measuring coverage would double their time

ZIPS = ["", "a", "A", "a ", "e\u0301", "\u00e9", "区", "\U0001f469\u200d\u2695", "it's", "\\", "\x1f"]
WARDS = [0, 1, -1, 2**63 - 1, -(2**63)]
IDS = {True: ["", " ", "a", "A", "\u00e9", "e\u0301", "7", "\x1f"], False: [0, -1, 7, 2**63 - 1, -(2**63)]}
NEWCOMERS = {True: ("newcomer", "another"), False: (1001, 1002)}
LONG = os.environ.get("SFUMATO_LONG") == "1"
few = settings(max_examples=150 if LONG else 40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def visits(*, text: bool) -> st.SearchStrategy[Visit]:
    return st.builds(
        Visit,
        person=st.sampled_from([*IDS[text], None]),
        zip=st.sampled_from([*ZIPS, None]),
        ward=st.sampled_from([*WARDS, None]),
        urgent=st.sampled_from([True, False, None]),
        age=st.sampled_from([10, 65, 70, None]),
    )


def tables(*, text: bool, most: int) -> st.SearchStrategy[Rows]:
    return st.lists(visits(text=text), max_size=most).map(tuple)


comparisons = st.one_of(
    st.sampled_from([col("age") >= 65, col("age") < 65, col("age").isnull(), col("urgent") == True]),  # noqa: E712
    st.sampled_from(ZIPS).map(lambda value: col("zip") <= value),
    st.lists(st.sampled_from(WARDS), min_size=1, max_size=3).map(lambda values: col("ward").isin(values)),
)
predicates: st.SearchStrategy[Expression] = st.recursive(
    comparisons,
    lambda parts: st.one_of(
        parts.map(lambda part: ~part),
        st.tuples(parts, parts).map(lambda two: two[0] & two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=4,
)


def key_columns() -> st.SearchStrategy[tuple[KeyColumn, ...]]:
    def listed(column: str, values: list[str] | list[int] | list[bool]) -> st.SearchStrategy[KeyColumn]:
        chosen = st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True)
        return chosen.map(lambda some: KeyColumn(column=column, values=tuple(some)))

    columns = [listed("zip", ZIPS), listed("ward", WARDS), listed("urgent", [True, False])]
    choices = st.permutations(range(3)).flatmap(
        lambda order: st.integers(0, 3).flatmap(lambda some: st.tuples(*(columns[it] for it in order[:some])))
    )
    return choices.map(tuple)


limits = st.builds(Limit, groups=st.integers(1, 3), rows_per_group=st.integers(1, 3))


@st.composite
def neighbours(draw: st.DrawFn, kind: str) -> Neighbours:
    text = draw(st.booleans())
    table = draw(tables(text=text, most=7))
    if kind == "record":
        return around_records(table, draw(st.lists(visits(text=text), min_size=1, max_size=4)))
    row_sets = draw(st.lists(tables(text=text, most=6), min_size=1, max_size=4))
    if kind == "user":
        return around_persons(table, row_sets, newcomer=NEWCOMERS[text][0])
    return around_couples(table, row_sets[:3], newcomers=NEWCOMERS[text])


@pytest.mark.long
@few
@given(
    kind=st.sampled_from(UNITS),
    where=st.none() | predicates,
    keys=key_columns(),
    limit=limits,
    secret=st.text("0123456789abcdef", min_size=1, max_size=8),
    data=st.data(),
)
def test_any_plan_counts_as_by_hand_and_obeys_its_claim(
    kind: str,
    where: Expression | None,
    keys: tuple[KeyColumn, ...],
    limit: Limit,
    secret: str,
    data: st.DataObject,
) -> None:
    around = data.draw(neighbours(kind))
    share = None if kind == "record" else Share(column="person", limit=limit, secret=secret)
    asked = {"where": where, "keys": keys, "share": share}
    by = tuple(Keys(column=key.column, values=key.values) for key in keys)
    query = Count(dataset=Dataset(name="visits", edition="1"), where=where, by=by)
    table = load([(world, *row) for world, rows in enumerate(around.worlds) for row in rows], "fuzzed")
    counts = matrix(rows_by_cell(table, **asked, world="world"), around, cells=query.size)
    assert counts.tolist() == [count_by_hand(rows, **asked) for rows in around.worlds]
    for relation in Relation:
        claim = query.sensitivity(unit_of(kind, relation), limit_for(kind, limit))
        assert violations(lambda _: counts, claim, around=around, relation=relation) == []


@pytest.mark.long
@settings(parent=few, max_examples=40 if LONG else 10)
@given(where=st.none() | predicates, keys=key_columns(), limit=limits, rows=tables(text=True, most=30))
def test_the_counts_of_one_table_are_in_the_order_of_the_product_with_empty_cells_as_0(
    where: Expression | None, keys: tuple[KeyColumn, ...], limit: Limit, rows: Rows
) -> None:
    table = load([(0, *row) for row in rows], "alone")
    for share in (None, Share(column="person", limit=limit, secret=SECRET)):
        asked = {"where": where, "keys": keys, "share": share}
        assert bounded_counts(table, **asked) == count_by_hand(rows, **asked)
