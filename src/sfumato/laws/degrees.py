"""The distribution of one number of the K-norm noise for degrees: its tail and its moments, bounded from above."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import Exact, natural, positive
from sfumato.laws.margins import WholeNumberLaw
from sfumato.laws.tails import exponential

__all__ = ["DegreeNoiseLaw"]

LEAST = Fraction(1, 2**512)


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeNoiseLaw(WholeNumberLaw):
    """One of ``nodes`` whole numbers z with an even sum and P(z) ∝ exp(−ε·‖z‖), the norm that of the hull of edges.

    Such noise is independent Laplace noise of scale 2/ε, kept by its parity and a coin. So no tail is larger than that
    of Laplace noise with an even sum, divided by the chance of being kept, which is known exactly. With 30 nodes and
    more this is close to the truth; with three it is several times too large. Proof: docs/proofs/k_norm.md

    >>> law = DegreeNoiseLaw(nodes=50, epsilon=Fraction(1, 2))
    >>> law.margin(0.95), law.margin(0.95, numbers=50), round(float(law.variance), 2)
    (12, 28, 31.83)
    """

    KIND: ClassVar[str] = "law.degrees"
    VERSION: ClassVar[int] = 1
    nodes: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        natural(self.nodes, "nodes", least=3, most=2**31)
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    @property
    def variance(self) -> Fraction:
        """At most x/((1 − x)²·kept) with x = exp(−ε/2)."""
        x = self._ratio()
        return (x / ((1 - x) * (1 - x)) / self.kept()).high

    @property
    def mean_absolute_error(self) -> Fraction:
        """At most x/((1 − x²)·kept) with x = exp(−ε/2)."""
        x = self._ratio()
        return (x / ((1 - x) * (1 + x)) / self.kept()).high

    def tail(self, size: int) -> Enclosure:
        """P(|z| > size), from above: x^(size + 1)·(1 + ρ^(2·nodes − 1))/((1 + x)·kept), ρ = (1 − x)/(1 + x)."""
        x = self._ratio()
        far = exponential(self.epsilon * (natural(size, "size", least=0) + 1) / 2)
        odd = _power((1 - x) / (1 + x), 2 * self.nodes - 1)
        return Enclosure(Fraction(0), min(Fraction(1), (far * (1 + odd) / (1 + x) / self.kept()).high))

    def kept(self) -> Enclosure:
        """The chance that a proposal of independent noise is kept, by its parity and by the coin.

        >>> DegreeNoiseLaw(nodes=3, epsilon=Fraction(1)).kept(), DegreeNoiseLaw(nodes=100, epsilon=Fraction(1)).kept()
        (Enclosure(about 0.148870743543076, width < 2**-202), Enclosure(about 0.499999999906741, width < 2**-235))
        """
        n, x = self.nodes, self._ratio()
        square, across = x * x, (1 + x) * (1 + x)
        apart = (1 - x) * (1 - x) / across
        near, far = 1 + x + square, 1 - x + square
        two = n * (n - 1) * square / (across * (1 + square)) * _power((1 + square) / across, n - 2)
        one_even = 2 * n * x / near * _power(near / across, n - 1)
        one_odd = 2 * n * x * apart / far * _power(far / across, n - 1)
        return (1 - one_even + two + _power(apart, n) + one_odd + two * apart) / 2

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` errors of one draw all lie within ±margin with at least this confidence (Boole)."""
        return _Several(self, numbers).covers(margin, confidence)

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        return _Several(self, numbers).margin(confidence)

    def _ratio(self) -> Enclosure:
        """x = exp(−ε/2), so finely that 1 − x keeps 128 digits of its own, and powers by the number of nodes too."""
        bits = 192 + self.epsilon.denominator.bit_length() + self.nodes.bit_length()
        return exponential(self.epsilon / 2, bits=bits)


@dataclass(frozen=True, slots=True)
class _Several(WholeNumberLaw):
    """The largest of several dependent errors, by the sum of their tails."""

    law: DegreeNoiseLaw
    numbers: int

    @property
    def variance(self) -> Fraction:
        return self.law.variance  # of one: a search begins there

    def tail(self, size: int) -> Enclosure:
        one = self.law.tail(size)
        return Enclosure(one.low, min(Fraction(1), natural(self.numbers, "numbers") * one.high))


def _power(base: Enclosure, exponent: int) -> Enclosure:
    """A power of a number from 0 to 1, rounded outward at each step; below 2^−512 no more is known."""
    result = Enclosure(Fraction(1), Fraction(1))
    for digit in f"{exponent:b}":
        result = result * result
        result = (result * base if digit == "1" else result).outward(bits=256)
        if result.high < LEAST:
            return Enclosure(Fraction(0), LEAST)
    return result
