"""Sources: every frame gives the same rows, types are public, and what fails says so without quoting the data."""

import math
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.limits import Limit
from sfumato.engines.counts import KeyColumn, Share, bounded_counts
from sfumato.engines.expressions import Type, col
from sfumato.engines.sources import Source
from sfumato.errors import EngineFailed, InvalidInput, Unsupported

IDS = ["p1", "p1", "p2", "区", None, "p1"]
ZIPS = ["a", "b", "a", "a", "a", None]
AGES = [70, 66, None, 65, 80, 90]
PLAIN = pa.table({"id": IDS, "zip": ZIPS, "age": pa.array(AGES, pa.int64())})
SENSITIVE = "Zaphod-4711"


def arrow(text: pa.DataType) -> pa.Table:
    return pa.table({"id": pa.array(IDS, text), "zip": pa.array(ZIPS, text), "age": pa.array(AGES, pa.int64())})


def dictionary(values: pa.DataType) -> pa.Table:
    encoded = [
        pa.DictionaryArray.from_arrays(
            pa.array([None if it is None else sorted(set(filter(None, column))).index(it) for it in column], pa.int8()),
            pa.array(sorted(set(filter(None, column))), values),
        )
        for column in (IDS, ZIPS)
    ]
    return pa.table({"id": encoded[0], "zip": encoded[1], "age": pa.array(AGES, pa.int64())})


def pandas_frame(**kinds: str) -> pd.DataFrame:
    frame = pd.DataFrame({"id": IDS, "zip": ZIPS, "age": pd.array(AGES, dtype="Int64")})
    return frame.astype(kinds)


FRAMES = {
    "arrow": PLAIN,
    "arrow large text": arrow(pa.large_string()),
    "arrow text view": arrow(pa.string_view()),
    "arrow dictionary": dictionary(pa.string()),
    "arrow dictionary of large text": dictionary(pa.large_string()),
    "arrow dictionary of text view": dictionary(pa.string_view()),
    "arrow in two chunks": pa.concat_tables([PLAIN.slice(0, 2), PLAIN.slice(2)]),
    "arrow batch": PLAIN.to_batches()[0],
    "arrow with metadata": PLAIN.replace_schema_metadata({"pandas": "not json"}),
    "pandas objects": pandas_frame(id="object", zip="object"),
    "pandas categories": pandas_frame(id="category", zip="category"),
    "pandas text": pandas_frame(id="string", zip="string"),
    "pandas with an index": pandas_frame().set_index(pd.Index([5, 3, 3, 1, 9, 0], name="row")),
    "polars": pl.DataFrame(PLAIN.to_pydict()),
    "polars categories": pl.DataFrame(
        PLAIN.to_pydict(), schema_overrides={"id": pl.Categorical, "zip": pl.Categorical}
    ),
    "polars enums": pl.DataFrame(PLAIN.to_pydict(), schema_overrides={"zip": pl.Enum(["a", "b"])}),
}


def counts(source: Source) -> list[int]:
    share = Share(column="id", limit=Limit(groups=2, rows_per_group=1), secret="00")  # noqa: S106
    with source.opened() as table:
        keys = [KeyColumn(column="zip", values=("b", "a", "c"))]
        return bounded_counts(table, where=~(col("age") < 66), keys=keys, share=share)


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_same_columns_and_counts(name: str) -> None:
    source = Source(FRAMES[name])
    columns = source.columns()
    assert {it: columns[it] for it in ("id", "zip", "age")} == {"id": Type.TEXT, "zip": Type.TEXT, "age": Type.WHOLE}
    assert counts(source) == [1, 2, 0]


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".PARQUET"])
@pytest.mark.parametrize("name", ["arrow", "arrow large text", "arrow dictionary"])
def test_a_parquet_file_gives_the_same_counts(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"it's a file{suffix}"
    pq.write_table(FRAMES[name], path)
    assert counts(Source(path)) == counts(Source(str(path))) == [1, 2, 0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.string(), Type.TEXT),
        (pa.large_string(), Type.TEXT),
        (pa.string_view(), Type.TEXT),
        (pa.dictionary(pa.int32(), pa.string()), Type.TEXT),
        (pa.bool_(), Type.TRUTH),
        *((kind, Type.WHOLE) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *((kind, Type.WHOLE) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
        (pa.dictionary(pa.int32(), pa.int64()), Type.WHOLE),
        (pa.uint64(), Type.OTHER),
        (pa.float32(), Type.NUMBER),
        (pa.float64(), Type.NUMBER),
        (pa.decimal128(10, 2), Type.OTHER),
        (pa.date32(), Type.OTHER),
        (pa.timestamp("us"), Type.OTHER),
        (pa.timestamp("us", tz="UTC"), Type.OTHER),
        (pa.time64("us"), Type.OTHER),
        (pa.duration("us"), Type.OTHER),
        (pa.binary(), Type.OTHER),
        (pa.list_(pa.int64()), Type.OTHER),
        (pa.struct([("a", pa.int64())]), Type.OTHER),
    ],
    ids=str,
)
def test_types_of_columns(kind: pa.DataType, expected: Type) -> None:
    assert Source(pa.table({"x": pa.array([None], kind)})).columns() == {"x": expected}


def test_nan_of_pandas_is_missing_like_null() -> None:
    for frame in (
        pd.DataFrame({"x": [1.0, math.nan]}),
        pl.DataFrame({"x": [1.0, math.nan]}),
        pa.table({"x": [1.0, None]}),
    ):
        with Source(frame).opened() as table:
            assert bounded_counts(table, where=col("x").isnull(), keys=(), share=None) == [1]


def test_nothing_is_opened_before_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "later.parquet"
    source = Source(path)
    pq.write_table(PLAIN, path)
    assert counts(source) == [1, 2, 0]


# -------------------------------------------------------------------------------------------------- what fails


@pytest.mark.parametrize("data", [None, 3, [1, 2], {"a": [1]}, np.zeros(3), pl.LazyFrame({"a": [1]}), b"x"])
def test_what_is_no_source_of_rows_is_refused(data: object) -> None:
    with pytest.raises(Unsupported, match=f"a {type(data).__name__} is not a source of rows"):
        Source(data)


@pytest.mark.parametrize("name", ["*.parquet", "a?.parquet", "[ab].parquet", "../*/x.parquet"])
def test_patterns_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="names one file; patterns"):
        Source(name)


