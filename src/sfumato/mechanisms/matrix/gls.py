"""Generalised least squares: from y = A·x + z to an unbiased estimate of Q·x, and its covariance."""

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.matrix.workloads import Floats

__all__ = ["covariance", "estimator", "information", "inverse", "total_variance"]

TOLERANCE = 1e-9  # relative; a Q this close to the row space is inside it, as far as floating point can tell
SINGULAR = 1e-14  # relative; an eigenvalue below this times n is an error of rounding


def estimator(query: npt.ArrayLike, strategy: npt.ArrayLike, *, noise: npt.ArrayLike | None = None) -> Floats:
    """The matrix R = Q·(AᵀS⁻¹A)⁺·AᵀS⁻¹ that turns y into an unbiased estimate of Q·x, for noise of covariance S.

    Guarantee: E[R·y] = Q·x for every x, and no linear unbiased estimate has a smaller covariance; post-processing of y.
    A query with a row outside the row space of A has no unbiased estimate and is refused. Proof: docs/proofs/matrix.md

    >>> estimator([[1, 1]], [[1, 0], [0, 1], [1, 1]]).round(3).tolist()
    [[0.333, 0.333, 0.667]]
    """
    asked, measured = _matrix(query, "query"), _matrix(strategy, "strategy")
    weighted = _weighted(measured, noise)
    return np.asarray(asked @ inverse(measured.T @ weighted, asked.T @ asked) @ weighted.T)


def covariance(query: npt.ArrayLike, strategy: npt.ArrayLike, *, noise: npt.ArrayLike | None = None) -> Floats:
    """The covariance Q·(AᵀS⁻¹A)⁺·Qᵀ of the estimate; S is the identity where it is not given.

    >>> covariance([[1, 1]], [[1, 0], [0, 1], [1, 1]]).round(3).tolist()
    [[0.667]]
    """
    asked = _matrix(query, "query")
    return np.asarray(asked @ inverse(information(strategy, noise=noise), asked.T @ asked) @ asked.T)


def total_variance(gram: npt.ArrayLike, strategy: npt.ArrayLike) -> float:
    """The sum of the variances of all answers, tr(QᵀQ·(AᵀA)⁺), for independent noise of variance 1.

    >>> round(total_variance([[1, 1], [1, 1]], [[1, 0], [0, 1], [1, 1]]), 3)
    0.667
    """
    asked = _matrix(gram, "Gram matrix")
    return float((asked * inverse(information(strategy), asked)).sum())


def information(strategy: npt.ArrayLike, *, noise: npt.ArrayLike | None = None) -> Floats:
    """AᵀS⁻¹A: what the noisy answers know about x.

    >>> information([[1, 0], [1, 1]]).tolist()
    [[2.0, 1.0], [1.0, 1.0]]
    """
    measured = _matrix(strategy, "strategy")
    return np.asarray(measured.T @ _weighted(measured, noise))


def inverse(known: Floats, gram: Floats) -> Floats:
    """The pseudo-inverse of an information matrix; refused where a query of this Gram matrix leaves its range.

    >>> inverse(np.eye(2), np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if known.shape != gram.shape:
        raise InvalidInput(f"query and strategy are about {len(gram)} and {len(known)} counts; nothing was done.")
    values, vectors = eigh(known)
    kept = values > SINGULAR * len(known) * max(values[-1], 0.0)
    lost = vectors[:, ~kept]
    if (lost * (gram @ lost)).sum() > TOLERANCE * np.trace(gram):
        raise Refused(
            f"the strategy has rank {int(kept.sum())} and its row space does not contain every row of the query: no "
            "unbiased estimate exists. Nothing was estimated. Measure more, or ask only for what was measured."
        )
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def _weighted(measured: Floats, noise: npt.ArrayLike | None) -> Floats:
    """S⁻¹A."""
    if noise is None:
        return measured
    spread = _matrix(noise, "noise covariance")
    if spread.shape != (len(measured),) * 2 or not np.allclose(spread, spread.T):
        raise InvalidInput(f"the noise covariance must be symmetric with {len(measured)} rows; nothing was done.")
    try:
        return np.asarray(cho_solve(cho_factor(spread), measured))
    except LinAlgError:
        raise InvalidInput("the noise covariance must be positive definite; nothing was done.") from None


def _matrix(values: npt.ArrayLike, name: str) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise InvalidInput(f"the {name} must be a non-empty matrix of finite numbers; nothing was done.")
    return table
