"""Who has counted how often: the limit of a stream of persons, enforced step by step."""

from collections.abc import Iterable
from typing import Any

from sfumato.errors import InvalidInput

__all__ = ["People", "listed", "named"]


class People:
    """Counters of persons. Sensitive: all of it.

    Guarantee: a person counts in at most ``times`` steps, at least ``separation`` apart, and by at most ``each`` in a
    step. Whether one counts is decided from that person's own events alone.

    >>> people = People(times=2, separation=2, each=1)
    >>> [people.admitted(step, [["a", "a", "b"]]) for step in range(3)]
    [[2], [0], [2]]
    """

    def __init__(self, *, times: int, separation: int, each: int, state: Iterable[Any] = ()) -> None:
        self._times, self._separation, self._each = times, separation, each
        self._known: dict[str, tuple[int, int]] = {name: (count, last) for name, count, last in state}

    def admitted(self, step: int, groups: list[Iterable[str | int]]) -> list[int]:
        """How many events of each group count in a step; all ids are read before anybody counts."""
        return self.counted(step, [[named(person) for person in events] for events in groups])

    def counted(self, step: int, names: list[list[str]]) -> list[int]:
        """The same for ids that were read: see :func:`listed`."""
        now: dict[str, int] = {}
        found = []
        for events in names:
            counted = 0
            for name in events:
                if name not in now:
                    now[name] = self._room(name, step)
                if now[name] > 0:
                    now[name] -= 1
                    counted += 1
            found.append(counted)
        return found

    def state(self) -> list[list[str | int]]:
        """All that is needed to go on."""
        return [[name, count, last] for name, (count, last) in self._known.items()]

    def _room(self, name: str, step: int) -> int:
        count, last = self._known.get(name, (0, -self._separation))
        if count >= self._times or step - last < self._separation:
            return 0
        self._known[name] = (count + 1, step)
        return self._each


def listed(people: Any) -> list[str]:
    """The ids of a step's events, each as one text; what is no list of ids is refused and nobody counts.

    >>> listed(["a", 1, "1"])
    ['sa', 'i1', 's1']
    """
    if isinstance(people, str) or not isinstance(people, Iterable):
        raise InvalidInput("people are a list of ids; nothing was counted and nothing was told.")
    return [named(person) for person in people]


def named(person: object) -> str:
    """A person's id as one text; 1 and "1" are two persons."""
    if isinstance(person, bool) or not isinstance(person, str | int):
        raise InvalidInput("the id of a person is a text or a whole number; nothing was counted and nothing was told.")
    return f"{'i' if isinstance(person, int) else 's'}{person}"
