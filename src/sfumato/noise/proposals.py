"""Draws by proposal and acceptance, from a law or from what a table leaves of it, judged by floats that cannot err.

A word chooses a column and begins a uniform number u, a second one is a place in the column. The place is accepted
where u times the height of the proposal lies below the law there, less what was given. Floats decide only where they
are further from that than they may err; everything else is settled in whole numbers.
Proof: docs/proofs/exact_samplers.md
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, factorial

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.columns import NoiseColumns
from sfumato.noise.uniform import SPARE, Uniform
from sfumato.noise.words import WordArray, WordBits, Words

__all__ = ["CLOSE", "QUICK", "BoolArray", "ColumnCut", "ColumnShares", "FloatArray", "IntArray", "NearExp", "Proposals"]

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]
FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]

LEAST_Q = 2.0**-10
AT_ONCE = 1 << 14  # proposals made at a time: scratch memory stays in the second cache
DEEPEST = 50.0  # the exponent up to which floats decide
MARGIN = 2.0**-32  # by which tables are on the safe side; the floats they come from are right to 2^−40


@dataclass(frozen=True, slots=True, eq=False)
class NearExp:
    """A polynomial that is within a quarter of ``window`` of exp(−q) for q from −LEAST_Q to ``largest``.

    It meets exp(−q) at the Chebyshev points of that interval. Coefficients are arrays, the last power's first: for few
    draws at a time NumPy takes as long to convert a number as to multiply by it.
    """

    window: float
    largest: float
    coefficients: "tuple[np.ndarray[tuple[()], np.dtype[np.float64]], ...]"

    @classmethod
    def of(cls, window: float, largest: float, *coefficients: float) -> "NearExp":
        """Take the numbers themselves."""
        return cls(window, largest, tuple(np.array(coefficient) for coefficient in coefficients))

    def __call__(self, q: FloatArray) -> FloatArray:
        """Evaluate it by Horner's rule."""
        first, *middle, last = self.coefficients
        value = q * first
        for coefficient in middle:
            value += coefficient
            value *= q
        value += last
        return value


QUICK = NearExp.of(2.0**-12, 5 / 8, -0.12259425672992805, 0.48373527915896664, -0.9980236325292591, 0.9999628199542073)
CLOSE = NearExp.of(
    2.0**-28,
    5 / 16,
    *(-0.007137618363907279, 0.04125945390091885, -0.16660198739049265),
    *(0.4999953548491079, -0.9999998797159378, 0.9999999995583014),
)
_NONE = np.array(0.0)
_ROUNDED = 2.0**-48  # of a height: more than rounding u and the numbers it is compared with can do
_TAYLOR = [(-1) ** k / factorial(k) for k in range(12)]
_SQUARINGS = 8
_STREWN = 5063
_HALVED = Fraction(7, 10)  # more than log 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCut:
    """How tables are cut: ``columns`` a side of 2^place steps; ``index`` bits of a word look a number up, ``choice``
    bits choose a column for a proposal, and words have ``width`` bits.
    """

    place: int
    columns: int
    index: int
    choice: int
    width: int = 64


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ColumnShares:
    """How many of 2^index words each column would get by the law at its edge, and at least and at most in all of it.

    ``edges`` are in columns. Floats: ``least`` and ``most`` are on the safe side by MARGIN, ``here`` is within 2^−40.
    """

    edges: FloatArray
    here: FloatArray
    least: FloatArray
    most: FloatArray
    slope: float
    bend: float

    @classmethod
    def of(cls, columns: NoiseColumns, cut: ColumnCut) -> "ColumnShares":
        """Compute them, and those of the column after the last."""
        law, wide = columns.law, Fraction(2) ** cut.place
        slope, bend = float(law.linear * wide), float(law.quadratic * wide * wide)
        ranks = np.arange(cut.columns + 1, dtype=np.float64)
        edges = (ranks[:, None] + np.array([float(shift / wide) for shift in columns.shifts])).reshape(-1)
        last = edges + (1.0 if law.rounded else float(1 - 1 / wide))
        ends = np.stack([np.abs(edges), np.maximum(np.abs(edges), last), np.maximum(edges, 0.0)])
        peak = float((columns.law.peak(64) * (wide * (1 << cut.index))).low)
        here, least, most = peak * falling(ends * (slope + bend * ends))
        return cls(edges=edges, here=here, least=least * (1 - MARGIN), most=most * (1 + MARGIN), slope=slope, bend=bend)


