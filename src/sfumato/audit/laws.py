"""Finite laws of mechanisms on neighbouring inputs, as probabilities in doubles: what exact attacks compare."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

from sfumato.core.foreign import Array

__all__ = ["flipped", "gaussian", "largest", "one_sided", "pattern", "projected", "softmax", "stopped"]

SILENT = 10**7  # silent queries before each alarm bring the loss of a sparse vector to its limit


def softmax(exponents: Sequence[Fraction]) -> Array:
    """The law of a choice with these exact log-weights."""
    import numpy as np

    weights = np.exp(np.array([float(x) for x in exponents]) - float(max(exponents)))
    return weights / weights.sum()


def flipped(exponents: Sequence[Fraction]) -> Array:
    """The law of permute-and-flip, over all orders of the candidates."""
    import numpy as np

    stop = np.exp([float(x) for x in exponents])
    law = np.zeros(len(stop))
    orders = list(permutations(range(len(stop))))
    for order in orders:
        going = 1 / len(orders)
        for candidate in order:
            law[candidate] += going * stop[candidate]
            going *= 1 - stop[candidate]
    return law


def largest(scores: Sequence[int], scale: Fraction) -> Array:
    """The law of noisy max with ties to the first, by summing over the winner's noise."""
    import numpy as np

    noise = np.arange(-400, 401)
    q = math.exp(-1 / scale)
    law = []
    for winner, score in enumerate(scores):
        chance = q ** np.abs(noise) * (1 - q) / (1 + q)
        for rival, other in enumerate(scores):
            if rival != winner:
                chance = chance * _below(score + noise - other - (1 if rival < winner else 0), q)
        law.append(chance.sum())
    return np.array(law)


def one_sided(best: int, scale: Fraction, *, reach: int = 200) -> Array:
    """The law of a reported maximum with noise that is never negative: a mistake, for the broken noisy max."""
    import numpy as np

    values = np.arange(-reach, reach + 1)
    q = math.exp(-1 / scale)
    return np.where(values >= best, (1 - q) * q ** np.maximum(values - best, 0), 0.0)


def gaussian(shift: int, sigma: float, *, reach: int) -> Array:
    """The law of shift plus rounded Gaussian noise, on −reach to reach, the rest in the two ends."""
    import numpy as np
    from scipy.special import ndtr

    edges = (np.arange(-reach, reach) + 0.5 - shift) / sigma
    lower, upper = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    # Above the centre the difference of upper tails keeps its digits.
    return np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))


def pattern(
    *, silent: int, loud: int, threshold: int, alarms: int, threshold_scale: Fraction, query_scale: Fraction
) -> Array:
    """The chance of many silent queries and a loud one, over and over, and of anything else, in a sparse vector."""
    import numpy as np

    noise = np.arange(-600, 601)
    scale, q = float(threshold_scale), math.exp(-1 / query_scale)
    weights = -np.abs(noise) / scale + math.log(math.tanh(1 / (2 * scale)))
    with np.errstate(divide="ignore"):
        quiet = SILENT * np.log(_below(threshold + noise - silent - 1, q))
        alarm = np.log1p(-_below(threshold + noise - loud - 1, q))
    chance = math.exp(np.logaddexp.reduce(weights + alarms * (quiet + alarm)))
    return np.array([chance, 1 - chance])


def stopped(values: Sequence[int], *, threshold: int, threshold_scale: Fraction, query_scale: Fraction) -> Array:
    """At which of several queries a sparse vector raises its only alarm, and last of all that it raises none."""
    import numpy as np

    noise, scale, q = np.arange(-600, 601), float(threshold_scale), math.exp(-1 / query_scale)
    silent = math.tanh(1 / (2 * scale)) * np.exp(-np.abs(noise) / scale)
    law = []
    for value in values:
        quiet = _below(threshold + noise - value - 1, q)
        law.append(float((silent * (1 - quiet)).sum()))
        silent = silent * quiet
    return np.array([*law, float(silent.sum())])


def projected(move: Sequence[int], sigma_squared: Fraction, *, moved: bool) -> Array:
    """The law of Σ a_j·y_j where y is independent discrete Gaussian noise, or that noise moved by a = ``move``.

    The likelihood ratio of the two is a function of this sum alone, so that nothing of the loss is lost.
    """
    import numpy as np

    reach = int(14 * math.sqrt(sigma_squared)) + 1
    noise = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(sigma_squared)))
    law = np.ones(1)
    for step in (abs(one) for one in move if one):
        spread = np.zeros(2 * step * reach + 1)
        spread[::step] = noise / noise.sum()
        law = np.convolve(law, spread)
    beside = np.zeros(sum(one * one for one in move))
    return np.concatenate([beside, law] if moved else [law, beside])


def _below(values: Array, q: float) -> Array:
    """P(z ≤ value) of the discrete Laplace law with ratio q."""
    import numpy as np

    sizes = np.abs(values)
    return np.where(values >= 0, 1 - q ** (sizes + 1.0) / (1 + q), q**sizes / (1 + q))
