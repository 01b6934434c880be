"""Limits of a coefficient whose information is measured with noise, after Fieller: where noise leaves it open, no end.

The score of a fit is tested at each value of a coefficient, with the noise that it has there. Noise in the information
makes that larger the further a value lies from the estimate, so far values may fit as well as near ones: the limits are
then (−∞, ∞), and which fits have none is decided by the same test. Proof: docs/proofs/regression.md
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fieller_limits", "fieller_ratio"]


def fieller_limits(
    estimates: NDArray[np.float64],
    total: NDArray[np.float64],
    doubt: NDArray[np.float64],
    leaning: NDArray[np.float64],
    reach: NDArray[np.float64] | float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high: all values within ``reach`` standard errors, as these are at the value.

    A value t above the estimate has the variance total − 2t·leaning + t²·doubt. Without doubt the limits are those of
    Wald; from a doubt of 1/reach² on there are none.

    >>> given = np.ones(2), np.full(2, 0.04), np.array([0.0, 0.09]), np.zeros(2)
    >>> low, high = fieller_limits(*given, 2.0)
    >>> low.tolist(), high.tolist()
    ([0.6, 0.5], [1.4, 1.5])
    >>> low, high = fieller_limits(*given, 4.0)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.2, -inf], [1.8, inf])
    """
    square = np.square(reach)
    left = 1 - square * doubt
    bounded = left > 0
    usable = np.where(bounded, left, 1.0)
    # A value at which the variance would be negative does not exist: total·doubt is at least leaning².
    wide = np.sqrt(np.maximum((square * leaning) ** 2 + usable * square * total, 0.0)) / usable
    middle = estimates - square * leaning / usable
    return np.where(bounded, middle - wide, -np.inf), np.where(bounded, middle + wide, np.inf)


def fieller_ratio(
    away: NDArray[np.float64], total: NDArray[np.float64], doubt: NDArray[np.float64], leaning: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How many standard errors a value lies from the estimate, ``away`` above it, as these are at the value.

    >>> given = np.array([0.04]), np.array([0.09]), np.array([0.0])
    >>> fieller_ratio(np.array([0.5]), *given).round(3).tolist()
    [2.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(away) / np.sqrt(total - 2 * away * leaning + away**2 * doubt))
