"""Public tables: read as they are, looked up by a key that they have once, and public in every value."""

from datetime import date
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.engines.expressions import Date, Type
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.tables.public import MOST_KEYS, MOST_ROWS, PublicTable

PLACES = Dataset(name="places", edition="1")
FRAME = pa.table({"code": ["a", "b", None], "beds": [3, None, 1], "open": [True, False, True]})


def public(**columns: Any) -> PublicTable:
    return PublicTable.of(pa.table(columns), PLACES)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "parquet", "csv", "mapping"])
def test_whatever_holds_the_rows_the_table_is_the_same(kind: str, tmp_path: Path) -> None:
    given: Any = {
        "arrow": FRAME,
        "pandas": pd.DataFrame(FRAME.to_pydict()).astype({"beds": "Int64"}),
        "polars": pl.DataFrame(FRAME.to_pydict()),
        "parquet": tmp_path / "places.parquet",
        "csv": str(tmp_path / "places.csv"),
        "mapping": FRAME.to_pydict(),
    }[kind]
    pq.write_table(FRAME, tmp_path / "places.parquet")
    pa.csv.write_csv(FRAME.slice(0, 2), tmp_path / "places.csv")
    found = PublicTable.of(given, PLACES)
    assert found.types == {"code": Type.TEXT, "beds": Type.WHOLE, "open": Type.TRUTH}
    rows = 2 if kind == "csv" else 3  # a missing text cannot be told from an empty one there
    assert found.columns["beds"][1] == (3, None, 1)[:rows]
    assert found.columns["code"][1] == ("a", "b", None)[:rows]


def test_values_are_keys_of_the_columns_that_are_told_apart_exactly() -> None:
    found = public(
        text=["b", "a", None],
        whole=[2, -1, 2],
        truth=[True, None, False],
        day=[date(2026, 1, 31), None, date(2025, 1, 1)],
        number=[0.5, 1.5, None],
        empty=pa.array([None, None, None], pa.string()),
    )
    assert found.keys("text", "p.text").values == ("a", "b")  # type: ignore[union-attr]
    assert found.keys("whole", "p.whole").values == (-1, 2)  # type: ignore[union-attr]
    assert found.keys("truth", "p.truth").values == (False, True)  # type: ignore[union-attr]
    assert found.keys("day", "p.day").values == (Date("2025-01-01"), Date("2026-01-31"))  # type: ignore[union-attr]
    assert found.keys("text", "p.text").column == "p.text"  # type: ignore[union-attr]
    assert found.keys("number", "p.number") is None
    assert found.keys("empty", "p.empty") is None


def test_too_many_values_to_group_by_are_not_offered() -> None:
    assert public(x=range(MOST_KEYS)).keys("x", "p.x") is not None
    assert public(x=range(MOST_KEYS + 1)).keys("x", "p.x") is None


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([3, -1, None], (Fraction(-1), Fraction(3))),
        ([0.25, 2.0], (Fraction(1, 4), Fraction(2))),
        ([7], (Fraction(7), Fraction(7))),
        ([0.0, nan], None),
        ([0.0, inf], None),
        ([0.0, 1e300], None),
        (["a"], None),
        ([True], None),
        (pa.array([None], pa.int64()), None),
    ],
    ids=str,
)
def test_bounds_are_the_least_and_the_greatest_of_finite_numbers(values: Any, bounds: Any) -> None:
    assert public(x=values).bounds("x") == bounds


def test_a_key_that_stands_twice_is_refused_and_a_missing_one_meets_nobody() -> None:
    table = public(a=["x", "x", None, "é", "e\u0301"], b=[1, 2, 1, 1, 1])
    table.check_unique(["a", "b"])
    for columns in (["a"], ["b"]):
        with pytest.raises(InvalidInput, match=f"the same {columns[0]} more than once.*Keep one row for each"):
            table.check_unique(columns)
    with pytest.raises(InvalidInput, match=r"has no column 'c'; nothing was done\. It has a, b"):
        table.check_unique(["a", "c"])


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (pa.array([1], pa.uint64()), Unsupported),
        (pa.array([1], pa.timestamp("us")), Unsupported),
        (pa.array([b"a"]), Unsupported),
        (pa.array([[1]]), Unsupported),
        (pa.array(["a"]).dictionary_encode(), Unsupported),
    ],
    ids=lambda it: str(getattr(it, "type", "")),
)
def test_a_column_that_cannot_be_looked_up_is_named(column: pa.Array, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"column 'x' of a public table holds .*nothing was done"):
        public(x=column)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"]])
def test_two_columns_have_two_names(names: list[str]) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=names)
    with pytest.raises(InvalidInput, match="one name, capital letters aside"):
        PublicTable.of(table, PLACES)


@pytest.mark.parametrize(
    "data", [7, None, object(), [1, 2], pl.LazyFrame({"a": [1]})], ids=lambda it: type(it).__name__
)
def test_what_is_no_table_is_refused(data: object) -> None:
    with pytest.raises(InvalidInput, match=f"not {type(data).__name__}; nothing was done"):
        PublicTable.of(data, PLACES)


def test_what_was_declared_cannot_be_changed() -> None:
    """Stored answers speak of the rows that a version had."""
    table = public(x=[1])
    with pytest.raises(TypeError):
        table.columns["x"] = (Type.WHOLE, (2,))  # type: ignore[index]
    with pytest.raises(AttributeError):
        table.columns = {}  # type: ignore[misc]


def test_a_million_rows_are_the_most() -> None:
    with pytest.raises(InvalidInput, match="1,000,000 rows, and this one has more"):
        public(x=pa.nulls(MOST_ROWS + 1, pa.int64()))


def test_names_of_tables_are_told_apart() -> None:
    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="trial")
    vault.public(FRAME, name="places")
    vault.table(FRAME, name="visits", version="1")
    vault.public(FRAME, name="places", version="2")
    with pytest.raises(Refused, match="a table 'places' is declared already"):
        vault.public(FRAME, name="places")
    with pytest.raises(Refused, match="a table 'visits' is declared already"):
        vault.public(FRAME, name="visits")
    with pytest.raises(Refused, match="a public table is called 'places' already"):
        vault.table(FRAME, name="places", version="3")
    with pytest.raises(NotDeclared, match="a public table needs a name"):
        vault.public(FRAME)
    assert vault.spent == sf.Budget(epsilon=0)
