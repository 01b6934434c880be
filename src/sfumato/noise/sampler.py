"""The bulk sampler: one look-up in a table draws nearly all of a law, and proposals draw the rest of it, exactly.

A column gets as many of a table's words as give none of its numbers more than its probability: those need no coin. What
is left, about 1%, is a law of its own. Few draws at a time are proposals all, so that each takes the same steps.
Proof: docs/proofs/exact_samplers.md
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.bits import Bits
from sfumato.noise.columns import ColumnLaw, NoiseColumns
from sfumato.noise.proposals import CLOSE, QUICK, BoolArray, ColumnCut, ColumnShares, IntArray, Proposals
from sfumato.noise.words import WordArray, WordBits, Words

__all__ = ["KEPT", "AnyIntArray", "BoolArray", "IntArray", "LookUp", "Sampler", "draw", "in_64_bits"]

AnyWords = WordArray | np.ndarray[tuple[int], np.dtype[np.uint32]]
AnyIntArray = IntArray | np.ndarray[tuple[int], np.dtype[np.object_]]

CHUNK = 1 << 15  # words drawn at a time: scratch memory stays in the second cache
ALIKE = 256  # up to this many draws, every number takes the same steps, so that time does not distinguish them
REACH = 45  # exp(−45) < 2^−64: what few draws leave to the tail
FAR = 25  # what many draws leave to it: less than one in 10^10
INDEX, CHOICE = 15, 15
FEW_CHOICE = 13  # 2^13 rows of 32 bytes are in the second cache, all alike: the rare ones are not slower to read
KEPT = 32  # samplers of the parameters used last, of each law; one takes up to a mebibyte


def in_64_bits(draws: AnyIntArray) -> IntArray:
    """Refuse draws beyond 64 bits instead of wrapping them."""
    try:
        return draws.astype(np.int64, copy=False)
    except OverflowError:
        raise InvalidInput("a draw lies beyond 64 bits; nothing was returned. Ask for a smaller scale.") from None


class Sampler:
    """Independent draws from a law, exactly; its tables are built when they are first needed.

    Guarantee: for uniform words every number is drawn with exactly the probability of the law.
    Assumes: float64 addition and multiplication follow IEEE 754.
    Public: the law and how many are drawn. Sensitive: the draws; scratch words are overwritten.
    """

    __slots__ = ("_few", "_many", "fits", "law")

    def __init__(self, law: ColumnLaw) -> None:
        self.law = law
        self.fits = law.exponent(1 << 61) >= REACH
        self._few: Proposals | None = None
        self._many: LookUp | None = None

    def draw(self, size: int, words: Words) -> IntArray:
        """Draw ``size`` independent numbers."""
        return self.few.draw(size, words) if size <= ALIKE else self.many.draw(size, words)

    @property
    def few(self) -> Proposals:
        """What draws few numbers: proposals from the whole law."""
        if self._few is None:  # two threads may build it: both build the same
            place = self.law.place(16 if self.law.quadratic else 8)
            columns = NoiseColumns(law=self.law, place=place)
            cut = ColumnCut(place=place, columns=self.law.enough(place, REACH), index=FEW_CHOICE, choice=FEW_CHOICE)
            self._few = Proposals.of(columns, cut, ColumnShares.of(columns, cut), None, QUICK)
        return self._few

    @property
    def many(self) -> "LookUp":
        """What draws many numbers: a look-up table, and proposals from what it leaves."""
        if self._many is None:
            place = self.law.place(32)
            cut = ColumnCut(
                place=place, columns=self.law.enough(place, FAR), index=min(INDEX, 64 - max(place, 0)), choice=CHOICE
            )
            self._many = LookUp.of(NoiseColumns(law=self.law, place=place), cut)
        return self._many


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LookUp:
    """A table of 2^index words: ``starts`` is the first number of a word's column; the words below ``over`` are left.

    The lowest ``place`` bits of a word choose a number of the column; those between are not looked at. Where half a
    word has bits enough, each half of it is one.
    """

    cut: ColumnCut
    lane: int
    starts: IntArray
    over: int
    rest: Proposals

    @classmethod
    def of(cls, columns: NoiseColumns, cut: ColumnCut) -> "LookUp":
        """Give each column as many words as its least likely number has shares, rounded down."""
        shares = ColumnShares.of(columns, cut)
        given = np.floor(shares.least[: cut.columns * columns.sides]).astype(np.int64)
        over = (1 << cut.index) - int(given.sum())
        if over < 0:
            raise AssertionError("the columns were given more words than there are")
        rest = Proposals.of(columns, cut, shares, given, CLOSE)
        starts = np.zeros(1 << cut.index, dtype=np.int64)
        starts[over:] = np.repeat(rest.starts[: given.size], given)
        half = cut.width == 64 and cut.index + max(cut.place, 0) <= 32
        return cls(cut=cut, lane=32 if half else cut.width, starts=starts, over=over, rest=rest)

    def draw(self, size: int, words: Words) -> IntArray:
        """Draw ``size`` independent numbers."""
        out = np.empty(size, dtype=np.int64)
        scratch = np.empty((2, min(size, CHUNK)), dtype=np.uint64)
        places = []
        for first in range(0, size, CHUNK):
            part = out[first : first + CHUNK]
            places.append(self.looked_up(part, words, scratch[:, : part.size]) + first)
        scratch.fill(0)
        self.rest.fill(out, np.concatenate(places), words)
        return out

    def looked_up(
        self, out: IntArray, words: Words, scratch: "np.ndarray[tuple[int, int], np.dtype[np.uint64]]"
    ) -> IntArray:
        """Look a word up for each place of ``out``; give the places where a proposal is needed."""
        word, index = scratch
        lanes: AnyWords = word
        shift = self.lane - self.cut.index
        if self.lane == 32:
            word = word[: (out.size + 1) // 2]
            lanes = word.view(np.uint32)[: out.size]
        words.fill(word)
        kind = lanes.dtype.type
        np.right_shift(lanes, kind(shift), out=index if self.lane != 32 else index.view(np.int64))
        self.starts.take(index.view(np.int64), out=out, mode="clip")
        again: IntArray = (lanes < kind(self.over << shift)).nonzero()[0]
        if self.cut.place > 0:
            np.bitwise_and(lanes, kind((1 << self.cut.place) - 1), out=lanes)
            np.bitwise_xor(out, lanes if self.lane == 32 else word.view(np.int64), out=out)
        return again


def draw(sampler: Sampler, size: int, words: Words, reference: Callable[[Bits], int]) -> AnyIntArray:
    """Draw ``size`` independent numbers of a law: int64, or Python's own where 2^−64 of the law lies beyond 64 bits.

    In the latter case each is drawn by the slow ``reference`` of the same law.
    """
    if sampler.fits:
        return sampler.draw(size, words)
    bits = WordBits(words)
    return np.array([reference(bits) for _ in range(size)], dtype=object)
