"""What two groups are compared by: shares, means, ranks or counts, each with its estimates, its test and its notes.

One class for each, made of noisy numbers and the noise in them; :mod:`sfumato.studies.comparison` makes results of
them. A group whose noisy size is not above twice the noise in it gives no verdict: its p-value does not exist.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sfumato.core.description import Phrase, Word
from sfumato.studies import blocks, counts, means, proportions, ranks
from sfumato.studies.draws import REPLICATES, CellNoise, Numbers
from sfumato.studies.means import GroupMeans
from sfumato.studies.proportions import TwoByTwo
from sfumato.studies.result import Cell

__all__ = [
    "ComparedBlocks",
    "ComparedCounts",
    "ComparedMeans",
    "ComparedRanks",
    "ComparedShares",
    "GroupComparison",
    "Quantity",
    "outward",
]

FAR = 0.8  # difference of shares beyond which its interval is too short in small groups
SMALL = 200.0
FEW_EVENTS = 10.0
NEAR = 5.0  # standard deviations of its noise below which a group is hardly larger than it
OUTWARD = 2.0**-40  # by which ends are moved away from the estimate, so that no rounding of doubles cuts them
LEAST = 2.0  # standard deviations of its noise that a group must be larger than, for a verdict


@dataclass(frozen=True, slots=True)
class Quantity:
    """One estimate with its interval; ``equal`` is what it is where both groups are equal."""

    name: str
    value: float
    low: float
    high: float
    equal: float


Quantities = tuple[Quantity, ...]


class GroupComparison(Protocol):
    """How two groups were compared."""

    @property
    def test(self) -> str:
        """The name of the test in the catalogue."""
        ...

    @property
    def replicates(self) -> int | None:
        """How often the bootstrap drew; None where the p-value is of a known distribution."""
        ...

    @property
    def statistic(self) -> float:
        """The statistic of the test."""
        ...

    @property
    def p_value(self) -> float:
        """The p-value; not a number where there is no verdict."""
        ...

    def quantities(self, level: float) -> tuple[Quantity, ...]:
        """The estimates with intervals of this level."""
        ...

    def groups(self) -> Mapping[str, Sequence[Cell]]:
        """What is known of each group."""
        ...

    @property
    def notes(self) -> tuple[Word, ...]:
        """What a reader must know of this way to compare."""
        ...


def outward(value: float, low: object, high: object) -> tuple[float, float]:
    """The ends of an interval as plain numbers, which hold the value and no less than was found."""
    first, last = float(np.asarray(low)), float(np.asarray(high))
    return (
        min(value, first - OUTWARD * abs(first) if math.isfinite(first) else first),
        max(value, last + OUTWARD * abs(last) if math.isfinite(last) else last),
    )


def _told(rows: Numbers, variances: Sequence[float]) -> bool:
    """Whether each group is larger than its noise can make of nobody."""
    return all(size > max(LEAST * spread**0.5, 1.0) for size, spread in zip(rows, variances, strict=True))


def _known(values: Numbers, rows: Numbers, variances: Sequence[float]) -> list[Cell]:
    """What is known of each group: nothing of one that is lost in its noise."""
    told = [_told(rows[at : at + 1], variances[at : at + 1]) for at in range(len(rows))]
    return [float(value) if one else math.nan for value, one in zip(values, told, strict=True)]


def _told_or_nothing(found: tuple[Quantity, ...], ranges: Sequence[tuple[float, float]], *, told: bool) -> Quantities:
    """What was found; where a group is lost in its noise no estimate, and all that a quantity can be."""
    if told:
        return found
    return tuple(Quantity(one.name, math.nan, *ends, one.equal) for one, ends in zip(found, ranges, strict=True))


@dataclass(frozen=True, kw_only=True)
class ComparedShares:
    """Two shares from noisy counts with and without the outcome."""

    table: TwoByTwo
    seeded: Callable[[], np.random.Generator]
    conditional: bool = False
    replicates: int = REPLICATES

    @property
    def test(self) -> str:
        """χ² with noise, or the conditional test."""
        return "exact" if self.conditional else "score"

    @cached_property
    def statistic(self) -> float:
        """The studentised difference."""
        table = self.table
        return float(proportions.score_statistic(table.yes, table.no, *table.variances))

    @cached_property
    def p_value(self) -> float:
        """By the bootstrap."""
        if not self._verdict:
            return math.nan
        return float(proportions.p_values(self.table, self.seeded(), self.replicates, conditional=self.conditional))

    @property
    def _verdict(self) -> bool:
        return _told(self.table.yes + self.table.no, self._noise_in_rows)

    @property
    def _noise_in_rows(self) -> list[float]:
        above, below = self.table.variances
        return [float(each) for each in np.broadcast_to(above + below, (2,))]

    def quantities(self, level: float) -> tuple[Quantity, ...]:
        """The difference, the ratio and the odds ratio."""
        table = self.table
        first, second = (float(p) for p in proportions.shares(table.yes, table.no))
        odds = [float(p / (1 - p)) for p in proportions.half_added(table.yes, table.no)]
        found = (
            ("difference", first - second, proportions.difference_ends(table, level), 0.0),
            ("ratio", first / second if second > 0 else math.nan, proportions.ratio_ends(table, level), 1.0),
            ("odds ratio", odds[0] / odds[1], proportions.odds_ratio_ends(table, level), 1.0),
        )
        made = tuple(
            Quantity(name, value, *(ends if math.isnan(value) else outward(value, *ends)), equal)
            for name, value, raw, equal in found
            for ends in [(float(raw[0]), float(raw[1]))]
        )
        return _told_or_nothing(made, [(-1.0, 1.0), (0.0, math.inf), (0.0, math.inf)], told=self._verdict)

    def groups(self) -> Mapping[str, Sequence[Cell]]:
        """Rows and shares."""
        rows = self.table.yes + self.table.no
        return {
            "n": [float(each) for each in rows],
            "events": [float(each) for each in self.table.yes],
            "share": _known(proportions.shares(self.table.yes, self.table.no), rows, self._noise_in_rows),
        }

    @property
    def notes(self) -> tuple[Word, ...]:
        """How exact the test is, and open ends."""
        found: list[Word] = [Phrase(f"compare.size_{self.test}")]
        if not self._verdict:
            return (*found, Phrase("compare.no_verdict"))
        difference, ratio, _ = self.quantities(0.95)
        if math.isinf(ratio.high):
            found.append(Phrase("compare.open"))
        if max(-difference.low, difference.high) > FAR and (self.table.yes + self.table.no).min() < SMALL:
            found.append(Phrase("compare.far_apart"))
        elif min(self.table.yes.min(), self.table.no.min()) < FEW_EVENTS:
            found.append(Phrase("compare.unbalanced"))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class ComparedBlocks:
    """Two shares within blocks; blocks down, groups across."""

    yes: Numbers
    no: Numbers
    noise: CellNoise
    seeded: Callable[[], np.random.Generator]
    replicates: int = REPLICATES

    @property
    def test(self) -> str:
        """A randomisation test over blocks."""
        return "blocks"

    @cached_property
    def statistic(self) -> float:
        """The studentised sum of differences within blocks."""
        return float(blocks.block_statistic(self.yes, self.no, self.noise.variance))

    @cached_property
    def p_value(self) -> float:
        """Groups and noise drawn anew."""
        if not self._verdict:
            return math.nan
        return float(blocks.block_p_values(self.yes, self.no, self.noise, self.seeded(), self.replicates))

    @property
    def _rows(self) -> Numbers:
        found: Numbers = (self.yes + self.no).sum(axis=0)
        return found

    @property
    def _verdict(self) -> bool:
        return _told(self._rows, self._noise_in_rows)

    @property
    def _noise_in_rows(self) -> list[float]:
        return [2 * len(self.yes) * self.noise.variance] * 2

    def quantities(self, level: float) -> tuple[Quantity, ...]:
        """The common difference within blocks."""
        value, *ends = blocks.block_difference(self.yes, self.no, self.noise, level)
        made = (Quantity("difference within blocks", float(value), *outward(float(value), *ends), 0.0),)
        return _told_or_nothing(made, [(-1.0, 1.0)], told=self._verdict)

    def groups(self) -> Mapping[str, Sequence[Cell]]:
        """Rows and shares over all blocks."""
        yes = self.yes.sum(axis=0)
        return {
            "n": [float(each) for each in self._rows],
            "events": [float(each) for each in yes],
            "share": _known(proportions.shares(yes, self._rows - yes), self._rows, self._noise_in_rows),
        }

    @property
    def notes(self) -> tuple[Word, ...]:
        """What is assumed of the assignment, and how exact the test is."""
        kept = [] if self._verdict else [Phrase("compare.no_verdict")]
        return (Phrase("compare.size_blocks", {"blocks": f"{len(self.yes):,}"}), *kept)


@dataclass(frozen=True, kw_only=True)
class ComparedMeans:
    """Two means of values within declared bounds; on the scale from 0 to 1 inside."""

    means: GroupMeans
    tested: Callable[[int], float]
    """The p-value by a bootstrap of this many draws."""
    noise_in_rows: tuple[float, float]
    low: float
    width: float
    released: tuple[float, float] | None = None
    """The noisy numbers of rows as they were released, where those of ``means`` are held to two at least."""
    bounded: bool = False
    """Whether the variance is the largest that the bounds and the mean allow, since none was released."""
    replicates: int = REPLICATES

    @property
    def test(self) -> str:
        """Welch's, with noise."""
        return "bounded" if self.bounded else "welch"

    @cached_property
    def statistic(self) -> float:
        """The difference over its standard error."""
        one = self.means
        spread = math.sqrt(float((one.variance / one.rows + one.noise).sum()))
        return float(one.mean[0] - one.mean[1]) / spread

    @cached_property
    def p_value(self) -> float:
        """By the bootstrap."""
        return self.tested(self.replicates) if self._verdict else math.nan

    @property
    def _verdict(self) -> bool:
        return _told(self._rows, self.noise_in_rows)

    @property
    def _rows(self) -> Numbers:
        return self.means.rows if self.released is None else np.array(self.released)

    def quantities(self, level: float) -> tuple[Quantity, ...]:
        """The difference, in the units of the value."""
        value = self.width * float(self.means.mean[0] - self.means.mean[1])
        low, high = means.mean_difference_ends(self.means, level)
        made = (Quantity("difference", value, *outward(value, self.width * low, self.width * high), 0.0),)
        return _told_or_nothing(made, [(-self.width, self.width)], told=self._verdict)

    def groups(self) -> Mapping[str, Sequence[Cell]]:
        """Rows, means and cautious standard deviations."""
        return {
            "n": [float(each) for each in self._rows],
            "mean": _known(self.low + self.width * self.means.mean, self._rows, self.noise_in_rows),
            "standard deviation (raised)": _known(
                self.width * self.means.variance**0.5, self._rows, self.noise_in_rows
            ),
        }

    @property
    def notes(self) -> tuple[Word, ...]:
        """That it is conservative, and what is clipped."""
        kept = [] if self._verdict else [Phrase("compare.no_verdict")]
        near = zip(self._rows, self.noise_in_rows, strict=True)
        if self._verdict and any(rows < NEAR * spread**0.5 for rows, spread in near):
            kept = [Phrase("compare.near_noise")]
        return (Phrase(f"compare.size_{self.test}"), Phrase("compare.clipped"), *kept)


