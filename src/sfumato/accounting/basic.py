"""What one release is charged. Only noise on samples needs NumPy and SciPy, for its curve has no closed form."""

from fractions import Fraction
from functools import lru_cache

from sfumato.accounting.composition import compose, stated
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.events import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    Repeated,
    SampledOccurrences,
    Skellam,
    Stated,
    Tuned,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Guarantee, Pure
from sfumato.errors import Refused

__all__ = ["WHOLE", "cost", "guarantee_of"]

MOST = 10**7  # steps on samples that are accounted for: whoever checks a certificate does it, who did not choose them
FINE = 5e-5  # of an ε that calibration found with the same
WHOLE = (*range(2, 64), *range(64, 257, 8), 320, 384, 448, 512)  # orders at which sampled Skellam noise is accounted


def guarantee_of(event: PrivacyEvent, asked: Budget) -> Pure | Approximate:
    """The guarantee of a release of one event, which is its charge, when ``asked`` is the most that it may cost.

    Guarantee: an event with a single ε and δ guarantees these. One with a whole curve of them (Gaussian noise)
    guarantees what was asked for, if the curve allows it: δ at that ε is at most the δ asked for. Else it is refused.

    >>> from fractions import Fraction
    >>> guarantee_of(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(14)), Budget(epsilon=1, delta=1e-5))
    Approximate(epsilon=Fraction(1, 1), delta=Fraction(1, 100000))
    """
    found: Pure | Approximate
    curve = _curve(event)
    if _sampled(event):
        found, kept = Approximate(epsilon=asked.epsilon, delta=asked.delta), _accounted(event, asked)
    elif curve is None:
        found = compose(event)
        kept = asked.covers(cost(found))
    else:
        found = Approximate(epsilon=asked.epsilon, delta=asked.delta)
        kept = _delta(event, curve, asked.epsilon) <= asked.delta
    if not kept:
        raise Refused(f"the noise does not keep {asked} for this event; nothing was done.")
    return found


def _curve(event: PrivacyEvent) -> Guarantee | None:
    """The curve of (ε, δ) that an event keeps, where it has no single pair of its own."""
    match event:
        case Repeated(event=Gaussian() as step, times=times) if times:
            return GDP(mu=enclosures.sqrt(times * step.l2_squared / step.sigma_squared).high)
        case Gaussian():
            return GDP(mu=enclosures.sqrt(event.l2_squared / event.sigma_squared).high)
        case Composed() if (squared := _gaussian_parts(event)) is not None:
            return GDP(mu=enclosures.sqrt(squared).high)
        case DiscreteGaussian():
            return ZCDP(rho=event.l2_squared / (2 * event.sigma_squared))
        case Stated(guarantee=GDP() | ZCDP() | RDP() as guarantee):
            return guarantee
        case Skellam():
            return _shared(event)
        case Tuned():
            from sfumato.accounting import rdp  # it needs NumPy where a run has samples

            return rdp.compose(event)[0]
    return _skellam_rounds(event)


def _skellam_rounds(event: PrivacyEvent) -> Guarantee | None:
    """The Rényi curve of rounds of Skellam noise, each perhaps on a Poisson sample; None for any other event."""
    step = event.event if isinstance(event, Repeated) and event.times else event
    inner = step.event if isinstance(step, PoissonSampled) else step
    if not isinstance(inner, Skellam):
        return None
    from sfumato.accounting import rdp  # it needs NumPy where a run has samples

    return rdp.compose(event, orders=rdp.ORDERS if inner is step else WHOLE)[0]


@lru_cache(maxsize=256)
def _shared(event: Skellam) -> Guarantee:
    """The curve of noise that sites share: a round asks for it at every vote, charge and check."""
    from sfumato.accounting import rdp

    return rdp.compose(event)[0]


@lru_cache(maxsize=256)
def _shared_delta(event: Skellam, epsilon: Fraction) -> Fraction:
    return _shared(event).delta_at(epsilon)


def _delta(event: PrivacyEvent, curve: Guarantee, epsilon: Fraction) -> Fraction:
    return _shared_delta(event, epsilon) if isinstance(event, Skellam) else curve.delta_at(epsilon)


def _gaussian_parts(event: Composed) -> Fraction | None:
    """μ² of a composition all of whose parts are Gaussian noise, each perhaps several times; None for any other."""
    steps = [(part.event, part.times) if isinstance(part, Repeated) else (part, 1) for part in event.events]
    if not steps or not all(isinstance(step, Gaussian) and times for step, times in steps):
        return None
    return sum(
        (times * step.l2_squared / step.sigma_squared for step, times in steps if isinstance(step, Gaussian)),
        start=Fraction(0),
    )


def _sampled(event: PrivacyEvent) -> bool:
    """Whether an event has steps of Gaussian noise on samples, whose curve has no closed form, and nothing besides but
    Gaussian noise."""
    if isinstance(event, Composed):
        rest = tuple(part for part in event.events if not _sampled(part))
        return len(rest) < len(event.events) and (not rest or _gaussian_parts(Composed(events=rest)) is not None)
    step = event.event if isinstance(event, Repeated) and event.times else event
    if isinstance(step, SampledOccurrences):
        return True
    return isinstance(step, PoissonSampled) and isinstance(step.event, Gaussian)


def _accounted(event: PrivacyEvent, asked: Budget) -> bool:
    """Whether the accountant by loss distributions finds an event within what was asked, by δ or by ε; needs NumPy."""
    from sfumato.accounting import pld

    if asked.delta == 0:
        return False
    parts = event.events if isinstance(event, Composed) else (event,)
    if any(isinstance(part, Repeated) and part.times > MOST for part in parts):
        raise Refused(f"at most {MOST:,} steps on samples are accounted for; nothing was done.")
    try:
        by_delta = pld.delta(event, epsilon=asked.epsilon) <= asked.delta
        return by_delta or pld.epsilon(event, delta=asked.delta, precision=FINE) <= asked.epsilon
    except MemoryError:
        raise Refused("the losses of this event are too many to be accounted for here; nothing was done.") from None


def cost(guarantee: Pure | Approximate) -> Budget:
    """A guarantee as an amount that can be added up and charged.

    >>> from fractions import Fraction
    >>> cost(Pure(epsilon=Fraction(1, 2)))
    Budget(epsilon='1/2')
    """
    epsilon, delta = stated(guarantee)
    return Budget(epsilon=epsilon, delta=delta)
