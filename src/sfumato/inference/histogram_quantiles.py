"""Quantiles of a histogram that was released: with an interval, which a quantile chosen by its rank does not have.

Proof: docs/proofs/quantiles.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.exact import Exact, probability
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived, Label, level_of
from sfumato.inference.figure import Figure, figure
from sfumato.inference.linear_combination import LinearCombination

__all__ = ["HistogramQuantile", "quantile"]

MOST_VALUES = 400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistogramQuantile(Derived):
    """The value below or at which the share ``level`` of all rows lies, in each group of a histogram.

    Guarantee: costs nothing. For a value z let A be the rows at or below it and B those below it, less ``level`` times
    all rows: of the true quantile A ≥ 0 ≥ B. The interval holds every value for which neither the noisy A is below 0
    nor the noisy B above 0 by more than noise of its law is, so it holds the true quantile as often as it says: one
    value is tested, so no bound over all values is needed. Assumes: as for :class:`~sfumato.inference.figure.Figure`;
    the rows are those that count, under the limit. Where the data have ties the interval is wider than it need be.
    """

    level: Fraction
    numbers: tuple[int | Fraction, ...]
    counts: tuple[tuple[LinearCombination, ...], ...]
    """Of each group, the counts of all values in their order."""
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]

    @property
    def values(self) -> tuple[int | Fraction, ...]:
        """The first value at or below which the share of the noisy rows lies; the last one where there is none."""
        return tuple(
            next(
                (z for z, form in zip(self.numbers, self._up_to(cells), strict=True) if form.value >= 0),
                self.numbers[-1],
            )
            for cells in self.counts
        )

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "every value that the noise of the histogram leaves possible"

    def interval(
        self, confidence: Exact = Fraction(19, 20), *, joint: bool = False
    ) -> list[tuple[int | Fraction, int | Fraction]]:
        """Low and high of each quantile; with ``joint`` those of all groups hold at once with this confidence."""
        forms = [self._up_to(cells)[0] for cells in self.counts]
        sure = level_of(confidence, forms if joint else forms[:1])
        known: dict[object, Fraction] = {}
        return [self._ends(cells, value, sure, known) for cells, value in zip(self.counts, self.values, strict=True)]

    def _ends(
        self,
        cells: tuple[LinearCombination, ...],
        value: int | Fraction,
        sure: Fraction,
        known: dict[object, Fraction],
    ) -> tuple[int | Fraction, int | Fraction]:
        ups = self._up_to(cells)
        margins = [known[up.shape] if up.shape in known else known.setdefault(up.shape, up.margin(sure)) for up in ups]
        low = next((z for z, up, margin in zip(self.numbers, ups, margins, strict=True) if up.value >= -margin), value)
        # What lies below a value is what lies up to the one before it; nothing lies below the first. Of the true
        # quantile it is less than the share of all rows: seen a margin above that, the noise is more than the margin.
        below = zip(self.numbers[1:], ups, margins, strict=False)
        high = max((z for z, up, margin in below if up.value < margin), default=self.numbers[0])
        return min(low, value), max(high, value)

    def _up_to(self, cells: tuple[LinearCombination, ...]) -> list[LinearCombination]:
        """The rows up to each value, less the share of all rows."""
        whole = LinearCombination(Fraction(0), {})
        for cell in cells:
            whole = whole.plus(cell, -self.level)
        found = []
        for cell in cells:
            whole = whole.plus(cell, Fraction(1))
            found.append(whole)
        return found


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
    )
