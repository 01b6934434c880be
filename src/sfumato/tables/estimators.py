"""From noisy numbers to the columns of an answer: what the sums that a measure needs came to, with their noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from operator import mul

from sfumato.core.query import Law
from sfumato.core.release import Release
from sfumato.engines.sufficient_statistics import Everyone, Powers
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.moments import Moments, sums_of
from sfumato.inference.ratio import Ratio
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import KeyValue
from sfumato.tables.needs import Need, PowersOf, SumOf
from sfumato.tables.statistic_plan import Block, block_for, sum_weights

__all__ = ["Reader", "all_of"]

ONE, HALF = Fraction(1), Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The noisy numbers of an answer, block after block, part after part, cell after cell."""

    blocks: tuple[Block, ...]
    cells: int
    number: int | None
    identifier: str
    law: Law
    values: Sequence[int]
    labels: Mapping[str, tuple[KeyValue, ...]]
    sources: tuple[Release, ...]
    _made: dict[int, list[Noise]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def figure(self, name: str, forms: Sequence[LinearCombination], *, whole: bool = False) -> Figure:
        """A column that is linear in the noisy numbers; one that counts is ``whole``."""
        return Figure(forms=tuple(forms), labels=self.labels, measure=name, sources=self.sources, whole=whole)

    def ratio(
        self,
        name: str,
        over: Sequence[LinearCombination],
        under: Sequence[LinearCombination],
        *,
        within: tuple[float, float],
    ) -> Ratio:
        """A column of quotients, which are known to lie ``within``."""
        return Ratio(
            over=tuple(over),
            under=tuple(under),
            labels=self.labels,
            measure=name,
            sources=self.sources,
            within=within,
        )

    def counts(self, need: Need) -> list[LinearCombination]:
        """All parts of what is needed, added up in each cell."""
        block = self.block(need)
        return self._weighted(block, [ONE] * block.reach.numbers)

    def weighted(self, need: Need, weights: Sequence[Fraction]) -> list[LinearCombination]:
        """The parts of what is needed, each times its weight, added up in each cell."""
        return self._weighted(self.block(need), weights)

    def sums(self, of: Clamped) -> list[LinearCombination]:
        """The sum of a value in each cell."""
        block = self.block(SumOf(of))
        sums = self._weighted(block, sum_weights(of, block))
        if isinstance(block.gauge, Everyone):
            return [form.shifted(Fraction(self.number or 1) * of.low) for form in sums]
        return sums

    def numbers(self, of: Clamped) -> list[LinearCombination]:
        """How many rows have a value, in each cell."""
        block = self.block(PowersOf(of, 1))
        missing = isinstance(block.gauge, Powers) and block.gauge.missing
        return self._weighted(block, [ONE] * (block.reach.numbers - missing))

    def moments(self, of: Clamped) -> list[Moments]:
        """The number of rows that have a value, and the sums of it and of its squares, on [0, 1]."""
        block = self.block(PowersOf(of, 2))
        if isinstance(block.gauge, Everyone):
            rows = LinearCombination(Fraction(self.number or 1), {})
            firsts = [sums_of(parts, [HALF, ONE]) for parts in self._of(block)]
            return [
                Moments(number=rows, first=first, second=first, product=parts[-1])
                for first, parts in zip(firsts, self._of(block), strict=True)
            ]
        found = []
        for parts in self._valued(block):
            first = sums_of(parts, [Fraction(0), HALF, ONE])
            found.append(Moments(number=all_of(parts), first=first, second=first, product=parts[2]))
        return found

    def block(self, need: Need) -> Block:
        """The block that meets a need."""
        return block_for(need, self.blocks)

    def parts(self, need: Need) -> list[list[LinearCombination]]:
        """The parts of what is needed in each cell, in rows: a part that is full of one row is 1."""
        return self._of(self.block(need))

    def _valued(self, block: Block) -> list[list[LinearCombination]]:
        """The parts of the rows that have a value."""
        missing = isinstance(block.gauge, Powers) and block.gauge.missing
        return [parts[:-1] if missing else parts for parts in self._of(block)]

    def _weighted(self, block: Block, weights: Sequence[Fraction]) -> list[LinearCombination]:
        """The sum of the first parts of a block, each times its weight, in each cell.

        The same as :func:`sums_of` of its parts; cells share their coefficients, and are added up in whole numbers.
        """
        first = self.first(block)
        factors = [(part, weight / block.height) for part, weight in enumerate(weights) if weight]
        below = lcm(*(factor.denominator for _, factor in factors))
        held = [(first + part * self.cells, factor, int(factor * below)) for part, factor in factors]
        if not held:
            return [LinearCombination(Fraction(0), {}) for _ in range(self.cells)]
        cells = self.cells
        numbers = zip(*(self.values[start : start + cells] for start, _, _ in held), strict=True)
        noises = zip(*(self._noises(start) for start, _, _ in held), strict=True)
        shares, times = [factor for _, factor, _ in held], [each for _, _, each in held]
        return [
            LinearCombination(Fraction(sum(map(mul, times, cell)), below), dict(zip(names, shares, strict=True)))
            for cell, names in zip(numbers, noises, strict=True)
        ]

    def _noises(self, start: int) -> list[Noise]:
        """The noise of one part in each cell; made once, so that forms which share it hold the same objects."""
        if start not in self._made:
            places = range(start, start + self.cells)
            self._made[start] = [Noise(self.identifier, place, self.law) for place in places]
        return self._made[start]

    def first(self, block: Block) -> int:
        """The place of the first number of a block."""
        first = 0
        for other in self.blocks:
            if other.key == block.key:
                break
            first += other.reach.numbers * self.cells
        return first

    def _of(self, block: Block) -> list[list[LinearCombination]]:
        first, unit = self.first(block), Fraction(1, block.height)
        return [
            [self._form(first + part * self.cells + cell, unit) for part in range(block.reach.numbers)]
            for cell in range(self.cells)
        ]

    def _form(self, place: int, unit: Fraction) -> LinearCombination:
        return LinearCombination(self.values[place] * unit, {Noise(self.identifier, place, self.law): unit})


def all_of(parts: Sequence[LinearCombination]) -> LinearCombination:
    """The sum of all parts."""
    return sums_of(parts, [ONE] * len(parts))
