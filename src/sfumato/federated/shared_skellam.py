"""The mechanism of a sum across sites: Skellam noise of which every site adds a share, under masks."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from sfumato import laws
from sfumato.accounting.basic import guarantee_of
from sfumato.core import enclosures, events
from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up, natural, non_negative, positive
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import Refused, WrongNorm

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["FINEST", "OpenShare", "SharedSkellam", "shared_variance"]

FINEST = 1 << 24
"""Of a variance in units of what is sent: values are sent in a unit that is so fine, and no finer."""
DIGITS = 7
ORDERS = range(2, 1025)


class OpenShare(Protocol):
    """What a site read for a round, and what masks it. Sensitive: all of it, until it is masked."""

    def masked(self) -> tuple[int, ...]:
        """The numbers as they are sent: in the unit, clamped, with this site's share of the noise, under masks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSkellam:
    """Noise in a sum of whole numbers of ``unit`` steps: ``variance`` of it from honest sites, ``beyond`` besides.

    Guarantee: as the event of :meth:`loss`, against a server with the sites that may collude, for who moves the sum of
    what sites send so far. Assumes: the secure sum hides what single sites send, a computational assumption.
    ``sites`` each round their numbers to the unit; the law covers that: where the unit is not 1 it is a Gaussian one
    whose σ is wider by twice as many units as there are sites. Proof: docs/proofs/skellam.md
    """

    KIND: ClassVar[str] = "mechanism.shared_skellam"
    VERSION: ClassVar[int] = 1
    variance: Fraction
    beyond: Fraction = Fraction(0)
    unit: int = 1
    sites: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, "variance"))
        object.__setattr__(self, "beyond", non_negative(self.beyond, "beyond"))
        natural(self.unit, "unit")
        natural(self.sites, "sites")

    @property
    def law(self) -> laws.SkellamNoise | laws.RoundedGaussian:
        """The distribution of the error of each number."""
        spread = self.variance + self.beyond
        if self.unit == 1:
            return laws.SkellamNoise(spread=spread)
        sigma = self.unit * (enclosures.sqrt(spread).high + 2 * self.sites)
        return laws.RoundedGaussian(sigma=Fraction(decimal_up(sigma, DIGITS)))

    def loss(self, moved: Sensitivity) -> events.Skellam:
        """The event for a unit that moves what is sent by at most ``moved``, in units; its l2 bound must be known."""
        if moved.l2 is None:
            raise WrongNorm("shared noise needs an l2 bound; this sensitivity has none. Nothing was done.")
        l1 = moved.l2.squared if moved.l1 is None else moved.l1.value
        return events.Skellam(l1=l1, l2_squared=moved.l2.squared, variance=self.variance)

    def draw(self, exact: OpenShare, words: "Words") -> Answer:
        """What a site sends; its masks and its noise are its own, from the operating system. Sensitive: ``exact``."""
        del words
        return exact.masked(), ()


@lru_cache(maxsize=64)
def shared_variance(*, l1: Fraction, l2_squared: Fraction, spend: Budget) -> Fraction:
    """The least variance, to about a hundredth, that keeps (ε, δ) for moves of these norms.

    Guarantee: what is returned was itself accounted, and keeps the spend.
    """
    if spend.delta == 0:
        raise Refused("noise that sites share needs a δ; nothing was read and nothing was spent. Say delta=1e-6.")
    low = high = _near(float(l2_squared), float(spend.epsilon), float(spend.delta))
    one, square, epsilon, delta = float(l1), float(l2_squared), float(spend.epsilon), float(spend.delta)
    while _delta(one, square, high, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > high / 500:
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(one, square, middle, epsilon) <= delta else (middle, high)
    for _ in range(100):
        found = Fraction(decimal_up(Fraction(high), DIGITS))
        try:
            guarantee_of(events.Skellam(l1=l1, l2_squared=l2_squared, variance=found), spend)
        except Refused:
            high *= 1.004
            continue
        return found
    raise Refused(f"no noise that sites can share keeps {spend}; nothing was read and nothing was spent.")


def _near(square: float, epsilon: float, delta: float) -> float:
    """Less than the variance that is looked for."""
    return square * min(1.0, 1 / epsilon) ** 2 * min(1.0, math.log(1 / delta)) / 100


def _delta(l1: float, square: float, variance: float, epsilon: float) -> float:
    """The δ of the Rényi bound at the best whole order, in double precision."""
    best = 1.0
    for order in ORDERS:
        more = min(((2 * order - 1) * square + 6 * l1) / (4 * variance**2), 3 * l1 / (2 * variance))
        loss = order * square / (2 * variance) + more
        size = (order - 1) * (loss - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)
        best = min(best, math.exp(min(size, 0.0)))
    return best
