"""What the catalogue of claims says of tables, shown through the public face: declare, ask, release."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation, Unit
from sfumato.engines.bounded import KeyColumn
from sfumato.engines.sources import Source
from sfumato.inference import whole_table
from sfumato.inference.figure import Figure
from sfumato.inference.ratio import Ratio
from sfumato.mechanisms import Laplace
from sfumato.noise import SystemWords
from sfumato.tables import Table
from sfumato.tables.contribution import contribution, joint_reach
from sfumato.tables.execution import Beside, exact_numbers
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.statistic_plan import STEPS, _reach
from tests.laws.neighbours import furthest, stated
from tests.laws.readings import GAUGES, ZIPS, Layout, load, totals
from tests.laws.scenarios import SECRET, share_for

ONE = sf.Limit(groups=1, rows_per_group=1)


def table(data: pa.Table, unit: Unit, **facts: Any) -> Table:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1000), name="trial")
    return vault.table(data, name="visits", version="1", **facts)


def scale_of(release: Any) -> Fraction:
    """The scale of the Laplace noise of a release, in its own whole numbers."""
    mechanism = release.statement.mechanism
    assert isinstance(mechanism, Laplace)
    return mechanism.scale


# ------------------------------------------------------------------------------------------- S1-04: case counts

REGIONS = ["north", "south", "nobody lives here"]


@pytest.mark.few(2)
@pytest.mark.claim("S1-04")
@pytest.mark.parametrize("records", [1, 4])
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_a_heat_map_of_cases_has_noise_of_k_over_epsilon(relation: str, records: int) -> None:
    rows = pa.table({"id": [1, 1, 2, 3], "region": ["north", "north", "south", "south"]})
    limit = sf.Limit(groups=1, rows_per_group=records)
    cases = table(rows, sf.user("id", relation=relation), limit=limit, keys={"region": REGIONS})
    release = cases.group_by("region").count().release(epsilon="1/2")
    assert scale_of(release) == records * (2 if relation == "replace" else 1) / Fraction(1, 2)
    assert release.to_arrow()["region"].to_pylist() == REGIONS
    draws = {cases.group_by("region").count().release(epsilon="1/100", fresh=True).values[2] for _ in range(8)}
    assert len(draws) > 1  # the empty region has noise of its own: scale 100, eight equal draws below 1e-14


# ------------------------------------------------------------------------------------------ S1-05: clipped means


def public_mean(values: Sequence[float]) -> tuple[Aggregate, pa.Table, Any]:
    rows = pa.table({"id": range(len(values)), "sbp": [float(value) for value in values]})
    unit = sf.user("id", relation="replace")
    asked = table(rows, unit, limit=ONE, bounds={"sbp": (80, 220)}, n_units=len(values)).mean(
        sf.coalesce(sf.col("sbp"), 150)
    )
    assert isinstance(asked.query, Aggregate)
    return asked.query, rows, asked


@pytest.mark.claim("S1-05")
def test_a_clipped_mean_of_a_public_number_has_noise_of_the_range_over_n_epsilon() -> None:
    query, _, asked = public_mean([120] * 1000)
    step = Fraction(140, STEPS)  # what one step of the lattice adds to the sum
    sensitivity = query.sensitivity(sf.user("id", relation="replace"), ONE)
    assert sensitivity.l1 is not None
    assert sensitivity.l1.value * step / 1000 == Fraction(140, 1000)
    release = asked.release(epsilon=1)
    assert isinstance(release["mean"], Figure)
    assert scale_of(release) * step / 1000 == Fraction(14, 100)
    assert abs(release["mean"].values[0] - 120) < 0.14 * 40  # e^-40


@pytest.mark.few(2)
@pytest.mark.claim("S1-05")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_largest_move_of_a_clipped_mean_is_the_range_over_n(number: int) -> None:
    """Everyone keeps their value but one, who may have any: within, at and beyond the bounds."""
    values = (-1e9, 80.0, 113.5, 220.0, 1e300)
    unit, moves = sf.user("id", relation="replace"), []
    for rest in product((80.0, 220.0), repeat=number - 1):
        sums = []
        for value in values:
            query, rows, _ = public_mean([*rest, value])
            (exact,) = exact_numbers(query, Beside(own=Source(rows)), unit=unit, limit=ONE, secret=SECRET)
            sums.append(exact * Fraction(140, STEPS))
        moves.append((max(sums) - min(sums)) / number)
    assert max(moves) == Fraction(140, number)


@pytest.mark.claim("S1-05")
def test_without_a_public_number_the_mean_is_a_noisy_sum_over_a_noisy_count() -> None:
    rows = pa.table({"id": range(1000), "sbp": [120.0] * 1000})
    secret = table(rows, sf.user("id", relation="add/remove"), limit=ONE, bounds={"sbp": (80, 220)})
    centred = secret.sum(sf.col("sbp") - 150).release(epsilon=1)
    assert scale_of(centred) * Fraction(70, STEPS) == 70  # half of the range
    assert isinstance(secret.mean("sbp").release(epsilon=1)["mean"], Ratio)
    # Both at ε/2 would have twice the variance 2·(70/(ε/2))²/n² for a mean at a bound, a margin of about 0.57 at 95%.
    assert secret.mean("sbp").preview(epsilon=1, rows=1000).margins["mean"] < Fraction(50, 100)
    with pytest.raises(sf.errors.Refused, match="the number of units is secret under add/remove"):
        table(rows, sf.user("id", relation="add/remove"), limit=ONE, n_units=1000)


# --------------------------------------------------------------------------- S1-06: a table with a known total

TWO_BY_TWO = {"infected": [True, False], "vaccinated": [True, False]}


@pytest.mark.claim("S1-06")
@pytest.mark.parametrize(("relation", "l1"), [("replace", 2), ("add/remove", 1)])
def test_a_two_by_two_table_is_adjusted_to_a_total_for_nothing(relation: str, l1: int) -> None:
    cells = {(True, True): 3, (True, False): 40, (False, True): 7, (False, False): 950}
    rows = [cell for cell, number in cells.items() for _ in range(number)]
    data = pa.table({"infected": [row[0] for row in rows], "vaccinated": [row[1] for row in rows]})
    visits = table(data, sf.record(relation=relation), keys=TWO_BY_TWO)
    release = visits.group_by("infected", "vaccinated").count().release(epsilon=1)
    assert scale_of(release) == l1
    spent = visits._gate.spent  # type: ignore[attr-defined]
    # Under replace the total is public. Under add/remove it is estimated: here by the noisy counts themselves.
    total = 1000 if relation == "replace" else sum(release.values)
    adjusted = whole_table(release, total=total)
    assert sum(adjusted.values) == total
    assert min(adjusted.values) >= 0
    assert all(isinstance(value, int) for value in adjusted.values)
    assert adjusted.raw.values == release.values
    assert visits._gate.spent == spent  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------- S2-14: the cost of privacy

DRAWS = 2_000_000


def added_error(values: Sequence[float], *, factor: Fraction = Fraction(1)) -> tuple[float, float]:
    """The mean squared error that noise adds to a mean, and τ²/n² by the law that the release states."""
    query, rows, asked = public_mean(values)
    mechanism = asked.release(epsilon=1).statement.mechanism
    unit = sf.user("id", relation="replace")
    (exact,) = exact_numbers(query, Beside(own=Source(rows)), unit=unit, limit=ONE, secret=SECRET)
    drawn = Laplace(l1=mechanism.l1, scale=mechanism.scale * factor).add_noise([exact] * DRAWS, SystemWords())
    unit_of_mean = 140 / STEPS / len(values)
    means = 80 + np.array(drawn, dtype=np.float64) * unit_of_mean
    true = float(np.mean(values))
    return float(np.mean((means - true) ** 2)), float(mechanism.law.variance) * unit_of_mean**2


@pytest.mark.claim("S2-14")
@pytest.mark.parametrize("values", [[120.0] * 50, [80.0, 220.0] * 25], ids=["all alike", "far apart"])
@pytest.mark.alpha(1e-9)
def test_noise_adds_its_variance_over_n_squared_whatever_the_data(values: list[float]) -> None:
    """The mean square of Laplace draws has a relative standard error of √(5/n): 1% is 6.3 of them (α < 1e-9)."""
    found, expected = added_error(values)
    assert abs(found / expected - 1) < 0.01
    # Both data have the same cost, and it is that of Lap(140/(n·ε)): 2·(140/50)².
    assert expected == pytest.approx(2 * (140 / 50) ** 2, rel=1e-9)


@pytest.mark.claim("S2-14")
@pytest.mark.alpha(1e-12)
def test_the_wrong_scale_is_noticed_and_active_clipping_adds_a_bias_of_its_own() -> None:
    found, expected = added_error([120.0] * 50, factor=Fraction(103, 100))
    assert abs(found / expected - 1) > 0.01
    clipped, expected = added_error([300.0] * 50)
    assert clipped > expected + 0.9 * 80**2


# ------------------------------------------------------------------------------------------ sums by group


def by_formula(relation: Relation, *, groups: int, rows: int, low: int, high: int) -> tuple[Fraction, Fraction]:
    """l1 and the square of l2, as the claim states them."""
    low, high = min(low, 0), max(high, 0)
    most = max(-low, high)
    if relation is Relation.ADD_REMOVE:
        return Fraction(groups * rows * most), Fraction(groups * rows**2 * most**2)
    apart = groups * rows**2 * (high - low) ** 2
    return Fraction(2 * groups * rows * most), Fraction(max(2 * groups * rows**2 * most**2, apart))


def norms(claim: Sensitivity) -> tuple[Fraction, Fraction]:
    assert claim.l1 is not None
    assert claim.l2 is not None
    return claim.l1.value, claim.l2.squared


@pytest.mark.few(6)
@pytest.mark.claim("X-07")
@pytest.mark.parametrize("bounds", [(-1, 3), (0, 3), (1, 3), (-5, -1), (-4, 4)])
@pytest.mark.parametrize("relation", list(Relation), ids=lambda it: it.value)
def test_sums_by_group_are_as_sensitive_as_the_formula_says(relation: Relation, bounds: tuple[int, int]) -> None:
    rows = pa.table({"id": [1], "zip": ["a"], "x": [1.0]})
    step = Fraction(max(abs(bounds[0]), abs(bounds[1])), STEPS)
    for groups, each in product((1, 2, 3), (1, 2, 5)):
        limit, unit = sf.Limit(groups=groups, rows_per_group=each), sf.user("id", relation=relation.value)
        asked = table(rows, unit, limit=limit, bounds={"x": bounds}, keys={"zip": list("abcdef")})
        l1, l2 = norms(asked.group_by("zip").sum("x").query.sensitivity(unit, limit))
        exact = by_formula(relation, groups=groups, rows=each, low=bounds[0], high=bounds[1])
        found = l1 * step, l2 * step**2
        # A lattice through 0 is widened to whole steps, by less than one step at the other end.
        assert all(
            formula <= number <= formula * (1 + Fraction(4, STEPS))
            for formula, number in zip(exact, found, strict=True)
        )


FOUR = Layout(name="four keys", keys=(KeyColumn(column="zip", values=(*ZIPS, "d")),), zips=(*ZIPS, "d"))


@pytest.mark.few(2)
@pytest.mark.claim("X-07")
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_brute_force_attains_the_formula_and_merged_groups_add_up(groups: int, rows: int) -> None:
    """Values from −1 to 3 in steps of 1. Where all groups are merged in the output, a person moves one sum by k·m·M."""
    around, limit = FOUR.neighbours("user"), Limit(groups=groups, rows_per_group=rows)
    gauge = GAUGES["both signs"]
    found = totals(
        load(around, "sums by group"),
        worlds=len(around.worlds),
        where=None,
        keys=FOUR.keys,
        share=share_for("user", limit),
        gauges=[gauge],
    )
    for relation in Relation:
        exact = by_formula(relation, groups=groups, rows=rows, low=-1, high=3)
        moved = furthest(found, around=around, relation=relation)
        assert (moved["l1"], moved["l2 squared"]) == exact
        claim = joint_reach([_reach(gauge)], contribution(sf.user("person", relation=relation.value), limit), cells=4)
        assert (stated(claim)["l1"], stated(claim)["l2 squared"]) == exact
    merged = furthest(found.sum(axis=1, keepdims=True), around=around, relation=Relation.ADD_REMOVE)
    assert merged["l2 squared"] == (groups * rows * 3) ** 2
