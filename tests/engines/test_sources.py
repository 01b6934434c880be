"""Sources: every frame gives the same rows, types are public, and what fails says so without quoting the data."""

import math
import traceback
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.limits import Limit
from sfumato.engines.counts import KeyColumn, Share, bounded_counts
from sfumato.engines.expressions import Type, col
from sfumato.engines.sources import Source, columns
from sfumato.errors import EngineFailed, InvalidInput, NotDeclared, Refused, Unsupported

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
    "polars lazy": pl.DataFrame(PLAIN.to_pydict()).lazy().filter(pl.lit(value=True)),
}


def counts(source: Source) -> list[int]:
    share = Share(column="id", limit=Limit(groups=2, rows_per_group=1), secret="00")  # noqa: S106
    with source.opened() as table:
        keys = [KeyColumn(column="zip", values=("b", "a", "c"))]
        return bounded_counts(table, where=~(col("age") < 66), keys=keys, share=share)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_same_columns_and_counts(name: str) -> None:
    source = Source(FRAMES[name])
    found = source.columns()
    assert {it: found[it] for it in ("id", "zip", "age")} == {"id": Type.TEXT, "zip": Type.TEXT, "age": Type.WHOLE}
    assert counts(source) == [1, 2, 0]


@pytest.mark.few(2)
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
        (pa.decimal128(10, 2), Type.NUMBER),
        (pa.date32(), Type.DATE),
        (pa.timestamp("us"), Type.TIME),
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


def test_a_stream_of_batches_is_taken_over_once() -> None:
    """It may be a query that runs when it is read: it needs the steward's word."""
    stream = pa.RecordBatchReader.from_batches(PLAIN.schema, PLAIN.to_batches(max_chunksize=2))
    with pytest.raises(Refused, match="may be a query that is run when it is read, and cannot be shown"):
        Source(stream)
    source = Source(stream, derived=True)
    assert [counts(source), counts(source)] == [[1, 2, 0]] * 2


def test_a_lazy_frame_is_read_no_earlier_than_its_rows_are_asked_for_and_once(tmp_path: Path) -> None:
    path = tmp_path / "lazy.parquet"
    pq.write_table(PLAIN, path)
    source = Source(pl.scan_parquet(path))
    damage(path)
    assert source.columns() == {"id": Type.TEXT, "zip": Type.TEXT, "age": Type.WHOLE}
    pq.write_table(PLAIN, path)
    assert counts(source) == [1, 2, 0]
    path.unlink()
    assert counts(source) == [1, 2, 0]


def test_a_frame_is_held_as_it_was_when_it_was_declared() -> None:
    frame = pd.DataFrame({"x": np.arange(4)})
    source = Source(frame)
    frame.loc[:, "x"] = 7
    with source.opened() as table:
        assert bounded_counts(table, where=col("x") == 7, keys=(), share=None) == [0]


def test_a_time_without_a_zone_stays_one_unless_it_is_declared_a_day() -> None:
    times = pa.table({"at": pa.array([datetime(2026, 1, 31, 23, 59), None], pa.timestamp("us"))})
    for declared, day in (({"at": Type.DATE}, date(2026, 1, 31)), (None, datetime(2026, 1, 31, 23, 59))):
        with Source(times, declared).opened() as table:
            assert table.to_pyarrow().to_pylist() == [{"at": day}, {"at": None}]


