"""Rungs: how wide each step of a ladder is, as few runs of equal growth. Whole numbers alone.

Rung t = 1, 2, … of a ladder holds ``width(t − 1)`` numbers on each side of the centre. Widths never fall and stop
growing: they are kept as the places u at which they grow, and by how much. Proof: docs/proofs/ladder.md
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from sfumato.errors import InvalidInput

__all__ = ["Rungs", "WidthSteps"]


@dataclass(frozen=True, slots=True)
class WidthSteps:
    """The widths grow by ``amount`` at each of ``first``, ``first + step``, …, ``count`` times in all."""

    first: int
    step: int
    count: int
    amount: int

    @property
    def last(self) -> int:
        """The last place of growth."""
        return self.first + self.step * (self.count - 1)


@dataclass(frozen=True)
class Rungs:
    """Widths by runs of growth, in order and apart. Sensitive where they come from data: they have no text.

    >>> rungs = Rungs.of([WidthSteps(0, 1, 1, 3), WidthSteps(1, 1, 2, 1), WidthSteps(4, 2, 2, 1)])
    >>> [rungs.width(t) for t in range(9)]
    [3, 4, 5, 5, 6, 6, 7, 7, 7]
    >>> [rungs.reach(t) for t in range(5)]
    [0, 3, 7, 12, 17]
    """

    runs: tuple[WidthSteps, ...]

    @classmethod
    def of(cls, runs: Iterable[WidthSteps]) -> "Rungs":
        """From runs in order; empty ones are left out."""
        kept = tuple(run for run in runs if run.count and run.amount)
        if any(run.first < 0 or run.step < 1 or run.count < 1 or run.amount < 1 for run in kept):
            raise InvalidInput("widths of rungs do not fall; nothing was done.")
        if any(after.first <= before.last for before, after in pairwise(kept)):
            raise InvalidInput("runs of rungs do not overlap; nothing was done.")
        return cls(kept)

    @property
    def widest(self) -> int:
        """The width that no rung passes."""
        return self._grown[-1]

    def width(self, t: int) -> int:
        """How many numbers rung t + 1 has on each side."""
        place = bisect_right(self._firsts, t)
        if not place:
            return 0
        run = self.runs[place - 1]
        return self._grown[place - 1] + run.amount * min(run.count, (t - run.first) // run.step + 1)

    def reach(self, t: int) -> int:
        """How far from the centre the outer end of rung t is: the sum of the first t widths."""
        place = bisect_right(self._firsts, t - 1)
        if not place:
            return 0
        run = self.runs[place - 1]
        done = min(run.count, (t - 1 - run.first) // run.step + 1)
        grown, moment = self._grown[place - 1], self._moments[place - 1]
        places = done * run.first + run.step * (done * (done - 1) // 2)
        return (grown + run.amount * done) * t - moment - run.amount * places

    def rung(self, distance: int) -> int:
        """The rung on which a number at this distance from the centre lies; 0 is the centre.

        >>> Rungs.of([WidthSteps(1, 1, 1, 2)]).rung(3)
        3
        """
        if distance == 0:
            return 0
        if not self.runs:
            raise InvalidInput("a ladder without rungs holds its centre alone; nothing was done.")
        low, high = 0, 1
        while self.reach(high) < distance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.reach(middle) < distance else (low, middle)
        return high

    @cached_property
    def _firsts(self) -> list[int]:
        return [run.first for run in self.runs]

    @cached_property
    def _grown(self) -> list[int]:
        """The width before each run, and after all."""
        return [0, *accumulate(run.amount * run.count for run in self.runs)]

    @cached_property
    def _moments(self) -> list[int]:
        """The sum of place times growth before each run."""
        return [
            0,
            *accumulate(
                run.amount * (run.count * run.first + run.step * (run.count * (run.count - 1) // 2))
                for run in self.runs
            ),
        ]

    def __repr__(self) -> str:
        return "Rungs(…)"
