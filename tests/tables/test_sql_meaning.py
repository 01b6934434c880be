"""What SQL means here, on rows: the same as in DuckDB, missing values included.

So large an ε leaves no noise: a count is wrong with probability below 1e-400.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.tables.table import Table

duckdb = pytest.importorskip("duckdb")

# ruff: noqa: S608 - the texts are put together on purpose, for both engines

BEGUN = [
    *(datetime(2026, 1, 31), datetime(2026, 1, 31, 23, 59, 59, 999_999), None, datetime(2024, 2, 29, 12, 30)),
    *(datetime(2025, 12, 31, 7), datetime(1969, 12, 31, 23), datetime(2026, 3, 29, 2, 30), datetime(2000, 1, 1)),
]
ROWS = pa.table(
    {
        "id": ["a", "a", "b", "c", "c", None, "d", "e"],
        "sex": ["F", "F", "M", None, "F", "M", "X", ""],
        "age": pa.array([20, 30, None, 40, 50, 60, -3, 65], pa.int64()),
        "sbp": pa.array([120.5, None, 150.0, 90.25, 200.0, 110.0, 80.0, 99.5], pa.float64()),
        "smoker": pa.array([True, False, None, True, False, True, None, False], pa.bool_()),
        "day": pa.array([date(2026, 1, 31), None, date(2025, 12, 31), *[date(2026, 2, n) for n in range(1, 6)]]),
        "dx": ["J10", "J11", None, "I10", "J1", "j10", "J_1", ""],
        "begun": pa.array(BEGUN, pa.timestamp("us")),
        "ended": pa.array([None if at is None else at + timedelta(hours=37) for at in BEGUN], pa.timestamp("us")),
        "stamp": [None if at is None else at.isoformat(" ") for at in BEGUN],
        "name": [" Ärztin", "arzt ", None, "ÉCOLE", "a-b-c", "x", "Straße", "  "],
        "cost": pa.array([Decimal("0.10"), None, Decimal("0.30"), *map(Decimal, range(5))], pa.decimal128(12, 2)),
    }
)


@pytest.fixture
def visits() -> Table:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="meaning")
    return vault.table(ROWS, name="visits", version="1", keys={"sex": ["F", "M", "X", ""]}, bounds={"age": (-10, 100)})


def ours(visits: Table, condition: str) -> int:
    (count,) = visits.sql(f"SELECT COUNT(*) FROM visits WHERE {condition}").release(epsilon=1000).values
    return count


def theirs(condition: str) -> int:
    with duckdb.connect() as engine:
        engine.register("visits", ROWS)
        found: int = engine.execute(f"SELECT COUNT(*) FROM visits WHERE {condition}").fetchone()[0]
    return found


ALIKE = [
    "age >= 30",
    "age <> 30",
    "age BETWEEN 20 AND 50",
    "age IN (20, 30, 65)",
    "sex = 'F' OR age > 40",
    "age IS NULL AND sex IS NOT NULL",
    "smoker AND age > 20",
    "smoker IS TRUE",
    "smoker IS NOT TRUE",
    "smoker IS FALSE",
    "day >= DATE '2026-02-02'",
    "EXTRACT(YEAR FROM day) = 2026 AND EXTRACT(MONTH FROM day) = 2",
    "EXTRACT(ISODOW FROM day) = 7",
    "DATE_DIFF('day', DATE '2026-01-31', day) > 2",
    "dx LIKE 'J1%'",
    "dx LIKE 'J1'",
    "LENGTH(dx) = 3",
    "ABS(age) = 3",
    "-age > 0",
    "age * 2 - 1 >= 59",
    "age / 7 > 4",
    "COALESCE(age, 0) = 0",
    "NULLIF(age, 30) > 25",
    "CASE WHEN age < 40 THEN 1 WHEN age >= 60 THEN 2 END = 2",
    "CASE sex WHEN 'F' THEN 1 ELSE 0 END = 0",
    "FLOOR(sbp) = 120",
    "sbp < 100 OR sbp > 149.5",
    # what is unknown stays unknown under NOT, and its row is left out
    "NOT age >= 30",
    "NOT (sex = 'F')",
    "sex NOT IN ('F', 'M')",
    "age NOT BETWEEN 20 AND 50",
    "NOT age BETWEEN NULLIF(age, 20) AND 45",  # a missing end does not matter where the other decides
    "dx NOT LIKE 'J1%'",
    "NOT dx LIKE 'J1'",
    "NOT smoker",
    "NOT (smoker AND age > 25)",
    "NOT (smoker OR age > 25)",
    "NOT NOT smoker",
    "NOT (age IS NULL)",
    "(age >= 30) IS NOT TRUE",
    "(age >= 30) IS FALSE",
    "(age >= 30) IS NULL",
    "(smoker AND age > 25) IS NULL",
    "(age >= 30) = smoker",
    "NOT (CASE WHEN age > 25 THEN smoker END)",
    "CASE WHEN NOT smoker THEN 1 ELSE 0 END = 0",
    "CAST(age >= 30 AS INTEGER) = 0",
    "LEAST(age, 25) = 25",
    "GREATEST(NULLIF(age, 20), age - 1) = 19",
    "GREATEST(25, age, 30) = 30",
    # times: a day beside a time is its first moment
    "begun = DATE '2026-01-31'",
    "begun <= DATE '2026-01-31'",
    "begun > DATE '2026-01-31'",
    "begun <> DATE '2026-01-31'",
    "begun NOT BETWEEN DATE '2025-01-01' AND DATE '2026-01-31'",
    "begun IN (DATE '2026-01-31', DATE '2024-02-29')",
    "begun::date IN (DATE '2026-01-31', DATE '2024-02-29')",
    "CAST(begun AS DATE) = DATE '2026-01-31'",
    "begun >= TIMESTAMP '2024-02-29 12:30:00' AND begun < TIMESTAMP '2026-01-31 00:00:00.5'",
    "EXTRACT(HOUR FROM begun) BETWEEN 7 AND 12",
    "EXTRACT(MINUTE FROM begun) = 30",
    "EXTRACT(WEEK FROM begun) = 1",
    "EXTRACT(DOW FROM begun) = 0 OR EXTRACT(DOY FROM begun) = 365",
    "DATE_TRUNC('month', begun) = DATE '2026-01-01'",
    "DATE_TRUNC('quarter', begun) = DATE '2026-01-01'",
    "DATE_TRUNC('week', begun) = DATE '2026-01-26'",
    "DATE_TRUNC('hour', begun) = TIMESTAMP '2026-01-31 23:00:00'",
    "DATE_TRUNC('year', day) = DATE '2026-01-01'",
    "DATE_DIFF('year', DATE '1950-06-01', begun::date) >= 76",
    "DATE_DIFF('month', begun, ended) = 1",
    "DATE_DIFF('quarter', begun, ended) = 1",
    "DATE_DIFF('day', begun, ended) = 2",
    "DATE_DIFF('hour', begun, TIMESTAMP '2026-01-31 05:00:00') = 5",
    "ended - begun = INTERVAL '37 hours'",
    "ended - begun > INTERVAL '2 days'",
    "EXTRACT(EPOCH FROM ended - begun) / 3600 = 37",
    "day - DATE '2026-01-31' > 1",
    "begun + INTERVAL '1 day' > TIMESTAMP '2026-02-01 00:00:00'",
    "begun + INTERVAL '1 month' = TIMESTAMP '2026-02-28 00:00:00'",
    "begun - INTERVAL '2 months' < TIMESTAMP '2023-12-30 00:00:00'",
    "CAST(stamp AS TIMESTAMP) = begun",
    "stamp::date = DATE '2026-01-31'",
    # texts
    "LOWER(dx) = 'j10'",
    "UPPER(dx) LIKE 'J1%'",
    "LOWER(name) LIKE 'é%' OR UPPER(TRIM(name)) LIKE 'ÄRZ%'",
    "TRIM(name) = ''",
    "LTRIM(name) = 'arzt '",
    "RTRIM(name) = 'arzt'",
    "LEFT(dx, 1) = 'J' AND RIGHT(dx, 1) = '1'",
    "SUBSTRING(dx, 2, 2) = '10'",
    "SUBSTRING(name FROM 3) = 'b-c' OR SUBSTR(name, 2, 1) = 'r'",
    "REPLACE(name, '-', '') = 'abc'",
    "dx || '-' || sex = 'J10-F'",
    "LENGTH(UPPER(name)) = 6",
    "COALESCE(dx, 'none') = 'none'",
    "NULLIF(TRIM(name), '') IS NULL",
    "dx ILIKE 'j1%'",
    "CAST(age AS VARCHAR) LIKE '6%'",
    # numbers
    "CAST(sbp AS BIGINT) = 100",
    "CAST(sbp AS INTEGER) = 120",
    "ROUND(sbp) = 121 OR ROUND(sbp, 1) = 90.3",
    "CEIL(sbp) = 91 OR FLOOR(age) = 20",
    "CAST(age AS DOUBLE PRECISION) / 7 > 4",
    "age > 29.5 AND age <> 40.0",
    "age < sbp",
    "cost = 0.1 OR cost > 2.5",
    "cost * 10 = 3",
    "CAST(cost AS NUMERIC(12, 1)) >= 0.3",
]


@pytest.mark.few(20)
@pytest.mark.parametrize("condition", ALIKE)
def test_conditions_mean_what_they_mean_elsewhere(visits: Table, condition: str) -> None:
    assert ours(visits, condition) == theirs(condition)


def test_weeks_that_began_are_counted_by_their_mondays(visits: Table) -> None:
    assert ours(visits, "DATE_DIFF('week', begun, ended) = 1") == 2  # a Saturday and a Sunday, each to the Monday after


def test_groups_filters_and_buckets_count_as_elsewhere(visits: Table) -> None:
    text = (
        "SELECT sex, COUNT(*) AS n, COUNT(sbp) AS known, COUNT(*) FILTER (WHERE age > 25) AS older, SUM(age) AS age, "
        "SUM(age) FILTER (WHERE sbp > 100) AS part FROM visits WHERE sex IS NOT NULL GROUP BY sex"
    )
    release = visits.sql(text).release(epsilon=500_000)
    with duckdb.connect() as engine:
        engine.register("visits", ROWS)
        wanted = {row[0]: [value or 0 for value in row[1:]] for row in engine.execute(text).fetchall()}
    found = {
        sex: [round(release[name].values[place]) for name in ("n", "known", "older", "age", "part")]
        for place, sex in enumerate(["F", "M", "X", ""])
    }
    assert found == wanted


def test_buckets_are_those_of_sql(visits: Table) -> None:
    asked = visits.sql("SELECT WIDTH_BUCKET(age, 0, 60, 3) AS part, COUNT(*) FROM visits GROUP BY part")
    release = asked.release(epsilon=1000)
    # 0: below 0; 1: [0, 20); 2: [20, 40); 3: [40, 60); 4: from 60 on; the row without an age is in none
    assert dict(zip(release.statement.query.labels()["part"], release.values, strict=True)) == {
        0: 1,
        1: 0,
        2: 2,
        3: 2,
        4: 2,
    }


def test_the_same_question_in_sql_is_not_charged_again(visits: Table) -> None:
    first = visits.group_by("sex").count().release(epsilon=1)
    again = visits.sql("SELECT sex, COUNT(*) FROM visits GROUP BY sex").release(epsilon=1)
    assert (again.values, again.repeated, again.charged.epsilon) == (first.values, True, 0)


def test_persons_are_counted_once() -> None:
    user = sf.user("id", relation="add/remove")
    vault = sf.Vault(unit=user, budget=sf.Budget(epsilon=10**6), name="persons")
    limit = sf.Limit(groups=1, rows_per_group=2)
    table = vault.table(ROWS, name="visits", version="1", limit=limit)
    release = table.sql("SELECT COUNT(DISTINCT id) AS n FROM visits").release(epsilon=10**4)
    assert round(release["n"].values[0]) == 5  # a to e; the row of nobody does not count


def test_a_name_given_to_a_key_does_not_hide_a_column(visits: Table) -> None:
    text = "SELECT sex AS age, COUNT(*) AS n, SUM(v.age) AS total FROM visits v WHERE v.age >= 30 GROUP BY sex"
    release = visits.sql(text).release(epsilon=500_000)
    assert [round(value) for value in release["n"].values] == [2, 1, 0, 1]
    assert [round(value) for value in release["total"].values] == [80, 60, 0, 65]
