"""Where to look: tilt, grid and window of a composition, chosen by a coarse pilot of each law.

A poor choice costs tightness, never validity. The pilot itself dominates, so that a direction which is known to matter
less can be left out by its Rényi bound alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.accounting import tilted_fft
from sfumato.accounting.connect_the_dots import Dots, atoms, connect, reach, rounded_step
from sfumato.accounting.floats import Array
from sfumato.accounting.profiles import Profile

__all__ = ["PRECISION", "Law", "compose", "within"]

PRECISION = 5e-5  # the share of ε that the grid may add
MOST_POINTS = 1 << 22
FAR = 14.0

_TILTS = 2.0 ** (np.arange(-12, 33) / 3)
_GAIN = _TILTS * np.log(_TILTS / (1 + _TILTS)) - np.log1p(_TILTS)  # of δ over P(loss > ε), as in the Rényi conversion
_DOWN = np.array([-16.0, -4.0, -1.0, -0.25, 0.0])
_SHARES = 2.0 ** (np.arange(-64, 1) / 5)

Law = tuple[Profile, Profile, int]  # the profile in this direction, the one in the other, how often


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One law of a composition in one direction, and the range of losses that is resolved."""

    profile: Profile
    times: int
    bottom: float
    top: float

    @property
    def lost(self) -> bool:
        """Whether every loss lies beyond the top."""
        return bool(self.profile(np.array([self.top]))[0] >= 1)


def _parts(profiles: Sequence[Law], delta: float) -> list[_Part]:
    """What lies above the top of a part is a millionth of δ for all parts together."""
    total = sum(times for _, _, times in profiles)
    return [
        _Part(profile=ahead, times=times, bottom=reach(back, 1e-9 / total), top=reach(ahead, 1e-6 * delta / total))
        for ahead, back, times in profiles
    ]


def within(profiles: Sequence[Law], epsilon: float, delta: float) -> bool:
    """Whether this direction is known to be within (ε, δ) without a transform, by the Rényi conversion of its pilot."""
    parts = _parts(profiles, delta)
    if any(part.lost for part in parts):
        return False
    moments, infinite = _moments(parts, _TILTS)
    exponent = float(np.min(moments + _GAIN - _TILTS * epsilon))
    return math.exp(min(0.0, exponent)) + infinite <= 0.999 * delta


def compose(
    profiles: Sequence[Law],
    precision: float,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
) -> tilted_fft.Composition | None:
    """Choose tilt, grid and window by a coarse pilot, then compose; a poor choice costs tightness, never validity.

    Nothing is returned where some law has no loss within reach at all, so that nothing is known but δ ≤ 1; nor where
    more than ``delta`` is beyond reach, so that no ε goes with it.
    """
    parts = _parts(profiles, 1e-20 if delta is None else delta)
    if any(part.lost for part in parts):
        return None
    total = sum(part.times for part in parts)
    pilot, infinite = _moments(parts, np.concatenate([_TILTS, _DOWN]))
    if delta is not None and infinite > delta:
        return None
    moments, lower = pilot[: len(_TILTS)], pilot[len(_TILTS) :]
    if epsilon is None:
        goal = -math.log(delta or 1.0)
        saddle = int(np.argmin((moments + _GAIN + goal) / _TILTS))
        reached = float((moments[saddle] + _GAIN[saddle] + goal) / _TILTS[saddle])
    else:
        saddle = int(np.argmin(moments + _GAIN - _TILTS * epsilon))
        goal = min(50.0, max(0.0, float(_TILTS[saddle] * epsilon - moments[saddle] - _GAIN[saddle])))
        reached = epsilon
    ends = (moments + goal + FAR) / _TILTS  # Chernoff: about a millionth of δ lies above
    highest = int(np.argmin(ends))
    least = -math.fsum(part.times * part.bottom for part in parts)
    most = math.fsum(part.times * part.top for part in parts)
    tilt, bottom, top = _narrowest(moments, lower, goal=goal, reached=reached, within=(least, most))
    top = max(top, min(float(ends[highest]), most))
    margin = 0.02 * (top - bottom) + 1e-9
    wanted = math.sqrt(12 * precision * max(reached, 1e-3) / (float(_TILTS[saddle]) * total))
    widest = max(top - bottom + 2 * margin, *(part.top + part.bottom for part in parts))
    narrow = math.sqrt(240 * precision * _curvature(moments, saddle) / total)
    wanted = min(wanted, max(narrow, widest / 2**16))
    step = rounded_step(max(min(wanted, (top - bottom) / 512), widest / MOST_POINTS))
    made = [(_connected(part, step), part.times) for part in parts]
    centre, spread = tilted_fft.centre(made, tilt)
    bottom, top = min(bottom - margin, centre - 8 * spread), max(top + margin, centre + 8 * spread)
    start = math.floor(bottom / step)
    size = 1 << max(9, math.ceil(math.log2(top / step - start)))
    window = tilted_fft.Window(start=start, size=size, tilt=tilt, tail_tilt=float(_TILTS[highest]))
    return tilted_fft.compose(made, window)


