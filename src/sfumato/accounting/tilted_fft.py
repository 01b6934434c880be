"""One FFT for a whole composition, tilted so that the float error is small against δ itself, and bounded.

Every law is multiplied by e^(θ·loss) and normalised before its transform; powers and products of transforms are those
of the composed law, which is tilted back in the end. What wraps around the window only adds; what lies above its upper
end is bounded by Chernoff; the float error enters through the 2-norm. Proof: docs/proofs/pld.md
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from sfumato.accounting.connect_the_dots import Dots
from sfumato.accounting.floats import UNIT, Array, transform_error

__all__ = ["Composition", "Window", "centre", "compose", "log_moment"]

LOGARITHMS = 2000  # in eighths of a unit: that of a mass is above −745, and off by at most 10 units of its size

Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The indices start … start + size − 1 of the composed grid, and the tilts for the law and for its upper tail."""

    start: int
    size: int
    tilt: float
    tail_tilt: float


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

    def delta(self, epsilon: float) -> float:
        """An upper bound of δ(ε); 1 where ε lies below the window, since what lies there was wrapped around."""
        exponent = self.log_scale - self.tilt * epsilon
        if epsilon < self.losses[0] or exponent > 700:
            return 1.0
        from_here = int(np.searchsorted(self.losses, epsilon, side="right"))
        above = self.losses[from_here:] - epsilon
        weights = np.exp(np.maximum(-self.tilt * above, -740.0)) * -np.expm1(-above)
        terms = self.masses[from_here:] * weights
        rounding = 2.0**-40 * float(np.abs(terms).sum())
        noise = self.noise * math.sqrt(float((weights * weights).sum()) + 1e-300) * (1 + 2.0**-40)
        exact = math.exp(exponent) * (float(terms.sum()) + rounding + noise)
        return min(1.0, (exact + self.beyond) * self.growth)

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


def compose(parts: Sequence[tuple[Dots, int]], window: Window) -> Composition:
    """Compose laws on one grid, each a given number of times."""
    size, total = window.size, sum(times for _, times in parts)
    transform = transform_error(size)
    product: Complex = np.ones(size // 2 + 1, dtype=np.complex128)
    scales, tails = [], []
    start = last = 0
    infinite = drift = rounding = 0.0
    for dots, times in parts:
        scale = log_moment(dots, window.tilt)
        tilted = _tilted(dots, window.tilt, scale)
        turns = -(-len(tilted) // size)
        folded = np.zeros(turns * size)
        folded[: len(tilted)] = tilted
        folded = folded.reshape(turns, size).sum(axis=0)
        product = product * _power(fft.rfft(folded), times)
        drift += times * transform * _norm(folded)
        exponents = LOGARITHMS + abs(scale) + (window.tilt + window.tail_tilt) * dots.widest
        rounding += times * UNIT * (8 * exponents + turns)
        scales.append(times * scale)
        tails.append(times * log_moment(dots, window.tail_tilt))
        start += times * dots.low
        last += times * (dots.low + len(dots.masses) - 1)
        infinite += times * dots.infinite
    norm = math.sqrt(2.0) * _norm(np.abs(product)) / math.sqrt(size)
    step = parts[0][0].step
    bottom, top = step * window.start, step * (window.start + size)
    rounding += UNIT * 8 * (window.tilt + window.tail_tilt) * max(abs(bottom), abs(top))
    noise = drift * math.exp(math.sqrt(size) * drift + rounding) + norm * (transform + 8 * UNIT * total)
    above = 0.0 if last < window.start + size else math.exp(min(0.0, math.fsum(tails) - window.tail_tilt * top))
    return Composition(
        losses=step * np.arange(window.start, window.start + size, dtype=np.float64),
        masses=np.roll(fft.irfft(product, size), start - window.start),
        tilt=window.tilt,
        log_scale=math.fsum(scales),
        noise=noise,
        beyond=infinite + above,
        growth=math.exp(rounding),
    )


def _norm(values: Array) -> float:
    return math.sqrt(float((values * values).sum()))  # not through BLAS, whose threads cost more than they save


def _tilted(dots: Dots, tilt: float, log_scale: float) -> Array:
    """mass·e^(tilt·loss − log_scale); a mass that would underflow is kept at 1e-290, which is outward."""
    with np.errstate(divide="ignore"):
        exponents = tilt * dots.losses + np.log(dots.masses) - log_scale
    return np.exp(np.maximum(exponents, -667.0))


def _power(values: Complex, times: int) -> Complex:
    """Integer powers by squaring: each multiplication costs at most √5 units, so ``times`` · 8 covers all of them."""
    result: Complex | None = None
    while times:
        if times & 1:
            result = values if result is None else result * values
        times >>= 1
        if times:
            values = values * values
    return np.ones_like(values) if result is None else result
