"""How boxes are shut, from the strongest level to the weakest: what each needs of a host, starts and leaves open."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import ClassVar, Protocol

from sfumato.boxes.bubblewrap import Bubblewrap
from sfumato.boxes.gvisor import GVisor
from sfumato.boxes.started import StartedBox
from sfumato.boxes.view import BoxView
from sfumato.errors import Unsupported

__all__ = ["BoxEnclosure", "BoxLevel", "box_level", "box_levels", "check_level", "enclosure"]


class BoxLevel(Enum):
    """How a box is shut, from the strongest to the weakest."""

    GVISOR = "A"
    """gVisor: a kernel of its own in user space, with a root of its own, no network, filter of system calls, limits."""
    NAMESPACES = "B"
    """Bubblewrap: namespaces, no network, no writable file, filter of system calls, Landlock, limits."""


class BoxEnclosure(Protocol):
    """One way to shut a box. What all of them do (the program inside, its filter, its limits, its pipe) is shared."""

    LEFT_OUT: ClassVar[frozenset[str]]
    """Limits that mean nothing here."""
    NOT_HIDDEN: ClassVar[str]

    def missing(self) -> str | None:
        """What this host lacks, in words; None where nothing is missing, as far as looking tells."""

    def landlock(self) -> int:
        """The version of Landlock that a program shuts itself in with; 0 for none."""

    def started(self, view: BoxView, *, memory: int, cores: Sequence[int]) -> AbstractContextManager[StartedBox]:
        """A box that starts on these processors; it is gone at the end. A control group holds it to ``memory`` MiB."""


_ENCLOSURES: dict[BoxLevel, BoxEnclosure] = {BoxLevel.GVISOR: GVisor(), BoxLevel.NAMESPACES: Bubblewrap()}


def enclosure(level: BoxLevel) -> BoxEnclosure:
    """The way to shut a box of this level."""
    return _ENCLOSURES[level]


def box_levels() -> Iterator[BoxLevel]:
    """The levels that this host looks able to give, the strongest first; a box of each is tried before it is used."""
    return (level for level, way in _ENCLOSURES.items() if way.missing() is None)


def box_level() -> BoxLevel | None:
    """The strongest of them; None where there is none."""
    return next(box_levels(), None)


def check_level(level: BoxLevel | None) -> BoxLevel:
    """This level, or the strongest one; refused where the host cannot give it."""
    lacking = {each: missing for each, way in _ENCLOSURES.items() if (missing := way.missing()) is not None}
    chosen = box_level() if level is None else level
    if chosen is None or chosen in lacking:
        asked = lacking if chosen is None else {chosen: lacking[chosen]}
        said = "; ".join(f"level {each.value} needs {missing}" for each, missing in asked.items())
        raise Unsupported(f"this host can shut no box: {said}; no code was run. Install bubblewrap, or gVisor.")
    return chosen
