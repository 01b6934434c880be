"""Each side of a private join is held to its limit before it is joined: one person's rows cannot multiply."""

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.engines.contribution_limits import Share
from sfumato.engines.sources import Source
from sfumato.tables import execution
from sfumato.tables.execution import Beside
from sfumato.tables.joins import Join
from tests.engines.loading import on as loaded_on
from tests.laws.scenarios import SECRET

EXACTLY = 10_000
MANY = 10_000
LABS = Dataset(name="labs", edition="1")


@pytest.fixture
def reaching(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many rows reach each private join, on both of its sides."""
    seen: list[tuple[int, int]] = []
    joined = execution.joined

    def counting(table: Any, other: Any, **facts: Any) -> Any:
        seen.append((table.count().to_pyarrow().as_py(), other.count().to_pyarrow().as_py()))
        return joined(table, other, **facts)

    monkeypatch.setattr(execution, "joined", counting)
    return seen


def tables(vault: sf.Vault, rows: dict[str, int], limits: dict[str, Limit]) -> dict[str, Any]:
    """For each name a table in which person x has so many rows, and person y one."""
    return {
        name: vault.table(
            pa.table({"id": ["x"] * many + ["y"], "n": list(range(many + 1))}),
            name=name,
            version="1",
            limit=limits[name],
            keys={"n": [0, 1]},
        )
        for name, many in rows.items()
    }


def vault_of() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="clinic")


def test_ten_thousand_rows_on_each_side_reach_the_join_as_the_limits_let_them(reaching: list[tuple[int, int]]) -> None:
    limits = {"visits": Limit(groups=2, rows_per_group=3), "labs": Limit(groups=1, rows_per_group=4)}
    found = tables(vault_of(), {"visits": MANY, "labs": MANY}, limits)
    release = found["visits"].join(found["labs"], on="id").count().release(epsilon=EXACTLY)
    assert reaching == [(6 + 1, 4 + 1)]  # person x, and y
    assert release.values == (3 + 1,)  # one group of x with 3 rows; y


def test_over_four_joins_no_person_has_more_rows_than_a_product_of_two_limits(reaching: list[tuple[int, int]]) -> None:
    names = ["visits", "labs", "drugs", "scans", "bills"]
    limits = {name: Limit(groups=1, rows_per_group=place + 2) for place, name in enumerate(names)}
    found = tables(vault_of(), dict.fromkeys(names, 50), limits)
    table = found["visits"]
    for name in names[1:]:
        table = table.join(found[name], on="id")
    assert table.count().release(epsilon=EXACTLY).values == (2 + 1,)
    assert reaching == [(2 + 1, limits[name].rows + 1) for name in names[1:]]


def test_rows_that_a_condition_rules_out_take_no_place(reaching: list[tuple[int, int]]) -> None:
    """One row of a thousand on each side is asked for, and is the one that reaches the join."""
    limits = dict.fromkeys(("visits", "labs"), Limit(groups=1, rows_per_group=1))
    found = tables(vault_of(), {"visits": 1000, "labs": 1000}, limits)
    table = found["visits"].join(found["labs"], on="id")
    asked = table.where((sf.col("n") == 7) & (sf.col("labs.n") == 8) & (sf.col("n") < sf.col("labs.n")))
    assert asked.count().release(epsilon=EXACTLY).values == (1,)
    assert reaching == [(1, 1)]


def test_rows_that_match_are_taken_together() -> None:
    """A hundred visits with one result each: of the five that count all have their result."""
    vault, limit = vault_of(), Limit(groups=1, rows_per_group=5)
    frame = pa.table({"id": ["x"] * 100, "visit": list(range(100))})
    visits, labs = (vault.table(frame, name=name, version="1", limit=limit) for name in ("visits", "labs"))
    assert visits.join(labs, on=["id", "visit"]).count().release(epsilon=EXACTLY).values == (5,)


@pytest.mark.long
def test_every_engine_takes_the_same_rows(postgres_url: str, spark: Any) -> None:
    """Of rows with texts, numbers, dates, truths and what is missing; the hash is that of one secret."""
    number = [None, float("nan"), 0.1, -0.0, 1e300, float("inf"), 1e-12, 2.5]
    frame = pa.table(
        {
            "id": pa.array([person for person in ("p", "q", "é") for _ in range(16)], pa.string()),
            "day": pa.array([place % 5 for place in range(48)], pa.int64()),
            "x": pa.array([number[place % 8] for place in range(48)], pa.float64()),
            "note": pa.array([None if place % 7 == 0 else f"n{place % 3}" for place in range(48)], pa.string()),
            "sure": pa.array([None if place % 5 == 0 else place % 2 == 0 for place in range(48)], pa.bool_()),
            "at": pa.array([None if place % 4 == 0 else place * 100 for place in range(48)], pa.date32()),
        }
    )
    taken = {}
    for engine in ("DuckDB", "PostgreSQL", "Spark"):
        own, labs = (loaded_on(engine, frame, f"sides_{place}", url=postgres_url, session=spark) for place in range(2))
        beside = Beside(own=own, private={LABS: labs}, limits={LABS: Limit(groups=1, rows_per_group=3)})
        share = Share(column="id", limit=Limit(groups=2, rows_per_group=2), secret=SECRET)
        join = Join(dataset=LABS, on=(("id", "id"), ("day", "day")), public=False)
        with beside.opened([join], share=share) as table:
            rows = table.select("id", "day", "note", "labs.note", "sure", "labs.at").to_pyarrow().to_pylist()
            assert len(table.select("x").to_pyarrow()) == len(rows)
        taken[engine] = sorted(str(row) for row in rows)
    assert taken["DuckDB"] == taken["PostgreSQL"] == taken["Spark"]
    assert 0 < len(taken["DuckDB"]) <= 3 * 4 * 3


def test_a_source_by_itself_is_not_limited_before_its_question() -> None:
    with Beside(own=Source(pa.table({"id": ["x"] * 50}))).opened([]) as table:
        assert table.count().to_pyarrow().as_py() == 50
