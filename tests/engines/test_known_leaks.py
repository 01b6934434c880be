"""Leaks that were found in other libraries, as tests of ours, on every engine.

Each of them came from trusting what a query engine does to a value that cannot be cast, to NaN, or to one row because
of the others. Numbers are those of OpenDP's tracker.
"""

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.query import Dataset
from sfumato.core.units import record
from sfumato.engines.counts import bounded_counts
from sfumato.engines.expressions import Expression, Term, col, possible_values
from sfumato.engines.sources import Source
from sfumato.tables.queries.count import Count
from tests.engines.asking import ask
from tests.engines.loading import on

ENGINES = ["DuckDB", "PostgreSQL", "Spark"]
Place = Callable[[pa.Table, str], Source]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Place:
    """Puts rows on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return lambda frame, name: on(engine, frame, name, url=url, session=session)


def count(where: Expression, source: Source) -> int:
    with source.opened() as table:
        return bounded_counts(table, where=where, keys=(), share=None)[0]


def frame(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"place": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, kind)})


def moves_and_costs(where: Expression, without: Source, within: Source) -> None:
    """One row moves the count by one, and one is what is charged for: nothing is free because an engine says so."""
    claimed = Count(dataset=Dataset(name="rows", edition="1"), where=where).sensitivity(
        record(relation="add/remove"), None
    )
    assert count(where, within) - count(where, without) == 1 == claimed.l1.value


def test_2938_a_cast_that_fails_is_missing_and_known_to_be(place: Place) -> None:
    """There a cast kept the promise "never null", so "how many are null" was taken for a constant: exact, at ε = 0."""
    good, bad = ["1", "22", "-3"], ["1", "22", "-3", "4x"]
    without, within = place(frame(good, pa.string()), "cast_0"), place(frame(bad, pa.string()), "cast_1")
    number = col("x").cast("whole")
    moves_and_costs(number.isnull(), without, within)
    assert ask([number, number + 1, number.fill(-1)], within) == [[1, 22, -3, None], [2, 23, -2, None], [1, 22, -3, -1]]
    assert ask([~(number > 0)], within) == [[False, False, True, True]]


def test_2939_a_cut_of_nan_is_missing_and_known_to_be(place: Place) -> None:
    """There a cut of a column without nulls was taken to have none, although it makes one of NaN."""
    plain, spoilt = [0.5, 1.5, -1.0], [0.5, 1.5, -1.0, math.nan]
    without, within = place(frame(plain, pa.float64()), "nan_0"), place(frame(spoilt, pa.float64()), "nan_1")
    bins = col("x").cut([0, 1], below=True, above=True)
    moves_and_costs(bins.isnull(), without, within)
    assert ask([bins], within) == [["[0, 1)", ">= 1", "< 0", None]]
    assert possible_values(bins) == ("< 0", "[0, 1)", ">= 1")


def test_2944_a_bin_is_told_by_its_own_row_alone(place: Place) -> None:
    """There the number of a bin depended on which bin came first: neighbours gave 0 and 100."""
    bins: list[Term] = [
        col("x").cut([0, 10, 20], above=True),
        col("x").cut([0, 10, 20], labels=["a", "b"], below=False),
    ]
    values: list[Any] = [25.0, 5.0, None, 15.0, math.inf, 5.0]
    together = ask(bins, place(frame(values, pa.float64()), "together"))
    turned = ask(bins, place(frame(values[::-1], pa.float64()), "turned"))
    assert together == [list(reversed(answers)) for answers in turned]
    for number, value in enumerate(values):
        alone = ask(bins, place(frame([value], pa.float64()), f"alone_{number}"))
        assert [answers[0] for answers in alone] == [answers[number] for answers in together]
    first = (
        place(frame([5.0] * 100, pa.float64()), "first_0"),
        place(frame([25.0, *[5.0] * 100], pa.float64()), "first_1"),
    )
    for label in ("[0, 10)", ">= 20"):
        assert abs(count(bins[0] == label, first[1]) - count(bins[0] == label, first[0])) <= 1
