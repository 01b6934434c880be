"""Quantiles of a normal variable plus Laplace noise: how many standard deviations an interval needs for both at once.

A figure about a population errs by sampling, which is nearly normal, and by privacy noise, which often is not: with
1.96 standard deviations an interval of noise alone covers 93.75% in place of 95%. Proof: docs/proofs/population.md
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["multiplier", "outside"]

SHARES = 512  # of the table of multipliers
HALVINGS = 60
ROOM = 2e-5  # what is added to a multiplier that was read off the table, more than straight lines between points miss


def outside(distance: "Floats", share: "Floats") -> "Floats":
    """P(\\|X\\| > distance) for X = normal + Laplace of variance 1, of which the Laplace part has this share."""
    import numpy as np
    from scipy.special import log_ndtr, ndtr

    part = np.clip(np.asarray(share, dtype=float), 0.0, 1.0)
    x = np.abs(np.asarray(distance, dtype=float))
    scale, spread = np.sqrt(np.maximum(part, 1e-12) / 2), np.sqrt(np.maximum(1 - part, 1e-12))
    near = spread / scale
    up = np.exp(near**2 / 2 - x / scale + log_ndtr(x / spread - near))
    down = np.exp(near**2 / 2 + x / scale + log_ndtr(-x / spread - near))
    both = 2 * ndtr(-x / spread) + up - down
    both = np.where(part < 1e-6, 2 * ndtr(-x), both)  # the two exponents cancel there, and the noise is nothing
    found: Floats = np.where(part > 1 - 1e-9, np.exp(-math.sqrt(2) * x), both)
    return found


@lru_cache(maxsize=64)
def _table(level: float) -> "tuple[Floats, Floats]":
    """Multipliers at equally spaced shares, by halving."""
    import numpy as np

    share = np.linspace(0.0, 1.0, SHARES + 1)
    low, high = np.zeros(share.size), np.full(share.size, 64.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        far = outside(middle, share) > 1 - level
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return share, high


def multiplier(share: "float | Floats", level: float) -> "Floats":
    """How many standard deviations hold the sum with probability ``level``, for a share of the variance that is noise.

    Guarantee: exact for one Laplace noise beside a normal variable, to 0.00005 above it. With several Laplace noises of
    that share together it is at most too large: their sum is nearer to normal. At levels where a normal variable needs
    more than the sum (below 91%), it is the normal one's.

    >>> [round(float(multiplier(share, 0.95)), 3) for share in (0, 0.5, 0.9, 1)]
    [1.96, 1.989, 2.084, 2.118]
    """
    import numpy as np

    shares, known = _table(float(level))
    found: Floats = np.interp(np.asarray(share, dtype=float), shares, np.maximum(known, known[0])) + ROOM
    return found
