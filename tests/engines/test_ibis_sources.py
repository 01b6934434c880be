"""Ibis tables: row-wise steps on a table are taken over; steps in which people meet are refused."""

import datetime
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from sfumato.engines.sources import Source
from sfumato.errors import Refused, Unsupported
from tests.engines.reading import rows


def test_an_ibis_table_may_have_steps_that_look_at_one_row() -> None:
    engine = ibis.duckdb.connect()
    table = engine.create_table("t", pa.table({"id": ["p", "q", None], "n": [1, 2, 3]}))
    steps = table.filter(table.n < 3).mutate(more=(table.n > 1).ifelse(9, table.n)).drop("n").rename(most="more")
    assert rows(Source(steps)) == [{"id": "p", "most": 1}, {"id": "q", "most": 9}]
    asked = engine.sql("SELECT id FROM t WHERE n = 3", schema={"id": "string"})
    with pytest.raises(Refused, match="SQLQueryResult"):
        Source(asked)
    assert rows(Source(asked, derived=True)) == [{"id": None}]
    assert rows(Source(ibis.memtable(pa.table({"x": [1]})))) == [{"x": 1}]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("step", "named"),
    [
        (lambda t: t.limit(2), "Limit"),
        (lambda t: t.distinct(), "Distinct"),
        (lambda t: t.order_by("n"), "Sort"),
        (lambda t: t.group_by("id").agg(n=t.n.sum()), "Aggregate"),
        (lambda t: t.inner_join(t.view(), "id"), r"JoinChain"),
        (lambda t: t.union(t), "Union"),
        (lambda t: t.sample(0.5), "Sample"),
        (lambda t: t.mutate(m=t.n.max()), "WindowFunction"),
        (lambda t: t.mutate(m=t.n.lag()), "WindowFunction"),
        (lambda t: t.mutate(r=ibis.row_number()), "WindowFunction"),
        (lambda t: t.mutate(r=ibis.random()), "RandomScalar"),
        (lambda t: t.filter(t.n.isin(t.n)), "InSubquery"),
        (lambda t: t.mutate(u=ibis.array([1, 2]).unnest()), "Unnest"),
    ],
)
def test_an_ibis_table_in_which_people_meet_is_refused(step: Any, named: str) -> None:
    table = ibis.duckdb.connect().create_table("t", pa.table({"id": ["p", "q"], "n": [1, 2]}))
    with pytest.raises(Refused, match=rf"{named}, and cannot be shown to be row-wise.*Nothing was read"):
        Source(step(table))
    if named not in ("RandomScalar", "Sample"):
        assert len(rows(Source(step(table), derived=True))) in (1, 2, 4)


@pytest.mark.parametrize(
    "step",
    [
        lambda t: t.mutate(m=t.id.cast("int64")),
        lambda t: t.mutate(m=t.n * 2**62),
        lambda t: t.mutate(m=t.n.ln()),
        lambda t: t.filter(t.n.sqrt() > 1),
        lambda t: t.mutate(m=t.id.re_search(t.id)),
    ],
)
def test_a_step_that_can_fail_on_one_row_is_refused(step: Any) -> None:
    """Aimed at one person, it would tell by the failure of the engine what that row holds."""
    table = ibis.duckdb.connect().create_table("t", pa.table({"id": ["p", "q"], "n": [1, 2]}))
    with pytest.raises(Refused, match=r"cannot be shown to be row-wise.*Nothing was read"):
        Source(step(table))


@pytest.mark.parametrize(
    "step",
    [
        lambda t: t.mutate(m=t.day.truncate("Y")),
        lambda t: t.mutate(m=t.at.truncate("Y")),
        lambda t: t.mutate(m=t.day.try_cast("timestamp('UTC')")),
    ],
)
def test_a_step_that_fails_on_days_at_the_end_of_the_calendar_is_refused(step: Any) -> None:
    engine = ibis.duckdb.connect()
    day = "DATE '290309-12-22 (BC)' AS day, TIMESTAMP '290309-12-22 (BC) 00:00' AS at"
    engine.raw_sql(f"CREATE TABLE t AS SELECT {day}")
    with pytest.raises(Refused, match=r"cannot be shown to be row-wise.*Nothing was read"):
        Source(step(engine.table("t")))


