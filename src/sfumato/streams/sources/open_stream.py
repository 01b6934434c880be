"""An open stream, as its sources see it: what one step of it is, and whether there will be another."""

from collections.abc import Iterable, Mapping
from typing import Any  # what is no number is handed on, for the stream to refuse

from sfumato.core.units import User
from sfumato.errors import InvalidInput
from sfumato.mechanisms.sparse_vector import AlarmReading
from sfumato.streams.alarms import Alarms
from sfumato.streams.clock import known_person, whole_amount
from sfumato.streams.running import RunningTotals, Told
from sfumato.streams.total import RunningTotal
from sfumato.streams.watching import Watching

__all__ = ["Answer", "OpenStream", "declared", "has_ended", "is_of_people", "tell"]

OpenStream = RunningTotals | Watching
Answer = Told | AlarmReading


def declared(stream: OpenStream) -> RunningTotal | Alarms:
    """What the stream was opened for. Public."""
    query = getattr(stream, "query", None)
    if not isinstance(stream, RunningTotals | Watching) or not isinstance(query, RunningTotal | Alarms):
        raise InvalidInput(
            f"a {type(stream).__name__} is not an open stream; nothing was released. Open one: "
            "vault.stream(…).running_total().open(epsilon=…)."
        )
    return query


def is_of_people(stream: OpenStream) -> bool:
    """Whether its steps are lists of persons, and not numbers. Public."""
    return isinstance(stream.unit, User)


def has_ended(stream: OpenStream) -> bool:
    """Whether the horizon was reached or the last alarm was raised. Public."""
    return stream.left == 0


def tell(stream: OpenStream, held: object) -> Answer:
    """Count one step and release what follows from it; None is a step in which nothing happened.

    Invalid ids are left out without an error, since an error would reveal them.
    """
    groups: tuple[str, ...] = getattr(declared(stream), "groups", ())
    if is_of_people(stream):
        people = _people(held, groups)
        return stream.check(people=people) if isinstance(stream, Watching) else stream.add(people=people)
    number = _numbers(held, groups)
    return stream.check(number) if isinstance(stream, Watching) else stream.add(number)


def _people(held: object, groups: tuple[str, ...]) -> object:
    if not groups:
        return _known(held)
    if held is not None and not isinstance(held, Mapping):
        raise InvalidInput(
            "a step of persons in groups is a mapping from groups to their events; nothing was released."
        )
    return {name: _known((held or {}).get(name)) for name in groups}


def _known(events: object) -> object:
    """The events that have an id and, where amounts are given by id, an amount; None is no events."""
    if events is None:
        return []
    if isinstance(events, str) or not isinstance(events, Iterable):
        raise InvalidInput("a step of persons is a list of ids, or amounts by id; nothing was released.")
    if not isinstance(events, Mapping):
        return [person for each in events if (person := known_person(each)) is not None]
    return {
        person: number
        for each, amount in events.items()
        if (person := known_person(each)) is not None and (number := whole_amount(amount)) is not None
    }


def _numbers(held: object, groups: tuple[str, ...]) -> Any:
    if held is None:
        return dict.fromkeys(groups, 0) if groups else 0
    if isinstance(held, Mapping):
        return {name: _whole(one) for name, one in held.items()}
    if isinstance(held, Iterable):
        return [_whole(one) for one in held]
    return _whole(held)


def _whole(number: object) -> Any:
    """A whole number of NumPy as one of Python; anything else as it is, for the stream to refuse."""
    return number if isinstance(number, bool | int) or not hasattr(number, "__index__") else number.__index__()
