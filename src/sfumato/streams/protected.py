"""Whom a stream can protect: the units that its steps bound, and what must have been declared of them."""

from typing import Protocol

from sfumato.core.limits import Limit
from sfumato.core.units import Edge, Event, Record, Relation, Unit, User, describe
from sfumato.errors import Refused, Unsupported

__all__ = ["StepLike", "check_protected"]


class StepLike(Protocol):
    """What a stream declares of its steps."""

    @property
    def lower(self) -> int:
        """The least number of a step."""
        ...

    @property
    def each(self) -> int:
        """By how much a unit counts in a step at most."""
        ...

    @property
    def times(self) -> int:
        """In how many steps it counts at most."""
        ...

    @property
    def separation(self) -> int:
        """How many steps apart these are at least."""
        ...


def check_protected(steps: StepLike, unit: Unit, limit: Limit | None) -> None:
    """Refuse a unit that these steps do not bound.

    Persons are held to a limit by the stream itself, which must be the one that is charged. Nobody could hold events to
    a separation, so that none may be counted on. Units that are exchanged must count upwards: see
    docs/proofs/streams.md
    """
    if isinstance(unit, User):
        held = Limit(groups=steps.times, rows_per_group=steps.each)
        if limit != held:
            raise Refused(f"the limit of a stream of persons must be {held}; nothing was read or spent.")
    elif not isinstance(unit, Event | Record | Edge) or limit is not None or steps.separation != 1:
        raise Unsupported(
            f"a stream protects events, or users with a limit and a separation, not {describe(unit)}; nothing was done."
        )
    if unit.relation is Relation.REPLACE and steps.lower < 0:
        raise Unsupported(
            "steps that may fall below 0 are not offered under replace; nothing was read and nothing was spent. "
            "Protect units under add/remove, or count upwards only."
        )
