"""All ways in which one unit can count in a short stream, for brute force."""

from collections.abc import Iterator
from itertools import combinations, pairwise, product

import numpy as np

from sfumato.streams.strategy_encoder import Strategy, encoder_of

Integers = np.ndarray


def moves(horizon: int, *, times: int, separation: int, each: int) -> Iterator[np.ndarray]:
    """Every vector of what a unit adds to the steps, the one of nothing included."""
    for count in range(times + 1):
        for places in combinations(range(horizon), count):
            if any(b - a < separation for a, b in pairwise(places)):
                continue
            for sizes in product(range(1, each + 1), repeat=count):
                found = np.zeros(horizon, dtype=np.int64)
                found[list(places)] = sizes
                yield found


def differences(horizon: int, *, times: int, separation: int, each: int, swapped: bool) -> list[np.ndarray]:
    """Every difference of two neighbouring streams, up to its sign."""
    ways = list(moves(horizon, times=times, separation=separation, each=each))
    if not swapped:
        return ways
    return [one - other for place, one in enumerate(ways) for other in ways[:place]]


def matrix(strategy: Strategy) -> np.ndarray:
    """What a linear strategy measures of each step alone, a column a step; by running it."""
    eye = np.eye(strategy.horizon, dtype=np.int64)
    return np.stack([encoder_of(strategy).measure(row) for row in eye], axis=1)


def farthest(strategy: Strategy, found: list[np.ndarray]) -> tuple[int, int]:
    """The largest Σ D² and Σ |D| over differences, for a linear strategy."""
    moved = matrix(strategy) @ np.stack(found, axis=1)
    return int((moved**2).sum(axis=0).max()), int(np.abs(moved).sum(axis=0).max())
