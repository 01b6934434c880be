"""Quantiles of a histogram that was released: with an interval, which a quantile chosen by its rank does not have.

Proof: docs/proofs/quantiles.md
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, probability
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived, Label, level_of
from sfumato.inference.figure import Figure, figure
from sfumato.inference.inversion import Spread
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.population import SampleDesign, design_of, nearly_normal

if TYPE_CHECKING:
    from sfumato.core.query import Law
    from sfumato.inference.population import Population

    Shape = frozenset[tuple[tuple[Fraction, Law], int]]

__all__ = ["HistogramQuantile", "quantile"]

MOST_VALUES = 400
MANY = 20
NEAR = 0.9  # of the margin that a normal distribution has: the noise of many bins has hardly a smaller one
FINE = Fraction(1, 50)  # of a standard deviation: how finely margins of many bins are found
SAFE = 1.0001  # more than floating-point numbers can be wrong by


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistogramQuantile(Derived):
    """The value below or at which the share ``level`` of all rows lies, in each group of a histogram.

    Guarantee: costs nothing. For a bin z let A be the rows in it and below it and B those below it, each less ``level``
    times all rows: of the bin of the true quantile A ≥ 0 > B. The interval holds every bin for which neither the noisy
    A is below 0 nor the noisy B above 0 by more than noise of its law is, so it holds the true quantile as often as it
    says: one bin is tested, so no bound over all bins is needed. Assumes: as for
    :class:`~sfumato.inference.figure.Figure`; the rows are those that count, under the limit. Where the data have ties
    the interval is wider than it need be.
    """

    level: Fraction
    numbers: tuple[int | Fraction, ...]
    """What is shown for each bin: its number, or one in its middle."""
    counts: tuple[tuple[LinearCombination, ...], ...]
    """Of each group, the counts of all bins in their order."""
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    ends: tuple[tuple[int | Fraction, int | Fraction], ...] = ()
    """The least and the greatest value in each bin; empty where each holds one number."""
    design: SampleDesign | None = None
    """How rows were sampled, where the quantile estimates that of a population."""

    @property
    def values(self) -> tuple[int | Fraction, ...]:
        """The first bin up to which the share of the noisy rows lies; the last one where there is none."""
        return tuple(self.numbers[_Ranks(cells, self.level).first] for cells in self.counts)

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "every value that the noise of the histogram leaves possible"

    def _data_interval(
        self, confidence: Exact = Fraction(19, 20), *, joint: bool = False
    ) -> list[tuple[int | Fraction, int | Fraction]]:
        """Low and high of each quantile; with ``joint`` those of all groups hold at once with this confidence."""
        groups = [_Ranks(cells, self.level) for cells in self.counts]
        sure = level_of(confidence, [ranks.form(0) for ranks in groups] if joint else [])
        ends = self._values
        places = [ranks.possible(sure) for ranks in groups]
        return [(ends[low][0], ends[high][1]) for low, high in places]

    @property
    def estimates_population(self) -> bool:
        """Whether it is of a table, whose people are taken for a sample."""
        return self.design is not None

    def _population(self) -> "Population | None":
        """Ranks with the noise of one bin: the largest, where bins have different ones."""
        import numpy as np

        from sfumato.inference.population_quantiles import PopulationRanks

        if self.design is None:
            return None
        first = next((noise for cells in self.counts for cell in cells for noise in cell.noises), None)
        if first is None:
            return None
        variances = [
            sum(float(c) ** 2 for c in cell.noises.values()) * float(first.law.variance) for cell in self.counts[0]
        ]
        return PopulationRanks(
            counts=np.array([[float(cell.value) for cell in cells] for cells in self.counts]),
            noise=math.sqrt(max(variances)),
            gaussian=nearly_normal(first.law),
            level=float(self.level),
            values=self._values,
            design=self.design,
        )

    @property
    def _values(self) -> tuple[tuple[int | Fraction, int | Fraction], ...]:
        return self.ends or tuple(zip(self.numbers, self.numbers, strict=True))


class _Ranks:
    """How far the rows up to each bin are above the share of all rows, in one group, with the noise in that."""

    def __init__(self, cells: Sequence[LinearCombination], level: Fraction) -> None:
        self.cells, self.level = cells, level
        target = level * sum((cell.value for cell in cells), start=Fraction(0))
        self.above = [upto - target for upto in accumulate(cell.value for cell in cells)]
        self.first = next((place for place, above in enumerate(self.above) if above >= 0), len(cells) - 1)

    def form(self, place: int) -> LinearCombination:
        """What is above the share, as a number with its noise."""
        held: dict[Noise, Fraction] = {}
        for at, cell in enumerate(self.cells):
            times = (at <= place) - self.level
            for noise, coefficient in cell.noises.items():
                held[noise] = held.get(noise, Fraction(0)) + times * coefficient
        return LinearCombination(self.above[place], {noise: c for noise, c in held.items() if c})

    def possible(self, sure: Fraction) -> tuple[int, int]:
        """The first and the last bin that the noise leaves possible for the quantile; the point is between them."""
        near, far = self._decided(sure)
        low = next(place for place in range(len(self.above)) if self._within(place, sure, near, far, below=True))
        # What lies below a bin is what lies up to the one before it; nothing lies below the first. Of the true quantile
        # it is less than the share of all rows: seen a margin above that, the noise is more than the margin.
        back = range(len(self.above) - 1, 0, -1)
        high = next((place for place in back if self._within(place - 1, sure, near, far, below=False)), 0)
        return min(low, self.first), max(high, self.first)

    def _within(self, place: int, sure: Fraction, near: Sequence[float], far: Sequence[float], *, below: bool) -> bool:
        """Whether noise alone may have carried a bin as far as it is seen below 0, or else above it.

        Margins take long to find: none is where ``near`` or ``far`` decides.
        """
        away = -self.above[place] if below else self.above[place]
        if away < 0 or (below and (away == 0 or place == len(self.above) - 1)):
            return True
        size = float(away)
        if 0 < size <= near[place]:
            return True
        if size > far[place]:
            return False
        margin = _margin(self._shape(place), sure)
        return away <= margin if below else away < margin

    def _shape(self, place: int) -> "Shape":
        """The shape of a form, known without making it where every bin has one noise of one size."""
        alike = self._alike
        if alike is None:
            return self.form(place).shape
        times = Counter({((1 - self.level) * alike[0], alike[1]): place + 1})
        times[self.level * alike[0], alike[1]] += len(self.cells) - place - 1
        return frozenset(times.items())

    @cached_property
    def _alike(self) -> "tuple[Fraction, Law] | None":
        """The size and the law of the noise in every bin, where they are the same and no noise is in two bins."""
        held = [next(iter(cell.noises.items())) for cell in self.cells if len(cell.noises) == 1]
        size, law = (abs(held[0][1]), held[0][0].law) if held else (Fraction(0), None)
        same = all(abs(c) == size and (noise.law is law or noise.law == law) for noise, c in held)
        apart = len(held) == len(self.cells) == len({noise for noise, _ in held})
        return (size, law) if law is not None and same and apart else None

    def _decided(self, sure: Fraction) -> tuple[list[float], list[float]]:
        """How near each form is kept, and how far it is left out, by its standard deviation alone.

        Noise is beyond sd/√(1 − sure) less often than 1 − sure (Chebyshev), and to keep a bin is never wrong.
        """
        spreads = self._spreads()
        if spreads is None:
            return [0.0] * len(self.cells), [math.inf] * len(self.cells)
        normal = NormalDist().inv_cdf(min((1 + float(sure)) / 2, 1 - 1e-12))
        near = NEAR * normal if len(self.cells) >= MANY else 0.0
        far = SAFE / math.sqrt(1 - sure)
        return [near * spread for spread in spreads], [far * spread for spread in spreads]

    def _spreads(self) -> list[float] | None:
        """The standard deviations of all forms, where no noise is in two bins."""
        noises = [noise for cell in self.cells for noise in cell.noises]
        if len(set(noises)) < len(noises):
            return None
        known: dict[int, float] = {}
        for noise in noises:
            if id(noise.law) not in known:
                known[id(noise.law)] = float(noise.law.variance)
        own = [sum(float(c) ** 2 * known[id(noise.law)] for noise, c in cell.noises.items()) for cell in self.cells]
        upto, all_, level = list(accumulate(own)), sum(own), float(self.level)
        return [((1 - level) ** 2 * some + level**2 * max(0.0, all_ - some)) ** 0.5 for some in upto]


@lru_cache(maxsize=4096)
def _margin(shape: "Shape", sure: Fraction) -> Fraction:
    """The margin of all forms of one shape; of many parts up to 1% more, since hundreds of shapes may be asked for."""
    sizes = [each for each, times in shape for _ in range(times)]
    if not sizes:
        return Fraction(0)
    if len(sizes) >= MANY:
        return Spread(sizes, fine=FINE).margin(sure)
    held = {Noise("", place, law): size for place, (size, law) in enumerate(sizes)}
    return LinearCombination(Fraction(0), held).margin(sure)


def quantile(given: Release | Figure, level: Exact, *, value: str | None = None) -> HistogramQuantile:
    """A quantile, with its interval, of counts that were released for each of up to 400 numbers.

    ``value`` is the label column that holds the numbers, in rising order; the only one, if it is not named. Other label
    columns are groups, each of which has its quantile. Rows whose value is not listed do not count.

    >>> quantile([1, 2], 0.5)
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: post-processing takes releases and was given list; nothing was done.
    """
    share, counts = probability(level, "level"), figure(given)
    if share in (0, 1):
        raise InvalidInput(f"level = {share} is an end of the data and not a quantile; nothing was computed.")
    name = value if value is not None or len(counts.labels) != 1 else next(iter(counts.labels))
    if name is None or name not in counts.labels:
        raise InvalidInput(
            f"value= names the label column that holds the numbers, one of {', '.join(counts.labels) or 'none'}; "
            "nothing was computed. Release counts by that column first."
        )
    column, others = counts.labels[name], {label: at for label, at in counts.labels.items() if label != name}
    numbers = tuple(dict.fromkeys(column))
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise InvalidInput(
            f"the values of {name!r} are not whole numbers, so they have no quantile; nothing was computed."
        )
    if list(numbers) != sorted(numbers) or len(numbers) > MOST_VALUES:
        raise InvalidInput(
            f"a quantile is found among at most {MOST_VALUES} numbers in rising order; nothing was computed. Declare "
            "the keys so, or ask for quantiles(...), which choose from any range."
        )
    groups: dict[tuple[Label, ...], dict[Label, LinearCombination]] = {}
    for place, form in enumerate(counts.forms):
        key = tuple(at[place] for at in others.values())
        groups.setdefault(key, {})[column[place]] = form
    return HistogramQuantile(
        level=share,
        numbers=tuple(int(number) for number in numbers),
        counts=tuple(tuple(cells[number] for number in numbers) for cells in groups.values()),
        labels={label: tuple(key[place] for key in groups) for place, label in enumerate(others)},
        measure="median" if share == Fraction(1, 2) else f"quantile_{float(share):g}".replace(".", "_"),
        sources=counts.sources,
        design=_design(counts),
    )


def _design(counts: Figure) -> SampleDesign | None:
    """How rows of one release were sampled, of which a unit may have some at each number; else None."""
    noises = [noise for form in counts.forms for noise in form.noises]
    plain = all(list(form.noises.values()) == [1] for form in counts.forms) and len(set(noises)) == len(noises)
    if len(counts.sources) != 1 or not plain:
        return None
    said = counts.sources[0].statement
    return design_of(said.unit, said.limit, across=True)
