"""Which tables are measured is decided by public facts alone, and weights follow from cells and importance."""

from itertools import combinations

import pytest

from sfumato.synthesis.plan import TRIPLES_SHARE, MeasurementPlan, planned, predicted_error, weighted

SIZES = (17, 9, 16, 7, 15, 2, 10, 2)  # eight columns of a census


def unit_noise(multiplier: float):
    """Gaussian noise for one row: the multiplier times the root of the sum of squared weights."""
    return lambda plan: multiplier * sum(weight**2 for weight in plan.weights) ** 0.5


@pytest.mark.parametrize(
    ("multiplier", "rows", "reason"),
    [
        (4.2247, 48_842, "pairs"),  # ε = 1, δ = 1e-6
        (1.5439, 48_842, "triples"),  # ε = 3
        (36.3, 48_842, "pairs"),  # ε = 0.1
        (36.3, 1_000, "singles"),
        (13.1, 1_000, "singles"),  # ε = 0.3
        (1.5439, 1_000, "pairs"),
    ],
)
def test_the_plan_for_a_number_of_rows(multiplier: float, rows: int, reason: str) -> None:
    assert planned(SIZES, unit_noise(multiplier), epsilon=1, rows=rows).reason == reason


@pytest.mark.parametrize(("epsilon", "reason"), [(0.1, "pairs"), (2.9, "pairs"), (3, "triples")])
def test_without_a_number_of_rows_epsilon_alone_decides(epsilon: float, reason: str) -> None:
    def never(plan: MeasurementPlan) -> float:
        raise AssertionError("nothing is known that noise could be compared with")

    assert planned(SIZES, never, epsilon=epsilon, rows=None).reason == reason


def test_weights_are_cube_roots_of_cells_and_importance() -> None:
    plan = weighted([8, 27, 1000], [([((0,), 1.0), ((1,), 1.0), ((2,), 1.0)], 1.0)], "singles")
    assert plan.weights == (64, 96, 320)
    important = weighted([8, 27, 1000], [([((0,), 125.0), ((1,), 1.0), ((2,), 1.0)], 1.0)], "workload")
    assert important.weights == (213, 64, 213)


def test_cube_roots_make_the_mean_error_least() -> None:
    """σ_t ∝ cells^(−1/3) has less predicted error than other powers, at the same cost."""
    plan = planned(SIZES, unit_noise(1), epsilon=1, rows=None)

    def error(power: float) -> float:
        cells = [SIZES[one] * SIZES[two] for one, two in plan.tables]
        weights = tuple(round(1000 * number**power) for number in cells)
        tried = MeasurementPlan(tables=plan.tables, weights=weights, reason="pairs")
        return predicted_error(SIZES, tried, unit_noise(1)(tried), 1000)

    best = predicted_error(SIZES, plan, unit_noise(1)(plan), 1000)
    assert abs(best - error(1 / 3)) < 0.001 * best
    assert all(error(power) > best for power in (0, 0.2, 0.5, 1))


def test_triples_have_their_share_of_the_cost() -> None:
    plan = planned(SIZES, unit_noise(0.1), epsilon=5, rows=10**6)
    squares = dict.fromkeys((2, 3), 0)
    for table, weight in zip(plan.tables, plan.weights, strict=True):
        squares[len(table)] += weight**2
    assert abs(squares[3] / sum(squares.values()) - TRIPLES_SHARE) < 0.01
    assert len(plan.tables) == 28 + 56


def test_a_workload_is_measured_and_columns_outside_it_by_themselves() -> None:
    plan = planned(SIZES, unit_noise(1), epsilon=1, rows=None, workload=[((0, 1), 1.0), ((0, 1, 5), 8.0)])
    assert plan.tables == ((0, 1), (0, 1, 5), (2,), (3,), (4,), (6,), (7,))
    assert plan.reason == "workload"


def test_too_many_cells_are_not_measured_in_threes() -> None:
    wide = (100,) * 4
    assert planned(wide, unit_noise(1e-9), epsilon=9, rows=10**9).tables == tuple(combinations(range(4), 2))
    assert planned((5,), unit_noise(1), epsilon=1, rows=None).tables == ((0,),)
