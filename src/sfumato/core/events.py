"""Privacy events: what happened to the data, in a closed and versioned vocabulary.

Accountants read events and nothing else. The meaning of an event never changes: a new meaning is a new event, or a
new version of its kind. Each docstring carries the exact mathematics.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.exact import non_negative, positive
from sfumato.core.guarantees import Approximate, Pure
from sfumato.errors import Unsupported

__all__ = ["EVENTS", "Composed", "DiscreteLaplace", "PrivacyEvent", "Stated", "from_json"]


class _Written:
    """What all events share: their canonical JSON."""

    __slots__ = ()

    def to_json(self) -> str:
        """Write the event as canonical JSON.

        >>> DiscreteLaplace(l1=Fraction(1), scale=Fraction(2)).to_json()
        '{"kind":"event.discrete_laplace","l1":"1/1","scale":"2/1","version":1}'
        """
        return canonical(encode(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(_Written):
    """An integer vector x is released as x + z, the z_i independent with P(z_i = k) ∝ exp(−|k|/scale).

    Neighbouring inputs differ by integers whose absolute values add up to at most ``l1``; so no output becomes more
    than e^(l1/scale) times likelier or less likely, and some output reaches that factor when l1 is attained.
    """

    KIND: ClassVar[str] = "event.discrete_laplace"
    VERSION: ClassVar[int] = 1
    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        non_negative(self.l1, "l1")
        positive(self.scale, "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated(_Written):
    """Something of which no more is known than the guarantee it has."""

    KIND: ClassVar[str] = "event.stated"
    VERSION: ClassVar[int] = 1
    guarantee: Pure | Approximate


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed(_Written):
    """Several events on the same units, in this order, each possibly chosen after seeing the outputs before it."""

    KIND: ClassVar[str] = "event.composed"
    VERSION: ClassVar[int] = 1
    events: tuple["DiscreteLaplace | Stated | Composed", ...]


PrivacyEvent = DiscreteLaplace | Stated | Composed

EVENTS = (DiscreteLaplace, Stated, Composed)
_REGISTRY = Registry((*EVENTS, Pure, Approximate))


def from_json(text: str) -> PrivacyEvent:
    """Read an event; an unknown kind, a newer version or a foreign field is refused by name.

    >>> from_json('{"kind":"event.discrete_laplace","l1":"1/1","scale":"2/1","version":1}').scale
    Fraction(2, 1)
    """
    event = _REGISTRY.decode(parse(text), "event")
    if not isinstance(event, EVENTS):
        raise Unsupported(f"event.kind = {event.KIND!r} is not an event; it was not read.")
    return event
