"""Poisson numbers and their differences, drawn exactly: noise that is closed under sums.

A word is the beginning of a uniform number, and the number drawn is the interval that it falls into, of a scale cut by
the sums of the law. The ends are enclosed from the ratios of neighbouring probabilities, in whole numbers; where a word
leaves open which interval it is, more are drawn. Proof: docs/proofs/skellam.md
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.noise.sampler import ALIKE, CHUNK, KEPT, IntArray
from sfumato.noise.uniform import SPARE, Uniform
from sfumato.noise.words import SystemWords, WordArray, Words

__all__ = ["MOST_MEAN", "MOST_VARIANCE", "poisson", "sample_poisson", "sample_skellam", "skellam"]

MOST_MEAN = 1 << 26
"""Of a Poisson number: its table has about 218,000 ends then."""
MOST_VARIANCE = 2 * MOST_MEAN
_Whole = np.ndarray[tuple[int], np.dtype[np.int32]]
_Numbers = np.ndarray[tuple[int, int], np.dtype[np.int32]]
INDEX = 16  # bits of a word by which its interval is looked up where no end lies between


def skellam(*, variance: Exact, size: int) -> IntArray:
    """Draw ``size`` independent differences of two Poisson numbers of mean variance/2.

    Guarantee: exact for every rational variance up to ``MOST_VARIANCE``. The sum of independent ones of variances v and
    w is one of variance v + w.
    Assumes: what SystemWords assumes.

    >>> len(skellam(variance=2, size=5))
    5
    """
    return sample_skellam(positive(variance, "variance"), natural(size, "size", least=0), SystemWords())


def poisson(*, mean: Exact, size: int) -> IntArray:
    """Draw ``size`` independent samples with P(k) = e^(−mean)·mean^k/k!, k = 0, 1, …

    Guarantee: exact for every rational mean up to ``MOST_MEAN``.
    Assumes: what SystemWords assumes.

    >>> bool((poisson(mean=2, size=5) >= 0).all())
    True
    """
    return sample_poisson(positive(mean, "mean"), natural(size, "size", least=0), SystemWords())


def sample_skellam(variance: Fraction, size: int, words: Words) -> IntArray:
    """Draw differences from a given source."""
    out = np.empty(size, dtype=np.int64)
    for first, drawn in _drawn(variance / 2, size, 2, words):
        np.subtract(drawn[0], drawn[1], out=out[first : first + drawn.shape[1]])
    return out


def sample_poisson(mean: Fraction, size: int, words: Words) -> IntArray:
    """Draw from a given source."""
    out = np.empty(size, dtype=np.int64)
    for first, drawn in _drawn(mean, size, 1, words):
        out[first : first + drawn.shape[1]] = drawn[0]
    return out


def _drawn(mean: Fraction, size: int, rows: int, words: Words) -> Iterator[tuple[int, _Numbers]]:
    """Some of ``rows`` × ``size`` Poisson numbers at a time, and the place of the first; overwritten by the next."""
    if not 0 < mean <= MOST_MEAN:
        raise InvalidInput(f"Poisson numbers are drawn for means above 0 and up to {MOST_MEAN}; nothing was drawn.")
    table, most = _table(mean, words.width), min(size, CHUNK // rows)
    place, index = np.empty((2, rows * most), dtype=np.uint64)
    numbers = np.empty(rows * most, dtype=np.int32)
    for first in range(0, size, CHUNK // rows):
        count = min(most, size - first)
        some, drawn = place[: rows * count], numbers[: rows * count]
        words.fill(some)
        # few are all searched for, so that each takes the same steps
        rest = np.arange(some.size) if count <= ALIKE else table.look_up(drawn, some, index[: some.size])
        table.search(drawn, some, rest, mean, words)
        yield first, drawn.reshape(rows, count)
    for scratch in (place, index, numbers):
        scratch.fill(0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Table:
    """Ends of the intervals of ``first``, ``first`` + 1, … in units of words, enclosed; the last one is not followed.

    ``low[j]`` ≤ the end of interval j ≤ ``high[j]``, both rounded down to whole words. ``start`` is the number that all
    words of a block of 2^``shift`` give, and −1 where they give several or where one of them leaves it open.
    """

    first: int
    low: WordArray
    high: WordArray
    shift: int
    start: _Whole

    @classmethod
    def of(cls, mean: Fraction, width: int) -> "_Table":
        first, lows, highs = _ends(mean, width)
        last = (1 << width) - 1
        low = np.array([min(end, last) for end in lows], dtype=np.uint64)
        high = np.array([min(end, last) for end in highs], dtype=np.uint64)
        shift = max(width - INDEX, 0)
        blocks = np.arange(1 << min(width, INDEX), dtype=np.uint64) << np.uint64(shift)
        table = cls(first=first, low=low, high=high, shift=shift, start=np.empty(0, dtype=np.int32))
        begins = table.searched(blocks)
        ends = table.searched(blocks + np.uint64((1 << shift) - 1))
        sure = (begins == ends) & ~table.unsure(blocks, begins)
        return replace(table, start=np.where(sure, begins + first, -1).astype(np.int32))

    def look_up(self, out: _Whole, place: WordArray, index: WordArray) -> IntArray:
        """Fill ``out`` with the numbers of words whose first bits decide; give the places of the others."""
        np.right_shift(place, np.uint64(self.shift), out=index)
        self.start.take(index.view(np.int64), out=out, mode="clip")
        return (out < 0).nonzero()[0]

    def search(self, out: _Whole, place: WordArray, rest: IntArray, mean: Fraction, words: Words) -> None:
        """Put the numbers of words at some places where they belong, of more words where one leaves them open."""
        some = place[rest]
        found = self.searched(some)
        out[rest] = found + self.first
        for i in rest[self.unsure(some, found)]:
            out[i] = _refined(mean, Uniform(words, prefix=int(place[i]), bits=words.width))

    def searched(self, place: WordArray) -> IntArray:
        """The interval of each word by the lower bounds of ends."""
        return np.searchsorted(self.low, place, side="right").astype(np.int64, copy=False)

    def unsure(self, place: WordArray, found: IntArray) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Where a word leaves it open: an end may lie in it, or it is before the first interval or after the last."""
        before = self.high.take(found - 1, mode="clip")
        unsure: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            ((found > 0) & (place <= before)) | ((found == 0) & (self.first > 0)) | (found >= self.low.size)
        )
        return unsure


