"""One FFT for a whole composition, tilted so that the float error is small against δ itself, and bounded.

Every law is multiplied by e^(θ·loss) and normalised before its transform; powers and products of transforms are those
of the composed law, which is tilted back in the end. What wraps around the window only adds; what lies above its upper
end is bounded by Chernoff; the float error enters through the 2-norm. Proof: docs/proofs/pld.md
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import fft

from sfumato.accounting.connect_the_dots import Dots
from sfumato.accounting.floats import UNIT, Array, transform_error

__all__ = ["Composition", "Window", "centre", "compose", "log_moment"]

LOGARITHMS = 2000  # in eighths of a unit: that of a mass is above −745, and off by at most 10 units of its size

Complex = npt.NDArray[np.complex128]
Pair = tuple[Complex | None, Complex]  # B^n and (B + J)^n − B^n; no B where nothing lies below the cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The indices start … start + size − 1 of the composed grid, and the tilts for the law and for its upper tail.

    With a ``cut`` only the sums in which some loss lies above it are computed, so that the float error is small against
    those; the others are bounded by Chernoff at ``low_tilts``.
    """

    start: int
    size: int
    tilt: float
    tail_tilt: float
    sides: tuple[float, float] = (0.0, 0.0)  # tilts below and above ``tilt``, for what lies outside the window
    cut: float | None = None
    low_tilts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Composition:
    """The composed law in its window, tilted by e^(tilt·loss)/e^log_scale, with the bounds on what it lacks."""

    losses: Array
    masses: Array
    tilt: float
    log_scale: float
    noise: float  # bound on the 2-norm of the float error of ``masses``
    beyond: float  # bound on the probability of losses above the window, infinite ones included
    growth: float  # bound on the relative error of each exact mass, as a factor
    wrapped: float = 0.0  # bound on the tilted mass outside the window, which lies inside it now
    low_tilts: Array = field(default_factory=lambda: np.zeros(0))
    low_moments: Array = field(default_factory=lambda: np.zeros(0))  # of the sums that were left out, and the gain

    def delta(self, epsilon: float) -> float:
        """An upper bound of δ(ε); 1 where ε lies below the window, since what lies there was wrapped around."""
        exponent = self.log_scale - self.tilt * epsilon
        if epsilon < self.losses[0] or exponent > 700:
            return 1.0
        total, slack, _ = self._parts(epsilon)
        exact = math.exp(exponent) * (total + slack)
        return min(1.0, (exact + self.beyond + self.left_out(epsilon)) * self.growth)

    def delta_below(self, epsilon: float) -> float:
        """A lower bound of δ(ε), if the masses are lower bounds: float error and what was wrapped around come off."""
        exponent = self.log_scale - self.tilt * epsilon
        if epsilon < self.losses[0] or exponent > 700:
            return 0.0
        total, slack, highest = self._parts(epsilon)
        least = total - slack - highest * self.wrapped * (1 + 2.0**-40)
        return max(0.0, math.exp(exponent) * least / self.growth * (1 - 2.0**-40))

    def slack_at(self, epsilon: float) -> float:
        """The share of δ(ε) that was not computed but bounded: float error, sums that were left out, losses beyond."""
        whole = self.delta(epsilon)
        if whole >= 1:
            return 1.0
        computed = math.exp(self.log_scale - self.tilt * epsilon) * self._parts(epsilon)[0]
        return 1 - computed / whole if whole else 0.0

    def left_out(self, epsilon: float) -> float:
        """A bound on the share in δ(ε) of the sums that have no loss above the cut."""
        if not len(self.low_tilts):
            return 0.0
        least = float(np.min(self.low_moments - self.low_tilts * epsilon * (1 - 2.0**-50)))
        return math.exp(min(0.0, least)) * (1 + 2.0**-40)

    def _parts(self, epsilon: float) -> tuple[float, float, float]:
        """Σ mass·weight over the losses above ε, a bound on its float error, and the largest weight."""
        from_here = int(np.searchsorted(self.losses, epsilon, side="right"))
        above = self.losses[from_here:] - epsilon
        weights = np.exp(np.maximum(-self.tilt * above, -740.0)) * -np.expm1(-above)
        terms = self.masses[from_here:] * weights
        rounding = 2.0**-40 * float(np.abs(terms).sum())
        noise = self.noise * math.sqrt(float((weights * weights).sum()) + 1e-300) * (1 + 2.0**-40)
        return float(terms.sum()), rounding + noise, float(weights.max(initial=0.0))

    def epsilon(self, delta: float) -> float:
        """An ε inside the window with ``self.delta(ε) ≤ delta``, close to the least; infinite where there is none."""
        place = self._first(delta)
        if place is None:
            return math.inf
        right = float(self.losses[place])
        if place == 0:
            return right
        left = float(self.losses[place - 1])
        bottom, top = self.delta(right), self.delta(left)
        for _ in range(3):  # inside a cell δ is straight in e^ε: false position is nearly exact
            if not top > delta:
                return left
            share = (top - delta) / (top - bottom) + 1e-6
            middle = left + math.log1p(share * math.expm1(right - left))
            if not left < middle < right:
                break
            value = self.delta(middle)
            if value <= delta:
                right, bottom = middle, value
            else:
                left, top = middle, value
        return right

    def _first(self, delta: float) -> int | None:
        """The first index at which δ is at most ``delta``, by galloping from a guess and halving."""
        last = len(self.losses) - 1
        low, high, step = -1, self._near(delta), 1
        while self.delta(float(self.losses[high])) > delta:
            if high == last:
                return None
            low, high, step = high, min(last, high + step), 2 * step
        step = 1
        while high - low > 1 and high - step > low:
            middle = high - step
            if self.delta(float(self.losses[middle])) > delta:
                low = middle
                break
            high, step = middle, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.delta(float(self.losses[middle])) <= delta else (middle, high)
        return high

    def _near(self, delta: float) -> int:
        """The index of the first loss at which δ is about ``delta``, by two running sums; it is only where to start."""
        centre = min(max((self.log_scale - math.log(delta)) / self.tilt, self.losses[0]), self.losses[-1])
        first = int(np.searchsorted(self.losses, centre - 600 / max(self.tilt, 1.0)))
        away = self.losses[first:] - centre
        mass = self.masses[first:] * np.exp(np.maximum(-self.tilt * away, -700.0))
        factor = np.exp(np.maximum(-away, -700.0))
        total, reduced = np.cumsum(mass[::-1])[::-1], np.cumsum((mass * factor)[::-1])[::-1]
        goal = (delta / self.growth - self.beyond) * math.exp(min(self.tilt * centre - self.log_scale, 700.0))
        above = np.flatnonzero(total - reduced / factor > goal)  # far to the left there is only noise
        return min(first + int(above[-1]) + 1, len(self.losses) - 1) if len(above) else first


