"""The square root of the matrix of prefix sums: a Toeplitz strategy that needs no optimisation.

Σ_k C(2k, k)/4^k·x^k = (1 − x)^(−1/2), whose square is 1/(1 − x): the lower triangular Toeplitz matrix A with these
coefficients has A·A = prefix sums. About 6% above the optimum, known in closed form for every horizon.
"""

from fractions import Fraction

import numpy as np

from sfumato.core.exact import natural
from sfumato.mechanisms.matrix.workloads import Floats

__all__ = ["coefficients", "lower", "rmse"]


def coefficients(n: int) -> list[Fraction]:
    """The first ``n`` coefficients of (1 − x)^(−1/2), exactly.

    >>> coefficients(4)
    [Fraction(1, 1), Fraction(1, 2), Fraction(3, 8), Fraction(5, 16)]
    """
    found = [Fraction(1)]
    for k in range(1, natural(n, "n")):
        found.append(found[-1] * Fraction(2 * k - 1, 2 * k))
    return found


def lower(first: Floats) -> Floats:
    """The lower triangular Toeplitz matrix with this first column.

    >>> lower(np.array([1.0, 0.5])).tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """
    place = np.arange(len(first))
    return np.where(place[:, None] >= place, first[place[:, None] - place], 0.0)


def rmse(strategy: Floats, decoder: Floats) -> float:
    """The error per unit noise at unit l2 sensitivity of W = B·A, both lower Toeplitz and given by their first columns.

    It is √(Σ_k (n − k)·b_k²/n)·‖a‖₂, since b_k stands n − k times in B and the first column of A is its longest.

    >>> root = np.array([float(c) for c in coefficients(64)])
    >>> round(rmse(root, root), 4)
    2.2297
    """
    times = len(decoder) - np.arange(len(decoder))
    return float(np.sqrt((times * decoder**2).sum() / len(decoder) * (strategy**2).sum()))
