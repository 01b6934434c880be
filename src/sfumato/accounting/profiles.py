"""Privacy profiles: for each event the curve ε ↦ δ(ε) of a pair of laws that no neighbours exceed, both ways.

A profile takes a NumPy array of ε of either sign and returns upper bounds of δ(ε) = sup over S of P(S) − e^ε Q(S).
Every float step is followed by a step outward (``TINY`` relative, or ``NUDGE`` in ε), which covers the rounding of
the few operations before it on the assumptions that :mod:`sfumato.accounting.floats` states.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.accounting import lattice, occurrences, rdp
from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.floats import (
    ELEMENTARY,
    NUDGE,
    TINY,
    Array,
    float_down,
    float_up,
    normal_down,
    normal_up,
)
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    SampledOccurrences,
    Skellam,
    Stated,
    Tuned,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import Unsupported

__all__ = ["NUDGE", "TINY", "DominatingPair", "Profile", "gaussian", "pair_of", "renyi"]

Profile = Callable[[Array], Array]

FARTHEST = 600.0  # e^ε over any rate is a float up to here; losses are resolved up to 512


@dataclass(frozen=True, slots=True, kw_only=True)
class DominatingPair:
    """What one unit can make of an event: with the unit against without it, and the other way round."""

    remove: Profile
    add: Profile

    @property
    def symmetric(self) -> bool:
        """Whether one direction is enough."""
        return self.remove is self.add


def pair_of(event: PrivacyEvent) -> DominatingPair:
    """The profiles of one event.

    Guarantee: both are upper bounds for all neighbours that the event admits. Proof: docs/proofs/pld.md

    >>> response = pair_of(RandomizedResponse(epsilon=Fraction(1), categories=2))
    >>> response.remove(np.array([0.0])).round(4)
    array([0.4621])
    """
    return _pair_of(event)


@lru_cache(maxsize=4096)
def _pair_of(event: PrivacyEvent) -> DominatingPair:
    match event:
        case PoissonSampled():
            return _poisson(_inner(event.event), event.rate)
        case FixedSizeSampled():
            return _both(_fixed_size(_inner(event.event), Fraction(event.size, event.population)))
        case DiscreteLaplace():
            return _both(_laplace(math.floor(event.l1), event.scale))
        case DiscreteGaussian():
            return _both(_discrete_gaussian(event))
        case Gaussian():
            return _both(gaussian(event.l2_squared / event.sigma_squared))
        case BoundedRange():
            return _both(_bounded_range(float_up(event.epsilon)))
        case RandomizedResponse():
            return _both(_response(float_up(event.epsilon), event.categories))
        case Stated():
            return _both(_stated(event.guarantee))
        case SampledOccurrences():
            return _occurrences(event)
        case Skellam() | Tuned():
            return _both(_stated(rdp.compose(event)[0]))
    raise Unsupported(f"{event.KIND} has no profile; nothing was accounted.")


def _both(profile: Profile) -> DominatingPair:
    return DominatingPair(remove=profile, add=profile)


def _inner(event: PrivacyEvent) -> DominatingPair:
    """The pair inside a sample: one event, or Gaussians that make one together."""
    found = event_counts(event)
    gaussians = [
        times * part.l2_squared / part.sigma_squared for part, times in found.items() if isinstance(part, Gaussian)
    ]
    if len(gaussians) == len(found):
        return _both(gaussian(sum(gaussians, Fraction(0))))
    if found.total() == 1:
        return pair_of(next(iter(found)))
    raise Unsupported(
        "a sampled composition has a profile only where its parts are Gaussian; nothing was accounted. "
        'Use method="rdp", or sample each part separately if that is what happens.'
    )


def gaussian(mu_squared: Fraction) -> Profile:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    if mu_squared == 0:
        return _nothing
    mu = math.sqrt(float_up(mu_squared)) * (1 + 2**-51)

    def profile(epsilon: Array) -> Array:
        slack = NUDGE * (mu / 2 + np.abs(epsilon) / mu)
        inside, outside = normal_up(mu / 2 - epsilon / mu + slack), normal_down(-mu / 2 - epsilon / mu - slack)
        return _clipped(inside * (1 + TINY) - np.exp(np.minimum(epsilon, 700.0)) * outside * (1 - TINY))

    return profile


def _nothing(epsilon: Array) -> Array:
    """The profile of two equal laws: 1 − e^ε below 0."""
    return _clipped(-np.expm1(np.minimum(epsilon, 0.0)) * (1 + 2 * ELEMENTARY))


def _laplace(shift: int, scale: Fraction) -> Profile:
    """1 − r^i at ε = (shift − 2i)/scale, r = e^(−1/scale), and linear in e^ε between those."""
    if shift == 0:
        return _nothing
    step = float(1 / scale)
    top = float(shift / scale)

    def profile(epsilon: Array) -> Array:
        asked = epsilon - NUDGE * (1 + np.abs(epsilon) + top)
        place = np.clip((top - asked) / (2 * step), 0.0, float(shift))
        whole = np.floor(place)
        inside = np.expm1(-2 * step * (place - whole)) / np.expm1(-2 * step)
        value = -np.expm1(-whole * step) - np.exp(-whole * step) * np.expm1(-step) * inside
        below = -np.expm1(np.minimum(asked, 0.0))
        return _clipped(np.where(asked < -top, below, np.where(asked < top, value, 0.0)) * (1 + TINY))

    return profile


def _response(top: float, categories: int) -> Profile:
    """Losses ±ε₀ and 0, with probabilities in the ratio e^ε₀ : 1 : categories − 2."""
    weights = ((1.0, top), ((categories - 2) * math.exp(-top), 0.0), (math.exp(-top), -top))
    total = 1 + (categories - 1) * math.exp(-top)

    def profile(epsilon: Array) -> Array:
        asked = epsilon - NUDGE * (1 + np.abs(epsilon) + top)
        value = [weight * -np.expm1(np.minimum(asked - loss, 0.0)) for weight, loss in weights]
        return _clipped(np.sum(value, axis=0) / total * (1 + TINY))

    return profile


def _bounded_range(top: float) -> Profile:
    """(1 − e^((ε − ε₀)/2))²/(1 − e^(−ε₀)): the best of all two-point laws whose losses are ε₀ apart."""
    if top == 0:
        return _nothing

    def profile(epsilon: Array) -> Array:
        asked = epsilon - NUDGE * (1 + np.abs(epsilon) + top)
        value = np.expm1((np.minimum(asked, top) - top) / 2) ** 2 / -math.expm1(-top)
        return _clipped(np.where(asked < -top, -np.expm1(np.minimum(asked, 0.0)), value) * (1 + TINY))

    return profile


def _stated(guarantee: Pure | Approximate | ZCDP | RDP | GDP) -> Profile:
    match guarantee:
        case Pure():
            return _response(float_up(guarantee.epsilon), 2)
        case Approximate():
            pure, delta = _response(float_up(guarantee.epsilon), 2), float_up(guarantee.delta)
            return lambda epsilon: _clipped(delta + (1 - float_down(guarantee.delta)) * pure(epsilon))
        case GDP():
            return gaussian(guarantee.mu**2)
        case ZCDP():
            return _zcdp(guarantee.rho)
        case RDP():
            return renyi([(float_down(order), float_up(loss)) for order, loss in guarantee.curve])


def _zcdp(rho: Fraction) -> Profile:
    if rho == 0:
        return _nothing
    orders = [1 + 2 ** (power / 8) for power in range(-32, 97)]
    return renyi([(order, float_up(rho * Fraction(order))) for order in orders])


def renyi(curve: list[tuple[float, float]]) -> Profile:
    """The least over orders α of e^((α−1)(ε_α − ε)) (1 − 1/α)^(α−1)/α; for ε < 0 by exchanging the two laws."""
    orders, losses = (np.array(part) for part in zip(*curve, strict=True))
    constant = (orders - 1) * (losses * (1 + TINY) + np.log1p(-1 / orders)) - np.log(orders) + TINY * orders

    def profile(epsilon: Array) -> Array:
        asked = np.abs(epsilon)
        best = np.full_like(asked, 1.0)
        for order, start in zip(orders, constant, strict=True):
            np.minimum(best, np.exp(np.minimum(start - (order - 1) * asked * (1 - TINY), 0.0)), out=best)
        best *= 1 + TINY
        return _clipped(np.where(epsilon < 0, -np.expm1(-asked) * (1 + TINY) + np.exp(-asked) * best, best))

    return profile


def _discrete_gaussian(event: DiscreteGaussian) -> Profile:
    squared = math.floor(event.l2_squared)
    if squared == 0:
        return _nothing
    if lattice.enumerable(squared, event.sigma_squared):
        tables = lattice.tails(squared, event.sigma_squared)
        return lambda epsilon: _clipped(lattice.profile(tables, float(event.sigma_squared), epsilon))
    smooth = lattice.smoothed(squared, event.sigma_squared)
    if smooth is None:
        return _zcdp(squared / (2 * event.sigma_squared))
    inner = gaussian(smooth.mu_squared)
    shift, factor = float_up(smooth.shift), (1 + float_up(smooth.excess)) * (1 + TINY)
    return lambda epsilon: _clipped(inner(epsilon - shift - NUDGE * (1 + np.abs(epsilon))) * factor)


def _poisson(inner: DominatingPair, rate: Fraction) -> DominatingPair:
    """(1 − q)Q + qP against Q, and Q against that: both from the inner profiles at another ε."""
    if rate == 1:
        return inner
    kept, left = float(rate), float(1 - rate)

    def remove(epsilon: Array) -> Array:
        moved = np.expm1(np.minimum(epsilon, FARTHEST))
        slack = NUDGE * (np.abs(moved) + kept)
        ratio = moved + kept - slack
        asked = np.log(np.maximum(ratio, 1e-300) / kept)
        value = kept * inner.remove(asked - NUDGE * (1 + np.abs(asked)))
        below = np.maximum(-moved, np.where(ratio > -2 * slack, kept, 0.0))
        return _clipped(np.where(ratio > 0, value, below) * (1 + TINY))

    def add(epsilon: Array) -> Array:
        moved = left * np.expm1(np.minimum(epsilon, FARTHEST))
        weight = kept - moved + NUDGE * (np.abs(moved) + kept)
        asked = epsilon + np.log(kept / np.maximum(weight, 1e-300))
        value = weight * inner.add(asked - NUDGE * (1 + np.abs(asked) + np.abs(epsilon)))
        return _clipped(np.where(weight > 0, value, 0.0) * (1 + TINY))

    return DominatingPair(remove=remove, add=add)


def _fixed_size(inner: DominatingPair, share: Fraction) -> Profile:
    """At ε ≥ 0 the share times the inner δ at ln(1 + (e^ε − 1)/share); below 0 by exchanging the two laws."""
    kept = float(share)

    def profile(epsilon: Array) -> Array:
        size = np.abs(epsilon)
        asked = np.log1p(np.expm1(np.minimum(size, 700.0)) / kept)
        asked = asked - NUDGE * (1 + asked)
        value = kept * np.maximum(inner.remove(asked), inner.add(asked)) * (1 + TINY)
        return _clipped(np.where(epsilon < 0, -np.expm1(-size) + np.exp(-size) * value, value) * (1 + TINY))

    return profile


def _occurrences(event: SampledOccurrences) -> DominatingPair:
    """Vectors that come or go all at one end of a line, and those that change from one end to the other."""
    several = event.gone + event.changed
    moved = event.l2_squared / event.sigma_squared
    if moved == 0 or several == 0:
        return _both(_nothing)
    if event.rate == 1:
        return _both(gaussian((several + event.changed) ** 2 * moved))
    here, there = occurrences.profile(several, event.changed, event.rate, moved), None
    if event.gone:
        there = occurrences.profile(event.changed, several, event.rate, moved)
    return DominatingPair(remove=here, add=here if there is None else there)


def _clipped(value: Array) -> Array:
    clipped: Array = np.clip(value, 0.0, 1.0)
    return clipped
