"""Populations with known coefficients, and how often the intervals of regressions cover them: noise as the gate draws.

Everything that is simulated calls the functions that ship; only the rows and the noise are made here.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import nan

import numpy as np
from numpy.typing import NDArray

from sfumato.core.noise_multiplier import exact_multiplier
from sfumato.studies.regression.cells import CellFit, cell_matrix, fit_logistic, fit_poisson
from sfumato.studies.regression.design import BoundedNumber, CodedFactor, ColumnProduct, Design, product_table
from sfumato.studies.regression.fieller import fieller_limits
from sfumato.studies.regression.linear import LinearFit, fit_linear
from sfumato.studies.regression.result import excess_of, heavier
from sfumato.studies.regression.scores import fit_auc, proportion_ends

Z = 1.959964
CHUNK = 500_000  # rows at once


def close_design() -> Design:
    """An outcome on two numbers, which samples of :func:`sums_of` make close to each other."""
    names = ("age", "years ill", "sbp")
    age, ill, sbp = (BoundedNumber(name=name, low=Fraction(0), high=Fraction(100)) for name in names)
    return Design(outcome=sbp, numbers=(age, ill), factors=(), terms=((), ("age",), ("years ill",)))


def design(*, wards: int = 0) -> Design:
    """An outcome on age and sex, and on wards where there are any."""
    age = BoundedNumber(name="age", low=Fraction(0), high=Fraction(100))
    sbp = BoundedNumber(name="sbp", low=Fraction(80), high=Fraction(200))
    factors = [CodedFactor(name="sex", levels=("F", "M"))]
    terms: list[tuple[str, ...]] = [(), ("age",), ("sex",)]
    if wards:
        factors.append(CodedFactor(name="ward", levels=tuple("ABCDEFGH"[:wards])))
        terms.append(("ward",))
    return Design(outcome=sbp, numbers=(age,), factors=tuple(factors), terms=tuple(terms))


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a simulation saw, for the coefficient that did worst."""

    runs: int
    finite: float
    """The share of runs with a finite interval."""
    covered: float
    """The share of runs whose interval held the coefficient, an infinite one included."""
    covered_finite: float
    naive: float
    """The same where the noise is left out of the standard error."""


def truth(made: Design) -> NDArray[np.float64]:
    """Coefficients of the coded columns; those of close numbers are opposite."""
    if len(made.numbers) > 1:
        return np.array([0.0, 0.9, -0.8])
    found = np.zeros(len(made.names))
    found[:3] = -0.15, 0.35, 0.1
    if len(found) > 3:
        found[3:] = np.linspace(-0.05, 0.05, len(found) - 3)
    return found


def sums_of(
    made: Design, runs: int, rows: int, rng: np.random.Generator, correlation: float = 0.0
) -> NDArray[np.float64]:
    """Exact sums of all products in many samples of one population."""
    codes = {each.name: rng.integers(0, len(each.levels), (runs, rows)) for each in made.factors}
    if len(made.numbers) > 1:
        one, two = rng.normal(size=(2, runs, rows))
        other = correlation * one + (1 - correlation**2) ** 0.5 * two
        held = {"age": np.clip(one / 3, -1, 1), "years ill": np.clip(other / 3, -1, 1)}
    else:
        held = {"age": rng.beta(4, 3, (runs, rows)) * 2 - 1}

    def column(each: ColumnProduct) -> NDArray[np.float64]:
        found = np.ones((runs, rows))
        for name, power in each.powers:
            found = found * held[name] ** power
        for name in each.signs:
            found = found * (2 * codes[name] - 1)
        for name, level in each.levels:
            found = found * (codes[name] == level)
        return found

    mean = sum(weight * column(each) for weight, each in zip(truth(made), made.columns, strict=True))
    held["sbp"] = mean + rng.uniform(-0.3, 0.3, (runs, rows))
    return np.stack([column(each).sum(axis=1) for each in product_table(made).products], axis=-1)


