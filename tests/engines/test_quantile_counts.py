"""Rows by lattice value: the same on every engine; what is kept of a person depends on that person's rows alone."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.engines import quantile_counts
from sfumato.engines.bounded import KeyColumn, Share
from sfumato.engines.expressions import col
from sfumato.engines.lattice import Lattice
from sfumato.engines.quantile_counts import bounded_histogram, lattice_counts, rows_by_value
from sfumato.engines.sources import Source
from sfumato.engines.sufficient_statistics import Histogram
from sfumato.engines.totals import brought_out, whole_numbers
from tests.engines.loading import on
from tests.laws.plans import keyed_hash, mark

ENGINES = ["DuckDB", "PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)]
SECRET = "0f" * 16
ZIPS = ("a", "b", "é")
KEYS = (KeyColumn(column="zip", values=ZIPS),)
LATTICE = Lattice(value=col("x").node, low=Fraction(0), high=Fraction(8), steps=8)
PLACES = [None, -3.0, 0.0, 0.4, 0.5, 2.0, 2.2, 5.0, 7.5, 8.0, 1e9, float("nan"), float("inf")]
ROUNDED = [None, 0, 0, 0, 1, 2, 2, 5, 8, 8, 8, None, 8]
Row = tuple[str | None, str | None, float | None]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Callable[[pa.Table, str], Source]:
    """Puts rows on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return lambda frame, name: on(engine, frame, name, url=url, session=session)


def frame(rows: list[Row], worlds: list[int] | None = None) -> pa.Table:
    columns: dict[str, Any] = {
        "person": pa.array([row[0] for row in rows], pa.string()),
        "zip": pa.array([row[1] for row in rows], pa.string()),
        "x": pa.array([row[2] for row in rows], pa.float64()),
    }
    if worlds is not None:
        columns["world"] = pa.array(worlds, pa.int64())
    return pa.table(columns)


def by_hand(rows: list[Row], *, keys: tuple[KeyColumn, ...], share: Share | None) -> Counter[tuple[int, int]]:
    """Rows by (cell, value), in plain Python."""
    owned: dict[object, Counter[tuple[int, int]]] = {}
    found: Counter[tuple[int, int]] = Counter()
    for person, zip_code, x in rows:
        value = ROUNDED[[repr(place) for place in PLACES].index(repr(x))]
        cell = keys[0].values.index(zip_code) if keys and zip_code in ZIPS else 0
        if value is None or (keys and zip_code not in ZIPS):
            continue
        if share is None:
            found[cell, value] += 1
        elif person is not None:
            owned.setdefault(person, Counter())[cell, value] += 1
    for person, mine in owned.items():
        assert share is not None
        cells = sorted(
            {cell for cell, _ in mine},
            key=lambda cell: (mark(SECRET, person, keys[0].values[cell]) if keys else 0, cell),
        )
        for cell in cells[: share.limit.groups] if keys else cells:
            left = share.limit.rows_per_group
            values = [value for at, value in mine if at == cell]
            for value in sorted(values, key=lambda value: (keyed_hash(SECRET, person, cell, value), value)):
                taken = min(left, mine[cell, value])
                left -= taken
                if taken:
                    found[cell, value] += taken
    return found


def many() -> list[Row]:
    people = ["p", "q", "P", "", "é", "e\u0301", None]
    rows: list[Row] = []
    for number, (person, zip_code) in enumerate(product(people, [*ZIPS, "elsewhere", None])):
        for step in range(number % 5 + 1):
            rows += [(person, zip_code, PLACES[(3 * number + 2 * step) % len(PLACES)])] * (1 + (number + step) % 3)
    return rows


@pytest.mark.few(2)
@pytest.mark.parametrize("keys", [(), KEYS], ids=["no keys", "by zip"])
def test_every_engine_counts_what_plain_python_counts(place: Callable[..., Source], keys: Any) -> None:
    rows = many()
    shares = [None, *(Share(column="person", limit=limit, secret=SECRET) for limit in LIMITS)]
    with place(frame(rows), "values").opened() as table:
        for share in shares:
            found = lattice_counts(table, where=None, keys=keys, share=share, lattice=LATTICE)
            expected = by_hand(rows, keys=keys, share=share)
            assert len(found) == (3 if keys else 1)
            given = {
                (cell, value): count
                for cell, (values, counts) in enumerate(found)
                for value, count in zip(values.tolist(), counts.tolist(), strict=True)
            }
            assert given == expected
            assert all((np.diff(values) > 0).all() for values, _ in found)
    assert by_hand(rows, keys=keys, share=shares[1]) != by_hand(rows, keys=keys, share=None)


