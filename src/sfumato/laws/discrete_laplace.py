"""The discrete Laplace error distribution: variance, tails, quantiles and margins, all rounded against us."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import natural, positive
from sfumato.laws.margins import WholeNumberLaw
from sfumato.laws.tails import exponential

__all__ = ["DiscreteLaplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(WholeNumberLaw):
    """P(z) = (1 − q)/(1 + q) · q^|z| on the whole numbers, with q = exp(−1/scale).

    >>> law = DiscreteLaplace(scale=Fraction(2))
    >>> law.margin(0.95), round(float(law.variance), 3), round(float(law.mean_absolute_error), 3)
    (6, 7.835, 1.919)
    """

    KIND: ClassVar[str] = "law.discrete_laplace"
    VERSION: ClassVar[int] = 1
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @property
    def variance(self) -> Fraction:
        """2q/(1 − q)², rounded up."""
        return _variance(self.scale)

    @property
    def mean_absolute_error(self) -> Fraction:
        """2q/(1 − q²), rounded up."""
        q = _ratio(self.scale)
        return 2 * q / (1 - q**2)

    def tail(self, size: int) -> Enclosure:
        """P(|z| > size) = 2q^(size + 1)/(1 + q)."""
        q, top = exponential(1 / self.scale), exponential((natural(size, "size", least=0) + 1) / self.scale)
        return Enclosure(2 * top.low / (1 + q.high), 2 * top.high / (1 + q.low))


def _ratio(scale: Fraction) -> Fraction:
    """q rounded up, with enough bits that 1 − q keeps its own first 128."""
    return exponential(1 / scale, bits=128 + scale.numerator.bit_length()).high


@lru_cache(maxsize=1024)
def _variance(scale: Fraction) -> Fraction:
    """Of a scale; a study asks for it hundreds of times, and it is a quotient of long numbers."""
    q = _ratio(scale)
    return 2 * q / (1 - q) ** 2
