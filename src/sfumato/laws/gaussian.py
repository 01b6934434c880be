"""The continuous Gaussian error distribution."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.exact import Exact, non_negative, positive
from sfumato.laws.margins import Real
from sfumato.laws.tails import normal

__all__ = ["Gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Real):
    """N(0, σ²) on the real numbers: the ideal of which the rounded and the discrete Gaussian are copies.

    Nothing in Sfumato draws from it. Margins and quantiles are decimals of nine digits, rounded up.
    Proof: docs/proofs/laws.md

    >>> law = Gaussian(sigma=Fraction(10))
    >>> float(law.margin(0.95)), law.variance, round(float(law.mean_absolute_error), 3)
    (19.5996399, Fraction(100, 1), 7.979)
    """

    KIND: ClassVar[str] = "law.gaussian"
    VERSION: ClassVar[int] = 1
    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))

    @property
    def variance(self) -> Fraction:
        """σ²."""
        return self.sigma**2

    @property
    def mean_absolute_error(self) -> Fraction:
        """σ√(2/π), rounded up."""
        return enclosures.sqrt(2 * self.sigma**2 / enclosures.pi().low).high

    def tail(self, size: Exact) -> enclosures.Enclosure:
        """P(|x| > size) = 2Φ(−size/σ)."""
        return normal(non_negative(size, "size") / self.sigma)
