"""The pages about synthetic rows say what was measured, and the result file has what was asked for."""

from typing import Any

import numpy as np
import pytest

from benchmarks.synthesis import PARTS
from benchmarks.synthesis_data import Cells, generated
from benchmarks.synthesis_peers import rho_of
from tests.docs.synthesis import ADULT, HOW_TO, PAGE, TABLES, curves, measured, score, written

FOUND = measured()


@pytest.mark.parametrize("path", [PAGE, HOW_TO], ids=lambda path: path.stem)
def test_the_tables_are_those_of_the_result_file(path: Any) -> None:
    page = path.read_text(encoding="utf-8")
    assert written(page) == page


def test_each_table_that_was_measured_is_on_a_page() -> None:
    pages = PAGE.read_text(encoding="utf-8") + HOW_TO.read_text(encoding="utf-8")
    shown = [table(FOUND) for part, table in TABLES.values() if part in FOUND]
    assert shown
    assert all(table in pages for table in shown)


def test_another_result_would_change_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    other = {name: dict(part) for name, part in FOUND.items()}
    other["adult-8-1"]["mean"] = [0.5, 0.6]
    monkeypatch.setattr("tests.docs.synthesis.measured", lambda: other)
    assert written(page) != page


@pytest.mark.parametrize(
    ("name", "two", "three", "seconds"),
    [
        ("adult-8-1", 0.0105, 0.039, 10),
        ("adult-8-1-nine", 0.0125, 0.042, 10),
        ("adult-8-3", 0.0105, 0.028, 20),  # threes are measured as well, on a machine that others used
        ("adult-14-1", 0.013, 0.036, 20),
    ],
)
def test_errors_and_cost_on_adult_are_what_was_asked_for(name: str, two: float, three: float, seconds: float) -> None:
    part = FOUND[name]
    assert name in ADULT
    assert part["runs"] == len(part["two_way"]) == len(part["three_way"]) == 10
    assert part["mean"] == pytest.approx([np.mean(part["two_way"]), np.mean(part["three_way"])], abs=1e-5)
    assert part["mean"][0] <= two
    assert part["mean"][1] <= three
    assert part["cpu_seconds"] <= seconds


def test_a_million_rows_take_five_minutes_and_four_gigabytes_at_most() -> None:
    part = FOUND["large"]
    assert (part["rows"], part["columns"]) == (1_000_000, 30)
    assert part["cpu_seconds"] <= 300
    assert part["peak_mb"] <= 4_000


def test_pairs_that_were_measured_are_never_worse_than_independent_columns_by_more_than_a_twentieth() -> None:
    """Where columns were measured alone, both figures are of the same question."""
    points = [point for part in curves(FOUND) for point in part["points"] if point["measured"] != ["singles"]]
    assert points
    assert all(point["mean"][0] <= 1.05 * point["independent"][0] for point in points)


def test_every_part_says_when_and_at_which_revision_it_was_measured() -> None:
    assert set(FOUND) <= set(PARTS)
    assert all(set(part["measured on"]) == {"when", "commit"} for part in FOUND.values())


def test_the_error_of_a_table_is_its_total_variation() -> None:
    one = Cells(np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 0]]), (2, 2, 2))
    two = Cells(np.array([[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 0]]), (2, 2, 2))
    assert one.away(one, 2) == 0
    assert one.away(two, 3) == pytest.approx(1 / 4)
    assert one.away(two, 2) == pytest.approx((1 / 4 + 0 + 1 / 4) / 3)
    assert score(0.0123) == "988"


def test_invented_rows_are_the_same_each_time_and_within_their_values() -> None:
    one, two = (generated(500, 9).cells() for _ in range(2))
    assert np.array_equal(one.codes, two.codes)
    assert (one.codes >= 0).all()
    assert (one.codes < np.array(one.sizes)).all()


def test_peers_get_the_largest_rho_that_gives_epsilon_and_delta() -> None:
    """Known values of the bound of Canonne, Kamath and Steinke (2020), and more ε or δ gives more ρ."""
    assert rho_of(1, 1e-6) == pytest.approx(0.024356, abs=1e-5)
    assert rho_of(1, 1e-9) == pytest.approx(0.014973, abs=1e-5)
    assert rho_of(3, 1e-6) > rho_of(1, 1e-6) > rho_of(1, 1e-9)
