"""What a hospital statistician asks about times, texts and wards, beside what DuckDB answers without noise.

So large an ε leaves no noise: a count is wrong with probability below 1e-400.
"""

import re
from contextlib import suppress
from datetime import date
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from tests.questions.hospital import declared, questions, tables

duckdb = pytest.importorskip("duckdb")

COUNTED = [
    "SELECT DATE_TRUNC('month', admitted)::date AS month, COUNT(*) AS n FROM stays GROUP BY month",
    "SELECT DATE_TRUNC('week', admitted)::date AS week, COUNT(*) AS n FROM stays WHERE died GROUP BY week",
    "SELECT EXTRACT(HOUR FROM admitted) AS hour, COUNT(*) AS n FROM stays WHERE emergency GROUP BY hour",
    "SELECT EXTRACT(YEAR FROM admitted) AS year, COUNT(*) AS n FROM stays WHERE NOT died GROUP BY year",
    "SELECT EXTRACT(ISODOW FROM admitted) AS day, COUNT(*) FILTER (WHERE emergency) AS n FROM stays GROUP BY day",
    "SELECT LOWER(TRIM(diagnosis)) AS diagnosis, COUNT(*) AS n FROM stays WHERE diagnosis IS NOT NULL GROUP BY 1",
    "SELECT LEFT(ward, 1) AS house, COUNT(*) AS n FROM stays GROUP BY house",
    "SELECT ward || '/' || sex AS both_of, COUNT(*) AS n FROM stays GROUP BY both_of",
    "SELECT FLOOR(age / 10.0) * 10 AS decade, COUNT(*) AS n FROM stays GROUP BY 1",
    "SELECT department, COUNT(*) AS n FROM stays LEFT JOIN wards ON stays.ward = wards.ward GROUP BY department",
    "SELECT department, COUNT(*) AS n FROM stays JOIN wards USING (ward) WHERE beds > 20 GROUP BY department",
    "SELECT w.department, COUNT(*) AS n FROM stays AS s JOIN wards AS w ON s.ward = w.ward GROUP BY w.department",
    "SELECT insurer, COUNT(*) AS n FROM stays WHERE insurer IN ('AOK', 'TK') GROUP BY insurer",
    "SELECT sex, COUNT(*) FILTER (WHERE discharged - admitted > INTERVAL '3 days') AS n FROM stays GROUP BY sex",
    "SELECT sex, COUNT(*) FILTER (WHERE cost >= 10000.50) AS n FROM stays GROUP BY sex",
    "SELECT sex, COUNT(*) FILTER (WHERE admitted + INTERVAL '1 month' > discharged) AS n FROM stays GROUP BY sex",
]
MEASURED = [
    "SELECT AVG(CASE WHEN died THEN 1 ELSE 0 END) AS x FROM stays",
    "SELECT AVG(EXTRACT(EPOCH FROM discharged - admitted) / 86400) AS x FROM stays",
    "SELECT AVG(DATE_DIFF('hour', admitted, discharged)) AS x FROM stays",
    "SELECT AVG(cost) AS x FROM stays",
    "SELECT SUM(beds) AS x FROM stays LEFT JOIN wards USING (ward)",
]


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return tables("stays")


@pytest.fixture(scope="module")
def behind(rows: dict[str, Any]) -> dict[str, Any]:
    return declared("stays", rows, sf.record(relation="add/remove"))


def theirs(text: str, rows: dict[str, Any]) -> list[Any]:
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for name, table in rows.items():
            engine.register(name, table)
        return list(engine.execute(text).fetchall())


@pytest.mark.parametrize("text", COUNTED)
def test_groups_count_what_they_count_elsewhere(text: str, rows: dict[str, Any], behind: dict[str, Any]) -> None:
    asked = behind["stays"].sql(text, behind["wards"])
    release = asked.release(epsilon=20_000)
    (labels,) = asked.query.labels().values()
    found = {label: round(value) for label, value in zip(labels, release["n"].values, strict=True) if round(value)}
    wanted = {
        key.isoformat() if isinstance(key, date) else key: n for key, n in theirs(text, rows) if n and key is not None
    }
    assert found == wanted
    assert len(wanted) > 1


@pytest.mark.parametrize("text", MEASURED)
def test_measures_are_those_of_elsewhere(text: str, rows: dict[str, Any], behind: dict[str, Any]) -> None:
    release = behind["stays"].sql(text, behind["wards"]).release(epsilon=20_000)
    ((wanted,),) = theirs(text, rows)
    assert float(release["x"].values[0]) == pytest.approx(float(wanted), rel=1e-3)


def test_no_fewer_are_understood_whatever_their_order(behind: dict[str, Any]) -> None:
    """Sorting and cutting aside, which the release can do: the twenty about the generated hospital."""
    found = 0
    for each in questions():
        text = re.sub(r"\s+ORDER BY \w+( DESC)?( LIMIT \d+)?\s*$", "", each.sql)
        if each.on == "stays" and "DISTINCT" not in text:
            with suppress(SfumatoError):
                behind["stays"].sql(text, behind["wards"])
                found += 1
    assert found >= 9
