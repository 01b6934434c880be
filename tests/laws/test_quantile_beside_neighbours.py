"""The brute-force law of a quantile beside other measures: rows, persons and bins together, through the engine's plan.

The parts of one question are counted by separate plans, and a person's groups are chosen in each: no neighbours may be
further apart in all numbers together than the question states, which is what its noise is made for.
"""

from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines.bounded import KeyColumn, totals_by_cell
from sfumato.engines.expressions import col
from sfumato.engines.quantile_counts import rows_by_value
from sfumato.engines.sufficient_statistics import Histogram
from sfumato.engines.totals import brought_out
from sfumato.tables.clamped import Clamped
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.quantile import QuantileValue
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.queries.aggregate import Aggregate
from tests.laws.neighbours import furthest, stated
from tests.laws.plans import loaded
from tests.laws.scenarios import RELATIONS, limit_for, share_for, unit_of
from tests.laws.test_quantile_query_neighbours import BY, CASES, LIMITS, around

pytestmark = pytest.mark.no_cover  # hundreds of worlds for each question

AGE = Clamped(value=col("age").nearest().node, low=Fraction(0), high=Fraction(4))
MEASURES: dict[str, tuple[Any, ...]] = {
    "rows and the median": (RowCount(name="n"), QuantileValue(name="it", of=AGE, level=Fraction(1, 2))),
    "two quantiles": tuple(QuantileValue(name=f"q{q}", of=AGE, level=Fraction(q, 10)) for q in (1, 9)),
    "persons, the mean and the median": (
        PersonCount(name="n"),
        MeanValue(name="mean", of=AGE),
        QuantileValue(name="it", of=AGE, level=Fraction(1, 2)),
    ),
}


def question(name: str, by: str) -> Aggregate:
    return Aggregate(dataset=Dataset(name="visits", edition="1"), measures=MEASURES[name], by=BY[by])


@cache
def numbers(name: str, by: str, kind: str, limit: Limit) -> np.ndarray:
    """All numbers of a question in every world: worlds × (parts and cells)."""
    keys = [KeyColumn(column=keys.column, values=keys.values) for keys in BY[by]]
    worlds, cells = len(around(kind).worlds), 3 if keys else 1
    asked: dict[str, Any] = {"where": None, "keys": keys, "share": share_for(kind, limit), "world": "world"}
    parts: list[np.ndarray] = []
    blocks = question(name, by).blocks
    gauges = [block.gauge for block in blocks if not isinstance(block.gauge, Histogram)]
    if gauges:
        found: Any = brought_out(totals_by_cell(loaded(around(kind)), gauges=gauges, **asked))
        place = found.pop("world"), found.pop("cell")
        for column in found.values():
            part = np.zeros((worlds, cells), dtype=np.int64)
            part[place] = column
            parts.append(part)
    for block in blocks:
        if isinstance(block.gauge, Histogram):
            found = brought_out(rows_by_value(loaded(around(kind)), lattice=block.gauge.lattice, **asked))
            part = np.zeros((worlds, cells, block.reach.numbers), dtype=np.int64)
            part[found["world"], found["cell"], found["value"]] = np.array(found["total"]) * block.height
            parts.append(part.reshape(worlds, -1))
    return np.concatenate(parts, axis=1)


def moved_and_stated(
    name: str, by: str, kind: str, limit: Limit, relation: Relation, *, enforced: Limit | None = None
) -> tuple[dict[str, int], dict[str, Fraction]]:
    """The furthest that neighbours are apart under a limit, and what is stated for that limit, by norm."""
    moved = furthest(numbers(name, by, kind, enforced or limit), around=around(kind), relation=relation)
    return moved, stated(question(name, by).sensitivity(unit_of(kind, relation), limit_for(kind, limit)))


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), CASES, ids=str)
@pytest.mark.parametrize("name", MEASURES)
def test_no_unit_moves_a_question_with_quantiles_further_than_stated_and_some_as_far(
    name: str, kind: str, limit: Limit, relation: Relation
) -> None:
    for by in BY:
        moved, bounds = moved_and_stated(name, by, kind, limit, relation)
        assert all(moved[norm] <= bounds[norm] for norm in bounds), (by, moved, bounds)
        if kind != "family" and relation is Relation.ADD_REMOVE:
            # The sums of a mean are scaled down to the limit in doubles, and rounded down.
            assert moved["l1"] >= bounds["l1"] * (1 - Fraction(1, 2**25)), by
            assert moved["l2 squared"] >= bounds["l2 squared"] * (1 - Fraction(1, 2**25)), by


def test_the_parts_of_a_question_split_its_loss_and_quantiles_of_one_value_share_theirs() -> None:
    unit = unit_of("record", Relation.ADD_REMOVE)
    both, two, three = (question(name, "no keys").sensitivity(unit, None).l1 for name in MEASURES)
    assert both is not None
    assert both.value == 2
    assert two is not None
    assert two.value == 1
    assert three is not None
    assert three.value == 3 * 2**30


def test_a_looser_limit_and_a_question_that_charges_for_one_part_are_caught() -> None:
    """The broken twins."""
    name = "rows and the median"
    for by, relation in product(BY, RELATIONS):
        moved, bounds = moved_and_stated(name, by, "user", LIMITS[0], relation, enforced=LIMITS[1])
        assert all(moved[norm] > bounds[norm] for norm in ("l1", "l2 squared", "linf")), (by, relation)
        moved, bounds = moved_and_stated(name, by, "user", LIMITS[1], Relation.ADD_REMOVE)
        assert moved["l1"] > bounds["l1"] / 2
        assert moved["l2 squared"] > bounds["l2 squared"] / 2
