"""How much of the error of a linear combination lies within a distance: Fourier inversion, rounded against us.

The error is S = Σ c·z over independent parts with known laws. Its characteristic function is a product of closed
forms, so one sum of a Fourier series gives P(|S| ≤ x), however many parts there are and however fine their lattice. A
small smooth jitter makes the series converge; what it can hide is bounded and taken off. Proof:
docs/proofs/inversion.md
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput, Unsupported
from sfumato.inference.spectrum import Spectrum, spectrum

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato import laws
    from sfumato.core.query import Law

    AnyLaw = Law | laws.Laplace | laws.Gaussian
    Floats = npt.NDArray[np.float64]

__all__ = ["Spread"]

ORDER = 6  # the jitter is a sum of this many uniform ones: the series falls like k^-7
CYCLES = 3  # how far the series goes, in periods of one uniform jitter
BEYOND = 1e-9  # what may lie outside one period of the series
ROUNDING = 1e-10  # floating-point error of the series: some 10^5 terms whose sizes add up to less than 10
MOST_SURE = 1 - Fraction(1, 10**12)
LEAST = Fraction(1, 2**400)
FINE = Fraction(1, 500)  # the jitter reaches this share of a standard deviation, or half a lattice step if more


@dataclass(frozen=True)
class _Series:
    """P(|S + jitter| ≤ x) as a Fourier series of period ``period``, known up to ``doubt``."""

    period: float
    weights: "Floats"
    doubt: float


class Spread:
    """The distribution of S = Σ c·z for independent z, each with its own distribution.

    Guarantee: :meth:`within` is never above P(|S| ≤ x), and below it by at most 10⁻⁶; where there is no lattice, or one
    much finer than the spread, it may be that of a distance shorter by ``fine`` standard deviations. :meth:`margin`
    covers at least what it is asked to. Assumes: double precision, sines and exponentials right to 15 digits.

    >>> from sfumato.laws import DiscreteLaplace
    >>> noise = DiscreteLaplace(scale=Fraction(2))
    >>> two = Spread([(Fraction(1), noise), (Fraction(-1), noise)])
    >>> two.margin(Fraction(19, 20)), round(two.within(Fraction(8)), 6)
    (Fraction(8, 1), 0.956964)
    """

    def __init__(self, terms: "Iterable[tuple[Fraction, AnyLaw]]", *, fine: Fraction = FINE) -> None:
        gathered: dict[tuple[Fraction, AnyLaw], int] = {}
        for coefficient, law in terms:
            if coefficient != 0:
                key = (abs(coefficient), law)  # all laws are symmetric
                gathered[key] = gathered.get(key, 0) + 1
        for coefficient, law in gathered:
            if not LEAST <= coefficient <= 1 / LEAST or law.variance > 1 / LEAST:
                raise Unsupported("the noise in this figure is too large or too small to be computed.")
        self._parts: list[tuple[float, Spectrum, int]] = [
            (float(coefficient), spectrum(law), count) for (coefficient, law), count in gathered.items()
        ]
        self.step = _common_step(
            coefficient * part.step for (coefficient, _), (_, part, _) in zip(gathered, self._parts, strict=True)
        )
        deviation = math.sqrt(sum(count * c * c * part.variance for c, part, count in self._parts))
        self.deviation = max(
            deviation, float(self.step) / 1000
        )  # noise far narrower than its lattice is nearly always 0
        self._fine = float(fine)
        self._made: _Series | None = None

    @property
    def whole(self) -> bool:
        """Whether the lattice is coarse enough for the jitter to change nothing."""
        return float(self.step) >= 2 * self._fine * self.deviation

    def within(self, distance: Fraction) -> float:
        """P(|S| ≤ distance), rounded down: by the series or, far out, by Chernoff's bound."""
        if not self._parts:
            return float(distance >= 0)
        if float(distance) > self._reach:  # no series so far out
            return 1 - self._beyond(float(distance))
        if self.whole:
            # Between two lattice points nothing lies: reach half a step beyond the last one that counts.
            near = self._smooth(float(distance // self.step * self.step + self.step / 2))
        else:
            near = self._smooth(float(distance) - self._jitter)
        return max(near, 1 - self._beyond(float(distance))) if distance >= 0 else 0.0

    def nearer(self, distance: Fraction) -> float:
        """P(|S| < distance), rounded down."""
        if not self._parts:
            return float(distance > 0)
        return self.within(-(-distance // self.step + 1) * self.step if self.whole else distance)

    def margin(self, confidence: Fraction) -> Fraction:
        """The least distance (to a lattice point, or to six digits) within which S lies with this confidence."""
        if confidence > MOST_SURE:
            raise InvalidInput(f"a confidence above {float(MOST_SURE)} is not supported; ask for a little less.")
        if not self._parts:
            return Fraction(0)
        step = self.step if self.whole else _digits(self.deviation)
        low, high = -1, max(1, math.ceil(2 * self.deviation / float(step)))
        while self.within(high * step) < confidence:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.within(middle * step) >= confidence else (middle, high)
        found = high * step
        return found // self.step * self.step if self.step else found  # nothing lies between two lattice points

    @property
    def _jitter(self) -> float:
        return float(self.step) / 2 if self.whole else self._fine * self.deviation

    def _smooth(self, distance: float) -> float:
        """P(|S + jitter| ≤ distance), rounded down."""
        import numpy as np

        if distance <= 0:
            return 0.0
        needed = max(self._reach + distance, 2 * distance) + 2 * self._jitter
        if self._made is None or self._made.period < needed:  # what lies a period further would count as near
            self._made = self._series(needed)
        made = self._made
        turns = np.arange(1, len(made.weights) + 1)
        waves = np.sin(2 * np.pi * turns * (distance / made.period)) / (np.pi * turns)
        found = 2 * distance / made.period + 2 * float((waves * made.weights).sum())
        return max(0.0, min(1.0, found) - made.doubt)

    def _series(self, period: float) -> _Series:
        import numpy as np

        width = 2 * self._jitter / ORDER  # of each uniform part of the jitter
        count = math.ceil(CYCLES * period / width)
        turns = np.arange(1, count + 1, dtype=np.float64)
        frequencies = 2 * np.pi / period * turns
        weights = np.sinc(turns * (width / period)) ** ORDER
        for coefficient, part, times in self._parts:
            weights *= part.wave(coefficient * frequencies) ** times
        left_out = 2 / (np.pi * ORDER) * (period / (np.pi * width * count)) ** ORDER
        return _Series(period=period, weights=weights, doubt=float(left_out) + BEYOND + ROUNDING)

    def _beyond(self, distance: float) -> float:
        """P(|S| ≥ distance), rounded up, by Chernoff's bound at a few rates."""
        least = min(log - rate * distance for rate, log in self._chernoff)
        return min(1.0, 2 * math.exp(min(0.0, least)))

    @cached_property
    def _reach(self) -> float:
        """A distance beyond which less than ``BEYOND`` of S lies."""
        return min((log + math.log(2 / BEYOND)) / rate for rate, log in self._chernoff)

    @cached_property
    def _chernoff(self) -> list[tuple[float, float]]:
        """Rates s with log E e^(sS), from slow to as fast as the laws allow."""
        fastest = min(part.fastest / c for c, part, _ in self._parts)
        top = min(0.95 * fastest, 200 / self.deviation)
        rates = [top / 1.4**power for power in range(36)]
        return [(rate, math.fsum(n * part.log_moment(c * rate) for c, part, n in self._parts)) for rate in rates]


def _common_step(steps: "Iterable[Fraction]") -> Fraction:
    """The largest rational of which all steps are whole multiples; 0 if a part has no lattice."""
    found = Fraction(0)
    for step in steps:
        if step == 0:
            return Fraction(0)
        found = Fraction(
            math.gcd(found.numerator * step.denominator, step.numerator * found.denominator),
            found.denominator * step.denominator,
        )
    return found


def _digits(size: float) -> Fraction:
    """One unit in the sixth digit of a size."""
    return Fraction(10) ** (math.floor(math.log10(size)) - 5)