@lru_cache(maxsize=KEPT)
def _table(mean: Fraction, width: int) -> _Table:
    return _Table.of(mean, width)


def _refined(mean: Fraction, where: Uniform) -> int:
    """The number whose interval a uniform number lies in, of which more words are drawn."""
    while True:
        where.refine()
        first, lows, highs = _kept_ends(mean, where.bits)
        for k, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if where.prefix < low:
                if k == 0 and first > 0:
                    break
                return first + k
            if where.prefix <= high:
                break


@lru_cache(maxsize=4)
def _kept_ends(mean: Fraction, bits: int) -> tuple[int, list[int], list[int]]:
    return _ends(mean, bits)


def _ends(mean: Fraction, bits: int) -> tuple[int, list[int], list[int]]:
    """The first number with a share worth following, and the enclosed ends of its interval and of those after it.

    In units of 2^−bits, rounded down. With weight 1 at the mode, P(k + 1)/P(k) = mean/(k + 1) gives all others; what is
    not followed on either side is less than one unit of the last place, by a geometric sum.
    """
    fine = bits + 2 * SPARE + 32
    mode = int(mean)
    down, least = _falling(mean, mode, fine, upward=False)
    up, most = _falling(mean, mode, fine, upward=True)
    weights = [*reversed(down), (1 << fine, 1 << fine), *up]
    before = (0, least)
    lows = list(accumulate((low for low, _ in weights), initial=before[0]))[1:]
    highs = list(accumulate((high for _, high in weights), initial=before[1]))[1:]
    total = (lows[-1], highs[-1] + most)
    return (
        mode - len(down),
        [(end << bits) // total[1] for end in lows],
        [(end << bits) // total[0] for end in highs],
    )


def _falling(mean: Fraction, mode: int, fine: int, *, upward: bool) -> tuple[list[tuple[int, int]], int]:
    """Enclosed weights from the mode outward until they are a few units of 2^−fine, and a bound on all after them."""
    top, bottom = mean.numerator, mean.denominator
    low = high = 1 << fine
    found: list[tuple[int, int]] = []
    k = mode
    while True:
        if upward:
            times, over = top, bottom * (k + 1)
        else:
            times, over = bottom * k, top
        k += 1 if upward else -1
        low, high = low * times // over, -(-high * times // over)
        if k < 0:
            return found, 0
        if high <= 1 << SPARE and times < over:
            return found, -(-high * over // (over - times))
        found.append((low, high))
