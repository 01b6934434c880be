"""A kind of data, and the registry of those that this process knows.

A kind says what it brings: what can be written into its certificates, its words, its plots and its store. Whatever
works on all of them (reading certificates, explaining, drawing, a vault) asks the registry and names none.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidInput

__all__ = ["DataKind", "announce", "kinds", "register"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataKind:
    """One kind of data. Public: all of it; it holds no data.

    ``declarations`` are the classes that can be written into certificates: queries, mechanisms and laws of its own.
    ``messages`` is the import name of the package whose folder ``messages`` holds its catalogue (``….en.toml``,
    ``….zh-Hans.toml``), or None.
    ``plots`` maps the name of a plot to ``module:function``, imported when it is first drawn. ``store`` makes the
    store of one vault, or is None where a vault keeps none of this kind.
    """

    name: str
    declarations: tuple[type, ...]
    messages: str | None
    plots: Mapping[str, str]
    store: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for plot, place in self.plots.items():
            module, colon, function = place.partition(":")
            if not (module and colon and function.isidentifier()):
                raise InvalidInput(
                    f"the plot {plot!r} of {self.name!r} is at {place!r}, which is not module:function; the kind was "
                    "not made."
                )


_known: dict[str, DataKind] = {}
_announced: list[str] = []


def register(kind: DataKind) -> None:
    """Add a kind; a second one of the same name, or with a plot of the same name, is refused."""
    if kind.name in _known:
        raise InvalidInput(f"a kind of data called {kind.name!r} is registered already; nothing was changed.")
    taken = {plot for other in _known.values() for plot in other.plots}.intersection(kind.plots)
    if taken:
        raise InvalidInput(f"{', '.join(sorted(taken))}: another kind has a plot of this name; nothing was changed.")
    _known[kind.name] = kind


def announce(module: str) -> None:
    """Name a module that registers kinds; it is imported when kinds are first asked for, so that imports stay light."""
    _announced.append(module)


def kinds() -> tuple[DataKind, ...]:
    """All kinds, by name: the order does not depend on who registered first."""
    while _announced:
        importlib.import_module(_announced.pop(0))
    return tuple(kind for _, kind in sorted(_known.items()))
