"""``table.compare_synthetic``: one charge, counts that are those of the data, distances and a test with limits."""

from datetime import date
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Refused
from sfumato.reports.verify import verify
from sfumato.synthesis.agreement import cells_of, coded
from sfumato.synthesis.comparison import SyntheticComparison
from sfumato.synthesis.result import SyntheticTable
from sfumato.tables import Table
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.vault import Vault

EXACT = {"epsilon": 500_000}
KEYS: dict[str, Any] = {"sex": ["F", "M"], "ward": ["A", "B", "C"], "ill": [True, False]}
BOUNDS: dict[str, Any] = {"age": (0, 99), "weight": (2.5, 120), "admitted": (date(2026, 1, 1), date(2026, 12, 31))}
RANDOM = np.random.default_rng(4)


def people(number: int) -> pa.Table:
    age = RANDOM.integers(0, 100, number)
    ill = RANDOM.random(number) < 0.1 + 0.7 * (age > 60)
    return pa.table(
        {
            "id": np.arange(number),
            "sex": np.array(["F", "M"])[RANDOM.integers(0, 2, number)],
            "ward": [None if place % 9 == 0 else "ABC"[place % 3] for place in range(number)],
            "ill": ill,
            "age": age,
            "weight": [None if place % 7 == 0 else 40 + place % 70 for place in range(number)],
            "admitted": [date(2026, 1 + place % 12, 1 + place % 28) for place in range(number)],
        }
    )


def world(rows: pa.Table, unit: Any = None, limit: Any = None) -> tuple[Vault, Table]:
    budget = sf.Budget(epsilon=10**6, delta="1/1000000")
    vault = sf.Vault(unit=unit or sf.record(relation="add/remove"), budget=budget, name="trial")
    return vault, vault.table(rows, name="patients", version="1", keys=KEYS, bounds=BOUNDS, limit=limit)


NAMES = ["sex", "ward", "ill", "age", "weight", "admitted"]


def synthesized(table: Table) -> SyntheticTable:
    bins = {"age": 5, "weight": 4, "admitted": 6}
    return table.synthesize(NAMES, rows=2_000, bins=bins, missing=["ward", "weight"], epsilon=20, delta="1/1000000")


@pytest.fixture(scope="module")
def made() -> SyntheticTable:
    return synthesized(world(people(3_000))[1])


@pytest.fixture(scope="module")
def exact(made: SyntheticTable) -> tuple[pa.Table, SyntheticComparison]:
    """Other people, counted without noise."""
    rows = people(800)
    return rows, world(rows)[1].compare_synthetic(made, outcome="ill").release(**EXACT)


def codes_of(made: SyntheticTable, rows: pa.Table) -> np.ndarray:
    return np.stack([coded(column, rows[column.name]) for column in made.columns], axis=1)


def test_the_tables_are_those_of_the_data(made: SyntheticTable, exact: tuple[pa.Table, SyntheticComparison]) -> None:
    rows, found = exact
    codes, sizes = codes_of(made, rows), [column.size for column in made.columns]
    assert len(found.measured) == 6 + 15
    for table in found.measured:
        assert (table.counts.ravel() == cells_of(codes, table.columns, sizes)).all()
    known = found.distances()
    for table, shares in zip(found.measured, found.shares, strict=True):
        names = tuple(NAMES[place] for place in table.columns)
        variation = np.abs(table.counts.ravel() / 800 - shares).sum() / 2
        assert abs(known[names][0].value - variation) < 1e-4
        assert known[names][0].high - known[names][0].low < 1e-4
    assert {len(names) for names in known} == {1, 2}


