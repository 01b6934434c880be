"""Synthetic rows compared with data: figures of a release that was asked for by itself and charged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import OneLine, Phrase, Word
from sfumato.core.document_page import PageGrid
from sfumato.core.exact import Exact, confidence_level, decimal_up
from sfumato.core.release import Release
from sfumato.studies.draws import seeded_by
from sfumato.studies.regression.scores import AucFit, fit_auc
from sfumato.studies.result import Cell, ResultTable, StudyResult
from sfumato.synthesis.distances import Distance, distances_of
from sfumato.synthesis.measured import MeasuredTable

__all__ = ["ScoredTest", "SyntheticComparison"]

MOST_SHOWN = 30
CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredTest:
    """Noisy counts of the data, with the event and without, in rising bins of a score trained on synthetic rows."""

    outcome: str
    events: NDArray[np.float64]
    others: NDArray[np.float64]
    sigma: float
    own: tuple[NDArray[np.float64], NDArray[np.float64]]
    """The same of the synthetic rows themselves, exact."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SyntheticComparison(StudyResult):
    """How far tables of synthetic rows are from those of the data, and how well a model trained on the rows does.

    Guarantee: one ordinary question, charged and certified by itself; all figures are functions of its release and of
    the synthetic rows, which are public. Intervals of distances hold for the noise whatever the tables are; that of the
    area under the curve holds for sampling and noise. Assumes: rows are independent. Proof: docs/proofs/synthesis.md
    """

    release: Release
    names: tuple[str, ...]
    measured: tuple[MeasuredTable, ...]
    """The noisy tables of the data, in rows."""
    shares: tuple[NDArray[np.float64], ...]
    """The share of synthetic rows in each cell of each of them."""
    total: float
    total_error: float
    gaussian: bool
    kurtosis: float
    test: ScoredTest | None = None

    @property
    def sources(self) -> tuple[Release, ...]:
        """The one release."""
        return (self.release,)

    @property
    def title(self) -> Word:
        """What was compared."""
        return Phrase("comparison_of_rows.title", {"data": OneLine(self.release.statement.dataset.name)})

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """What it cost, and how many tables there are."""
        found: list[tuple[Word, Word]] = [(Phrase("comparison_of_rows.term_spent"), self._spent)]
        if self.measured:
            found.append((Phrase("comparison_of_rows.term_tables"), f"{len(self.measured):,}"))
        if self.test is not None:
            found.append((Phrase("comparison_of_rows.term_outcome"), OneLine(self.test.outcome)))
        return tuple(found)

    @property
    def _spent(self) -> str:
        spend = self.release.statement.spend
        return f"ε = {decimal_up(spend.epsilon)}" + (f", δ = {decimal_up(spend.delta)}" if spend.delta else "")

    def distances(self, confidence: Exact = CONFIDENCE) -> Mapping[tuple[str, ...], tuple[Distance, Distance]]:
        """Total variation and Jensen–Shannon divergence in bits, of each table by its columns."""
        random, level = seeded_by(self.release)(), float(confidence_level(confidence))
        return {
            tuple(self.names[place] for place in table.columns): distances_of(
                table.counts.ravel(),
                table.sigma,
                self.total,
                self.total_error,
                shares,
                gaussian=self.gaussian,
                confidence=level,
                random=random,
            )
            for table, shares in zip(self.measured, self.shares, strict=True)
        }

    def fit(self, confidence: Exact = CONFIDENCE) -> AucFit | None:
        """The area under the curve on the data of a model that was trained on the rows; None without an outcome."""
        if self.test is None:
            return None
        from scipy.stats import norm

        z = float(norm.isf((1 - float(confidence_level(confidence))) / 2))
        return fit_auc(self.test.events, self.test.others, self.test.sigma**2, z=z, kurtosis=self.kurtosis)

    @property
    def auc(self) -> float:
        """That area; ``nan`` without an outcome, or where noise leaves nothing."""
        found = self.fit()
        return nan if found is None else float(found.area)

    def interval(self, confidence: Exact = CONFIDENCE) -> tuple[float, float]:
        """Low and high of that area."""
        found = self.fit(confidence)
        return (0.0, 1.0) if found is None else (float(found.low), float(found.high))

    @property
    def own_auc(self) -> float:
        """The same on the synthetic rows themselves, in the same bins."""
        if self.test is None:
            return nan
        events, others = self.test.own
        below = np.cumsum(others) - others / 2
        return float(events @ below / max(events.sum() * others.sum(), 1.0))

    def tables(self, confidence: Exact = CONFIDENCE) -> tuple[ResultTable, ...]:
        """The distances of each table, the largest first, and the area under the curve."""
        found = []
        if self.measured:
            ordered = _ordered(self.distances(confidence))
            columns: dict[str, Sequence[Cell]] = {"table": [" × ".join(names) for names, _ in ordered]}
            for place, name in enumerate(("total_variation", "jensen_shannon")):
                columns[name] = [both[place].value for _, both in ordered]
                columns[f"{name}_low"] = [both[place].low for _, both in ordered]
                columns[f"{name}_high"] = [both[place].high for _, both in ordered]
            found.append(ResultTable(name="divergences", columns=columns))
        fit = self.fit(confidence)
        if fit is not None:
            area: dict[str, Sequence[Cell]] = {
                "auc": [float(fit.area)],
                "standard_error": [float(fit.standard_error)],
                "low": [float(fit.low)],
                "high": [float(fit.high)],
            }
            found.append(ResultTable(name="auc", columns=area))
        return tuple(found)

    def findings(self, confidence: Exact = CONFIDENCE) -> tuple[Word, ...]:
        """What was found, in words; at 95%."""
        del confidence
        return tuple(self._said())

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the intervals are of."""
        found: list[Word] = [Phrase("comparison_of_rows.interval")] if self.measured else []
        return (*found, Phrase("comparison_of_rows.held_out")) if self.test is not None else tuple(found)

    def _said(self) -> list[Word]:
        found: list[Word] = []
        if self.measured:
            known = self.distances()
            (worst, (variation, _)), *_ = _ordered(known)
            facts: dict[str, Word] = {
                "value": f"{variation.value:.4f}",
                "low": f"{variation.low:.4f}",
                "high": f"{variation.high:.4f}",
                "name": OneLine(" × ".join(worst)),
            }
            means = [[both[0].value for names, both in known.items() if len(names) == number] for number in (1, 2)]
            mean: dict[str, Word] = {"value": f"{np.mean(means[0]):.4f}"}
            if means[1]:
                mean["two"] = f"{np.mean(means[1]):.4f}"
            found.append(Phrase("comparison_of_rows.mean" if means[1] else "comparison_of_rows.mean_one", mean))
            found.append(Phrase("comparison_of_rows.worst", facts))
        fit = self.fit()
        if fit is not None and self.test is not None:
            told: dict[str, Word] = {"outcome": OneLine(self.test.outcome)}
            if np.isnan(fit.area):
                found.append(Phrase("comparison_of_rows.auc_none", told))
            else:
                told |= {
                    "value": f"{float(fit.area):.3f}",
                    "low": f"{float(fit.low):.3f}",
                    "high": f"{float(fit.high):.3f}",
                    "own": f"{self.own_auc:.3f}",
                }
                found.append(Phrase("comparison_of_rows.auc", told))
        return found

    def blocks(self) -> tuple[Word | PageGrid, ...]:
        """What a quality page shows of it."""
        found: list[Word | PageGrid] = [Phrase("comparison_of_rows.cost", {"spend": self._spent})]
        if self.measured:
            found.insert(0, Phrase("comparison_of_rows.asked", {"tables": f"{len(self.measured):,}"}))
        found += [*self._said(), *self.notes]
        if self.measured:
            ordered = _ordered(self.distances())
            heads = (("table", False), ("variation", True), ("real_divergence", True))
            found.append(
                PageGrid(
                    heads=tuple((Phrase(f"quality.head_{head}"), number) for head, number in heads),
                    rows=tuple(
                        (OneLine(" × ".join(names)), *(_ends(each) for each in both))
                        for names, both in ordered[:MOST_SHOWN]
                    ),
                )
            )
            if len(ordered) > MOST_SHOWN:
                left: dict[str, Word] = {"shown": str(MOST_SHOWN), "all": f"{len(ordered):,}"}
                found.append(Phrase("comparison_of_rows.tables_left", left))
        return tuple(found)


def _ends(found: Distance) -> str:
    return f"{found.value:.4f} ({found.low:.4f} – {found.high:.4f})"


def _ordered(
    known: Mapping[tuple[str, ...], tuple[Distance, Distance]],
) -> list[tuple[tuple[str, ...], tuple[Distance, Distance]]]:
    return sorted(known.items(), key=lambda each: -each[1][0].value)
