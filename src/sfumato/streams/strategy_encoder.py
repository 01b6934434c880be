"""Exact measurements of a strategy: what the noise is added to.

An *encoder* holds exact numbers (sensitive) and gives whole measurements; what they become on the other side of the
noise is in ``reconstruction.py``. Proof: docs/proofs/streams.md
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.matrix.steps.buffers import BLOCK, Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree

__all__ = ["Floats", "Integers", "Strategy", "StrategyEncoder", "check_room", "encoder_of"]

Strategy = Toeplitz | Buffers | Tree | Rows | Doubling
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_BLOCKS = 4096  # at once
FINE = 80  # fractional bits of a buffer between blocks


class StrategyEncoder(Protocol):
    """Exact measurements. Sensitive: everything in it."""

    def measure(self, x: Integers) -> Integers:
        """The measurements that the next inputs complete, in lattice units, in the order in which they do."""
        ...

    def state(self) -> list[int]:
        """All that is needed to go on."""
        ...


def encoder_of(strategy: Strategy, state: Sequence[int] = ()) -> StrategyEncoder:
    """A new encoder, or one that goes on from a state."""
    match strategy:
        case Toeplitz() | Rows():
            return _Mixed(strategy, state)
        case Tree():
            return _Blocks(strategy, state)
        case Buffers():
            return _Buffered(strategy, state)
        case Doubling():
            return _Doubled(strategy, state)


class _Mixed:
    """A row of the strategy with all inputs so far."""

    def __init__(self, strategy: Toeplitz | Rows, state: Sequence[int]) -> None:
        self._strategy = strategy
        self._past = np.array(state, dtype=np.int64)
        self._column = np.array(strategy.column, dtype=np.int64) if isinstance(strategy, Toeplitz) else None

    def measure(self, x: Integers) -> Integers:
        done = len(self._past)
        self._past = np.concatenate([self._past, x])
        if self._column is not None:
            return _mixed(self._column, self._past, done)
        rows = self._strategy.rows[done : len(self._past)]  # type: ignore[union-attr]  # rows, since it has no column
        return np.array([np.array(row, dtype=np.int64) @ self._past[: len(row)] for row in rows], dtype=np.int64)

    def state(self) -> list[int]:
        return [int(one) for one in self._past]


def _mixed(column: Integers, past: Integers, done: int) -> Integers:
    """Σ_k c_k·x_(t−k) for all steps but the first ``done``."""
    return np.array([column[step::-1] @ past[: step + 1] for step in range(done, len(past))], dtype=np.int64)


class _Blocks:
    """Open blocks of a tree: one exact sum a level."""

    def __init__(self, tree: Tree, state: Sequence[int]) -> None:
        self._tree = tree
        self._step, *sums = state or [0] * (tree.levels + 1)
        self._sums = sums

    def measure(self, x: Integers) -> Integers:
        tree, steps = self._tree, np.arange(self._step + 1, self._step + len(x) + 1)
        found, keys = [], []
        for level in range(tree.levels):
            size = tree.arity**level
            totals = np.cumsum(x) + self._sums[level]
            full = np.flatnonzero(steps % size == 0)
            found.append(np.diff(totals[full], prepend=0) << tree.bits)
            keys.append(steps[full] * tree.levels + level)
            if len(x):
                self._sums[level] = int(totals[-1] - (totals[full[-1]] if len(full) else 0))
        self._step += len(x)
        return np.asarray(np.concatenate(found)[np.argsort(np.concatenate(keys), kind="stable")])

    def state(self) -> list[int]:
        return [self._step, *self._sums]


class _Buffered:
    """Blocks of inputs, and one number a buffer for all that came before the block."""

    def __init__(self, buffers: Buffers, state: Sequence[int]) -> None:
        self._said = buffers
        count = len(buffers.decays)
        self._carried = [int(one) for one in state[:count]] or [0] * count
        self._block = np.array(state[count:], dtype=np.int64)
        self._mix, self._fading, self._carry, self._whole = _tables(buffers)

    def measure(self, x: Integers) -> Integers:
        out, at = np.empty(len(x), dtype=np.int64), 0
        while at < len(x):
            if not len(self._block) and len(x) - at >= BLOCK:
                took = min((len(x) - at) // BLOCK, MOST_BLOCKS) * BLOCK
                out[at : at + took] = self._full(x[at : at + took].reshape(-1, BLOCK).astype(np.float64)).ravel()
            else:
                took = min(BLOCK - len(self._block), len(x) - at)
                out[at : at + took] = self._part(x[at : at + took])
            at += took
        return out

    def _full(self, blocks: Floats) -> Integers:
        """Whole blocks at once; only the buffers go from one to the next."""
        before = []
        for new in (blocks @ self._fading.T).tolist():
            before.append(self._held())
            self._carry_on(new)
        found = blocks @ self._mix.T
        found += np.array(before) @ self._carry.T
        return np.asarray(np.rint(found, out=found).astype(np.int64))

    def _part(self, x: Integers) -> Integers:
        done, self._block = len(self._block), np.concatenate([self._block, x])
        size, inside = len(self._block), self._block.astype(np.float64)
        found = np.rint(self._mix[done:size, :size] @ inside + self._carry[done:size] @ np.array(self._held()))
        if size == BLOCK:
            self._carry_on((self._fading @ inside).tolist())
            self._block = np.zeros(0, dtype=np.int64)
        return np.asarray(found.astype(np.int64))

    def _held(self) -> list[float]:
        return [one * 2.0**-FINE for one in self._carried]  # the nearest float: powers of 2 change no digit

    def _carry_on(self, inner: list[float]) -> None:
        self._carried = [
            (whole * one >> FINE) + floor(new * 2.0**FINE)
            for whole, one, new in zip(self._whole, self._carried, inner, strict=True)
        ]

    def state(self) -> list[int]:
        return [*self._carried, *(int(one) for one in self._block)]


@lru_cache(maxsize=8)
def _tables(said: Buffers) -> tuple[Floats, Floats, Floats, list[int]]:
    """The mix within a block, what each input of a block adds to a buffer, what a buffer adds, and θ^BLOCK."""
    size = BLOCK
    powers = [_powers(decay, size) for decay in said.decays]
    pairs = list(zip(said.weights, powers, strict=True))
    first = np.array(
        [2.0**said.bits, *(float(sum(w * row[k] for w, row in pairs) * 2**said.bits) for k in range(size))]
    )
    place = np.arange(size)
    mix = np.where(place[:, None] >= place, first[place[:, None] - place], 0.0)
    fading = np.array([[float(row[size - 1 - s]) for s in range(size)] for row in powers])
    carry = np.array([[float(w * row[k] * 2**said.bits) for w, row in pairs] for k in range(size)])
    return mix, fading, carry, [int(row[size] * (1 << FINE)) for row in powers]


def _powers(decay: Fraction, most: int) -> list[Fraction]:
    """1, θ, θ², …, each to 400 bits: far finer than the floats that they become."""
    found = [Fraction(1)]
    for _ in range(most):
        found.append(Fraction(int(found[-1] * decay * 2**400), 2**400))
    return found


class _Doubled:
    """The inputs of the block that is running."""

    def __init__(self, said: Doubling, state: Sequence[int]) -> None:
        self._said = said
        self._number, *past = state or [0]
        self._past = np.array(past, dtype=np.int64)

    def measure(self, x: Integers) -> Integers:
        found, at = [np.zeros(0, dtype=np.int64)], 0
        while at < len(x):
            column, done = _whole_column(self._said, self._number), len(self._past)
            took = min(len(column) - done, len(x) - at)
            past = np.concatenate([self._past, x[at : at + took]])
            found.append(_mixed(column, past, done))
            at, self._past = at + took, past
            if len(past) == len(column):
                self._number, self._past = self._number + 1, np.zeros(0, dtype=np.int64)
        return np.concatenate(found)

    def state(self) -> list[int]:
        return [self._number, *(int(one) for one in self._past)]


@lru_cache(maxsize=32)
def _whole_column(said: Doubling, number: int) -> Integers:
    return np.array(said.column(number), dtype=np.int64)


def check_room(strategy: Strategy, largest: int) -> bool:
    """Whether exact measurements of inputs up to ``largest`` stay far within 64 bits, whatever is added."""
    match strategy:
        case Toeplitz():
            total: int | Fraction = sum(strategy.column)
        case Rows():
            total = max(sum(abs(one) for one in row) for row in strategy.rows)
        case Tree():
            total = strategy.horizon << strategy.bits
        case Doubling():
            total = max(sum(strategy.column(block)) for block in range(strategy.blocks))
        case Buffers():
            size = sum((w / (1 - d) for d, w in zip(strategy.decays, strategy.weights, strict=True)), Fraction(1))
            total = size * 2**strategy.bits
    return bool(total * largest < 2**61)
