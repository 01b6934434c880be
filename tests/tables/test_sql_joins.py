"""JOIN in SQL is the join of the Python API, and nothing else."""

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Refused, Unsupported


@pytest.fixture
def place() -> dict[str, Any]:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1000), name="joins")
    limit = sf.Limit(groups=2, rows_per_group=2)
    visits = vault.table(
        pa.table({"id": [1, 1, 2], "hosp": ["a", "b", "a"], "day": [1, 2, 1]}), name="visits", version="1", limit=limit
    )
    labs = vault.table(
        pa.table({"id": [1, 2], "day": [1, 1], "result": [1.0, 3.0]}),
        name="labs",
        version="1",
        limit=limit,
        bounds={"result": (0, 10)},
    )
    hospitals = vault.public(
        pa.table({"hosp": ["a", "b"], "region": ["north", "south"], "beds": [10, 20]}), name="hospitals"
    )
    return {"visits": visits, "labs": labs, "hospitals": hospitals}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT h.region, COUNT(*) AS n, AVG(h.beds) AS beds FROM visits AS v JOIN hospitals h ON v.hosp = h.hosp "
        "GROUP BY h.region",
        "SELECT hospitals.region, COUNT(*) AS n, AVG(hospitals.beds) AS beds FROM visits "
        "INNER JOIN hospitals USING (hosp) GROUP BY hospitals.region",
        "SELECT hospitals.region, COUNT(*) AS n, AVG(hospitals.beds) AS beds FROM visits "
        "JOIN hospitals ON (hospitals.hosp = visits.hosp) GROUP BY 1",
    ],
)
def test_a_public_join_is_the_one_of_the_python_api(place: dict[str, Any], text: str) -> None:
    visits, hospitals = place["visits"], place["hospitals"]
    joined = visits.join(hospitals, on="hosp")
    named = sf.col("hospitals.region")
    expected = joined.group_by("hospitals.region").agg(n=sf.count(), beds=sf.mean("hospitals.beds")).query
    asked = visits.sql(text, hospitals).query
    assert asked.joins == expected.joins
    assert asked.measures == expected.measures
    assert [keys.values for keys in asked.by] == [keys.values for keys in expected.by]
    assert asked.by[0].value in (None, named.node)


def test_a_private_join_is_on_the_person_and_what_else_is_named(place: dict[str, Any]) -> None:
    visits, labs = place["visits"], place["labs"]
    text = "SELECT SUM(labs.result) AS total FROM visits JOIN labs ON visits.id = labs.id AND visits.day = labs.day"
    asked = visits.sql(text, labs)
    assert asked.query == visits.join(labs, on=["id", "day"]).agg(total=sf.sum("labs.result")).query
    assert abs(asked.release(epsilon=100)["total"].values[0] - 4) < 4
    without = "SELECT SUM(labs.result) AS total FROM visits JOIN labs ON visits.day = labs.day"
    with pytest.raises(Refused, match="one person's rows would meet another's"):
        visits.sql(without, labs).release(epsilon=1)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("SELECT COUNT(*) FROM visits LEFT JOIN labs ON visits.id = labs.id", Unsupported, "LEFT JOIN"),
        ("SELECT COUNT(*) FROM visits CROSS JOIN labs", Unsupported, "CROSS JOIN"),
        ("SELECT COUNT(*) FROM visits, labs", Unsupported, "JOIN"),
        ("SELECT COUNT(*) FROM visits JOIN labs ON visits.day < labs.day", Unsupported, "in ON"),
        ("SELECT COUNT(*) FROM visits JOIN labs ON visits.day = labs.day + 1", Unsupported, "computed value in ON"),
        ("SELECT COUNT(*) FROM visits JOIN labs ON visits.day = 1", Unsupported, "computed value in ON"),
        ("SELECT COUNT(*) FROM visits JOIN labs ON labs.id = labs.day", InvalidInput, "which column"),
        ("SELECT COUNT(*) FROM visits JOIN secrets ON visits.id = secrets.id", InvalidInput, "no table 'secrets'"),
        ("SELECT COUNT(*) FROM visits JOIN (SELECT id FROM labs) l ON visits.id = l.id", Unsupported, "but a table"),
        ("SELECT COUNT(*) FROM (SELECT day AS id FROM visits) v JOIN labs ON v.id = labs.id", Unsupported, "subquery"),
        ("SELECT COUNT(*) FROM visits NATURAL JOIN labs", Unsupported, "NATURAL JOIN"),
        ("SELECT COUNT(*) FROM visits JOIN labs AS visits ON visits.id = visits.id", InvalidInput, "two tables"),
    ],
)
def test_anything_else_is_refused(place: dict[str, Any], text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        place["visits"].sql(text, place["labs"])


def test_no_condition_of_a_join_is_lost(place: dict[str, Any]) -> None:
    text = "SELECT COUNT(*) AS n FROM visits v JOIN labs l ON v.id = l.day AND v.id = l.id"
    assert place["visits"].sql(text, place["labs"]).query.joins[0].on == (("id", "day"), ("id", "id"))
