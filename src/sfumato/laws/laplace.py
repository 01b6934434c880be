"""The continuous Laplace error distribution."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.exact import Exact, non_negative, positive
from sfumato.laws.margins import Real
from sfumato.laws.tails import exponential

__all__ = ["Laplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Real):
    """Density exp(−|x|/scale)/(2·scale) on the real numbers: the ideal of which noise on a fine lattice is a copy.

    Nothing in Sfumato draws from it. Margins and quantiles are decimals of nine digits, rounded up.
    Proof: docs/proofs/laws.md

    >>> law = Laplace(scale=Fraction(2))
    >>> float(law.margin(0.95)), law.variance, law.mean_absolute_error
    (5.99146455, Fraction(8, 1), Fraction(2, 1))
    """

    KIND: ClassVar[str] = "law.laplace"
    VERSION: ClassVar[int] = 1
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @property
    def variance(self) -> Fraction:
        """2·scale²."""
        return 2 * self.scale**2

    @property
    def mean_absolute_error(self) -> Fraction:
        """The scale."""
        return self.scale

    def tail(self, size: Exact) -> enclosures.Enclosure:
        """P(|x| > size) = exp(−size/scale)."""
        return exponential(non_negative(size, "size") / self.scale)
