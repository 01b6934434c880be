"""Gaussian noise on a fine lattice, exactly and fast: what training adds to every weight in every step.

Proof: docs/proofs/fine_gaussian.md
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.noise.fine_loops import ACCEPTED, OPEN, IntArray, judge, look_up
from sfumato.noise.fine_table import FineTable, fine
from sfumato.noise.words import SystemWords, WordArray, Words

__all__ = ["SIGMA", "accepted_proposals", "draw_fine", "fill_by_proposals", "fine_gaussian"]

SIGMA = 1 << 20  # the standard deviation, in lattice steps
CHUNK = 1 << 15  # numbers drawn at a time: scratch memory stays in the second cache
_ALONE = 1 << 16  # fewer numbers than these a thread do not pay for it


def fine_gaussian(size: int, words: Words | None = None, *, threads: int = 1, out: IntArray | None = None) -> IntArray:
    """Draw ``size`` independent samples of the nearest whole number to N(0, (2^20)²).

    Guarantee: exact, for uniform words. Floating-point numbers decide only where they are further from a threshold than
    4 times their proven error. Assumes: what SystemWords assumes; float64 arithmetic follows IEEE 754.
    ``threads`` other than 1 need a source that gives each thread words of its own, as SystemWords does. ``out`` is an
    array to write to: one that is used again and again saves up to half of the time, for fresh memory is slow.
    Public: how many are drawn. Sensitive: the draws; scratch words are overwritten. The time tells how many of the
    numbers took a second look-up, for all of them together.

    >>> len(fine_gaussian(5))
    5
    """
    size = natural(size, "size", least=0)
    threads = min(natural(threads, "threads"), max(1, size // _ALONE))
    source = SystemWords() if words is None else words
    if out is None:
        out = np.empty(size, dtype=np.int64)
    elif out.shape != (size,) or out.dtype != np.int64 or not out.flags.c_contiguous:
        raise InvalidInput(f"out must be {size} 64-bit whole numbers in one row; nothing was drawn.")
    if threads == 1:
        draw_fine(fine(), out, source)
        return out
    ends = [size * i // threads for i in range(threads + 1)]
    parts = [out[low:high] for low, high in pairwise(ends)]
    table = fine()
    with ThreadPoolExecutor(threads - 1) as others:  # ends when all have ended, whatever they raise
        jobs = [others.submit(draw_fine, table, part, source) for part in parts[1:]]
        draw_fine(table, parts[0], source)
        for job in jobs:
            job.result()
    return out


def draw_fine(table: FineTable, out: IntArray, words: Words) -> None:
    """Overwrite ``out`` with independent draws from the law of a table."""
    lanes, chunk = table.cut.lanes, min(out.size, CHUNK)
    scratch, again = np.empty(-(-chunk // lanes), dtype=np.uint64), np.empty(chunk + 1, dtype=np.int64)
    places = [again[:0]]
    for first in range(0, out.size, CHUNK):
        part = out[first : first + CHUNK]
        some = scratch[: -(-part.size // lanes)]
        words.fill(some)
        places.append(again[: look_up(table, some, part, again)] + first)
    scratch.fill(0)
    fill_by_proposals(table, out, np.concatenate(places), words)


def fill_by_proposals(table: FineTable, out: IntArray, places: IntArray, words: Words) -> None:
    """Draw the places from what the first table leaves over: they take the accepted proposals in their order.

    How many proposals are made at a time depends on how many places are left, and on nothing that they gave.
    """
    while places.size:
        number = int(places.size * 1.1 / table.accepted) + 32
        pairs = np.empty(2 * number, dtype=np.uint64)
        words.fill(pairs)
        taken = accepted_proposals(table, pairs, words)[: places.size]
        out[places[: taken.size]] = taken
        places = places[taken.size :]
        pairs.fill(0)


def accepted_proposals(table: FineTable, pairs: WordArray, words: Words) -> IntArray:
    """The accepted numbers in order, of proposals whose first words come first; what floats leave open is settled."""
    number = pairs.size // 2
    values, verdicts = np.empty(number, dtype=np.int64), np.empty(number, dtype=np.int8)
    judge(table, pairs[:number], pairs[number:], values, verdicts)
    for i in (verdicts == OPEN).nonzero()[0]:
        settled = table.settled(int(pairs[i]), int(pairs[number + i]), words)
        if settled is not None:
            values[i], verdicts[i] = settled, ACCEPTED
    accepted: IntArray = values[verdicts == ACCEPTED]
    return accepted