def falling(
    x: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """exp(−x) for x from 0 to 50, relatively within 2^−40: Taylor's polynomial at x/256, squared eight times.

    Beyond that it is exp(−50), which is larger; no float decides there.
    """
    near = np.minimum(x, DEEPEST) * 0.5**_SQUARINGS
    value = np.full_like(near, _TAYLOR[-1])
    for coefficient in _TAYLOR[-2::-1]:
        value *= near
        value += coefficient
    for _ in range(_SQUARINGS):
        value *= value
    return value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Proposals:
    """Independent draws from the law of ``columns`` less ``given``, whole numbers of the 2^index words by column.

    Column j is proposed by ``units[j]`` of the 2^choice words: its height is ``units[j]``/``scale``, at least what is
    left of its share anywhere. The tail beyond the columns has the weight ``units[-1]``; it is cut into blocks of
    ``block`` ranks, each of half the height of the one before. Words left over are refusals.
    A proposal takes a ``second`` word unless a column is one number. The arrays have a row for each column, one for the
    tail (no float decides) and one for the words left over: in units of the last bit of u, its share at the edge, what
    was given, and by how much floats may err; and how steeply the exponent rises. Without ``given``, ``rows`` has them
    for each word: what memory is read then depends on the word alone, and not on how rare its column is.

    Guarantee: for uniform words every number is drawn with exactly the probability of that law.
    Assumes: float64 addition and multiplication follow IEEE 754.
    """

    columns: NoiseColumns
    cut: ColumnCut
    given: IntArray
    units: IntArray
    scale: Fraction
    block: int
    accepted: float
    second: bool
    bent: bool
    near_exp: NearExp
    choice: IntArray
    starts: IntArray
    shares: FloatArray
    gifts: FloatArray | None
    slopes: FloatArray
    slacks: FloatArray
    rows: "np.ndarray[tuple[int, int], np.dtype[np.float64]] | None"
    bend: "np.ndarray[tuple[()], np.dtype[np.float64]]"
    shifts: "tuple[np.ndarray[tuple[()], np.dtype[np.uint64]], ...]"

    @classmethod
    def of(
        cls, columns: NoiseColumns, cut: ColumnCut, shares: ColumnShares, given: IntArray | None, near_exp: NearExp
    ) -> "Proposals":
        """Build the tables; without ``given`` nothing is taken away."""
        law, sides = columns.law, columns.sides
        number = cut.columns * sides
        gifts = np.zeros(number, dtype=np.int64) if given is None else given
        left = shares.most[:number] - gifts
        wide = Fraction(2) ** cut.place
        edge = columns.edge(number) / wide
        block = max(1, ceil(_HALVED / (law.linear * wide + 2 * law.quadratic * wide * wide * edge)))
        spread = 2 * block * sides
        tail = float(shares.most[number]) * spread
        room = (1 << cut.choice) - number - 2
        scale = Fraction(int(room / (float(left.sum()) + tail) * (1 - MARGIN) * 65536), 65536)
        units = np.maximum(np.ceil(np.append(left, tail) * float(scale) * (1 + MARGIN)), 1).astype(np.int64)
        over = (1 << cut.choice) - int(units.sum())
        if over < 0 or not scale:
            raise AssertionError("there are fewer words than columns to be chosen")
        heights = units[:-1] / float(scale)
        curve = shares.slope + 2 * shares.bend * shares.edges[:number]
        steep = np.abs(curve) + shares.bend
        second = law.rounded or cut.place > 0
        unit = heights * 0.5 ** (cut.width - cut.choice)  # what the bits of u are counted in
        slack = near_exp.window * shares.most[:number] + _ROUNDED * heights + unit
        per = 0.5**cut.width if law.rounded else 0.5**cut.place  # of a column: what the place in it is counted in
        if law.rounded:
            slack += 2 * per * shares.most[:number] * steep
        far = np.abs(shares.edges[:number])
        slack[far * (shares.slope + shares.bend * far) > DEEPEST] = np.inf
        if second:
            dip = (
                shares.bend * np.minimum(shares.edges[:number], 0.0) ** 2
            )  # the exponent falls that far before it rises
            slack[(steep > near_exp.largest) | (dip > LEAST_Q)] = np.inf
        choice = np.repeat(np.arange(number + 2), np.append(units, over))
        if given is None:  # an odd number takes every word once: columns are strewn over the memory
            choice = choice[np.arange(choice.size) * _STREWN % choice.size]
        starts = np.append(_starts(columns, cut.columns), [0, 0])
        scaled = np.append(shares.here[:number] / unit, [0.0, -1e300 if given is None else 0.0])
        slopes = np.append(curve * per, [0.0, 0.0])
        slacks = np.append(slack / unit, [np.inf, 0.0])
        return cls(
            columns=columns,
            cut=cut,
            given=gifts,
            units=units,
            scale=scale,
            block=block,
            accepted=float(((1 << cut.index) - int(gifts.sum())) * scale / (1 << cut.choice)),
            second=second,
            bent=bool(law.quadratic),
            near_exp=near_exp,
            choice=choice,
            starts=starts,
            shares=scaled,
            gifts=None if given is None else np.append(given / unit, [0.0, 1e300]),
            slopes=slopes,
            slacks=slacks,
            rows=np.stack([scaled, slopes, slacks, starts.view(np.float64)], axis=1)[choice] if given is None else None,
            bend=np.array(shares.bend * per * per),
            shifts=tuple(
                np.array(shift, dtype=np.uint64)
                for shift in (
                    cut.width - cut.choice,
                    (1 << (cut.width - cut.choice)) - 1,
                    cut.width - max(cut.place, 0),
                )
            ),
        )

    def draw(self, size: int, words: Words) -> IntArray:
        """Draw ``size`` numbers, all by the same steps: the time tells how many were refused, not what was drawn."""
        values, yes = self.judged(size, words)
        values = np.ascontiguousarray(values)  # no view of the rows that decided
        if np.count_nonzero(yes) != size:
            again = (~yes).nonzero()[0]
            values[again] = self.draw(again.size, words)
        return values

    def fill(self, out: IntArray, places: IntArray, words: Words) -> None:
        """Draw the places of ``out``, which take the accepted proposals in their order.

        How many proposals are made at a time depends on how many places are left, and on nothing that they gave.
        """
        while places.size:
            values, yes = self.judged(min(int(places.size * 1.1 / self.accepted) + 32, AT_ONCE), words)
            taken = values[yes][: places.size]
            out[places[: taken.size]] = taken
            places = places[taken.size :]

    def judged(self, size: int, words: Words) -> tuple[IntArray, BoolArray]:
        """The numbers of ``size`` proposals, and whether each is accepted."""
        pairs = np.empty(2 * size if self.second else size, dtype=np.uint64)
        words.fill(pairs)
        first, second = pairs[:size], pairs[size:]
        values, beyond, slack = self.compared(first, second)
        yes: BoolArray = beyond + slack <= _NONE
        if np.count_nonzero(yes) != size:
            for i in (~yes & (beyond < slack)).nonzero()[0]:
                settled = self.settled(int(first[i]), int(second[i]) if self.second else 0, words)
                yes[i] = settled is not None
                values[i] = settled or 0
        pairs.fill(0)
        return values, yes

    def compared(self, first: WordArray, second: WordArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """The number of each proposal, by how much it lies above what is accepted, and how far that may err."""
        rest, seen, deep = self.shifts
        top = (first >> rest).view(np.int64)
        if self.rows is None:
            column = self.choice[top]
            values: IntArray = self.starts[column]
            shares, q, slack = (it[column] for it in (self.shares, self.slopes, self.slacks))
        else:
            row = self.rows[top]
            shares, q, slack = row[:, 0], row[:, 1], row[:, 2]
            values = row.view(np.int64)[:, 3]
        if self.second:
            along = second
            if self.cut.place > 0:
                low = second >> deep
                values = values ^ low.view(np.int64)
                along = along if self.columns.law.rounded else low
            x = along.astype(np.float64)
            if self.bent:
                q += x * self.bend
            q *= x
            shares *= self.near_exp(q)
        beyond = (first & seen).astype(np.float64)
        beyond -= shares
        if self.gifts is not None:
            beyond += self.gifts[column]
        return values, beyond, slack

    def settled(self, first: int, second: int, words: Words) -> int | None:
        """The number of a proposal, or None if it is refused, in exact arithmetic; more words are drawn as needed."""
        cut, law = self.cut, self.columns.law
        rest = cut.width - cut.choice
        column, level = int(self.choice[first >> rest]), 0
        if column == self.units.size:
            return None
        if column == self.units.size - 1:
            level, column = self._beyond(words)
            spread = 2 * self.block * self.columns.sides << level
            height, given = int(self.units[-1]) / (self.scale * spread), 0
        else:
            height, given = int(self.units[column]) / self.scale, int(self.given[column])
        low = second >> (cut.width - cut.place) if cut.place > 0 else 0
        edge = self.columns.edge(column)
        u = Uniform(words, prefix=first & ((1 << rest) - 1), bits=rest)
        along = Uniform(words, prefix=second, bits=cut.width)
        while True:
            ends = [edge + low] * 2
            if law.rounded:  # 0 is never inside, for the edges are multiples of ½ or finer, as the ends are
                ends = [abs(edge + Fraction(2) ** (cut.place - along.bits) * (along.prefix + more)) for more in (0, 1)]
            bits = max(u.bits, along.bits) + 2 * SPARE + 2 * level + cut.index
            if Fraction(u.prefix + 1, 1 << u.bits) * height + given <= self._share(max(ends), bits)[0]:
                return self._number(column, low)
            if Fraction(u.prefix, 1 << u.bits) * height + given >= self._share(min(ends), bits)[1]:
                return None
            u.refine()
            if law.rounded:
                along.refine()

    def _share(self, t: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        share, words = self.columns.share(t, bits), 1 << self.cut.index
        return share.low * words, share.high * words

    def _number(self, column: int, low: int) -> int:
        number = self.columns.start(column) ^ low
        if not -(2**63) <= number < 2**63:
            raise InvalidInput("a draw lies beyond 64 bits; nothing was returned. Ask for a smaller scale.")
        return number

    def _beyond(self, words: Words) -> tuple[int, int]:
        """A column of the tail: its blocks have half the height each of the one before."""
        bits, level, sides = WordBits(words), 0, self.columns.sides
        while not bits.number(1):
            level += 1
        rank = self.cut.columns + level * self.block + bits.below(self.block)
        return level, rank * sides + (bits.number(1) if sides == 2 else 0)


def _starts(columns: NoiseColumns, ranks: int) -> IntArray:
    """The starts of the first columns, as NoiseColumns has them one by one."""
    rank = np.arange(ranks, dtype=np.int64)
    if columns.narrow:
        size = ((rank >> min(-columns.place - 1, 62)) + 1) >> 1
        return np.stack([size, -size], axis=1).reshape(-1)
    start = rank << columns.place
    return np.stack([start, ~start][: columns.sides], axis=1).reshape(-1)
