"""Reports of many persons at once, by the same exact probabilities as the client; for simulations and for gateways.

Randomness is that of bulk noise: AES-256 under keys of the operating system. A gateway that calls this sees the true
values; only where each device draws its own report need nobody be trusted.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any  # each function takes the class that it is listed under

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidInput
from sfumato.local.bitmaps import loops
from sfumato.local.collection import ORACLES
from sfumato.local.draws import BoolArray, ByteArray, IntArray, below, coin_bytes, coins, coins_and_below, many_below
from sfumato.local.fields import Element, field, point, points
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.kary import KaryResponse
from sfumato.local.local_hash import LocalHash
from sfumato.local.means import DuchiMean, HybridMean, Mean, PiecewiseMean
from sfumato.local.oracle import Oracle
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import OptimisedUnary, SymmetricUnary
from sfumato.noise.words import SystemWords, Words

__all__ = ["TABLE", "bits_set", "bucket_table", "buckets", "mean_reports", "nearest", "reports"]

_ROWS = 1 << 16  # persons at a time
TABLE = 1 << 24  # entries of a table that is kept
_DRAWN = 1 << 15  # places at a time, where sets are brought to their size


def reports(oracle: Oracle, truths: ArrayLike, words: Words | None = None) -> "IntArray | ByteArray":
    """Draw one report for each of ``truths``: an array of numbers, or of bitmaps with one row a person.

    Guarantee: that of the oracle for each person. Assumes: what SystemWords assumes. Sensitive: ``truths``.

    >>> from sfumato.local import KaryResponse
    >>> reports(KaryResponse(epsilon=32, values=4), [0, 1, 2, 3]).tolist()  # another one has probability 1e-13
    [0, 1, 2, 3]
    """
    if type(oracle) not in ORACLES:
        raise InvalidInput("reports are drawn for a frequency oracle; nothing was drawn. For a mean: mean_reports.")
    true = np.asarray(truths)
    if true.ndim != 1 or true.dtype.kind not in "iu" or (true.size and (true.min() < 0 or true.max() >= oracle.values)):
        raise InvalidInput(f"the values must be whole numbers from 0 to {oracle.values - 1}; nothing was drawn.")
    true = true.astype(np.int64, copy=False)
    source = SystemWords() if words is None else words
    if isinstance(oracle, SubsetSelection | SymmetricUnary | OptimisedUnary):
        bitmaps: ByteArray = np.empty((true.size, -(-oracle.values // 8)), dtype=np.uint8)
        for start in range(0, true.size, _ROWS):
            part = slice(start, start + _ROWS)
            _WIDE[type(oracle)](oracle, true[part], bitmaps[part], source)
        return bitmaps
    numbers: IntArray = np.empty(true.size, dtype=np.int64)
    for start in range(0, true.size, _ROWS):
        part = slice(start, start + _ROWS)
        numbers[part] = _DRAW[type(oracle)](oracle, true[part], source)
    return numbers


def mean_reports(asked: Mean, values: ArrayLike, words: Words | None = None) -> IntArray:
    """Draw one report of a mean for each of ``values``, which are moved into [−1, 1] and to the nearest point.

    By exactly the client's law for the same floats; other numbers become floats first.

    >>> from sfumato.local import DuchiMean
    >>> mean_reports(DuchiMean(epsilon=32), [1.0, -1.0, 7.5]).tolist()  # another one has probability 1e-13
    [1, 0, 1]
    """
    try:
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty((0, 0))  # refused below, in words that do not repeat a value
    if given.ndim != 1 or not np.isfinite(given).all():
        raise InvalidInput("the values must be finite numbers; nothing was drawn.")
    return _MEAN[type(asked)](asked, nearest(asked, given), SystemWords() if words is None else words)


def nearest(asked: Mean, values: NDArray[np.float64]) -> IntArray:
    """``asked.step`` of each of an array of floats, which counts as the decimal that it prints as.

    The floats below are off by less than steps·2^−51, so only what is nearer than that to a tie is asked one by one.
    """
    up = (np.clip(values, -1, 1) + 1) * (asked.steps / 2) + 0.5
    points: IntArray = np.floor(up).astype(np.int64)
    close = np.abs(up - np.rint(up)) <= asked.steps * 2.0**-50
    if close.any():
        ties, which = np.unique(values[close], return_inverse=True)
        points[close] = np.array([asked.step(float(tie)) for tie in ties], dtype=np.int64)[which]
    return points


def _others(chance: Fraction, truths: IntArray, values: int, words: Words) -> IntArray:
    """The truth with a probability, else a uniform other value."""
    heads, others = coins_and_below(chance, values - 1, truths.size, words)
    own = truths.astype(others.dtype)
    others += others >= own
    np.copyto(others, own, where=heads)
    return others


def _kary(oracle: KaryResponse, truths: IntArray, words: Words) -> IntArray:
    return _others(oracle.hit, truths, oracle.values, words)


def _hash(oracle: LocalHash, truths: IntArray, words: Words) -> IntArray:
    seeds = below(oracle.seeds, truths.size, words)
    if oracle.seeds * oracle.values <= TABLE:
        bucket = bucket_table(oracle.buckets, oracle.digits, oracle.values).ravel()[seeds * oracle.values + truths]
    else:
        bucket = buckets(oracle.buckets, oracle.digits, seeds, truths)
    drawn = _others(oracle.hit, bucket.astype(np.int64), oracle.buckets, words)
    return seeds * oracle.buckets + drawn


def buckets(order: int, digits: int, seeds: IntArray, values: IntArray) -> IntArray:
    """The bucket of each value under each seed, both arrays broadcast together."""
    numbers = field(order)
    total: Element = None
    for j in range(digits):
        part = numbers.times(seeds // order**j % order, values // order**j % order)
        total = part if total is None else numbers.plus(total, part)
    return np.asarray(total, dtype=np.int64)


@lru_cache(maxsize=4)
def bucket_table(order: int, digits: int, values: int) -> "np.ndarray[tuple[int, int], np.dtype[np.uint16]]":
    """The bucket of every value (columns) under every seed (rows)."""
    table = np.empty((order**digits, values), dtype=np.uint16)
    every = np.arange(values)
    for start in range(0, order**digits, 256):
        seeds = np.arange(start, min(start + 256, order**digits))
        table[start : start + 256] = buckets(order, digits, seeds[:, None], every[None, :])
    table.setflags(write=False)
    return table


def _hadamard(oracle: HadamardResponse, truths: IntArray, words: Words) -> IntArray:
    rows = truths + 1
    even, drawn = coins_and_below(oracle.hit, oracle.columns, truths.size, words)
    columns = drawn.astype(np.int64)
    wrong = (np.bitwise_count(rows & columns) & 1).astype(np.bool_) == even
    columns ^= (rows & -rows) * wrong
    return columns


def _projective(oracle: ProjectiveResponse, truths: IntArray, words: Words) -> IntArray:
    order, size, numbers = oracle.order, oracle.dimension, field(oracle.order)
    vectors, leads = _vectors(order, size, oracle.values)
    mine, lead = vectors[:, truths], leads[truths]
    on = coins(oracle.hit, truths.size, words)
    some = order ** (size - 1)
    free = np.where(on, below(some - 1, truths.size, words) + 1, below(some, truths.size, words))
    drawn = np.zeros((size, truths.size), dtype=np.int64)
    for j in range(size):  # coordinates before the leading one, and those after it moved on by one place
        drawn[j] = np.where(j < lead, free // order**j % order, free // order ** max(j - 1, 0) % order)
    drawn[lead, np.arange(truths.size)] = 0
    chosen = numbers.plus((~on).astype(np.int64), numbers.minus(numbers.inner(list(mine), list(drawn))))
    drawn[lead, np.arange(truths.size)] = chosen
    return _places(drawn, order)


def _places(drawn: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", order: int) -> IntArray:
    """The numbers of the points that the columns stand for."""
    numbers, size = field(order), len(drawn)
    first = size - 1 - np.argmax(drawn[::-1] != 0, axis=0)
    inverses = numbers.inverse(np.arange(order))
    factor = inverses[drawn[first, np.arange(drawn.shape[1])]]
    total: IntArray = np.array([points(order, free) for free in range(size)], dtype=np.int64)[first]
    for j in range(size):
        total += np.where(j < first, numbers.times(drawn[j], factor) * order**j, 0)
    return total


@lru_cache(maxsize=4)
def _vectors(order: int, size: int, values: int) -> "tuple[np.ndarray[tuple[int, int], np.dtype[np.int64]], IntArray]":
    """The coordinates of each value's point, and where its leading one stands."""
    vectors = np.array([point(value, order, size) for value in range(values)], dtype=np.int64).T.copy()
    return vectors, size - 1 - np.argmax(vectors[::-1] != 0, axis=0)


