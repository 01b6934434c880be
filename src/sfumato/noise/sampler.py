"""The bulk sampler: an alias table draws columns, uniform words draw numbers in them, an exact coin accepts.

Proof: docs/proofs/exact_samplers.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.alias import RESIDUAL, AliasTable
from sfumato.noise.bits import Bits
from sfumato.noise.columns import ColumnLaw, NoiseColumns
from sfumato.noise.uniform import Uniform
from sfumato.noise.words import WordArray, WordBits, Words

__all__ = ["IntArray", "Sampler", "draw", "in_64_bits", "sampler"]

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]
AnyIntArray = IntArray | np.ndarray[tuple[int], np.dtype[np.object_]]
FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
Scratch = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]

COLUMNS = 512  # a side: the table then stays in the innermost cache and is built in milliseconds
CHUNK = 1 << 15  # words drawn at a time: scratch memory stays in the second cache
ALIKE = 256  # up to this many draws, every number takes the same steps, so that time does not distinguish them
REACH = 45  # exp(−45) < 2^−64
LARGEST_SHIFT = 52  # columns beyond it reach past 64 bits
LARGEST_X = 0.5
WINDOW = 2.0**-24  # the floats below are wrong by less than 2^−26
_UNDRAWN = np.iinfo(np.int64).min
_TAYLOR = [1 / 40320, -1 / 5040, 1 / 720, -1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0, 1.0]


def draw(law: ColumnLaw, size: int, words: Words, reference: Callable[[Bits], int]) -> AnyIntArray:
    """Draw ``size`` independent numbers of a law: int64, or Python's own where 2^−64 of the law lies beyond 64 bits.

    In the latter case each is drawn by the slow ``reference`` of the same law.
    """
    if _fits(law):
        return sampler(law).draw(size, words)
    bits = WordBits(words)
    return np.array([reference(bits) for _ in range(size)], dtype=object)


def in_64_bits(draws: AnyIntArray) -> IntArray:
    """Refuse draws beyond 64 bits instead of wrapping them."""
    try:
        return draws.astype(np.int64, copy=False)
    except OverflowError:
        raise InvalidInput("a draw lies beyond 64 bits; nothing was returned. Ask for a smaller scale.") from None


@lru_cache(maxsize=128)
def _fits(law: ColumnLaw) -> bool:
    return law.exponent(COLUMNS << LARGEST_SHIFT) >= REACH


@lru_cache(maxsize=128)
def sampler(law: ColumnLaw) -> "Sampler":
    """The sampler of a law for 64-bit words; kept for the parameters used last."""
    return Sampler.of(law.columns(most=COLUMNS, reach=REACH), width=64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sampler:
    """Independent draws from the law of ``columns``, exactly.

    Guarantee: for uniform words every number is drawn with exactly the probability of the law. Floating-point numbers
    decide an acceptance only where they are further from the threshold than WINDOW, 4 times their proven error.
    Assumes: float64 addition and multiplication follow IEEE 754.
    Public: the law and how many are drawn. Sensitive: the draws; scratch memory is overwritten.
    """

    columns: NoiseColumns
    table: AliasTable
    starts: IntArray
    certain: WordArray
    width: int
    joint: bool
    window: float

    @classmethod
    def of(cls, columns: NoiseColumns, *, width: int, window: float = WINDOW) -> "Sampler":
        """Build the table; ``width`` is the words' and ``window`` may be widened in tests."""
        table = columns.table(width=width)
        starts = np.array([_UNDRAWN if r == RESIDUAL else columns.start(r) for r in table.outcomes.tolist()], np.int64)
        joint = columns.shift <= width - width * 5 // 16
        certain = np.zeros(1, dtype=np.uint64)
        if columns.shift:
            linear, quadratic, step = float(columns.law.linear), float(columns.law.quadratic), 2.0**columns.shift
            refusal = step * (linear + quadratic * (2 * np.abs(starts.astype(np.float64)) + step))
            sure = np.clip(1 - refusal * (1 + WINDOW) - WINDOW, 0, 1)  # exp(−x) ≥ 1 − x: below it all are accepted
            bits = width - columns.shift if joint else width
            fine = min(bits, 24)
            certain = np.floor(sure * 2.0**fine).astype(np.uint64) << np.uint64(width - fine)
        return cls(
            columns=columns, table=table, starts=starts, certain=certain, width=width, joint=joint, window=window
        )

    def draw(self, size: int, words: Words) -> IntArray:
        """Draw ``size`` independent numbers."""
        out = np.empty(size, dtype=np.int64)
        scratch = np.empty((4, min(size, CHUNK)), dtype=np.uint64)
        refused = []
        for first in range(0, size, CHUNK):
            part = out[first : first + CHUNK]
            again = self._propose(part, words, scratch)
            if again is not None and again.size:
                refused.append(again + first)
        scratch.fill(0)
        if refused:
            places = np.concatenate(refused)
            out[places] = self.draw(places.size, words)
        return out

    def _propose(self, out: IntArray, words: Words, scratch: Scratch) -> IntArray | None:
        """Draw a column and a number of it for each place; give the places whose number was refused."""
        word, slot, low, other = scratch[:, : out.size]
        words.fill(word)
        self.table.slots(word, slot, low)
        slots = slot.view(np.int64)
        self.starts.take(slots, out=out, mode="clip")
        if self.table.residual and out.min() == _UNDRAWN:
            self._fill_residual(out, words)
        if not self.columns.shift:
            return None
        words.fill(low)
        if self.joint:
            top = low
        else:
            top = other
            words.fill(top)
        if out.size <= ALIKE:
            doubtful = np.arange(out.size)
        elif self.columns.law.quadratic:
            self.certain.take(slots, out=word, mode="clip")
            doubtful = (top >= word).nonzero()[0]
        else:
            doubtful = (top >= self.certain[0]).nonzero()[0]  # the same in every column
        shift = np.uint64(self.columns.shift)
        place = top[doubtful] >> shift if self.joint else top[doubtful]
        low &= (np.uint64(1) << shift) - np.uint64(1)
        refused = doubtful[~self._accepted(out[doubtful], low[doubtful], place, words)]
        out ^= low.view(np.int64)
        return refused

    def _accepted(self, starts: IntArray, low: WordArray, place: WordArray, words: Words) -> BoolArray:
        """Accept with probability exp(−x), x = refusal(start, low): where the uniform number at ``place`` is below it.

        ``place`` holds the first bits of that number; where floats leave open which side it is on, more are drawn.
        """
        bits = self.width - self.columns.shift if self.joint else self.width
        coarse = max(bits - 48, 0)
        seen = (place >> np.uint64(coarse)).astype(np.float64)
        unit = 2.0 ** (coarse - bits)
        x, accept = self._acceptance(starts, low)
        yes = (seen + 1) * unit <= accept - self.window
        no = seen * unit >= accept + self.window
        for i in (~(yes | no) | (x > LARGEST_X)).nonzero()[0]:
            exact = self.columns.refusal(int(starts[i]), int(low[i]))
            yes[i] = Uniform(words, prefix=int(place[i]), bits=bits).below_exp(exact)
        return yes

    def _acceptance(self, starts: IntArray, low: WordArray) -> tuple[FloatArray, FloatArray]:
        """Approximate x and exp(−x); the latter within 2^−26 wherever x is at most LARGEST_X."""
        law = self.columns.law
        x = low.astype(np.float64)
        if law.quadratic:
            x *= float(law.linear) + float(law.quadratic) * (2 * np.abs(starts.astype(np.float64)) + x)
        else:
            x *= float(law.linear)
        near = np.minimum(x, LARGEST_X)
        value = np.full_like(x, _TAYLOR[0])
        for coefficient in _TAYLOR[1:]:
            value *= near
            value += coefficient
        return x, value

    def _fill_residual(self, out: IntArray, words: Words) -> None:
        units = self.table.counted()
        for i in (out == _UNDRAWN).nonzero()[0]:
            start = self.columns.start(self.columns.residual(units, words))
            if not -(2**63) + (1 << self.columns.shift) < start < 2**63 - (1 << self.columns.shift):
                raise InvalidInput("a draw lies beyond 64 bits; nothing was returned. Ask for a smaller scale.")
            out[i] = start
