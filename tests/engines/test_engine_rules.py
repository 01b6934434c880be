"""What engines do by themselves where we do not let them: each rule of ours has a twin that differs without it."""

import datetime
from collections.abc import Callable
from typing import Any

import ibis
import pytest

from sfumato.engines.compile import predicate, value
from sfumato.engines.dialects import dialect_of
from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import Term, col
from sfumato.engines.expressions.doubles import FAR, NEAR, SPECK, held
from sfumato.errors import Unsupported
from tests.engines.asking import LENGTH, differences
from tests.engines.corners import frame, rows
from tests.engines.loading import in_postgres, in_spark
from tests.engines.truth import held as meant


@pytest.fixture(scope="module")
def embedded() -> Any:
    return ibis.duckdb.connect()


@pytest.fixture
def server(postgres_url: str) -> Any:
    connection = ibis.connect(postgres_url)
    yield connection
    connection.disconnect()


def column(table: Any, **asked: Any) -> list[Any]:
    return table.select("place", **asked).to_pyarrow().sort_by("place")["x"].to_pylist()


# ------------------------------------------------------------------------------------------------------- calendars

DAYS = {
    "CAST('infinity' AS DATE)": None,
    "CAST('-infinity' AS DATE)": None,
    "MAKE_DATE(-44, 3, 15)": None,
    "MAKE_DATE(10000, 1, 1)": None,
    "MAKE_DATE(1, 1, 1)": 1,
    "MAKE_DATE(9999, 12, 31)": 9999,
    "MAKE_DATE(2026, 11, 30)": 2026,
}


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
@pytest.mark.parametrize("engine", ["embedded", "server"])
def test_days_outside_the_calendar_are_missing(request: pytest.FixtureRequest, engine: str, kind: str) -> None:
    connection, name = request.getfixturevalue(engine), f"days_{kind.lower()}"
    days = ", ".join(f"({place}, CAST({day} AS {kind}))" for place, day in enumerate(DAYS))
    connection.raw_sql(f"DROP TABLE IF EXISTS {name}")
    connection.raw_sql(f"CREATE TABLE {name} AS SELECT * FROM (VALUES {days}) AS t(place, d)")  # noqa: S608
    table = connection.table(name)
    assert column(table, x=value(col("d").year(), table)) == list(DAYS.values())
    assert column(table, x=predicate(col("d").isnull(), table)) == [year is None for year in DAYS.values()]


def test_a_moment_with_a_zone_is_refused_by_name(embedded: Any) -> None:
    embedded.raw_sql("CREATE OR REPLACE TABLE zoned AS SELECT 0 AS place, TIMESTAMPTZ '2026-01-01 00:00:00+01' AS d")
    with pytest.raises(Unsupported, match="'d' has a type that is not supported"):
        value(col("d"), embedded.table("zoned"))


# ------------------------------------------------------------------------------------------------------ collations

WORDS = ["a", "A", "b", "B", "é", "e", "Z", "z", ""]


def asked_of_words(table: Any) -> list[list[Any]]:
    return [column(table, x=predicate(one, table)) for one in (
        col("w") == "a", col("w") < "b", col("w").isin(["A", "É"]), col("w").startswith("z"), col("w") >= col("v"),
    )]  # fmt: skip


def said_of_words() -> list[list[Any]]:
    byte = [word.encode() for word in WORDS]
    turned = byte[::-1]
    return [
        [word == b"a" for word in byte],
        [word < b"b" for word in byte],
        [word in (b"A", "É".encode()) for word in byte],
        [word.startswith(b"z") for word in byte],
        [word >= other for word, other in zip(byte, turned, strict=True)],
    ]


def words_in(connection: Any, name: str, kind: str) -> Any:
    rows = ", ".join(f"({n}, '{w}', '{v}')" for n, (w, v) in enumerate(zip(WORDS, WORDS[::-1], strict=True)))
    connection.raw_sql(f"DROP TABLE IF EXISTS {name}")
    connection.raw_sql(f"CREATE TABLE {name} (place BIGINT, w {kind}, v {kind})")
    connection.raw_sql(f"INSERT INTO {name} VALUES {rows}")  # noqa: S608
    return connection.table(name)


def test_text_is_bytes_whatever_collation_a_column_has_on_duckdb(embedded: Any) -> None:
    table = words_in(embedded, "words", "VARCHAR COLLATE NOCASE")
    assert asked_of_words(table) == said_of_words()
    assert column(table, x=table.w == "a")[:2] == [True, True]  # the twin: unguarded, A is a


@pytest.mark.parametrize("deterministic", ["true", "false"])
def test_text_is_bytes_whatever_collation_a_column_has_on_postgresql(server: Any, deterministic: str) -> None:
    name = f"loose_{deterministic}"
    server.raw_sql(f"DROP TABLE IF EXISTS {name}_words")
    server.raw_sql(f"DROP COLLATION IF EXISTS {name}")
    loose = f"provider = icu, locale = 'und-u-ks-level1', deterministic = {deterministic}"
    server.raw_sql(f"CREATE COLLATION {name} ({loose})")
    table = words_in(server, f"{name}_words", f"TEXT COLLATE {name}")
    assert asked_of_words(table) == said_of_words()
    assert column(table, x=table.w < "b") != said_of_words()[1]  # the twin: unguarded, the locale's order
    table = words_in(server, f"{name}_words", "CHAR(3)")
    assert asked_of_words(table) == said_of_words()  # without the blanks that the column adds


