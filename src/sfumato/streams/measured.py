"""Running a strategy: exact measurements on one side of the noise, totals on the other.

A *meter* holds exact numbers (sensitive) and gives whole measurements; a *reader* holds released ones (public) and
gives totals with the spread of their error. Proof: docs/proofs/streams.md
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.streams.buffers import BLOCK, Buffers
from sfumato.streams.doubling import Doubling
from sfumato.streams.inverse import inverse, response
from sfumato.streams.rows import Rows
from sfumato.streams.toeplitz import Toeplitz
from sfumato.streams.tree import Tree

__all__ = ["Meter", "Reader", "Strategy", "back_row", "check_room", "meter_of", "reader_of", "spread_of"]

Strategy = Toeplitz | Buffers | Tree | Rows | Doubling
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_BLOCKS = 4096  # at once
FINE = 80  # fractional bits of a buffer between blocks


class Meter(Protocol):
    """Exact measurements. Sensitive: everything in it."""

    def measure(self, x: Integers) -> Integers:
        """The measurements that the next inputs complete, in lattice units, in the order in which they do."""
        ...

    def state(self) -> list[int]:
        """All that is needed to go on."""
        ...


class Reader(Protocol):
    """Totals from released measurements. Public."""

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        """For the next ``steps``: the totals in units of 1, and Σ b² and Σ |b| over the measurements in each.

        The error of a total is Σ b·z in lattice units, z being the noise of the measurements.
        """
        ...


def meter_of(strategy: Strategy, state: Sequence[int] = ()) -> Meter:
    """A new meter, or one that goes on from a state."""
    match strategy:
        case Toeplitz() | Rows():
            return _Mixed(strategy, state)
        case Tree():
            return _Blocks(strategy, state)
        case Buffers():
            return _Buffered(strategy, state)
        case Doubling():
            return _Doubled(strategy, state)


def reader_of(strategy: Strategy) -> Reader:
    """A new reader."""
    match strategy:
        case Toeplitz() | Rows():
            return _Weighed(strategy)
        case Tree():
            return _Added(strategy)
        case Buffers():
            return _Filtered(strategy)
        case Doubling():
            return _Undoubled(strategy)


def spread_of(strategy: Strategy) -> Floats:
    """Σ b² for each step of the horizon: the variance of the totals per unit of noise."""
    zeros = np.zeros(strategy.numbers, dtype=np.int64)
    return reader_of(strategy).read(zeros, strategy.horizon)[1]


class _Mixed:
    """A row of the strategy with all inputs so far."""

    def __init__(self, strategy: Toeplitz | Rows, state: Sequence[int]) -> None:
        self._strategy = strategy
        self._past = np.array(state, dtype=np.int64)
        self._column = np.array(strategy.column, dtype=np.int64) if isinstance(strategy, Toeplitz) else None

    def measure(self, x: Integers) -> Integers:
        done = len(self._past)
        self._past = np.concatenate([self._past, x])
        out = np.empty(len(x), dtype=np.int64)
        for place in range(len(x)):
            out[place] = self._row(done + place) @ self._past[: done + place + 1]
        return out

    def _row(self, step: int) -> Integers:
        if self._column is not None:
            return self._column[step::-1]
        return np.array(self._strategy.rows[step], dtype=np.int64)  # type: ignore[union-attr]

    def state(self) -> list[int]:
        return [int(one) for one in self._past]


class _Weighed:
    """Totals of a Toeplitz or a written strategy: rows of W·C⁻¹."""

    def __init__(self, strategy: Toeplitz | Rows) -> None:
        self._strategy = strategy
        self._back = _toeplitz_back(strategy) if isinstance(strategy, Toeplitz) else _rows_back(strategy)
        self._seen = np.zeros(0)

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        done = len(self._seen)
        self._seen = np.concatenate([self._seen, y.astype(np.float64)])
        totals, squares, sizes = (np.empty(steps) for _ in range(3))
        if self._back.ndim == 1:
            ends = slice(done, done + steps)
            squares[:], sizes[:] = np.cumsum(self._back**2)[ends], np.cumsum(np.abs(self._back))[ends]
        for place in range(steps):
            step = done + place
            row = self._back[step::-1] if self._back.ndim == 1 else self._back[step, : step + 1]
            totals[place] = row @ self._seen[: step + 1]
            if self._back.ndim == 2:
                squares[place], sizes[place] = (row**2).sum(), np.abs(row).sum()
        unit = 2.0**self._strategy.bits
        return totals, squares * unit**2, sizes * unit


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
    return np.asarray(solve_triangular(whole.T, np.tril(np.ones((size, size))).T, lower=False).T)


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


class _Added:
    """Totals of a tree: the open blocks on each level, added up."""

    def __init__(self, tree: Tree) -> None:
        self._tree, self._step = tree, 0
        self._kept = [0] * tree.levels

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        tree, at = self._tree, 0
        totals, counts = np.empty(steps), np.empty(steps)
        numbers = [int(one) for one in y]
        for place in range(steps):
            self._step += 1
            for level in range(tree.levels):
                if self._step % tree.arity**level:
                    break
                self._kept[:level] = [0] * level
                self._kept[level] += numbers[at]
                at += 1
            totals[place], counts[place] = sum(self._kept), tree.blocks(self._step)
        return totals / 2.0**tree.bits, counts, counts


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
        inner, before = blocks @ self._fading.T, np.empty((len(blocks), len(self._carried)))
        for place, new in enumerate(inner):
            before[place] = self._held()
            self._carry_on(new)
        return np.asarray(np.rint(blocks @ self._mix.T + before @ self._carry.T).astype(np.int64))

    def _part(self, x: Integers) -> Integers:
        done, self._block = len(self._block), np.concatenate([self._block, x])
        size, inside = len(self._block), self._block.astype(np.float64)
        found = np.rint(self._mix[done:size, :size] @ inside + self._carry[done:size] @ self._held())
        if size == BLOCK:
            self._carry_on(self._fading @ inside)
            self._block = np.zeros(0, dtype=np.int64)
        return np.asarray(found.astype(np.int64))

    def _held(self) -> Floats:
        return np.array([one / (1 << FINE) for one in self._carried])

    def _carry_on(self, inner: Floats) -> None:
        self._carried = [
            (whole * one >> FINE) + _fixed(float(new))
            for whole, one, new in zip(self._whole, self._carried, inner, strict=True)
        ]

    def state(self) -> list[int]:
        return [*self._carried, *(int(one) for one in self._block)]


def _fixed(number: float) -> int:
    """A float in units of 2^−FINE, rounded down."""
    top, bottom = number.as_integer_ratio()
    return (top << FINE) // bottom


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


class _Filtered:
    """Totals by the inverse filter: a few numbers of memory."""

    def __init__(self, said: Buffers) -> None:
        decays, weights = (np.array([float(one) for one in part]) for part in (said.decays, said.weights))
        self._poles, self._shares = inverse(decays, weights)
        self._unit = 2.0**said.bits
        self._held = np.zeros(len(decays))
        self._total, self._squares, self._sizes = 0.0, 0.0, 0.0
        self._powers = np.ones(len(decays))  # of the poles, as far as it was read

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        from scipy.signal import lfilter

        seen = y.astype(np.float64)
        taken = np.zeros(steps)
        for place, (pole, share) in enumerate(zip(self._poles, self._shares, strict=True)):
            held, last = lfilter([1.0], [1.0, -pole], seen, zi=[pole * self._held[place]])
            taken += share * np.concatenate([[self._held[place]], held[:-1]])
            self._held[place] = held[-1] if steps else self._held[place]
            del last
        totals = self._total + np.cumsum(seen - taken)
        back = np.ones(steps)
        for place, (pole, share) in enumerate(zip(self._poles, self._shares, strict=True)):
            powers = np.cumprod(np.concatenate([[self._powers[place]], np.full(steps, pole)]))
            back -= share / (1 - pole) * (1 - powers[:-1])
            self._powers[place] = powers[-1]
        squares = self._squares + np.cumsum(back**2)
        sizes = self._sizes + np.cumsum(np.abs(back))
        if steps:
            self._total, self._squares, self._sizes = float(totals[-1]), float(squares[-1]), float(sizes[-1])
        return totals / self._unit, squares, sizes


class _Doubled:
    """The inputs of the block that is running."""

    def __init__(self, said: Doubling, state: Sequence[int]) -> None:
        self._said = said
        self._number, *past = state or [0]
        self._past = np.array(past, dtype=np.int64)

    def measure(self, x: Integers) -> Integers:
        out = np.empty(len(x), dtype=np.int64)
        for place in range(len(x)):
            self._past = np.append(self._past, x[place])
            column = _whole_column(self._said, self._number)
            out[place] = column[len(self._past) - 1 :: -1] @ self._past
            if len(self._past) == len(column):
                self._number, self._past = self._number + 1, np.zeros(0, dtype=np.int64)
        return out

    def state(self) -> list[int]:
        return [self._number, *(int(one) for one in self._past)]


class _Undoubled:
    """The last totals of the blocks before, and that of the block that is running."""

    def __init__(self, said: Doubling) -> None:
        self._said, self._number = said, 0
        self._before = np.zeros(3)
        self._seen = np.zeros(0)

    def read(self, y: Integers, steps: int) -> tuple[Floats, Floats, Floats]:
        out = np.empty((3, steps))
        unit = 2.0**self._said.bits
        for place in range(steps):
            self._seen = np.append(self._seen, float(y[place]))
            back = _doubled_back(self._said, self._number)
            row = back[len(self._seen) - 1 :: -1]
            own = np.array([row @ self._seen, (row**2).sum() * unit**2, np.abs(row).sum() * unit])
            out[:, place] = self._before + own
            if len(self._seen) == len(back):
                self._before, self._seen, self._number = out[:, place].copy(), np.zeros(0), self._number + 1
        return out[0], out[1], out[2]


@lru_cache(maxsize=32)
def _whole_column(said: Doubling, number: int) -> Integers:
    return np.array(said.column(number), dtype=np.int64)


@lru_cache(maxsize=32)
def _doubled_back(said: Doubling, number: int) -> Floats:
    return _inverse_sums(_whole_column(said, number).astype(np.float64))


def check_room(strategy: Strategy, largest: int) -> bool:
    """Whether exact measurements of inputs up to ``largest`` stay far within 64 bits, whatever is added."""
    match strategy:
        case Toeplitz():
            total: Any = sum(strategy.column)
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
