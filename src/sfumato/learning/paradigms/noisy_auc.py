"""What noise on the weights of a linear model does to its AUC, where scores are normal in both classes.

An illustration and no guarantee: the scores of real data are not normal. With weights at an angle of cosine c to the
best ones, the distance of the two classes shrinks by c, and the AUC from Φ(t) to Φ(c·t).
"""

from math import sqrt
from statistics import NormalDist

from sfumato.core.exact import Exact, natural, positive
from sfumato.core.noise_multiplier import exact_multiplier
from sfumato.errors import InvalidInput

__all__ = ["auc_at", "cosine_at", "cosine_for", "noise_to_signal", "strength_for"]

NORMAL = NormalDist()


def auc_at(auc: float, cosine: float) -> float:
    """The AUC that is left of ``auc`` at a cosine between the noisy weights and the best ones.

    >>> round(auc_at(0.95, 0.815), 3)
    0.91
    """
    if not (0 < auc < 1 and -1 <= cosine <= 1):
        raise InvalidInput("an AUC lies between 0 and 1 and a cosine between -1 and 1; nothing was computed.")
    return NORMAL.cdf(cosine * NORMAL.inv_cdf(auc))


def cosine_for(auc: float, left: float) -> float:
    """The cosine at which ``auc`` falls to ``left``.

    >>> round(cosine_for(0.95, 0.91), 3)
    0.815
    """
    if not 0.5 < left <= auc < 1:
        raise InvalidInput("an AUC lies above 1/2, and noise does not raise it; nothing was computed.")
    return NORMAL.inv_cdf(left) / NORMAL.inv_cdf(auc)


def cosine_at(ratio: float) -> float:
    """The cosine for noise of σ√d = ratio·‖w‖, in many dimensions: 1/√(1 + ratio²).

    >>> round(cosine_at(0.711), 3)
    0.815
    """
    return 1 / sqrt(1 + ratio * ratio)


def noise_to_signal(cosine: float) -> float:
    """The σ√d/‖w‖ at which a cosine is left, in many dimensions.

    >>> round(noise_to_signal(cosine_for(0.95, 0.91)), 3)
    0.711
    """
    if not 0 < cosine <= 1:
        raise InvalidInput("the cosine must lie above 0 and be at most 1; nothing was computed.")
    return sqrt(1 / (cosine * cosine) - 1)


def strength_for(ratio: float, *, features: int, epsilon: Exact, delta: Exact) -> float:
    """The number·regularisation·‖w‖ at which the noise on the weights is ``ratio`` of them, under *replace*.

    >>> round(strength_for(0.711, features=20, epsilon=1, delta=1e-5))
    47
    """
    natural(features, "features")
    positive(ratio, "ratio")
    return 2 * float(exact_multiplier(epsilon=epsilon, delta=delta)) * sqrt(features) / ratio
