"""Choosing one of very many slots with probability in proportion to exp(−rate·excess), the excess known by blocks.

A block holds slots next to each other, and an excess that none of them is below. Proposals have weights that are powers
of two, so that they add up in whole numbers; an exact coin accepts. No floating-point number takes part.
Proof: docs/proofs/quantiles.md
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from sfumato.noise.uniform import SPARE, Uniform
from sfumato.noise.words import WordBits, Words

__all__ = ["LEVELS", "Block", "Landscape", "sample_slot"]

Block = tuple[int, int, int]
"""The first slot, how many slots there are, and an excess that none of them is below."""

LEVELS = Fraction(1442695040888963407, 10**18)  # just below 1/ln 2: how many powers of two make a power of e


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """Slots and how far each is from the best.

    ``slots`` is how many there are; ``within(limit)`` gives all blocks whose excess is at most ``limit``, always the
    same ones; ``excess(slot)`` is exact. Blocks share no slot. Sensitive: all of it but ``slots``.
    """

    slots: int
    within: Callable[[int], Sequence[Block]]
    excess: Callable[[int], int]


def sample_slot(landscape: Landscape, rate: Fraction, words: Words) -> int:
    """Draw a slot with probability in proportion to exp(−rate·excess), exactly.

    Only blocks that a uniform number can reach are searched, so the time depends on how many slots are good, not on how
    many there are. Assumes: what the source of words assumes. Sensitive: the time it takes.
    """
    proposals = _Proposals(landscape, rate)
    while True:
        level, blocks = proposals.draw(words)
        slot = _member(blocks, WordBits(words).below(sum(length for _, length, _ in blocks)))
        # A number below 2^−level, uniform there: below exp(−x) with probability 2^level·exp(−x), which is at most 1.
        if Uniform(words, bits=level).below_exp(rate * landscape.excess(slot)):
            return slot


def _member(blocks: Sequence[Block], place: int) -> int:
    """The slot at this place, counted through some blocks."""
    for start, length, _ in blocks:
        if place < length:
            return start + place
        place -= length
    raise AssertionError("the place is below the number of slots")


class _Proposals:
    """Blocks by level: how often 2 can be halved without passing below exp(−rate·excess) of any slot in them."""

    def __init__(self, landscape: Landscape, rate: Fraction) -> None:
        self.landscape = landscape
        self.halvings = rate * LEVELS  # of one unit of excess
        self.deepest = -1
        self.levels: list[list[Block]] = []
        self.ends: list[int] = []
        self.most = 0

    def draw(self, words: Words) -> tuple[int, list[Block]]:
        """Draw a level with probability in proportion to (slots of its blocks)·2^−level; give its blocks too."""
        where = Uniform(words)
        while True:
            where.refine()
            self._look(max(where.bits - SPARE, SPARE // 4) + self.landscape.slots.bit_length())
            least, most, begin = self.ends[-1], self.most, 0
            for level, end in enumerate(self.ends):
                if where.prefix * least >= begin << where.bits and (where.prefix + 1) * most <= end << where.bits:
                    return level, self.levels[level]
                begin = end

    def _look(self, deepest: int) -> None:
        """Sort all blocks down to a level; the total weight is then known but for less than one unit a slot."""
        if deepest <= self.deepest:
            return
        top, bottom = self.halvings.numerator, self.halvings.denominator
        self.deepest, self.levels = deepest, [[] for _ in range(deepest + 1)]
        for block in self.landscape.within(-(-(deepest + 1) * bottom // top) - 1):
            self.levels[block[2] * top // bottom].append(block)
        counts = [sum(length for _, length, _ in blocks) for blocks in self.levels]
        self.ends = list(accumulate(count << (deepest - level) for level, count in enumerate(counts)))
        self.most = self.ends[-1] + self.landscape.slots - sum(counts)
