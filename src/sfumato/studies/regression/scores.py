"""How well a score tells events from others, and whether it is calibrated, from noisy counts by bins of the score."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import Phrase, Word, phrase
from sfumato.core.exact import Exact, decimal_up, probability
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release
from sfumato.inference.proportion import proportion_limits
from sfumato.studies.draws import multiplier
from sfumato.studies.regression.result import heavier
from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = ["AucFit", "AucResult", "CalibrationResult", "fit_auc", "proportion_ends"]

UPWARD = 1.2816  # as for residual variances: noise makes a variance too small in one of ten
GRID = 2001
"""Points at which limits are looked for; they are widened by one step outward."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AucFit:
    """Areas under the curve, or many at once; ``nan`` and the whole range where noise leaves nothing."""

    area: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def fit_auc(
    events: NDArray[np.float64], others: NDArray[np.float64], variance: float, *, z: float, kurtosis: float = 0.0
) -> AucFit:
    """The area under the curve from noisy counts of both classes in rising bins; ties within a bin count half.

    With θ = 2·area − 1 the sum T = Σᵢⱼ events_i·others_j (sgn(i − j) − θ) has mean 0. Its noise has the variance
    v(Σa² + Σb²) + v²Σm², where m is the bracket and a, b are its sums over the other class; what noise adds to a² and
    b² is taken off. The variance of sampling is raised by 1.28 standard deviations of its own noise. All θ with
    |T| ≤ z·√variance are kept. Proof: docs/proofs/regression.md
    """
    bins = events.shape[-1]
    sign = np.sign(np.subtract.outer(np.arange(bins), np.arange(bins))).astype(float)
    ones, zeros = events.sum(axis=-1), others.sum(axis=-1)
    both = ones * zeros
    total = np.einsum("...i,ij,...j->...", events, sign, others)
    theta = np.linspace(-1, 1, GRID)
    away = total[..., None] - theta * both[..., None]
    at = [_spread(events, others, sign, where, variance) for where in (-1.0, 0.0, 1.0)]
    known = [_parabola([each[part] for each in at], theta) for part in range(3)]
    of_noise = variance * np.maximum(known[0] - 2 * variance * known[1], 0.0) + variance**2 * known[1]
    usable = (ones > 0) & (zeros > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.where(usable, np.clip(total / both, -1, 1), nan)
    near = np.nan_to_num(estimate)
    a, b = others @ sign.T - (near * zeros)[..., None], events @ sign - (near * ones)[..., None]
    doubt = np.sqrt(variance * (np.sum(a**4, axis=-1) + np.sum(b**4, axis=-1)))
    spread = np.maximum(known[2] + UPWARD * doubt[..., None], 0.0) + of_noise
    share = np.divide(of_noise, spread, out=np.ones_like(spread), where=spread > 0)
    # A sum of many noises is near a normal one; one bin may hold most of it.
    limit = heavier(z, kurtosis * share**2 / 2)
    kept = np.abs(away) <= limit * np.sqrt(spread)
    any_kept = kept.any(axis=-1) & usable
    first, last = kept.argmax(axis=-1), GRID - 1 - kept[..., ::-1].argmax(axis=-1)
    low = np.where(any_kept, (theta[np.maximum(first - 1, 0)] + 1) / 2, 0.0)
    high = np.where(any_kept, (theta[np.minimum(last + 1, GRID - 1)] + 1) / 2, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        here = np.clip(np.round((near + 1) / 2 * (GRID - 1)).astype(int), 0, GRID - 1)
        at_estimate = np.take_along_axis(spread, here[..., None], axis=-1)[..., 0]
        error = np.where(usable, np.sqrt(at_estimate) / (2 * np.where(both > 0, both, nan)), nan)
    return AucFit(area=(estimate + 1) / 2, standard_error=error, low=low, high=high)


def _spread(
    events: NDArray[np.float64], others: NDArray[np.float64], sign: NDArray[np.float64], theta: float, variance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Σa² + Σb², Σm², and the variance of sampling, each at one θ; all of them are quadratic in it."""
    bracket = sign - theta
    a, b = others @ bracket.T, events @ bracket
    squares = np.broadcast_to(np.sum(bracket**2), a.shape[:-1])
    of_noise = variance * (events @ np.sum(bracket**2, axis=1) + others @ np.sum(bracket**2, axis=0))
    sampled = np.sum(events * a**2, axis=-1) + np.sum(others * b**2, axis=-1) - of_noise
    return np.sum(a**2, axis=-1) + np.sum(b**2, axis=-1), squares, sampled


def _parabola(at: Sequence[NDArray[np.float64]], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Through values at −1, 0 and 1."""
    low, middle, high = (each[..., None] for each in at)
    return np.asarray(middle + (high - low) / 2 * theta + ((high + low) / 2 - middle) * theta**2)


def proportion_ends(
    events: NDArray[np.float64], others: NDArray[np.float64], variance: float, *, level: float, kurtosis: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits of the share of events from noisy counts of both: all shares p that a score test does not refuse.

    Kept while max(|(1 − p)·events − p·others| − ½, 0) ≤ k√(n p(1 − p) + v((1 − p)² + p²)).

    >>> low, high = proportion_ends(np.array([30.0]), np.array([70.0]), 2.0, level=0.95)
    >>> round(float(low[0]), 2), round(float(high[0]), 2)
    (0.21, 0.4)
    """
    total = events + others

    def reach(p: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = np.maximum(total, 1.0) * p * (1 - p) + variance * ((1 - p) ** 2 + p**2)
        fourth = kurtosis * variance**2 * ((1 - p) ** 4 + p**4)
        return multiplier(fourth / np.where(spread > 0, spread, 1.0) ** 2, level)

    return proportion_limits(events, total, (variance, variance, 2 * variance), reach, half=0.5)


def _facts(release: Release, outcome: str, score: str) -> tuple[tuple[Word, Word], ...]:
    said = release.statement
    spent = f"ε = {decimal_up(said.spend.epsilon)}" + (
        f", δ = {decimal_up(said.spend.delta)}" if said.spend.delta else ""
    )
    return (
        (Phrase("regression.score"), score),
        (Phrase("regression.outcome"), outcome),
        (Phrase("regression.spent"), spent),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ScoredCounts(StudyResult):
    """Noisy counts of rows with the event and without, by bins of a score."""

    release: Release
    outcome: str
    score: str
    edges: tuple[Fraction, ...]
    events: NDArray[np.float64]
    others: NDArray[np.float64]
    variance: float
    kurtosis: float

    @property
    def sources(self) -> tuple[Release, ...]:
        """The one release."""
        return (self.release,)

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """The score, the outcome, what it cost."""
        return _facts(self.release, self.outcome, self.score)


def _z(confidence: Exact) -> float:
    from scipy import stats

    return float(stats.norm.ppf((1 + float(probability(confidence, "confidence"))) / 2))


class AucResult(ScoredCounts):
    """The area under the receiver operating characteristic of a score, with an interval, and the curve itself.

    Guarantee: costs nothing beyond its release. Assumes: independent rows; it is the area of the score in its bins,
    ties counted half.
    """

    __slots__ = ()

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase("regression.title_auc", score=self.score, outcome=self.outcome)

    def fit(self, confidence: Exact = Fraction(19, 20)) -> AucFit:
        """The area, its standard error and its limits."""
        return fit_auc(self.events, self.others, self.variance, z=_z(confidence), kurtosis=self.kurtosis)

    @property
    def auc(self) -> float:
        """The area."""
        return float(self.fit().area)

    @property
    def standard_error(self) -> float:
        """Sampling and noise together."""
        return float(self.fit().standard_error)

    def interval(self, confidence: Exact = Fraction(19, 20)) -> tuple[float, float]:
        """Low and high of the area."""
        fit = self.fit(confidence)
        return float(fit.low), float(fit.high)

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The area, and the curve as it was released, with noise and not smoothed."""
        fit = self.fit(confidence)
        area: dict[str, Sequence[Cell]] = {
            "auc": [float(fit.area)],
            "standard_error": [float(fit.standard_error)],
            "low": [float(fit.low)],
            "high": [float(fit.high)],
            "events": [float(self.events.sum())],
            "others": [float(self.others.sum())],
        }
        x, y = self._curve()
        curve: dict[str, Sequence[Cell]] = {
            "score_from": [float(edge) for edge in self.edges[:-1]],
            "false_positive_rate": x,
            "true_positive_rate": y,
        }
        return ResultTable(name="auc", columns=area), ResultTable(name="curve", columns=curve)

    def _curve(self) -> tuple[list[float], list[float]]:
        """Rates of a positive at or above each lower edge."""
        rates = []
        for counts in (self.others, self.events):
            total = counts.sum()
            above = np.cumsum(counts[::-1])[::-1]
            rates.append([float(each) for each in above / total] if total > 0 else [nan] * len(counts))
        return rates[0], rates[1]

    @property
    def notes(self) -> tuple[Word, ...]:
        """What it is the area of."""
        return (Phrase("regression.population"), phrase("regression.binned", bins=str(len(self.events))))

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """The curve, held to what a curve can be for the drawing alone."""
        del confidence
        x, y = self._curve()
        if not self.events.sum() > 0 or not self.others.sum() > 0:
            return None
        pairs = zip(
            np.maximum.accumulate(np.clip(x[::-1], 0, 1)), np.maximum.accumulate(np.clip(y[::-1], 0, 1)), strict=True
        )
        rows = [PictureRow(at=float(left), value=float(up)) for left, up in ((0.0, 0.0), *pairs)]
        return Picture(
            kind="lines",
            rows=rows,
            title=self.title,
            across=Phrase("regression.false_positives"),
            upward=Phrase("regression.true_positives"),
            within=(0.0, 1.0),
        )


class CalibrationResult(ScoredCounts):
    """The share of events in each bin of a score, with intervals.

    Guarantee: costs nothing beyond its release. Assumes: independent rows.
    """

    __slots__ = ()

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase("regression.title_calibration", score=self.score, outcome=self.outcome)

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """A row for each bin; ``observed`` is ``nan`` where the noisy number of rows is not positive."""
        level = float(probability(confidence, "confidence"))
        low, high = proportion_ends(self.events, self.others, self.variance, level=level, kurtosis=self.kurtosis)
        numbers = self.events + self.others
        with np.errstate(divide="ignore", invalid="ignore"):
            observed = np.where(numbers > 0, np.clip(self.events / numbers, 0, 1), nan)
        columns: dict[str, Sequence[Cell]] = {
            "score_from": [float(edge) for edge in self.edges[:-1]],
            "score_to": [float(edge) for edge in self.edges[1:]],
            "rows": [float(each) for each in numbers],
            "observed": [float(each) for each in observed],
            "low": [float(each) for each in low],
            "high": [float(each) for each in high],
        }
        return (ResultTable(name="calibration", columns=columns),)

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the intervals are of."""
        return (Phrase("regression.population"), Phrase("regression.each_bin"))

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """Observed shares at the middles of the bins, with their intervals."""
        table = self.tables(confidence)[0].columns
        rows = [
            PictureRow(at=float((start + end) / 2), value=float(str(value)), low=float(str(low)), high=float(str(high)))
            for start, end, value, low, high in zip(
                self.edges, self.edges[1:], table["observed"], table["low"], table["high"], strict=False
            )
            if value == value
        ]
        percent = f"{100 * float(probability(confidence, 'confidence')):g}"
        return Picture(
            kind="lines",
            rows=rows,
            title=self.title,
            across=Phrase("regression.score"),
            upward=Phrase("regression.observed"),
            lines=(phrase("study.covers", percent=percent),),
            within=(0.0, 1.0),
        )
