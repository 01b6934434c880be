"""What a reviewer found: each once wrong, and right since."""

import dataclasses
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.core.question import Question
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.mechanisms import Laplace
from sfumato.noise import SystemWords
from sfumato.tables.estimators import Reader
from sfumato.tables.schema import ColumnFacts

LIMIT = sf.Limit(groups=1, rows_per_group=1)


def table(relation: str = "add/remove", **declared: Any) -> Any:
    budget = sf.Budget(epsilon=1000, delta=1e-6)
    vault = sf.Vault(unit=sf.user("id", relation=relation), budget=budget, name="reviewed")
    return vault.table(
        pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "k": ["a", "b", "b"], "t": [True, False, None]}),
        name="visits",
        version="1",
        limit=LIMIT,
        bounds={"x": (0, 10)},
        keys={"k": ["a", "b"]},
        **declared,
    )


@pytest.mark.parametrize("number", [7, 100])
def test_a_number_of_units_that_nobody_declared_is_not_signed(number: int) -> None:
    visits = table("replace", n_units=3)
    query = visits.mean(sf.coalesce(sf.col("x"), 5)).query
    assert query.number == 3
    asked = Question(query=dataclasses.replace(query, number=number), gate=visits._gate)
    with pytest.raises(Refused, match="was not declared"):
        asked.release(epsilon=1)
    assert visits._gate.spent.epsilon == 0


@pytest.mark.parametrize("number", [0, -1])
def test_a_number_of_units_is_above_0(number: int) -> None:
    query = table("replace", n_units=3).mean(sf.coalesce(sf.col("x"), 5)).query
    with pytest.raises(InvalidInput):
        dataclasses.replace(query, number=number)


PREVIEWED = {
    "a mean": {"m": sf.mean("x")},
    "a mean beside a variance": {"m": sf.mean("x"), "v": sf.variance("x")},
    "a covariance beside a correlation": {
        "m": sf.covariance("x", sf.col("x") + 1),
        "r": sf.correlation("x", sf.col("x") + 1),
    },
}


@pytest.mark.long
@pytest.mark.parametrize("case", PREVIEWED)
@pytest.mark.alpha(1e-9)
def test_a_preview_is_not_smaller_than_the_error_at_the_end_of_the_range(case: str) -> None:
    """All values lie at the low bound, the worst place; the margin told beforehand covers 94.5% of the errors at least.

    α = 1e-9 for 2,000 draws; the margins that forgot two of the noises missed 7.5% and 10%.
    """
    visits = table()
    query = visits.agg(**PREVIEWED[case]).query
    rows, words, missed = 2_000, SystemWords(), 0
    mechanism = Laplace.calibrated(l1=query.sensitivity(visits._gate.unit, LIMIT).l1, epsilon=1)
    margin = query.expected(mechanism.law, Fraction(19, 20), joint=False, rows=rows)["m"]
    exact = [rows * query.blocks[0].height, *([0] * (query.size - 1))]  # the first part is that of the lowest value
    for _ in range(2_000):
        reader = Reader(
            blocks=query.blocks,
            cells=1,
            number=None,
            identifier="draw",
            law=mechanism.law,
            values=mechanism.add_noise(exact, words),
            labels={},
            sources=(),
        )
        column: Any = query.measures[0].estimate(reader)
        if "covariance" in case:
            value = float(column.scale) * column.moments[0].estimate()
        else:
            value = float(column.over[0].value / column.under[0].value)
        missed += abs(value) > margin
    assert stats.binomtest(missed, 2_000, 0.055, alternative="greater").pvalue > 1e-9


def test_the_rest_of_a_column_is_called_by_a_text() -> None:
    with pytest.raises(InvalidInput, match="cannot be called"):
        table().group_by("k", other=3)


@pytest.mark.parametrize("column", ["persons", "persons_data_low", "persons_data_high"])
def test_found_keys_do_not_hide_behind_the_ends_of_an_interval(column: str) -> None:
    with pytest.raises(InvalidInput, match="which the answer has"):
        table().find_keys(column)


