"""What is kept of a person depends on that person's own rows and the secret alone."""

from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.limits import Limit
from sfumato.engines.counts import KeyColumn, Share, bounded_counts, rows_by_cell
from tests.laws.neighbours import Neighbours, Visit, owned, persons
from tests.laws.plans import by_engine, engine, load, mark, matrix
from tests.laws.scenarios import SECRET

ZIPS = ("a", "b", "é", "e\u0301", "")
KEYS = (KeyColumn(column="zip", values=ZIPS),)
limits = st.builds(Limit, groups=st.integers(1, 4), rows_per_group=st.integers(1, 3))
visits = st.builds(
    Visit,
    person=st.sampled_from(["p", "q", "P", "p ", "é", "e\u0301", "", None]),
    zip=st.sampled_from([*ZIPS, "c", None]),
    ward=st.just(1),
    urgent=st.none(),
    age=st.none(),
)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(visits, max_size=40).map(tuple), limit=limits, secret=st.text("01ab", min_size=1))
def test_the_count_is_the_sum_of_what_each_person_is_alone(rows, limit: Limit, secret: str) -> None:
    """So other people's rows never change a person's kept groups, whoever they are."""
    alone = [tuple(row for row in rows if row.person == person) for person in persons(rows)]
    around = Neighbours(worlds=(rows, *alone), around=())
    table = load([(world, *row) for world, some in enumerate(around.worlds) for row in some], "apart")
    share = Share(column="person", limit=limit, secret=secret)
    counts = matrix(rows_by_cell(table, where=None, keys=KEYS, share=share, world="world"), around, cells=len(ZIPS))
    assert counts[0].tolist() == counts[1:].sum(axis=0).tolist()
    assert ((counts[1:] > 0).sum(axis=1) <= limit.groups).all()
    assert (counts[1:] <= limit.rows_per_group).all()


def test_the_order_of_rows_changes_nothing() -> None:
    rows = [("p", "a"), ("p", "b"), ("q", "b"), ("p", "a"), ("q", "é")]
    orders = list(permutations(rows))
    table = load([(world, *row, 1, None, None) for world, order in enumerate(orders) for row in order], "shuffled")
    share = Share(column="person", limit=Limit(groups=1, rows_per_group=1), secret=SECRET)
    around = Neighbours(worlds=((),) * len(orders), around=())
    counts = matrix(rows_by_cell(table, where=None, keys=KEYS, share=share, world="world"), around, cells=len(ZIPS))
    assert len(np.unique(counts, axis=0)) == 1
    assert counts[0].sum() == 2


@pytest.mark.parametrize("ids", [["p", "P", "p ", " p", "é", "e\u0301", "", "\x1f"], [0, 1, -1, 2**63 - 1, -(2**63)]])
def test_ids_are_told_apart_by_their_bytes_and_null_is_nobody(ids: list[Any]) -> None:
    table = load([(0, person, "a", 1, None, None) for person in [*ids, *ids, None, None]], "ids")
    share = Share(column="person", limit=Limit(groups=1, rows_per_group=1), secret=SECRET)
    for keys in ((), KEYS):
        assert bounded_counts(table, where=None, keys=keys, share=share)[0] == len(ids)


def test_declaring_other_keys_or_another_order_of_them_does_not_change_which_group_is_kept() -> None:
    table = load([(0, "p", zip_code, 1, None, None) for zip_code in ZIPS], "keys")
    share = Share(column="person", limit=Limit(groups=1, rows_per_group=1), secret=SECRET)
    kept = set()
    for order in (ZIPS, ZIPS[::-1], *((*ZIPS[turn:], *ZIPS[:turn]) for turn in range(1, 5))):
        keys = (KeyColumn(column="zip", values=(*order, "never")),)
        counts = bounded_counts(table, where=None, keys=keys, share=share)
        kept.add(order[counts.index(1)])
    assert kept == {min(ZIPS, key=lambda zip_code: mark(SECRET, "p", zip_code))}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32(), pa.int32(), pa.int64()], ids=str)
def test_the_width_of_a_column_does_not_change_what_is_kept(kind: pa.DataType) -> None:
    """Numbers are marked by what they are, so that a wider column, another file or another engine keeps the same."""
    people, wards = zip(*((person, ward) for person in range(30) for ward in range(4)), strict=True)
    frame = pa.table({"person": pa.array(people, kind), "ward": pa.array(wards, kind)})
    table = engine().create_table("widths", frame, overwrite=True)
    share = Share(column="person", limit=Limit(groups=2, rows_per_group=1), secret=SECRET)
    expected = np.zeros(4, dtype=int)
    for person in range(30):
        for ward in sorted(range(4), key=lambda ward: mark(SECRET, person, ward))[:2]:
            expected[ward] += 1
    keys = (KeyColumn(column="ward", values=(0, 1, 2, 3)),)
    assert bounded_counts(table, where=None, keys=keys, share=share) == expected.tolist()


@cache
def everyone_everywhere() -> Neighbours:
    cells = tuple(Visit(person=None, zip=zip_code, ward=1, urgent=None, age=None) for zip_code in ZIPS)
    return Neighbours(worlds=tuple(owned(f"p{number}", cells) for number in range(40)), around=())


@pytest.mark.long
def test_another_secret_keeps_other_groups() -> None:
    limit = Limit(groups=2, rows_per_group=1)
    kept = [
        by_engine(where=None, keys=KEYS, share=Share(column="person", limit=limit, secret=secret))(
            everyone_everywhere()
        )
        for secret in ("0", "1", "0")
    ]
    assert (kept[0] == kept[2]).all()
    assert 5 < (kept[0] != kept[1]).any(axis=1).sum() <= 40