def log_moment(dots: Dots, tilt: float) -> float:
    """ln Σ mass·e^(tilt·loss) over finite losses, computed without overflow."""
    with np.errstate(divide="ignore"):
        exponents = tilt * dots.losses + np.log(dots.masses)
    largest = float(exponents.max())
    return largest + math.log(float(np.exp(exponents - largest).sum()))


def centre(parts: Sequence[tuple[Dots, int]], tilt: float) -> tuple[float, float]:
    """About the mean and the standard deviation of the tilted composition; only the window is chosen by them."""
    mean = variance = 0.0
    for dots, times in parts:
        law = _tilted(dots, tilt, log_moment(dots, tilt))
        middle = float((law * dots.losses).sum())
        mean += times * middle
        variance += times * float((law * (dots.losses - middle) ** 2).sum())
    return mean, math.sqrt(variance)


def compose(parts: Sequence[tuple[Dots, int]], window: Window, *, outward: bool = True) -> Composition:
    """Compose laws on one grid, each a given number of times; ``outward`` says that masses may be raised, not lowered.

    Without a cut every loss counts as lying above it. Let B and J be the transforms of a law below and above the cut:
    (B + J)^n − B^n is what is carried, by sums and products alone.
    """
    size, total = window.size, sum(times for _, times in parts)
    transform = transform_error(size)
    pair: Pair | None = None
    scales, jumps = [], 0.0
    start = last = 0
    infinite = rounding = drift_low = drift_jump = spread = 0.0
    for dots, times in parts:
        scale = log_moment(dots, window.tilt)
        tilted = _tilted(dots, window.tilt, scale, outward=outward)
        place = 0 if window.cut is None else dots.after(window.cut)
        jump = _folded(tilted[place:], place, size)
        beneath = None if window.cut is None else _folded(tilted[:place], 0, size)
        powered = _power(None if beneath is None else fft.rfft(beneath), fft.rfft(jump), times)
        pair = powered if pair is None else _joined(pair, powered)
        drift_jump += times * transform * _norm(jump)
        drift_low += 0.0 if beneath is None else times * transform * _norm(beneath)
        spread += times * _norm(jump)
        jumps += times * float(jump.sum()) * (1 + 2.0**-30)
        turns = -(-len(tilted) // size) + 1
        exponents = LOGARITHMS + abs(scale) + (window.tilt + window.tail_tilt) * dots.widest
        rounding += times * UNIT * (8 * exponents + turns)
        scales.append(times * scale)
        start += times * dots.low
        last += times * (dots.low + len(dots.masses) - 1)
        infinite += times * dots.infinite
    product = pair[1] if pair else np.ones(size // 2 + 1, dtype=np.complex128)
    norm = math.sqrt(2.0) * _norm(np.abs(product)) / math.sqrt(size)
    step = parts[0][0].step
    bottom, top = step * window.start, step * (window.start + size)
    rounding += UNIT * 8 * (window.tilt + window.tail_tilt) * max(abs(bottom), abs(top))
    rooted = math.sqrt(size)
    grown = math.exp(min(700.0, rooted * (drift_low + drift_jump) + rounding))
    drift = drift_jump + drift_low * min(1.0, jumps + rooted * drift_jump)
    powers = norm if window.cut is None else spread + rooted * drift_jump
    noise = grown * drift + norm * transform + 8 * UNIT * total * powers * (1.0 if window.cut is None else grown)
    covered = last < window.start + size
    above = (
        0.0
        if covered
        else math.exp(min(0.0, _log_moments(parts, window.tail_tilt, window.cut) - window.tail_tilt * top))
    )
    low_tilts = np.array(window.low_tilts)
    return Composition(
        losses=step * np.arange(window.start, window.start + size, dtype=np.float64),
        masses=np.roll(fft.irfft(product, size), start - window.start),
        tilt=window.tilt,
        log_scale=math.fsum(scales),
        noise=noise,
        beyond=infinite + above,
        growth=math.exp(rounding),
        wrapped=0.0 if outward else _outside(parts, window, math.fsum(scales), (start >= window.start, covered)),
        low_tilts=low_tilts,
        low_moments=np.array([_left_out(parts, window, tilt, total) for tilt in window.low_tilts]),
    )


def _log_moments(parts: Sequence[tuple[Dots, int]], tilt: float, cut: float | None = None) -> float:
    """ln E[e^(tilt·loss)] of the composition; with a cut a bound of it for the sums that have a loss above."""
    whole = math.fsum(times * log_moment(dots, tilt) for dots, times in parts)
    if cut is None:
        return whole
    share = math.fsum(times * _share_above(dots, cut, tilt) for dots, times in parts)
    return whole + min(0.0, math.log(max(share, 1e-300)) + 1e-9)


def _left_out(parts: Sequence[tuple[Dots, int]], window: Window, tilt: float, total: int) -> float:
    """The log-moment of the sums without a loss above the cut, with the gain of δ over P(loss > ε), rounded up."""
    cut = math.inf if window.cut is None else window.cut
    kept = [(dots.until(cut), times) for dots, times in parts]
    widest = max(dots.widest for dots, _ in kept)
    moment = _log_moments(kept, tilt)
    gain = tilt * math.log(tilt / (1 + tilt)) - math.log1p(tilt)
    return moment + gain + 2.0**-40 * (1 + tilt) + 8 * UNIT * total * (LOGARITHMS + abs(moment / total) + tilt * widest)


def _outside(parts: Sequence[tuple[Dots, int]], window: Window, scale: float, covered: tuple[bool, bool]) -> float:
    """Chernoff's bound on the tilted mass outside the window, on both sides, rounded up."""
    step, total = parts[0][0].step, sum(times for _, times in parts)
    bottom, top = step * window.start, step * (window.start + window.size)
    bound = 0.0
    for side, end, nothing in zip(window.sides, (bottom, top), covered, strict=True):
        if nothing:
            continue
        widest = max(dots.widest for dots, _ in parts)
        moment = _log_moments(parts, side, window.cut)
        slack = 8 * UNIT * total * (2 * LOGARITHMS + (abs(side) + window.tilt) * widest) + 1e-9
        bound += math.exp(min(0.0, moment - scale - (side - window.tilt) * end + slack))
    return min(1.0, bound)


def _share_above(dots: Dots, cut: float, tilt: float) -> float:
    """The share of the tilted law that lies above the cut, in floats."""
    law = _tilted(dots, tilt, log_moment(dots, tilt))
    return float(law[dots.after(cut) :].sum())


def _folded(values: Array, offset: int, size: int) -> Array:
    """The values from index ``offset`` on, taken modulo ``size``."""
    turns = -(-(len(values) + offset) // size) or 1
    wide = np.zeros(turns * size)
    wide[offset : offset + len(values)] = values
    folded: Array = wide.reshape(turns, size).sum(axis=0)
    return folded


def _norm(values: Array) -> float:
    return math.sqrt(float((values * values).sum()))  # not through BLAS, whose threads cost more than they save


def _tilted(dots: Dots, tilt: float, log_scale: float, *, outward: bool = True) -> Array:
    """mass·e^(tilt·loss − log_scale); what would underflow is kept at 1e-290 if that is outward, else left out."""
    with np.errstate(divide="ignore"):
        exponents = tilt * dots.losses + np.log(dots.masses) - log_scale
    if outward:
        return np.exp(np.maximum(exponents, -667.0))
    return np.where(exponents < -667.0, 0.0, np.exp(np.maximum(exponents, -667.0)))


def _joined(one: Pair, other: Pair) -> Pair:
    """Both pairs multiplied: (BB′, D(B′ + D′) + BD′)."""
    (low, jump), (low_other, jump_other) = one, other
    if low is None and low_other is None:
        return None, jump * jump_other
    if low is None or low_other is None:
        raise TypeError("a cut is one for all laws")
    return low * low_other, jump * (low_other + jump_other) + low * jump_other


def _power(low: Complex | None, jump: Complex, times: int) -> Pair:
    """Integer powers by squaring. ``times`` · 8 units cover every multiplication (√5 units) and addition (1)."""
    result: Pair | None = None
    base: Pair = (low, jump)
    while times:
        if times & 1:
            result = base if result is None else _joined(result, base)
        times >>= 1
        if times:
            base = _squared(base)
    if result is not None:
        return result
    return (None, np.ones_like(jump)) if low is None else (np.ones_like(low), np.zeros_like(jump))


def _squared(pair: Pair) -> Pair:
    low, jump = pair
    if low is None:
        return None, jump * jump
    return low * low, jump * (2 * low + jump)
