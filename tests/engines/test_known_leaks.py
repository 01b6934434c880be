"""Leaks that were found in other libraries, as tests of ours, on every engine.

Each of them came from trusting what a query engine does to a value that cannot be cast, to NaN, or to one row because
of the others. Numbers are those of OpenDP's tracker.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.query import Dataset
from sfumato.core.units import record
from sfumato.engines.compile import _Compiler as compiler
from sfumato.engines.counts import bounded_counts
from sfumato.engines.expressions import Expression, Type, col, possible_values
from sfumato.engines.operands import Operand
from sfumato.engines.sources import Source
from sfumato.tables.queries.count import Count
from tests.engines.asking import ask
from tests.engines.loading import on

ENGINES = ["DuckDB", "PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)]
Place = Callable[[pa.Table, str], Source]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Place:
    """Puts rows on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return lambda frame, name: on(engine, frame, name, url=url, session=session)


def embedded(rows: pa.Table, _name: str) -> Source:
    """Puts rows on DuckDB."""
    return Source(rows)


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


# ---------------------------------------------------------------------------------------------- 2938: a cast that fails

NUMBER = col("x").cast("whole")


def digits(place: Place) -> tuple[Source, Source]:
    """Neighbours: the second has one more row, and it cannot be read as a whole number."""
    good, bad = ["1", "22", "-3"], ["1", "22", "-3", "4x"]
    return place(frame(good, pa.string()), "cast_0"), place(frame(bad, pa.string()), "cast_1")


def test_2938_a_cast_that_fails_is_missing_and_known_to_be(place: Place) -> None:
    """There a cast kept the promise "never null", so "how many are null" was taken for a constant: exact, at ε = 0."""
    without, within = digits(place)
    moves_and_costs(NUMBER.isnull(), without, within)
    assert ask([NUMBER, NUMBER + 1, NUMBER.fill(-1)], within) == [
        [1, 22, -3, None],
        [2, 23, -2, None],
        [1, 22, -3, -1],
    ]
    assert ask([~(NUMBER > 0)], within) == [[False, False, True, True]]


def test_twin_a_cast_that_keeps_the_promise_of_its_column_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leak itself: what the cast made missing is not known to be, and is a number that nobody gave."""
    right = compiler._cast

    def promising(self: Any, part: Operand, to: Type) -> Operand:
        return replace(right(self, part, to), missing=part.missing)

    monkeypatch.setattr(compiler, "_cast", promising)
    without, within = digits(embedded)
    with pytest.raises(AssertionError):
        moves_and_costs(NUMBER.isnull(), without, within)
    assert ask([NUMBER], within) == [[1, 22, -3, 0]]


# ------------------------------------------------------------------------------------------------- 2939: a cut of NaN

BINS = col("x").cut([0, 1], below=True, above=True)


def measurements(place: Place) -> tuple[Source, Source]:
    """Neighbours: the second has one more row, and it holds NaN; neither holds null."""
    plain, spoilt = [0.5, 1.5, -1.0], [0.5, 1.5, -1.0, math.nan]
    return place(frame(plain, pa.float64()), "nan_0"), place(frame(spoilt, pa.float64()), "nan_1")


def test_2939_a_cut_of_nan_is_missing_and_known_to_be(place: Place) -> None:
    """There a cut of a column without nulls was taken to have none, although it makes one of NaN."""
    without, within = measurements(place)
    moves_and_costs(BINS.isnull(), without, within)
    assert ask([BINS], within) == [["[0, 1)", ">= 1", "< 0", None]]
    assert possible_values(BINS) == ("< 0", "[0, 1)", ">= 1")


def test_twin_a_cut_that_trusts_the_nulls_of_its_column_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leak itself: only null is missing, and NaN is whatever an engine takes it for."""

    def trusting(table: Any, name: str, dialect: object) -> Operand:
        return Operand(type=Type.NUMBER, value=table[name], missing=table[name].isnull())

    monkeypatch.setattr("sfumato.engines.compile.column", trusting)
    without, within = measurements(embedded)
    with pytest.raises(AssertionError):
        moves_and_costs(BINS.isnull(), without, within)


# ------------------------------------------------------------------------------------- 2944: the number of a bin

THIRDS = col("x").cut([0, 10, 20], above=True)
VALUES: list[Any] = [25.0, 5.0, None, 15.0, math.inf, 5.0, math.nan]


def told_by_its_own_row(bins_of: Callable[[list[Any]], list[Any]]) -> None:
    """Order, company and neighbours change nothing about the bin of a row."""
    together = bins_of(VALUES)
    assert together == bins_of(VALUES[::-1])[::-1]
    assert together == [bins_of([value])[0] for value in VALUES]
    without, within = bins_of([5.0] * 100), bins_of([25.0, *[5.0] * 100])
    for label in {*without, *within}:
        assert abs(within.count(label) - without.count(label)) <= 1


def test_2944_a_bin_is_told_by_its_own_row_alone(place: Place) -> None:
    """There the number of a bin depended on which bin came first: neighbours gave 0 and 100."""

    def ours(values: list[Any]) -> list[Any]:
        return ask([THIRDS], place(frame(values, pa.float64()), "bins"))[0]

    told_by_its_own_row(ours)
    assert ours(VALUES) == [">= 20", "[0, 10)", None, "[10, 20)", ">= 20", "[0, 10)", None]


def test_twin_bins_numbered_as_they_come_are_caught() -> None:
    """The leak itself: a bin is the place at which its label was first seen."""

    def numbered(values: list[Any]) -> list[Any]:
        labels = ask([THIRDS], embedded(frame(values, pa.float64()), "bins"))[0]
        first = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        return [first[label] for label in labels]

    few, many = numbered([5.0] * 100), numbered([25.0, *[5.0] * 100])
    assert (few.count(1), many.count(1)) == (0, 100)
    with pytest.raises(AssertionError):
        told_by_its_own_row(numbered)


def test_a_bin_has_a_label_and_no_number() -> None:
    """Nothing in the grammar gives the number of a bin, and the labels follow from the question alone."""
    assert not {"to_physical", "codes", "rank"} & set(dir(THIRDS))
    assert all(
        not label.replace(".", "").isdecimal() for label in possible_values(THIRDS)
    )  # a cast makes nothing of it
    assert possible_values(THIRDS) == ("[0, 10)", "[10, 20)", ">= 20")
