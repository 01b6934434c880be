"""Populations with numeric covariates, and how often intervals from spread counts hold their coefficients.

Everything that is simulated calls the functions that ship; only the rows and the noise are made here.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.regression.design import BoundedNumber, CodedFactor, Design
from sfumato.studies.regression.fieller import fieller_limits
from sfumato.studies.regression.result import excess_of, heavier, strayed
from sfumato.studies.regression.spline_fit import (
    ScoreModel,
    ScoreTerms,
    SplineDesign,
    SplineFit,
    fit_splines,
    furthest_shift,
    linear,
)
from sfumato.studies.regression.spline_fit import logistic as logistic_family
from sfumato.studies.regression.spline_fit import poisson as poisson_family
from sfumato.studies.regression.splines import OUTCOME, STEPS, UNIT, SplineBasis
from tests.studies.simulated_regressions import CHUNK, Seen, Z, _together

Array = NDArray[np.float64]
HIGH = 25.0
SHIFTED = 20  # runs of which the error of splines is worked out; it hardly differs between runs


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A model with numbers and the factor sex, coefficients of the coded columns, and how the numbers are spread."""

    truth: tuple[float, ...]
    numbers: int = 1
    pieces: int = 8
    shape: str = "even"

    @property
    def made(self) -> SplineDesign:
        numbers = tuple(
            BoundedNumber(name=f"x{place}", low=Fraction(-1), high=Fraction(1)) for place in range(self.numbers)
        )
        return SplineDesign(
            design=Design(
                outcome=BoundedNumber(name="y", low=Fraction(0), high=Fraction(1)),
                numbers=numbers,
                factors=(CodedFactor(name="sex", levels=("F", "M")),),
                terms=((), *((each.name,) for each in numbers), ("sex",)),
            ),
            bases=(SplineBasis(pieces=self.pieces),) * self.numbers,
        )

    def rows(self, runs: int, rows: int, rng: np.random.Generator) -> tuple[list[Array], NDArray[np.int64]]:
        """The numbers, and the sex, of each row."""
        match self.shape:
            case "even":
                found = [rng.uniform(-1, 1, (runs, rows)) for _ in range(self.numbers)]
            case "whole":  # few values, as of a count
                found = [rng.integers(0, 14, (runs, rows)) / 6.5 - 1 for _ in range(self.numbers)]
            case _:
                found = [np.clip(rng.gamma(2.0, 0.25, (runs, rows)) - 1, -1, 1) for _ in range(self.numbers)]
        return found, rng.integers(0, 2, (runs, rows))


def spread(made: SplineDesign, numbers: list[Array], sex: NDArray[np.int64], parts: list[Array]) -> Array:
    """Counts of rows by part of the outcome, sex and splines, as the vault adds them up."""
    runs = sex.shape[0]
    shape = (runs, len(parts), 2, *(basis.size for basis in made.bases))
    found = np.zeros(int(np.prod(shape)))
    tables = [basis.table for basis in made.bases]
    places = [np.rint((number + 1) / 2 * STEPS).astype(np.int64) for number in numbers]
    strides = np.cumprod([1, *reversed(shape[1:])])[::-1]
    for part, weight in enumerate(parts):
        base = np.arange(runs)[:, None] * strides[0] + part * strides[1] + sex * strides[2]
        for choice in product(*(range(basis.degree + 1) for basis in made.bases)):
            at, amount = base, weight
            for number, local in enumerate(choice):
                at = at + (tables[number].first[places[number]] + local) * strides[3 + number]
                amount = amount * (tables[number].weights[places[number], local] / UNIT)
            found += np.bincount(at.ravel(), np.broadcast_to(amount, at.shape).ravel(), len(found))
    return found.reshape(runs, len(parts), 2, -1)


def outcome_parts(way: Array) -> list[Array]:
    """An outcome t of the way between its bounds, over its three splines."""
    basis = SplineBasis(pieces=1, degree=OUTCOME)
    weights = basis.table.weights[np.rint(way * STEPS).astype(np.int64)] / UNIT
    return [weights[..., part] for part in range(3)]


Drawn = Callable[[Array, list[Array], np.random.Generator], list[Array]]
"""From linear predictors and numbers to the parts of the outcome."""


