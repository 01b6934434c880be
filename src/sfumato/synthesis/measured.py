"""Noisy tables as numbers: what the fit is handed, and what it says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Layout", "MeasuredTable", "Reals", "one_way", "total_of"]

Reals = NDArray[np.float32]
Codes = NDArray[np.int32]
LEAST_SHARE = 1e-6  # of a value: below it a logarithm would say more than the data


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MeasuredTable:
    """The noisy counts of one table, in rows, and the standard deviation of their noise."""

    columns: tuple[int, ...]
    counts: NDArray[np.float64]
    sigma: float

    def summed(self, column: int) -> NDArray[np.float64]:
        """The counts of one of its columns."""
        place = self.columns.index(column)
        found: NDArray[np.float64] = self.counts.sum(
            axis=tuple(axis for axis in range(self.counts.ndim) if axis != place)
        )
        return found


@dataclass(frozen=True, eq=False)
class Layout:
    """Columns side by side: the cells of column c stand from ``starts[c]`` to ``starts[c + 1]``."""

    sizes: tuple[int, ...]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column begins, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The cells of each column."""
        return tuple(slice(int(first), int(last)) for first, last in zip(self.starts, self.starts[1:], strict=False))

    @property
    def width(self) -> int:
        """The cells of all columns."""
        return int(self.starts[-1])

    def pair_counts(self, rows: Codes) -> Reals:
        """Rows in each pair of cells of two different columns, as one symmetric matrix."""
        found = np.zeros((self.width, self.width), dtype=np.float32)
        for one, wide in enumerate(self.sizes):
            for two in range(one + 1, len(self.sizes)):
                cells = rows[:, one].astype(np.int64) * self.sizes[two] + rows[:, two]
                counts = np.bincount(cells, minlength=wide * self.sizes[two]).reshape(wide, self.sizes[two])
                found[self.parts[one], self.parts[two]] = counts
                found[self.parts[two], self.parts[one]] = counts.T
        return found


def total_of(tables: Sequence[MeasuredTable]) -> float:
    """The number of rows, from all tables: each adds up to it, with the noise of all its cells."""
    weights = [1 / (table.sigma**2 * table.counts.size) for table in tables]
    return float(np.average([table.counts.sum() for table in tables], weights=weights))


def one_way(tables: Sequence[MeasuredTable], layout: Layout) -> NDArray[np.float64]:
    """The share of each value in its column, from all tables that have the column; never 0.

    Each table adds up to the counts of a column, with the noise of the cells that are added; the better count more.
    """
    shares = np.empty(layout.width)
    for column, part in enumerate(layout.parts):
        held = [table for table in tables if column in table.columns]
        weights = [layout.sizes[column] / (table.sigma**2 * table.counts.size) for table in held]
        counts = np.average([table.summed(column) for table in held], axis=0, weights=weights)
        clipped = np.maximum(counts, 0)
        clipped = clipped / clipped.sum() if clipped.sum() > 0 else np.full(len(clipped), 1 / len(clipped))
        shares[part] = np.maximum(clipped, LEAST_SHARE)
        shares[part] /= shares[part].sum()
    return shares
