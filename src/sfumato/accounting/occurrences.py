"""The profile of a sum in which a unit occurs a random number of times: mixtures of Gaussians on a line.

Proof: docs/proofs/occurrences.md
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sfumato.accounting.floats import NUDGE, TINY, Array, float_down, normal_down, normal_up

__all__ = ["kept", "profile"]

LEFT = 2.0**-120  # numbers of vectors that are kept more rarely than this, all together, are let go
POINTS = 1 << 14
ROUNDED = 2.0**-48  # of the dot before: 32 units for the float steps of a chord that falls steeply
BEYOND = 16.0  # standard deviations: the line is looked at so far beyond the outermost law


def kept(number: int, rate: Fraction) -> tuple[list[float], float]:
    """The chances that 0, 1, 2, … of a number of vectors are kept, and what is left for all larger numbers.

    Worked out in whole numbers; each is the nearest float to its exact value.

    >>> kept(2, Fraction(1, 2))
    ([0.25, 0.5, 0.25], 0.0)
    """
    inside, whole = rate.numerator, rate.denominator
    outside, total, found = whole - inside, whole**number, []
    part, left = outside**number, total
    for many in range(number + 1):
        found.append(part / total)
        left -= part
        if left / total <= LEFT:
            break
        part = part * (number - many) * inside // ((many + 1) * outside)
    return found, left / total


def profile(more: int, less: int, rate: Fraction, moved: Fraction) -> Callable[[Array], Array]:
    """δ(ε) of Σ Bin(more)(k)·N(k, 1/moved) against Σ Bin(less)(j)·N(−j, 1/moved), rounded up, as a function of ε.

    Tests of the two are thresholds on the line. The curve is worked out at many thresholds, each with the ε at which it
    is the best one; δ is convex in e^ε, so that chords between these points are above it.
    """
    sigma = math.sqrt(float_down(1 / moved)) * (1 - 2.0**-51)
    right, rest = kept(more, rate)
    left, _ = kept(less, rate)
    places = np.linspace(-(len(left) - 1) - BEYOND * sigma, len(right) - 1 + BEYOND * sigma, POINTS)
    above = _tail(right, 1, places, sigma, up=True) + _up(rest)
    below = _tail(left, -1, places, sigma, up=False)
    loss, slack = _log_ratio(right, left, places, sigma)
    value = np.clip(above * (1 + TINY) - np.exp(np.minimum(loss - slack, 700.0)) * below * (1 - TINY), 0.0, 1.0)
    dots = np.append(-1.0, np.maximum.accumulate(np.expm1(np.minimum(loss + slack, 700.0))))
    least = np.append(1.0, np.minimum.accumulate(value))
    raised = least * (1 + TINY) + ROUNDED * np.append(1.0, least[:-1])

    def found(epsilon: Array) -> Array:
        at = np.expm1(np.minimum(epsilon, 700.0))
        return np.minimum(np.interp(at - NUDGE * np.abs(at), dots, raised), 1.0)

    return found


def _tail(chances: list[float], way: int, places: Array, sigma: float, *, up: bool) -> Array:
    """The chance to lie above each place under a mixture, rounded up or down."""
    total = np.zeros_like(places)
    for many, chance in enumerate(chances):
        away = (way * many - places) / sigma
        slack = NUDGE * (many + np.abs(places)) / sigma
        total += _up(chance) * normal_up(away + slack) if up else _down(chance) * normal_down(away - slack)
    return total


def _log_ratio(right: list[float], left: list[float], places: Array, sigma: float) -> tuple[Array, Array]:
    """The logarithm of the ratio of both densities at each place, and by how much it can be off."""
    numbers = len(right) + len(left)
    farthest = numbers * (np.abs(places) + numbers) / sigma**2
    rarest = max(-math.log(one) for one in (*right, *left) if one > 0)
    slack = NUDGE * (1 + numbers) * (1 + farthest + rarest)
    return _log_mixture(right, 1, places, sigma) - _log_mixture(left, -1, places, sigma), slack


def _log_mixture(chances: list[float], way: int, places: Array, sigma: float) -> Array:
    """ln Σ p_k e^((±k·x − k²/2)/σ²): a mixture over the law at 0."""
    total = np.full_like(places, -np.inf)
    for many, chance in enumerate(chances):
        if chance > 0:
            total = np.logaddexp(total, math.log(chance) + (way * many * places - many**2 / 2) / sigma**2)
    return total


def _up(chance: float) -> float:
    return math.nextafter(chance, math.inf) if chance else 0.0


def _down(chance: float) -> float:
    return math.nextafter(chance, 0.0)