@pytest.mark.long
def test_text_is_bytes_whatever_collation_a_column_has_on_spark(spark: Any) -> None:
    rows = ", ".join(f"({n}, '{w}', '{v}')" for n, (w, v) in enumerate(zip(WORDS, WORDS[::-1], strict=True)))
    loose = "SELECT place, w COLLATE UTF8_LCASE AS w, v COLLATE UTF8_LCASE AS v"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW words AS {loose} FROM VALUES {rows} AS plain(place, w, v)")  # noqa: S608
    table = ibis.pyspark.connect(spark).table("words")
    assert asked_of_words(table) == said_of_words()
    assert column(table, x=table.w == "a")[:2] == [True, True]


# --------------------------------------------------------------------------------------- arithmetic, left to itself


def test_a_wide_number_of_duckdb_has_128_bits(embedded: Any) -> None:
    table = embedded.create_table("wholes", schema=ibis.schema({"n": "int64"}), overwrite=True)
    sql = embedded.compile(table.select(x=DUCKDB.wide(table.n) * DUCKDB.wide(table.n)))
    assert embedded.raw_sql(f"DESCRIBE {sql}").fetchall()[0][1] == "HUGEINT"


def test_no_held_number_can_overflow_underflow_or_lose_the_speck() -> None:
    least = held(2.0**-480)
    assert least == 2.0**-480
    assert held(2.0**-481) == 0 == held(-(2.0**-482))
    assert held(3 * 2.0**-481) in (2.0**-480, 2.0**-479)
    assert FAR * FAR < 2.0**1023 > FAR / SPECK
    assert least * least > 2.0**-1022 < least / FAR
    assert least + SPECK == least
    assert -least + SPECK == -least
    assert SPECK > 0 < NEAR
    for cell in (row[name] for row in rows(LENGTH) for name in ("number", "amount")):
        if isinstance(cell, float) and cell == cell:
            assert held(cell) == meant(cell)
            assert held(held(cell)) == held(cell)
            assert held(cell) == 0 or least <= abs(held(cell)) <= FAR
            assert held(cell) + SPECK == (held(cell) or SPECK)


Runs = Callable[[Callable[[Any], Any]], list[Any]]


@pytest.fixture(params=["DuckDB", "PostgreSQL", "Spark"])
def plainly(request: pytest.FixtureRequest, embedded: Any) -> Runs:
    """Runs an Ibis expression over the corners by the engine's own driver, with nothing of ours in between."""
    match request.param:
        case "DuckDB":
            table = embedded.create_table("unguarded", frame(LENGTH), overwrite=True)
            run = lambda sql: embedded.con.execute(sql).fetchall()  # noqa: E731
        case "PostgreSQL":
            url = request.getfixturevalue("postgres_url")
            in_postgres(url, frame(LENGTH), "unguarded")
            table = request.getfixturevalue("server").table("unguarded")
            run = lambda sql: _fetched(url, sql)  # noqa: E731
        case _:
            session = request.getfixturevalue("spark")
            in_spark(session, frame(LENGTH), "unguarded")
            table = ibis.pyspark.connect(session).table("unguarded")
            run = lambda sql: session.sql(sql).collect()  # noqa: E731

    def answers(asked: Callable[[Any], Any]) -> list[Any]:
        found = run(table.get_backend().compile(table.select("place", x=asked(table))))
        return [row[1] for row in sorted(map(tuple, found), key=lambda row: row[0])]

    return answers


def _fetched(url: str, sql: str) -> list[Any]:
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("unguarded", "ours"),
    [
        (lambda t: t.whole + t.other, col("whole") + col("other")),
        (lambda t: t.whole * t.other, col("whole") * col("other")),
        (lambda t: t.number * t.amount, col("number") * col("amount")),
        (lambda t: t.number / t.amount, col("number") / col("amount")),
        (lambda t: t.number + t.amount, col("number") + col("amount")),
        (lambda t: t.number.cast("int64"), col("number").cast("whole")),
        (lambda t: t.code.cast("int64"), col("code").cast("whole")),
        (lambda t: -t.whole, -col("whole")),
        (lambda t: ibis.least(t.number, t.amount), Term(col("number").clip(-1e300, col("amount")).node)),
    ],
    ids=["+", "*", "* of numbers", "/", "+ of numbers", "cast of numbers", "cast of texts", "-", "least"],
)
def test_twin_an_engine_left_to_itself_raises_or_differs(plainly: Runs, unguarded: Any, ours: Term) -> None:
    """So the corpus can fail: without our rules it does, on every engine."""
    try:
        found = plainly(unguarded)
    except Exception:  # noqa: BLE001 - an engine's own error, of whatever class
        return
    assert differences([ours], [found], rows(LENGTH))


@pytest.mark.few(1)
def test_the_same_way_of_asking_finds_no_difference_with_our_rules(plainly: Runs) -> None:
    ours = [col("whole") + col("other"), col("whole") * col("other"), col("number") / col("amount"), -col("whole")]
    assert differences(ours, [plainly(lambda table, one=one: value(one, table)) for one in ours], rows(LENGTH)) == []


def test_an_engine_that_no_test_has_seen_is_refused() -> None:
    pytest.importorskip("polars")
    table = ibis.polars.connect().create_table("t", frame(3))
    with pytest.raises(Unsupported, match="not known to mean the same on 'polars'"):
        dialect_of(table)


def test_dates_of_moments_are_those_of_the_calendar(embedded: Any) -> None:
    table = embedded.create_table("moments", frame(LENGTH).select(["place", "moment"]), overwrite=True)
    found = column(table, x=value(col("moment").cast("date"), table))
    assert found == [row["moment"].date() if row["moment"] else None for row in rows(LENGTH)]
    assert datetime.date(1969, 12, 31) in found