def test_a_time_with_a_zone_is_read_by_the_declared_clock() -> None:
    """Summer time begins at one o'clock in UTC: the clock jumps from two to three."""
    utc = [datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC), None]
    held = pa.table({"at": pa.array([*utc, datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
    assert Source(held).columns() == {"at": Type.OTHER}
    berlin = [datetime(2026, 3, 29, 1, 59, 59), datetime(2026, 3, 29, 3), None, datetime(1, 1, 1, 1)]
    summer = [datetime(2026, 3, 28, 20, 59, 59), datetime(2026, 3, 28, 21), None, None]  # before the year 1
    for zone, clock in (("Europe/Berlin", berlin), ("America/New_York", summer)):
        source = Source(held, zones={"at": zone})
        assert source.columns() == {"at": Type.TIME}
        with source.opened() as table:
            assert [row["at"] for row in table.to_pyarrow().to_pylist()] == clock
    with pytest.raises(InvalidInput, match="the zone of 'at' is not known"):
        Source(held, zones={"at": "Europe/Atlantis"})
    with pytest.raises(InvalidInput, match="must be times with a zone"):
        Source(pa.table({"at": [1]}), zones={"at": "UTC"}).columns()


# -------------------------------------------------------------------------------------------------- declared columns


DECLARABLE = pa.table(
    {
        "id": ["p", "q"],
        "n": pa.array([1, 2], pa.int16()),
        "cost": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
        "left": ["x", "y"],
    }
)


def test_a_table_has_the_declared_columns_and_no_others() -> None:
    declared = {"cost": Type.NUMBER, "id": Type.TEXT, "n": Type.NUMBER}
    source = Source(DECLARABLE, declared)
    assert source.columns() == declared
    with source.opened() as table:
        assert list(table.columns) == ["cost", "id", "n"]
        assert table.to_pyarrow().to_pylist()[0] == {"cost": 1.25, "id": "p", "n": 1.0}


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"ward": Type.TEXT}, "'ward' is declared, and the data frame does not have it.*columns are cost, id, left, n"),
        ({"id": Type.NUMBER}, "'id' is declared to hold numbers, and in the data frame it holds texts"),
        ({"id": Type.WHOLE}, "declared to hold whole numbers"),
        ({"n": Type.TEXT}, "holds whole numbers"),
        ({"cost": Type.WHOLE}, "it holds numbers"),
    ],
)
def test_columns_that_the_data_does_not_have_so_are_named(declared: dict[str, Type], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Source(DECLARABLE, declared).columns()


# ------------------------------------------------------------------------------------------------- several files


def several(tmp_path: Path) -> Path:
    """A folder as Spark and others write it."""
    folder = tmp_path / "visits"
    for name, rows in {"id=zz/part-0.parquet": PLAIN.slice(0, 2), "id=p1/part-1.pq": PLAIN.slice(2)}.items():
        (folder / name).parent.mkdir(parents=True)
        pq.write_table(rows, folder / name)
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").write_text("not read")
    (folder / "_temporary").mkdir()
    pq.write_table(PLAIN, folder / "_temporary" / "part-2.parquet")
    pq.write_table(PLAIN, folder / ".part-3.parquet")
    return folder


@pytest.mark.long
def test_a_folder_or_a_list_of_files_is_one_table_and_folders_name_no_columns(tmp_path: Path) -> None:
    folder = several(tmp_path)
    listed = [folder / "id=zz" / "part-0.parquet", str(folder / "id=p1" / "part-1.pq")]
    for data in (folder, str(folder), listed, tuple(listed)):
        assert counts(Source(data)) == [1, 2, 0]


def test_a_file_that_joins_the_folder_is_noticed(tmp_path: Path) -> None:
    folder = several(tmp_path)
    source = Source(folder)
    assert counts(source) == [1, 2, 0]
    pq.write_table(PLAIN, folder / "late.parquet")
    with pytest.raises(EngineFailed, match="'visits' has changed since it was first opened"):
        counts(source)


def test_files_of_different_columns_are_refused(tmp_path: Path) -> None:
    folder = several(tmp_path)
    pq.write_table(PLAIN.rename_columns(["id", "zip", "years"]), folder / "other.parquet")
    with pytest.raises(InvalidInput, match="'visits' do not all have the same columns"):
        Source(folder).columns()
    pq.write_table(PLAIN.set_column(2, "age", pa.array([SENSITIVE] * 6)), folder / "other.parquet")
    with pytest.raises(InvalidInput, match="same columns") as caught:
        Source(folder).columns()
    assert SENSITIVE not in all_words_of(caught.value)


def test_an_empty_folder_and_lists_that_make_no_sense(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EngineFailed, match="no Parquet file at 'empty'"):
        Source(tmp_path / "empty").columns()
    with pytest.raises(EngineFailed, match=r"no file 'b\.parquet'"):
        Source([tmp_path / "b.parquet"]).columns()
    with pytest.raises(NotDeclared, match=r"'a\.csv' is a CSV file"):
        Source([tmp_path / "a.csv"])
    with pytest.raises(InvalidInput, match="twice"):
        Source([tmp_path / "a.parquet", tmp_path / "a.parquet"])
    with pytest.raises(Unsupported, match="a list is not a source"):
        Source([])


# ------------------------------------------------------------------------------------------------------------- CSV

CSV_TYPES = {"id": Type.TEXT, "age": Type.WHOLE, "sbp": Type.NUMBER, "urgent": Type.TRUTH, "day": Type.DATE}
CSV_ROWS = """id,note,age,sbp,urgent,day
a,"x, y",+5,1.5,TRUE,2026-01-31
"",,,"",,
é区,z,-9223372036854775808,1e-3,0,0001-01-01
,z,9223372036854775807,-inf,false,9999-12-31
"""


def csv_file(tmp_path: Path, text: str, name: str = "it's.csv", encoding: str = "utf-8") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_a_csv_file_is_read_with_declared_types(tmp_path: Path, sign: str, encoding: str, line: str) -> None:
    path = csv_file(tmp_path, CSV_ROWS.replace(",", sign).replace("\n", line), encoding=encoding)
    source = Source(path, CSV_TYPES)
    assert source.columns() == CSV_TYPES
    with source.opened() as table:
        found = table.to_pyarrow().to_pylist()
    assert found == [
        {"id": "a", "age": 5, "sbp": 1.5, "urgent": True, "day": date(2026, 1, 31)},
        {"id": "", "age": None, "sbp": None, "urgent": None, "day": None},
        {"id": "é区", "age": -(2**63), "sbp": 0.001, "urgent": False, "day": date(1, 1, 1)},
        {"id": None, "age": 2**63 - 1, "sbp": -math.inf, "urgent": False, "day": date(9999, 12, 31)},
    ]


def test_a_csv_file_without_declared_types_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotDeclared, match=r"it's\.csv.*schema draft"):
        Source(csv_file(tmp_path, CSV_ROWS))


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *(("age", cell) for cell in ("1.5", "1e3", "0x10", "1_000", " 5", "5 ", "9223372036854775808", SENSITIVE)),
        *(("sbp", cell) for cell in ("1,5", "1_0", "0x1", " 1", "infinity!", "--1", SENSITIVE)),
        *(("urgent", cell) for cell in ("yes", "t", "2", SENSITIVE)),
        *(("day", cell) for cell in ("2026-02-30", "31.01.2026", "2026-1-1", "2026-01-31 10:00", SENSITIVE)),
    ],
)
def test_a_cell_of_another_type_is_missing(tmp_path: Path, column: str, cell: str) -> None:
    """If it stopped the engine, whether there is an answer would reveal something about one row, at any ε."""
    path = csv_file(tmp_path, f'{column}\n"{cell}"\n')
    with Source(path, {column: CSV_TYPES[column]}).opened() as table:
        assert table.to_pyarrow().to_pylist() == [{column: None}]


