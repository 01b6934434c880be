"""Totals from released measurements: post-processing, in floats, on which no privacy rests.

A *reconstruction* holds released numbers (public) and gives totals with the spread of their error.
Proof: docs/proofs/streams.md
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.inverse import inverse, response
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams.strategy_encoder import Floats, Integers, Strategy

__all__ = ["Reconstruction", "back_row", "reconstruction_of", "spread_of"]

BLOCK = 256  # steps that are read by one product


class Reconstruction(Protocol):
    """Totals from released measurements. Public."""

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        """For the next ``steps``: the totals in units of 1, and Σ b² and Σ |b| over the measurements in each.

        The error of a total is Σ b·z in lattice units, z being the noise of the measurements.
        """
        ...

    def state(self) -> list[float]:
        """All that is needed to go on."""
        ...


def reconstruction_of(strategy: Strategy, state: Sequence[float] = ()) -> Reconstruction:
    """A new reconstruction, or one that goes on from a state."""
    match strategy:
        case Toeplitz():
            return _Weighed(_toeplitz_back(strategy), strategy.bits, state)
        case Rows():
            return _Weighed(_rows_back(strategy), strategy.bits, state)
        case Tree():
            return _Added(strategy, state)
        case Buffers():
            return _Filtered(strategy, state)
        case Doubling():
            return _Undoubled(strategy, state)


def spread_of(strategy: Strategy) -> Floats:
    """Σ b² for each step of the horizon: the variance of the totals per unit of noise."""
    zeros = np.zeros(strategy.numbers, dtype=np.int64)
    return reconstruction_of(strategy).read(zeros, strategy.horizon)[1]


class _Weighed:
    """Totals of a Toeplitz or a written strategy: rows of W·C⁻¹."""

    def __init__(self, back: Floats, bits: int, state: Sequence[float] = ()) -> None:
        self._back, self._unit = back, 2.0**bits
        self._seen = np.array(state, dtype=np.float64)

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        done = len(self._seen)
        self._seen = np.concatenate([self._seen, y.astype(np.float64)])
        totals = np.empty(steps)
        for place in range(steps):
            totals[place] = self._row(done + place) @ self._seen[: done + place + 1]
        squares, sizes = self._spread(done, steps)
        return totals, squares * self._unit**2, sizes * self._unit

    @property
    def done(self) -> int:
        """How many steps were read."""
        return len(self._seen)

    def state(self) -> list[float]:
        return [float(one) for one in self._seen]

    def _row(self, step: int) -> Floats:
        return self._back[step::-1] if self._back.ndim == 1 else self._back[step, : step + 1]

    def _spread(self, done: int, steps: int) -> tuple[Floats, Floats]:
        if self._back.ndim == 1:
            ends = slice(done, done + steps)
            return np.cumsum(self._back**2)[ends], np.cumsum(np.abs(self._back))[ends]
        rows = self._back[done : done + steps]
        return (rows**2).sum(axis=1), np.abs(rows).sum(axis=1)


@lru_cache(maxsize=8)
def _toeplitz_back(strategy: Toeplitz) -> Floats:
    """b with b∗c = (1, 1, 1, …), for c in units of 1."""
    column = np.array(strategy.column, dtype=np.float64)
    if strategy.form == "increments":
        return np.ones(len(column)) / 2.0**strategy.bits
    if strategy.form == "totals":
        return np.concatenate([[1.0], np.zeros(len(column) - 1)]) / 2.0**strategy.bits
    return _inverse_sums(column)


def _inverse_sums(column: Floats) -> Floats:
    """b with b∗c = (1, 1, 1, …)."""
    from scipy.signal import lfilter

    impulse = np.zeros(len(column))
    impulse[0] = 1.0
    return np.asarray(np.cumsum(lfilter([1.0], column, impulse)))


@lru_cache(maxsize=4)
def _rows_back(strategy: Rows) -> Floats:
    from scipy.linalg import solve_triangular

    size = strategy.horizon
    whole = np.zeros((size, size))
    for place, row in enumerate(strategy.rows):
        whole[place, : place + 1] = row
    return np.tril(solve_triangular(whole.T, np.tril(np.ones((size, size))).T, lower=False).T)


class _Added:
    """Totals of a tree: on each level the blocks that are full since a block of the next level was, added up."""

    def __init__(self, tree: Tree, state: Sequence[float]) -> None:
        self._tree = tree
        self._step, *self._kept = [int(one) for one in state] or [0] * (tree.levels + 1)

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        tree, first = self._tree, self._step
        at = np.arange(first + 1, first + steps + 1)
        full = [at % tree.arity**level == 0 for level in range(tree.levels)]
        places = np.cumsum(np.sum(full, axis=0)) - np.sum(full, axis=0) if steps else at
        totals, counts = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
        for level, closed in enumerate(full):
            size = tree.arity**level
            sums = np.concatenate([[0], np.cumsum(y[places[closed] + level])]) + self._kept[level]
            now, start = at // size - first // size, np.zeros(steps, dtype=np.int64)
            count = at // size
            if level < tree.levels - 1:
                whole = at // (size * tree.arity)
                anew = whole > first // (size * tree.arity)
                start[anew] = sums[whole[anew] * tree.arity - first // size]
                count = count - whole * tree.arity
            totals += sums[now] - start
            counts += count
            self._kept[level] = int(sums[now[-1]] - start[-1]) if steps else self._kept[level]
        self._step += steps
        return totals / 2.0**tree.bits, counts.astype(np.float64), counts.astype(np.float64)

    def state(self) -> list[float]:
        return [float(self._step), *(float(one) for one in self._kept)]


class _Filtered:
    """Totals by the inverse filter: a few numbers of memory, whole blocks by products of matrices."""

    def __init__(self, said: Buffers, state: Sequence[float]) -> None:
        self._mix, self._fading, self._carry, self._poles, self._shares = _back_tables(said)
        self._unit, count = 2.0**said.bits, len(said.decays)
        given = list(state) or [0.0] * (3 + count) + [1.0] * count
        self._total, self._squares, self._sizes = given[:3]
        self._held = np.array(given[3 : 3 + count])
        self._powers = np.array(given[3 + count :])  # of the poles, as far as it was read

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        totals, back = np.empty(steps), np.empty(steps)
        whole = steps - steps % BLOCK
        if whole:
            totals[:whole] = self._totals(y[:whole].reshape(-1, BLOCK).astype(np.float64)).ravel()
            back[:whole] = self._back(whole // BLOCK, BLOCK).ravel()
        if steps > whole:
            totals[whole:] = self._totals(y[None, whole:].astype(np.float64))[0]
            back[whole:] = self._back(1, steps - whole)[0]
        squares = self._squares + np.cumsum(back * back)
        sizes = self._sizes + np.cumsum(np.abs(back))
        if steps:
            self._squares, self._sizes = float(squares[-1]), float(sizes[-1])
        return totals / self._unit, squares, sizes

    def state(self) -> list[float]:
        held = (float(one) for one in (*self._held, *self._powers))
        return [self._total, self._squares, self._sizes, *held]

    def _totals(self, blocks: Floats) -> Floats:
        """The totals of blocks of one width, each from its own numbers and what is held of those before."""
        wide = blocks.shape[1]
        inner, faded = blocks @ self._fading[:, BLOCK - wide :].T, self._poles**wide
        before = np.empty_like(inner)
        for place, new in enumerate(inner):
            before[place] = self._held
            self._held = faded * self._held + new
        found = blocks @ self._mix[:wide, :wide].T
        found -= before @ self._carry[:wide].T
        starts = np.concatenate([[self._total], self._total + np.cumsum(found[:, -1])])
        found += starts[:-1, None]
        self._total = float(starts[-1])
        return np.asarray(found)

    def _back(self, blocks: int, wide: int) -> Floats:
        """b for the next steps: 1 − Σ_j share_j·(1 − φ_j^k)."""
        starts = self._powers * (self._poles**wide) ** np.arange(blocks)[:, None]
        within = self._poles[:, None] ** np.arange(wide)
        self._powers = starts[-1] * self._poles**wide
        return np.asarray((starts * self._shares) @ within + (1 - self._shares.sum()))


@lru_cache(maxsize=8)
def _back_tables(said: Buffers) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """The mix within a block, what is held of it, what that takes from later totals; the poles, and their shares."""
    decays, weights = (np.array([float(one) for one in part]) for part in (said.decays, said.weights))
    poles, taken = inverse(decays, weights)
    shares, place = taken / (1 - poles), np.arange(BLOCK)
    back = response(decays, weights, place)
    mix = np.where(place[:, None] >= place, back[place[:, None] - place], 0.0)
    fading = poles[:, None] ** (BLOCK - 1 - place)
    carry = shares * (1 - poles ** (place[:, None] + 1))
    return mix, fading, carry, poles, shares


class _Undoubled:
    """The last totals of the blocks before, and that of the block that is running."""

    def __init__(self, said: Doubling, state: Sequence[float]) -> None:
        self._said = said
        number, *rest = list(state) or [0.0] * 4
        self._number, self._before = int(number), np.array(rest[:3])
        self._block = self._of_block(rest[3:])

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        out, at = np.empty((3, steps)), 0
        while at < steps:
            size = self._said.first << self._number
            took = min(size - self._block.done, steps - at)
            out[:, at : at + took] = self._before[:, None] + self._block.read(y[at : at + took], took)
            at += took
            if self._block.done == size:
                self._before, self._number = out[:, at - 1].copy(), self._number + 1
                self._block = self._of_block()
        return out[0], out[1], out[2]

    def state(self) -> list[float]:
        return [float(self._number), *(float(one) for one in self._before), *self._block.state()]

    def _of_block(self, state: Sequence[float] = ()) -> _Weighed:
        back = _doubled_back(self._said, self._number) if self._number < self._said.blocks else np.zeros(0)
        return _Weighed(back, self._said.bits, state)


@lru_cache(maxsize=32)
def _doubled_back(said: Doubling, number: int) -> Floats:
    return _inverse_sums(np.array(said.column(number), dtype=np.float64))


def back_row(strategy: Strategy, step: int) -> Floats:
    """b for the total after ``step`` steps: with which the measurement of each step counts in it.

    >>> back_row(Toeplitz(form="increments", horizon=4, bits=3), 2).tolist()
    [1.0, 1.0]
    """
    match strategy:
        case Toeplitz():
            return np.asarray(_toeplitz_back(strategy)[:step][::-1] * 2.0**strategy.bits)
        case Rows():
            return np.asarray(_rows_back(strategy)[step - 1, :step] * 2.0**strategy.bits)
        case Buffers():
            decays, weights = (np.array([float(one) for one in part]) for part in (strategy.decays, strategy.weights))
            return response(decays, weights, np.arange(step))[::-1].copy()
        case Tree():
            return np.ones(strategy.blocks(step))
        case Doubling():
            return _doubled_row(strategy, step)


def _doubled_row(said: Doubling, step: int) -> Floats:
    parts, block = [], 0
    while step > 0:
        size = min(step, said.first << block)
        parts.append(_doubled_back(said, block)[:size][::-1] * 2.0**said.bits)
        step, block = step - size, block + 1
    return np.concatenate(parts)