@pytest.mark.parametrize("text", ["t = t IS NULL", "t = x < 2", "x < 2 = t", "t = k IN ('a')"])
def test_a_comparison_of_a_comparison_needs_brackets(text: str) -> None:
    with pytest.raises((Unsupported, InvalidInput)):
        table().where(text)


def test_in_brackets_it_is_a_truth_value() -> None:
    assert table().where("t = (x < 2)").predicate is not None


@pytest.mark.parametrize("rows", [-5, 0, 10.5, "many"])
def test_the_rows_of_a_preview_are_a_whole_number(rows: Any) -> None:
    with pytest.raises(InvalidInput, match="rows"):
        table().mean("x").preview(epsilon=1, rows=rows)
    with pytest.raises(InvalidInput, match="rows"):
        table().mean("x").epsilon_for(margin=1, rows=rows)


@pytest.mark.parametrize("values", [None, 5])
def test_keys_that_are_no_list_are_refused(values: Any) -> None:
    with pytest.raises(InvalidInput, match="list of values"):
        table().with_keys(k=values)


def test_bounds_that_are_no_pair_are_refused() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="reviewed")
    with pytest.raises(InvalidInput, match="not a pair"):
        vault.table(pa.table({"x": [1]}), name="t", bounds={"x": 5})


def test_a_condition_in_sql_names_joined_columns() -> None:
    visits = table()
    places = visits._gate.public(pa.table({"k": ["a", "b"], "beds": [1, 2]}), name="places")
    joined = visits.join(places, on="k")
    assert joined.where("places.beds > 1").predicate == joined.where(sf.col("places.beds") > 1).predicate


def test_a_public_number_is_not_used_for_what_a_join_leaves() -> None:
    visits = table("replace", n_units=3)
    places = visits._gate.public(pa.table({"k": ["a"]}), name="places")
    joined = visits.join(places, on="k").mean(sf.coalesce(sf.col("x"), 5)).query
    assert joined.number is None
    with pytest.raises(InvalidInput, match="what a join leaves"):
        dataclasses.replace(joined, number=3)


def test_the_population_of_a_schema_judges_the_delta_of_the_vault() -> None:
    column = ColumnFacts(name="x", type=Type.WHOLE)
    small, large = (sf.Schema(columns=(column,), name="t", population=size) for size in (10**5, 10**7))
    budget = sf.Budget(epsilon=1, delta=1e-6)
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="reviewed")
    with pytest.raises(Refused, match="publishing one person at random"):
        vault.table(pa.table({"x": [1]}), schema=large)
    assert vault.table(pa.table({"x": [1]}), schema=small).dataset.name == "t"


def test_a_public_number_does_not_change_what_a_mean_is() -> None:
    """With 500 ones and 500 missing values a mean was 1.0 without the number, and 25.5 with it."""
    rows = pa.table({"id": range(1000), "x": [1.0] * 500 + [None] * 500})
    vault = sf.Vault(unit=sf.user("id", relation="replace"), budget=sf.Budget(epsilon=10**6), name="reviewed")
    facts = {"version": "1", "limit": LIMIT, "bounds": {"x": (0, 100)}}
    known = vault.table(rows, name="known", n_units=1000, **facts)
    unknown = vault.table(rows, name="unknown", **facts)
    for asked in (known, unknown):
        assert asked.mean("x").query.number is None
        assert asked.mean("x").release(epsilon=1000).columns["mean"].values[0] == pytest.approx(1, abs=0.01)
        assert asked.sum("x").release(epsilon=1000).columns["sum"].values[0] == pytest.approx(500, abs=5)
    filled = sf.coalesce(sf.col("x"), 3)
    assert known.mean(filled).query.number == 1000
    assert known.mean(filled).release(epsilon=1000).columns["mean"].values[0] == pytest.approx(2, abs=0.01)
    assert unknown.mean(filled).release(epsilon=1000).columns["mean"].values[0] == pytest.approx(2, abs=0.01)
    assert known.mean(sf.when(sf.col("x") > 0).then(sf.col("x"))).query.number is None