def _curvature(moments: Array, place: int) -> float:
    """About the variance of the tilted law: the second difference of its log-moments."""
    here = min(max(place, 1), len(_TILTS) - 2)
    left, middle, right = (float(tilt) for tilt in _TILTS[here - 1 : here + 2])
    below, at, above = (float(moment) for moment in moments[here - 1 : here + 2])
    return max(1e-12, 2 * ((above - at) / (right - middle) - (at - below) / (middle - left)) / (right - left))


def _narrowest(
    moments: Array, lower: Array, *, goal: float, reached: float, within: tuple[float, float]
) -> tuple[float, float, float]:
    """The tilt with the narrowest window among those that cost the float error at most e^6, and that window.

    The tilted law is to lie inside up to e^(−FAR) by Chernoff, on both sides: near a change of phase, as sampled
    Gaussians have it, the best tilt for δ would spread it over two places far apart.
    """
    costs = moments + _GAIN - _TILTS * reached + goal
    saddle = int(np.argmin(costs))
    eligible = np.flatnonzero((costs <= 6.0) & (_TILTS[saddle] >= _TILTS))
    lowest = reached - 12 / float(_TILTS[saddle])  # δ is below Chernoff's bound, but not that far
    windows = []
    for place in eligible if len(eligible) else [saddle]:
        tilt, here = float(_TILTS[place]), float(moments[place])
        above = (moments[place + 1 :] - here + FAR) / (_TILTS[place + 1 :] - tilt)
        top = max(reached, min(within[1], float(np.min(above, initial=math.inf))))
        bottom = min(lowest, max(within[0], float(np.max((here - lower - FAR) / (tilt - _DOWN)))))
        windows.append((top - bottom, tilt, bottom, top))
    return min(windows)[1:]


def _connected(part: _Part, step: float) -> Dots:
    low, high = math.floor(-part.bottom / step), math.ceil(part.top / step)
    return connect(part.profile, low=low, high=high, step=step)


def _moments(parts: Sequence[_Part], tilts: Array) -> tuple[Array, float]:
    """Σ times·ln E[e^(tilt·loss)] by tilt, from a coarse but dominating pilot of each part, and its infinite mass."""
    total, infinite = np.zeros(len(tilts)), 0.0
    for part in parts:
        grid = np.concatenate([-part.bottom * _SHARES[::-1], np.zeros(1), part.top * _SHARES])
        masses, beyond = atoms(part.profile, grid)
        kept = masses > 0
        exponents = tilts[:, None] * grid[kept] + np.log(masses[kept])
        largest = exponents.max(axis=1)
        total += part.times * (largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))
        infinite += part.times * beyond
    return total, infinite