@pytest.mark.parametrize("name", ["visits.csv", "visits", "visits.parquet.gz", "visits.json", "s3.parquet.txt", ""])
def test_other_files_are_refused(name: str) -> None:
    with pytest.raises(Unsupported, match="not a Parquet file"):
        Source(name)


def broken(tmp_path: Path) -> dict[str, Path]:
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"id": [SENSITIVE] * 500, "n": list(range(500))}), whole)
    content = whole.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    pieces = {
        "truncated": content[: len(content) // 2],
        "no head": content[len(content) // 2 :],
        "empty": b"",
        "text": f"id,n\n{SENSITIVE},1\n".encode(),
        "torn footer": content[:footer] + bytes(60) + content[footer + 60 :],
    }
    paths = {}
    for name, piece in pieces.items():
        paths[name] = tmp_path / f"{name}.parquet"
        paths[name].write_bytes(piece)
    paths["folder"] = tmp_path / "folder.parquet"
    paths["folder"].mkdir()
    paths["missing"] = tmp_path / "missing.parquet"
    return paths


def all_words_of(error: BaseException) -> str:
    """Everything that a traceback or a tool that follows its chain could print of an error."""
    words = "".join(traceback.format_exception(error))
    chain = [error]
    while chain:
        one = chain.pop()
        words += repr(one) + str(getattr(one, "__notes__", ""))
        chain += [it for it in (one.__cause__, one.__context__) if it is not None]
    return words


@pytest.mark.parametrize("name", ["truncated", "empty", "text", "torn footer", "folder", "missing"])
def test_a_file_that_cannot_be_opened_is_named_and_never_quoted(tmp_path: Path, name: str) -> None:
    path = broken(tmp_path)[name]
    with pytest.raises(EngineFailed, match=rf"'{name}\.parquet'.*nothing was read and nothing was spent") as caught:
        Source(path).columns()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    words = all_words_of(caught.value)
    assert SENSITIVE not in words
    assert "duckdb" not in words.lower()
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    "frame",
    [pa.table({}), pa.table([[1], [2]], names=["a", "a"]), pa.table({"Case": [1], "case": [2]})],
    ids=["no columns", "twice", "twice but for case"],
)
def test_a_frame_that_the_engine_refuses_fails_before_the_charge(frame: pa.Table) -> None:
    with pytest.raises(EngineFailed, match="could not open the data frame; nothing was read") as caught:
        Source(frame).columns()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": [1, SENSITIVE]}),
        pd.DataFrame({"x": [SENSITIVE, 1.5]}),
        pd.DataFrame({"x": [SENSITIVE, {"a": 1}]}),
        pd.DataFrame({"x": [SENSITIVE + "\ud800"]}),
        pd.DataFrame({"x": [4711 * 10**30]}),
    ],
    ids=["number and text", "text and number", "text and map", "half a surrogate", "beyond 64 bits"],
)
def test_a_column_of_mixed_types_is_refused_without_quoting_it(frame: pd.DataFrame) -> None:
    with pytest.raises(InvalidInput, match="Give each column one type") as caught:
        Source(frame)
    words = all_words_of(caught.value)
    assert SENSITIVE not in words
    assert "4711" not in words
