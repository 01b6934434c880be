"""Which tables are measured and how exactly: a rule of public facts alone, decided before a row is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

__all__ = ["MeasurementPlan", "planned", "predicted_error", "weighted"]

LEAST_WEIGHT = 64
"""The weight of the table with the largest noise: rounding the others to whole numbers changes them by 1% at most."""
MOST_WEIGHT = 2**20
TRIPLES_FROM = 3
"""The ε from which tables of three columns pay, where nobody says how many rows there are."""
TRIPLES_SHARE = 0.4
TRIPLES_ERROR = 0.2
"""The predicted error of tables of three columns up to which they pay, where the number of rows is known.

With 8 columns they paid at 0.17; with 17 and 0.25 models trained on the rows were worse than with pairs alone.
"""
MOST_TRIPLE_CELLS = 400_000
TOO_FEW_ROWS = 1.0
"""From this predicted error on columns are measured one by one: more noise than rows in every table of two."""

Table = tuple[int, ...]
Noise = Callable[["MeasurementPlan"], float]
"""The standard deviation of the noise on all numbers of a plan, before they are divided by the weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """The tables, as places of columns, and the weight of each: noise of σ on all numbers is σ/weight on its rows."""

    tables: tuple[Table, ...]
    weights: tuple[int, ...]
    reason: str
    """Why these, as the key of a message."""

    @property
    def most_columns(self) -> int:
        """How many columns the largest table has."""
        return max(map(len, self.tables))


def planned(
    sizes: Sequence[int],
    noise: Noise,
    *,
    epsilon: float,
    rows: int | None,
    workload: Sequence[tuple[Table, float]] = (),
) -> MeasurementPlan:
    """The plan for columns with these numbers of cells.

    ``workload`` are the tables that must be right, each with its importance; columns in none of them are measured by
    themselves. Without one: every pair of columns; one column at a time where ``rows``, the public number of rows, is
    so small that pairs would be noise; beside pairs all triples where their noise is small enough.

    >>> planned([2, 3, 4], lambda plan: 5.0, epsilon=1, rows=100_000).tables
    ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    >>> planned([2, 3, 4], lambda plan: 5000.0, epsilon=0.1, rows=100).tables
    ((0,), (1,), (2,))
    """
    columns = range(len(sizes))
    if workload:
        within = {column for table, _ in workload for column in table}
        alone = [((column,), 1.0) for column in columns if column not in within]
        return weighted(sizes, [([*workload, *alone], 1.0)], "workload")
    singles = weighted(sizes, [([((column,), 1.0) for column in columns], 1.0)], "singles")
    if len(sizes) == 1:
        return singles
    two = [(table, 1.0) for table in combinations(columns, 2)]
    pairs = weighted(sizes, [(two, 1.0)], "pairs")
    if rows is not None and predicted_error(sizes, pairs, noise(pairs), rows) > TOO_FEW_ROWS:
        return singles
    three = [(table, 1.0) for table in combinations(columns, 3)]
    if not three or sum(_cells(sizes, table) for table, _ in three) > MOST_TRIPLE_CELLS:
        return pairs
    triples = weighted(sizes, [(two, 1 - TRIPLES_SHARE), (three, TRIPLES_SHARE)], "triples")
    if rows is None:
        return triples if epsilon >= TRIPLES_FROM else pairs
    return triples if predicted_error(sizes, triples, noise(triples), rows) <= TRIPLES_ERROR else pairs


def weighted(
    sizes: Sequence[int], groups: Sequence[tuple[Sequence[tuple[Table, float]], float]], reason: str
) -> MeasurementPlan:
    """Weights in proportion to (importance · cells)^(1/3) in groups of tables that each get a share of the budget.

    >>> weighted([2, 16], [([((0,), 1.0), ((1,), 1.0)], 1.0)], "singles").weights
    (64, 128)
    """
    tables: list[Table] = []
    exact: list[float] = []
    for some, share in groups:
        roots = [(importance * _cells(sizes, table)) ** (1 / 3) for table, importance in some]
        whole = sum(root**2 for root in roots)
        tables += [table for table, _ in some]
        exact += [root * (share / whole) ** 0.5 for root in roots]
    least = min(exact)
    return MeasurementPlan(
        tables=tuple(tables),
        weights=tuple(min(MOST_WEIGHT, max(1, round(LEAST_WEIGHT * each / least))) for each in exact),
        reason=reason,
    )


def predicted_error(sizes: Sequence[int], plan: MeasurementPlan, sigma: float, rows: int) -> float:
    """The total variation between a table and its noisy counts to expect, the mean over the tables with most columns.

    Above 1 there is more noise than rows: E|N(0, σ²)| = 0.8σ in every cell, of which half is the total variation.
    """
    errors = [
        0.4 * sigma / weight * _cells(sizes, table)
        for table, weight in zip(plan.tables, plan.weights, strict=True)
        if len(table) == plan.most_columns
    ]
    return sum(errors) / len(errors) / max(rows, 1)


def _cells(sizes: Sequence[int], table: Table) -> int:
    return prod(sizes[column] for column in table)
