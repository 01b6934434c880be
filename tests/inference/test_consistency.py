"""Adjusted figures: the nearest that obey the rules, with the raw ones and their coverage kept."""

import os
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato import errors, noise
from sfumato.core.release import Release
from sfumato.inference import Figure, consistent, non_negative, rising, whole_table
from sfumato.inference.consistency import nearest_table
from sfumato.inference.linear_combination import LinearCombination

LONG = os.environ.get("SFUMATO_LONG") == "1"


def release(counts: dict[str, int], epsilon: object = "1/4") -> Release:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10), name="trial")
    rows = pa.table({"cell": [name for name, count in counts.items() for _ in range(count)]})
    table = vault.table(rows, name="cells", version="1", keys={"cell": list(counts)})
    return table.group_by("cell").count().release(epsilon=epsilon)


def distance(one: list[int], other: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


@pytest.mark.claim("S1-06")
@given(values=st.lists(st.integers(-6, 12), min_size=4, max_size=4), total=st.integers(0, 9))
@settings(max_examples=1_000 if LONG else 200, deadline=None)
def test_the_nearest_table_is_that_of_brute_force(values: list[int], total: int) -> None:
    found = nearest_table(values, total)
    assert sum(found) == total
    assert min(found) >= 0
    tables = ([*start, total - sum(start)] for start in product(range(total + 1), repeat=3) if sum(start) <= total)
    assert distance(found, values) == min(distance(table, values) for table in tables)


@pytest.mark.claim("S1-06")
def test_a_table_of_nothing_and_a_table_without_cells() -> None:
    assert nearest_table([5, -3, 2, 2], 0) == [0, 0, 0, 0]
    assert nearest_table([], 0) == []
    with pytest.raises(errors.InvalidInput, match="without cells"):
        nearest_table([], 1)
    assert nearest_table([Fraction(1, 2), Fraction(1, 2)], 1) == [1, 0]


@pytest.mark.claim("S1-06")
@pytest.mark.alpha(2e-9)
def test_a_known_total_takes_error_away() -> None:
    """Table (3, 40, 7, 950) under Laplace noise of scale 2: mean l1 error 7.0 adjusted, 7.68 raw (discrete law).

    4,000 tables: standard errors below 0.07, held to 6.5 of them (α below 1e-9 for the two).
    """
    true = np.array([3, 40, 7, 950])
    noisy = true + noise.discrete_laplace(scale=2, size=16_000).reshape(-1, 4)
    raw = np.abs(noisy - true).sum(axis=1)
    adjusted = np.array([np.abs(np.array(nearest_table(row, 1_000)) - true).sum() for row in noisy.tolist()])
    assert abs(raw.mean() - 4 * 1.919) < 6.5 * raw.std() / len(raw) ** 0.5 + 0.01
    assert abs(adjusted.mean() - 7.0) < 0.07 * 6.5
    assert adjusted.mean() < raw.mean()


def test_whole_tables_and_counts_that_are_not_negative() -> None:
    made = release({"a": 3, "b": 40, "c": 0, "d": 900})
    table = whole_table(made, total=943)
    assert sum(table.values) == 943
    assert min(table.values) >= 0
    assert table.raw.values == made.values
    assert all(0 <= low <= high <= 943 for low, high in table.interval())
    held = non_negative(made)
    assert held.values == tuple(max(0, value) for value in made.values)
    assert [high for _, high in held.interval()] == [max(0, high) for _, high in made.interval()]
    assert min(low for low, _ in held.interval()) >= 0
    assert held.labels == {"cell": ("a", "b", "c", "d")}
    assert held.to_arrow().column_names == ["cell", "count", "count_data_low", "count_data_high"]
    with pytest.raises(errors.InvalidInput, match="total"):
        whole_table(made, total=-1)


@given(values=st.lists(st.integers(-5, 5), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_rising_numbers_are_the_nearest_that_rise(values: list[int]) -> None:
    """Isotonic regression is known by its min-max formula."""
    made = _figure(values)
    found = rising(made).values
    for place in range(len(values)):
        expected = max(
            min(Fraction(sum(values[low : high + 1]), high - low + 1) for high in range(place, len(values)))
            for low in range(place + 1)
        )
        assert found[place] == expected


def _figure(values: list[int]) -> Figure:
    forms = tuple(LinearCombination(Fraction(value), {}) for value in values)
    return Figure(forms=forms, labels={"x": tuple(range(len(values)))}, measure="count", sources=())


REGIONS, COUNTIES, ZIPS = ["n", "s"], ["c0", "c1", "c2"], ["z0", "z1", "z2", "z3"]


@pytest.fixture(scope="module")
def levels() -> list[Release]:
    cells = [*product(REGIONS, COUNTIES, ZIPS)] * 10
    rows = pa.table({name: [cell[place] for cell in cells] for place, name in enumerate(("region", "county", "zip"))})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10), name="trial")
    table = vault.table(rows, name="cases", version="1", keys={"region": REGIONS, "county": COUNTIES, "zip": ZIPS})
    columns = ([], ["region"], ["region", "county"], ["region", "county", "zip"])
    return [table.group_by(*names).count().release(epsilon="1/2") for names in columns]


@pytest.mark.long
def test_levels_add_up_and_err_less(levels: list[Release]) -> None:
    made = consistent(levels)
    country, region, county, zips = made
    assert country.values == region.total().values == county.total().values == zips.total().values
    for name in REGIONS:
        assert region.at(region=name).values == zips.at(region=name).total().values
    for before, after in zip(levels, made, strict=True):
        low, high = before.interval()[0]
        better_low, better_high = after.interval()[0]
        assert better_high - better_low < high - low
    assert len(zips.sources) == 4


def test_least_squares_on_the_tree_is_least_squares(levels: list[Release]) -> None:
    """Against the normal equations, solved in floating point: same estimates to the accuracy of short weights."""
    cells = [*product(REGIONS, COUNTIES, ZIPS)]
    rows, seen, weights = [], [], []
    for one in levels:
        names = list(one.statement.query.labels())
        for place, value in enumerate(one.values):
            wanted = {name: column[place] for name, column in one.statement.query.labels().items()}
            named = [dict(zip(("region", "county", "zip"), cell, strict=True)) for cell in cells]
            rows.append([all(cell[name] == wanted[name] for name in names) for cell in named])
            seen.append(value)
            weights.append(1 / float(one.statement.law.variance))
    design, weight = np.array(rows, float), np.array(weights)
    best = np.linalg.solve(design.T @ (design * weight[:, None]), design.T @ (weight * np.array(seen, float)))
    assert np.abs(best - np.array([float(value) for value in consistent(levels)[-1].values])).max() < 0.05


def test_hierarchies_that_are_none(levels: list[Release]) -> None:
    with pytest.raises(errors.InvalidInput, match="two levels"):
        consistent(levels[:1])
    with pytest.raises(errors.InvalidInput, match="label columns"):
        consistent([levels[2], levels[1]])
    with pytest.raises(errors.InvalidInput, match="no cell of the level above"):
        consistent([_part(levels[1]), levels[2]])


def _part(one: Release) -> Figure:
    made = one.figure
    return Figure(forms=made.forms[:1], labels={"region": ("n",)}, measure="count", sources=made.sources)
