"""The error of a linear combination on a very fine lattice: by the continuous law that it nearly has, rounded outward.

Sums, means and variances are drawn on a lattice of a thousand millionth of their range. A discrete Laplace draw is a
continuous one moved by less than one step, and a rounded Gaussian one by at most half a step; so the combination is a
continuous one moved by at most the sum of its coefficients. For that there are closed forms. Proof:
docs/proofs/inversion.md
"""

import math
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any  # floats, or decimals where those lose digits

from sfumato import laws
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.core.query import Law

__all__ = ["ContinuousBound", "combined", "continuous_bound", "width_of"]

COARSE = 1e-3  # a lattice is fine where its steps together are less than this share of a standard deviation
APART = 1.0001  # scales that are closer are taken apart, the larger one growing: a wider error is the safe side
MOST = 16  # Laplace scales; each costs up to four digits
SPARE = 18  # digits beyond those that the scales cost
SHORT = 3  # up to this many scales double precision is enough
UNIT = 1e-14
ROUNDING = 1e-13


class ContinuousBound:
    """P(|S| ≤ x) for S = Σ c·z, never above the truth.

    Assumes: double precision, exponentials and the error function right to 13 digits.
    """

    __slots__ = ("_digits", "_scales", "_sigma", "_slack", "_weights", "deviation")

    def __init__(self, *, scales: list[float], sigma: float, slack: float) -> None:
        self._scales, self._sigma, self._slack = scales, sigma, slack
        self._digits = Context(prec=SPARE + 4 * len(scales))
        if len(scales) <= SHORT:
            self._weights: list[Any] = _weights(scales)
        else:
            with localcontext(self._digits):
                self._weights = _weights([Decimal(scale) for scale in scales])
        self.deviation = math.sqrt(sigma**2 + 2 * math.fsum(b * b for b in scales))

    def within(self, distance: float) -> float:
        """P(|S| ≤ distance), rounded down."""
        left = (distance - self._slack) * (1 - ROUNDING)
        if left <= 0:
            return 0.0
        if not self._scales:
            return max(0.0, math.erf(left / (self._sigma * math.sqrt(2))) - ROUNDING)
        if len(self._scales) <= SHORT:
            tails = [weight * math.exp(-left / b) for weight, b in zip(self._weights, self._scales, strict=True)]
            lost = UNIT * math.fsum(abs(weight) for weight in self._weights)
            return max(0.0, 1 - math.fsum(tails) - lost - ROUNDING)
        with localcontext(self._digits):
            reach = Decimal(left)
            far = [weight * (-reach / Decimal(b)).exp() for weight, b in zip(self._weights, self._scales, strict=True)]
            return max(0.0, float(1 - sum(far)) - ROUNDING)

    def margin(self, confidence: Fraction) -> Fraction:
        """A distance of six digits, rounded up, within which S lies with this confidence."""
        unit = Fraction(10) ** (math.floor(math.log10(self.deviation)) - 5)
        low, high = 0, 1
        while self.within(float(high * unit)) < confidence:
            if high > 2**80:
                raise InvalidInput(f"a confidence of {float(confidence)} is not supported; ask for a little less.")
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.within(float(middle * unit)) >= confidence else (middle, high)
        return high * unit


def continuous_bound(terms: "Iterable[tuple[Fraction, Law]]") -> ContinuousBound | None:
    """The combination, if all its noise is of one kind and its lattice is fine; else None.

    >>> noise = laws.DiscreteLaplace(scale=Fraction(2**30))
    >>> two = continuous_bound([(Fraction(1, 2**30), noise), (Fraction(-1, 2**30), noise)])
    >>> round(two.within(3.0), 3), continuous_bound([(Fraction(1), laws.DiscreteLaplace(scale=Fraction(2)))])
    (0.876, None)
    """
    held = [(float(coefficient), width_of(law)) for coefficient, law in terms]
    return combined(held)


Width = tuple[bool, float]
"""Whether a law is Gaussian, and its scale or standard deviation; None for other laws."""


def width_of(law: "Law") -> Width | None:
    """What a closed form needs to know of a law."""
    match law:
        case laws.DiscreteLaplace(scale=scale):
            return False, float(scale)
        case laws.RoundedGaussian(sigma=sigma):
            return True, float(sigma)
    return None


def combined(terms: Sequence[tuple[float, Width | None]]) -> ContinuousBound | None:
    """The same as :func:`continuous_bound`, of coefficients in double precision."""
    scales: list[float] = []
    variance = slack = 0.0
    for coefficient, width in terms:
        if width is None:
            return None
        gaussian, size = width
        if coefficient == 0:
            continue
        slack += abs(coefficient) * (0.5 if gaussian else 1.0)
        if gaussian:
            variance += (coefficient * size) ** 2
        else:
            scales.append(abs(coefficient) * size)
    if (scales and variance) or len(scales) > MOST:
        return None
    found = ContinuousBound(scales=_apart(scales), sigma=math.sqrt(variance), slack=slack)
    return found if found.deviation > 0 and slack < COARSE * found.deviation else None


def _weights(scales: list[Any]) -> list[Any]:
    """What each scale counts for in the tail: Π b²/(b² − c²) over the others."""
    squares = [scale * scale for scale in scales]
    return [
        math.prod(b / (b - c) for other, c in enumerate(squares) if other != place) for place, b in enumerate(squares)
    ]


def _apart(scales: list[float]) -> list[float]:
    """Scales that differ enough for a stable formula, none of them smaller than it was."""
    found: list[float] = []
    for scale in sorted(scales):
        found.append(max(scale, found[-1] * APART) if found else scale)
    return found
