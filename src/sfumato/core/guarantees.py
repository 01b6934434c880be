"""Guarantees: how much a release can reveal about one unit, in the five definitions of the field.

Each guarantee answers three questions, rounded outward: δ at a given ε, ε at a given δ, and what becomes of it for
a group of k units. Replacing a unit is removing one and adding one, so an add/remove guarantee read under *replace*
is the one for a group of two; nothing leads the other way. Proofs: docs/proofs/guarantees.md
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, runtime_checkable

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, non_negative, positive, probability
from sfumato.errors import InvalidInput, Refused

__all__ = ["GDP", "RDP", "ZCDP", "Approximate", "Guarantee", "Pure"]

_DEEPEST = 90  # standard deviations; δ below e^(−90²/2) is stated as about that, and never smaller
_FINE, _LOWEST, _HIGHEST = 20, -18, 26  # of the lattice of orders: 2^20 of them from 1 + 2^e to 1 + 2^(e + 1)


@runtime_checkable
class Guarantee(Protocol):
    """What all five have in common."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int]

    def delta_at(self, epsilon: Exact) -> Fraction:
        """The δ that goes with ε, rounded up."""
        ...

    def epsilon_at(self, delta: Exact) -> Fraction:
        """The ε that goes with δ, rounded up."""
        ...

    def group(self, size: int) -> "Guarantee":
        """The same guarantee for any ``size`` units together."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate:
    """(ε, δ)-DP: P[M(D) ∈ S] ≤ e^ε P[M(D') ∈ S] + δ for all neighbours D, D' and all S.

    Guarantee: δ bounds E[max(0, 1 − e^(ε−L))] for the privacy loss L; it is not the probability of an accident.

    >>> Approximate(epsilon=Fraction(1), delta=Fraction(0)).delta_at(1)
    Fraction(0, 1)
    """

    KIND: ClassVar[str] = "guarantee.approximate"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(self.delta, "delta"))

    def delta_at(self, epsilon: Exact) -> Fraction:
        """δ at a smaller ε is that of the worst mechanism allowed: δ + (1 − δ)(e^ε₀ − e^ε)/(1 + e^ε₀)."""
        asked = non_negative(epsilon, "epsilon")
        if asked >= self.epsilon:
            return self.delta
        top = enclosures.exp(self.epsilon)
        excess = (top.high - enclosures.exp(asked).low) / (1 + top.high)
        return self.delta + (1 - self.delta) * excess

    def epsilon_at(self, delta: Exact) -> Fraction:
        """ε at a larger δ, by inverting :meth:`delta_at`; a smaller δ than our own has no ε at all."""
        asked = probability(delta, "delta")
        if asked < self.delta:
            raise Refused(f"no ε goes with δ = {asked}: the guarantee itself has δ = {self.delta}. Ask for that δ.")
        if self.delta == 1:
            return Fraction(0)
        share = (asked - self.delta) / (1 - self.delta)
        top = enclosures.exp(self.epsilon)
        ratio = top.high - share * (1 + top.high)
        if ratio <= 1:
            return Fraction(0)
        return min(self.epsilon, enclosures.log(ratio).high)

    def group(self, size: int) -> "Approximate":
        """(kε, δ(e^(kε) − 1)/(e^ε − 1)): the δ of each step is multiplied by the e^ε of those before it."""
        count = natural(size, "group size")
        if count == 1 or self.delta == 0 or self.epsilon == 0:
            return Approximate(epsilon=count * self.epsilon, delta=min(Fraction(1), count * self.delta))
        if count * self.epsilon > 100:  # e^100 times any δ that a computer can tell from 0 says nothing
            return Approximate(epsilon=count * self.epsilon, delta=Fraction(1))
        bits = _fine(self.epsilon)
        top, bottom = enclosures.exp(count * self.epsilon, bits=bits), enclosures.exp(self.epsilon, bits=bits)
        factor = (top.high - 1) / (bottom.low - 1)
        return Approximate(epsilon=count * self.epsilon, delta=min(Fraction(1), _up(self.delta * factor)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure:
    """ε-DP: no output becomes more than e^ε times likelier or less likely.

    >>> Pure(epsilon=Fraction(1, 2)).group(3)
    Pure(epsilon=Fraction(3, 2))
    """

    KIND: ClassVar[str] = "guarantee.pure"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))

    def delta_at(self, epsilon: Exact) -> Fraction:
        """Zero from ε on; below it, that of randomised response."""
        return self.approximate().delta_at(epsilon)

    def epsilon_at(self, delta: Exact) -> Fraction:
        """ε itself at δ = 0, less above."""
        return self.approximate().epsilon_at(delta)

    def group(self, size: int) -> "Pure":
        """The guarantee for k units is kε."""
        return Pure(epsilon=natural(size, "group size") * self.epsilon)

    def approximate(self) -> Approximate:
        """The same guarantee, written with δ = 0."""
        return Approximate(epsilon=self.epsilon, delta=Fraction(0))

    def zcdp(self) -> "ZCDP":
        """ρ = ε²/2, which every pure guarantee implies."""
        return ZCDP(rho=self.epsilon**2 / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RDP:
    """Rényi DP at several orders: D_α(M(D) ‖ M(D')) ≤ ε_α for each pair (α, ε_α), α > 1.

    >>> RDP(curve=((Fraction(2), Fraction(1)),)).curve[0][1]
    Fraction(1, 1)
    """

    KIND: ClassVar[str] = "guarantee.rdp"
    VERSION: ClassVar[int] = 1
    curve: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        exact = tuple((positive(order, "order"), non_negative(loss, "RDP ε")) for order, loss in self.curve)
        if not exact or any(order <= 1 for order, _ in exact):
            raise InvalidInput("an RDP curve needs at least one order, each above 1; nothing was done.")
        object.__setattr__(self, "curve", exact)

    def delta_at(self, epsilon: Exact) -> Fraction:
        """The best order's δ."""
        asked = non_negative(epsilon, "epsilon")
        return min(_renyi_delta(order, loss, asked) for order, loss in self.curve)

    def epsilon_at(self, delta: Exact) -> Fraction:
        """The best order's ε."""
        asked = positive(probability(delta, "delta"), "delta")
        return min(_renyi_epsilon(order, loss, asked) for order, loss in self.curve)

    def group(self, size: int) -> "RDP":
        """Halve the order and triple the loss for each doubling of the group (Mironov 2017, Prop. 2)."""
        doublings = (natural(size, "group size") - 1).bit_length()
        if doublings == 0:
            return self
        kept = tuple(
            (order / 2**doublings, loss * 3**doublings) for order, loss in self.curve if order >= 2 ** (doublings + 1)
        )
        if not kept:
            raise Refused(f"no order of this curve is large enough for a group of {size}; convert to (ε, δ) first.")
        return RDP(curve=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDP:
    """ρ-zCDP: D_α(M(D) ‖ M(D')) ≤ ρα at every order α > 1.

    >>> float(round(ZCDP(rho=Fraction(1, 2)).epsilon_at("1/100000"), 4))
    4.7284
    """

    KIND: ClassVar[str] = "guarantee.zcdp"
    VERSION: ClassVar[int] = 1
    rho: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative(self.rho, "rho"))

    def delta_at(self, epsilon: Exact) -> Fraction:
        """δ at the order that a search finds best; any order gives a valid bound."""
        asked = non_negative(epsilon, "epsilon")
        if self.rho == 0:
            return Fraction(0)
        rho, target = _float(self.rho), _float(asked)

        def log_delta(order: float) -> float:
            return (order - 1) * (rho * order - target) - math.log(order) + (order - 1) * math.log1p(-1 / order)

        order = _best_order(log_delta)
        return _renyi_delta(order, self.rho * order, asked)

    def epsilon_at(self, delta: Exact) -> Fraction:
        """ε at the best order of a fine lattice: a valid bound at any order, and the same number on every machine."""
        asked = positive(probability(delta, "delta"), "delta")
        if self.rho == 0:
            return Fraction(0)
        return _settled(_near(self.rho, asked), lambda order: _renyi_epsilon(order, self.rho * order, asked))

    def group(self, size: int) -> "ZCDP":
        """The guarantee for k units is k²ρ."""
        return ZCDP(rho=natural(size, "group size") ** 2 * self.rho)


@dataclass(frozen=True, slots=True, kw_only=True)
class GDP:
    """μ-Gaussian DP: neighbours are at least as hard to tell apart as N(0, 1) and N(μ, 1).

    >>> float(round(GDP(mu=Fraction(1)).epsilon_at("1/100000"), 4))
    4.3772
    """

    KIND: ClassVar[str] = "guarantee.gdp"
    VERSION: ClassVar[int] = 1
    mu: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", non_negative(self.mu, "mu"))

    def delta_at(self, epsilon: Exact) -> Fraction:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        asked = non_negative(epsilon, "epsilon")
        if self.mu == 0:
            return Fraction(0)
        reach = self.mu / 2 - asked / self.mu
        if reach < -_DEEPEST:
            return enclosures.normal_cdf(-_DEEPEST).high
        if reach > _DEEPEST:
            return Fraction(1)
        inside = enclosures.normal_cdf(reach)
        outside = enclosures.normal_cdf(-self.mu / 2 - asked / self.mu)
        return max(Fraction(0), inside.high - enclosures.exp(asked).low * outside.low)

    def epsilon_at(self, delta: Exact) -> Fraction:
        """The least ε, to nine digits and rounded up, whose δ is not above the one asked for."""
        asked = positive(probability(delta, "delta"), "delta")
        if self.delta_at(0) <= asked:
            return Fraction(0)
        if asked <= enclosures.normal_cdf(-_DEEPEST).high:
            raise Refused(f"a δ below e^(−{_DEEPEST}²/2) is not supported; nothing was done. Ask for a larger δ.")
        high = Fraction(1)
        while self.delta_at(high) > asked:
            high *= 2
        low = Fraction(0)
        while high - low > high / 2**30:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta_at(middle) <= asked else (middle, high)
        return high

    def group(self, size: int) -> "GDP":
        """The guarantee for k units is kμ."""
        return GDP(mu=natural(size, "group size") * self.mu)


def _renyi_delta(order: Fraction, loss: Fraction, epsilon: Fraction) -> Fraction:
    """δ = e^((α−1)(ε_α − ε)) (1 − 1/α)^(α−1) / α (Canonne, Kamath, Steinke 2020), rounded up."""
    shrink = enclosures.log(1 - 1 / order).high
    exponent = (order - 1) * (loss - epsilon + shrink)
    if exponent >= 64:
        return Fraction(1)
    return min(Fraction(1), enclosures.exp(max(exponent, Fraction(-(_DEEPEST**2), 2))).high / order)


def _renyi_epsilon(order: Fraction, loss: Fraction, delta: Fraction) -> Fraction:
    """ε = ε_α + ln(1 − 1/α) − ln(δα)/(α − 1), the inverse of the above, rounded up and never below 0."""
    shrink = enclosures.log(1 - 1 / order).high
    return max(Fraction(0), loss + shrink - enclosures.log(delta * order).low / (order - 1))


def _best_order(value: Callable[[float], float]) -> Fraction:
    """Search ln(α − 1) by golden section; a poor optimum costs tightness, never validity."""
    golden = (math.sqrt(5) - 1) / 2
    low, high = -12.0, 18.0
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if value(1 + math.exp(left)) <= value(1 + math.exp(right)):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp((low + high) / 2)).limit_denominator(10**9)


def _near(rho: Fraction, delta: Fraction) -> Fraction:
    """About where the ε of ρ at δ is least: where the exact search begins."""
    slope, log_of = _float(rho), math.log(delta.numerator) - math.log(delta.denominator)

    def epsilon(order: float) -> float:
        return slope * order + math.log1p(-1 / order) - (log_of + math.log(order)) / (order - 1)

    return _best_order(epsilon)


def _settled(near: Fraction, value: Callable[[Fraction], Fraction]) -> Fraction:
    """The least value at an order 1 + 2^e·(1 + r/2^20), found exactly from an order ``near`` it.

    The bound falls and then rises with the order, so that the walk ends at the same place wherever floats began it.
    """
    known: dict[int, Fraction] = {}

    def within(place: int) -> int:
        return min(max(place, _LOWEST << _FINE), _HIGHEST << _FINE)

    def at(place: int) -> Fraction:
        if place not in known:
            power, part = divmod(place, 1 << _FINE)
            known[place] = value(1 + Fraction(2) ** power * Fraction((1 << _FINE) + part, 1 << _FINE))
        return known[place]

    mantissa, power = math.frexp(float(near - 1))
    place, step = within(((power - 1) << _FINE) + round((2 * mantissa - 1) * (1 << _FINE))), 1
    while True:
        lower = [side for side in (within(place - step), within(place + step)) if at(side) < at(place)]
        if lower:
            place, step = lower[0], 2 * step
        elif step == 1:
            return at(place)
        else:
            step //= 2


def _float(value: Fraction) -> float:
    """A double for a search that may be poor but must not fail."""
    return float(min(value, Fraction(10) ** 100))


def _fine(epsilon: Fraction) -> int:
    """Bits with which e^ε − 1 keeps its own first 250, however small ε is; fewer cost tightness, never validity."""
    return 256 + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())


def _up(value: Fraction, bits: int = 256) -> Fraction:
    """Round up to a dyadic rational, so that products do not grow without end."""
    if value.denominator.bit_length() <= bits:
        return value
    shift = bits + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(-((-value.numerator << shift) // value.denominator), 1 << shift)
