"""A generated digital twin of a building: invented people who come, stay in rooms and go; no real person.

One step is a quarter of an hour, and :data:`DAY` of them are a day. Everybody has a room of their own, hours at which
they come and go, and days on which they stay away. While they are in, they tend to stay where they are (a Markov chain
over the rooms), and whether they step out follows an AR(1) process, so that a person's steps are strongly correlated.
On some days most of those who are in meet in room 0. These are the shapes that make a series of counts dangerous: the
steps of one person resemble each other, and many small hints about them add up.

The true numbers of this building may be shown: nobody lives in it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["ABSENT", "AR", "DAY", "Building", "building"]

DAY = 96
ABSENT = -1
AR = 0.9

# Quarter hours of a day: when people come and go in the middle, and when those who are in meet.
_COMES, _GOES, _MEETS = 34, 69, range(54, 58)
_AWAY, _STAY, _HOME, _OUT, _JOINS = 0.12, 0.85, 0.65, -1.2, 0.85


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Building:
    """Where every invented person was at every step. Steps are counted from 0 here, rooms from 0.

    ``room`` has a row for each person and a column for each step, and holds the room or :data:`ABSENT`; ``home`` is
    everybody's own room.
    """

    room: "npt.NDArray[np.int64]"
    home: "npt.NDArray[np.int64]"
    rooms: int

    @property
    def names(self) -> tuple[str, ...]:
        """The people, such as ``p017``.

        >>> building(people=2, steps=1).names
        ('p000', 'p001')
        """
        return tuple(f"p{number:03}" for number in range(len(self.room)))

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return int(self.room.shape[1])

    @property
    def present(self) -> "npt.NDArray[np.bool_]":
        """Who was in the building when: people × steps."""
        import numpy as np

        return np.not_equal(self.room, ABSENT)

    @property
    def counts(self) -> "npt.NDArray[np.int64]":
        """How many people were in the building at each step."""
        import numpy as np

        return np.asarray(self.present.sum(axis=0, dtype=np.int64))

    @property
    def by_room(self) -> "npt.NDArray[np.int64]":
        """How many people were in each room: steps × rooms.

        >>> twin = building(people=5, rooms=3, steps=40)
        >>> bool((twin.by_room.sum(axis=1) == twin.counts).all())
        True
        """
        import numpy as np

        return np.stack([(self.room == room).sum(axis=0) for room in range(self.rooms)], axis=1)

    def people_at(self, step: int, *, room: int | None = None) -> list[str]:
        """The ids of those who were in the building, or in one room of it, at a step from 0.

        >>> building(people=12).people_at(33)
        ['p002', 'p010', 'p011']
        """
        if not 0 <= step < self.steps:
            raise InvalidInput(f"this building has steps 0 to {self.steps - 1}; nothing was read.")
        there = self.present[:, step] if room is None else self.room[:, step] == room
        names = self.names
        return [names[person] for person in there.nonzero()[0]]


def building(*, people: int = 60, rooms: int = 6, steps: int = 480, seed: int = 7) -> Building:
    """Invent a building; the same seed gives the same one.

    >>> twin = building()
    >>> twin.room.shape, twin.by_room.shape, int(twin.counts[0])
    ((60, 480), (480, 6), 0)
    """
    import numpy as np

    natural(people, "people", most=10**5)
    natural(rooms, "rooms", most=10**3)
    natural(steps, "steps", most=10**6)
    natural(seed, "seed", least=0)

    # As in the network of visits: a seeded, insecure generator invents fictional people and no privacy rests on it.
    # The noise of a release comes only from the operating system (sfumato.noise).
    draw = np.random.default_rng(seed)
    home = draw.integers(0, rooms, size=people)
    comes = np.rint(draw.normal(_COMES, 3, size=people))
    goes = np.rint(draw.normal(_GOES, 4, size=people))
    mood = draw.normal(size=people)
    comes_today = np.ones(people, dtype=bool)
    meets = np.zeros(people, dtype=bool)
    where = np.full(people, ABSENT)
    room = np.empty((people, steps), dtype=np.int64)
    for step in range(steps):
        day, quarter = divmod(step, DAY)
        if quarter == 0:
            comes_today = draw.random(people) >= _AWAY
            meets = draw.random(people) < (_JOINS if day % 2 else 0)
        mood = AR * mood + np.sqrt(1 - AR**2) * draw.normal(size=people)
        is_in = comes_today & (comes <= quarter) & (quarter < goes) & (mood > _OUT)
        stays = (where != ABSENT) & (draw.random(people) < _STAY)
        moved = np.where(draw.random(people) < _HOME, home, draw.integers(0, rooms, size=people))
        where = np.where(stays, where, np.where(where == ABSENT, home, moved))
        if quarter in _MEETS:
            where = np.where(meets, 0, where)
        elif quarter == _MEETS.stop:
            where = np.where(meets, home, where)
        where = np.where(is_in, where, ABSENT)
        room[:, step] = where
    return Building(room=room, home=home, rooms=rooms)
