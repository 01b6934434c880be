"""Fuzzing a declaration: nothing is found in what is shipped, and broken copies are found with their plans."""

import sys
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import audit
from sfumato.audit import random_plans
from sfumato.audit.invented_rows import facts_of, invented_rows, invented_worlds
from sfumato.audit.plans import PlanTried
from sfumato.core.limits import Limit
from sfumato.core.sensitivity import Sensitivity
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.schema import Schema

LIMIT = Limit(groups=2, rows_per_group=2)
PERSON = ColumnFacts(name="id", type=Type.WHOLE)
SEX = ColumnFacts(name="sex", type=Type.TEXT, keys=("F", "M"))
AGE = ColumnFacts(name="age", type=Type.WHOLE, bounds=(Fraction(0), Fraction(99)))
SMALL = Schema(name="visits", unit="id", limit=LIMIT, columns=(PERSON, SEX, AGE))
WIDE = Schema(
    unit="world",
    n_units=50,
    columns=(
        ColumnFacts(name="world", type=Type.TEXT),
        ColumnFacts(name="day", type=Type.DATE, keys=("2026-01-01", "2026-01-02")),
        ColumnFacts(name="seen", type=Type.TIME, bounds=(date(2026, 1, 1), date(2026, 1, 31)), zone="Europe/Berlin"),
        ColumnFacts(name="died", type=Type.TRUTH, keys=(True, False)),
        ColumnFacts(name="born", type=Type.TEXT, bounds=(date(1900, 1, 1), date(2026, 1, 1))),
        ColumnFacts(name="cost", type=Type.NUMBER, bounds=(Fraction(-5, 2), Fraction(1000))),
        ColumnFacts(name="ward", type=Type.WHOLE, keys=tuple(range(1, 40))),
        ColumnFacts(name="note", type=Type.TEXT),
    ),
)


def only(monkeypatch: pytest.MonkeyPatch, **parts: float) -> None:
    """Plans of a simpler kind, so that few find what many do."""
    for name, share in parts.items():
        monkeypatch.setattr(random_plans, name, share)


def smaller(bound: Sensitivity) -> Sensitivity:
    """Two thirds of each bound, which is too small."""
    assert bound.l0 is not None
    assert bound.l1 is not None
    assert bound.l2 is not None
    assert bound.linf is not None
    return Sensitivity.of(
        l0=bound.l0.count,
        l1=bound.l1.value * 2 / 3,
        l2_squared=bound.l2.squared * 4 / 9,
        linf=bound.linf.value * 2 / 3,
    )


# ------------------------------------------------------------------------------------------------------ what is shipped


def test_nothing_is_found_and_some_plans_are_moved_as_far_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, TOGETHER=3, FILTERED=0, HISTOGRAM=0, MOST_CELLS=1)
    found = audit.plans(SMALL, plans=3, seed=1)
    assert (len(found.tried), found.pairs, found.alone, found.refuted) == (3, 30, 1, False)
    assert (found.largest, found.attained > 0) == (1.0, True)
    assert "Nothing found. That is no proof" in str(found)
    assert "user (id), add/remove (seed 1)" in str(found)


@pytest.mark.parametrize("unit", [sf.record(relation="replace"), sf.family(2, "id", relation="replace")])
def test_rows_and_families_are_replaced(unit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, TOGETHER=2, HISTOGRAM=0)
    of = Schema(name="visits", columns=(PERSON, SEX, AGE))
    found = audit.plans(of, plans=2, unit=unit)
    assert (found.pairs, found.refuted, found.largest <= 1) == (60, False, True)


def test_columns_of_every_type_are_invented() -> None:
    rows = invented_rows(WIDE.columns, np.random.default_rng(1))
    assert Source(rows, zones={"seen": "Europe/Berlin"}).columns() == WIDE.types
    assert set(rows["day"].to_pylist()) == {None, date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)}
    assert {"1899-12-31", "2026-01-01"} <= set(rows["born"].to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("schema", [SMALL, WIDE], ids=["small", "wide"])
def test_many_plans_find_nothing(schema: Schema, relation: str) -> None:
    found = audit.plans(schema, plans=60, seed=7, unit=sf.user(str(schema.unit), relation=relation))
    assert found.refuted is False, str(found)
    assert found.attained > 10


def test_a_table_is_not_opened_and_the_seed_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, TOGETHER=1, RELIMITED=0, FILTERED=0, HISTOGRAM=1, MOST_CELLS=1)
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    facts: dict[str, Any] = {"limit": LIMIT, "keys": {"sex": ["F", "M"]}, "bounds": {"age": (0, 99)}}
    table = vault.table(tmp_path / "absent.parquet", name="visits", version="1", **facts)
    found = audit.plans(table, plans=1, seed=2)
    assert found == audit.plans(table, plans=1, seed=2)
    assert (found.dataset, found.refuted) == ("visits", False)
    with pytest.raises(InvalidInput, match="as it was declared"):
        audit.plans(table.where(sf.col("age") >= 65))
    with pytest.raises(InvalidInput, match="brings the unit"):
        audit.plans(table, unit=sf.record(relation="replace"))


