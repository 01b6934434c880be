"""``table.synthesize``: one charge, declared columns, rows that are a function of the release, and words for it."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.reports.verify import verify
from sfumato.synthesis.result import SyntheticTable
from sfumato.tables import Table
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.vault import Vault

SPEND = {"epsilon": 4, "delta": "1/1000000"}
KEYS: dict[str, Any] = {"sex": ["F", "M"], "ward": ["A", "B", "C"], "pregnant": [True, False]}
BOUNDS: dict[str, Any] = {
    "age": (0, 99),
    "died": (0, 99),
    "weight": (2.5, 120),
    "admitted": (date(2026, 1, 1), date(2026, 12, 31)),
}


def people(number: int = 3_000) -> pa.Table:
    ages = [(7 * place) % 100 for place in range(number)]
    return pa.table(
        {
            "id": [place // 2 for place in range(number)],
            "sex": ["FM"[place % 2] for place in range(number)],
            "ward": ["ABC"[age // 34] for age in ages],
            "pregnant": [place % 2 == 0 and place % 10 == 0 for place in range(number)],
            "age": ages,
            "died": [None if age < 50 else min(99, age + place % 30) for place, age in enumerate(ages)],
            "weight": [40 + age / 2 + place % 9 for place, age in enumerate(ages)],
            "admitted": [date(2026, 1 + place % 12, 1 + place % 28) for place in range(number)],
        }
    )


def world(rows: pa.Table | None = None, unit: Any = None, limit: Any = None) -> tuple[Vault, Table]:
    budget = sf.Budget(epsilon=1_000, delta="1/1000000")
    vault = sf.Vault(unit=unit or sf.record(relation="add/remove"), budget=budget, name="trial")
    given = people() if rows is None else rows
    return vault, vault.table(given, name="patients", version="1", keys=KEYS, bounds=BOUNDS, limit=limit)


@pytest.fixture(scope="module")
def mixed() -> SyntheticTable:
    """All kinds of columns, with rules."""
    table = world()[1]
    return table.synthesize(
        ["sex", "ward", "pregnant", "age", "died", "weight", "admitted"],
        rows=2_000,
        bins={"age": 5, "died": [20, 40, 60, 80], "weight": 4, "admitted": 6},
        missing=["died"],
        never=[{"sex": "M", "pregnant": True}],
        at_least=[("died", "age")],
        **SPEND,
    )


def test_columns_of_every_kind_come_out_in_their_types(mixed: SyntheticTable) -> None:
    rows = mixed.rows
    assert rows.num_rows == 2_000
    assert [str(kind) for kind in rows.schema.types] == [
        *("string", "string", "bool", "int64", "int64", "double", "date32[day]")
    ]
    for name, (low, high) in BOUNDS.items():
        ends = pc.min_max(rows[name]).as_py()
        assert low <= ends["min"] <= ends["max"] <= high
    assert 0.4 < rows["died"].null_count / 2_000 < 0.6
    assert rows["age"].null_count == 0
    assert set(rows["ward"].to_pylist()) == {"A", "B", "C"}


def test_declared_rules_hold_in_every_row(mixed: SyntheticTable) -> None:
    rows = mixed.rows
    assert pc.sum(pc.and_(pc.equal(rows["sex"], "M"), rows["pregnant"])).as_py() == 0
    assert pc.sum(rows["pregnant"]).as_py() > 0
    assert pc.all(pc.greater_equal(rows["died"], rows["age"])).as_py()


def test_what_goes_together_in_the_data_goes_together_in_the_rows(mixed: SyntheticTable) -> None:
    rows = mixed.rows
    ages = {ward: pc.mean(rows.filter(pc.equal(rows["ward"], ward))["age"]).as_py() for ward in "ABC"}
    assert ages["A"] + 15 < ages["B"] < ages["C"] - 15


@pytest.mark.claim("S1-17")
def test_one_charge_and_questions_on_the_rows_cost_nothing() -> None:
    vault, table = world()
    made = table.synthesize(["sex", "ward"], rows=500, **SPEND)
    spent = vault.spent
    assert spent.epsilon == 4
    assert verify(made.release.certificate.document).consistent
    made.rows.group_by("sex").aggregate([([], "count_all")])
    made.explain()
    made.explain("zh")
    assert vault.spent == spent
    again = table.synthesize(["sex", "ward"], rows=500, **SPEND)  # the stored answer
    assert vault.spent == spent
    assert again.rows == made.rows
    assert again.release.statement.identifier == made.release.statement.identifier
    drawn = table.synthesis(["sex", "ward"], rows=500).release(fresh=True, **SPEND)
    assert vault.spent.epsilon == 8
    assert drawn.release.statement.identifier != made.release.statement.identifier
    assert {each.columns for each in made.quality.marginals} == {("sex", "ward")}
    assert "sex" in made.explain()
    assert "not measured" in made.explain()


def test_the_number_of_rows_is_declared_or_noisy() -> None:
    """Files of n and of n + 1 people differ through the measurements alone."""
    made = world()[1].synthesize(["sex", "ward"], epsilon=1)
    total = made.quality.estimated_rows
    assert made.rows.num_rows == round(total)
    assert not made.quality.declared_rows
    assert abs(total - 3_000) < 100
    found = {world()[1].synthesize(["ward"], epsilon="1/10").rows.num_rows for _ in range(8)}
    assert len(found) > 1
    assert world()[1].synthesize(["sex"], rows=17, **SPEND).rows.num_rows == 17


def test_rows_follow_from_the_release_alone() -> None:
    vault, table = world()
    asked = table.synthesis(["sex", "ward"], rows=400)
    release = asked.question(**SPEND).release(**SPEND)
    assert isinstance(release, Release)
    once, again = asked.made(release, "pairs"), asked.made(release, "pairs")
    assert once.rows == again.rows
    count = table.count().release(epsilon=1)
    with pytest.raises(InvalidInput, match="nothing was made"):
        asked.made(count, "pairs")
    assert vault.spent.epsilon == 5


def test_of_a_person_as_many_rows_count_as_the_limit_has() -> None:
    for groups, rows, squares in ((1, 1, 1), (1, 2, 4), (2, 2, 16)):
        limit = sf.Limit(groups=groups, rows_per_group=rows)
        vault, table = world(unit=sf.user("id", relation="add/remove"), limit=limit)
        asked = table.synthesis(["sex", "ward"], rows=100).question(**SPEND)
        query = asked.query
        assert isinstance(query, WeightedMarginals)
        moved = query.sensitivity(sf.user("id", relation="add/remove"), limit)
        assert moved.l2 is not None
        assert moved.l2.squared == squares * sum(weight**2 for weight in query.weights)
        total = world(unit=sf.user("id", relation="add/remove"), limit=limit)[1].synthesize(["sex"], epsilon=50)
        assert abs(total.quality.estimated_rows - 1_500 * min(2, groups * rows)) < 30
        assert vault.spent.epsilon == 0


def test_a_workload_is_measured_as_it_is_weighted() -> None:
    table = world()[1]
    made = table.synthesize(
        ["sex", "ward", "pregnant"], workload={("sex", "ward"): 1, ("ward", "pregnant"): 64}, rows=300, **SPEND
    )
    one, two = made.quality.marginals
    assert (one.columns, two.columns) == (("sex", "ward"), ("ward", "pregnant"))
    assert abs(one.noise / two.noise - 4) < 0.05
    assert made.quality.reason == "workload"
    assert "sex × ward" in made.explain()


def test_plans_and_previews_read_nothing() -> None:
    vault, table = world(people(10))
    asked = table.synthesis(["sex", "ward", "age"], expected_rows=100_000)
    assert asked.plan(**SPEND).reason == "triples"
    assert asked.plan(epsilon="1/200").reason == "pairs"
    assert table.synthesis(["sex", "ward", "age"], expected_rows=50).plan(epsilon="1/100").reason == "singles"
    assert asked.question(**SPEND).preview(**SPEND).margin > 0
    assert vault.spent.epsilon == 0


def test_files_hold_the_rows(mixed: SyntheticTable, tmp_path: Path) -> None:
    read = parquet.read_table(mixed.to_parquet(tmp_path / "rows.parquet"))
    assert read.equals(mixed.rows)
    assert read.schema.metadata[b"sfumato.release"].decode() == mixed.release.statement.identifier
    assert csv.read_csv(mixed.to_csv(tmp_path / "rows.csv")).num_rows == 2_000
    with pytest.raises(InvalidInput, match="cannot be written"):
        mixed.to_parquet(tmp_path / "nowhere" / "rows.parquet")


@pytest.mark.claim("S0-28")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_text_claims_more_than_the_guarantee(mixed: SyntheticTable, language: str) -> None:
    """Every text that can stand beside the rows, whatever was measured."""
    from tests.synthesis.texts import every_text

    for text in (mixed.explain(language), *every_text(language)):
        for claim in CLAIMS[language]:
            assert claim not in text.casefold()
    assert {"en": "ε = 4", "zh": "ε = 4"}[language] in mixed.explain(language)


CLAIMS = {
    "en": (
        "real person",
        "real individual",
        "no real",
        "anonym",
        "nobody",
        "fictitious",
        "cannot be identified",
        "safe",
    ),
    "zh": ("真实个人", "真实的人", "匿名", "无法识别", "不含真实", "安全"),
}


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"columns": []}, InvalidInput, "list of different columns"),
    ({"columns": "sex"}, InvalidInput, "list of different columns"),
    ({"columns": ["sex", "sex"]}, InvalidInput, "list of different columns"),
    ({"columns": ["id"]}, NotDeclared, "neither declared keys nor bounds"),
    ({"rows": 0}, InvalidInput, "rows is a whole number"),
    ({"rows": True}, InvalidInput, "rows is a whole number"),
    ({"bins": {"sx": 3}}, InvalidInput, "none of the columns"),
    ({"bins": {"age": 1}}, InvalidInput, "2 to 1,000"),
    ({"bins": {"age": [50, 20]}}, InvalidInput, "must rise"),
    ({"bins": {"age": [20.5]}}, InvalidInput, "whole numbers"),
    ({"bins": {"age": [500]}}, InvalidInput, "one bin alone"),
    ({"missing": ["nothing"]}, InvalidInput, "none of the columns"),
    ({"workload": [["sex", "sx"]]}, InvalidInput, "none of the columns"),
    ({"workload": [["sex"], ["sex"]]}, InvalidInput, "different tables"),
    ({"workload": [["sex", "ward", "pregnant", "age"]]}, InvalidInput, "different tables"),
    ({"never": [{"sex": "M"}]}, InvalidInput, "two columns each"),
    ({"never": [{"sex": "X", "pregnant": True}]}, InvalidInput, "does not have"),
    ({"never": [{"sex": "M", "age": 3}]}, InvalidInput, "has bins"),
    ({"at_least": [("sex", "age")]}, InvalidInput, "two columns with bins"),
    ({"at_least": [("age", "age")]}, InvalidInput, "two columns with bins"),
    ({"columns": 3}, InvalidInput, "list of different columns"),
    ({"columns": [["sex"]]}, InvalidInput, "list of different columns"),
    ({"rows": 8.0}, InvalidInput, "rows is a whole number"),
    ({"expected_rows": 0}, InvalidInput, "expected_rows is a whole number"),
    ({"expected_rows": "many"}, InvalidInput, "expected_rows is a whole number"),
    ({"bins": 8}, InvalidInput, "maps columns to their bins"),
    ({"bins": [3]}, InvalidInput, "maps columns to their bins"),
    ({"bins": {"age": 8.0}}, InvalidInput, "whole number from 2"),
    ({"bins": {"age": "8"}}, InvalidInput, "whole number from 2"),
    ({"bins": {"age": True}}, InvalidInput, "whole number from 2"),
    ({"bins": {"age": [20, None]}}, InvalidInput, "edge is NoneType"),
    ({"bins": {"age": [date(2026, 1, 1)]}}, InvalidInput, "must be numbers"),
    ({"bins": {"age": list(range(1_001))}}, InvalidInput, "more than 1,000 bins"),
    ({"missing": 3}, InvalidInput, "a list was expected"),
    ({"missing": "sex"}, InvalidInput, "a list was expected"),
    ({"missing": [3]}, InvalidInput, "names columns"),
    ({"workload": 3}, InvalidInput, "a list was expected"),
    ({"workload": [3]}, InvalidInput, "lists tables"),
    ({"workload": [["sex", 3]]}, InvalidInput, "none of the columns"),
    ({"workload": {("sex", "ward"): 10**400}}, InvalidInput, "an importance is a number"),
    ({"workload": {("sex", "ward"): "x"}}, InvalidInput, "importance"),
    ({"workload": {("sex", "ward"): 0}}, InvalidInput, "importance"),
    ({"never": {"sex": "M", "pregnant": True}}, InvalidInput, "a list was expected"),
    ({"never": [3]}, InvalidInput, "two columns each"),
    ({"never": [{"sex": {}, "pregnant": True}]}, InvalidInput, "does not have"),
    ({"never": [{"sex": [], "pregnant": True}]}, InvalidInput, "does not have"),
    ({"never": [{"sex": "M", "pregnant": 1}]}, InvalidInput, "does not have"),
    ({"at_least": [3]}, InvalidInput, "two columns with bins"),
    ({"at_least": 3}, InvalidInput, "a list was expected"),
    ({"consistent_with": 3}, InvalidInput, "a list of releases"),
    ({"consistent_with": ["release"]}, InvalidInput, "no release"),
]


@pytest.mark.parametrize(("given", "error", "words"), WRONG, ids=str)
def test_what_makes_no_sense_is_refused_before_anything_is_read(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    vault, table = world(people(10))
    with pytest.raises(error, match=words) as caught:
        table.synthesize(**{"columns": ["sex", "ward", "pregnant", "age"], **SPEND, **given})
    assert "nothing was" in str(caught.value).lower()
    with pytest.raises(InvalidInput, match="not grouped"):
        table.group_by("sex").synthesize(**SPEND)
    assert vault.spent.epsilon == 0


ODD: list[Any] = [None, True, -1, 0, 3, 8.0, float("nan"), 10**400, "x", b"x", [], [3], [None], [[]], {}, {"age": {}}]
ODD += [{"age": 3}, {3: 3}, {("sex", "ward"): None}, [("age", 3)], [{"sex": 3, "ward": 3}], object(), date(2026, 1, 1)]


@pytest.mark.parametrize(
    "name", ["columns", "rows", "expected_rows", "bins", "missing", "workload", "never", "at_least", "consistent_with"]
)
def test_odd_arguments_are_refused_in_words(name: str) -> None:
    """Whatever is handed in is taken, or refused as what the package refuses with; nothing is read or spent."""
    vault, table = world(people(10))
    refused = []
    for odd in ODD:
        try:
            table.synthesis(**{"columns": ["sex", "ward", "pregnant", "age"], name: odd}).plan(**SPEND)
        except (InvalidInput, NotDeclared) as error:
            refused.append(str(error).lower())
    assert len(refused) > len(ODD) / 2
    assert all("nothing was" in words for words in refused)
    assert vault.spent.epsilon == 0


def test_rules_that_no_row_keeps_are_refused_before_the_charge() -> None:
    vault, table = world()
    every = [{"sex": ["F", "M"], "ward": ["A", "B", "C"]}]
    with pytest.raises(InvalidInput, match="no row keeps"):
        table.synthesize(["sex", "ward"], never=every, **SPEND)
    assert vault.spent == sf.Budget.none()


def test_rules_in_a_row_hold_together() -> None:
    _, table = world()
    bins = {"age": 10, "died": 3, "weight": 10}
    rules = [("weight", "died"), ("died", "age")]
    made = table.synthesize(["age", "died", "weight"], bins=bins, at_least=rules, rows=2_000, **SPEND).rows
    for larger, smaller in [*rules, ("weight", "age")]:
        assert pc.all(pc.greater_equal(made[larger], made[smaller])).as_py()


def test_more_cells_than_a_fit_can_hold_are_refused_before_the_charge() -> None:
    vault, table = world()
    with pytest.raises(InvalidInput, match="together"):
        table.with_keys(id=range(4_000)).synthesize(["sex", "id"], **SPEND)
    assert vault.spent == sf.Budget.none()
