"""Connect the dots: a law on a grid of losses whose profile lies on or above a given profile everywhere.

Between two grid points a profile is convex in e^ε, so the straight line between upper bounds at the grid points is an
upper bound in between; a curve that is piecewise straight in e^ε belongs to atoms at the grid points. Slopes are made
monotone from above, so that rounding can enlarge an atom but never make one negative. Proof: docs/proofs/pld.md
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.accounting.floats import ELEMENTARY, UNIT, Array
from sfumato.accounting.profiles import Profile

__all__ = ["Dots", "atoms", "connect", "reach", "rounded_step"]

OUTWARD = 1 + 4 * ELEMENTARY  # more than an exp, an expm1 and a few operations can be off


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dots:
    """Masses at the losses (low + i)·step, and a mass where the loss is infinite."""

    low: int
    step: float
    masses: Array
    infinite: float

    @property
    def losses(self) -> Array:
        """The grid points; exact, because the step has few significant bits."""
        return self.step * np.arange(self.low, self.low + len(self.masses), dtype=np.float64)

    @property
    def widest(self) -> float:
        """The largest finite loss, in absolute value."""
        return self.step * max(abs(self.low), abs(self.low + len(self.masses) - 1))

    def after(self, loss: float) -> int:
        """How many of the finite losses are at most ``loss``."""
        return int(np.searchsorted(self.losses, loss, side="right"))

    def until(self, loss: float) -> "Dots":
        """The part of the law with losses of at most ``loss``."""
        return Dots(low=self.low, step=self.step, masses=self.masses[: self.after(loss)], infinite=0.0)


def rounded_step(step: float) -> float:
    """A step with 20 significant bits, so that its multiples up to 2^33 are floats without rounding.

    >>> rounded_step(0.1).hex()
    '0x1.9999800000000p-4'
    """
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 2**20) / 2**20, exponent)


def connect(ahead: Profile, back: Profile, *, low: int, high: int, step: float) -> Dots:
    """The atoms at low·step … high·step; what lies above goes to infinity, what lies below is raised to the lowest."""
    masses, infinite = atoms(ahead, back, step * np.arange(low, high + 1, dtype=np.float64))
    return Dots(low=low, step=step, masses=masses, infinite=infinite)


def atoms(ahead: Profile, back: Profile, grid: Array) -> tuple[Array, float]:
    """The masses at the points of any increasing grid that holds 0, and the mass at infinity.

    Only the excess over (1 − e^ε)⁺ is ever subtracted from its neighbour: where samples are rare it is tiny beside 1,
    and differences of numbers near 1 would be noise.
    """
    zero = int(np.searchsorted(grid, 0.0))
    odds = np.exp(grid)
    excess = np.minimum(over_certain(ahead, back, grid, odds), 1.0)
    falls = np.empty(len(grid))
    falls[0] = -excess[0] / odds[0]
    falls[1:] = (excess[:-1] - excess[1:]) / (odds[:-1] * np.expm1(np.diff(grid)))
    falls += (OUTWARD - 1) * np.abs(falls)
    above = np.maximum.accumulate(np.append(0.0, falls[:zero:-1]))[::-1]
    joint = (above[0] - 1) + (OUTWARD - 1) * abs(above[0] - 1)
    below = np.maximum.accumulate(np.append(joint, falls[zero::-1]))[::-1]
    masses = np.empty(len(grid))
    masses[:zero] = odds[:zero] * (below[:zero] - below[1 : zero + 1])
    masses[zero] = below[zero] + (1 - above[0]) + 4 * UNIT
    masses[zero + 1 :] = odds[zero + 1 :] * (above[:-1] - above[1:])
    return masses * OUTWARD, float(excess[-1])


def over_certain(ahead: Profile, back: Profile, grid: Array, odds: Array) -> Array:
    """δ(ε) − (1 − e^ε)⁺: δ itself from 0 on, and below 0 e^ε times the δ(−ε) of the exchanged laws."""
    zero = int(np.searchsorted(grid, 0.0))
    return np.append(odds[:zero] * back(-grid[:zero]) * OUTWARD, ahead(grid[zero:]))


_LADDER = 2.0 ** (np.arange(-30 * 8, 9 * 8 + 1) / 8)


def reach(profile: Profile, tail: float) -> float:
    """A loss above which the profile is at most ``tail``, or hardly above what it is at the largest loss (512)."""
    values = profile(_LADDER)
    enough = max(tail, float(values[-1]) * (1 + 1e-6))
    place = int(np.flatnonzero(values <= enough)[0])
    if place == 0:
        return float(_LADDER[0])
    rungs = np.linspace(_LADDER[place - 1], _LADDER[place], 65)
    return float(rungs[np.flatnonzero(profile(rungs) <= enough)[0]])
