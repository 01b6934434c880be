"""Dots from below: a law on a grid of losses whose profile lies on or below a given profile everywhere.

The straight line that extends a chord of a convex curve lies below it. In each cell of the grid two such lines,
through the middle of the cell and either end, give a straight piece below the curve; pieces meet at the grid points at
the lower of two values. What is lost is of the second order in the width of a cell, as for the dots above. Proof:
docs/proofs/pld_bracket.md
"""

import math

import numpy as np

from sfumato.accounting.connect_the_dots import OUTWARD, Dots, over_certain
from sfumato.accounting.floats import UNIT, Array
from sfumato.accounting.profiles import Profile

__all__ = ["connect_below"]

INWARD = 2 - OUTWARD


def connect_below(
    above: tuple[Profile, Profile], below: tuple[Profile, Profile], *, low: int, high: int, step: float
) -> Dots:
    """Atoms at low·step … high·step, from upper and lower bounds of a profile and of that of the exchanged laws.

    Nothing lies at infinity, and what lies above the grid is left out.
    """
    half = step / 2
    grid = step * np.arange(low, high + 1, dtype=np.float64)
    odds = np.exp(grid)
    values = _values(above, below, grid, half, odds)
    zero = -low
    values[: zero + 1] = np.minimum.accumulate(values[zero::-1])[::-1]
    values[zero:] = np.minimum.accumulate(values[zero:])
    falls = np.diff(values) / (odds[:-1] * math.expm1(step))  # the excess rises up to 0, and falls from there on
    rises = np.maximum.accumulate(np.append(0.0, falls[:zero] * OUTWARD))
    if rises[-1] >= 1:  # the curve turns inside one cell, and slopes would be negative: that of equal laws is left
        masses = np.where(np.arange(low, high + 1) == 0, INWARD, 0.0)
        return Dots(low=low, step=step, masses=masses, infinite=0.0)
    slopes = np.minimum.accumulate(np.append((1 - rises[-1]) * INWARD, -falls[zero:] * INWARD))[1:]
    slopes = np.append(slopes, 0.0)
    masses = np.empty(len(grid))
    masses[:zero] = odds[:zero] * np.diff(rises)
    masses[zero] = (1 - rises[-1]) - slopes[0] - 4 * UNIT
    masses[zero + 1 :] = odds[zero + 1 :] * (slopes[:-1] - slopes[1:])
    return Dots(low=low, step=step, masses=np.maximum(masses, 0.0) * INWARD, infinite=0.0)


def _values(
    above: tuple[Profile, Profile], below: tuple[Profile, Profile], grid: Array, half: float, odds: Array
) -> Array:
    """At each grid point a value of the excess such that the straight line between any two neighbours lies below it."""
    middle = grid[:-1] + half
    most = np.minimum(over_certain(*above, grid, odds), 1.0)
    least = over_certain(*below, middle, np.exp(middle)) * (INWARD - 2 * (OUTWARD - 1))
    slack = 16 * UNIT * math.exp(half) * (least + most[:-1] + most[1:])
    left = least - (most[1:] - least) * math.exp(-half) - slack
    right = least - (most[:-1] - least) * math.exp(half) - slack
    empty = (left < 0) | (right < 0)  # the line of two equal laws lies below every profile
    left[empty] = right[empty] = 0.0
    values: Array = np.minimum(np.append(left, 0.0), np.append(0.0, right))
    return values