@dataclass(frozen=True, kw_only=True)
class ComparedRanks:
    """Two distributions over the same ordered classes."""

    cells: Numbers
    variance: float
    replicates: int | None = None

    @property
    def test(self) -> str:
        """Mann and Whitney's."""
        return "rank"

    @cached_property
    def statistic(self) -> float:
        """z."""
        return float(ranks.rank_statistic(self.cells, self.variance))

    @cached_property
    def p_value(self) -> float:
        """By the normal law; below 1 in 10,000 the tails of the noise are not normal, and no less is said."""
        if not self._verdict:
            return math.nan
        return max(float(ranks.rank_p_values(self.cells, self.variance)), 1 / (REPLICATES + 1))

    @property
    def _verdict(self) -> bool:
        return _told(self.cells.sum(axis=-1), [self.variance * self.cells.shape[-1]] * 2)

    def quantities(self, level: float) -> tuple[Quantity, ...]:
        """The chance that a value of the first group is the larger one."""
        value = float(ranks.superiority(self.cells))
        ends = ranks.superiority_ends(self.cells, self.variance, level)
        made = (Quantity("P(first > second)", value, *outward(value, *ends), 0.5),)
        return _told_or_nothing(made, [(0.0, 1.0)], told=self._verdict)

    def groups(self) -> Mapping[str, Sequence[Cell]]:
        """Rows."""
        return {"n": [float(each) for each in self.cells.sum(axis=-1)]}

    @property
    def notes(self) -> tuple[Word, ...]:
        """What ties are, and how exact the test is."""
        kept = [] if self._verdict else [Phrase("compare.no_verdict")]
        classes = str(self.cells.shape[-1])
        return (Phrase("compare.size_rank"), Phrase("compare.classes", {"classes": classes}), *kept)


