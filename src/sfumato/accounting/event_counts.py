"""How often each event happened: the flat form that all accountants start from."""

from collections import Counter
from collections.abc import Iterable

from sfumato.core.events import (
    Composed,
    FixedSizeSampled,
    PoissonSampled,
    PrivacyEvent,
    Repeated,
    SampledOccurrences,
    Tuned,
)
from sfumato.errors import Refused

__all__ = ["event_counts"]


def event_counts(events: PrivacyEvent | Iterable[PrivacyEvent]) -> Counter[PrivacyEvent]:
    """Count equal events; repetitions and compositions are opened, sampled events are kept as they are.

    Composition does not depend on the order in which losses are added, so that nothing is lost by counting. Samples by
    coins and samples of a fixed size in one list, or one inside the other, are refused: they hold for two relations.

    >>> from fractions import Fraction
    >>> from sfumato.core.events import BoundedRange
    >>> once = BoundedRange(epsilon=Fraction(1))
    >>> list(event_counts([once, Repeated(event=Composed(events=(once, once)), times=5)]).values())
    [11]
    """
    found: Counter[PrivacyEvent] = Counter()
    _count(tuple(events) if isinstance(events, Iterable) else (events,), 1, found)
    if _samples(found) >= {PoissonSampled, FixedSizeSampled}:
        raise Refused(
            "Poisson samples are accounted for under add/remove and samples of a fixed size under replace; the two "
            "were not added up. Account for each under its own relation."
        )
    return +found


def _count(events: tuple[PrivacyEvent, ...], times: int, found: Counter[PrivacyEvent]) -> None:
    for event in events:
        match event:
            case Repeated():
                _count((event.event,), times * event.times, found)
            case Composed():
                _count(event.events, times, found)
            case _:
                found[event] += times


def _samples(events: Iterable[PrivacyEvent]) -> set[type]:
    """The ways of sampling that occur, also inside of samples."""
    kinds: set[type] = set()
    for event in events:
        match event:
            case PoissonSampled() | FixedSizeSampled():
                kinds |= {type(event)} | _samples([event.event])
            case SampledOccurrences():
                kinds.add(PoissonSampled)
            case Repeated():
                kinds |= _samples([event.event])
            case Composed() | Tuned():
                kinds |= _samples(event.events)
    return kinds
