"""Tables of DuckDB: the rows as they are, compared bytewise, in one state; nothing is left behind."""

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import duckdb
import ibis
import pytest

from sfumato.engines import sources
from sfumato.engines.counts import KeyColumn, bounded_counts
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.errors import EngineFailed, Refused
from tests.engines.reading import SENSITIVE, SHARE, persons, rows
from tests.engines.test_sources import all_words_of

IN_DUCKDB = """
CREATE SCHEMA clinic;
CREATE TABLE clinic.visits (
    id VARCHAR COLLATE NOCASE, zip VARCHAR, n UTINYINT, w FLOAT, b BOOLEAN, d DATE, moment TIMESTAMP, u UUID,
    cost DECIMAL(10, 2), big HUGEINT, words ENUM ('x', 'y'), parts INTEGER[]);
INSERT INTO clinic.visits VALUES
    ('p', 'a', 1, 0.5, true, '2026-01-31', '2026-01-31 23:59:59', '00010203-0405-0607-0809-0A0B0C0D0E0F',
     1.25, 1, 'x', [1]),
    ('P', NULL, 255, 'nan', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""
TYPES = {
    "id": Type.TEXT,
    "zip": Type.TEXT,
    "n": Type.WHOLE,
    "w": Type.NUMBER,
    "b": Type.TRUTH,
    "d": Type.DATE,
    "moment": Type.TIME,
    "u": Type.TEXT,
    "cost": Type.NUMBER,
    "big": Type.NUMBER,
    "words": Type.TEXT,
    "parts": Type.OTHER,
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(IN_DUCKDB)
    return path


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(IN_DUCKDB)
        yield connection


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["file", "url", "connection", "ibis"])
def test_a_table_of_duckdb(database: Path, connection: duckdb.DuckDBPyConnection, way: str) -> None:
    """The column of persons ignores capital letters in the database; here it must not."""
    given = {
        "file": sources.duckdb(database, table="clinic.visits"),
        "url": f"duckdb://{str(database).replace(chr(39), '%27')}?table=clinic.visits",
        "connection": sources.duckdb(connection, table=("clinic", "visits")),
        "ibis": ibis.duckdb.from_connection(connection).table("visits", database="clinic"),
    }
    source = Source(given[way])
    assert source.engine == "DuckDB"
    assert source.columns() == TYPES
    assert rows(source)[0] == {
        "id": "p",
        "zip": "a",
        "n": 1,
        "w": 0.5,
        "b": True,
        "d": date(2026, 1, 31),
        "moment": datetime(2026, 1, 31, 23, 59, 59),
        "u": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "cost": 1.25,
        "big": 1.0,
        "words": "x",
    }
    assert persons(source) == 2
    with Source(given[way], {"cost": Type.NUMBER, "id": Type.TEXT}).opened() as table:
        assert table.to_pyarrow().to_pylist()[0] == {"cost": 1.25, "id": "p"}


def test_a_duckdb_file_is_let_go_and_a_change_of_it_is_noticed(database: Path) -> None:
    source = Source(sources.duckdb(database, table="clinic.visits"))
    assert persons(source) == 2
    with duckdb.connect(database) as writer:
        writer.execute("INSERT INTO clinic.visits (id) VALUES ('q')")
    with pytest.raises(EngineFailed, match=r"it's\.duckdb.* has changed since it was first opened"):
        persons(source)


def test_a_duckdb_connection_is_read_in_one_state_and_left_as_it_was(connection: duckdb.DuckDBPyConnection) -> None:
    source = Source(sources.duckdb(connection, table="clinic.visits"))
    with source.opened() as table:
        before = bounded_counts(table, where=None, keys=(), share=None)
        connection.execute("INSERT INTO clinic.visits (id) VALUES ('q')")
        assert bounded_counts(table, where=None, keys=(), share=None) == before == [2]
        keys = (KeyColumn(column="zip", values=("a",)),)
        assert bounded_counts(table, where=None, keys=keys, share=SHARE) == [1]
        with pytest.raises(duckdb.Error):
            table.get_backend().con.execute("INSERT INTO clinic.visits (id) VALUES ('r')")
    assert persons(source) == 3
    assert connection.execute("SELECT current_setting('timezone')").fetchall() != [("",)]
    assert connection.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "setting", ["default_collation = 'nocase'", "integer_division = true", "ieee_floating_point_ops = false"]
)
@pytest.mark.parametrize("way", ["connection", "ibis"])
def test_a_duckdb_connection_whose_queries_mean_something_else_is_refused(
    connection: duckdb.DuckDBPyConnection, setting: str, way: str
) -> None:
    connection.execute(f"SET GLOBAL {setting}")
    table = ibis.duckdb.from_connection(connection).table("visits", database="clinic")
    source = Source(sources.duckdb(connection, table="clinic.visits") if way == "connection" else table)
    with pytest.raises(Refused, match=f"RESET {setting.partition(' ')[0]}"):
        source.columns()


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("absent.duckdb", None, r"no file 'absent\.duckdb'"),
        ("broken.duckdb", SENSITIVE.encode() * 1000, r"DuckDB could not open table 'visits' of 'broken\.duckdb'"),
        ("empty.duckdb", b"", r"DuckDB could not open table 'visits' of 'empty\.duckdb'"),
    ],
)
def test_a_duckdb_file_that_cannot_be_opened(tmp_path: Path, path: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / path).write_bytes(content)
    with pytest.raises(EngineFailed, match=words) as caught:
        Source(sources.duckdb(tmp_path / path, table="visits")).columns()
    assert caught.value.__context__ is None
    assert SENSITIVE not in all_words_of(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_a_duckdb_table_that_is_not_there(database: Path, connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TEMP TABLE passing AS SELECT 1 AS x")
    for table in (sources.duckdb(database, table="visits"), sources.duckdb(connection, table="passing")):
        with pytest.raises(EngineFailed, match="could not open table"):
            Source(table).columns()


def test_columns_that_change_between_two_releases_are_noticed(connection: duckdb.DuckDBPyConnection) -> None:
    source = Source(sources.duckdb(connection, table="clinic.visits"))
    source.columns()
    connection.execute("ALTER TABLE clinic.visits ALTER zip TYPE INTEGER USING NULL")
    with pytest.raises(EngineFailed, match=r"columns of table 'clinic\.visits' have changed"):
        rows(source)
