"""Who has counted how often: the limit of a stream of persons, enforced step by step."""

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import index

from sfumato.core.documents import Json
from sfumato.errors import InvalidInput

__all__ = ["People", "listed", "named", "whole"]


class People:
    """Counters of persons. Sensitive: all of it.

    Guarantee: a person counts in at most ``times`` steps, at least ``separation`` apart, and by at most ``each`` in a
    step. Whether one counts is decided from that person's own events alone.

    >>> people = People(times=2, separation=2, each=1)
    >>> [people.counted(step, [listed(["a", "a", "b"])]) for step in range(3)]
    [[2], [0], [2]]
    """

    def __init__(self, *, times: int, separation: int, each: int, state: Iterable[tuple[str, int, int]] = ()) -> None:
        self._times, self._separation, self._each = times, separation, each
        self._known: dict[str, tuple[int, int]] = {name: (count, last) for name, count, last in state}

    def counted(self, step: int, groups: list[Mapping[str, int]]) -> list[int]:
        """How much of each group counts in a step, from what each person has in it: see :func:`listed`."""
        now: dict[str, int] = {}
        found = []
        for amounts in groups:
            counted = 0
            for name, amount in amounts.items():
                if not amount:
                    continue
                if name not in now:
                    now[name] = self._room(name, step)
                counts = min(amount, now[name])
                now[name] -= counts
                counted += counts
            found.append(counted)
        return found

    def state(self) -> list[Json]:
        """All that is needed to go on."""
        return [[name, count, last] for name, (count, last) in self._known.items()]

    def _room(self, name: str, step: int) -> int:
        count, last = self._known.get(name, (0, -self._separation))
        if count >= self._times or step - last < self._separation:
            return 0
        self._known[name] = (count + 1, step)
        return self._each


def listed(people: object) -> dict[str, int]:
    """What each person has in a step, from a list of the ids of its events, or a mapping from ids to amounts.

    An amount below 0 counts as 0. Events without an id (None, NaN, 1.5) and ids without an amount are dropped, as rows
    of tables are. What is neither an id nor missing is refused before anybody counts.

    >>> listed(["a", 1, "1", "a", None]), listed({"a": 17})
    ({'sa': 2, 'i1': 1, 's1': 1}, {'sa': 17})
    """
    people = people.tolist() if hasattr(people, "tolist") else people
    if isinstance(people, str | bytes) or not isinstance(people, Iterable):
        raise InvalidInput("people are a list of ids, or amounts by id; nothing was counted and nothing was released.")
    if isinstance(people, Mapping):
        known = ((person, amount) for person, amount in people.items() if not _missing(person) | _missing(amount))
        found: Counter[str] = Counter()
        for person, amount in known:
            found[named(person)] += max(0, _from_float(amount))
        return dict(found)
    events = list(people)
    if not set(map(type, events)) <= {str, int}:  # of other types some could be equal to an id and no id
        events = [_id(person) for person in events if not _missing(person)]
    return {named(person): often for person, often in Counter(events).items()}


def named(person: object) -> str:
    """A person's id as one text that can always be written down; 1 and "1" are two persons.

    An id that no file could hold must not stop a stream: that would reveal who is in it.

    >>> named("a"), named(10**5000)[:4], named("\\ud800")
    ('sa', 'i31e', 'xeda080')
    """
    person = _id(person)
    if isinstance(person, int):
        return f"i{person:x}"
    if person.isascii():
        return f"s{person}"
    held = person.encode(errors="surrogatepass")
    return f"s{person}" if held.decode(errors="replace") == person else f"x{held.hex()}"


def whole(number: object) -> int:
    """A whole number of whatever type; anything else is refused.

    >>> import numpy as np
    >>> whole(np.int16(3))
    3
    """
    try:
        found = None if isinstance(number, bool) else index(number)  # type: ignore[arg-type]  # what has no index raises
    except TypeError:
        found = None
    if found is None:
        raise InvalidInput(
            "what counts in a step must be a whole number; nothing was counted and nothing was released."
        )
    return found


def _missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and not cell.is_integer())


def _from_float(number: object) -> int:
    """A whole number, also as a float: where one number is missing, data frames make floats of all."""
    return whole(int(number) if isinstance(number, float) else number)


def _id(person: object) -> str | int:
    if isinstance(person, str):
        return str(person)
    try:
        return _from_float(person)
    except InvalidInput:
        raise InvalidInput(
            "the id of a person is a text or a whole number; nothing was counted and nothing was released."
        ) from None
