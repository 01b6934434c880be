"""Triplets for metric learning: of places, so that each person is in a bounded number of them, or of one person."""

from collections.abc import Iterable
from functools import partial

from sfumato.core.exact import natural
from sfumato.learning.paradigms.persons import canonical_id
from sfumato.learning.paradigms.placed_groups import Name, PlacedGroups, keyed_number

__all__ = ["own_pairs", "triplets"]


def triplets(places: int, *, each: int = 3) -> PlacedGroups:
    """Triplets of places in which every place occurs at most ``each`` times; for persons see :func:`seated`.

    Every three occurrences of a place bring a round with as many triplets as there are places: the place p goes with
    p + s and p + 2s for the round's own step s, and so is once first, once second and once third. What is left of
    ``each`` brings rounds of neighbouring threes, in which a place occurs once.

    Guarantee: that of :class:`PlacedGroups`: a person moves the sum by each · C, and by 2 · each · C if replaced.

    >>> made = triplets(9, each=1)
    >>> made.groups
    ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    >>> len(triplets(9, each=3).groups), triplets(9, each=3).affected
    (9, 3)
    """
    number, often = natural(places, "places", least=3), natural(each, "each")
    rounds, single = divmod(often, 3)
    steps = (step for step in range(1, number) if 2 * step % number != 0)
    made: list[tuple[int, ...]] = []
    for step in [step for step, _ in zip(steps, range(rounds), strict=False)]:
        made += [(p, (p + step) % number, (p + 2 * step) % number) for p in range(number)]
    for shift in range(single):
        made += [tuple((p + shift + i) % number for i in range(3)) for p in range(0, number - 2, 3)]
    return PlacedGroups(places=number, groups=tuple(made), each=often)


def own_pairs(ids: Iterable[object], *, each: int, key: bytes) -> tuple[tuple[int, int], ...]:
    """Pairs of rows of one person, at most ``each`` of a person: anchor and positive; the negatives are public.

    The rows of a person are ordered by a keyed hash of their rank among that person's own, and taken two by two.

    Guarantee: what is chosen of a person depends on that person's own rows alone; no row is in two pairs. So a person
    is in at most ``each`` units, and with ``each`` = 1 a unit is a person. A row without a name is in no pair. This
    protects persons and not records: one row more can exchange a pair.

    >>> own_pairs(["ann", "bob", "ann"], each=1, key=b"secret") in (((0, 2),), ((2, 0),))
    True
    """
    natural(each, "each")
    rows: dict[Name, list[int]] = {}
    for row, given in enumerate(ids):
        name = canonical_id(given)
        if name is not None:
            rows.setdefault(name, []).append(row)
    pairs = []
    for name, own in rows.items():
        order = sorted(range(len(own)), key=partial(keyed_number, key, "pair", name))
        pairs += [(own[order[i]], own[order[i + 1]]) for i in range(0, 2 * each, 2) if i + 1 < len(own)]
    return tuple(pairs)
