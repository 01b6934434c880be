"""The error of whole strategies: what each costs, and what none can be below."""

import math

from sfumato.mechanisms.matrix.steps.pattern import ADDED, Pattern
from sfumato.streams.reconstruction import spread_of
from sfumato.streams.strategy_encoder import Strategy

__all__ = ["lower_bound", "root_mean_squared"]

ONE = Pattern(times=1, separation=1, change=ADDED)


def root_mean_squared(strategy: Strategy) -> float:
    """The root of the mean squared error of all totals per unit of noise at unit l2 sensitivity, rounding and all.

    >>> from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
    >>> round(root_mean_squared(Toeplitz(form="square root", horizon=64, bits=20)), 4)
    2.2297
    """
    return math.sqrt(float(spread_of(strategy).mean()) * strategy.squared(ONE)) / 2.0**strategy.bits


def lower_bound(horizon: int) -> float:
    """The same for no strategy at all: the mean of the singular values of the matrix of totals; each is 1/(2 sin …).

    >>> round(lower_bound(64), 4)
    2.0401
    """
    angles = ((2 * place - 1) * math.pi / (4 * horizon + 2) for place in range(1, horizon + 1))
    return sum(1 / (2 * math.sin(angle)) for angle in angles) / horizon
