"""Several sources in one session of one engine, so that their tables can be joined."""

import gc
import threading
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engines import sources
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source, opened_together
from sfumato.engines.sources.embedded import connection
from sfumato.errors import EngineFailed, InvalidInput, Unsupported
from tests.engines.loading import in_postgres, in_spark

LEFT = pa.table({"id": ["p", "q", "r"], "x": [1, 2, 3]})
RIGHT = pa.table({"id": ["q", "p"], "y": [20, 10]})


def joined(one: Source, other: Source) -> list[dict[str, Any]]:
    with opened_together([one, other]) as (left, right):
        found = left.inner_join(right, "id").order_by("x").to_pyarrow()
    return found.select(["id", "x", "y"]).to_pylist()


BOTH = [{"id": "p", "x": 1, "y": 10}, {"id": "q", "x": 2, "y": 20}]


def test_files_and_frames_can_be_joined(tmp_path: Path) -> None:
    pq.write_table(RIGHT, tmp_path / "right.parquet")
    (tmp_path / "right.csv").write_text("id,y\nq,20\np,10\n")
    left = Source(LEFT)
    for right in (
        Source(RIGHT),
        Source(pl.from_arrow(RIGHT).lazy()),
        Source(tmp_path / "right.parquet"),
        Source(tmp_path / "right.csv", {"id": Type.TEXT, "y": Type.WHOLE}),
    ):
        assert joined(left, right) == BOTH


def test_tables_of_one_database_can_be_joined(tmp_path: Path, postgres_url: str) -> None:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(path) as writer:
        writer.execute("CREATE TABLE l AS SELECT * FROM (VALUES ('p', 1), ('q', 2), ('r', 3)) AS t (id, x)")
        writer.execute("CREATE TABLE r AS SELECT * FROM (VALUES ('q', 20), ('p', 10)) AS t (id, y)")
    assert joined(*(Source(sources.duckdb(path, table=name)) for name in "lr")) == BOTH
    with duckdb.connect(path) as open_one:
        assert joined(*(Source(sources.duckdb(open_one, table=name)) for name in "lr")) == BOTH
    assert joined(in_postgres(postgres_url, LEFT, "l"), in_postgres(postgres_url, RIGHT, "r")) == BOTH


@pytest.mark.long
def test_tables_of_one_spark_session_can_be_joined(spark: Any) -> None:
    assert joined(in_spark(spark, LEFT, "l"), in_spark(spark, RIGHT, "r")) == BOTH
    assert joined(Source(spark.table("l")), in_spark(spark, RIGHT, "r")) == BOTH


def test_tables_of_different_places_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with duckdb.connect(tmp_path / name) as writer:
            writer.execute("CREATE TABLE t AS SELECT 'p' AS id")
    one, two = (Source(sources.duckdb(tmp_path / name, table="t")) for name in ("one", "two"))
    for others in ([one, two], [one, Source(LEFT)], [Source(LEFT), one]):
        with pytest.raises(Unsupported, match="do not lie in one place"), opened_together(others):
            pass


def test_a_source_named_twice_is_opened_once() -> None:
    left = Source(LEFT)
    with opened_together([left, left]) as (one, other):
        assert one is other
        assert one.inner_join(other.view(), "id").count().to_pyarrow().as_py() == 3


def test_what_fails_in_one_is_told_of_that_one(tmp_path: Path) -> None:
    absent = Source(tmp_path / "absent.parquet")
    with pytest.raises(EngineFailed, match=r"no file 'absent\.parquet'"), opened_together([Source(LEFT), absent]):
        pass
    wrong = Source(RIGHT, {"z": Type.TEXT})
    with pytest.raises(InvalidInput, match="'z' is declared"), opened_together([Source(LEFT), wrong]):
        pass


def test_two_threads_that_open_the_same_sources_do_not_wait_for_each_other_forever() -> None:
    one, other = Source(LEFT), Source(RIGHT)
    done: list[int] = []

    def open_them(*order: Source) -> None:
        for _ in range(20):
            with opened_together(order):
                done.append(1)

    threads = [threading.Thread(target=open_them, args=order, daemon=True) for order in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 40


@pytest.mark.long
def test_a_frame_gives_its_memory_back_when_nobody_needs_it() -> None:
    def frames() -> int:
        [(number,)] = connection().execute("SELECT count(*) FROM duckdb_tables()").fetchall()
        return int(number)

    gc.collect()
    before = frames()
    source = Source(LEFT)
    assert frames() == before + 1
    with source.opened() as table:
        table.count().to_pyarrow()
    del source, table
    gc.collect()
    assert frames() == before


@pytest.mark.long
def test_tables_of_one_connection_are_read_one_after_the_other() -> None:
    """A connection has one transaction and one result that waits: two threads would take each other's."""
    import ibis

    held = duckdb.connect()
    engine = ibis.duckdb.from_connection(held)
    engine.create_table("l", LEFT)
    engine.create_table("r", RIGHT)
    first = Source(engine.table("l"))
    for other in (Source(engine.table("r")), Source(ibis.duckdb.from_connection(held).table("r"))):
        found: list[dict[str, Type]] = []
        thread = threading.Thread(target=lambda other=other, found=found: found.append(other.columns()))
        with first.opened() as table:
            thread.start()
            thread.join(0.3)
            assert thread.is_alive(), "it does not wait"
            assert table.count().to_pyarrow().as_py() == 3
        thread.join(30)
        assert found == [{"id": Type.TEXT, "y": Type.WHOLE}]