@dataclass(frozen=True, kw_only=True)
class ComparedCounts:
    """Two numbers of events, as independent Poisson numbers with noise."""

    values: Numbers
    noises: tuple[CellNoise, CellNoise]
    seeded: Callable[[], np.random.Generator]
    replicates: int = REPLICATES

    @property
    def test(self) -> str:
        """Of two Poisson numbers."""
        return "counts"

    @cached_property
    def statistic(self) -> float:
        """The studentised difference."""
        return float(counts.count_statistic(self.values, self._variances))

    @cached_property
    def p_value(self) -> float:
        """By the bootstrap."""
        return float(counts.count_p_values(self.values, self.noises, self.seeded(), self.replicates))

    @property
    def _variances(self) -> Numbers:
        return np.array([noise.variance for noise in self.noises])

    def quantities(self, level: float) -> tuple[Quantity, ...]:
        """The difference and the ratio of the expected numbers."""
        first, second = (max(0.0, float(each)) for each in self.values)
        difference, ratio = counts.count_ends(self.values, self.noises, level)
        value = first / second if second > 0 else math.nan
        ends = (float(ratio[0]), float(ratio[1])) if math.isnan(value) else outward(value, *ratio)
        return (
            Quantity("difference", first - second, *outward(first - second, *difference), 0.0),
            Quantity("ratio", value, *ends, 1.0),
        )

    def groups(self) -> Mapping[str, Sequence[Cell]]:
        """The counts."""
        return {"events": [float(each) for each in self.values]}

    @property
    def notes(self) -> tuple[Word, ...]:
        """What is assumed of events, and how exact the test is."""
        open_end = math.isinf(self.quantities(0.95)[1].high)
        return (Phrase("compare.size_counts"), *([Phrase("compare.open")] if open_end else []))
