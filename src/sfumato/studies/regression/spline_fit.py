"""Logistic, Poisson and linear regression on rows that were spread over splines: noise leaves their scores unbiased.

The score of each model is a sum over rows of a smooth function of the numbers. Counts of spread rows tell such a sum
for every value of the coefficients at once, so one release is enough, and its noise enters the score linearly. What the
splines cannot follow is bounded and widens the intervals. Proof: docs/proofs/regression.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.regression.design import ColumnProduct, Design
from sfumato.studies.regression.splines import STEPS, SplineBasis, to_cells, to_nodes

__all__ = [
    "ScoreModel",
    "ScoreTerms",
    "SplineDesign",
    "SplineFit",
    "fit_splines",
    "furthest_shift",
    "linear",
    "logistic",
    "poisson",
]

UPWARD = 1.2816  # noise makes a variance too small in one of ten: raised by this many standard deviations of it
ITERATIONS, CLOSE, FURTHEST, STRIDE = 60, 1e-9, 12.0, 2.0
DENSE = {0: 1, 1: 600, 2: 60, 3: 24, 4: 14}
"""At how many lattice points of each number the error of splines is looked for, by how many numbers there are."""


@dataclass(frozen=True, slots=True)
class ScoreTerms:
    """What a model says at some places: for each part of the outcome, score, slope and square of the score."""

    score: NDArray[np.float64]
    slope: NDArray[np.float64]
    square: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreModel:
    """A model of an outcome that is counted in parts."""

    terms: Callable[[NDArray[np.float64]], ScoreTerms]
    """From linear predictors: arrays with an axis for the parts before that of the places."""
    start: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """A first intercept, from the rows in each part."""
    measured: bool
    """Whether the variance of the outcome is measured, not taken from the model."""


def logistic() -> ScoreModel:
    """The logarithm of odds; parts are rows with the event and rows without."""

    def terms(linear: NDArray[np.float64]) -> ScoreTerms:
        p = 1 / (1 + np.exp(-np.clip(linear, -FURTHEST, FURTHEST)))
        slope = np.stack([p * (1 - p)] * 2, axis=-2)
        return ScoreTerms(np.stack([1 - p, -p], axis=-2), slope, slope)

    def start(parts: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num(parts[..., 0] / parts.sum(axis=-1), nan=0.5), 0.01, 0.99)
        return np.asarray(np.log(share / (1 - share)))

    return ScoreModel(terms=terms, start=start, measured=False)


def poisson(low: float, high: float) -> ScoreModel:
    """The logarithm of a mean; the outcome is spread over the three splines of degree 2 between its bounds."""
    spots, ends = _outcome(low, high)
    most = max(high, 1e-9)

    def terms(linear: NDArray[np.float64]) -> ScoreTerms:
        mean = np.exp(np.clip(linear, -FURTHEST, FURTHEST))[..., None, :]
        score = spots - mean
        return ScoreTerms(score, np.broadcast_to(mean, score.shape), ends - 2 * mean * spots + mean**2)

    def start(parts: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.nan_to_num(parts @ spots[:, 0] / parts.sum(axis=-1), nan=most / 2)
        return np.asarray(np.log(np.clip(mean, most / 1000, most)))

    return ScoreModel(terms=terms, start=start, measured=True)


def linear() -> ScoreModel:
    """A mean; the outcome is coded from −1 to 1 and spread over three splines."""
    spots, ends = _outcome(-1.0, 1.0)

    def terms(linear: NDArray[np.float64]) -> ScoreTerms:
        mean = np.clip(linear, -FURTHEST, FURTHEST)[..., None, :]
        score = spots - mean
        return ScoreTerms(score, np.ones_like(score), ends - 2 * mean * spots + mean**2)

    def start(parts: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(parts.shape[:-1])

    return ScoreModel(terms=terms, start=start, measured=True)


def _outcome(low: float, high: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each part of an outcome brings to its sum, and to that of its squares."""
    return np.array([[low], [(low + high) / 2], [high]]), np.array([[low**2], [low * high], [high**2]])


