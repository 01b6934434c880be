"""Parallel composition: releases from disjoint parts, each unit being in at most one part."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput

__all__ = ["parallel"]


def parallel(
    parts: Sequence[Pure | Approximate],
    *,
    relation: Relation,
    within: Sequence[Pure | Approximate] | None = None,
) -> Pure | Approximate:
    """Compose guarantees for disjoint parts of the units.

    Guarantee: under add/remove one unit touches one part, so the largest counts. Under replace a unit may leave one
    part and enter another, so the two largest add up; or stay in its part, which costs what ``within`` says of that
    part under replace, and without it twice the part.
    Assumes: ``parts`` hold under add/remove within each part; which part a unit is in depends on that unit alone.
    Proof: given the parts, the releases are independent, and those of untouched parts do not change at all.

    >>> bins = [Pure(epsilon=Fraction(1, 10))] * 1000
    >>> parallel(bins, relation=Relation.ADD_REMOVE)
    Pure(epsilon=Fraction(1, 10))
    >>> parallel(bins, relation=Relation.REPLACE)
    Pure(epsilon=Fraction(1, 5))
    """
    if within is not None and len(within) != len(parts):
        raise InvalidInput(
            f"{len(parts)} parts and {len(within)} guarantees under replace do not match; nothing was done."
        )
    if relation is Relation.ADD_REMOVE:
        return _joined(_largest(parts, 1))
    staying = [part.group(2) for part in parts] if within is None else within
    return _joined(_worse(_largest(parts, 2), _largest(staying, 1)))


def _largest(parts: Sequence[Pure | Approximate], count: int) -> tuple[Fraction, Fraction]:
    """The sums of the ``count`` largest ε and of the ``count`` largest δ."""
    epsilons = sorted((part.epsilon for part in parts), reverse=True)
    deltas = sorted((_delta(part) for part in parts), reverse=True)
    return sum(epsilons[:count], Fraction(0)), sum(deltas[:count], Fraction(0))


def _worse(one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    return max(one[0], other[0]), max(one[1], other[1])


def _delta(part: Pure | Approximate) -> Fraction:
    return part.delta if isinstance(part, Approximate) else Fraction(0)


def _joined(loss: tuple[Fraction, Fraction]) -> Pure | Approximate:
    epsilon, delta = loss
    return Approximate(epsilon=epsilon, delta=min(Fraction(1), delta)) if delta else Pure(epsilon=epsilon)
