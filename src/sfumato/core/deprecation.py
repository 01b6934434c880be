"""Names of earlier versions: they work until a stated version, with a warning that says what to write instead."""

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast  # what deprecated functions and modules take and give

__all__ = ["GONE", "renamed", "warn_renamed", "withdrawn"]

GONE = "0.3.0"
"""The version in which the old names go."""

PACKAGE = str(Path(__file__).parents[1]) + os.sep
Given = TypeVar("Given", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def warn_renamed(old: str, new: str) -> None:
    """Warn that a name is an old one, at the line of the caller outside this package."""
    _warn(f"{old} is now {new}. The old name goes in sfumato {GONE}.")


def renamed(**names: str) -> Callable[[Given], Given]:
    """Let a function take old names of its parameters (``old="new"``), and a class old names of its attributes as well.

    An old name does what the new one does, and warns. Both at once are refused. Signatures show the new names alone.

    >>> @renamed(number="n_units")
    ... def share(count, *, n_units):
    ...     return count / n_units
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     share(1, number=4)
    0.25
    >>> str(heard[0].message)
    'share(number=…) is now share(n_units=…). The old name goes in sfumato 0.3.0.'
    >>> inspect.signature(share)
    <Signature (count, *, n_units)>
    >>> share(1, number=4, n_units=4)
    Traceback (most recent call last):
    TypeError: share() was given number= and n_units=, which is its new name; nothing was done. Say n_units= alone.
    """

    def decorate(given: Given) -> Given:
        if not isinstance(given, type):
            return cast("Given", _taking(given, given.__qualname__, names))
        given.__init__ = _taking(given.__init__, given.__qualname__, names)  # type: ignore[misc]  # the same, and more
        for old, new in names.items():
            setattr(given, old, _Attribute(given.__qualname__, old, new))
        return given

    return decorate


def withdrawn(**instead: str) -> Callable[[Class], Class]:
    """Let attributes of a class that became private be read by the names they had; ``instead`` is what to use.

    >>> @withdrawn(gate="the vault")
    ... class Handle:
    ...     _gate = "a gate"
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     Handle().gate
    'a gate'
    >>> str(heard[0].message)
    'Handle.gate is private. Use the vault. The old name goes in sfumato 0.3.0.'
    """

    def decorate(given: Class) -> Class:
        for name, what in instead.items():
            setattr(given, name, _Withdrawn(given.__qualname__, name, what))
        return given

    return decorate


def _taking(function: Callable[..., Any], called: str, names: Mapping[str, str]) -> Callable[..., Any]:
    """A function that also takes old names of its parameters."""
    known = inspect.signature(function).parameters
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values())
    wrong = [name for old, new in names.items() for name in (old, new) if (name in known) is not (name == new)]
    if wrong and not anything:
        raise TypeError(f"{called}() cannot take new names for {', '.join(wrong)}")

    @wraps(function)
    def taken(*given: Any, **said: Any) -> Any:
        for old, new in names.items():
            if old not in said:
                continue
            if new in said:
                raise TypeError(
                    f"{called}() was given {old}= and {new}=, which is its new name; nothing was done. Say {new}= "
                    "alone."
                )
            warn_renamed(f"{called}({old}=…)", f"{called}({new}=…)")
            said[new] = said.pop(old)
        return function(*given, **said)

    return taken


class _Attribute:
    """An attribute by its old name."""

    def __init__(self, called: str, old: str, new: str) -> None:
        self._old, self._new, self._told = f"{called}.{old}", f"{called}.{new}", new

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        warn_renamed(self._old, self._new)
        return getattr(instance, self._told)

    def __set__(self, instance: object, value: object) -> None:
        warn_renamed(self._old, self._new)
        setattr(instance, self._told, value)


class _Withdrawn:
    """A private attribute by the public name that it had."""

    def __init__(self, called: str, name: str, instead: str) -> None:
        self._called, self._name, self._instead = f"{called}.{name}", f"_{name}", instead

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        _warn(f"{self._called} is private. Use {self._instead}. The old name goes in sfumato {GONE}.")
        return getattr(instance, self._name)


def _warn(said: str) -> None:
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(said, DeprecationWarning, stacklevel=level)