@dataclass(frozen=True, kw_only=True, eq=False)
class SplineDesign:
    """The columns of a regression at the nodes of splines, for each cell of its factors, the last running fastest."""

    design: Design
    bases: tuple[SplineBasis, ...]
    """Of the numbers of the design, in their order."""

    @property
    def levels(self) -> int:
        """How many cells of factors there are."""
        return int(np.prod([len(each.levels) for each in self.design.factors], dtype=int))

    @property
    def splines(self) -> int:
        """How many products of splines there are in each of them."""
        return int(np.prod([basis.size for basis in self.bases], dtype=int))

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """A row for each cell of factors and node, a column for each coefficient."""
        return self.columns_at([2 * basis.nodes - 1 for basis in self.bases])

    def columns_at(self, places: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The same at the products of other places of the numbers, each on [−1, 1]."""
        names = [each.name for each in self.design.numbers]
        grids = [each.ravel() for each in np.meshgrid(*places, indexing="ij")]
        held = dict(zip(names, grids, strict=True))
        points = int(np.prod([len(each) for each in places], dtype=int))
        found = []
        for cell in product(*(range(len(each.levels)) for each in self.design.factors)):
            met = dict(zip((each.name for each in self.design.factors), cell, strict=True))
            found.append(np.stack([_column(each, held, met, points) for each in self.design.columns], axis=-1))
        return np.concatenate(found)


def _column(
    each: ColumnProduct, held: dict[str, NDArray[np.float64]], met: dict[str, int], points: int
) -> NDArray[np.float64]:
    found = np.full(points, float(all(met[name] == level for name, level in each.levels)))
    for name, power in each.powers:
        found = found * held[name] ** power
    for name in each.signs:
        found = found * (2 * met[name] - 1)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplineFit:
    """One fit, or many at once: arrays whose last axes are coefficients.

    Estimates are on the scale of the coded columns, errors on the one that was asked for. Where ``definite`` is false
    the equations have no solution that noise could not have made.
    """

    estimates: NDArray[np.float64]
    covariance: NDArray[np.float64]
    definite: NDArray[np.bool_]
    rows: NDArray[np.float64]
    noise: NDArray[np.float64]
    """Which part of the variance of each coefficient the privacy noise is."""
    weights: NDArray[np.float64]
    """How each coefficient depends on the noise of each number."""
    inverse: NDArray[np.float64]
    """What turns an error of the score into one of the coefficients."""
    doubt: NDArray[np.float64]
    """The variance of the noise in the information on each coefficient, over the square of that information."""
    leaning: NDArray[np.float64]
    """How that noise goes together with the noise of the coefficient: their covariance."""


def fit_splines(
    made: SplineDesign,
    family: ScoreModel,
    counts: NDArray[np.float64],
    variance: float,
    *,
    scale: NDArray[np.float64] | None = None,
) -> SplineFit:
    """Coefficients from noisy counts, whose last axes are parts of the outcome, cells of factors, products of splines.

    ``variance`` is that of the noise of each count; ``scale`` turns coded coefficients into those whose errors are
    worked out, each with what its own noise asks for. At the true coefficients the score has mean 0 whatever the noise,
    but for what splines cannot follow (:func:`furthest_shift`).
    """
    columns = made.columns
    size, ahead = columns.shape[1], counts.shape[:-3]
    pairs = np.einsum("ni,nj->nij", columns, columns).reshape(len(columns), size * size)
    nodes = to_nodes(counts, made.bases).reshape(*ahead, counts.shape[-3], len(columns))
    parts = counts.sum(axis=(-1, -2))
    rows = parts.sum(axis=-1)
    estimates = np.zeros((*ahead, size))
    estimates[..., 0] = family.start(parts)
    active = np.ones(ahead, dtype=bool)
    for _ in range(ITERATIONS):
        at = family.terms(estimates @ columns.T)
        score = np.sum(at.score * nodes, axis=-2) @ columns
        step = np.nan_to_num(_times(_inverse(_square(np.sum(at.slope * nodes, axis=-2) @ pairs)), score))
        length = np.max(np.abs(step), axis=-1)
        held = step * np.minimum(1.0, STRIDE / np.maximum(length, STRIDE))[..., None]
        estimates = estimates + np.where(active[..., None], held, 0.0)
        active = active & (length > CLOSE) & (np.max(np.abs(estimates), axis=-1) < 10 * FURTHEST)
        if not active.any():
            break
    predicted = estimates @ columns.T
    at = family.terms(predicted)
    slopes = _square(np.sum(at.slope * nodes, axis=-2) @ pairs)
    definite = ~active & (np.max(np.abs(predicted), axis=-1) < FURTHEST)
    definite &= np.linalg.eigvalsh(np.nan_to_num(slopes))[..., 0] > 0
    inverse = _inverse(np.where(definite[..., None, None], slopes, np.eye(size)))
    if scale is not None:
        inverse = scale @ inverse
    of_score = to_cells(_by_cell(at.score[..., None, :, :] * columns.T[:, None, :], made), made.bases)
    weights = inverse @ of_score.reshape(*ahead, size, -1)
    of_noise = variance * np.einsum("...im,...jm->...ij", weights, weights)
    sampled = inverse @ _square(np.sum(at.square * nodes, axis=-2) @ pairs) @ np.swapaxes(inverse, -1, -2)
    if family.measured:
        sampled = _raised(sampled, made, at, inverse, variance) * _of_few(rows, size)[..., None, None]
    covariance = sampled + of_noise
    total = np.einsum("...ii->...i", covariance)
    share = np.einsum("...ii->...i", of_noise) / np.where(total > 0, total, 1.0)
    directions = covariance / np.where(total > 0, total, 1.0)[..., None, :]
    of_information = _informed(made, at, inverse, directions if scale is None else np.linalg.solve(scale, directions))
    return SplineFit(
        estimates=estimates,
        covariance=covariance,
        definite=definite,
        rows=rows,
        noise=share,
        weights=weights,
        inverse=inverse,
        doubt=variance * np.sum(of_information**2, axis=-1),
        leaning=variance * np.sum(of_information * weights, axis=-1),
    )


def _informed(
    made: SplineDesign, at: ScoreTerms, inverse: NDArray[np.float64], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How the information on each coefficient depends on the noise of each count, that information being 1.

    ``directions`` has a column for each coefficient: where all coded ones likeliest lie if this one is larger by 1. The
    information is what such a step does to the score that the coefficient is read off; that on a covariate which is
    close to others, or hardly varies, is mostly noise.
    """
    stepped = np.swapaxes((made.columns @ directions) * (made.columns @ np.swapaxes(inverse, -1, -2)), -1, -2)
    found = to_cells(_by_cell(at.slope[..., None, :, :] * stepped[..., :, None, :], made), made.bases)
    return found.reshape(*found.shape[:-3], -1)


def _raised(
    sampled: NDArray[np.float64], made: SplineDesign, at: ScoreTerms, inverse: NDArray[np.float64], variance: float
) -> NDArray[np.float64]:
    """A measured variance of the coefficients, each raised by 1.28 standard deviations of its own noise, from 0 up."""
    squares = (inverse @ made.columns.T) ** 2
    weights = to_cells(_by_cell(at.square[..., None, :, :] * squares[..., :, None, :], made), made.bases)
    doubt = np.sqrt(variance * np.sum(weights.reshape(*weights.shape[:-3], -1) ** 2, axis=-1))
    given = np.einsum("...ii->...i", sampled)
    more = np.maximum(given + UPWARD * doubt, 0.0) - given
    return np.asarray(sampled + more[..., None] * np.eye(sampled.shape[-1]))


def _of_few(rows: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """What residuals of a fit are too small by."""
    return np.asarray(np.maximum(rows, 2.0 * size) / (np.maximum(rows, 2.0 * size) - size))


def furthest_shift(
    made: SplineDesign, family: ScoreModel, fit: SplineFit, counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far each coded score may be from what the rows themselves would give: what splines cannot follow of it.

    For one fit. Each row is in the supports of the splines that it was spread over, so its error is at most the largest
    there; noisy counts below 0 are taken as 0.
    """
    places = [np.linspace(0, STEPS, DENSE[len(made.bases)]).round().astype(np.int64) for _ in made.bases]
    columns = made.columns_at([2 * each / STEPS - 1 for each in places])
    true = family.terms(columns @ fit.estimates).score[None] * columns.T[:, None, :]
    near = to_cells(
        _by_cell(family.terms(made.columns @ fit.estimates).score[None] * made.columns.T[:, None, :], made), made.bases
    )
    splines = [basis.at(each) for basis, each in zip(made.bases, places, strict=True)]
    shape = [len(each) for each in places]
    away = true.reshape(*true.shape[:2], made.levels, -1) - _evaluated(near, splines)
    worst = np.abs(away).reshape(*away.shape[:-1], *shape)
    for spline in splines:  # the largest error within the support of each spline, number after number
        support = [np.flatnonzero(column) for column in spline.T]
        worst = np.stack([np.take(worst, held, axis=3).max(axis=3) for held in support], axis=-1)
    worst = worst.reshape(*worst.shape[:3], -1)
    return np.asarray(np.einsum("ipls,pls->i", worst, np.maximum(counts, 0.0)))


def _evaluated(coefficients: NDArray[np.float64], splines: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    ahead = coefficients.shape[:-1]
    found = coefficients.reshape(*ahead, *(spline.shape[1] for spline in splines))
    for spline in splines:
        found = np.tensordot(found, spline.T, axes=([len(ahead)], [0]))
    return np.asarray(found.reshape(*ahead, -1))


def _by_cell(given: NDArray[np.float64], made: SplineDesign) -> NDArray[np.float64]:
    """The axis of places split into cells of factors and nodes."""
    return given.reshape(*given.shape[:-1], made.levels, -1)


def _square(given: NDArray[np.float64]) -> NDArray[np.float64]:
    size = round(given.shape[-1] ** 0.5)
    return given.reshape(*given.shape[:-1], size, size)


def _inverse(given: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse; where there is none, that of a matrix next to it: a step of a search that may go anywhere."""
    try:
        return np.asarray(np.linalg.inv(given))
    except np.linalg.LinAlgError:
        size = np.abs(np.einsum("...ii->...", given))[..., None, None] + 1e-300
        return np.asarray(np.linalg.inv(given + 1e-9 * size * np.eye(given.shape[-1])))


def _times(matrix: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("...ij,...j->...i", matrix, vector))
