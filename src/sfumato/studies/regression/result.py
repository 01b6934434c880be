"""The result of a regression: coefficients with standard errors, tests and intervals, on the scale of the columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, isfinite, nan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import Listed, Phrase, Word, phrase
from sfumato.core.exact import Exact, decimal_up, probability
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release
from sfumato.studies.regression.fieller import fieller_limits, fieller_ratio
from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = ["ModelKind", "RegressionResult", "excess_of", "heavier", "lighter", "strayed"]

ModelKind = Literal["linear", "logistic", "poisson"]
RATIOS = {"logistic": "odds_ratio", "poisson": "rate_ratio"}
INTERCEPT = "Intercept"
NOISY = 0.5  # from this share of noise on intervals are wider than need be
CLOSE = 6.0  # below this many deviations of its noise, the information on a coefficient makes its interval wider
ESTIMATED = 0.95  # where an interval at this level has no end there is no estimate
SHIFTED = 0.1  # from this share of a standard error on it is said how much splines widen the intervals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RegressionResult(StudyResult):
    """Coefficients of a linear, logistic or Poisson regression.

    Guarantee: costs nothing beyond the release that it was computed from. Standard errors hold sampling and privacy
    noise; where the noise is as large as what was measured there are none, and every interval is (−∞, ∞). Assumes: rows
    are independent, and what its notes state. Proof: docs/proofs/regression.md
    """

    release: Release
    model: ModelKind
    outcome: str
    names: tuple[str, ...]
    references: tuple[tuple[str, str], ...]
    """Factors, each with the level that the others are compared with."""
    estimates: NDArray[np.float64]
    covariance: NDArray[np.float64] | None
    """None where there are no standard errors."""
    rows: float
    free: float
    """Degrees of freedom of the tests; ``inf`` for a normal distribution."""
    noise: NDArray[np.float64]
    """Which part of the variance of each coefficient the privacy noise is."""
    excess: NDArray[np.float64]
    """The excess kurtosis of each coefficient: Laplace noise has heavier tails than a normal distribution."""
    doubt: NDArray[np.float64]
    """The variance of the noise in the information on each coefficient, over the square of that information."""
    leaning: NDArray[np.float64]
    """The covariance of that noise with the noise of the coefficient."""
    residual_deviation: float | None = None
    clipped: tuple[str, ...] = ()
    """Columns whose values were held to declared bounds."""
    splines: int = 0
    """Over how many splines each number was spread; 0 where none was."""
    shift: NDArray[np.float64] | None = None
    """How far each estimate may be off because splines cannot follow the model exactly: intervals allow for it."""
    robust: bool = False
    """Whether the variance of the residuals was measured, so that it may depend on the covariates."""

    @property
    def sources(self) -> tuple[Release, ...]:
        """The one release."""
        return (self.release,)

    @property
    def coefficients(self) -> dict[str, float]:
        """The estimates by name; ``nan`` where there are none."""
        return dict(zip(self.names, map(float, self._shown), strict=True))

    @property
    def standard_errors(self) -> dict[str, float]:
        """The standard errors by name; ``nan`` where there are none."""
        return dict(zip(self.names, map(float, self._errors), strict=True))

    @property
    def _shown(self) -> NDArray[np.float64]:
        return np.where(self._known, self.estimates, nan)

    @property
    def _errors(self) -> NDArray[np.float64]:
        return np.where(self._known, np.sqrt(self._total), nan)

    @property
    def _total(self) -> NDArray[np.float64]:
        if self.covariance is None:
            return np.zeros(len(self.names))
        return np.asarray(np.maximum(np.diagonal(self.covariance), 0.0))

    @property
    def _known(self) -> NDArray[np.bool_]:
        """Which coefficients have an estimate: those whose interval has ends."""
        if self.covariance is None:
            return np.zeros(len(self.names), dtype=bool)
        return np.asarray(self._reach(ESTIMATED) ** 2 * self.doubt < 1)

    @property
    def _shifts(self) -> NDArray[np.float64]:
        """How far splines may have shifted each estimate, in standard errors."""
        if self.shift is None:
            return np.zeros(len(self.names))
        return np.asarray(self.shift / np.sqrt(np.where(self._total > 0, self._total, 1.0)))

    def _reach(self, level: float) -> NDArray[np.float64]:
        """Within how many standard errors of an estimate values are kept."""
        return heavier(strayed(level, self._shifts, self.free), self.excess)

    def interval(self, confidence: Exact = Fraction(19, 20)) -> dict[str, tuple[float, float]]:
        """Low and high of each coefficient, by name."""
        level = float(probability(confidence, "confidence"))
        if self.covariance is None:
            return dict.fromkeys(self.names, (-inf, inf))
        ends = fieller_limits(self.estimates, self._total, self.doubt, self.leaning, self._reach(level))
        return {name: (float(low), float(high)) for name, low, high in zip(self.names, *ends, strict=True)}

    @property
    def p_values(self) -> dict[str, float]:
        """For each coefficient the p-value of the test that it is 0; ``nan`` where there is no standard error."""
        return dict(zip(self.names, self._p, strict=True))

    @property
    def _p(self) -> list[float]:
        from scipy import stats

        law = stats.t(self.free) if isfinite(self.free) else stats.norm
        z, away = lighter(np.abs(self._z), self.excess), self._shifts
        return [float(each) for each in law.sf(z - away) + law.sf(z + away)]

    @property
    def _z(self) -> NDArray[np.float64]:
        """Estimates in the standard errors that they have where the coefficient is 0."""
        shown = self._shown
        return np.asarray(np.sign(shown) * fieller_ratio(-shown, self._total, self.doubt, self.leaning))

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase(f"regression.title_{self.model}", outcome=self.outcome)

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """One table, a row for each coefficient."""
        ends = self.interval(confidence)
        columns: dict[str, Sequence[Cell]] = {
            "term": list(self.names),
            "coefficient": [float(each) for each in self._shown],
            "standard_error": [float(each) for each in self._errors],
            "z": [float(each) for each in self._z],
            "p": self._p,
            "low": [low for low, _ in ends.values()],
            "high": [high for _, high in ends.values()],
        }
        if self.model in RATIOS:
            # The exponential of an intercept compares nothing: a note says what it is.
            compared = [nan if name == INTERCEPT else 1.0 for name in self.names]
            shown = zip(compared, self._shown, ends.values(), strict=True)
            ratios = [[of * _ratio(float(each)) for each in (one, low, high)] for of, one, (low, high) in shown]
            for place, name in enumerate((RATIOS[self.model], "ratio_low", "ratio_high")):
                columns[name] = [each[place] for each in ratios]
        return (ResultTable(name="coefficients", columns=columns),)

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """The outcome, the rows, the method, what it cost."""
        said = self.release.statement
        spent = f"ε = {decimal_up(said.spend.epsilon)}"
        if said.spend.delta:
            spent += f", δ = {decimal_up(said.spend.delta)}"
        found: list[tuple[Word, Word]] = [
            (Phrase("regression.outcome"), self.outcome),
            (Phrase("regression.rows"), f"{round(self.rows):,}"),
            (Phrase("regression.method"), Phrase(f"regression.method_{self._method}")),
            (Phrase("regression.spent"), spent),
        ]
        if self.residual_deviation is not None and self.covariance is not None:
            found.append((Phrase("regression.residual"), f"{self.residual_deviation:.4g}"))
        return tuple(found)

    @property
    def _method(self) -> str:
        return "robust" if self.robust else "splines" if self.splines else self.model

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the coefficients are of, and where they say nothing."""
        return tuple(self._noted())

    def _noted(self) -> Iterator[Word]:
        known = self._known
        if not known.any():
            yield Phrase("regression.no_interval")
        elif not known.all():
            yield phrase("regression.open", terms=Listed(tuple(np.array(self.names)[~known])))
        yield Phrase("regression.population")
        if self.clipped:
            yield phrase("regression.clipped", columns=Listed(self.clipped))
        yield Phrase("regression.complete")
        if self.references:
            levels = tuple(phrase("regression.reference", factor=name, level=level) for name, level in self.references)
            yield phrase("regression.references", levels=Listed(levels))
        yield Phrase(f"regression.assumes_{'robust' if self.robust else self.model}")
        if self.splines:
            yield phrase("regression.spread", splines=str(self.splines))
        if not known.any():
            return
        if self.model in RATIOS and INTERCEPT in self.names and known[self.names.index(INTERCEPT)]:
            value = f"{_ratio(self.coefficients[INTERCEPT]):.3g}"
            yield phrase(f"regression.{'odds' if self.model == 'logistic' else 'rate'}", value=value)
        if self.splines and self.model != "logistic":
            yield Phrase("regression.conservative")
        if float(np.max(self._shifts[known])) > SHIFTED:
            yield phrase("regression.shifted", share=f"{float(np.max(self._shifts[known])):.2g}")
        if float(np.max(self.noise[known])) > NOISY:
            yield phrase("regression.noisy", percent=f"{100 * float(np.max(self.noise[known])):.0f}")
        near = 1 / np.sqrt(np.maximum(self.doubt, 1e-12))
        if float(np.min(near[known])) < CLOSE:
            yield phrase("regression.close", ratio=f"{float(np.min(near[known])):.1f}")

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """A forest plot of all coefficients but the intercept; ratios on a logarithmic axis."""
        known = dict(zip(self.names, self._known, strict=True))
        if not any(held for name, held in known.items() if name != INTERCEPT):
            return None
        ratio = self.model in RATIOS
        shown = [
            PictureRow(
                at=name,
                value=_ratio(value) if ratio else value,
                low=_ratio(low) if ratio else low,
                high=_ratio(high) if ratio else high,
            )
            for (name, value), (low, high) in zip(
                self.coefficients.items(), self.interval(confidence).values(), strict=True
            )
            if name != INTERCEPT and known[name]
        ]
        percent = f"{100 * float(probability(confidence, 'confidence')):g}"
        return Picture(
            kind="forest",
            rows=shown,
            title=self.title,
            across=Phrase(f"regression.across_{self.model}"),
            lines=(phrase("study.covers", percent=percent),),
            reference=1.0 if ratio else 0.0,
            log=ratio,
        )


