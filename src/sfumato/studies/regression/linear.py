"""Linear regression from a noisy matrix of products; the noise of all of it is in the standard errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.regression.design import Design, product_table

__all__ = ["LinearFit", "fit_linear"]

UPWARD = 1.2816  # the 90% point of a normal distribution: noise makes a residual variance too small in one of ten


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearFit:
    """One fit, or many at once: arrays whose last axes are coefficients.

    Estimates are on the scale of the coded columns, errors on the one that was asked for. Where ``definite`` is false
    the matrix of products has an eigenvalue that is not positive: its noise is as large as what it measures, and
    neither an estimate nor a standard error means anything.
    """

    estimates: NDArray[np.float64]
    covariance: NDArray[np.float64]
    definite: NDArray[np.bool_]
    rows: NDArray[np.float64]
    residual_variance: NDArray[np.float64]
    """Of one row, raised by 1.28 standard deviations of its noise; at most 1."""
    noise: NDArray[np.float64]
    """Which part of the variance of each coefficient the privacy noise is."""
    weights: NDArray[np.float64]
    """How each coefficient depends on the noise of each sum."""
    doubt: NDArray[np.float64]
    """The variance of the noise in the information on each coefficient, over the square of that information."""
    leaning: NDArray[np.float64]
    """How that noise goes together with the noise of the coefficient: their covariance."""


def fit_linear(
    design: Design, sums: NDArray[np.float64], variance: float, *, scale: NDArray[np.float64] | None = None
) -> LinearFit:
    """Coefficients from noisy sums of the products of a design, in rows; ``variance`` is that of the noise of each.

    With g(β) = b − Aβ the estimate differs from the true coefficients by A⁻¹g, exactly, whatever the noise; g has the
    sampling variance s²A and a noise that is linear in that of the sums. ``scale`` turns coded coefficients into those
    whose errors are worked out. Proof: docs/proofs/regression.md
    """
    table = product_table(design)
    whole = table.matrix(sums)
    size = whole.shape[-1] - 1
    products, right = whole[..., :size, :size], whole[..., :size, size]
    rows = whole[..., 0, 0]
    definite = np.asarray(np.linalg.eigvalsh(products)[..., 0] > 0)
    usable = np.where(definite[..., None, None], products, np.eye(size))
    inverse = np.linalg.inv(usable)
    estimates = np.einsum("...ij,...j->...i", inverse, right)
    contrast = np.concatenate([-estimates, np.ones((*estimates.shape[:-1], 1))], axis=-1)
    weights = table.weights(contrast)
    of_scores = weights[..., :size, :]
    noise = variance * np.einsum("...im,...jm->...ij", of_scores, of_scores)
    of_residuals = np.einsum("...i,...im->...m", contrast, weights)
    spread = np.sqrt(variance * np.sum(of_residuals**2, axis=-1))
    residuals = np.einsum("...i,...ij,...j->...", contrast, whole, contrast)
    free = np.maximum(rows - size, 1.0)
    fitted_away = np.einsum("...ij,...ji->...", inverse, noise)
    residual = np.clip((residuals + fitted_away + UPWARD * spread) / free, 0.0, 1.0)
    if scale is not None:
        inverse = scale @ inverse
    of_noise = inverse @ noise @ np.swapaxes(inverse, -1, -2)
    sampled = inverse if scale is None else inverse @ scale.T
    covariance = residual[..., None, None] * sampled + of_noise
    total = np.einsum("...ii->...i", covariance)
    share = np.einsum("...ii->...i", of_noise) / np.where(total > 0, total, 1.0)
    of_coefficients = inverse @ of_scores
    # Where all coded coefficients likeliest lie if one is larger by 1, and what such a step does to its noise.
    directions = covariance / np.where(total > 0, total, 1.0)[..., None, :]
    coded = np.swapaxes(directions if scale is None else np.linalg.solve(scale, directions), -1, -2)
    stepped = table.weights(np.concatenate([coded, np.zeros((*coded.shape[:-1], 1))], axis=-1))[..., :size, :]
    of_information = np.einsum("...ik,...ikm->...im", inverse, stepped)
    return LinearFit(
        estimates=estimates,
        covariance=covariance,
        definite=definite,
        rows=rows,
        residual_variance=residual,
        noise=share,
        weights=of_coefficients,
        doubt=variance * np.sum(of_information**2, axis=-1),
        leaning=variance * np.sum(of_information * of_coefficients, axis=-1),
    )
