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
from sfumato.accounting.dots_below import connect_below
from sfumato.accounting.floats import Array
from sfumato.accounting.profiles import Profile

__all__ = ["PRECISION", "Law", "compose", "within"]

PRECISION = 5e-5  # the share of ε that the grid may add
MOST_POINTS = 1 << 22
FAR = 14.0
MOST_BELOW = 1 << 19
CELLS, FEWEST = 32, 4  # how many cells a lower curve is to have on either side of 0, and how many it must have
BEHIND = 9.0  # e^−9 of δ is what sums of small losses may have of it
FARTHER = 24.0  # where what is wrapped around comes off

_TILTS = 2.0 ** (np.arange(-12, 61) / 3)
_DOWN = np.append(-(4.0 ** np.arange(8, -2, -1)), 0.0)
_SHARES = 2.0 ** (np.arange(-80, 1) / 5)

_STEEPER = 2.0 ** (np.arange(-4, 25) / 4)
_CUTS = [2.0 ** (-power / 3) for power in range(1, 15)]

Law = tuple[Profile, Profile, int]  # the profile in this direction, the one in the other, how often


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One law of a composition in one direction, and the range of losses that is resolved."""

    ahead: Profile
    back: Profile
    times: int
    bottom: float
    top: float

    @property
    def lost(self) -> bool:
        """Whether every loss lies beyond the top."""
        return bool(self.ahead(np.array([self.top]))[0] >= 1)


def _parts(profiles: Sequence[Law], delta: float) -> list[_Part]:
    """What lies above the top of a part is a millionth of δ for all parts together."""
    total = sum(times for _, _, times in profiles)
    return [
        _Part(
            ahead=ahead,
            back=back,
            times=times,
            bottom=reach(back, 1e-9 / total),
            top=reach(ahead, 1e-6 * delta / total),
        )
        for ahead, back, times in profiles
    ]


def within(profiles: Sequence[Law], epsilon: float, delta: float) -> bool:
    """Whether this direction is known to be within (ε, δ) without a transform, by the Rényi conversion of its pilot."""
    parts = _parts(profiles, delta)
    if any(part.lost for part in parts):
        return False
    pilot = _Pilot.of(parts)
    exponent = float(np.min(pilot.moments(_TILTS) + _GAIN - _TILTS * epsilon))
    return math.exp(min(0.0, exponent)) + pilot.infinite <= 0.999 * delta


def compose(
    profiles: Sequence[Law],
    precision: float,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    about: float | None = None,
    jumps: bool = False,
    floors: Sequence[tuple[Profile, Profile]] | None = None,
) -> tilted_fft.Composition | None:
    """Choose tilt, grid and window by a coarse pilot, then compose; a poor choice costs tightness, never validity.

    ``about`` says about what δ is where ε is given: what is far less likely counts as an infinite loss.
    With ``jumps`` the sums in which some loss is large are computed apart from the others, which is for laws whose
    losses are mostly tiny and seldom large. With ``floors``, lower bounds of the profiles both ways, the masses are
    lower bounds, and :meth:`~sfumato.accounting.tilted_fft.Composition.delta_below` is to be asked. Nothing is returned
    where some law has no loss within reach at all, so that nothing is known but δ ≤ 1; nor where more than ``delta`` is
    beyond reach, so that no ε goes with it; nor where large losses cannot be told from the others, or lower bounds not
    be resolved.
    """
    parts = _parts(profiles, delta or about or 1e-20)
    if any(part.lost for part in parts):
        return None
    pilot = _Pilot.of(parts)
    if delta is not None and pilot.infinite > delta:
        return None
    cut = _cut(parts, pilot, delta=delta, epsilon=epsilon) if jumps else None
    if jumps and cut is None:
        return None
    laid = _laid(parts, pilot, precision, cut, delta=delta, epsilon=epsilon, below=floors is not None)
    if floors is not None and laid.step * FEWEST > min(min(part.top, part.bottom) for part in parts):
        return None
    if floors is None:
        made = [(_connected(part, laid.step), part.times) for part in parts]
        return tilted_fft.compose(made, laid.window(made))
    beneath = [
        (_connected_below(part, floor, laid.step), part.times) for part, floor in zip(parts, floors, strict=True)
    ]
    return tilted_fft.compose(beneath, laid.window(beneath), outward=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """Above which loss a loss counts as large, and tilts by which the sums of the others are bounded."""

    at: float
    tilts: tuple[float, ...]


def _cut(parts: Sequence[_Part], pilot: "_Pilot", *, delta: float | None, epsilon: float | None) -> _Cut | None:
    """The largest cut below which the losses alone add next to nothing to δ, if losses above it are rare."""

    def once(at: Array) -> Array:
        together: Array = np.sum([part.times * part.ahead(at) for part in parts], axis=0)
        return together

    asked = reach(once, delta or 0.0) if epsilon is None else epsilon
    room = (float(once(np.array([asked]))[0]) if delta is None else delta) or 1e-20
    goal = -math.log(min(room, 0.5))
    tilts = goal / max(asked, 1e-9) * _STEEPER
    gain = _gain(tilts) - tilts * asked

    def left(share: float) -> Array:
        return pilot.moments(tilts, until=asked * share) + gain

    rare = [share for share in _CUTS if 1e-3 * room < pilot.chance(asked * share) < 1]
    if not rare or float(left(rare[-1]).min()) > -goal - BEHIND:
        return None
    share = next(share for share in rare if float(left(share).min()) <= -goal - BEHIND)
    best = int(left(share).argmin())
    near = tilts[max(0, best - 1) : best + 2]
    return _Cut(at=asked * share, tilts=tuple(float(tilt) for tilt in near))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Laid:
    """What a pilot chose: the grid, the window, the tilts."""

    step: float
    bottom: float
    top: float
    margin: float
    tilt: float
    tail_tilt: float
    sides: tuple[float, float]
    cut: _Cut | None

    def window(self, made: Sequence[tuple[Dots, int]]) -> tilted_fft.Window:
        """The window in whole steps, wide enough for the tilted law as it was made."""
        bottom, top = self.bottom - self.margin, self.top + self.margin
        if self.cut is None:
            centre, spread = tilted_fft.centre(made, self.tilt)
            bottom, top = min(bottom, centre - 8 * spread), max(top, centre + 8 * spread)
        start = math.floor(bottom / self.step)
        return tilted_fft.Window(
            start=start,
            size=1 << max(9, math.ceil(math.log2(top / self.step - start))),
            tilt=self.tilt,
            tail_tilt=self.tail_tilt,
            sides=self.sides,
            cut=None if self.cut is None else self.cut.at,
            low_tilts=() if self.cut is None else self.cut.tilts,
        )


def _laid(
    parts: Sequence[_Part],
    pilot: "_Pilot",
    precision: float,
    cut: _Cut | None,
    *,
    delta: float | None,
    epsilon: float | None,
    below: bool,
) -> _Laid:
    total, far = sum(part.times for part in parts), FARTHER if below else FAR
    jumps = None if cut is None else cut.at
    moments, lower = pilot.moments(_TILTS, above=jumps), pilot.moments(_DOWN, above=jumps)
    if epsilon is None:
        goal = -math.log(delta or 1.0)
        saddle = int(np.argmin((moments + _GAIN + goal) / _TILTS))
        reached = float((moments[saddle] + _GAIN[saddle] + goal) / _TILTS[saddle])
    else:
        saddle = int(np.argmin(moments + _GAIN - _TILTS * epsilon))
        goal = min(50.0, max(0.0, float(_TILTS[saddle] * epsilon - moments[saddle] - _GAIN[saddle])))
        reached = epsilon
    ends = (moments + goal + far) / _TILTS  # Chernoff: about a millionth of δ lies above
    highest = int(np.argmin(ends))
    least = -math.fsum(part.times * part.bottom for part in parts)
    most = math.fsum(part.times * part.top for part in parts)
    chosen, sides, bottom, top = _narrowest(moments, lower, goal=goal, reached=reached, within=(least, most), far=far)
    top = max(top, min(float(ends[highest]), most))
    margin = 0.02 * (top - bottom) + 1e-9
    widest = max(top - bottom + 2 * margin, *(part.top + part.bottom for part in parts))
    steep, wide = float(_TILTS[saddle]), precision * max(reached, 1e-3)
    wanted = math.sqrt(12 * wide / (steep * total))
    if cut is None:
        narrow = math.sqrt(240 * precision * _curvature(moments, saddle) / total)
        wanted = min(wanted, max(narrow, widest / 2**16))
    else:  # a step above all but a few losses widens their sum by 2·step for each of the share that δ(0) is
        kink = math.fsum(part.times * float(part.ahead(np.zeros(1))[0]) for part in parts)
        wanted = min(max(wanted, 2 * wide / (steep * kink)), math.sqrt(12 * wide / steep))
    if below:  # a lower curve needs several cells on either side of 0, where the curve turns
        wanted = min(wanted, *(min(part.top, part.bottom) / CELLS for part in parts))
    step = rounded_step(max(min(wanted, (top - bottom) / 512), widest / (MOST_BELOW if below else MOST_POINTS)))
    return _Laid(
        step=step,
        bottom=bottom,
        top=top,
        margin=margin,
        tilt=chosen,
        tail_tilt=float(_TILTS[highest]),
        sides=sides,
        cut=cut,
    )


def _curvature(moments: Array, place: int) -> float:
    """About the variance of the tilted law: the second difference of its log-moments."""
    here = min(max(place, 1), len(_TILTS) - 2)
    left, middle, right = (float(tilt) for tilt in _TILTS[here - 1 : here + 2])
    below, at, above = (float(moment) for moment in moments[here - 1 : here + 2])
    return max(1e-12, 2 * ((above - at) / (right - middle) - (at - below) / (middle - left)) / (right - left))


def _narrowest(
    moments: Array, lower: Array, *, goal: float, reached: float, within: tuple[float, float], far: float
) -> tuple[float, tuple[float, float], float, float]:
    """The tilt with the narrowest window among those that cost the float error at most e^6, tilts beside it, and it.

    The tilted law is to lie inside up to e^(−far) by Chernoff, on both sides: near a change of phase, as sampled
    Gaussians have it, the best tilt for δ would spread it over two places far apart.
    """
    costs = moments + _GAIN - _TILTS * reached + goal
    saddle = int(np.argmin(costs))
    eligible = np.flatnonzero((costs <= 6.0) & (_TILTS[saddle] >= _TILTS))
    lowest = reached - 12 / float(_TILTS[saddle])  # δ is below Chernoff's bound, but not that far
    windows = []
    for place in eligible if len(eligible) else [saddle]:
        tilt, here = float(_TILTS[place]), float(moments[place])
        above = np.append((moments[place + 1 :] - here + far) / (_TILTS[place + 1 :] - tilt), math.inf)
        beneath = (here - lower - far) / (tilt - _DOWN)
        top = max(reached, min(within[1], float(np.min(above))))
        bottom = min(lowest, max(within[0], float(np.max(beneath))))
        steeper = min(int(place) + 1 + int(np.argmin(above)), len(_TILTS) - 1)
        sides = (float(_DOWN[int(np.argmax(beneath))]), float(_TILTS[steeper]))
        windows.append((top - bottom, tilt, sides, bottom, top))
    return min(windows)[1:]


def _connected(part: _Part, step: float) -> Dots:
    low, high = math.floor(-part.bottom / step), math.ceil(part.top / step)
    return connect(part.ahead, part.back, low=low, high=high, step=step)


def _connected_below(part: _Part, floor: tuple[Profile, Profile], step: float) -> Dots:
    low, high = math.floor(-part.bottom / step), math.ceil(part.top / step)
    return connect_below((part.ahead, part.back), floor, low=low, high=high, step=step)


def _gain(tilts: Array) -> Array:
    """Of δ over P(loss > ε), as in the Rényi conversion."""
    gain: Array = tilts * np.log(tilts / (1 + tilts)) - np.log1p(tilts)
    return gain


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Pilot:
    """Each law on a coarse grid, dominating, with how often it comes; and the infinite mass of all together."""

    laws: tuple[tuple[Array, Array, int], ...]
    infinite: float

    @classmethod
    def of(cls, parts: Sequence[_Part]) -> "_Pilot":
        """The pilot of these parts."""
        laws, infinite = [], 0.0
        for part in parts:
            grid = np.concatenate([-part.bottom * _SHARES[::-1], np.zeros(1), part.top * _SHARES])
            masses, beyond = atoms(part.ahead, part.back, grid)
            kept = masses > 0
            laws.append((grid[kept], np.log(masses[kept]), part.times))
            infinite += part.times * beyond
        return cls(laws=tuple(laws), infinite=infinite)

    def chance(self, loss: float) -> float:
        """About how many losses lie above this one."""
        return math.fsum(times * float(np.exp(logs[grid > loss]).sum()) for grid, logs, times in self.laws)

    def moments(self, tilts: Array, *, until: float = math.inf, above: float | None = None) -> Array:
        """Σ times·ln E[e^(tilt·loss)] by tilt: of all losses, of those up to one, or of sums with one above another."""
        total, share = np.zeros(len(tilts)), np.zeros(len(tilts))
        for grid, logs, times in self.laws:
            kept = grid <= until
            exponents = tilts[:, None] * grid[kept] + logs[kept]
            largest = exponents.max(axis=1)
            powers = np.exp(exponents - largest[:, None])
            whole = powers.sum(axis=1)
            total += times * (largest + np.log(whole))
            if above is not None:
                share += times * powers[:, grid[kept] > above].sum(axis=1) / whole
        return total if above is None else total + np.minimum(0.0, np.log(np.maximum(share, 1e-300)))


_GAIN = _gain(_TILTS)
