"""The interval of a proportion from noisy counts with and without the outcome: one score interval for all that need it.

How many there are in all is not known. The sum of residuals (1 − p)·yes − p·no has mean 0 at the true p; its variance
is that of sampling, n·p(1 − p), and that of the noise, a quadratic in p. All p are kept for which it is not too far
from 0, and the ends are roots of a quadratic. Proof: docs/proofs/population.md
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Reach = Callable[[Floats], Floats]

__all__ = ["proportion_limits"]

ROUNDS = 12
"""How often the multiplier is found anew at an end: it moves by less than 8% from 0 to 1."""


def proportion_limits(
    yes: "Floats",
    total: "Floats",
    noise: "tuple[Floats | float, Floats | float, Floats | float]",
    reach: "Reach",
    *,
    half: float = 0.0,
    rows: int = 1,
) -> "tuple[Floats, Floats]":
    """Low and high of all p with (|yes − p·total| − half)₊ ≤ k(p)·√(rows·n·p(1 − p) + a − 2b·p + c·p²), n = total.

    ``noise`` is (a, b, c), ``reach`` finds the multiplier k at some p, ``half`` is a correction for continuity, and
    ``rows`` is how many rows of one person are alike. Where noise leaves nothing to say it is 0 to 1.

    >>> import numpy as np
    >>> found = proportion_limits(np.array([8.0]), np.array([40.0]), (0.0, 0.0, 0.0), lambda p: 0 * p + 1.96)
    >>> [round(float(each[0]), 3) for each in found]
    [0.105, 0.348]
    """
    import numpy as np

    some = total > 0
    centre = np.clip(np.divide(yes, total, out=np.full(np.shape(total), 0.5), where=some), 0.0, 1.0)
    low = high = centre
    for _ in range(ROUNDS):
        low = _root(yes - half, total, noise, reach(low), rows, side=-1)
        high = _root(yes + half, total, noise, reach(high), rows, side=1)
    low, high = np.where(yes <= half, 0.0, low), np.where(total - yes <= half, 1.0, high)
    return np.minimum(low, centre), np.maximum(high, centre)


def _root(
    yes: "Floats",
    total: "Floats",
    noise: "tuple[Floats | float, Floats | float, Floats | float]",
    k: "Floats",
    rows: int,
    *,
    side: int,
) -> "Floats":
    """One end of {p : (yes − p·n)² ≤ k²(rows·n·p(1 − p) + noise)} within 0 to 1."""
    import numpy as np

    square, sampled = k * k, rows * np.maximum(total, 1.0)
    a = total * total + square * (sampled - noise[2])
    b = -2 * yes * total - square * (sampled - 2 * noise[1])
    c = yes * yes - square * noise[0]
    inside = b * b - 4 * a * c
    good = (a > 0) & (inside >= 0) & (total > 0)
    root = np.sqrt(np.where(good, inside, 0.0))
    # The root of the larger size first, the other by the product of both: no digits are lost.
    larger = -(b + np.where(b >= 0, root, -root)) / 2
    one = np.divide(larger, a, out=np.zeros_like(larger), where=good)
    other = np.divide(c, larger, out=np.zeros_like(larger), where=good & (larger != 0))
    end = np.minimum(one, other) if side < 0 else np.maximum(one, other)
    return np.clip(np.where(good, end, 0.0 if side < 0 else 1.0), 0.0, 1.0)
