"""Noise with cubes as its level sets: P(z) ∝ exp(−max|z_i|/scale) on vectors of whole numbers, drawn exactly.

exp(−m/b) is in proportion to Σ_{r ≥ m} exp(−r/b): so z is uniform in a cube whose radius r has the weight
(2r + 1)^d·exp(−r/b). And r is the sum of d + 1 geometric numbers and of a number k ≤ d with the weight
B(d, k)·exp(−k/b), B(d, k) the Eulerian numbers of type B. Nothing is refused. Proof: docs/proofs/k_norm.md
"""

from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np

from sfumato.core.exact import natural
from sfumato.noise.lattice import sample_geometric
from sfumato.noise.sampler import AnyIntArray, IntArray
from sfumato.noise.selection import sample_intervals
from sfumato.noise.sums import wide
from sfumato.noise.uniform import SPARE, fixed_exp
from sfumato.noise.words import WordArray, WordBits, Words

__all__ = ["MOST_DIMENSIONS", "Vectors", "eulerian", "sample_cube"]

Vectors = np.ndarray[tuple[int, int], np.dtype[np.int64]] | np.ndarray[tuple[int, int], np.dtype[np.object_]]

MOST_DIMENSIONS = 1024  # beyond it the table of B(d, k) takes more than a second to build


def sample_cube(dimension: int, scale: Fraction, size: int, words: Words) -> Vectors:
    """Draw ``size`` independent vectors of ``dimension`` whole numbers with P(z) ∝ exp(−max|z_i|/scale).

    >>> from sfumato.noise.words import SystemWords
    >>> sample_cube(3, Fraction(2), 5, SystemWords()).shape
    (5, 3)
    """
    natural(dimension, "the number of dimensions", most=MOST_DIMENSIONS)
    ends = partial(_ends, dimension, 1 / scale)
    descents = sample_intervals(ends, size, words)
    steps = wide(sample_geometric(scale, size * (dimension + 1), words), dimension + 4)
    radius = descents + steps.reshape(size, dimension + 1).sum(axis=1)
    across = np.repeat(radius, dimension)
    return np.asarray(_below(2 * across + 1, words) - across).reshape(size, dimension)


@lru_cache(maxsize=8)
def eulerian(dimension: int) -> tuple[int, ...]:
    """B(d, 0), …, B(d, d): the whole numbers with (2r + 1)^d = Σ_k B(d, k)·C(r + d − k, d) for every r.

    They count the signed permutations of d things by their descents: there are 2^d·d! in all.

    >>> eulerian(1), eulerian(3)
    ((1, 1), (1, 23, 23, 1))
    """
    row = [1]
    for d in range(1, dimension + 1):
        longer = [0, *row, 0]
        row = [(2 * k + 1) * longer[k + 1] + (2 * (d - k) + 1) * longer[k] for k in range(d + 1)]
    return tuple(row)


@lru_cache(maxsize=32)
def _ends(dimension: int, rate: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Enclose where the weights B(d, k)·exp(−k·rate), put end to end, end on a scale of 2^bits.

    The first weight is 1 and all together are at most 2^d·d!: with that many bits more, what is rounded stays small.
    """
    counts = eulerian(dimension)
    fine = bits + 2 * SPARE + sum(counts).bit_length()
    ratio = fixed_exp(rate, fine)
    powers = [(1 << fine, 1 << fine)]
    for _ in range(dimension):
        powers.append((powers[-1][0] * ratio[0] >> fine, -(-powers[-1][1] * ratio[1] >> fine)))
    low = list(accumulate(count * power for count, (power, _) in zip(counts, powers, strict=True)))
    high = list(accumulate(count * power for count, (_, power) in zip(counts, powers, strict=True)))
    last = 1 << bits
    downs = [(end << bits) // high[-1] for end in low[:-1]]
    ups = [min((end << bits) // low[-1], last - 1) for end in high[:-1]]
    return [*downs, last], [*ups, last]


def _below(bounds: AnyIntArray, words: Words) -> AnyIntArray:
    """Draw uniformly from 0 to each bound less 1: the remainder of a word that is not of the last 2^width mod bound.

    With words of 64 bits and bounds far below, next to nothing is drawn again, whatever the bounds.
    """
    if bounds.dtype != np.int64 or (bounds.size and int(bounds.max()).bit_length() > words.width):
        bits = WordBits(words)
        return np.array([bits.below(int(bound)) for bound in bounds], dtype=object)
    drawn = np.empty(bounds.size, dtype=np.uint64)
    _fill_below(drawn, bounds.astype(np.uint64), words)
    return drawn.astype(np.int64)


def _fill_below(out: WordArray, bounds: WordArray, words: Words) -> None:
    place = np.empty(bounds.size, dtype=np.uint64)
    words.fill(place)
    last = np.uint64((1 << words.width) - 1)
    over = (last % bounds + np.uint64(1)) % bounds
    np.remainder(place, bounds, out=out)
    again: IntArray = (place > last - over).nonzero()[0]
    place.fill(0)
    if again.size:
        rest = np.empty(again.size, dtype=np.uint64)
        _fill_below(rest, bounds[again], words)
        out[again] = rest
