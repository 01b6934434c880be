"""Zero-concentrated DP: one number ρ, which adds, and a conversion to (ε, δ) in the end."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.composition import loss_of
from sfumato.accounting.event_counts import event_counts
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Stated,
)
from sfumato.core.exact import Exact, non_negative, probability
from sfumato.core.guarantees import GDP, ZCDP, Approximate, Pure
from sfumato.errors import Refused, Unsupported

__all__ = ["Concentrated", "compose", "delta", "epsilon", "rho_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concentrated:
    """ρ-zCDP except with probability δ (the sum of the δ that events brought with them)."""

    rho: Fraction
    delta: Fraction


def compose(events: PrivacyEvent | Iterable[PrivacyEvent]) -> Concentrated:
    """Add up ρ and the events' own δ.

    Guarantee: ρ-zCDP except with probability δ, also when each event was chosen after seeing the outputs before it
    (Bun and Steinke 2016; Feldman and Zrnic 2021 for ρ chosen on the way under a fixed cap).

    >>> compose([Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(100))] * 100).rho
    Fraction(1, 2)
    """
    rho, delta = Fraction(0), Fraction(0)
    for event, times in event_counts(events).items():
        each, own = rho_of(event)
        rho, delta = rho + times * each, delta + times * own
    return Concentrated(rho=rho, delta=min(Fraction(1), delta))


def rho_of(event: PrivacyEvent) -> tuple[Fraction, Fraction]:
    """ρ and δ of one event: Δ²/(2σ²) for Gaussians, ε²/8 for a bounded range, ε²/2 for what is only pure.

    >>> rho_of(BoundedRange(epsilon=Fraction(1)))[0], rho_of(DiscreteLaplace(l1=Fraction(1), scale=Fraction(1)))[0]
    (Fraction(1, 8), Fraction(1, 2))
    """
    match event:
        case Gaussian() | DiscreteGaussian():
            return event.l2_squared / (2 * event.sigma_squared), Fraction(0)
        case BoundedRange():
            return event.epsilon**2 / 8, Fraction(0)
        case Stated(guarantee=ZCDP(rho=rho)):
            return rho, Fraction(0)
        case Stated(guarantee=GDP(mu=mu)):
            return mu**2 / 2, Fraction(0)
        case DiscreteLaplace() | RandomizedResponse() | Stated(guarantee=Pure() | Approximate()):
            epsilon, delta = loss_of(event)
            return epsilon**2 / 2, delta
        case PoissonSampled() | FixedSizeSampled() if _has_loss(event.event):
            epsilon, delta = loss_of(event)
            return epsilon**2 / 2, delta
    raise Unsupported(
        f"{event.KIND} has no ρ; nothing was accounted. "
        'A sampled Gaussian is not concentrated: use method="pld" or "rdp".'
    )


def epsilon(events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact) -> Fraction:
    """The ε at a total δ: what the events' own δ leave pays for the conversion.

    >>> float(round(epsilon(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)), delta=1e-5), 4))
    4.7284
    """
    asked, total = probability(delta, "delta"), compose(events)
    if total.rho == 0 and asked >= total.delta:
        return Fraction(0)
    if asked <= total.delta:
        raise Refused(f"no ε goes with δ = {asked}: the events' own δ add up to {total.delta}. Ask for more than that.")
    return ZCDP(rho=total.rho).epsilon_at(asked - total.delta)


def delta(events: PrivacyEvent | Iterable[PrivacyEvent], *, epsilon: Exact) -> Fraction:
    """The δ at ε, the events' own included."""
    total = compose(events)
    return min(Fraction(1), total.delta + ZCDP(rho=total.rho).delta_at(non_negative(epsilon, "epsilon")))


def _has_loss(event: PrivacyEvent) -> bool:
    try:
        loss_of(event)
    except Unsupported:
        return False
    return True