def test_the_score_on_the_engine_is_the_score_of_the_model(
    made: SyntheticTable, exact: tuple[pa.Table, SyntheticComparison]
) -> None:
    """Bins of numbers, days, texts and missing values, summed by the engine as by hand."""
    from sfumato.synthesis.score_model import trained

    rows, found = exact
    codes, sizes = codes_of(made, rows), [column.size for column in made.columns]
    model = trained(codes_of(made, made.rows), sizes, 2, 0, 10)
    assert found.test is not None
    for side, counts in enumerate((found.test.events, found.test.others)):
        by_hand = np.bincount(model.bins(codes[codes[:, 2] == side]), minlength=len(counts))
        assert counts.tolist() == by_hand.tolist()
    scores, ill = model.bins(codes), codes[:, 2] == 0
    pairs = np.sign(np.subtract.outer(scores[ill], scores[~ill]))
    assert abs(found.auc - (1 + pairs.mean()) / 2) < 1e-6
    assert abs(found.auc - found.own_auc) < 0.1
    assert found.auc > 0.75


@pytest.mark.claim("S0-27")
def test_one_charge_and_figures_with_limits(made: SyntheticTable) -> None:
    vault, table = world(people(4_000))
    asked = table.compare_synthetic(made, outcome="ill", event=True)
    assert asked.preview(epsilon=1, delta="1/10000000").numbers.margin > 0
    assert vault.spent == sf.Budget.none()
    found = asked.release(epsilon=2, delta="1/10000000")
    assert vault.spent == sf.Budget(epsilon=2, delta="1/10000000")
    assert verify(found.release.certificate.document).consistent
    low, high = found.interval()
    assert low < found.auc < high
    assert low > 0.6
    for variation, divergence in found.distances().values():
        assert 0 <= variation.low <= variation.value <= variation.high <= 1
        assert 0 <= divergence.low <= divergence.value <= divergence.high <= 1
    assert found.to_arrow().num_rows == 21
    assert found.table("auc").columns["auc"] == [found.auc]
    for language, words in (("en", "area under the curve"), ("zh", "曲线下面积")):
        assert words in found.explain(language)
        assert "δ" in found.summary(language)
    assert vault.spent.epsilon == 2
    assert found.distances() == found.distances(), "seeded by the release"


def test_no_row_moves_the_counts_further_than_claimed_and_some_as_far() -> None:
    """Brute force over rows of every cell of the score, added to and taken from a table and exchanged in it."""
    base = people(12)
    made = world(people(500))[1].synthesize(["sex", "ill", "age"], epsilon=20, bins={"age": 4}, rows=500)
    asked = world(base)[1].compare_synthetic(made, outcome="ill").question.query
    assert isinstance(asked, WeightedMarginals)

    def counts(rows: pa.Table) -> np.ndarray:
        table = world(rows)[1]
        return np.array(table.compare_synthetic(made, outcome="ill").question.release(**EXACT).statement.values)

    here = counts(base)
    others = people(9)
    worlds = [counts(pa.concat_tables([base, others.slice(place, 1)])) for place in range(9)]
    added = asked.sensitivity(sf.record(relation="add/remove"), None)
    moves = [np.abs(there - here) for there in worlds]
    assert added.l1 is not None
    assert added.l2 is not None
    assert max(move.sum() for move in moves) == added.l1.value == sum(asked.weights)
    assert max((move**2).sum() for move in moves) == added.l2.squared == sum(weight**2 for weight in asked.weights)
    assert max((move > 0).sum() for move in moves) == len(asked.tables), "one cell of every table"
    replaced = asked.sensitivity(sf.record(relation="replace"), None)
    assert replaced.l1 is not None
    swaps = [np.abs(one - two).sum() for one, two in combinations(worlds, 2)]
    assert max(swaps) <= replaced.l1.value == 2 * sum(asked.weights)
    assert max(swaps) > 1.5 * sum(asked.weights)


def test_of_a_person_one_row_counts(made: SyntheticTable) -> None:
    unit = sf.user("id", relation="add/remove")
    table = world(people(200), unit=unit, limit=sf.Limit(groups=1, rows_per_group=1))[1]
    assert table.compare_synthetic(made, ways=1).release(**EXACT).total == pytest.approx(200)
    several = world(people(200), unit=unit, limit=sf.Limit(groups=1, rows_per_group=3))[1]
    with pytest.raises(Refused, match="nothing was spent"):
        several.compare_synthetic(made)


