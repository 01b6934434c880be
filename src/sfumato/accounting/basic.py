"""Basic composition: losses add."""

from collections.abc import Iterable
from fractions import Fraction

from sfumato.core.events import Composed, DiscreteLaplace, PrivacyEvent, Stated
from sfumato.core.guarantees import Approximate, Pure

__all__ = ["compose"]


def compose(events: Iterable[PrivacyEvent]) -> Pure | Approximate:
    """Add up the ε and δ of events on the same units, exactly.

    Guarantee: (Σε, Σδ)-DP for all together, also when each event was chosen after seeing the outputs before it.
    Proof: docs/proofs/basic_composition.md

    >>> compose([DiscreteLaplace(l1=Fraction(1), scale=Fraction(10))] * 10)
    Pure(epsilon=Fraction(1, 1))
    """
    epsilon, delta = Fraction(0), Fraction(0)
    for event in events:
        more_epsilon, more_delta = _loss(event)
        epsilon, delta = epsilon + more_epsilon, delta + more_delta
    if delta == 0:
        return Pure(epsilon=epsilon)
    return Approximate(epsilon=epsilon, delta=min(Fraction(1), delta))


def _loss(event: PrivacyEvent) -> tuple[Fraction, Fraction]:
    match event:
        case DiscreteLaplace():
            return event.l1 / event.scale, Fraction(0)
        case Stated():
            stated = event.guarantee
        case Composed():
            stated = compose(event.events)
    return stated.epsilon, stated.delta if isinstance(stated, Approximate) else Fraction(0)