def test_a_cast_that_only_tries_is_refused_on_postgres_where_it_would_fail(postgres_url: str) -> None:
    engine = ibis.connect(postgres_url.replace("postgresql+psycopg://", "postgres://"))
    try:
        engine.create_table("tried", pa.table({"id": ["p", "7"]}), overwrite=True)
        table = engine.table("tried")
        with pytest.raises(Refused, match=r"has a cast that may fail on a row.*Nothing was read"):
            Source(table.mutate(n=table.id.try_cast("int64")))
        assert rows(Source(table.mutate(n=table.id.length()))) == [{"id": "p", "n": 1}, {"id": "7", "n": 1}]
        engine.drop_table("tried")
    finally:
        engine.disconnect()


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "step",
    [
        lambda t: t.filter((t.n > 0).isin([t.id])),
        lambda t: t.filter(t.id.isin([t.n > 0])),
        lambda t: t.filter(t.day.isin([t.id])),
        lambda t: t.filter(t.id.isin([datetime.date(2020, 1, 1)])),
        lambda t: t.filter(t.n.isin([t.id])),
        lambda t: t.filter(t.sum > 0.5),
        lambda t: t.mutate(m=t.sum.nullif(t.part)),
        lambda t: t.mutate(m=t.day < t.at),
        lambda t: t.mutate(m=ibis.coalesce(t.fine, t.at)),
        lambda t: t.mutate(m=t.day.truncate("Y")),
        lambda t: t.mutate(m=t.at.truncate("Y")),
        lambda t: t.mutate(m=t.day.try_cast("timestamp('UTC')")),
    ],
)
def test_a_cast_that_an_engine_makes_by_itself_is_refused(step: Any) -> None:
    """DuckDB brings both sides of a comparison to one type, and stops at a value that has no place in it."""
    engine = ibis.duckdb.connect()
    engine.raw_sql(
        "CREATE TABLE t AS SELECT 'p' AS id, 1 AS n, DATE '290309-12-22 (BC)' AS day, 1::DECIMAL(38, 0)"
        " AS sum, 0.5::DECIMAL(38, 37) AS part, TIMESTAMP '290309-12-22 (BC) 00:00' AS at, NULL::TIMESTAMP_NS AS fine"
    )
    table = engine.table("t")
    with pytest.raises(Refused, match=r"cannot be shown to be row-wise.*Nothing was read"):
        Source(step(table))
    kept = (table.n > 0.5) & (table.id == "p") & (table.day < ibis.date("2020-01-01")) & table.sum.notnull()
    taken = table.filter(kept, table.at < ibis.timestamp("2020-01-01"), table.sum.try_cast("float64") > 0)
    assert len(rows(Source(taken.mutate(m=table.id.cases(("p", 1), else_=None)).select("id", "m")))) == 1


def test_ibis_on_other_engines_or_without_rows_is_refused(tmp_path: Path) -> None:
    engine = ibis.polars.connect()
    with pytest.raises(Unsupported, match="tables on 'polars' are not read"):
        Source(engine.create_table("t", pa.table({"x": [1]})))
    table = ibis.duckdb.connect().create_table("t", pa.table({"x": [1]}))
    with pytest.raises(Unsupported, match=r"an Ibis .*Column is not a source of rows"):
        Source(table.x)


def test_an_ibis_table_of_duckdb_leaves_a_transaction_of_the_stewards_alone() -> None:
    engine = ibis.duckdb.connect()
    table = engine.create_table("t", pa.table({"x": [1]}))
    source = Source(table)
    engine.con.execute("BEGIN TRANSACTION")
    engine.con.execute("INSERT INTO t VALUES (2)")
    assert rows(source) == [{"x": 1}, {"x": 2}]
    engine.con.execute("ROLLBACK")
    assert rows(source) == [{"x": 1}]
    engine.con.execute("INSERT INTO t VALUES (3)")
