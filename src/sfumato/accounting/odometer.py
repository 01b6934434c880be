"""Odometers: how much was spent so far, shown at any moment, when neither the releases nor their number was planned."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.accounting import zcdp
from sfumato.accounting.composition import compose
from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact, positive, probability
from sfumato.core.guarantees import ZCDP, Approximate
from sfumato.errors import Refused

__all__ = ["BasicOdometer", "ZCDPOdometer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicOdometer:
    """Shows the sums of ε and δ so far.

    Guarantee: for each (ε, δ), all that was released up to the last moment at which the odometer showed no more than
    that is together (ε, δ)-DP, however the releases and the stop were chosen: it is a basic filter of that size.

    >>> from sfumato.core.events import BoundedRange
    >>> BasicOdometer().after(BoundedRange(epsilon=Fraction(1, 3))).after(BoundedRange(epsilon=Fraction(1, 3))).shown
    Budget(epsilon='2/3')
    """

    shown: Budget = field(default_factory=Budget.none)

    def after(self, event: PrivacyEvent) -> "BasicOdometer":
        """The odometer once this event has happened."""
        total = compose(event)
        own = total.delta if isinstance(total, Approximate) else 0
        return replace(self, shown=self.shown + Budget(epsilon=total.epsilon, delta=own))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDPOdometer:
    """Shows an (ε, δ) so far, from zCDP filters of sizes ``first``, 2·first, 4·first, … at δ/2, δ/4, δ/8, …

    Guarantee: for each size i, all that was released up to the last moment at which the odometer showed no more than
    its ε is together (εᵢ, δ/2^(i+1))-DP, however the releases and the stop were chosen. These δ add up to ``delta``.
    Proof: docs/proofs/filters.md

    >>> from sfumato.core.events import Gaussian
    >>> meter = ZCDPOdometer.start(first=0.01, delta=1e-6)
    >>> for _ in range(30):
    ...     meter = meter.after(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1000)))
    >>> meter.level, meter.spent, 0.9 < meter.shown.epsilon < 1.1
    (1, Fraction(3, 200), True)
    """

    first: Fraction
    delta: Fraction
    spent: Fraction = Fraction(0)

    @classmethod
    def start(cls, *, first: Exact, delta: Exact) -> "ZCDPOdometer":
        """An odometer that shows nothing spent; ``first`` is the ρ of its smallest step."""
        return cls(first=positive(first, "first"), delta=positive(probability(delta, "delta"), "delta"))

    @property
    def level(self) -> int:
        """The smallest filter that still holds what was spent."""
        return max(0, math.ceil(self.spent / self.first) - 1).bit_length()

    @property
    def shown(self) -> Budget:
        """The ε of that filter at its share of δ; nothing where nothing was spent."""
        if self.spent == 0:
            return Budget.none()
        share = self.delta / 2 ** (self.level + 1)
        return Budget(epsilon=ZCDP(rho=self.first * 2**self.level).epsilon_at(share), delta=share)

    def after(self, event: PrivacyEvent) -> "ZCDPOdometer":
        """The odometer once this event has happened."""
        total = zcdp.compose(event)
        if total.delta:
            raise Refused("this odometer holds no δ of single events; nothing was added. Use BasicOdometer for those.")
        return replace(self, spent=self.spent + total.rho)
