"""How rows agree with tables: Jensen–Shannon divergence, total variation, and how strongly two columns go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.columns import EPOCH, ListedColumn, SyntheticColumn
from sfumato.synthesis.measured import Codes, Layout, MeasuredTable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "TableAgreement",
    "agreement_of",
    "associations",
    "cells_of",
    "coded",
    "cramers_v",
    "jensen_shannon",
    "total_variation",
]

Shares = NDArray[np.float64]
DRAWS = 25
"""Times that noise is drawn to say how far apart noise alone would set two tables."""


def jensen_shannon(one: Shares, two: Shares) -> Shares:
    """The Jensen–Shannon divergence in bits, along the last axis: 0 where two distributions are equal, 1 at the most.

    >>> jensen_shannon(np.array([0.5, 0.5]), np.array([[0.5, 0.5], [1.0, 0.0]])).round(3).tolist()
    [0.0, 0.311]
    """
    middle = (one + two) / 2

    def from_middle(some: Shares) -> Shares:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(some > 0, some * np.log2(some / middle), 0.0).sum(axis=-1))

    return np.maximum(np.asarray((from_middle(one) + from_middle(two)) / 2), 0.0)


def total_variation(one: Shares, two: Shares) -> Shares:
    """Half of the sum of the differences, along the last axis: the share of rows that would have to move.

    >>> float(total_variation(np.array([0.5, 0.5]), np.array([0.75, 0.25])))
    0.25
    """
    return np.asarray(np.abs(one - two).sum(axis=-1) / 2)


def cramers_v(counts: Shares) -> float:
    """Cramér's V of a table of two columns: 0 where they are independent, 1 where one follows from the other.

    >>> cramers_v(np.array([[5.0, 0.0], [0.0, 5.0]])), cramers_v(np.array([[2.0, 4.0], [3.0, 6.0]]))
    (1.0, 0.0)
    """
    table = counts / counts.sum() if counts.sum() > 0 else counts
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    table = table[rows > 0][:, columns > 0]
    rows, columns = rows[rows > 0], columns[columns > 0]
    fewest = min(table.shape) - 1
    if fewest < 1:
        return 0.0
    expected = np.outer(rows, columns)
    found = float(((table - expected) ** 2 / expected).sum()) / fewest
    return float(min(1.0, round(found, 12)) ** 0.5)


def associations(pairs: NDArray[np.float32], layout: Layout) -> Shares:
    """Cramér's V of each two columns, from a symmetric matrix of the shares of their pairs of cells."""
    found = np.eye(len(layout.sizes))
    for one, two in combinations(range(len(layout.sizes)), 2):
        table = pairs[layout.parts[one], layout.parts[two]].astype(np.float64)
        found[one, two] = found[two, one] = cramers_v(np.maximum(table, 0.0))
    return found


def coded(column: SyntheticColumn, values: "pa.ChunkedArray") -> Codes:
    """The cell of each value of a column; values in no cell are missing ones, or −1 where no cell is for these.

    >>> import pyarrow as pa
    >>> coded(ListedColumn(name="sex", values=("F", "M"), missing=True), pa.chunked_array([["M", None, "F"]])).tolist()
    [1, 2, 0]
    """
    import pyarrow as pa
    from pyarrow import compute

    last = column.size - 1 if column.missing else -1
    if isinstance(column, ListedColumn):
        found = compute.fill_null(compute.index_in(values, value_set=pa.array(column.values)), -1)
        codes = found.to_numpy().astype(np.int32)
        return np.where(codes < 0, last, codes).astype(np.int32)
    numbers = values.cast(pa.int32()).cast(pa.float64()) if column.days else values.cast(pa.float64())
    held = compute.fill_null(numbers, np.nan).to_numpy() + (EPOCH if column.days else 0)
    inner = np.array([float(edge) for edge in column.edges[1:-1]])
    places = np.searchsorted(inner, held, side="right")
    return np.where(np.isnan(held), last, places).astype(np.int32)


def cells_of(codes: Codes, columns: Sequence[int], sizes: Sequence[int]) -> Shares:
    """The rows in each cell of a table of columns, as one line; rows outside every cell are left out."""
    place = np.zeros(len(codes), dtype=np.int64)
    kept = np.ones(len(codes), dtype=bool)
    number = 1
    for column in columns:
        place = place * sizes[column] + codes[:, column]
        kept &= codes[:, column] >= 0
        number *= sizes[column]
    return np.bincount(place[kept], minlength=number).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAgreement:
    """How far the rows are from one measured table, noise and all. Public: nothing here was compared with the data."""

    columns: tuple[str, ...]
    cells: int
    noise: float
    """The standard deviation of the noise on a count, in rows."""
    predicted_error: float
    divergence: float
    """Jensen–Shannon, in bits, between the table of the rows and the noisy one, negative counts taken for 0."""
    divergence_of_noise: float
    """The same to expect where the rows had the very table that was measured, and noise alone set them apart."""


def agreement_of(
    measured: Sequence[MeasuredTable],
    names: Sequence[str],
    codes: Codes,
    sizes: Sequence[int],
    total: float,
    random: np.random.Generator,
) -> tuple[TableAgreement, ...]:
    """The agreement of rows with each measured table; ``total`` is the noisy number of rows in the data."""
    found = []
    for table in measured:
        counts = table.counts.ravel()
        rows = cells_of(codes, table.columns, sizes)
        shares = _shares(rows)
        around = shares * max(total, 1.0) + random.normal(0, table.sigma, (DRAWS, counts.size))
        found.append(
            TableAgreement(
                columns=tuple(names[place] for place in table.columns),
                cells=counts.size,
                noise=table.sigma,
                predicted_error=0.4 * table.sigma * counts.size / max(total, 1.0),
                divergence=float(jensen_shannon(shares, _shares(counts))),
                divergence_of_noise=float(jensen_shannon(shares, _shares(around)).mean()),
            )
        )
    return tuple(found)


def _shares(counts: Shares) -> Shares:
    """Counts as shares, negative ones taken for 0; all alike where nothing is left."""
    clipped = np.maximum(counts, 0.0)
    whole = clipped.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(whole > 0, clipped / np.where(whole > 0, whole, 1.0), 1 / counts.shape[-1]))
