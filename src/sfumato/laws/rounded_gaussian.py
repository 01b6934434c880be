"""The law of a Gaussian error rounded to whole numbers: what the Gaussian mechanism adds."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, positive
from sfumato.laws import margins

__all__ = ["RoundedGaussian"]

HALF = Fraction(1, 2)
REACH = Fraction(200)  # beyond 200 standard deviations the tail at 200 is an upper bound, and below 2^-28000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedGaussian:
    """P(z) = Φ((z + ½)/σ) − Φ((z − ½)/σ) on the whole numbers: the nearest whole number to N(0, σ²).

    >>> law = RoundedGaussian(sigma=Fraction(10))
    >>> law.margin(0.95), float(law.variance), round(float(law.mean_absolute_error), 3)
    (20, 100.08333333333333, 7.979)
    """

    KIND: ClassVar[str] = "law.rounded_gaussian"
    VERSION: ClassVar[int] = 1
    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))

    @property
    def variance(self) -> Fraction:
        """At most σ² + 1/12, and that up to 10^-8 from σ = 1 on; a direct sum below.

        By Poisson summation the difference is an alternating series in e^(−2π²n²σ²) whose first term is negative.
        """
        if self.sigma >= 1:
            return self.sigma**2 + Fraction(1, 12)
        # Σ (2k − 1) P(|z| ≥ k); beyond 64 the tail of a σ below 1 is under 2^-2900 and one last term bounds the rest.
        return sum((((2 * k - 1) * self.tail(k - 1).high) for k in range(1, 65)), Fraction(1, 2**128))

    @property
    def mean_absolute_error(self) -> Fraction:
        """At most σ√(2/π): E|z| = 2ΣΦ(−(k − ½)/σ), a midpoint sum of a convex function, lies below its integral."""
        return enclosures.sqrt(2 * self.sigma**2 / enclosures.pi().low).high

    def tail(self, size: int) -> enclosures.Enclosure:
        """P(|z| > size) = 2Φ(−(size + ½)/σ)."""
        steps = (natural(size, "size", least=0) + HALF) / self.sigma
        reach = enclosures.normal_cdf(-min(REACH, steps))
        return enclosures.Enclosure(2 * reach.low if steps <= REACH else Fraction(0), 2 * reach.high)

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        return margins.covers(self, margin, confidence, numbers)

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        return margins.margin(self, confidence, numbers)

    def quantile(self, level: Exact) -> int:
        """The least whole number m with P(z ≤ m) at least ``level``."""
        return margins.quantile(self, level)
