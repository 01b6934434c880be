"""What noise on a discriminator's logits does to the game: its value falls, and equal distributions stay a minimum.

For the classical objective E ln D(real) + E ln(1 − D(made)) on finitely many rows, with Gaussian noise of mean zero on
each logit that does not depend on the row. Noise of training acts on weights instead, and clipping has a bias: what is
computed here says what to hope for, and is no guarantee.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput

__all__ = ["discriminator_objective", "equilibrium_value"]

NODES = 128
FAR = 60.0  # a logit beyond which a sigmoid is 0 or 1
HALVINGS = 80

Reals = NDArray[np.float64]


def discriminator_objective(real: Sequence[float], made: Sequence[float], *, sd: float) -> float:
    """The most that a discriminator reaches whose logits have noise of this standard deviation.

    ``real`` and ``made`` are the chances of the same rows. The objective is concave in each logit, so that the best one
    is found by halving.

    >>> round(discriminator_objective([0.5, 0.5], [0.5, 0.5], sd=0), 4)
    -1.3863
    >>> round(discriminator_objective([0.9, 0.1], [0.5, 0.5], sd=0), 4)
    -1.1828
    """
    p, q = (np.asarray(each, dtype=np.float64) for each in (real, made))
    if p.shape != q.shape or p.ndim != 1 or min(p.min(), q.min()) < 0 or not np.allclose([p.sum(), q.sum()], 1):
        raise InvalidInput("real and made are chances of the same rows, each adding up to 1; nothing was done.")
    if not 0 <= sd < FAR / 4:
        raise InvalidInput(f"sd is a standard deviation of logits, below {FAR / 4:g}; nothing was done.")
    at, weights = np.polynomial.hermite_e.hermegauss(NODES)
    noise, weights = sd * at, weights / weights.sum()
    low, high = np.full(len(p), -FAR), np.full(len(p), FAR)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rises = p * (_sigmoid(-(middle[:, None] + noise)) @ weights) > q * (_sigmoid(middle[:, None] + noise) @ weights)
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    logits = ((low + high) / 2)[:, None] + noise
    return float(p @ (_log_sigmoid(logits) @ weights) + q @ (_log_sigmoid(-logits) @ weights))


def equilibrium_value(sd: float) -> float:
    """The value where made rows are distributed as real ones: 2·E ln sigmoid(z) for z of this standard deviation.

    >>> [round(equilibrium_value(sd), 3) for sd in (0, 0.5, 1, 2)]
    [-1.386, -1.447, -1.612, -2.135]
    """
    return discriminator_objective([1.0], [1.0], sd=sd)


def _sigmoid(logits: Reals) -> Reals:
    found: Reals = np.exp(_log_sigmoid(logits))
    return found


def _log_sigmoid(logits: Reals) -> Reals:
    found: Reals = -np.logaddexp(0.0, -logits)
    return found