def test_a_schema_that_names_nobody_is_refused() -> None:
    with pytest.raises(NotDeclared, match="who is protected"):
        audit.plans(Schema(name="visits", columns=(SEX,)))


# ------------------------------------------------------------------------------------------------------- broken copies


@pytest.mark.parametrize("kind", [Count, Aggregate])
def test_a_sensitivity_that_is_too_small_is_found(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, TOGETHER=3, FILTERED=0, HISTOGRAM=float(kind is Count))
    true: Any = kind.sensitivity  # type: ignore[attr-defined]  # both have one
    monkeypatch.setattr(kind, "sensitivity", lambda *given: smaller(true(*given)))
    found = audit.plans(SMALL, plans=1 if kind is Count else 2, seed=4)
    assert (found.refuted, found.largest) == (True, 1.5)
    assert "Nothing found" not in str(found)
    assert "moved beyond what is declared" in str(found)
    assert "of visits" in found.beyond[0].words
    assert {"l1", "l2 squared"} <= set(found.beyond[0].beyond)


def test_a_limit_that_is_not_applied_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Limit(groups=64, rows_per_group=512)
    module: Any = sys.modules["sfumato.audit.plans"]  # the package has the function by that name
    true = module.Share
    monkeypatch.setattr(module, "Share", lambda **given: true(**{**given, "limit": wide}))
    only(monkeypatch, TOGETHER=3, FILTERED=0, HISTOGRAM=0)
    found = audit.plans(SMALL, plans=3)
    assert found.refuted
    assert "a release reads other numbers" in str(found)


# ------------------------------------------------------------------------------------------------------- invented rows


def test_rows_depart_from_the_declaration_where_data_do() -> None:
    rows = invented_rows([SEX, AGE, WIDE.columns[5]], np.random.default_rng(1))
    assert set(rows["sex"].to_pylist()) == {"F", "M", "undeclared", None}
    assert {0, 99, -99, 198, None} <= set(rows["age"].to_pylist())
    assert any(value != value for value in rows["cost"].drop_null().to_pylist())


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_neighbours_differ_in_one_person(relation: str) -> None:
    unit, chance = sf.user("id", relation=relation), np.random.default_rng(1)
    around = invented_worlds(invented_rows([SEX], chance), unit, LIMIT, Type.WHOLE, chance)
    held = [
        {(row["id"], row["sex"]) for row in around.alone(world).to_pylist() if row["id"] is not None}
        for world in range(around.worlds)
    ]
    for one, two in around.pairs:
        changed = {person for person, _ in held[one] ^ held[two]}
        assert len(changed) <= (1 if relation == "add/remove" else 2)
    assert any(None in around.alone(world)["id"].to_pylist() for world in range(around.worlds))


def test_facts_of_a_table_follow_from_what_it_declares() -> None:
    from sfumato.demo.clinic import visits

    found = {fact.name: fact.type for fact in facts_of(visits(), sf.record(relation="replace"))}
    assert found == {"sex": Type.TEXT, "hospital": Type.TEXT, "age": Type.WHOLE, "sbp": Type.NUMBER}


def test_a_plan_says_how_far_it_was_moved() -> None:
    ratios = {"l0": Fraction(1), "l1": Fraction(1, 2), "l2 squared": Fraction(1, 4), "linf": Fraction(1)}
    tried = PlanTried(words="count of visits", pairs=3, ratios=ratios)
    assert (tried.ratio, tried.attained, tried.beyond) == (0.5, False, ())
    assert str(tried) == "count of visits: 0.5 of what is declared"
    far = PlanTried(words="count of visits", pairs=3, ratios={**ratios, "l2 squared": Fraction(9, 4)})
    assert str(far) == "count of visits: moved beyond what is declared, as a share of it: l2 1.5"
