"""Logistic and Poisson regression from noisy counts of cells: score equations that noise leaves unbiased.

All covariates are groups, so a table of counts holds everything that the model needs. Counts are used as they were
released, negative ones too: clamping them would bias every coefficient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.regression.design import level_name

__all__ = ["CellFit", "CellMatrix", "cell_matrix", "fit_logistic", "fit_poisson"]

Parts = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], ...]]
"""From linear predictors of the cells: score, slope and sampling variance of each, how noise enters the score, and
how it enters the slope."""
UPWARD = 1.2816  # noise makes a variance too small in one of ten: raised by this many standard deviations of it
STEPS, CLOSE, FURTHEST, STRIDE = 60, 1e-9, 12.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellMatrix:
    """The columns of a regression in each cell of the product of its factors, in treatment coding."""

    names: tuple[str, ...]
    rows: NDArray[np.float64]
    """A row for each cell, the last factor running fastest; a column for each coefficient, the intercept first."""


def cell_matrix(factors: Sequence[tuple[str, Sequence[str]]], terms: Sequence[tuple[str, ...]]) -> CellMatrix:
    """The columns that terms over factors make; the first level of each is the reference.

    >>> cell_matrix([("sex", ("F", "M"))], [(), ("sex",)]).rows.tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    levels = dict(factors)
    cells = [dict(zip(levels, cell, strict=True)) for cell in product(*(range(len(held)) for held in levels.values()))]
    names, columns = [], []
    for term in terms:
        for chosen in product(*(range(1, len(levels[name])) for name in term)):
            met = dict(zip(term, chosen, strict=True))
            names.append(":".join(level_name(name, levels[name][level]) for name, level in met.items()) or "Intercept")
            columns.append([float(all(cell[name] == level for name, level in met.items())) for cell in cells])
    return CellMatrix(names=tuple(names), rows=np.array(columns).T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellFit:
    """One fit, or many at once: arrays whose last axes are coefficients.

    Where ``definite`` is false the equations have no solution that noise could not have made: none is found at all, or
    the matrix of their slopes has an eigenvalue that is not positive.
    """

    estimates: NDArray[np.float64]
    covariance: NDArray[np.float64]
    definite: NDArray[np.bool_]
    rows: NDArray[np.float64]
    noise: NDArray[np.float64]
    """Which part of the variance of each coefficient the privacy noise is."""
    weights: NDArray[np.float64]
    """How each coefficient depends on the noise of each number."""
    doubt: NDArray[np.float64]
    """The variance of the noise in the information on each coefficient, over the square of that information."""
    leaning: NDArray[np.float64]
    """How that noise goes together with the noise of the coefficient: their covariance."""


def fit_logistic(
    matrix: NDArray[np.float64], events: NDArray[np.float64], others: NDArray[np.float64], variance: float
) -> CellFit:
    """Coefficients of a logistic regression from noisy counts, in each cell, of rows with the event and without.

    ``variance`` is that of the noise of each count. At the true coefficients the score Σ x((1 − p)·events − p·others)
    has mean 0 whatever the noise; its variance is that of sampling, Σ xxᵀ n p(1 − p), and of noise, Σ xxᵀ v((1 − p)² +
    p²). Proof: docs/proofs/regression.md
    """
    numbers = events + others

    def parts(linear: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        p = 1 / (1 + np.exp(-linear))
        score = (1 - p) * events - p * others
        each = p * (1 - p)
        return score, numbers * each, numbers * each, np.stack([1 - p, -p], axis=-2), np.stack([each, each], axis=-2)

    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(events.sum(axis=-1) / numbers.sum(axis=-1), 0.01, 0.99)
    return _solved(matrix, parts, np.log(share / (1 - share)), numbers.sum(axis=-1), variance)


def fit_poisson(
    matrix: NDArray[np.float64], parts: NDArray[np.float64], low: float, high: float, variance: float
) -> CellFit:
    """Coefficients of a regression of log means from noisy parts of an outcome, in each cell.

    ``parts`` has on its last axes the three parts and the cells: how rows of outcome y, t of the way from ``low`` to
    ``high``, are spread as (1 − t)², 2t(1 − t), t². Their sums give the rows, the sum of y and that of y²: the variance
    of the outcome is taken as it is, not as its mean. ``variance`` is that of the noise of each part.
    """
    spots = low + (high - low) * np.array([0.0, 0.5, 1.0])
    numbers = parts.sum(axis=-2)
    sums = np.einsum("k,...kc->...c", spots, parts)
    ends = np.array([low**2, low * high, high**2])
    squares = np.einsum("k,...kc->...c", ends, parts)

    def scores(linear: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        mean = np.exp(linear)
        weights = ends[:, None] - 2 * mean[..., None, :] * spots[:, None] + mean[..., None, :] ** 2
        doubt = variance * np.sum(weights**2, axis=-2)
        together = np.sqrt(np.sum(doubt, axis=-1, keepdims=True))
        raised = UPWARD * np.divide(doubt, together, out=np.zeros_like(doubt), where=together > 0)
        spread = squares - 2 * mean * sums + mean**2 * numbers + raised
        of_slope = np.broadcast_to(mean[..., None, :], weights.shape)
        return sums - numbers * mean, numbers * mean, spread, spots[:, None] - mean[..., None, :], of_slope

    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.log(np.clip(sums.sum(axis=-1) / numbers.sum(axis=-1), max(high, 1e-9) / 1000, max(high, 1e-9)))
    return _solved(matrix, scores, start, numbers.sum(axis=-1), variance)


def _solved(
    matrix: NDArray[np.float64], parts: Parts, start: NDArray[np.float64], rows: NDArray[np.float64], variance: float
) -> CellFit:
    """Newton's method for all runs at once, and the variance of the solution."""
    size = matrix.shape[1]
    estimates = np.zeros((*start.shape, size))
    estimates[..., 0] = np.nan_to_num(start)
    active = np.ones(start.shape, dtype=bool)
    for _ in range(STEPS):
        score, slope, *_ = parts(np.clip(estimates @ matrix.T, -FURTHEST, FURTHEST))
        step = np.nan_to_num(_times(_inverse(_weighted(matrix, slope)), score @ matrix))
        length = np.max(np.abs(step), axis=-1, keepdims=True)
        estimates = estimates + np.where(
            active[..., None], step * np.minimum(1.0, STRIDE / np.maximum(length, STRIDE)), 0
        )
        active = active & (length[..., 0] > CLOSE) & (np.max(np.abs(estimates), axis=-1) < 10 * FURTHEST)
        if not active.any():
            break
    linear = estimates @ matrix.T
    score, slope, spread, noise, of_slope = parts(np.clip(linear, -FURTHEST, FURTHEST))
    slopes = _weighted(matrix, slope)
    found = ~active & (np.max(np.abs(linear), axis=-1) < FURTHEST)
    definite = found & (np.linalg.eigvalsh(slopes)[..., 0] > 0)
    inverse = _inverse(np.where(definite[..., None, None], slopes, np.eye(size)))
    weights = np.einsum("...ij,cj,...kc->...ikc", inverse, matrix, noise, optimize=True)
    weights = weights.reshape((*weights.shape[:-2], -1))
    of_noise = variance * np.einsum("...im,...jm->...ij", weights, weights)
    covariance = inverse @ _weighted(matrix, np.maximum(spread, 0.0)) @ inverse + of_noise
    total = np.einsum("...ii->...i", covariance)
    share = np.einsum("...ii->...i", of_noise) / np.where(total > 0, total, 1.0)
    # Where all coefficients likeliest lie if one is larger by 1, and what noise there is in its information there.
    directions = covariance / np.where(total > 0, total, 1.0)[..., None, :]
    stepped = np.swapaxes((matrix @ directions) * (matrix @ inverse), -1, -2)
    of_information = (of_slope[..., None, :, :] * stepped[..., :, None, :]).reshape(weights.shape)
    return CellFit(
        estimates=estimates,
        covariance=covariance,
        definite=definite,
        rows=rows,
        noise=share,
        weights=weights,
        doubt=variance * np.sum(of_information**2, axis=-1),
        leaning=variance * np.sum(of_information * weights, axis=-1),
    )


def _weighted(matrix: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("ci,...c,cj->...ij", matrix, weights, matrix, optimize=True))


def _inverse(given: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse; where there is none, that of a matrix next to it: a step of a search that may go anywhere."""
    size = np.abs(np.einsum("...ii->...", given))[..., None, None] + 1e-300
    try:
        return np.asarray(np.linalg.inv(given))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.inv(given + 1e-9 * size * np.eye(given.shape[-1])))


def _times(matrix: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("...ij,...j->...i", matrix, vector))
