"""The way back from measurements to totals of a buffered stream, in floats: post-processing, on which no privacy rests.

1/C(x) = 1 − Σ_j α_j·x/(1 − φ_j·x): the φ_j are the eigenvalues of diag(θ) − √ω·√ωᵀ, which is symmetric, and the α_j the
squares of √ω in the basis of its eigenvectors.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["inverse", "mean_error", "response"]

Floats = npt.NDArray[np.float64]


def inverse(decays: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The φ_j and α_j.

    >>> [round(float(one[0]), 3) for one in inverse(np.array([0.5]), np.array([0.25]))]
    [0.25, 0.25]
    """
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(np.diag(decays) - np.outer(root, root))
    return values, (vectors.T @ root) ** 2


def response(decays: Floats, weights: Floats, places: npt.ArrayLike) -> Floats:
    """b_k, with which measurement t − k counts in total t: the sums of the coefficients of 1/C.

    >>> response(np.array([0.0]), np.array([1.0]), [0, 1, 2]).tolist()
    [1.0, 0.0, 1.0]
    """
    k = np.asarray(places, dtype=np.float64)[:, None]
    poles, shares = inverse(decays, weights)
    found: Floats = 1 - (shares * (1 - np.power(poles, k)) / (1 - poles)).sum(axis=1)
    return found


def mean_error(decays: Floats, weights: Floats, horizon: int) -> float:
    """About the root mean squared error of the totals per unit noise at unit l2 sensitivity; sums by trapezoids."""
    near = np.arange(min(horizon, 64))
    far = np.geomspace(64, horizon - 1, 300).astype(np.int64) if horizon > 64 else near
    k = np.unique(np.concatenate([near, far]))
    poles, _ = inverse(decays, weights)
    if not ((poles > -1) & (poles < 1)).all() or weights.sum() > 1:
        return 1e9
    back = response(decays, weights, k)
    strategy = np.where(k == 0, 1.0, (weights * np.power(decays, np.maximum(k[:, None] - 1, 0))).sum(axis=1))
    return float(np.sqrt(_summed(k, (horizon - k) * back**2) / horizon * _summed(k, strategy**2)))


def _summed(k: npt.NDArray[np.int64], values: Floats) -> float:
    gap = np.diff(k)
    return float(values[0] + (gap * (values[1:] + values[:-1]) / 2 + (values[1:] - values[:-1]) / 2).sum())
