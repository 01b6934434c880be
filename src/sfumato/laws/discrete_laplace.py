"""The law of the discrete Laplace error: variance, tails, quantiles and margins, all rounded against us."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.errors import InvalidInput

__all__ = ["DiscreteLaplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """P(z) = (1 − q)/(1 + q) · q^|z| on the whole numbers, with q = exp(−1/scale).

    >>> law = DiscreteLaplace(scale=Fraction(2))
    >>> law.margin(0.95), round(float(law.variance), 3), round(float(law.mean_absolute_error), 3)
    (6, 7.835, 1.919)
    """

    KIND: ClassVar[str] = "law.discrete_laplace"
    VERSION: ClassVar[int] = 1
    scale: Fraction

    def __post_init__(self) -> None:
        positive(self.scale, "scale")

    @property
    def variance(self) -> Fraction:
        """2q/(1 − q)², rounded up."""
        q = enclosures.exp(-1 / self.scale).high
        return 2 * q / (1 - q) ** 2

    @property
    def mean_absolute_error(self) -> Fraction:
        """2q/(1 − q²), rounded up."""
        q = enclosures.exp(-1 / self.scale).high
        return 2 * q / (1 - q**2)

    def tail(self, size: int) -> enclosures.Enclosure:
        """P(|z| > size) = 2q^(size + 1)/(1 + q)."""
        q = enclosures.exp(-1 / self.scale)
        top = enclosures.exp(-(natural(size, "size", least=0) + 1) / self.scale)
        return enclosures.Enclosure(2 * top.low / (1 + q.high), 2 * top.high / (1 + q.low))

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        level = _level(confidence)
        outside = self.tail(margin).high
        if numbers == 1:
            return outside <= 1 - level
        return outside < 1 and numbers * enclosures.log(1 - outside).low >= enclosures.log(level).high

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        level = _level(confidence)
        return _least(lambda size: self.covers(size, level, numbers=natural(numbers, "numbers")))

    def quantile(self, level: Exact) -> int:
        """The least whole number m with P(z ≤ m) at least ``level``.

        >>> DiscreteLaplace(scale=Fraction(2)).quantile(0.95), DiscreteLaplace(scale=Fraction(2)).quantile(0.05)
        (5, -5)
        """
        wanted = _level(level)
        if self._below(-1).low >= wanted:
            # P(z ≤ −m) falls with m: the largest m that still reaches the level, one before the first that does not.
            return -_least(lambda size: self._below(-size - 1).low < wanted)
        return _least(lambda size: self._below(size).low >= wanted)

    def _below(self, value: int) -> enclosures.Enclosure:
        """P(z ≤ value)."""
        q = enclosures.exp(-1 / self.scale)
        reach = enclosures.exp(-Fraction(value + 1 if value >= 0 else -value) / self.scale)
        outside = enclosures.Enclosure(reach.low / (1 + q.high), reach.high / (1 + q.low))
        return enclosures.Enclosure(1 - outside.high, 1 - outside.low) if value >= 0 else outside


def _level(confidence: Exact) -> Fraction:
    level = probability(confidence, "confidence")
    if level in (0, 1):
        raise InvalidInput(f"confidence = {level} has no finite margin; give one between 0 and 1, such as 0.95.")
    return level


def _least(holds: Callable[[int], bool]) -> int:
    """The least whole number from 0 on at which a predicate holds that, once true, stays true."""
    if holds(0):
        return 0
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
