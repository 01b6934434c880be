"""Lower profiles: for each event that has one, a curve that some mechanism with this event reaches, rounded down.

A lower profile belongs to one pair of neighbours that the event admits, the same at every step, so that a composition
of lower profiles is the loss of a mechanism that could run. They are asked at ε ≥ 0 alone: below 0 a profile is known
from that of the exchanged laws. Where no attained pair is known there is no lower profile, and the event counts as
nothing, which is a lower bound as well: whoever does not look at an output loses nothing by it.
"""

import math
from fractions import Fraction

import numpy as np

from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.floats import Array, float_down, normal_down, normal_up
from sfumato.accounting.profiles import FARTHEST, NUDGE, TINY, DominatingPair, Profile
from sfumato.core.events import Gaussian, PoissonSampled, PrivacyEvent, RandomizedResponse, Stated
from sfumato.core.guarantees import GDP, Approximate, Pure

__all__ = ["gaussian_below", "pair_below"]


def pair_below(event: PrivacyEvent) -> DominatingPair | None:
    """The profiles of a pair of neighbours under one event, both ways and rounded down; none where none is known.

    Guarantee: for ε ≥ 0 neither is above the profile of :func:`sfumato.accounting.profiles.pair_of`, and some mechanism
    with this event has both. Proof: docs/proofs/pld_bracket.md

    >>> at = np.array([0.5])
    >>> float(pair_below(Stated(guarantee=Pure(epsilon=Fraction(1)))).remove(at)[0]) > 0.28
    True
    """
    match event:
        case PoissonSampled():
            inner = _inner(event.event)
            return None if inner is None else _poisson(inner, event.rate)
        case Gaussian():
            return _both(gaussian_below(event.l2_squared / event.sigma_squared))
        case Stated(guarantee=GDP(mu=mu)):
            return _both(gaussian_below(mu**2))
        case Stated(guarantee=Pure(epsilon=epsilon)):
            return _both(_response(float_down(epsilon), 2))
        case Stated(guarantee=Approximate(epsilon=epsilon, delta=delta)):
            return _both(_approximate(float_down(epsilon), delta))
        case RandomizedResponse():
            return _both(_response(float_down(event.epsilon), event.categories))
    return None


def _both(profile: Profile) -> DominatingPair:
    return DominatingPair(remove=profile, add=profile)


def _inner(event: PrivacyEvent) -> DominatingPair | None:
    found = event_counts(event)
    gaussians = [
        times * part.l2_squared / part.sigma_squared for part, times in found.items() if isinstance(part, Gaussian)
    ]
    if len(gaussians) == len(found):
        return _both(gaussian_below(sum(gaussians, Fraction(0))))
    return pair_below(next(iter(found))) if found.total() == 1 else None


def gaussian_below(mu_squared: Fraction) -> Profile:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), rounded down."""
    mu = math.sqrt(float_down(mu_squared)) * (1 - 2**-51)
    if mu == 0:
        return np.zeros_like

    def profile(epsilon: Array) -> Array:
        near = np.minimum(epsilon, FARTHEST)
        slack = NUDGE * (mu / 2 + near / mu)
        inside, outside = normal_down(mu / 2 - near / mu - slack), normal_up(-mu / 2 - near / mu + slack)
        return _floored(inside * (1 - TINY) - np.exp(near) * outside * (1 + TINY), epsilon)

    return profile


def _response(top: float, categories: int) -> Profile:
    """Losses ±ε₀ and 0, with probabilities in the ratio e^ε₀ : 1 : categories − 2; at ε ≥ 0 the first alone counts."""
    total = 1 + (categories - 1) * math.exp(-top)

    def profile(epsilon: Array) -> Array:
        away = epsilon - top + NUDGE * (1 + np.abs(epsilon) + top)
        return _floored(-np.expm1(np.minimum(away, 0.0)) / total * (1 - TINY), epsilon)

    return profile


def _approximate(top: float, delta: Fraction) -> Profile:
    pure, lost, kept = _response(top, 2), float_down(delta), float_down(1 - delta)

    def profile(epsilon: Array) -> Array:
        return _floored((lost + kept * pure(epsilon)) * (1 - TINY), epsilon)

    return profile


def _poisson(inner: DominatingPair, rate: Fraction) -> DominatingPair:
    """(1 − q)Q + qP against Q, and Q against that, from the inner pair at another ε: equalities, rounded down."""
    if rate == 1:
        return inner
    kept, left = float(rate), float(1 - rate)

    def remove(epsilon: Array) -> Array:
        moved = np.expm1(np.minimum(epsilon, FARTHEST))
        asked = np.log((moved + kept) * (1 + NUDGE) / kept)
        return _floored(kept * inner.remove(asked + NUDGE * (1 + np.abs(asked))) * (1 - TINY), epsilon)

    def add(epsilon: Array) -> Array:
        moved = left * np.expm1(np.minimum(epsilon, FARTHEST))
        weight = kept - moved - NUDGE * (moved + kept)
        asked = epsilon + np.log(kept / np.maximum(weight, 1e-300))
        value = weight * inner.add(asked + NUDGE * (1 + np.abs(asked) + epsilon))
        return _floored(np.where(weight > 0, value, 0.0) * (1 - TINY), epsilon)

    return DominatingPair(remove=remove, add=add)


def _floored(value: Array, epsilon: Array) -> Array:
    floored: Array = np.where(epsilon < FARTHEST, np.maximum(value, 0.0), 0.0)
    return floored
