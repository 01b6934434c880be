"""The rounded Gaussian with σ = 2^20, cut so that one table look-up draws nearly all of it, and exactly.

The whole numbers are cut into columns, and a column gets enough of the words that none of its numbers gets more than
its probability: those words need no coin. What is left of the law, 1% of it, is a law of its own, and is drawn by
proposals and coins. Tables hold whole numbers from certified enclosures; floats decide only where they cannot err.
Proof: docs/proofs/fine_gaussian.md
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.noise.alias import AliasTable
from sfumato.noise.uniform import SPARE, Uniform, fixed_exp
from sfumato.noise.words import WordBits, Words

__all__ = ["FINE", "FineTable", "TableCut", "fine"]

WINDOW = 2.0**-36  # in words a column: the floats of a proposal err by less than 2^−38
_BITS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCut:
    """How the law is cut: σ is 2^sigma steps, a column 2^place steps, a table 2^index words, and the columns end at
    ``reach`` times σ, a power of two. A word of ``width`` bits holds ``lanes`` draws; ``choice`` of its bits choose a
    column where a coin is needed.

    >>> FINE.columns, FINE.finest
    (512, 64)
    """

    sigma: int
    place: int
    index: int
    reach: int
    width: int
    lanes: int
    choice: int

    @property
    def finest(self) -> int:
        """How many columns make σ."""
        return 1 << (self.sigma - self.place)

    @property
    def columns(self) -> int:
        """How many columns have words of their own; what lies beyond is the tail."""
        return self.reach * self.finest

    @property
    def block(self) -> int:
        """The number of columns of the tail that take its weight to less than half."""
        return max(1, self.finest // self.reach)

    def nearest(self, column: int) -> Fraction:
        """How near to 0, in steps, a real number comes that is rounded into the column, whichever side it is on."""
        return max(Fraction(0), (column << self.place) - Fraction(1, 2))

    def farthest(self, column: int) -> Fraction:
        """How far it can be from 0."""
        return ((column + 1) << self.place) + Fraction(1, 2)

    def share(self, far: Fraction, bits: int = _BITS) -> Enclosure:
        """How many words a column would get by the density at this distance: 2^index·√(2/π)/finest·exp(−far²/2σ²)."""
        low, high = fixed_exp(far**2 / (2 << 2 * self.sigma), bits)
        unit = self.finest << bits
        return _peak(bits) * Enclosure(Fraction(low << self.index, unit), Fraction(high << self.index, unit))


FINE = TableCut(sigma=20, place=14, index=15, reach=8, width=64, lanes=2, choice=32)


@lru_cache(maxsize=64)
def _peak(bits: int) -> Enclosure:
    """√(2/π)."""
    return enclosures.monotone(enclosures.sqrt, 2 / enclosures.pi(bits=bits), bits=bits)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FineTable:
    """The tables of a cut.

    ``given[c]`` words of the first table are column c's. ``starts`` is that table: the first number of a word's column,
    or a negative number where a proposal is needed. ``units`` are the weights of the columns as they are proposed, in
    units of 1/``scale`` words; those of the tail are its first column's. ``floats`` has a row for each column (its
    nearest distance, share there, words given, height of the proposal, and by how much the floats may err), then a row
    for the tail and one for the words left over: their error has no bound, or their height, so that no float decides.
    """

    cut: TableCut
    given: tuple[int, ...]
    units: tuple[int, ...]
    scale: int
    starts: "np.ndarray[tuple[int], np.dtype[np.int32]]"
    choice: AliasTable
    outcomes: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    floats: "np.ndarray[tuple[int, int], np.dtype[np.float64]]"
    accepted: float

    @classmethod
    def of(cls, cut: TableCut, *, window: float = WINDOW) -> "FineTable":
        """Build the tables; ``window`` may be widened in tests."""
        near = [cut.share(cut.nearest(c)) for c in range(cut.columns + 1)]
        given = tuple(int(cut.share(cut.farthest(c)).low) for c in range(cut.columns))
        words = (1 << cut.index) - sum(given)
        if words < 0:
            raise AssertionError("the columns were given more words than there are")
        heights = [share.high - n for share, n in zip(near, (*given, 0), strict=True)]
        spread = 2 * cut.block
        # Each weight is rounded up by less than 1, that of the tail by less than 1 for each of the columns it counts as
        room = (1 << cut.choice) - len(given) - spread
        scale = int(room / (sum(heights[:-1]) + spread * heights[-1]))
        if scale < 1:
            raise AssertionError("there are fewer words than columns to be chosen")
        units = tuple(-int(-height * scale // 1) for height in heights)
        choice = AliasTable.of([*units[:-1], spread * units[-1]], width=cut.choice)
        unseen = 2.0 ** (cut.place + 1 - cut.width)  # to how much the place in a step is known
        floats = np.zeros((cut.columns + 2, 5))
        for c, n in enumerate(given):
            slope = float(near[c].high * cut.farthest(c) / (1 << 2 * cut.sigma))
            floats[c] = (
                float(cut.nearest(c)),
                float((near[c].low + near[c].high) / 2),
                n,
                float(Fraction(units[c], scale)),
                window + unseen * slope * (1 + window),
            )
        floats[cut.columns, 4] = np.inf
        floats[cut.columns + 1, 3:] = (1e300, 0.0)
        starts = np.full(1 << cut.index, -1, dtype=np.int32)
        starts[words:] = np.repeat(np.arange(cut.columns, dtype=np.int32) << cut.place, given)
        return cls(
            cut=cut,
            given=given,
            units=units,
            scale=scale,
            starts=starts,
            choice=choice,
            outcomes=np.where(choice.outcomes < 0, cut.columns + 1, choice.outcomes),
            floats=floats,
            accepted=float(Fraction(words * scale, 1 << cut.choice)),
        )

    def settled(self, first: int, second: int, words: Words) -> int | None:
        """The number that the two words of a proposal give, or None if it is refused, in exact arithmetic.

        The first word chooses a column and begins a uniform number u, the second has a sign, a place in the column and
        the beginning of a place f in the step. The real number there is accepted where u times the height of the
        proposal is below its share less the words given; u and f are refined until that is decided.
        """
        cut = self.cut
        column = self._column(first >> (cut.width - cut.choice))
        if column > cut.columns:
            return None
        height, given = Fraction(self.units[column], self.scale), 0
        if column == cut.columns:
            level, column = self._beyond(words)
            height /= 1 << level
        else:
            level, given = 0, self.given[column]
        rest = cut.width - 1 - cut.place
        within = second >> rest & ((1 << cut.place) - 1)
        number = (column << cut.place | within) ^ -(second >> (cut.width - 1))
        u = Uniform(words, prefix=first & ((1 << (cut.width - cut.choice)) - 1), bits=cut.width - cut.choice)
        f = Uniform(words, prefix=second & ((1 << rest) - 1), bits=rest)
        while True:
            # f has a bit at least, so that 0 is never inside the interval, and its ends are its extremes
            ends = [abs(number - Fraction(1, 2) + Fraction(f.prefix + more, 1 << f.bits)) for more in (0, 1)]
            bits = max(u.bits, f.bits) + 2 * SPARE + 2 * level + cut.index
            if Fraction(u.prefix + 1, 1 << u.bits) * height + given <= cut.share(max(ends), bits).low:
                return number
            if Fraction(u.prefix, 1 << u.bits) * height + given >= cut.share(min(ends), bits).high:
                return None
            u.refine()
            f.refine()

    def _column(self, word: int) -> int:
        half = word >> self.choice.shift
        return int(self.outcomes[(word + int(self.choice.steps[half])) % (1 << 64) >> self.choice.shift])

    def _beyond(self, words: Words) -> tuple[int, int]:
        """A column of the tail: its blocks have half the weight each of the one before."""
        bits, level = WordBits(words), 0
        while not bits.number(1):
            level += 1
        return level, self.cut.columns + level * self.cut.block + bits.below(self.cut.block)


@lru_cache(maxsize=1)
def fine() -> FineTable:
    """The tables in use, built once."""
    return FineTable.of(FINE)
