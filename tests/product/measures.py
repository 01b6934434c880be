"""How far noise is off its size: shared by the tests of what users call."""

from typing import Any

import numpy as np

__all__ = ["check", "off"]

LESS, ROOM = 0.7, 0.1


def off(noise: Any, mean: float) -> float:
    """By which part the mean absolute error is off its expectation."""
    return float(np.abs(np.asarray(noise, dtype=np.float64)).mean()) / mean - 1


def check(noise: Any, mean: float) -> None:
    """The noise has its size, and less of it would be noticed."""
    assert abs(off(noise, mean)) < ROOM
    assert abs(off(LESS * np.asarray(noise, dtype=np.float64), mean)) > ROOM
