"""Drawing one quantile of one group: what is good lies around the target rank, and only that is looked at.

Masses are whole numbers of parts of a row: a row at the value v lies evenly in the slots v·parts to (v + 1)·parts − 1.
Proof: docs/proofs/quantiles.md
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.blocks import Block, Landscape, sample_slot
from sfumato.noise.words import Words

__all__ = ["Group", "slot"]


class Group:
    """The rows of one group: the values that occur, rising, and the rows up to each of them. Sensitive."""

    __slots__ = ("ends", "parts", "values")

    def __init__(self, values: Sequence[int], counts: Sequence[int], *, steps: int, parts: int, most: int) -> None:
        self.values, rows = _whole(values), _whole(counts)
        self.parts = parts
        if self.values.shape != rows.shape or self.values.ndim != 1:
            raise InvalidInput("a quantile needs one count for each value; nothing was drawn.")
        if rows.size and (rows.min() < 0 or rows.max() > most or rows.sum(dtype=np.float64) > most):
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

    def reaching(self, masses: Sequence[int], *, else_: int) -> list[int]:
        """For each mass the first slot before which at least that many parts of rows lie; ``else_`` where none is."""
        total = int(self.ends[-1])
        rows = [min(max(-(-mass // self.parts), 0), total + 1) for mass in masses]
        found = []
        for mass, at in zip(masses, np.searchsorted(self.ends, rows).tolist(), strict=True):
            if at in (0, self.ends.size):
                found.append(else_ if at else 0)
                continue
            below, here = int(self.ends[at - 1]), int(self.ends[at]) - int(self.ends[at - 1])
            found.append(int(self.values[at - 1]) * self.parts - (below * self.parts - mass) // here)
        return found


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
        """All blocks that come within ``limit`` of the target: on either side of it one for each nat of distance."""
        nat = max(1, self.rate.denominator // self.rate.numerator)
        furthest = max(self.excess(self.first), self.excess(self.end - 1))
        steps = range(1, min(limit, furthest) // nat + 2)
        above = [-(-(self.target + step * nat) // self.times) for step in steps]
        below = [(self.target - step * nat) // self.times + 1 for step in steps]
        highs = [self._inside(at) for at in self.group.reaching(above, else_=self.end)]
        lows = [self._inside(at - 1) for at in self.group.reaching(below, else_=self.end + 1)]
        blocks = [(lows[0], highs[0] - lows[0], 0)]
        for step, (start, past) in enumerate(pairwise(highs), start=1):
            blocks.append((start, past - start, step * nat))
        for step, (past, start) in enumerate(pairwise(lows), start=1):
            blocks.append((start, past - start, step * nat))
        return [block for block in blocks if block[1]]

    def _inside(self, slot: int) -> int:
        return min(max(slot, self.first), self.end)


def _whole(numbers: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    found = np.asarray(numbers)
    if not found.size:
        return np.zeros(0, dtype=np.int64)
    if found.dtype.kind not in "iu":
        raise InvalidInput("values and counts of a quantile must be whole numbers; nothing was drawn.")
    return found.astype(np.int64)
