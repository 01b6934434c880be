"""Quantiles: asked by their level, chosen from a lattice by their rank, and certified with the bound of that rank."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.events import Repeated
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.mechanisms import QuantileChoice
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.tables.queries.quantiles import STEPS, Quantiles, level_name
from sfumato.vault import Vault

EXACTLY = 10_000  # an ε at which the nearest rank is chosen but for a chance far below 1e-100
VALUES = [float(value) for value in range(101)]


def world(unit: Any = None, **facts: Any) -> tuple[Vault, Table]:
    vault = sf.Vault(unit=unit or sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="trial")
    rows = pa.table({"id": range(101), "sex": ["F", "M"] * 50 + ["F"], "x": VALUES, "note": ["a"] * 101})
    given = {"keys": {"sex": ["F", "M", "nobody"]}, "bounds": {"x": (-100, 200)}} | facts
    return vault, vault.table(rows, name="visits", version="1", **given)


@pytest.mark.parametrize(
    ("level", "name"),
    [("1/2", "median"), ("0.25", "p25"), ("0.9", "p90"), ("0.025", "p2_5"), ("0.999", "p99_9"), ("1/3", "p33_3333")],
)
def test_a_quantile_is_called_by_its_percentage(level: str, name: str) -> None:
    assert level_name(Fraction(level)) == name


def test_quantiles_are_found_where_they_are() -> None:
    _, table = world()
    release = table.quantiles("x", [0.75, 0.25, "1/2", 0.9]).release(epsilon=EXACTLY)
    assert list(release.columns) == ["p25", "median", "p75", "p90"]
    found = [float(column.values[0]) for column in release.columns.values()]
    assert found == pytest.approx([25, 50, 75, 90], abs=1.01)
    assert found == sorted(found)
    assert release.to_arrow().column_names == ["p25", "median", "p75", "p90"]
    assert table.quantiles("x", ["1/2"]).release(epsilon=EXACTLY)["median"].values[0] == pytest.approx(50, abs=1e-6)
    assert table.quantiles("x", 0.5).query == table.quantiles("x", [0.5]).query


@pytest.mark.long
def test_groups_have_quantiles_of_their_own_and_an_empty_one_has_any() -> None:
    _, table = world()
    release = table.group_by("sex").quantiles("x", ["1/2"]).release(epsilon=EXACTLY)
    assert release.to_arrow()["sex"].to_pylist() == ["F", "M", "nobody"]
    women, men, nobody = release["median"].values
    assert (women, men) == pytest.approx((50, 50), abs=2.01)
    assert -100 <= nobody <= 200
    draws = {
        table.group_by("sex").quantiles("x", ["1/2"]).release(epsilon=1, fresh=True)["median"].values[2]
        for _ in range(5)
    }
    assert len(draws) > 1  # any of 2^30 values, all equally likely


def test_values_are_held_to_the_bounds_and_filters_hold() -> None:
    _, table = world(bounds={"x": (10, 20)})
    release = table.quantiles("x", [0.01, 0.99]).release(epsilon=EXACTLY)
    assert [float(column.values[0]) for column in release.columns.values()] == [10, 20]
    narrow = table.quantiles(
        sf.col("x").clip(0, 100), ["1/2"]
    ).query  # what was declared and what is asked for both hold
    assert isinstance(narrow, Quantiles)
    assert (narrow.of.low, narrow.of.high) == (10, 20)
    filtered = world()[1].where(sf.col("x") < 15).quantiles("x", ["1/2"]).release(epsilon=EXACTLY)
    assert filtered["median"].values[0] == pytest.approx(7, abs=1e-6)


def test_the_certificate_says_what_was_chosen_and_how_far_a_rank_can_be_off() -> None:
    vault, table = world(sf.user("id", relation="replace"), limit=sf.Limit(groups=2, rows_per_group=3))
    release = table.group_by("sex").quantiles("x", [0.25, 0.5, 0.75]).release(epsilon=2)
    assert verify(release.certificate.document).consistent
    said = release.statement
    assert isinstance(said.mechanism, QuantileChoice)
    assert isinstance(said.event, Repeated)
    assert said.event.times == 2 * 2  # two groups, two levels
    assert said.event.times * said.event.event.epsilon == 2  # type: ignore[union-attr]
    assert vault.spent == sf.Budget(epsilon=2)
    assert len(said.values) == 9
    assert all(0 <= value <= STEPS for value in said.values)
    margin = release["median"].rank_margin
    assert margin == said.mechanism.rank_margin("0.95", groups=3)
    with pytest.raises(Unsupported, match=r"chosen by the exponential mechanism.*rank_margin"):
        release["median"].interval()


@pytest.mark.long
def test_the_rank_is_within_its_margin() -> None:
    """At ε = 1 a rank is off by more than its margin of 24 with a chance below 1e-8 on these rows."""
    _, table = world()
    for _ in range(20):
        median = table.quantiles("x", ["1/2"]).release(epsilon=1, fresh=True)["median"]
        assert 20 < median.rank_margin < 30
        assert abs(np.searchsorted(VALUES, float(median.values[0])) - 50.5) <= median.rank_margin + 1


def test_the_same_question_again_costs_nothing() -> None:
    vault, table = world()
    first = table.quantiles("x", [0.25, 0.75]).release(epsilon=1)
    again = table.quantiles("x", ["3/4", 0.25]).release(epsilon=1)
    assert again.repeated
    assert again.statement.values == first.statement.values
    assert vault.spent == sf.Budget(epsilon=1)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([], "from 1 to 1000 quantiles"),
        ([0], "strictly between 0 and 1"),
        ([0.5, 1], "strictly between 0 and 1"),
        ([0.5, "1/2"], "must rise"),
        ([1.5], "a quantile"),
        (["1/3", "0.33333333333333333"], "two measures have one name"),
    ],
)
def test_levels_that_make_no_sense_are_refused(levels: list[Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        world()[1].quantiles("x", levels)


def test_a_value_without_bounds_or_that_is_no_number_is_refused() -> None:
    vault, table = world()
    with pytest.raises(NotDeclared, match="Declare bounds"):
        table.quantiles("id", ["1/2"])
    with pytest.raises(InvalidInput, match="note"):
        table.quantiles(sf.col("note").clip(0, 1), ["1/2"]).release(epsilon=1)
    assert vault.spent == sf.Budget(epsilon=0)


def test_a_lattice_point_is_the_value_that_is_shown() -> None:
    query = world()[1].quantiles("x", ["1/2"]).query
    assert isinstance(query, Quantiles)
    assert (query.lattice.low, query.lattice.high, query.lattice.steps) == (-100, 200, STEPS)
    assert (query.cells, query.size, query.measure, query.labels()) == (1, 1, None, {})
