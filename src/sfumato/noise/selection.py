"""Choosing one of finitely many: with probability in proportion to exp(x_i), and in a uniformly random order.

Proof: docs/proofs/exact_samplers.md
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from sfumato.core.exact import Exact, natural, rational
from sfumato.errors import InvalidInput
from sfumato.noise.sampler import IntArray
from sfumato.noise.uniform import SPARE, Uniform, fixed_exp
from sfumato.noise.words import SystemWords, WordArray, Words

__all__ = [
    "Ends",
    "permutation",
    "sample_intervals",
    "sample_level",
    "sample_permutation",
    "sample_selection",
    "select",
]

Ends = Callable[[int], tuple[list[int], list[int]]]
"""Encloses the ends of intervals that fill [0, 1), in units of 2^−bits rounded down; the last end is 2^bits itself."""


def select(*, exponents: Sequence[Exact], size: int = 1) -> IntArray:
    """Draw ``size`` independent indices, i with probability exp(x_i) / Σ exp(x_j), where x_i is ``exponents[i]``.

    Guarantee: exact for rational exponents, however far apart.
    Assumes: what SystemWords assumes. The time depends on the exponents, by how many of them differ and by their
    sizes in bits: hide it where the exponents are private.
    Public: how many exponents there are. Sensitive: the exponents; nothing about them is kept.

    >>> select(exponents=[0, -100_000, "1/3"], size=3).tolist() == [1, 1, 1]  # has probability below e^-100000
    False
    """
    exact = [rational(x, f"exponents[{i}]") for i, x in enumerate(exponents)]
    if not exact:
        raise InvalidInput("there is nothing to select from: no exponents were given. Nothing was drawn.")
    return sample_selection(exact, natural(size, "size", least=0), SystemWords())


def permutation(*, size: int) -> IntArray:
    """Draw one of the orders of 0, 1, …, size − 1, all of them equally likely.

    >>> sorted(permutation(size=4).tolist())
    [0, 1, 2, 3]
    """
    return sample_permutation(natural(size, "size", least=0), SystemWords())


def sample_selection(exponents: Sequence[Fraction], size: int, words: Words) -> IntArray:
    """Select from a given source: first a value of the exponent, then uniformly one of those who have it."""
    owners: defaultdict[Fraction, list[int]] = defaultdict(list)
    for index, exponent in enumerate(exponents):
        owners[exponent].append(index)
    top = max(owners)
    levels = [(top - exponent, len(indices)) for exponent, indices in owners.items()]
    level = sample_intervals(lambda bits: _cumulative(levels, bits), size, words)
    members = np.array([index for indices in owners.values() for index in indices], dtype=np.int64)
    counts = np.array([count for _, count in levels], dtype=np.uint64)
    surplus = np.array([words.width - (count - 1).bit_length() for _, count in levels], dtype=np.uint64)
    within = _below(counts[level], surplus[level], words) if len(members) > len(levels) else np.uint64(0)
    first = np.cumsum(counts) - counts
    return members.take((first[level] + within).astype(np.int64))


def sample_level(levels: Sequence[tuple[Fraction, int]], words: Words) -> int:
    """Select one of several levels in proportion to count·exp(−x), where a level is (x, count): whose x is shared.

    >>> sample_level([(Fraction(0), 3)], SystemWords())
    0
    """
    return int(sample_intervals(lambda bits: _cumulative(levels, bits), 1, words)[0])


def sample_permutation(size: int, words: Words) -> IntArray:
    """Draw a uniform order from a given source; keys of that many bits are all different but for a part below 2^−16."""
    return _sorted_keys(size, -(-(2 * size.bit_length() + 16) // words.width), words)


def _sorted_keys(size: int, parts: int, words: Words) -> IntArray:
    """Sort fresh keys, and draw all again where two are equal: given none are, all orders are equally likely."""
    while True:
        keys = np.empty(parts * size, dtype=np.uint64)
        words.fill(keys)
        rows = keys.reshape(parts, size)
        order = np.lexsort(rows)
        ranked = rows[:, order]
        if not (ranked[:, 1:] == ranked[:, :-1]).all(axis=0).any():
            return order.astype(np.int64, copy=False)


def sample_intervals(ends: Ends, size: int, words: Words) -> IntArray:
    """Find the interval in which each of ``size`` uniform numbers lies: interval i has its length as probability.

    A word is the beginning of a uniform number; only where an end may lie inside that beginning, more words are drawn.

    >>> sample_intervals(lambda bits: ([0, 1 << bits], [0, 1 << bits]), 2, SystemWords()).tolist()
    [1, 1]
    """
    place = np.empty(size, dtype=np.uint64)
    words.fill(place)
    low, high = ends(words.width)
    floor = np.array(low[:-1], dtype=np.uint64)
    ceiling = np.array(high[:-1], dtype=np.uint64)
    level = np.searchsorted(floor, place, side="right")
    if len(low) > 1:
        before = ceiling[np.maximum(level - 1, 0)]
        for i in ((level > 0) & (place <= before)).nonzero()[0]:
            level[i] = _refined(ends, Uniform(words, prefix=int(place[i]), bits=words.width))
    place.fill(0)
    return level


def _refined(ends: Ends, where: Uniform) -> int:
    while True:
        low, high = ends(where.bits)
        for level in range(len(low)):
            if where.prefix < low[level]:
                return level
            if where.prefix <= high[level]:
                break
        where.refine()


def _cumulative(levels: Sequence[tuple[Fraction, int]], bits: int) -> tuple[list[int], list[int]]:
    """Enclose where each level ends on a scale of 2^bits, rounded down; the last ends there exactly."""
    fine = bits + 2 * SPARE
    weights = [(count * low, count * high) for x, count in levels for low, high in [fixed_exp(x, fine)]]
    low, high = (list(accumulate(ends)) for ends in zip(*weights, strict=True))
    least, most = low[-1], high[-1]
    last = 1 << bits
    downs = [(down << bits) // most for down in low[:-1]]
    ups = [min((up << bits) // least, last - 1) for up in high[:-1]]
    return [*downs, last], [*ups, last]


def _below(bounds: WordArray, surplus: WordArray, words: Words) -> WordArray:
    """Draw uniformly below each bound: a word less ``surplus`` of its bits, drawn again where it is not below."""
    drawn = np.empty(bounds.size, dtype=np.uint64)
    words.fill(drawn)
    drawn >>= surplus - np.uint64(1)
    drawn >>= np.uint64(1)
    again = (drawn >= bounds).nonzero()[0]
    if again.size:
        drawn[again] = _below(bounds[again], surplus[again], words)
    return drawn
