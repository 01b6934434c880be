"""Basic composition: losses add. Needs neither NumPy nor SciPy, so that a certificate can be checked with little."""

from collections.abc import Iterable
from fractions import Fraction

from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.subsampling import fixed_size, poisson
from sfumato.core.events import (
    BoundedRange,
    Composed,
    DiscreteLaplace,
    FixedSizeSampled,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import Approximate, Guarantee, Pure
from sfumato.errors import Unsupported

__all__ = ["compose", "loss_of", "stated"]


def compose(events: PrivacyEvent | Iterable[PrivacyEvent]) -> Pure | Approximate:
    """Add up the ε and δ of events on the same units, exactly.

    Guarantee: (Σε, Σδ)-DP for all together, also when each event was chosen after seeing the outputs before it.
    Proof: docs/proofs/basic_composition.md

    >>> compose([DiscreteLaplace(l1=Fraction(1), scale=Fraction(10))] * 10)
    Pure(epsilon=Fraction(1, 1))
    """
    epsilon, delta = Fraction(0), Fraction(0)
    for event, times in event_counts(events).items():
        each, own = loss_of(event)
        epsilon, delta = epsilon + times * each, delta + times * own
    if delta == 0:
        return Pure(epsilon=epsilon)
    return Approximate(epsilon=epsilon, delta=min(Fraction(1), delta))


def loss_of(event: PrivacyEvent) -> tuple[Fraction, Fraction]:
    """The ε and δ of one event, if it has them; sampled ones are amplified.

    >>> loss_of(BoundedRange(epsilon=Fraction(1, 2)))
    (Fraction(1, 2), Fraction(0, 1))
    """
    match event:
        case DiscreteLaplace():
            return event.l1 / event.scale, Fraction(0)
        case BoundedRange() | RandomizedResponse():
            return event.epsilon, Fraction(0)
        case Repeated() | Composed():
            return stated(compose(event))
        case Stated():
            return stated(event.guarantee)
        case PoissonSampled():
            return stated(poisson(compose(event.event), event.rate))
        case FixedSizeSampled():
            return stated(fixed_size(compose(event.event), size=event.size, population=event.population))
    raise _unsupported(event.KIND)


def stated(guarantee: Guarantee) -> tuple[Fraction, Fraction]:
    """The ε and δ of a guarantee that has them.

    >>> stated(Pure(epsilon=Fraction(1, 2)))
    (Fraction(1, 2), Fraction(0, 1))
    """
    match guarantee:
        case Pure():
            return guarantee.epsilon, Fraction(0)
        case Approximate():
            return guarantee.epsilon, guarantee.delta
    raise _unsupported(guarantee.KIND)


def _unsupported(kind: str) -> Unsupported:
    return Unsupported(
        f"{kind} has no single ε and δ to add up; nothing was accounted. "
        "Convert it at a δ of your choice, or use another accountant."
    )