@pytest.mark.few(2)
@pytest.mark.parametrize("keys", [(), KEYS], ids=["no keys", "by zip"])
def test_every_engine_counts_a_histogram_and_gives_out_no_more_than_its_bins(
    place: Callable[..., Source], keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of values become bins inside the engine: what leaves it is one number for a cell and a bin."""
    out: list[int] = []

    def seen(plan: Any) -> Any:
        found = whole_numbers(plan)
        out.append(len(found["total"]))
        return found

    monkeypatch.setattr(quantile_counts, "whole_numbers", seen)
    fine = [(f"p{at}", ZIPS[at % 3], float(at) / 400) for at in range(3_200)]
    histogram = Histogram(lattice=LATTICE, height=3)
    share = Share(column="person", limit=LIMITS[0], secret=SECRET)
    with place(frame(fine), "fine").opened() as table:
        for each in (None, share):
            parts = bounded_histogram(table, where=None, keys=keys, share=each, histogram=histogram)
            wanted = Counter((at % 3 if keys else 0, min(8, int(x + 0.5))) for at, (_, _, x) in enumerate(fine))
            assert {
                (cell, place): part[cell] // 3 for place, part in enumerate(parts) for cell in range(len(part))
            } == wanted
    assert max(out) <= 9 * (3 if keys else 1)


LIMITS = [Limit(groups=1, rows_per_group=1), Limit(groups=2, rows_per_group=3), Limit(groups=3, rows_per_group=100)]


def test_a_condition_and_an_empty_table() -> None:
    share = Share(column="person", limit=LIMITS[1], secret=SECRET)
    with Source(frame(many())).opened() as table:
        below = lattice_counts(table, where=col("x") < 3, keys=KEYS, share=share, lattice=LATTICE)
        nobody = lattice_counts(table, where=col("x") > 1e12, keys=KEYS[:1], share=None, lattice=LATTICE)
    assert max(int(values.max()) for values, _ in below) == 2
    assert sum(counts.sum() for _, counts in nobody) == sum(row[2] == float("inf") for row in many() if row[1] in ZIPS)
    with Source(frame([])).opened() as table:
        assert [v.size for v, _ in lattice_counts(table, where=None, keys=KEYS, share=share, lattice=LATTICE)] == [
            0
        ] * 3


@pytest.mark.claim("X-04")
@pytest.mark.parametrize("limit", LIMITS[:2], ids=str)
@pytest.mark.parametrize("keys", [(), KEYS], ids=["no keys", "by zip"])
def test_no_person_moves_more_rows_than_the_limit(keys: Any, limit: Limit) -> None:
    """All neighbours in one table. A person in or out moves at most so many rows of so many groups; others none."""
    cells = list(product(("a", "b", "é"), (0.0, 2.0, 5.0)))
    others: list[Row] = [("q", "a", 2.0), ("q", "a", 2.0), ("q", "b", 5.0), ("r", "é", 0.0)]
    sets: list[list[Row]] = [[]]
    sets += [[("p", *cell)] * times for cell in cells for times in (1, 4)]
    sets += [[("p", *one)] * 2 + [("p", *two)] * 3 for one in cells for two in cells]
    sets += [[("p", *cell) for cell in cells], [("p", *cell) for cell in cells] * 5]
    rows, worlds = [], []
    for world, mine in enumerate(sets):
        rows += others + mine
        worlds += [world] * len(others + mine)
    share = Share(column="person", limit=limit, secret=SECRET)
    with Source(frame(rows, worlds)).opened() as table:
        plan = rows_by_value(table, where=None, keys=keys, share=share, lattice=LATTICE, world="world")
        found = brought_out(plan)
    counts = np.zeros((len(sets), 3, 9), dtype=np.int64)
    counts[found["world"], found["cell"], found["value"]] = found["total"]
    added = counts - counts[0]
    assert (added >= 0).all()
    touched = added.sum(axis=2)
    groups = limit.groups if keys else 1
    assert touched.max() == limit.rows_per_group
    assert (touched > 0).sum(axis=1).max() == min(groups, 3)
    assert added.sum(axis=(1, 2)).max() == groups * limit.rows_per_group
    for world, mine in enumerate(sets):
        assert counts[world].sum() == by_hand(others + mine, keys=keys, share=share).total()
