"""Random SQL questions of every form: exact numbers as DuckDB has them, the same on every engine, and within bounds.

How many: 10,000 plans on DuckDB against DuckDB's own answer, 300 on PostgreSQL and 100 on Spark against ours on DuckDB
under limits that cut, and 2,000 pairs of neighbours on DuckDB. Five plans at a time are about the same rows and groups,
and are added up in one query. ``make test`` has one such query of each. Where they begin: ``tests/laws/seeds.py``.
"""

import os
import random
from collections.abc import Mapping
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.sensitivity import Sensitivity
from sfumato.tables.sql.rows import RowScope
from tests.engines.loading import put
from tests.laws.neighbours import stated
from tests.laws.seeds import seeds
from tests.laws.sql_asked import Asked, Differs, Truth, compare
from tests.laws.sql_composer import Composer
from tests.laws.sql_hunt import Found, Moved, across_engines, against_duckdb, any_limit, neighbours
from tests.laws.sql_plans import Aggregate, Plan
from tests.laws.sql_scenes import OWN, Scene

pytestmark = pytest.mark.no_cover  # many plans: measuring coverage would double their time

PLANS, PARTS = 10_000, 10
PAIRS, PAIR_PARTS = 2_000, 4
FEW = 5  # one query
TOLD = os.environ.get("SFUMATO_FUZZ_REPORT")  # a file, if somebody wants the figures
FORMS = {
    *("null logic", "keys", "post-processing", "membership", "exists", "public join", "private join"),
    *("one row a person", "beside a person", "row-wise subquery", "having of a person", "distinct on"),
    *("public join in a subquery", "private join in a subquery", "public join of persons", "having of keys"),
}


def told(name: str, found: Found) -> Found:
    """The figures of a hunt, where they are wanted."""
    if TOLD:
        with open(TOLD, "a") as file:
            file.write(f"{name}: {found}\n")
    return found


def test_plans_have_every_form() -> None:
    chance = random.Random(1)
    composer = Composer(chance, OWN)
    assert {trait for _ in range(800) for plan in composer.plans(1) for trait in plan.traits} == FORMS


# ------------------------------------------------------------------------------------------------------ against DuckDB


def test_a_few_plans_have_the_numbers_of_duckdb() -> None:
    assert against_duckdb(FEW, rows=1).plans >= FEW


def test_a_mean_under_a_wide_limit_is_as_fine_as_a_sum() -> None:
    """Found by a fresh seed: values rounded to 2^-15 of their range, for the sake of their squares, moved a mean."""
    assert against_duckdb(FEW, start=[253688524407365], rows=1).plans >= FEW


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_plans_have_the_numbers_of_duckdb(part: int) -> None:
    found = told(f"plans {part}", against_duckdb(PLANS // PARTS))
    assert found.plans >= PLANS // PARTS
    assert found.refused < found.plans / 50


@pytest.mark.long
def test_a_plan_alone_has_the_numbers_that_it_has_beside_others() -> None:
    """Plans about the same rows are added up in one query here; a release asks one."""
    chance = random.Random(next(seeds()))
    scene = Scene.drawn(chance)
    asked, composer = Asked(scene, limit=any_limit(chance)), Composer(chance, scene.kinds)
    for _ in range(10):
        some = composer.plans(4)
        for plan, exact in zip(some, asked.together(some), strict=True):
            assert exact is None or asked.exact(plan).numbers == exact.numbers, plan.text


def test_not_in_with_the_logic_of_python_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: what is missing is not among the values, so NOT IN keeps it."""
    true = RowScope.condition

    def planted(self: RowScope, node: Any, *, false: bool = False) -> Any:
        return ~true(self, node) if false else true(self, node)

    monkeypatch.setattr(RowScope, "condition", planted)
    with pytest.raises(Differs):
        against_duckdb(400, start=count(1), rows=1)


def test_a_subquery_that_keeps_rows_of_nobody_is_noticed() -> None:
    """The broken twin: DuckDB with those rows finds NOT IN unknown of everyone."""
    rows = {
        name: pa.table({"id": ["a", "b", None], "ward": ["x", "y", "x"], "half": [0.0] * 3, "tenth": [0.0] * 3})
        for name in ("stays", "labs")
    }
    wards = pa.table({"ward": ["x"], "region": ["north"]})
    scene = Scene(rows, wards, None, ("a", "b"))
    plan = Plan(
        before="", origin="stays AS s", where="s.id NOT IN (SELECT t.id FROM labs AS t WHERE t.ward = 'x')", keys=(),
        aggregates=(Aggregate("COUNT(*)", "COUNT(*)", "0", True),), shown=("{0}",), having="", order="", cut="",
        traits=frozenset(),
    )  # fmt: skip
    asked, truth = Asked(scene), Truth(scene)
    ours = asked.answer(asked.exact(plan))
    compare(plan, ours, truth.answer(plan, {}))
    truth.engine.execute("CREATE OR REPLACE TABLE labs AS SELECT * FROM all_labs")
    with pytest.raises(Differs):
        compare(plan, ours, truth.answer(plan, {}))


# ------------------------------------------------------------------------------------------------------ across engines


@pytest.mark.parametrize("frame", ["pandas", pytest.param("polars", marks=pytest.mark.long)])
def test_frames_in_another_order_have_the_same_numbers_under_limits(frame: str) -> None:
    pytest.importorskip(frame)

    def placed(rows: Mapping[str, pa.Table]) -> Mapping[str, object]:
        if frame == "polars":
            import polars

            return {name: polars.from_arrow(each) for name, each in rows.items()}
        return {name: each.to_pandas(types_mapper=_nullable) for name, each in rows.items()}

    assert across_engines(FEW, placed, rows=1).plans >= FEW


def _nullable(kind: pa.DataType) -> Any:
    import pandas

    return pandas.ArrowDtype(kind)


@pytest.mark.long
@pytest.mark.parametrize(("engine", "plans"), [("PostgreSQL", 300), ("Spark", 100)])
def test_every_engine_keeps_the_same_rows_under_limits(engine: str, plans: int, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    number = count()

    def placed(rows: Mapping[str, pa.Table]) -> Mapping[str, object]:
        scene = next(number)
        return {name: put(engine, each, f"fuzz{scene}_{name}", url=url, session=session) for name, each in rows.items()}

    assert told(engine, across_engines(plans, placed)).plans >= plans


# ---------------------------------------------------------------------------------------------------------- neighbours


def half(bound: Sensitivity) -> Sensitivity:
    """Every bound halved."""
    found = stated(bound)
    return Sensitivity.of(
        l0=max(1, int(found["l0"]) // 2), l1=found["l1"] / 2, l2_squared=found["l2 squared"] / 4, linf=found["linf"] / 2
    )


def test_a_few_neighbours_are_within_the_bound_of_the_plan() -> None:
    assert neighbours(FEW, rows=1).pairs >= FEW


@pytest.mark.long
@pytest.mark.parametrize("part", range(PAIR_PARTS))
def test_two_thousand_neighbours_are_within_the_bound_of_the_plan_and_some_at_it(part: int) -> None:
    found = told(f"pairs {part}", neighbours(PAIRS // PAIR_PARTS))
    assert found.pairs >= PAIRS // PAIR_PARTS
    assert found.at_bound > found.pairs / 100


def test_half_a_bound_is_noticed() -> None:
    with pytest.raises(Moved):
        neighbours(400, judged=half, start=count(), rows=1)


def test_a_limit_that_is_not_applied_is_noticed() -> None:
    with pytest.raises(Moved):
        neighbours(400, limitless=True, start=count(), rows=1)
