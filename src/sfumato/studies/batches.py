"""Batch effects: whether batches, instruments, sites or steps of processing differ in the mean of a value.

What is compared was released for one charge: for each batch, noisy sums of how many rows there are, of the value and of
its square. The joint test weighs each batch by its sampling and noise variance; its null distribution is simulated with
the noise drawn anew, for estimated variances make it wider than χ². Proof: docs/proofs/design.md
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import Listed, OneLine, Word, phrase
from sfumato.core.exact import Exact, probability
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release
from sfumato.inference.moments import Moments
from sfumato.studies.design_result import DesignResult, Facts
from sfumato.studies.draws import seeded_by
from sfumato.studies.error_sum import ErrorSum, NoiseShape, drawn
from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = [
    "ENOUGH",
    "BatchComparison",
    "BatchStatistic",
    "BatchSums",
    "batch_statistic",
    "batch_test",
    "compared_batches",
]

Array = NDArray[np.float64]
REPLICATES = 9999
AT_ONCE = 2 * 10**6  # numbers that a simulation holds at once
ENOUGH = 4.0  # standard deviations of the noise in its number of rows that a batch must have
SMALL = 1e-9
CLEAR, FEW, LEAST = 0.3, 30, 0.2  # when a batch has a spread of its own, and how small that may be to the pooled one


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSums:
    """Noisy sums over the rows of each batch, of values on [0, 1], along the last axis: rows, value, square.

    ``weights`` are the coefficients (3 × k) of the k noises of a batch in the three sums.
    """

    number: Array
    first: Array
    product: Array
    weights: Array
    noise: NoiseShape

    def kept(self, which: NDArray[np.bool_]) -> "BatchSums":
        """The same without some batches."""
        return BatchSums(
            number=self.number[..., which],
            first=self.first[..., which],
            product=self.product[..., which],
            weights=self.weights,
            noise=self.noise,
        )

    @property
    def rows_error(self) -> float:
        """The standard deviation of the noise in the number of rows of a batch."""
        return float(np.sqrt(self.noise.variance * np.sum(self.weights[0] ** 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatistic:
    """The joint statistic, and what it is made of, along the last axis."""

    value: Array
    means: Array
    variances: Array
    """Of the means: sampling and noise."""
    centre: Array
    spread: Array
    """The variance of the values within batches, pooled."""
    spreads: Array
    """That of each batch by itself, where the noise leaves it clear; else the pooled one."""


def batch_statistic(sums: BatchSums) -> BatchStatistic:
    """Q = Σ(x̄_b − x̄)²/v_b with v_b = s²/n_b + σ²·Σc²/n_b², for all runs at once.

    The noise of a mean is c = (coefficients of the sum) − x̄·(coefficients of the number), and s² is pooled over the
    batches; where its noise leaves nothing, s² is held to one standard deviation of that noise. A batch whose own s² is
    clear of the noise has that one.
    """
    number = np.maximum(sums.number, 1.0)
    means = np.clip(sums.first / number, 0.0, 1.0)
    parts = sums.weights[1] - np.multiply.outer(means, sums.weights[0])
    noise = sums.noise.variance * (parts**2).sum(axis=-1)
    batches, total = number.shape[-1], number.sum(axis=-1)
    # The noise of a mean makes the squares around it smaller on average, as fitting the mean does: both are put back.
    around = sums.product - 2 * means * sums.first + means**2 * number + noise / number
    inside = around.sum(axis=-1) / np.maximum(total - batches, 1.0)
    middle = (means * number).sum(axis=-1) / total
    square = sums.weights[2] + np.multiply.outer(middle**2, sums.weights[0])
    square = square - np.multiply.outer(2 * middle, sums.weights[1])
    floor = np.sqrt(sums.noise.variance * batches * (square**2).sum(axis=-1)) / total
    spread = np.clip(inside, np.maximum(floor, SMALL), 0.25)
    doubt = np.sqrt(sums.noise.variance * (square**2).sum(axis=-1))[..., None] / number
    own = np.clip(around / np.maximum(number - 1, 1.0), LEAST * spread[..., None], 0.25)
    known = (doubt < CLEAR * np.maximum(spread[..., None], own)) & (number >= FEW)
    spreads = np.where(known, own, spread[..., None])
    variances = spreads / number + noise / number**2
    weight = 1 / variances
    centre = (weight * means).sum(axis=-1) / weight.sum(axis=-1)
    value = (weight * (means - centre[..., None]) ** 2).sum(axis=-1)
    return BatchStatistic(value=value, means=means, variances=variances, centre=centre, spread=spread, spreads=spreads)


def batch_test(sums: BatchSums, random: np.random.Generator, *, replicates: int = REPLICATES) -> float:
    """The p-value of one comparison: (1 + copies with a statistic as large)/(replicates + 1).

    A copy has the same numbers of rows, one mean and one spread for all batches, and noise drawn anew.
    """
    seen = batch_statistic(sums)
    batches, noises = sums.number.shape[-1], sums.weights.shape[1]
    number = np.maximum(sums.number, 1.0)
    mean, spread = float(seen.centre), seen.spreads
    larger, left = 0, replicates
    while left:
        now = min(left, max(1, AT_ONCE // (batches * (noises + 1))))
        left -= now
        first = number * mean + np.sqrt(number * spread) * random.standard_normal((now, batches))
        product = first**2 / number + spread * random.chisquare(np.maximum(number - 1, 1.0), (now, batches))
        noise = drawn(sums.noise, (now, batches, noises), random) @ sums.weights.T
        copies = BatchSums(
            number=number + noise[..., 0],
            first=first + noise[..., 1],
            product=product + noise[..., 2],
            weights=sums.weights,
            noise=sums.noise,
        )
        larger += int(np.sum(batch_statistic(copies).value >= float(seen.value) - SMALL))
    return (1 + larger) / (replicates + 1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchComparison(DesignResult):
    """Rows and mean of each batch with intervals, and a joint test that all batches have the same mean.

    Guarantee: costs nothing beyond the release; sampling and noise are in the intervals and in the null distribution of
    the test. Assumes: rows are independent (one row a person); where noise hides the spread of a batch, that of all.
    """

    field: str
    """What was compared: batch, instrument, site or step."""
    column: str
    declared: tuple[tuple[str, str], ...]
    """All provenance that was declared of the dataset: fields and their columns."""
    value: Word
    labels: tuple[str, ...]
    sums: BatchSums
    low: float
    width: float
    p_value: float
    sources: tuple[Release, ...]
    replicates: int = REPLICATES

    @property
    def enough(self) -> NDArray[np.bool_]:
        """The batches that have rows beyond the noise in their number."""
        return np.asarray(self.sums.number >= max(2.0, ENOUGH * self.sums.rows_error))

    @property
    def statistic(self) -> float:
        """The joint statistic; nan where fewer than two batches have enough rows."""
        return math.nan if self._seen is None else float(self._seen.value)

    @property
    def _seen(self) -> BatchStatistic | None:
        return batch_statistic(self.sums.kept(self.enough)) if self.enough.sum() > 1 else None

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase(f"design.compared_{self.field}", value=self.value)

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The batches, and the test."""
        level = float(probability(confidence, "confidence"))
        found = dict(zip(self._kept_labels, self._rows(level), strict=True))
        nothing = (math.nan,) * 5
        rows = [found.get(name, nothing) for name in self.labels]
        names = ("mean", "standard error", "low", "high", "shift in standard deviations")
        columns: dict[str, Sequence[Cell]] = {
            self.field: self.labels,
            "rows": [float(each) for each in self.sums.number],
            "rows standard error": [self.sums.rows_error] * len(self.labels),
            **{name: [row[place] for row in rows] for place, name in enumerate(names)},
        }
        kept = int(self.enough.sum())
        test: dict[str, Sequence[Cell]] = {
            "test": ["all batches have the same mean"],
            "statistic": [self.statistic],
            "batches": [kept],
            "p-value": [self.p_value],
            "simulated copies": [self.replicates],
        }
        return ResultTable(name="batches", columns=columns), ResultTable(name="test", columns=test)

    @property
    def _kept_labels(self) -> tuple[str, ...]:
        return tuple(name for name, kept in zip(self.labels, self.enough, strict=True) if kept)

    def _rows(self, level: float) -> list[tuple[float, float, float, float, float]]:
        """Mean, standard error, interval and shift of each batch that has enough rows."""
        seen = self._seen
        if seen is None:
            return [(math.nan,) * 5] * len(self._kept_labels)
        kept, rows = self.sums.kept(self.enough), []
        deviation = math.sqrt(float(seen.spread))
        for place, mean in enumerate(seen.means):
            count = float(kept.number[place])
            parts = (self.sums.weights[1] - mean * self.sums.weights[0]) / count
            error = ErrorSum.made(float(seen.spreads[place]) / count, [(float(c), self.sums.noise) for c in parts])
            margin = error.quantile((1 + level) / 2)
            others = np.arange(len(seen.means)) != place
            weight = 1 / seen.variances[others]
            shift = (mean - float((weight * seen.means[others]).sum() / weight.sum())) / deviation
            ends = (max(mean - margin, 0.0), min(mean + margin, 1.0))
            scaled = [self.low + self.width * float(each) for each in (mean, *ends)]
            rows.append((scaled[0], self.width * math.sqrt(error.total), scaled[1], scaled[2], float(shift)))
        return rows

    @property
    def facts(self) -> Facts:
        """The field, what is declared, and the test."""
        said = tuple(OneLine(f"{field} = {column}") for field, column in self.declared)
        return (
            (phrase("design.field"), OneLine(f"{self.field} ({self.column})")),
            (phrase("design.provenance"), Listed(said)),
            (phrase("design.joint_test"), phrase("design.p", p=_shown_p(self.p_value))),
            (phrase("design.verdict"), phrase(f"design.batches_{self.verdict}")),
        )

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """The means in words, the joint test and its verdict."""
        said = phrase("design.joint_found", p=_shown_p(self.p_value), verdict=phrase(f"design.batches_{self.verdict}"))
        return (*StudyResult.findings(self, confidence), said)

    @property
    def verdict(self) -> str:
        """``differ`` where p is at most 5%, ``open`` where there is no test, else ``alike``."""
        return "open" if math.isnan(self.p_value) else "differ" if self.p_value <= 0.05 else "alike"

    @property
    def notes(self) -> tuple[Word, ...]:
        """What a reader must know."""
        notes: list[Word] = [phrase("study.covers", percent="95"), phrase("design.batches_null")]
        few = [name for name, kept in zip(self.labels, self.enough, strict=True) if not kept]
        if few:
            notes.append(phrase("design.batches_few", names=Listed(tuple(OneLine(name) for name in few))))
        return (*notes, phrase("design.batches_cause"))

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """The means of the batches with their intervals, and the mean of all."""
        seen = self._seen
        if seen is None:
            return None
        level = float(probability(confidence, "confidence"))
        rows = [
            PictureRow(at=name, value=mean, low=low, high=high)
            for name, (mean, _, low, high, _) in zip(self._kept_labels, self._rows(level), strict=True)
        ]
        return Picture(
            kind="forest",
            rows=rows,
            title=self.title,
            across=self.value,
            lines=(phrase("study.covers", percent=f"{100 * level:.4g}"), phrase("design.p", p=_shown_p(self.p_value))),
            reference=self.low + self.width * float(seen.centre),
        )


