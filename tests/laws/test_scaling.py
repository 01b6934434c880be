"""Persons above the limit are scaled down by doubles, and never to more than the limit: real lattices, huge numbers."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.engines.bounded import Share, totals_by_cell
from sfumato.engines.expressions import col
from sfumato.engines.lattice import Lattice
from sfumato.engines.sufficient_statistics import Everyone, Gauge, Powers, Products, Signed, Split
from sfumato.tables.statistic_plan import _reach
from tests.laws.plans import engine

STEPS, ROOT = 2**30, 2**15
X = Lattice(value=col("x").node, low=Fraction(0), high=Fraction(1), steps=STEPS)
ROOTS = [Lattice(value=col(name).node, low=Fraction(0), high=Fraction(1), steps=ROOT) for name in ("x", "y")]
GAUGES: dict[str, Gauge] = {
    "split": Split(height=STEPS, condition=col("x") > Fraction(1, 2)),
    "whole split": Split(height=1, condition=col("x") > Fraction(1, 2)),
    "powers": Powers(lattice=X, degree=1, missing=True),
    "squares": Powers(lattice=ROOTS[0], degree=2, missing=True),
    "products": Products(first=ROOTS[0], second=ROOTS[1], degree=2),
    "fine squares": Powers(lattice=X, degree=2, missing=True),
    "fine products": Products(
        first=X, second=Lattice(value=col("y").node, low=X.low, high=X.high, steps=STEPS), degree=2
    ),
}


def registered(columns: dict[str, Any], name: str) -> Any:
    engine().con.register(name, pa.table(columns))
    return engine().table(name)


@pytest.mark.few(4)
@pytest.mark.parametrize("rows", [1, 3, 1000, 2**31])
@pytest.mark.parametrize("name", GAUGES)
def test_scaled_parts_are_whole_not_negative_and_within_the_limit(name: str, rows: int) -> None:
    """Sums of a person, handed over as they are: at the limit, one above it, and far above it, in every mixture."""
    gauge = GAUGES[name]
    numbers, most = _reach(gauge).numbers, rows * gauge.height  # type: ignore[attr-defined]
    random = np.random.default_rng(7)  # what is tested needs no secret
    weights = random.dirichlet([0.3] * numbers, size=4000)
    totals = [most, most + 1, most + 2, *(most + most // part + 1 for part in (2**40, 1000, 3, 1)), 2**62]
    sums = []
    for at, weight in enumerate(weights):
        total = max(most, min(totals[at % len(totals)], 2**62))
        parts = [int(Fraction(share) * total) for share in weight]
        sums.append([*parts[:-1], total - sum(parts[:-1])])
    sums += [[most if at == part else extra for at in range(numbers)] for part in range(numbers) for extra in (0, 1)]
    columns = np.array(sums, dtype=np.int64).T
    table = registered({f"s{at}": column for at, column in enumerate(columns)}, "sums")
    held = gauge.of_person([table[f"s{at}"] for at in range(numbers)], rows)
    found = table.select(**{f"p{at}": part for at, part in enumerate(held)}).to_pyarrow()
    parts = np.array([[int(it) for it in found[f"p{at}"].to_pylist()] for at in range(numbers)], dtype=object).T
    together = parts.sum(axis=1)
    above = np.array([sum(row) > most for row in sums])
    assert (parts >= 0).all()
    assert (together <= most).all()
    assert (parts[~above] == np.array(sums, dtype=object)[~above]).all()
    assert above.sum() > 3000
    if gauge.height > 1:  # type: ignore[attr-defined]
        # Little is given away: a part in 2^40, and less than one for each number.
        assert (together[above] >= most - most // 2**39 - numbers).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_person_with_a_hundred_thousand_rows_counts_as_the_limit_says(rows: int) -> None:
    many = 100_000
    place = np.arange(many)
    table = registered(
        {
            "person": pa.array(["p"] * many),
            "x": pa.array(place % 7 / 7.0, mask=place % 11 == 0),
            "y": pa.array(place % 5 / 4.0, mask=place % 13 == 0),
        },
        "crowded",
    )
    share = Share(column="person", limit=Limit(groups=1, rows_per_group=rows), secret="s")  # noqa: S106
    signed = Signed(
        lattice=Lattice(value=col("x").node, low=Fraction(-1), high=Fraction(1), steps=2 * STEPS), zero=STEPS
    )
    everyone = Everyone(lattice=ROOTS[0], degree=2)
    gauges = [*GAUGES.values(), signed, everyone]
    found = totals_by_cell(table, where=None, keys=[], share=share, gauges=gauges).to_pyarrow()
    first = 0
    for gauge in gauges:
        reach = _reach(gauge)
        parts = [int(found[f"part{first + at}"][0].as_py()) for at in range(reach.numbers)]
        first += reach.numbers
        worth = 1 if gauge is everyone else rows
        assert sum(abs(part) for part in parts) <= worth * reach.alone.l1
        assert sum(part**2 for part in parts) <= worth**2 * reach.alone.l2_squared
        if gauge not in (everyone, GAUGES["whole split"]):
            assert sum(abs(part) for part in parts) >= worth * reach.alone.l1 * (1 - 1e-6)
