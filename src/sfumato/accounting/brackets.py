"""Brackets: beside the ε that is guaranteed, an ε that is too small for any guarantee, both certified.

The upper end is the accountant's own figure. The lower end is the larger of two bounds: one loss distribution rounded
down at every step, and the chance that one single event is large. Proof: docs/proofs/pld_bracket.md
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.accounting import pld, pld_truncation
from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.floats import float_up
from sfumato.accounting.pld_truncation import PRECISION
from sfumato.accounting.profiles import TINY, DominatingPair, Profile, gaussian, pair_of
from sfumato.accounting.profiles_below import gaussian_below, pair_below
from sfumato.core.events import Gaussian, PrivacyEvent, RandomizedResponse, Repeated, Stated
from sfumato.core.exact import Exact, non_negative, probability
from sfumato.core.guarantees import GDP, Pure

__all__ = ["Bracket", "bracket", "lower_epsilon"]

_NEAR = np.array([0.5, 0.75, 0.875, 0.9375])
CLOSE = 0.995  # a bound this close to the upper end is not improved further


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """Bounds of the least ε: some mechanism with these events needs more than ``lower``; ``upper`` is enough for all.

    >>> Bracket(lower=Fraction(1), upper=Fraction(103, 100)).width
    Fraction(3, 100)
    """

    lower: Fraction
    upper: Fraction

    @property
    def width(self) -> Fraction | None:
        """By what share the upper end is above the lower; none where nothing is known from below."""
        return self.upper / self.lower - 1 if self.lower else None


def bracket(events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact, precision: float = PRECISION) -> Bracket:
    """Bounds from both sides of the least ε at δ for all events together.

    Guarantee: ``upper`` is :func:`sfumato.accounting.pld.epsilon`. A mechanism with these events exists that is not
    (ε, δ)-DP at any ε below ``lower``; so no accountant that reads events can promise less.
    Assumes: the events were fixed beforehand, as for ``upper``. Events of which no attained loss is known count as
    nothing in ``lower``. Proof: docs/proofs/pld_bracket.md

    >>> step = Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(4))
    >>> found = bracket([step] * 3, delta=1e-6)
    >>> found.lower <= found.upper, found.width < Fraction(1, 1000)
    (True, True)
    """
    listed = [Repeated(event=event, times=times) for event, times in event_counts(events).items()]
    upper = pld.epsilon(listed, delta=delta, precision=precision)
    return Bracket(lower=lower_epsilon(listed, delta=delta, below=upper, precision=precision), upper=upper)


def lower_epsilon(
    events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact, below: Exact, precision: float = PRECISION
) -> Fraction:
    """The lower end of :func:`bracket`, looked for below a known upper bound.

    >>> float(lower_epsilon(Stated(guarantee=Pure(epsilon=Fraction(1))), delta=0, below=1))
    1.0
    """
    asked, found = probability(delta, "delta"), event_counts(events)
    if asked == 0:
        return sum((times * _pure(event) for event, times in found.items()), Fraction(0))
    attained = _attained(found)
    target, top = float_up(asked), float_up(non_negative(below, "below"))
    if not attained or top == 0 or target >= 1:
        return Fraction(0)
    ways = [[(law.above.remove, law.above.add, law.times) for law in attained]]
    floors = [[(law.below.remove, law.below.add) for law in attained]]
    if not all(law.above.symmetric and law.below.symmetric for law in attained):
        ways.append([(law.above.add, law.above.remove, law.times) for law in attained])
        floors.append([(law.below.add, law.below.remove) for law in attained])
    best = 0.0
    for parts, floor in zip(ways, floors, strict=True):
        best = best if best >= CLOSE * top else max(best, _lower(parts, floor, target, top, precision))
    return Fraction(best)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attained:
    """A law with bounds from both sides, and how often it comes."""

    above: DominatingPair
    below: DominatingPair
    times: int


def _attained(found: Counter[PrivacyEvent]) -> list[_Attained]:
    """The laws of the events of which an attained loss is known; Gaussians are one law."""
    laws, mu_squared = [], Fraction(0)
    for event, times in found.items():
        below = pair_below(event)
        match event:
            case Gaussian():
                mu_squared += times * event.l2_squared / event.sigma_squared
            case Stated(guarantee=GDP(mu=mu)):
                mu_squared += times * mu**2
            case _ if below is not None:
                laws.append(_Attained(above=pair_of(event), below=below, times=times))
    if mu_squared:
        upper, lower = gaussian(mu_squared), gaussian_below(mu_squared)
        pairs = DominatingPair(remove=upper, add=upper), DominatingPair(remove=lower, add=lower)
        laws.append(_Attained(above=pairs[0], below=pairs[1], times=1))
    return laws


def _pure(event: PrivacyEvent) -> Fraction:
    """The ε of an event that has a loss of exactly that size with a chance above 0."""
    match event:
        case Stated(guarantee=Pure(epsilon=epsilon)) | RandomizedResponse(epsilon=epsilon):
            return epsilon
    return Fraction(0)


def _lower(
    parts: Sequence[pld_truncation.Law],
    floors: Sequence[tuple[Profile, Profile]],
    target: float,
    top: float,
    fine: float,
) -> float:
    """The largest ε found in one direction at which δ is certainly above the target."""
    best = _highest(one_event(parts, floors), target, top)
    if sum(times for _, _, times in parts) == 1:
        return best
    for jumps in (True, False):
        if best < CLOSE * top:
            composed = pld_truncation.compose(parts, fine, delta=target, jumps=jumps, floors=floors)
            if composed is not None:
                best = max(best, _highest(composed.delta_below, target, top))
    return best


def one_event(
    parts: Sequence[pld_truncation.Law], floors: Sequence[tuple[Profile, Profile]]
) -> Callable[[float], float]:
    """A lower bound of δ(ε) from the set in which some single loss is above ε: Σδ₁(ε) − (ΣP(loss > ε))²/2.

    A single law has its own lower profile.
    """
    alone = sum(times for _, _, times in parts) == 1

    def bound(epsilon: float) -> float:
        at = np.array([epsilon])
        whole = math.fsum(times * float(floor(at)[0]) for (_, _, times), (floor, _) in zip(parts, floors, strict=True))
        if alone or epsilon == 0:
            return whole if alone else 0.0
        before = epsilon * _NEAR
        gained = -np.expm1(before - epsilon) * (1 - TINY)  # P(loss > ε) is at most δ(ε′)/(1 − e^(ε′ − ε)) for ε′ < ε
        chances = [times * float(np.min(np.minimum(ahead(before) / gained, 1.0))) for ahead, _, times in parts]
        return (whole * (1 - TINY) - math.fsum(chances) ** 2 / 2 * (1 + TINY)) * (1 - TINY)

    return bound


def _highest(bound: Callable[[float], float], target: float, top: float) -> float:
    """An ε up to ``top`` at which the bound is above the target, near the largest; 0 where none is found."""
    gap, high = 1e-7, top
    while not bound(top * (1 - gap)) > target:
        high, gap = top * (1 - gap), 2 * gap
        if gap >= 1:
            return 0.0
    low = top * (1 - gap)
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > target else (low, middle)
    return low
