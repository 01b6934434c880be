"""What every law of a symmetric whole-number error shares: margins and quantiles, found from its tail alone."""

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, probability
from sfumato.errors import InvalidInput

__all__ = ["Symmetric", "covers", "margin", "quantile"]


class Symmetric(Protocol):
    """A distribution on the whole numbers with P(z) = P(−z), known by its tail."""

    def tail(self, size: int) -> enclosures.Enclosure:
        """P(|z| > size) for size ≥ 0."""
        ...


def covers(law: Symmetric, size: int, confidence: Exact, numbers: int = 1) -> bool:
    """Whether ``numbers`` independent errors all lie within ±size with at least this confidence.

    >>> from sfumato.laws import DiscreteLaplace
    >>> covers(DiscreteLaplace(scale=Fraction(2)), 6, 0.95), covers(DiscreteLaplace(scale=Fraction(2)), 5, 0.95)
    (True, False)
    """
    level = _level(confidence)
    outside = law.tail(size).high
    if natural(numbers, "numbers") == 1:
        return outside <= 1 - level
    return outside < 1 and numbers * enclosures.log(1 - outside).low >= enclosures.log(level).high


def margin(law: Symmetric, confidence: Exact, numbers: int = 1) -> int:
    """The least size for which :func:`covers` holds.

    >>> from sfumato.laws import DiscreteLaplace
    >>> margin(DiscreteLaplace(scale=Fraction(2)), 0.95)
    6
    """
    level = _level(confidence)
    return _least(lambda size: covers(law, size, level, numbers))


def quantile(law: Symmetric, level: Exact) -> int:
    """The least whole number m with P(z ≤ m) at least ``level``, rounded up where the last bit cannot tell.

    >>> from sfumato.laws import DiscreteLaplace
    >>> quantile(DiscreteLaplace(scale=Fraction(2)), 0.95), quantile(DiscreteLaplace(scale=Fraction(2)), 0.05)
    (5, -5)
    """
    wanted = _level(level)

    def below(value: int) -> Fraction:
        """A lower bound of P(z ≤ value): half the mass outside ±value lies beyond it."""
        return 1 - law.tail(value).high / 2 if value >= 0 else law.tail(-value - 1).low / 2

    if below(-1) >= wanted:
        return -_least(lambda size: below(-size - 1) < wanted)
    return _least(lambda size: below(size) >= wanted)


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
