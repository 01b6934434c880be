"""A polled PostgreSQL and Spark Structured Streaming: each row counts once, and what Spark repeats does not count."""

import contextlib
import io
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.engines import incremental_read
from sfumato.engines.sources import postgres
from sfumato.errors import EngineFailed, InvalidInput, Refused
from sfumato.streams.sources import Clock, Columns, Inbox, PolledTable, each_batch, watch
from tests.parts import ROOT
from tests.servers import PASSWORD
from tests.streams.test_sources import CLEAR, CLOCK, EVENT, USER, alarms, at, near, totals, vault

TABLE = """
DROP TABLE IF EXISTS "It's visits";
CREATE TABLE "It's visits" (
    id bigint PRIMARY KEY, at timestamptz, who text, n integer, cost numeric, twice bigint, day date, "100%s" text);
"""
COLUMNS = Columns(time="at", person="who")


class Server:
    """A table that rows are written to by other hands."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(TABLE)

    def add(self, *rows: tuple[int, str | None, str | None, int | None]) -> None:
        for row in rows:
            self.connection.execute("""INSERT INTO "It's visits" VALUES (%s, %s, %s, %s, 1)""", row)

    def table(self, columns: Columns = COLUMNS, **said: Any) -> PolledTable:
        told = {"key": "id", "now": lambda: at(1), **said}
        return PolledTable(postgres(self.url, table=("It's visits",)), columns, CLOCK, **told)


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    found = Server(postgres_url)
    yield found
    found.connection.close()


def people(table: PolledTable) -> list[Any]:
    return [event.person for event in table.poll()]


FIRST = "2026-01-01 00:30:00+00"


def test_each_row_is_read_once_in_whatever_order_they_show_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_read, "ROWS", 2)  # pages of two rows
    table = server.table()
    assert people(table) == []
    server.add(
        (3, FIRST, "c", 1), (-1, FIRST, "a", 1), (2**62, FIRST, "e", 1), (5, "2025-12-31 23:59:59+00", "before", 1)
    )
    assert people(table) == ["a", "c", "e"]
    assert people(table) == []
    server.add((4, FIRST, "d", 1), (6, "2026-01-01 00:00:00+00", "f", 1))  # one high key hides no row
    assert people(table) == ["d", "f"]
    assert people(table) == []


def test_a_row_is_found_if_it_shows_up_in_time_whatever_else_the_table_holds(server: Server) -> None:
    now = [0.0]
    table = server.table(now=lambda: at(now[0]), back=timedelta(hours=1))
    for hour in (0.0, 2.0, 2.5):
        now[0] = hour
        assert people(table) == []
    now[0] = 3.0
    server.add((1, "2026-01-01 00:59:00+00", "too late", 1), (2, "2026-01-01 01:30:00+00", "in time", 1))
    assert people(table) == ["in time"]
    now[0] = 9.0
    assert people(table) == []
    server.add((3, "2026-01-01 01:59:00+00", "too late", 1), (4, "2026-01-09 00:00:00+00", "to come", 1))
    assert people(table) == ["to come"]


def test_no_value_of_a_row_makes_an_error(server: Server) -> None:
    times = ("infinity", "-infinity", "4713-01-01 00:00:00+00 BC", "20000-01-01 00:00:00+00", None)
    server.add(
        *((place, moment, "x", None) for place, moment in enumerate(times)), (9, FIRST, "a", 7), (10, FIRST, None, 7)
    )
    events = list(server.table(Columns(time="at", person="who", amount="n")).poll())
    # Times before the start, and none, are not read; those outside the calendar are, and dropped by the inbox.
    assert [(event.at is None, event.person, event.amount) for event in events] == [
        (True, "x", None),
        (True, "x", None),
        (False, "a", 7),
        (False, None, 7),
    ]


def test_a_value_that_is_too_long_is_as_one_that_is_missing(server: Server) -> None:
    server.add((1, FIRST, "é" * 2048, 1), (2, FIRST, "é" * 2048 + "x", 1), (3, FIRST, "c", 1))
    assert people(server.table()) == ["é" * 2048, None, "c"]


KEYS = {
    "null": ("(id bigint UNIQUE, at timestamptz, who text)", ""),
    "inherited": ("(id bigint PRIMARY KEY, at timestamptz, who text)", "CREATE TABLE child () INHERITS (visited)"),
    "in part": ("(id bigint NOT NULL, at timestamptz, who text)", "CREATE UNIQUE INDEX ON visited (id) WHERE id > 0"),
    "in pairs": ("(id bigint NOT NULL, at timestamptz, who text, UNIQUE (id, who))", ""),
    "bytes": ("(id bigint PRIMARY KEY, at timestamptz, who bytea)", ""),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KEYS)
def test_a_table_that_a_row_could_upset_is_refused_with_and_without_that_row(server: Server, kind: str) -> None:
    """A key that is null, or that two rows share; a value that cannot be written as a text."""
    columns, more = KEYS[kind]
    server.connection.execute(f"DROP TABLE IF EXISTS visited CASCADE; CREATE TABLE visited {columns}; {more}")
    table = PolledTable(postgres(server.url, table="visited"), COLUMNS, CLOCK, key="id", now=lambda: at(1))
    said = []
    for row in ("", "INSERT INTO visited VALUES (7, %s, 'a')", "INSERT INTO visited VALUES (NULL, %s, 'b')"):
        if row and (kind == "null" or "NULL" not in row):
            server.connection.execute(row, (FIRST,))
        with pytest.raises(InvalidInput) as refusal:
            people(table)
        said.append(str(refusal.value))
    assert said[0] == said[1] == said[2]
    assert ("unique and not null" in said[0]) is (kind != "bytes")


def test_the_key_of_a_table_in_partitions_is_unique(server: Server) -> None:
    server.connection.execute(
        "DROP TABLE IF EXISTS visited CASCADE; "
        "CREATE TABLE visited (id bigint PRIMARY KEY, at timestamptz, who text) PARTITION BY RANGE (id); "
        "CREATE TABLE visited_1 PARTITION OF visited DEFAULT"
    )
    server.connection.execute("INSERT INTO visited VALUES (7, %s, 'a')", (FIRST,))
    table = PolledTable(postgres(server.url, table="visited"), COLUMNS, CLOCK, key="id", now=lambda: at(1))
    assert people(table) == ["a"]


@pytest.mark.few(1)
@pytest.mark.parametrize(("encoding", "byte"), [("SQL_ASCII", b"\xff"), ("WIN1252", b"\x81"), ("LATIN1", b"\x81")])
def test_a_database_in_which_a_text_can_be_none_is_refused(server: Server, encoding: str, byte: bytes) -> None:
    """One such person would make an error; so the encoding alone decides, with and without them."""
    import psycopg

    name = f"in_{encoding.lower()}"
    server.connection.execute(f"DROP DATABASE IF EXISTS {name}")
    server.connection.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    url = server.url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(url, autocommit=True, client_encoding=encoding) as connection:
        connection.execute("CREATE TABLE visited (id bigint PRIMARY KEY, at timestamptz, who text)")
        for row in (b"a", byte):
            statement = b"INSERT INTO visited SELECT count(*), '" + FIRST.encode() + b"', '" + row + b"' FROM visited"
            connection.execute(statement)
            table = PolledTable(postgres(url, table="visited"), COLUMNS, CLOCK, key="id", now=lambda: at(1))
            if encoding == "LATIN1":
                assert people(table)[-1] == row.decode("latin-1")
            else:
                with pytest.raises(InvalidInput, match=f"is in {encoding}"):
                    people(table)


def test_a_polled_table_feeds_a_stream_and_is_read_from_its_start_after_a_crash(server: Server, tmp_path: Path) -> None:
    question = vault(USER).stream(name="er", version="1", horizon=3, limit=sf.Limit(groups=1, rows_per_group=1))
    asked = question.running_total()
    server.add((1, FIRST, "a", 1), (2, FIRST, "b", 1), (3, "2026-01-01 02:30:00+00", "c", 1))
    first = asked.open(**CLEAR, state=tmp_path / "state")
    inbox = Inbox(first, CLOCK, late="now")
    inbox.put_all(server.table().poll())
    assert near(inbox.tell(at(2))) == [(1, 2), (2, 2)]
    first._end()
    inbox = Inbox(asked.resume(**CLEAR, state=tmp_path / "state"), CLOCK, late="now")
    inbox.put_all(server.table().poll())
    assert near(inbox.tell(at(3))) == [(3, 3)]


def test_what_the_table_declares_is_checked_and_failures_quote_nothing(server: Server) -> None:
    for columns, said in [
        (Columns(time="at", person="whom"), {}),
        (COLUMNS, {"key": "who"}),
        (COLUMNS, {"key": "twice"}),
        (Columns(time="at", amount="cost"), {}),
        (Columns(time="day"), {}),
        (Columns(time="who"), {}),
    ]:
        with pytest.raises(InvalidInput):
            list(server.table(columns, **said).poll())
    gone = PolledTable(postgres(server.url, table="no_such_table"), COLUMNS, CLOCK, key="id")
    with pytest.raises(EngineFailed, match="go on polling") as failed:
        list(gone.poll())
    assert failed.value.__cause__ is None
    assert PASSWORD not in str(failed.value)


def run_page(section: str, **given: Any) -> str:
    """What the block of a section of the page prints."""
    page = (ROOT / "docs" / "how-to" / "streams.md").read_text("utf-8")
    [block, *_] = re.findall(r"^```py\n(.*?)^```$", page[page.index(f"\n## {section}\n") :], re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(block, given)  # noqa: S102 - the documentation is ours
    return output.getvalue()


def test_the_page_about_postgresql(server: Server) -> None:
    server.connection.execute("DROP TABLE IF EXISTS arrivals")
    server.connection.execute("CREATE TABLE arrivals (id bigint PRIMARY KEY, at timestamptz, who text)")
    hours = Clock(start=datetime(2024, 1, 1, tzinfo=UTC), every=timedelta(hours=1))
    given = {"timedelta": timedelta, "Columns": Columns, "Inbox": Inbox, "watch": watch, "hours": hours}
    total = totals(USER, horizon=3, limit=sf.Limit(groups=1, rows_per_group=1))
    assert run_page("PostgreSQL", url=server.url, total=total, **given) == "1\n2\n3\n"


# ------------------------------------------------------------------------------------------------------------ Spark


@pytest.mark.long
def test_a_query_that_is_started_again_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    """A real query over a folder that files come into, stopped and started again; every batch is repeated."""
    folder = tmp_path / "in"
    folder.mkdir()
    told: list[Any] = []
    total = totals(USER, horizon=9, limit=sf.Limit(groups=2, rows_per_group=1))
    counted = each_batch(total, person="who", told=lambda step, one: told.append((step, one)))
    seen: list[tuple[Any, int]] = []

    def both(batch: Any, number: int) -> None:
        counted(batch, number)
        seen.append((batch.collect(), number))
        counted(batch, number)  # as if Spark had not heard of the end of it

    def run() -> None:
        rows = spark.readStream.schema("who string, n int").option("maxFilesPerTrigger", 1).json(str(folder))
        written = rows.writeStream.foreachBatch(both).option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert written.trigger(availableNow=True).start().awaitTermination(60)

    (folder / "0.json").write_text('{"who": "a"}\n{"who": "a"}\n{"who": "b"}\n{"who": null}\n{"n": 1}\n')
    run()
    (folder / "1.json").write_text('{"who": "a"}\n{"who": "c"}\n')
    run()
    assert [number for _, number in seen] == [0, 1]
    assert [step for step, _ in told] == [1, 2]
    assert near(one for _, one in told) == [(1, 2), (2, 4)]
    assert total.steps == 2


def test_a_batch_counts_once_and_those_left_out_count_nothing(spark: Any) -> None:
    total, told = totals(horizon=6), []
    counted = each_batch(total, told=lambda step, one: told.append(one))
    for number in (0, 1, 1, 0, 4, 4, 9):  # 0 and 1 are repeated after a crash; 2 and 3 were left out; 9 is too late
        counted(spark.range(3), number)
    assert near(told) == [(1, 3), (2, 6), (3, 6), (4, 6), (5, 9), (6, 9)]


@pytest.mark.long
def test_amounts_groups_and_ids_by_their_bytes(spark: Any) -> None:
    frame = spark.createDataFrame(
        [("p", 9, "x"), ("P", 1, "y"), ("q", None, "x"), (None, 1, None), ("q", 1, "z"), ("r", -4, "x")],
        "`wh``o` string collate utf8_lcase, n int, ward string collate utf8_lcase",
    )
    whole = totals(max_per_event=5)
    assert near([batch_told(whole, frame, amount="n")]) == [(1, 5 + 1 + 0 + 1 + 1 + 0)]
    down = totals(max_per_event=5, bounds=(-100, 100))
    assert near([batch_told(down, frame, amount="n")]) == [(1, 5 + 1 + 0 + 1 + 1 - 4)]
    assert near([batch_told(totals(), frame)]) == [(1, 6)]
    assert near([batch_told(totals(groups=("x", "y")), frame, group="ward")]) == [(1, [3, 1])]
    people = totals(USER, groups=("x", "y"), limit=sf.Limit(groups=1, rows_per_group=1))
    assert near([batch_told(people, frame, person="wh`o", group="ward")]) == [(1, [3, 1])]
    alone = totals(USER, limit=sf.Limit(groups=1, rows_per_group=1))
    assert near([batch_told(alone, frame, person="wh`o")]) == [(1, 4)]  # p and P are two persons
    amounts = totals(USER, limit=sf.Limit(groups=1, rows_per_group=4))
    assert near([batch_told(amounts, frame, person="wh`o", amount="n")]) == [(1, 4 + 1 + 1)]
    watching = alarms(EVENT, count=1)
    step = each_batch(watching)
    for number, rows in enumerate((0, 100, 100)):
        step(spark.range(rows), number)
    assert watching.steps == 2  # it has halted, and further batches do nothing


def batch_told(stream: Any, frame: Any, **said: Any) -> Any:
    told: list[Any] = []
    each_batch(stream, told=lambda step, one: told.append(one), **said)(frame, 0)
    return told[0]


@pytest.mark.long
def test_what_a_batch_declares_is_checked(spark: Any) -> None:
    frame = spark.createDataFrame([("a", 1.5)], "who string, n double")
    for said in ({"amount": "n"}, {"amount": "m"}):
        with pytest.raises(InvalidInput):
            each_batch(totals(), **said)(frame, 0)
    with pytest.raises(Refused, match="checkpoint"):
        each_batch(totals())(frame, 7)
    later = totals()
    each_batch(later, first=7)(frame, 7)
    assert later.steps == 1


@pytest.mark.long
def test_the_page_about_spark_where_no_rows_come(spark: Any, tmp_path: Path) -> None:
    """Without its beat Spark would run no batch here; with it there are steps, and they count nothing."""
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema("who string").json(str(tmp_path / "in"))
    total = totals(USER, horizon=3, limit=sf.Limit(groups=1, rows_per_group=1))
    given = {"spark": spark, "visits": rows, "folder": str(tmp_path / "checkpoint"), "total": total}
    run_page("Spark Structured Streaming", **given)
    try:
        deadline = time.monotonic() + 60
        while total.left and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        for query in spark.streams.active:
            query.stop()
    assert total.steps == 3
    assert near([total.window(3)]) == [(3, 0)]