def noise_of(made: Design, shape: tuple[int, ...], epsilon: float, delta: float, rng: np.random.Generator) -> tuple:
    """Noise for rows that come or go, and its variance: Gaussian with a δ, Laplace without."""
    filled = sum(all(level == 1 for _, level in each.levels) for each in product_table(made).products)
    if delta:
        sigma = float(exact_multiplier(epsilon=epsilon, delta=delta)) * filled**0.5
        return rng.normal(0, sigma, shape), sigma**2
    return rng.laplace(0, filled / epsilon, shape), 2 * (filled / epsilon) ** 2


def linear_fits(
    made: Design, *, runs: int, rows: int, epsilon: float, delta: float, seed: int, correlation: float = 0.0
) -> list[tuple[LinearFit, NDArray[np.float64]]]:
    """Fits of many releases, a few at a time, each with its standard errors without the noise."""
    rng, found = np.random.default_rng(seed), []
    for start in range(0, runs, max(1, CHUNK // rows)):
        some = min(max(1, CHUNK // rows), runs - start)
        exact = sums_of(made, some, rows, rng, correlation)
        noise, variance = noise_of(made, exact.shape, epsilon, delta, rng)
        fit = fit_linear(made, exact + noise, variance)
        noiseless = fit_linear(made, exact + noise, 0.0)  # the noise forgotten: what plain software would say
        found.append((fit, np.sqrt(np.maximum(np.einsum("...ii->...i", noiseless.covariance), 0))))
    return found


def linear_coverage(
    made: Design, *, runs: int, rows: int, epsilon: float, delta: float, seed: int = 1, correlation: float = 0.0
) -> Seen:
    """How often 95% intervals hold the coefficients; ``correlation`` is that of two numbers."""
    seen, asked = [], {"runs": runs, "rows": rows, "seed": seed}
    for fit, without in linear_fits(made, epsilon=epsilon, delta=delta, correlation=correlation, **asked):
        variance = noise_of(made, (1,), epsilon, delta, np.random.default_rng(0))[1]
        finite, inside = _held(fit, truth(made), variance, 0.0 if delta else 3.0)
        seen.append((finite, inside, np.abs(fit.estimates - truth(made)) <= Z * without))
    return _together(runs, seen)


def _held(
    fit: LinearFit | CellFit, truth: NDArray[np.float64], variance: float, kurtosis: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which intervals have ends, and which of these hold the coefficient."""
    total = np.einsum("...ii->...i", fit.covariance)
    reach = heavier(Z, excess_of(fit.weights, variance, total, kurtosis))
    low, high = fieller_limits(fit.estimates, total, fit.doubt, fit.leaning, reach)
    return fit.definite[:, None] & np.isfinite(low), (low <= truth) & (truth <= high)


FACTORS = [("sex", ("F", "M")), ("ward", ("A", "B", "C"))]
MATRIX = cell_matrix(FACTORS, [(), ("sex",), ("ward",)]).rows
HIGH = 25.0


ALIKE = [place for place, row in enumerate(MATRIX) if row[1] == row[2]]  # of sex M are all on ward B, and only they


def _cells(runs: int, rows: int, values: int, rng: np.random.Generator, alike: float = 0.0) -> tuple:
    """Which cell each row is in, and a place in a flat array of runs × values × cells; ``alike`` shares are as said."""
    cell = rng.integers(0, len(MATRIX), (runs, rows))
    if alike:
        cell = np.where(rng.random(cell.shape) < alike, rng.choice(ALIKE, cell.shape), cell)
    return cell, np.arange(runs)[:, None] * (values * len(MATRIX)) + cell


def logistic_coverage(
    *, runs: int, rows: int, epsilon: float, base: float, seed: int = 1, alike: float = 0.0, opposite: float = 0.0
) -> Seen:
    """How often 95% intervals of a logistic regression hold the coefficients; Laplace noise on counts of cells."""
    rng, truth = np.random.default_rng(seed), np.array([base, 0.6 + opposite, 0.1 - opposite, -0.4])
    seen, variance = [], 2 / epsilon**2
    for start in range(0, runs, max(1, CHUNK // rows)):
        some = min(max(1, CHUNK // rows), runs - start)
        cell, at = _cells(some, rows, 2, rng, alike)
        event = rng.random((some, rows)) < (1 / (1 + np.exp(-MATRIX @ truth)))[cell]
        flat = np.bincount((at + len(MATRIX) * event).ravel(), minlength=some * 2 * len(MATRIX))
        counts = flat.reshape(some, 2, len(MATRIX)) + rng.laplace(0, 1 / epsilon, (some, 2, len(MATRIX)))
        fits = (fit_logistic(MATRIX, counts[:, 1], counts[:, 0], each) for each in (variance, 0.0))
        seen.append(_of_cells(*fits, truth, variance))
    return _together(runs, seen)


def poisson_coverage(*, runs: int, rows: int, epsilon: float, base: float, spread: bool, seed: int = 1) -> Seen:
    """The same for a Poisson regression; with ``spread`` the variance of the outcome is larger than its mean."""
    rng, truth = np.random.default_rng(seed), np.array([base, 0.3, 0.06, -0.18])
    seen, variance = [], 2 / epsilon**2
    for start in range(0, runs, max(1, CHUNK // rows)):
        some = min(max(1, CHUNK // rows), runs - start)
        cell, at = _cells(some, rows, 1, rng)
        mean = np.exp(MATRIX @ truth)[cell] * (rng.gamma(4, 0.25, (some, rows)) if spread else 1.0)
        way = np.minimum(rng.poisson(mean), HIGH) / HIGH
        bernstein = [(1 - way) ** 2, 2 * way * (1 - way), way**2]
        sums = [np.bincount(at.ravel(), each.ravel(), some * len(MATRIX)).reshape(some, -1) for each in bernstein]
        parts = np.stack(sums, axis=1) + rng.laplace(0, 1 / epsilon, (some, 3, len(MATRIX)))
        fits = (fit_poisson(MATRIX, parts, 0.0, HIGH, each) for each in (variance, 0.0))
        seen.append(_of_cells(*fits, truth, variance))
    return _together(runs, seen)


def _of_cells(fit: CellFit, without: CellFit, truth: NDArray[np.float64], variance: float) -> tuple:
    finite, inside = _held(fit, truth, variance, 3.0)
    naive = np.abs(without.estimates - truth) <= Z * np.sqrt(np.einsum("...ii->...i", without.covariance))
    return finite, inside, naive & without.definite[:, None]


def _together(runs: int, seen: list[tuple]) -> Seen:
    finite, inside, naive = (np.concatenate(each) for each in zip(*seen, strict=True))
    among = [float(inside[held, place].mean()) for place, held in enumerate(finite.T) if held.any()]
    return Seen(
        runs=runs,
        finite=float(finite.mean(axis=0).min()),
        covered=float(np.where(finite, inside, True).mean(axis=0).min()),
        covered_finite=min(among, default=nan),
        naive=float(naive.mean(axis=0).min()),
    )


def score_coverage(*, runs: int, rows: int, epsilon: float, events: float, apart: float, seed: int = 1) -> tuple:
    """How often 95% intervals hold the area under the curve, without the noise too, and the shares in ten bins."""
    from scipy import stats

    rng, edges = np.random.default_rng(seed), np.linspace(0, 1, 11)
    of_others, of_events = (np.diff(stats.beta.cdf(edges, shape, 4)) for shape in (2, 2 + apart))
    sign = np.sign(np.subtract.outer(np.arange(10), np.arange(10)))
    area = (of_events @ sign @ of_others + 1) / 2
    cells = np.concatenate([events * of_events, (1 - events) * of_others])
    counts = rng.multinomial(rows, cells, runs) + rng.laplace(0, 1 / epsilon, (runs, 20))
    held = []
    for variance in (2 / epsilon**2, 0.0):
        fit = fit_auc(counts[:, :10], counts[:, 10:], variance, z=Z, kurtosis=3.0)
        held.append(float(((fit.low <= area) & (area <= fit.high)).mean()))
    few = counts[: runs // 10]  # each has ten shares
    low, high = proportion_ends(few[:, :10], few[:, 10:], 2 / epsilon**2, level=0.95, kurtosis=3.0)
    shares = cells[:10] / (cells[:10] + cells[10:])
    return held[0], held[1], float(((low <= shares) & (shares <= high)).mean(axis=0).min())
