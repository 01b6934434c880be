"""Privacy loss distributions: the tight accountant, for plans that are fixed beforehand.

Guarantee: ε and δ are upper bounds. What is rounded is rounded outward, and the float error of the FFT is bounded and
added; the assumptions on which that rests are in :mod:`sfumato.accounting.floats`. Proof: docs/proofs/pld.md
Assumes: the list of events was fixed before the first output was seen. For releases that are chosen on the way, use a
filter: :mod:`sfumato.accounting.filters`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from sfumato.accounting import lattice, pld_truncation
from sfumato.accounting.composition import compose
from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.floats import ELEMENTARY, Array, float_down, float_up
from sfumato.accounting.pld_truncation import PRECISION
from sfumato.accounting.profiles import NUDGE, DominatingPair, gaussian, pair_of
from sfumato.core import enclosures
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PrivacyEvent,
    Repeated,
    Stated,
)
from sfumato.core.exact import Exact, non_negative, probability
from sfumato.core.guarantees import GDP, ZCDP, Approximate
from sfumato.errors import Refused, Unsupported

__all__ = ["LEAST_DELTA", "delta", "epsilon", "known_epsilon"]

NOISE = 1e-3  # the share of δ that float error and sums left out may have before all losses are computed together
LEAST_DELTA = Fraction(1, 10**20)  # the floor under δ: below it the tails of the tables are no longer resolved


def epsilon(events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact, precision: float = PRECISION) -> Fraction:
    """The ε of all events together at δ, rounded up.

    Assumes: the events were fixed beforehand. Proof: docs/proofs/pld.md

    >>> from sfumato.core.events import PoissonSampled
    >>> step = PoissonSampled(rate=Fraction(1, 100), event=Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)))
    >>> 6.187 < epsilon([step] * 10_000, delta=1e-5) < 6.190
    True
    """
    known = known_epsilon(events, delta=delta, precision=precision)
    if known is None:
        raise Refused(
            f"no ε up to 512 for each event goes with δ = {float(probability(delta, 'delta')):.3g}; nothing was "
            "accounted. Ask for a larger δ, or add more noise."
        )
    return known


def known_epsilon(
    events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact, precision: float = PRECISION
) -> Fraction | None:
    """As :func:`epsilon`, and None where losses lie beyond reach: a search may come by such events and go on."""
    asked = probability(delta, "delta")
    if asked == 0:
        return _pure(event_counts(events))
    bounds = [_epsilon(found, asked, precision) for found in _readings(event_counts(events))]
    return min((bound for bound in bounds if bound is not None), default=None)


def delta(events: PrivacyEvent | Iterable[PrivacyEvent], *, epsilon: Exact, precision: float = PRECISION) -> Fraction:
    """The δ of all events together at ε, rounded up; never below the floor of 1e-20 unless basic composition says so.

    >>> float(round(delta(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)), epsilon=1), 6))
    0.126937
    """
    asked = non_negative(epsilon, "epsilon")
    return min(_delta(found, asked, precision) for found in _readings(event_counts(events)))


def _pure(found: Counter[PrivacyEvent]) -> Fraction:
    plain = _plain(found)
    if plain is None or plain.delta:
        raise Refused(
            "at δ = 0 only pure events have an ε, and not all of these are; nothing was accounted. Give δ > 0."
        )
    return plain.epsilon


def _readings(found: Counter[PrivacyEvent]) -> list[Counter[PrivacyEvent]]:
    """The events as they are; and with bounded ranges read as ε²/8-zCDP, which is tighter where there are many."""
    ranges = [event for event in found if isinstance(event, BoundedRange)]
    if not ranges:
        return [found]
    rho = sum((found[event] * event.epsilon**2 / 8 for event in ranges), Fraction(0))
    read: Counter[PrivacyEvent] = Counter({Stated(guarantee=ZCDP(rho=rho)): 1})
    read.update({event: times for event, times in found.items() if not isinstance(event, BoundedRange)})
    return [found, read]


def _epsilon(found: Counter[PrivacyEvent], asked: Fraction, precision: float) -> Fraction | None:
    """The ε of one reading; none where a loss beyond reach keeps δ above what was asked for."""
    merged = _merged(found)
    if isinstance(merged, GDP):
        return merged.epsilon_at(asked)
    _above_floor(asked)
    target, value = float_down(asked), 0.0
    for parts in _directions(merged):
        if not value or not pld_truncation.within(parts, value, target):
            value = max(value, _least_epsilon(parts, precision, target))
    plain = _plain(found)
    bounds = [Fraction(value)] if math.isfinite(value) else []
    if plain is not None and plain.delta <= asked:
        bounds.append(plain.epsilon)
    return min(bounds, default=None)


def _delta(found: Counter[PrivacyEvent], asked: Fraction, precision: float) -> Fraction:
    merged = _merged(found)
    if isinstance(merged, GDP):
        return merged.delta_at(asked)
    plain = _plain(found)
    if plain is not None and plain.epsilon <= asked:
        return plain.delta
    target = float_down(asked)
    value = 0.0
    for parts in _directions(merged):
        if not value or not pld_truncation.within(parts, target, value):
            value = max(value, _least_delta(parts, precision, target))
    return max(LEAST_DELTA, Fraction(value))


def _least_epsilon(parts: Sequence[pld_truncation.Law], precision: float, target: float) -> float:
    """The ε of one direction: with large losses apart where they are rare, all together where that is not close."""
    apart = pld_truncation.compose(parts, precision, delta=target, jumps=True)
    found = apart.epsilon(target) if apart else math.inf
    if apart is not None and math.isfinite(found) and apart.slack_at(found) <= NOISE:
        return found
    composed = pld_truncation.compose(parts, precision, delta=target)
    return min(found, composed.epsilon(target)) if composed else found


def _least_delta(parts: Sequence[pld_truncation.Law], precision: float, target: float) -> float:
    """The δ of one direction, found in the same way."""
    apart = pld_truncation.compose(parts, precision, epsilon=target, jumps=True)
    if apart is not None and apart.slack_at(target) <= NOISE:
        return apart.delta(target)
    composed = pld_truncation.compose(parts, precision, epsilon=target)
    found = min([1.0, *(law.delta(target) for law in (apart, composed) if law)])
    slack = composed.slack_at(target) if composed else 0.0
    if slack <= NOISE or found <= LEAST_DELTA:
        return found
    again = pld_truncation.compose(parts, precision, epsilon=target, about=found * max(1 - slack, 1e-3))
    return min(found, again.delta(target)) if again else found


def _plain(found: Counter[PrivacyEvent]) -> Approximate | None:
    """Basic composition, where every event has an ε and a δ: never worse at its own δ."""
    try:
        total = compose(Repeated(event=event, times=times) for event, times in found.items())
    except Unsupported:
        return None
    return total if isinstance(total, Approximate) else total.approximate()


def _above_floor(asked: Fraction) -> None:
    if asked < LEAST_DELTA:
        raise Refused(
            f"δ = {float(asked):.3g} is below the floor of {float(LEAST_DELTA):.0e} under which floats do not resolve "
            'the tails; nothing was accounted. Ask for a larger δ, or use method="zcdp" or "rdp".'
        )


def _merged(found: Counter[PrivacyEvent]) -> GDP | list[tuple[DominatingPair, int]]:
    """The distinct laws with their multiplicities; Gaussians become one, and alone they are exact."""
    pairs: list[tuple[DominatingPair, int]] = []
    mu_squared, rho = Fraction(0), Fraction(0)
    shift, excess = Fraction(0), Fraction(0)
    for event, times in found.items():
        match event:
            case Gaussian():
                mu_squared += times * event.l2_squared / event.sigma_squared
            case Stated(guarantee=GDP(mu=mu)):
                mu_squared += times * mu**2
            case Stated(guarantee=ZCDP(rho=more)):
                rho += times * more
            case DiscreteGaussian() if (cover := _cover(event)) is not None:
                mu_squared += times * cover.mu_squared
                shift, excess = shift + times * cover.shift, excess + times * cover.excess
            case DiscreteLaplace(l1=l1) if l1 < 1:
                pass
            case _:
                pairs.append((pair_of(event), times))
    if rho:
        pairs.append((pair_of(Stated(guarantee=ZCDP(rho=rho))), 1))
    if not pairs and not shift:
        return GDP(mu=enclosures.sqrt(mu_squared).high)
    if mu_squared:
        pairs.append((_covering(mu_squared, shift, excess), 1))
    return pairs


def _cover(event: DiscreteGaussian) -> lattice.Smooth | None:
    squared = math.floor(event.l2_squared)
    if squared == 0 or lattice.enumerable(squared, event.sigma_squared):
        return None
    return lattice.smoothed(squared, event.sigma_squared)


def _covering(mu_squared: Fraction, shift: Fraction, excess: Fraction) -> DominatingPair:
    """A Gaussian, and what the lattice adds: (1 + excess)·δ(ε − shift), for all covered events together."""
    inner = gaussian(mu_squared)
    if not shift:
        return DominatingPair(remove=inner, add=inner)
    moved, factor = float_up(shift), math.exp(float_up(excess)) * (1 + 2 * ELEMENTARY)

    def profile(epsilon: Array) -> Array:
        return np.minimum(1.0, inner(epsilon - moved - NUDGE * (1 + np.abs(epsilon))) * factor)

    return DominatingPair(remove=profile, add=profile)


def _directions(pairs: Sequence[tuple[DominatingPair, int]]) -> list[list[pld_truncation.Law]]:
    """Both ways that a unit can make a difference, or one of them where they are the same."""
    removing = [(pair.remove, pair.add, times) for pair, times in pairs]
    if all(pair.symmetric for pair, _ in pairs):
        return [removing]
    return [removing, [(pair.add, pair.remove, times) for pair, times in pairs]]