def strayed(level: float, shifts: NDArray[np.float64], free: float = inf) -> NDArray[np.float64]:
    """Within how many standard errors an estimate lies with this probability, whichever way it is shifted.

    ``shifts`` is how far it may be shifted, in standard errors; ``free`` are the degrees of freedom.

    >>> [round(float(each), 2) for each in strayed(0.95, np.array([0.0, 0.5, 2.0]))]
    [1.96, 2.18, 3.64]
    """
    from scipy import stats

    law = stats.t(free) if isfinite(free) else stats.norm
    central = float(law.ppf((1 + level) / 2))
    low, high = np.full(shifts.shape, central), central + shifts
    for _ in range(60):
        middle = (low + high) / 2
        enough = law.cdf(middle - shifts) - law.cdf(-middle - shifts) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def heavier(z: float | NDArray[np.float64], excess: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quantile of a distribution with this excess kurtosis from that of one without (Cornish and Fisher).

    Never below it, and for Laplace noise alone above its own: 2.17 where that has 2.12.

    >>> [round(float(each), 2) for each in heavier(1.96, np.array([0.0, 3.0]))]
    [1.96, 2.17]
    """
    return np.asarray(z * (1 + excess * np.maximum(z * z - 3, 0.0) / 24))


def lighter(given: NDArray[np.float64], excess: NDArray[np.float64]) -> NDArray[np.float64]:
    """What :func:`heavier` makes of it is what is given: so that p-values and intervals agree."""
    low, high = np.zeros_like(given), np.where(np.isnan(given), 0.0, np.minimum(given, 1e6))
    for _ in range(80):
        middle = (low + high) / 2
        above = middle * (1 + excess * np.maximum(middle * middle - 3, 0.0) / 24) > given
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(np.isnan(given), nan, low)


def excess_of(
    weights: NDArray[np.float64], variance: float, total: NDArray[np.float64], kurtosis: float
) -> NDArray[np.float64]:
    """The excess kurtosis of sums of noises with these weights, beside sampling error that has none.

    ``variance`` and ``kurtosis`` are those of each noise, ``total`` the variance of each sum with sampling error.
    """
    fourth = kurtosis * variance**2 * np.sum(weights**4, axis=-1)
    return np.asarray(fourth / np.where(total > 0, total, 1.0) ** 2)


def _ratio(coefficient: float) -> float:
    """The exponential, which is infinite where a number has no room for it."""
    return inf if coefficient > 700 else exp(coefficient)
