"""Groups of persons with one loss together: who is grouped with whom depends on places, never on who else is there.

Persons who are lined up and cut into threes all change their groups when the first of them goes. Here the groups are
groups of *places*, fixed beforehand; every person has a place by a keyed hash of their own name or by a public roster.
"""

import hmac
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from sfumato.core.exact import Exact, natural
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms import occurrences
from sfumato.learning.paradigms.persons import Id, canonical_id

__all__ = ["PlacedGroups", "keyed_number", "members", "seated"]

Name = Id
MOST = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedGroups:
    """Groups of ``places``, each place in at most ``each`` of them, whatever its role is.

    A group counts only where each of its places has a person: a person who goes takes whole groups along and changes
    no other one. So ``each`` bounds occurrences as anchor, as positive and as negative together.

    Guarantee: :meth:`sensitivity`, for persons who were seated by :func:`seated`; brute-forced over neighbours. A table
    of groups in which a place occurs more often than ``each`` is refused. Public: every field.
    Proof: docs/proofs/paradigms.md

    >>> PlacedGroups(places=4, groups=((0, 1, 2), (1, 2, 3)), each=2).affected
    2
    """

    places: int
    groups: tuple[tuple[int, ...], ...]
    each: int

    def __post_init__(self) -> None:
        natural(self.places, "places", most=MOST)
        natural(self.each, "each")
        if not self.groups or not self.groups[0] or len({len(group) for group in self.groups}) != 1:
            raise InvalidInput("groups are one or more, all of one size and none empty; nothing was done.")
        fits = all(len(set(group)) == len(group) and self._holds(group) for group in self.groups)
        if not fits:
            raise InvalidInput(f"a group is of different places from 0 to {self.places - 1}; nothing was done.")
        often = max(Counter(place for group in self.groups for place in group).values())
        if often > self.each:
            raise Refused(
                f"one place is in {often} groups and each = {self.each} was declared; nothing was done. Take fewer "
                "groups, an assignment that treats places alike, or declare the true number."
            )

    def _holds(self, group: tuple[int, ...]) -> bool:
        return all(0 <= place < self.places for place in group)

    @property
    def affected(self) -> int:
        """The most groups that one person is in."""
        return min(len(self.groups), self.each)

    def sensitivity(self, relation: Relation, *, clip: Exact, over: int = 1) -> Sensitivity:
        """How far one person moves the sum of the groups' clipped gradients, over a fixed public number.

        >>> PlacedGroups(places=3, groups=((0, 1, 2),), each=1).sensitivity(Relation.REPLACE, clip=1).l2
        L2(squared=Fraction(4, 1))
        """
        return occurrences.sensitivity(relation, clip=clip, times=self.affected, over=over)


def seated(
    ids: Iterable[object],
    *,
    places: int | None = None,
    key: bytes | None = None,
    roster: Iterable[object] | None = None,
    persons: bool = False,
) -> tuple[int | None, ...]:
    """Give every row a place by the name of its person: for each place the row that sits there, or None.

    With a public ``roster`` the place of a person is that of their name in it, and who is not in it has none. Else it
    is a keyed hash of the name, among ``places``. A place that several rows come to stays empty, be they of one person
    or of several. With ``persons`` one of a person's rows sits, by the keyed hash of its rank among them: that protects
    persons and not records. A row without a name has no place.

    Guarantee: a row that comes or goes, and with ``persons`` a person, changes what sits in one place at most, and
    there nothing is exchanged for another: it becomes empty or ceases to be. Without ``persons`` that is true of
    persons too. Assumes: with ``persons``, rows of one person keep their order. Sensitive: the result.

    >>> seated(["ann", "bob"], roster=["bob", "eve", "ann"])
    (1, None, 0)
    """
    chosen: dict[Name, list[int]] = {}
    for row, given in enumerate(ids):
        name = canonical_id(given)
        if name is not None:
            chosen.setdefault(name, []).append(row)
    secret = key or b""
    if roster is not None:
        if places is not None or key is not None:
            raise InvalidInput("a roster gives the places itself; nothing was done. Leave places and key out.")
        listed = [canonical_id(given) for given in roster]
        where = {name: place for place, name in enumerate(listed) if name is not None}
        if len(where) != len(listed):
            raise InvalidInput("the names of a roster are different, and none is null; nothing was done.")
        number = len(listed)
    else:
        if places is None or not key:
            raise InvalidInput("give a roster, or a number of places and a secret key; nothing was done.")
        number = natural(places, "places", most=MOST)
        where = {name: keyed_number(key, "place", name) % number for name in chosen}
    seats: list[int | None] = [None] * number
    taken: Counter[int] = Counter()
    for name, rows in chosen.items():
        if name in where:
            place = where[name]
            taken[place] += 1 if persons else len(rows)
            rank = min(range(len(rows)), key=partial(keyed_number, secret, "row", name))
            seats[place] = rows[rank] if taken[place] == 1 else None
    return tuple(seats)


def members(groups: PlacedGroups, seats: Sequence[int | None]) -> tuple[tuple[int, ...] | None, ...]:
    """The rows of each group, or None where one of its places is empty.

    >>> members(PlacedGroups(places=3, groups=((0, 2), (0, 1)), each=2), (7, None, 5))
    ((7, 5), None)
    """
    if len(seats) != groups.places:
        raise InvalidInput(f"the groups are of {groups.places} places and {len(seats)} were given; nothing was done.")
    found = []
    for group in groups.groups:
        rows = [row for place in group if (row := seats[place]) is not None]
        found.append(tuple(rows) if len(rows) == len(group) else None)
    return tuple(found)


def keyed_number(key: bytes, *parts: Name) -> int:
    """A number of 64 bits from a key and some names; different parts never give the same text.

    >>> keyed_number(b"key", "place", 1) == keyed_number(b"key", "place", "1")
    False
    """
    told = [(type(part).__name__, str(part)) for part in parts]
    text = "".join(f"{kind}{len(word)}:{word}" for kind, word in told)
    return int.from_bytes(hmac.digest(key, text.encode(), "sha256")[:8], "big")