def _unary(oracle: SymmetricUnary | OptimisedUnary, truths: IntArray, bitmaps: ByteArray, words: Words) -> None:
    _toss(oracle.stray, bitmaps, oracle.values, words)
    _set(bitmaps, truths, coins(oracle.hit, truths.size, words))


def _toss(chance: Fraction, bitmaps: ByteArray, values: int, words: Words) -> None:
    """Fill bitmaps with independent coins, without the bits beyond the last value."""
    coin_bytes(chance).fill(bitmaps.reshape(-1), words)
    if values % 8:
        bitmaps[:, -1] &= (1 << values % 8) - 1


def _set(bitmaps: ByteArray, places: IntArray, heads: BoolArray) -> None:
    """Set the bit at one place of each row to what a coin shows."""
    if (fast := loops(bitmaps.size)) is not None:
        fast.place(bitmaps, places, heads)
        return
    rows, byte, bit = np.arange(len(bitmaps)), places >> 3, places & 7
    kept = bitmaps[rows, byte] & ~(np.uint8(1) << bit.astype(np.uint8))
    bitmaps[rows, byte] = kept | (heads.astype(np.uint8) << bit.astype(np.uint8))


def _subset(oracle: SubsetSelection, truths: IntArray, bitmaps: ByteArray, words: Words) -> None:
    """Independent coins, and then single values in or out at random until the set has its size.

    Given how many coins show heads, all sets of that size are equally likely; taking uniform members out, or putting
    uniform others in, keeps that so. Where sets are small, members are hard to meet: there fewer coins are asked for.
    """
    spread = isqrt(oracle.size * (oracle.values - oracle.size) // oracle.values)
    few = max(0, oracle.size - 2 * spread) if 4 * oracle.size < oracle.values else oracle.size
    _toss(Fraction(few, oracle.values), bitmaps, oracle.values, words)
    _set(bitmaps, truths, np.zeros(truths.size, dtype=np.bool_))
    heads = coins(oracle.hit, truths.size, words)
    missing = oracle.size - heads - bits_set(bitmaps)
    if (fast := loops(bitmaps.size)) is not None:
        row = 0
        while row < len(missing):
            row = fast.resize(bitmaps, truths, missing, row, many_below(oracle.values, _DRAWN, words))
    else:
        _resized(bitmaps, truths, missing, oracle.values, words)
    _set(bitmaps, truths, heads)


def bits_set(bitmaps: ByteArray) -> IntArray:
    """How many bits of each row are set."""
    whole = bitmaps.shape[1] % 8 == 0 and bitmaps.flags.c_contiguous
    found: IntArray = np.bitwise_count(bitmaps.view(np.uint64) if whole else bitmaps).sum(axis=1, dtype=np.int64)
    return found


def _resized(bitmaps: ByteArray, truths: IntArray, missing: IntArray, values: int, words: Words) -> None:
    """One place for each set that has not its size, and again until all have it."""
    rows = missing.nonzero()[0]
    while rows.size:
        places = below(values, rows.size, words)
        byte, bit = places >> 3, (places & 7).astype(np.uint8)
        there = (bitmaps[rows, byte] >> bit & 1).astype(np.bool_)
        fits = (places != truths[rows]) & (there == (missing[rows] < 0))
        moved = rows[fits]
        bitmaps[moved, byte[fits]] ^= np.uint8(1) << bit[fits]
        missing[moved] -= np.sign(missing[moved])
        rows = rows[missing[rows] != 0]


def _duchi(asked: DuchiMean, steps: IntArray, words: Words) -> IntArray:
    """A uniform point below the own one asks for the likelier side, any other for the less likely one."""
    up = below(asked.steps, steps.size, words) < steps
    kept = coins(asked.ratio / (asked.ratio + 1), steps.size, words)
    return np.equal(up, kept).astype(np.int64)


def _piecewise(asked: PiecewiseMean, steps: IntArray, words: Words) -> IntArray:
    inside = coins(asked.window * asked.ratio / (asked.window * asked.ratio + asked.steps), steps.size, words)
    window = below(asked.window, steps.size, words) + steps
    other = below(asked.steps, steps.size, words)
    other += asked.window * (other >= steps)
    return np.where(inside, window, other)


def _hybrid(asked: HybridMean, steps: IntArray, words: Words) -> IntArray:
    first = coins(asked.share, steps.size, words)
    return np.where(first, 2 + _piecewise(asked.piecewise, steps, words), _duchi(asked.duchi, steps, words))


_DRAW: dict[type, Callable[[Any, IntArray, Words], IntArray]] = {
    KaryResponse: _kary,
    LocalHash: _hash,
    HadamardResponse: _hadamard,
    ProjectiveResponse: _projective,
}
_WIDE: dict[type, Callable[[Any, IntArray, ByteArray, Words], None]] = {
    SymmetricUnary: _unary,
    OptimisedUnary: _unary,
    SubsetSelection: _subset,
}
_MEAN: dict[type, Callable[[Any, IntArray, Words], IntArray]] = {
    DuchiMean: _duchi,
    PiecewiseMean: _piecewise,
    HybridMean: _hybrid,
}
