"""Exact draws in bulk: coins of rational probability, uniform numbers, and bytes of eight coins each.

Proof: docs/proofs/local_oracles.md
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any  # numbers of 32 bits, which do where 64 are asked for

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.local.bitmaps import loops
from sfumato.noise.selection import sample_intervals
from sfumato.noise.words import WordBits, Words

__all__ = [
    "BoolArray",
    "ByteArray",
    "IntArray",
    "RandomBytes",
    "below",
    "coin_bytes",
    "coins",
    "coins_and_below",
    "many_below",
]

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]
BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]
ByteArray = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
_CHUNK = 1 << 17  # bytes of coins at a time: they, their words and the table stay in the nearest memory


def coins(chance: Fraction, size: int, words: Words) -> BoolArray:
    """Toss ``size`` coins of a rational probability, exactly.

    A word is the beginning of a uniform number; only a word that the probability itself begins with asks for more.

    >>> from sfumato.noise.words import SystemWords
    >>> coins(Fraction(1), 2, SystemWords()).tolist()
    [True, True]
    """
    if chance >= 1:
        return np.ones(size, dtype=np.bool_)
    drawn = np.empty(size, dtype=np.uint64)
    words.fill(drawn)
    floor, rest = divmod(chance.numerator << words.width, chance.denominator)
    heads: BoolArray = drawn < np.uint64(floor)
    for i in (drawn == np.uint64(floor)).nonzero()[0] if rest else ():
        heads[i] = WordBits(words).below(chance.denominator) < rest
    drawn.fill(0)
    return heads


def below(bound: int, size: int, words: Words) -> IntArray:
    """Draw ``size`` uniform numbers below a bound of at most 2^62; those that come out too large are drawn again.

    >>> from sfumato.noise.words import SystemWords
    >>> below(1, 2, SystemWords()).tolist()
    [0, 0]
    """
    bits = (bound - 1).bit_length()
    if bits > min(62, words.width):
        raise InvalidInput(f"a bound of {bits} bits is too large to draw below in bulk; nothing was drawn.")
    if not bits:
        return np.zeros(size, dtype=np.int64)
    drawn = np.empty(size, dtype=np.uint64)
    words.fill(drawn)
    drawn >>= np.uint64(words.width - bits)
    while (again := (drawn >= np.uint64(bound)).nonzero()[0]).size:
        fresh = np.empty(again.size, dtype=np.uint64)
        words.fill(fresh)
        drawn[again] = fresh >> np.uint64(words.width - bits)
    return drawn.view(np.int64)


def many_below(bound: int, size: int, words: Words) -> IntArray:
    """Draw at most ``size`` uniform numbers below a bound, and half of that on average at least.

    Numbers below 2^16 are read four from a word. Those that come out too large are dropped.

    >>> from sfumato.noise.words import SystemWords
    >>> many_below(2, 4, SystemWords()).size
    4
    """
    bits = (bound - 1).bit_length()
    if bits > 16 or words.width != 64:
        return below(bound, size, words)
    drawn = np.empty(-(-size // 4), dtype=np.uint64)
    words.fill(drawn)
    short = drawn.view(np.uint16)[:size] >> np.uint16(16 - bits)
    return (short if bound == 1 << bits else short[short < bound]).astype(np.int64)


def coins_and_below(chance: Fraction, bound: int, size: int, words: Words) -> tuple[BoolArray, IntArray]:
    """Toss coins and draw as many uniform numbers below a bound: one of each from half a word, where that does.

    The low bits of half a word are the number and the high bits begin the uniform number of the coin, as in ``coins``.
    Such numbers come in 32 bits.

    >>> from sfumato.noise.words import SystemWords
    >>> [drawn.tolist() for drawn in coins_and_below(Fraction(1), 1, 2, SystemWords())]
    [[True, True], [0, 0]]
    """
    bits = (bound - 1).bit_length()
    if bits > 16 or words.width != 64 or chance >= 1:
        return coins(chance, size, words), below(bound, size, words)
    drawn = np.empty(-(-size // 2), dtype=np.uint64)
    words.fill(drawn)
    half = drawn.view(np.uint32)[:size]
    numbers: Any = half & np.uint32((1 << bits) - 1)
    floor, rest = divmod(chance.numerator << (32 - bits), chance.denominator)
    heads: BoolArray = half < floor << bits
    if rest:
        may: BoolArray = half <= (floor + 1 << bits) - 1
        for i in (may & ~heads).nonzero()[0]:
            heads[i] = WordBits(words).below(chance.denominator) < rest
    if bound < 1 << bits:
        again = (numbers >= bound).nonzero()[0]
        numbers[again] = below(bound, again.size, words)
    drawn.fill(0)
    return heads, numbers


class RandomBytes:
    """Bytes of a law whose probabilities are whole weights over their sum; two random bytes a byte, exactly.

    Of the 65,536 double bytes each of the 256 outcomes gets as many as its probability holds whole. The ones left over,
    fewer than 256, ask for a draw from what the whole numbers left out: from another such table, and there from words.
    """

    __slots__ = ("left_over", "rest", "table", "total", "weights")

    def __init__(self, weights: Sequence[int], *, tables: int = 2) -> None:
        whole = sum(weights)
        shares = [divmod(weight << 16, whole) for weight in weights]
        left = [rest for _, rest in shares]
        self.left_over = sum(units for units, _ in shares)
        self.table = np.zeros(1 << 16, dtype=np.uint8)
        self.table[: self.left_over] = np.repeat(np.arange(256, dtype=np.uint8), [units for units, _ in shares])
        self.weights = list(accumulate(left))
        self.total = self.weights[-1]
        self.rest = RandomBytes(left, tables=tables - 1) if self.total and tables > 1 else None

    def fill(self, out: "np.ndarray[tuple[int], np.dtype[np.uint8]]", words: Words) -> None:
        """Overwrite ``out`` with fresh bytes."""
        fast = loops(out.size)
        drawn = np.empty(_CHUNK // 4, dtype=np.uint64)
        again: IntArray = np.empty(_CHUNK, dtype=np.int64)
        open_still = [again[:0]]
        for start in range(0, out.size, _CHUNK):
            part = out[start : start + _CHUNK]
            used = drawn[: -(-part.size // 4)]
            words.fill(used)
            if fast is not None and part.size == _CHUNK:
                found = fast.look_up(self.table, self.left_over, used, part.view(np.uint64), again)
                open_still.append(again[:found] + start)
            else:
                pairs = used.view(np.uint16)[: part.size]
                self.table.take(pairs, out=part, mode="clip")
                open_still.append((pairs >= self.left_over).nonzero()[0] + start)
        drawn.fill(0)
        places = np.concatenate(open_still)
        if self.rest is not None and places.size:
            fresh = np.empty(places.size, dtype=np.uint8)
            self.rest.fill(fresh, words)
            out[places] = fresh
        elif self.total:
            out[places] = sample_intervals(self._ends, places.size, words)

    def _ends(self, bits: int) -> tuple[list[int], list[int]]:
        ends = [(weight << bits) // self.total for weight in self.weights[:-1]]
        ends = [min(end, (1 << bits) - 1) for end in ends]
        return [*ends, 1 << bits], [*ends, 1 << bits]


@lru_cache(maxsize=16)
def coin_bytes(chance: Fraction) -> RandomBytes:
    """Bytes of eight independent coins of one rational probability."""
    top, whole = chance.numerator, chance.denominator
    ways = [top**ones * (whole - top) ** (8 - ones) for ones in range(9)]
    return RandomBytes([ways[byte.bit_count()] for byte in range(256)])
