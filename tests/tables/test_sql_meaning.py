"""What SQL means here, on rows: the same as in DuckDB, missing values included.

So large an ε leaves no noise: a count is wrong with probability below 1e-400.
"""

from datetime import date

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.tables.table import Table

duckdb = pytest.importorskip("duckdb")

# ruff: noqa: S608 - the texts are put together on purpose, for both engines

ROWS = pa.table(
    {
        "id": ["a", "a", "b", "c", "c", None, "d", "e"],
        "sex": ["F", "F", "M", None, "F", "M", "X", ""],
        "age": pa.array([20, 30, None, 40, 50, 60, -3, 65], pa.int64()),
        "sbp": pa.array([120.5, None, 150.0, 90.25, 200.0, 110.0, 80.0, 99.5], pa.float64()),
        "smoker": pa.array([True, False, None, True, False, True, None, False], pa.bool_()),
        "day": pa.array([date(2026, 1, 31), None, date(2025, 12, 31), *[date(2026, 2, n) for n in range(1, 6)]]),
        "dx": ["J10", "J11", None, "I10", "J1", "j10", "J_1", ""],
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
]


@pytest.mark.few(20)
@pytest.mark.parametrize("condition", ALIKE)
def test_conditions_mean_what_they_mean_elsewhere(visits: Table, condition: str) -> None:
    assert ours(visits, condition) == theirs(condition)


def test_casts_go_down_where_sql_goes_to_the_nearest(visits: Table) -> None:
    assert ours(visits, "CAST(sbp AS BIGINT) = 99") == 1  # 99.5
    assert theirs("CAST(sbp AS BIGINT) = 100") == 1


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
