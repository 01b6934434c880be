"""Columns of which one nearly says the other, such as a code and its name: they are drawn and moved together.

Whatever changes one column of a row at a time can pass from one code to the next only through a pair that does not
occur. So it stays where it began, or leaves such pairs behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.measured import Codes, Layout, MeasuredTable, Reals

__all__ = ["BoundColumns", "association", "in_step", "parted_rows_rejoined", "sharpened", "sites_of"]

BOUND = 0.9
"""Goodman and Kruskal's λ from which one column nearly says the other."""
MOST_TOGETHER = 512
"""Combinations of values of columns that are moved together."""
TINY = np.float32(1e-30)
CHANCE = 3.0  # standard deviations of noise: a cell whose noisy count is below this may be empty


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class BoundColumns:
    """Columns that change together, and the combinations of their values that a row may change to."""

    columns: tuple[int, ...]
    cells: Codes


def association(table: NDArray[np.floating]) -> float:
    """Goodman and Kruskal's λ, of the two directions the larger: by how much one column improves a guess of the other.

    >>> association(np.diag([0.5, 0.3, 0.2])), association(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    exact = np.asarray(table, dtype=float)
    return max(0.0, _guessed(exact), _guessed(exact.T))


def _guessed(table: NDArray[np.float64]) -> float:
    """λ of the second column given the first; 0 where the second has one value."""
    best, whole = float(table.sum(axis=0).max()), float(table.sum())
    return (float(table.max(axis=1).sum()) - best) / (whole - best) if whole > best else 0.0


def sites_of(pairs: Reals, rows: Codes, layout: Layout) -> list[BoundColumns]:
    """Every column by itself, but for those of which one nearly says the other: these together.

    Combinations are those of ``rows``; columns that would have too many of them stay apart.
    """
    groups: list[tuple[int, ...]] = [(column,) for column in range(len(layout.sizes))]
    for one, two in combinations(range(len(layout.sizes)), 2):
        here, there = (next(group for group in groups if column in group) for column in (one, two))
        if here == there or association(pairs[layout.parts[one], layout.parts[two]]) < BOUND:
            continue
        both = tuple(sorted((*here, *there)))
        if len(np.unique(rows[:, both], axis=0)) <= MOST_TOGETHER:
            groups = [group for group in groups if group not in (here, there)] + [both]
    return [
        BoundColumns(
            columns=group,
            cells=np.arange(layout.sizes[group[0]], dtype=np.int32)[:, None]
            if len(group) == 1
            else np.unique(rows[:, group], axis=0),
        )
        for group in sorted(groups)
    ]


def sharpened(pairs: Reals, tables: Sequence[MeasuredTable], layout: Layout, total: float) -> Reals:
    """The fitted pairs, with as little beside the diagonal, so to speak, as was measured there.

    A fit never comes down to 0. Where one column nearly says the other, the cells beside the large ones are each below
    their noise, and their sum is known much better: they are scaled down to it, to nothing where it is negative.
    """
    found = pairs.copy()
    for table in tables:
        if len(table.columns) != 2:
            continue
        one, two = (layout.parts[column] for column in table.columns)
        fitted = found[one, two]
        small = ~_large(fitted) & (table.counts < CHANCE * table.sigma)
        held = float(fitted[small].sum())
        if held <= 0 or association(fitted) < BOUND:
            continue
        factor = np.float32(min(max(float(table.counts[small].sum()) / total, 0.0) / held, 1.0))
        rest = float(fitted[~small].sum())
        if rest > 0:
            fitted = np.where(small, fitted * factor, fitted * np.float32(1 + held * (1 - float(factor)) / rest))
            found[one, two], found[two, one] = fitted, fitted.T
    return found


def parted_rows_rejoined(rows: Codes, pairs: Reals, layout: Layout, random: np.random.Generator) -> Codes:
    """The same rows, where one column nearly says another with no more of them beside the diagonal than ``pairs`` has.

    Of each cell beside the large ones the rows that are too many get a value of the column that is said by the other,
    as ``pairs`` has it there. A search by moves of single rows leaves them: two rows with each other's names would have
    to move at once.
    """
    found = rows.copy()
    for one, two in combinations(range(len(layout.sizes)), 2):
        aim = pairs[layout.parts[one], layout.parts[two]].astype(np.float64)
        if association(aim) < BOUND:
            continue
        says, said = (one, two) if _guessed(aim) >= _guessed(aim.T) else (two, one)
        aim = aim if says == one else aim.T
        cells = found[:, says].astype(np.int64) * aim.shape[1] + found[:, said]
        kept = np.where(_large(aim), len(found), np.floor(aim * len(found) + random.random(aim.shape))).ravel()
        order = np.lexsort((random.random(len(found)), cells))
        counts = np.bincount(cells, minlength=aim.size)
        rank = np.empty(len(found), dtype=np.int64)
        rank[order] = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts)
        over = np.flatnonzero(rank >= kept[cells])
        rising = np.cumsum(aim[found[over, says]], axis=1)
        drawn = random.random(len(over))[:, None] * rising[:, -1:]
        new = np.minimum((drawn >= rising).sum(axis=1), aim.shape[1] - 1)
        found[over, said] = np.where(rising[:, -1] > 0, new, found[over, said])
    return found


def _large(table: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which cells are the largest of their row or column."""
    found: NDArray[np.bool_] = (table == table.max(axis=1, keepdims=True)) | (table == table.max(axis=0))
    return found


def in_step(threes: Mapping[tuple[int, ...], Reals], pairs: Reals, layout: Layout) -> dict[tuple[int, ...], Reals]:
    """Tables of three columns, two of which nearly say each other, with as little beside the diagonal as the pair has.

    They are scaled to the pair; else rows would be brought to pairs that hardly occur, one table against the other.
    """
    found = dict(threes)
    for columns in threes:
        for axis in range(3):
            one, two = (column for place, column in enumerate(columns) if place != axis)
            pair = pairs[layout.parts[one], layout.parts[two]]
            if association(pair) < BOUND:
                continue
            held = found[columns].sum(axis=axis, keepdims=True)
            wanted = np.expand_dims(pair, axis)
            found[columns] = (found[columns] * np.where(held > 0, wanted / np.maximum(held, TINY), 0)).astype(
                np.float32
            )
    return found
