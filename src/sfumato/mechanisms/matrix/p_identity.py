"""p-Identity strategies: for pure differential privacy, where the l1 norm of a column is what noise is paid for.

A = [I; Θ]·D with Θ ≥ 0 of p rows and D = diag(1/(1 + Σ_i Θ_ij)): every column has l1 norm 1 whatever Θ is, so Θ is
free and (AᵀA)⁻¹ = D⁻¹·(I − Θᵀ(I + ΘΘᵀ)⁻¹Θ)·D⁻¹ costs p rows, not n. (McKenna and others, HDMM.)
"""

import numpy as np
from scipy.optimize import minimize

from sfumato.core.exact import natural
from sfumato.mechanisms.matrix.workloads import Floats, Integers

__all__ = ["p_identity"]


def p_identity(gram: Integers, *, rows: int | None = None, steps: int = 600) -> Floats:
    """The best strategy that L-BFGS finds from two structured starts; columns of l1 norm 1.

    The problem is not convex: the result is good, not proven optimal. ``rows`` is p, by default a sixteenth of the
    counts. Public: everything; no data is opened.

    >>> found = p_identity(np.array([[2, 1], [1, 2]]), rows=1)
    >>> np.abs(found).sum(axis=0).round(9).tolist()
    [1.0, 1.0]
    """
    n = len(gram)
    p = max(1, n // 16) if rows is None else natural(rows, "rows")
    target = gram.astype(np.float64)
    found = [
        minimize(
            _objective,
            start.ravel(),
            args=(target, p),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (p * n),
            options={"maxiter": steps, "maxfun": 5 * steps, "maxcor": 20},
        )
        for start in (_blocks(p, n), _levels(p, n))
    ]
    theta = min(found, key=lambda one: float(one.fun)).x.reshape(p, n)
    return np.asarray(np.vstack([np.eye(n), theta]) / (1 + theta.sum(axis=0)))


def _objective(flat: Floats, gram: Floats, p: int) -> tuple[float, Floats]:
    """tr(G·(AᵀA)⁻¹) and its gradient in Θ."""
    theta = flat.reshape(p, -1)
    heights = 1 + theta.sum(axis=0)
    scaled = heights[:, None] * gram * heights
    small = np.linalg.solve(np.eye(p) + theta @ theta.T, theta)
    crossed = small @ scaled
    value = scaled.trace() - (crossed * theta).sum()
    by_height = 2 * (scaled.diagonal() - (crossed * theta).sum(axis=0)) / heights
    by_theta = -2 * (crossed - (crossed @ theta.T) @ small)
    return float(value), np.asarray(by_theta + by_height).ravel()


def _blocks(p: int, n: int) -> Floats:
    """p blocks of equal length, and a little of everything so that no entry is stuck at its bound."""
    member = np.arange(n) * p // n == np.arange(p)[:, None]
    return np.asarray(0.5 * member + 0.1 * _spread(p, n))


def _levels(p: int, n: int) -> Floats:
    """The blocks of a binary tree, coarsest first, as many as there are rows."""
    place = (np.arange(n) + 0.5) / n
    blocks = [(2**level, j) for level in range(1, p.bit_length() + 1) for j in range(2**level)][:p]
    member = np.array([(place >= j / parts) & (place < (j + 1) / parts) for parts, j in blocks])
    return np.asarray(0.5 * member + 0.05 * _spread(p, n))


def _spread(p: int, n: int) -> Floats:
    """Values spread over [0, 1) without a generator: multiples of the golden ratio."""
    golden = (np.sqrt(5.0) - 1) / 2
    return np.asarray((np.arange(1, p * n + 1) * golden % 1.0).reshape(p, n))
