"""What every symmetric error distribution shares: margins and quantiles, found from its tail alone.

Proof: docs/proofs/laws.md
"""

from fractions import Fraction
from math import isqrt
from typing import Protocol, TypeVar

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import Exact, natural, non_negative, probability
from sfumato.core.search import around_decimal, least_decimal, least_whole, over
from sfumato.errors import InvalidInput

__all__ = ["Real", "Symmetric", "WholeNumberLaw", "level_of", "room"]

DIGITS = 9  # of the margins and quantiles of a continuous error

Size = TypeVar("Size", bound=Exact, contravariant=True)


class Symmetric(Protocol[Size]):
    """A distribution with P(z) = P(−z), known by its tail."""

    @property
    def variance(self) -> Fraction:
        """The variance, rounded up; a search begins with its root."""
        ...

    def tail(self, size: Size) -> Enclosure:
        """P(|z| > size) for size ≥ 0."""
        ...


class WholeNumberLaw:
    """Margins and quantiles of a symmetric error on the whole numbers.

    >>> from sfumato.laws import DiscreteLaplace
    >>> law = DiscreteLaplace(scale=Fraction(2))
    >>> law.margin(0.95), law.covers(6, 0.95), law.covers(5, 0.95), law.quantile(0.95), law.quantile(0.05)
    (6, True, False, 5, -5)
    """

    __slots__ = ()

    def covers(self: Symmetric[int], margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        allowed = room(confidence, numbers)
        return self.tail(margin).high <= allowed

    def margin(self: Symmetric[int], confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        allowed = room(confidence, numbers)
        return least_whole(lambda size: over(self.tail(size).high, allowed), near=isqrt(int(self.variance)))

    def quantile(self: Symmetric[int], level: Exact) -> int:
        """The least whole number m with P(z ≤ m) at least ``level``, rounded up where the last bit cannot tell."""
        wanted, near = level_of(level), isqrt(int(self.variance))
        if self.tail(0).low < 2 * wanted:  # P(z ≤ m) = 1 − P(|z| > m)/2 from m = 0 on
            return least_whole(lambda size: over(self.tail(size).high, 2 * (1 - wanted)), near=near)
        return -least_whole(lambda size: over(self.tail(size).low, 2 * wanted), near=near)  # P(z < −m) = P(|z| > m)/2


class Real:
    """Margins and quantiles of a symmetric continuous error: decimals of nine digits, rounded up.

    >>> from sfumato.laws import Gaussian
    >>> law = Gaussian(sigma=Fraction(1))
    >>> float(law.margin(0.95)), [float(law.quantile(level)) for level in (0.05, 0.5, 0.95)]
    (1.95996399, [-1.64485362, 0.0, 1.64485363])
    """

    __slots__ = ()

    def covers(self: Symmetric[Fraction], margin: Exact, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        allowed = room(confidence, numbers)
        return self.tail(non_negative(margin, "margin")).high <= allowed

    def margin(self: Symmetric[Fraction], confidence: Exact, *, numbers: int = 1) -> Fraction:
        """The least decimal of nine digits for which :meth:`covers` holds."""
        allowed, near = room(confidence, numbers), enclosures.sqrt(self.variance).high
        return least_decimal(lambda size: over(self.tail(size).high, allowed), digits=DIGITS, near=near)

    def quantile(self: Symmetric[Fraction], level: Exact) -> Fraction:
        """The least decimal x of nine digits with P(z ≤ x) at least ``level``, rounded up."""
        wanted, near = level_of(level), enclosures.sqrt(self.variance).high
        if 2 * wanted == 1:
            return Fraction(0)
        if 2 * wanted > 1:
            return least_decimal(lambda size: over(self.tail(size).high, 2 * (1 - wanted)), digits=DIGITS, near=near)
        return -around_decimal(lambda size: over(self.tail(size).low, 2 * wanted), digits=DIGITS, near=near)[0]


def room(confidence: Exact, numbers: int = 1) -> Fraction:
    """The mass that may lie outside for each of ``numbers`` independent errors: 1 − confidence^(1/numbers), down.

    >>> room(0.95), round(float(room(0.95, 50)), 6)
    (Fraction(1, 20), 0.001025)
    """
    level = level_of(confidence)
    if natural(numbers, "numbers") == 1:
        return 1 - level
    bits = 128 + numbers.bit_length()
    return 1 - enclosures.exp(enclosures.log(level, bits=bits).high / numbers, bits=bits).high


def level_of(confidence: Exact) -> Fraction:
    """Read a probability other than 0 and 1.

    >>> level_of(0.95)
    Fraction(19, 20)
    """
    level = probability(confidence, "confidence")
    if level in (0, 1):
        raise InvalidInput(f"confidence = {level} has no finite margin; give one between 0 and 1, such as 0.95.")
    return level
