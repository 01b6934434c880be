"""A joint distribution for noisy tables: a mixture of products, fitted by matrix products and stopped in time.

Each component has the columns independent of each other. The pair tables of a mixture are one matrix product of its
components with themselves, so a step costs the same whatever the number of tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.synthesis.measured import Codes, Layout, MeasuredTable, Reals, one_way, total_of

__all__ = ["Mixture", "fitted", "stopping_at"]

COMPONENTS = 300
STEPS = 400
STEPS_OF_TRIPLES = 500
RATE = 0.1
SPREAD = 0.3  # of the logits at the start: components that are alike would stay alike
KEPT, KEPT_SQUARES = 0.9, 0.95  # of the running means of gradients; with 0.99 sharp tables are met too slowly
CHUNK = 65_536


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Mixture:
    """Components, each with a distribution over the cells of every column side by side; all weigh the same."""

    layout: Layout
    shares: Reals
    misfit: float
    """χ² over the number of cells: near 1 is what noise alone explains, far below 1 noise was fitted too."""
    steps: int

    @property
    def pairs(self) -> Reals:
        """The tables of all pairs of columns, as one symmetric matrix of shares."""
        return (self.shares.T @ self.shares) / np.float32(len(self.shares))

    def table(self, columns: Sequence[int]) -> Reals:
        """The table of one, two or three columns, as shares."""
        parts = [self.shares[:, self.layout.parts[column]] for column in columns]
        both = parts[0]
        for part in parts[1:]:
            both = (both[:, :, None] * part[:, None, :]).reshape(len(both), -1)
        found: Reals = both.mean(axis=0)
        return found.reshape([part.shape[1] for part in parts])

    def draw(self, rows: int, random: np.random.Generator) -> Codes:
        """Rows, as many from each component as from the others up to one."""
        found = np.empty((rows, len(self.layout.sizes)), dtype=np.int32)
        which = random.permutation(rows) % len(self.shares)
        for column, part in enumerate(self.layout.parts):
            rising = np.cumsum(self.shares[:, part], axis=1)
            rising[:, -1] = 2.0  # beyond every draw, whatever rounding left
            for first in range(0, rows, CHUNK):
                some = which[first : first + CHUNK]
                drawn = random.random(len(some), dtype=np.float32)
                found[first : first + CHUNK, column] = (drawn[:, None] >= rising[some]).sum(axis=1)
        return found


def stopping_at(tables: Sequence[MeasuredTable], total: float) -> float:
    """The χ² over the number of cells at which the fit stops: the smaller the noise, the further it may go.

    Where counts are large a mixture is too coarse long before it meets noise; where noise is as large as counts, each
    step beyond it makes the tables worse. Measured on public data (benchmarks/synthesis.py).

    >>> from sfumato.synthesis.measured import MeasuredTable
    >>> table = MeasuredTable(columns=(0, 1), counts=np.ones((10, 10)), sigma=10.0)
    >>> round(stopping_at([table], 1_000), 2), round(stopping_at([table], 20_000), 2)
    (0.95, 0.67)
    """
    two = [0.4 * table.sigma * table.counts.size for table in tables if len(table.columns) == 2]
    if not two or any(len(table.columns) > 2 for table in tables):
        return 0.95
    error = float(np.mean(two)) / max(total, 1.0)
    return float(np.clip(1.04 + 0.22 * np.log10(error), 0.6, 0.95))


def fitted(
    tables: Sequence[MeasuredTable], layout: Layout, random: np.random.Generator, *, stop: float | None = None
) -> Mixture:
    """The mixture whose tables are near the noisy ones, each as near as its noise says.

    It starts at independent columns and stops at the χ² of :func:`stopping_at`, or at that of ``stop``, or when its
    steps are used up.
    """
    total = max(total_of(tables), 1.0)
    goal = stopping_at(tables, total) if stop is None else stop
    goal *= sum(table.counts.size for table in tables)
    aim = _Aim(tables, layout, total)
    start = np.log(one_way(tables, layout))
    logits = (start + random.normal(0, SPREAD, (COMPONENTS, layout.width))).astype(np.float32)
    mean, square = np.zeros_like(logits), np.zeros_like(logits)
    most = STEPS_OF_TRIPLES if aim.triples else STEPS
    cells = sum(table.counts.size for table in tables)
    within = _columns_of_cells(layout)
    for step in range(1, most + 2):
        shares = _softmax(logits, within)
        chi, pull = aim.gradient(shares)
        if chi <= goal or step > most:
            return Mixture(layout=layout, shares=shares, misfit=chi / cells, steps=step - 1)
        pull -= ((shares * pull) @ within) @ within.T
        pull *= shares
        mean += np.float32(1 - KEPT) * (pull - mean)
        square += np.float32(1 - KEPT_SQUARES) * (pull * pull - square)
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / most)) + 0.001
        scale = np.sqrt(square / np.float32(1 - KEPT_SQUARES**step)) + np.float32(1e-12)
        logits -= np.float32(rate / (1 - KEPT**step)) * mean / scale
    raise AssertionError("the last step returns")  # pragma: no cover


class _Aim:
    """The noisy tables, and how far a mixture is from them."""

    def __init__(self, tables: Sequence[MeasuredTable], layout: Layout, total: float) -> None:
        self.layout = layout
        self.single = np.zeros(layout.width, dtype=np.float32)
        self.single_weight = np.zeros(layout.width, dtype=np.float32)
        self.pair = np.zeros((layout.width, layout.width), dtype=np.float32)
        self.pair_weight = np.zeros_like(self.pair)
        self.triples: dict[tuple[int, int], tuple[Reals, Reals]] = {}
        for table in tables:
            shares, weight = (table.counts / total).astype(np.float32), np.float32((total / table.sigma) ** 2)
            parts = [layout.parts[column] for column in table.columns]
            if len(parts) == 1:
                self.single[parts[0]], self.single_weight[parts[0]] = shares, weight
            elif len(parts) == 2:
                one, two = parts
                self.pair[one, two], self.pair[two, one] = shares, shares.T
                self.pair_weight[one, two] = self.pair_weight[two, one] = weight
            else:
                self._beside(table.columns, shares, weight)

    def _beside(self, columns: tuple[int, ...], shares: Reals, weight: np.float32) -> None:
        """Triples with the same first two columns stand side by side, by the cells of all later columns."""
        one, two, three = columns
        first = self.layout.parts[two].stop
        held = self.triples.get((one, two))
        if held is None:
            wide = self.layout.width - first
            held = np.zeros((shares.shape[0] * shares.shape[1], wide), dtype=np.float32), np.zeros(wide, np.float32)
            self.triples[one, two] = held
        part = self.layout.parts[three]
        held[0][:, part.start - first : part.stop - first] = shares.reshape(len(held[0]), -1)
        held[1][part.start - first : part.stop - first] = weight

    def gradient(self, shares: Reals) -> tuple[float, Reals]:
        """χ² of a mixture, and by how much it rises with each share of each component."""
        each = np.float32(1 / len(shares))
        off = (shares.T @ shares) * each - self.pair
        pulled = off * self.pair_weight
        chi = 0.5 * float(np.vdot(pulled, off))  # every pair stands in the matrix twice
        slope = (shares @ pulled) * np.float32(2 * each)
        alone = shares.mean(axis=0) - self.single
        chi += float((self.single_weight * alone * alone).sum())
        slope += np.float32(2 * each) * self.single_weight * alone
        for (first, second), (counts, weights) in self.triples.items():
            here, there = self.layout.parts[first], self.layout.parts[second]
            one, two, later = shares[:, here], shares[:, there], shares[:, there.stop :]
            both = (one[:, :, None] * two[:, None, :]).reshape(len(shares), -1)
            away = (both.T @ later) * each - counts
            moved = away * weights
            chi += float(np.vdot(moved, away))
            moved *= np.float32(2 * each)
            slope[:, there.stop :] += both @ moved
            back = (later @ moved.T).reshape(len(shares), one.shape[1], two.shape[1])
            slope[:, here] += (back @ two[:, :, None])[:, :, 0]
            slope[:, there] += (one[:, None, :] @ back)[:, 0, :]
        return chi, slope


def _columns_of_cells(layout: Layout) -> Reals:
    """1 where a cell is one of a column: a product with it adds up the cells of each column."""
    found = np.zeros((layout.width, len(layout.sizes)), dtype=np.float32)
    for column, part in enumerate(layout.parts):
        found[part, column] = 1
    return found


def _softmax(logits: Reals, within: Reals) -> Reals:
    """Shares that add up to 1 in each column.

    One maximum for all columns is enough: logits move by less than 30 in all steps, and begin at −14 or above, so that
    no column is so far below another that its cells vanish.
    """
    rising = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Reals = rising / ((rising @ within) @ within.T)
    return shares