@pytest.mark.parametrize("rows", ["1\n", "1,2,3\n", '"1,2\n3,4\n', "\udcff,1\n"], ids=ascii)
def test_a_malformed_row_stops_the_engine(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"a,b\n1,2\n" + rows.encode("utf-8", "surrogateescape"))
    with pytest.raises(Exception, match=r"."), Source(path, {"a": Type.TEXT}).opened() as table:
        table.to_pyarrow()


@pytest.mark.parametrize("text", [SENSITIVE + ",1\n", "", "id,id\n1,2\n", '"id\n', "ID\n1\n"])
def test_a_header_that_lacks_a_column_is_not_quoted(tmp_path: Path, text: str) -> None:
    """Without a header the first line is data."""
    with pytest.raises(
        InvalidInput, match=r"first line of .*it's\.csv.* does not name .* each once: not id;"
    ) as caught:
        Source(csv_file(tmp_path, text), {"id": Type.TEXT}).columns()
    assert SENSITIVE not in all_words_of(caught.value)


def test_a_csv_file_that_is_missing_or_changes(tmp_path: Path) -> None:
    source = Source(tmp_path / "late.csv", {"id": Type.TEXT})
    with pytest.raises(EngineFailed, match=r"no file 'late\.csv'"):
        source.columns()
    path = csv_file(tmp_path, "id\na\n", "late.csv")
    with source.opened() as table:
        assert bounded_counts(table, where=None, keys=(), share=None) == [1]
    path.write_text("id\na\nb\n")
    with pytest.raises(EngineFailed, match="has changed"), source.opened():
        pass


def test_nothing_is_opened_before_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "later.parquet"
    source = Source(path)
    pq.write_table(PLAIN, path)
    assert counts(source) == [1, 2, 0]


# -------------------------------------------------------------------------------------------------- what fails


@pytest.mark.parametrize("data", [None, 3, [1, 2], {"a": [1]}, np.zeros(3), b"x"])
def test_what_is_no_source_of_rows_is_refused(data: object) -> None:
    with pytest.raises(Unsupported, match=f"a {type(data).__name__} is not a source of rows"):
        Source(data)


@pytest.mark.parametrize("name", ["visits", "visits.parquet.gz", "visits.csv.zst", "visits.json", "s3.parquet.txt"])
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


def damage(path: Path) -> None:
    """Destroy all rows of a Parquet file and leave its footer, which holds the columns."""
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + b"\xff" * (footer - 4) + content[footer:])


def test_a_file_that_is_replaced_while_its_columns_are_looked_at_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(PLAIN, path)
    looked = columns.settled

    def settled(*given: Any) -> dict[str, Type]:
        pq.write_table(PLAIN.slice(1), path)
        return looked(*given)

    monkeypatch.setattr("sfumato.engines.sources.source.settled", settled)
    with pytest.raises(EngineFailed, match="has changed"):
        Source(path).columns()


def test_columns_are_known_without_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(PLAIN, path)
    damage(path)
    source = Source(path)
    assert source.columns() == {"id": Type.TEXT, "zip": Type.TEXT, "age": Type.WHOLE}
    with pytest.raises(Exception, match=r"."):
        counts(source)


@pytest.mark.parametrize("name", ["truncated", "empty", "text", "torn footer", "folder", "missing"])
def test_a_file_that_cannot_be_opened_is_named_and_never_quoted(tmp_path: Path, name: str) -> None:
    path = broken(tmp_path)[name]
    with pytest.raises(EngineFailed, match=rf"'{name}\.parquet'.*nothing was read and nothing was spent") as caught:
        Source(path).columns()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    words = all_words_of(caught.value)
    assert SENSITIVE not in words
    assert "_duckdb" not in words
    assert "IOException" not in words
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