def coverage(
    setting: Setting, family: ScoreModel, drawn: Drawn, *, runs: int, rows: int, epsilon: float, seed: int = 1
) -> Seen:
    """How often 95% intervals hold the coefficients, under Laplace noise; and those that forget it."""
    rng, made, truth = np.random.default_rng(seed), setting.made, np.array(setting.truth)
    seen, variance = [], 2 / epsilon**2
    some = max(1, CHUNK // (rows * 4**setting.numbers))
    for start in range(0, runs, some):
        now = min(some, runs - start)
        numbers, sex = setting.rows(now, rows, rng)
        means = truth[0] + sum(weight * each for weight, each in zip(truth[1:], numbers, strict=False))
        parts = drawn(means + truth[-1] * (2 * sex - 1), numbers, rng)
        exact = spread(made, numbers, sex, parts)
        counts = exact + rng.laplace(0, 1 / epsilon, exact.shape)
        fit, without = (fit_splines(made, family, counts, each) for each in (variance, 0.0))
        total = np.einsum("...ii->...i", fit.covariance)
        away = _shift(setting, family, fit, counts) / np.sqrt(np.where(total > 0, total, 1.0))
        reach = heavier(strayed(0.95, away), excess_of(fit.weights, variance, total, 3.0))
        low, high = fieller_limits(fit.estimates, total, fit.doubt, fit.leaning, reach)
        finite = fit.definite[:, None] & np.isfinite(high - low)
        away = np.abs(fit.estimates - truth)
        naive = away <= Z * np.sqrt(np.maximum(np.einsum("...ii->...i", without.covariance), 0.0))
        seen.append((finite, (low <= truth) & (truth <= high), naive & fit.definite[:, None]))
    return _together(runs, seen)


def _shift(setting: Setting, family: ScoreModel, fit: SplineFit, counts: Array) -> Array:
    """What splines cannot follow, in coefficients: the median of some runs, for all of them."""
    found = []
    for run in np.flatnonzero(fit.definite)[:SHIFTED]:
        held: dict[str, Any] = {each.name: getattr(fit, each.name)[run] for each in fields(fit)}
        one = SplineFit(**held)
        found.append(np.abs(one.inverse) @ furthest_shift(setting.made, family, one, counts[run]))
    return np.median(found, axis=0) if found else np.zeros(len(setting.truth))


def logistic_splines(setting: Setting, **asked: float) -> Seen:
    """An outcome with or without the event."""

    def drawn(linear: Array, numbers: list[Array], rng: np.random.Generator) -> list[Array]:
        event = (rng.random(linear.shape) < 1 / (1 + np.exp(-linear))).astype(float)
        return [event, 1 - event]

    return coverage(setting, logistic_family(), drawn, **asked)  # type: ignore[arg-type]


def poisson_splines(setting: Setting, *, spread_out: bool = False, **asked: float) -> Seen:
    """Counts; with ``spread_out`` their variance is larger than their mean."""

    def drawn(linear: Array, numbers: list[Array], rng: np.random.Generator) -> list[Array]:
        mean = np.exp(linear) * (rng.gamma(4, 0.25, linear.shape) if spread_out else 1.0)
        return outcome_parts(np.minimum(rng.poisson(mean), HIGH) / HIGH)

    return coverage(setting, poisson_family(0.0, HIGH), drawn, **asked)  # type: ignore[arg-type]


def _uneven(linear: Array, numbers: list[Array], rng: np.random.Generator) -> list[Array]:
    """An outcome from −1 to 1 whose spread grows with the square of the first number."""
    width = 0.05 + 0.3 * numbers[0] ** 2
    return outcome_parts((linear + width * rng.uniform(-1, 1, linear.shape) + 1) / 2)


def robust_splines(setting: Setting, **asked: float) -> Seen:
    """Robust standard errors of a linear regression whose residuals vary more in some places than in others."""
    return coverage(setting, linear(), _uneven, **asked)  # type: ignore[arg-type]


def one_variance(setting: Setting, **asked: float) -> float:
    """The same with standard errors from one variance of all residuals: what a plain linear regression assumes."""
    even = linear()

    def pooled(predicted: Array) -> ScoreTerms:
        at = even.terms(predicted)
        # The mean square of the residuals in place of each: known here, as the numbers fill their range evenly.
        square = np.full_like(at.square, (0.05**2 + 2 * 0.05 * 0.3 / 3 + 0.3**2 / 5) / 3)
        return ScoreTerms(at.score, at.slope, square)

    return coverage(setting, replace(even, terms=pooled, measured=False), _uneven, **asked).covered  # type: ignore[arg-type]