def test_the_model_alone_has_the_least_noise(made: SyntheticTable) -> None:
    table = world(people(1_000))[1]
    both = table.compare_synthetic(made, outcome="ill").release(epsilon=1)
    alone = table.compare_synthetic(made, outcome="ill", ways=0).release(epsilon=1)
    assert both.test is not None
    assert alone.test is not None
    assert alone.test.sigma < both.test.sigma / 3
    assert alone.measured == ()
    assert [table.name for table in alone.tables()] == ["auc"]
    assert "total variation" not in alone.explain()
    columns = table.compare_synthetic(made, ways=1).release(epsilon=1)
    assert len(columns.measured) == 6
    assert columns.auc != columns.auc
    assert columns.interval() == (0.0, 1.0)


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize(("epsilon", "error"), [("1/10", 0.0076), ("1/2", 0.0017)])
def test_the_error_that_noise_adds_to_the_area(made: SyntheticTable, epsilon: str, error: float) -> None:
    """10,000 people, 10 bins, the whole charge for the histogram: RMSE over 40 draws, within a factor of 1.8."""
    table = world(people(10_000))[1]
    asked = table.compare_synthetic(made, outcome="ill", ways=0)
    truth = asked.release(**EXACT).auc
    found = [asked.release(epsilon=epsilon, fresh=True).auc for _ in range(40)]
    assert error / 1.8 < np.sqrt(np.mean((np.array(found) - truth) ** 2)) < 1.8 * error


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"ways": 3}, "ways is 2"),
    ({"ways": 0}, "needs an outcome"),
    ({"bins": 1, "outcome": "ill"}, "bins"),
    ({"outcome": "age"}, "no column of the synthetic rows with declared keys"),
    ({"outcome": "nothing"}, "no column of the synthetic rows"),
    ({"outcome": "ward"}, "an outcome has two"),
    ({"outcome": "ill", "event": "yes"}, "no value of the outcome"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=str)
def test_what_makes_no_sense_is_refused_before_anything_is_read(
    made: SyntheticTable, given: dict[str, Any], words: str
) -> None:
    vault, table = world(people(10))
    with pytest.raises(InvalidInput, match=words) as caught:
        table.compare_synthetic(made, **given)
    assert "nothing was" in str(caught.value).lower()
    with pytest.raises(InvalidInput, match="takes what"):
        table.compare_synthetic(people(5))  # type: ignore[arg-type]  # rows of people, not made rows
    with pytest.raises(InvalidInput, match="same order"):
        table.with_keys(sex=["M", "F"]).compare_synthetic(made)
    with pytest.raises(InvalidInput, match="not grouped"):
        table.group_by("sex").compare_synthetic(made)
    assert vault.spent == sf.Budget.none()


def test_a_model_that_has_nothing_to_learn_is_refused() -> None:
    from sfumato.synthesis.score_model import trained

    codes = np.zeros((50, 2), dtype=np.int32)
    with pytest.raises(InvalidInput, match="with the event and without"):
        trained(codes, (2, 2), 1, 0, 10)
    codes[::2, 1] = 1
    with pytest.raises(InvalidInput, match="the same score"):
        trained(codes, (2, 2), 1, 0, 10)
    with pytest.raises(InvalidInput, match="needs a covariate"):
        trained(codes[:, 1:], (2,), 0, 0, 10)


def test_values_at_an_edge_lie_in_the_bin_that_they_are_drawn_in() -> None:
    """Whole numbers between bounds that are not: what is counted in a bin is what is drawn in it."""
    rows = pa.table({"x": [*range(3, 13)]})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="trial")
    table = vault.table(rows, name="numbers", version="1", bounds={"x": (2.5, 12.5)})
    made = table.synthesize(epsilon=200, bins={"x": 2}, rows=10)
    (column,), (counts,) = made.columns, [each.counts for each in made.measured]
    held = coded(column, rows["x"])
    assert counts.round().tolist() == np.bincount(held).tolist()