def _shown_p(p: float) -> str:
    return "–" if math.isnan(p) else f"{p:.4f}"


def compared_batches(
    moments: Sequence[Moments],
    *,
    release: Release,
    labels: Mapping[str, Sequence[object]],
    field: str,
    declared: tuple[tuple[str, str], ...],
    value: Word,
    low: float,
    width: float,
) -> BatchComparison:
    """The comparison of batches whose sums were released together; the same each time, for its seed is the release."""
    ((column, names),) = labels.items()
    forms = [(each.number, each.first, each.product) for each in moments]
    places = sorted({noise.place for form in forms[0] for noise in form.noises})
    at = {place: k for k, place in enumerate(places)}
    weights = np.zeros((3, len(places)))
    for row, form in enumerate(forms[0]):
        for noise, coefficient in form.noises.items():
            weights[row, at[noise.place]] = float(coefficient)
    numbers = np.array([[float(form.value) for form in batch] for batch in forms])
    sums = BatchSums(
        number=numbers[:, 0],
        first=numbers[:, 1],
        product=numbers[:, 2],
        weights=weights,
        noise=NoiseShape.of(release.statement.law),
    )
    made = BatchComparison(
        field=field,
        column=column,
        declared=declared,
        value=value,
        labels=tuple(str(name) for name in names),
        sums=sums,
        low=low,
        width=width,
        p_value=math.nan,
        sources=(release,),
    )
    if made.enough.sum() < 2:
        return made
    p = batch_test(sums.kept(made.enough), seeded_by(release)())
    object.__setattr__(made, "p_value", p)
    return made
