"""Drawing one quantile of one group: what is good lies around the target rank, and only that is looked at.

Masses are whole numbers of parts of a row: a row at the value v lies evenly in the slots v·parts to (v + 1)·parts − 1.
Proof: docs/proofs/quantiles.md
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.blocks import Block, Landscape, sample_slot
from sfumato.noise.words import Words

__all__ = ["Group", "slot"]

STEEP = 64  # where exp(−x) is below exp(−STEEP), nothing is gained by smaller blocks


class Group:
    """The rows of one group: the values that occur, rising, and the rows up to each of them. Sensitive."""

    __slots__ = ("ends", "parts", "values")

    def __init__(self, values: Sequence[int], counts: Sequence[int], *, steps: int, parts: int, most: int) -> None:
        self.values, rows = _whole(values), _whole(counts)
        self.parts = parts
        if self.values.shape != rows.shape or self.values.ndim != 1:
            raise InvalidInput("a quantile needs one count for each value; nothing was drawn.")
        if rows.size and (rows.min() < 0 or rows.max() > most or int(rows.sum(dtype=object)) > most):
            raise InvalidInput(f"counts must be whole numbers from 0 on and at most {most} in all; nothing was drawn.")
        if rows.size and (self.values[0] < 0 or self.values[-1] > steps or (np.diff(self.values) <= 0).any()):
            raise InvalidInput("values must rise and lie on the lattice; nothing was drawn.")
        self.ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])

    def mass(self, slot: int) -> int:
        """How many parts of rows lie in the slots before this one."""
        value, beyond = divmod(slot, self.parts)
        at = int(np.searchsorted(self.values, value))
        below = int(self.ends[at])
        here = int(self.ends[at + 1]) - below if at < self.values.size and int(self.values[at]) == value else 0
        return below * self.parts + here * beyond


def slot(group: Group, first: int, end: int, share: Fraction, rate: Fraction, words: Words) -> int:
    """Draw one of the slots from ``first`` to ``end`` − 1 for the rank that has ``share`` of the rows there below it.

    ``rate`` is the exponent of one row of distance.
    """
    seen = _Segment(group, first, end, share, rate)
    return sample_slot(Landscape(slots=end - first, within=seen.within, excess=seen.excess), seen.rate, words)


class _Segment:
    """Slots between two cuts; distances are whole numbers of parts of rows, times the denominator of the share."""

    def __init__(self, group: Group, first: int, end: int, share: Fraction, rate: Fraction) -> None:
        self.group, self.first, self.end = group, first, end
        self.times = share.denominator
        low, high = group.mass(first), group.mass(end)
        self.target = self.times * low + share.numerator * (high - low)
        self.rate = rate / (self.times * group.parts)

    def excess(self, at: int) -> int:
        """How far the target lies outside of the masses before and after a slot; 0 for some slot."""
        return self._outside(self.group.mass(at), self.group.mass(at + 1))

    def _outside(self, before: int, after: int) -> int:
        return max(self.times * before - self.target, self.target - self.times * after, 0)

    def within(self, limit: int) -> list[Block]:
        """All blocks that come within ``limit`` of the target: values that occur, cut where steep, and gaps between."""
        group, parts, unit = self.group, self.group.parts, self.times * self.group.parts
        low, high = (self.target - limit) // unit, -(-(self.target + limit) // unit)
        ends, values = group.ends, group.values
        least = int(np.searchsorted(values, self.first // parts))
        most = int(np.searchsorted(values, (self.end - 1) // parts, side="right"))
        begin = max(least, int(np.searchsorted(ends, low)) - 1)
        stop = min(most, int(np.searchsorted(ends, high, side="right")))
        at = self.first if begin <= least else min(max((int(values[begin - 1]) + 1) * parts, self.first), self.end)
        rows = int(ends[begin])
        mass = group.mass(at)
        blocks: list[Block] = []

        def add(start: int, past: int, before: int, after: int) -> None:
            wrong = self._outside(before, after)
            if start < past and wrong <= limit:
                blocks.append((start, past - start, wrong))

        for value, total in zip(values[begin:stop].tolist(), ends[begin + 1 : stop + 1].tolist(), strict=True):
            start, past = max(value * parts, self.first), min((value + 1) * parts, self.end)
            add(at, start, mass, mass)
            slope = total - rows
            for cut in self._cuts(start, past, mass, slope):
                add(start, cut, mass, mass + slope * (cut - start))
                start, mass = cut, mass + slope * (cut - start)
            at, rows = past, total
        add(at, self.end if stop >= most else int(values[stop]) * parts, mass, mass)
        return blocks

    def _cuts(self, start: int, past: int, mass: int, slope: int) -> list[int]:
        """Where to cut the slots of one value, its end included, so that exp falls little within each block.

        From the best slot outward the blocks have one nat, one, two, four and so on.
        """
        length, one = past - start, self.rate.denominator
        steep = self.rate.numerator * self.times * slope  # over ``one``, the nats from a slot to the next
        near = self._outside(mass, mass + slope * length)
        if steep * length <= one or self.rate.numerator * near > STEEP * one:
            return [past]
        best = min(max(start + (self.target - self.times * mass) // (self.times * slope), start), past - 1)
        nat = max(1, one // steep)
        cuts = {past}
        for begin, sign, room in ((best + 1, 1, past - best - 1), (best, -1, best - start)):
            reach = 0
            while reach < room:
                cuts.add(begin + sign * reach)
                reach = max(nat, 2 * reach)
        cuts.discard(start)
        return sorted(cuts)


def _whole(numbers: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    found = np.asarray(numbers)
    if not found.size:
        return np.zeros(0, dtype=np.int64)
    if found.dtype.kind not in "iu":
        raise InvalidInput("values and counts of a quantile must be whole numbers; nothing was drawn.")
    return found.astype(np.int64)
