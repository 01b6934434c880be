"""Negatives of a contrastive loss, assigned so that nobody is a negative too often.

A person who is a negative of many anchors moves all their gradients. "k + 2 gradients" is wrong unless the assignment
makes it true: with 4 random negatives each among 64 one person often moves 14, with full in-batch negatives all.
"""

from collections import Counter
from collections.abc import Sequence

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms.placed_groups import PlacedGroups

__all__ = ["assigned_negatives", "cyclic_negatives", "public_negatives"]


def cyclic_negatives(batch: int, *, negatives: int, own: bool = False) -> PlacedGroups:
    """Groups of an anchor, its positive and k negatives in which every place has each role equally often.

    The positive of a place is the next one, unless each person brings their own (``own``); the negatives are those
    that follow. Guarantee: a place is in k + 2 groups, or k + 1 with positives of one's own.

    >>> cyclic_negatives(64, negatives=4).affected, cyclic_negatives(256, negatives=8).affected
    (6, 10)
    >>> cyclic_negatives(5, negatives=2, own=True).groups[4]
    (4, 0, 1)
    """
    size = natural(negatives, "negatives") + (1 if own else 2)
    if natural(batch, "batch") < size:
        raise InvalidInput(f"a group of {size} needs a batch of at least {size}; nothing was done.")
    groups = tuple(tuple((anchor + i) % batch for i in range(size)) for anchor in range(batch))
    return PlacedGroups(places=batch, groups=groups, each=size)


def assigned_negatives(negatives: Sequence[Sequence[int]], *, in_degree: int, own: bool = False) -> PlacedGroups:
    """Groups with a table of negatives for each anchor, in which no place is a negative more often than ``in_degree``.

    Guarantee: a place is in at most min(B, 2 + in_degree) groups, or 1 + in_degree with positives of one's own. A table
    that goes beyond is refused. Assumes: the table was made without looking at the data. Public: the table.

    >>> assigned_negatives([[2], [3], [0], [1]], in_degree=1).affected
    3
    """
    most, batch = natural(in_degree, "in_degree"), len(negatives)
    often = max(Counter(place for row in negatives for place in row).values(), default=0)
    if often > most:
        raise Refused(
            f"one place is a negative of {often} anchors and in_degree = {most} was declared; nothing was done. "
            "Assign negatives cyclically, or declare the true in-degree."
        )
    groups = tuple(
        (anchor, *row) if own else (anchor, (anchor + 1) % batch, *row) for anchor, row in enumerate(negatives)
    )
    return PlacedGroups(places=max(batch, 1), groups=groups, each=min(batch, most + (1 if own else 2)))


def public_negatives(batch: int) -> PlacedGroups:
    """Groups of one place: an anchor with its own positive, against negatives that are public.

    >>> public_negatives(64).affected
    1
    """
    return PlacedGroups(places=natural(batch, "batch"), groups=tuple((p,) for p in range(batch)), each=1)
