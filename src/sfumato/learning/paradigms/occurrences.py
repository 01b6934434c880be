"""How far one person moves a sum of clipped gradients, by the number of its units that the person occurs in."""

from sfumato.core.exact import Exact, natural, positive
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation

__all__ = ["sensitivity"]


def sensitivity(relation: Relation, *, clip: Exact, times: int, over: int = 1) -> Sensitivity:
    """times · clip / over where a person is added or removed, and twice that where one is replaced.

    Guarantee: a bound on the l2 move of (sum of gradients, each clipped to ``clip``) / ``over``, attained by gradients
    that turn from one direction into the opposite one. Assumes: a person who comes or goes makes at most ``times``
    units come or go and leaves all others as they are, one who is replaced changes at most ``times`` units in place or
    makes ``times`` go and ``times`` come; ``over`` is fixed beforehand and is no count of the data. Public: all
    arguments. Proof: docs/proofs/paradigms.md

    Of the mean over N trajectories, which C/N bounds under add/remove alone:

    >>> sensitivity(Relation.REPLACE, clip=1, times=1, over=100).l2
    L2(squared=Fraction(1, 2500))
    >>> sensitivity(Relation.ADD_REMOVE, clip=1, times=1, over=100).l2
    L2(squared=Fraction(1, 10000))
    """
    swap = 1 if relation is Relation.ADD_REMOVE else 2
    moved = swap * natural(times, "times", least=0) * positive(clip, "clip") / natural(over, "over")
    return Sensitivity.of(l2_squared=moved**2)
