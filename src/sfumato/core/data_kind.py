"""A kind of data, and the registry of those that this process knows.

A kind says what it brings: what can be written into its certificates, its words, its plots and its store. Whatever
works on all of them (reading certificates, explaining, drawing, a vault) asks the registry and names none.
"""

import importlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Query, ReleasedQuery
from sfumato.core.stored import Stored
from sfumato.errors import InvalidInput

__all__ = ["DataKind", "DataStore", "Limitable", "SomeStore", "announce", "kinds", "register"]

Asked = TypeVar("Asked", bound=Query, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataKind:
    """One kind of data. Public: all of it; it holds no data.

    ``declarations`` are the classes that can be written into certificates: its queries, mechanisms and error
    distributions. ``messages`` is the import name of the package whose folder ``messages`` holds its catalogue
    (``….en.toml``, ``….zh-Hans.toml``), or None.
    ``plots`` maps the name of a plot to ``module:function``, imported when it is first drawn. ``store`` is the
    ``module:class`` that makes the store of a vault from its setting (:class:`sfumato.gate.setting.Setting`), imported
    when a vault is made; None where a vault keeps none of this kind.
    """

    name: str
    declarations: tuple[type, ...]
    messages: str | None
    plots: Mapping[str, str]
    store: str | None = None

    def __post_init__(self) -> None:
        places = {f"plot {plot!r}": place for plot, place in self.plots.items()}
        for what, place in (places if self.store is None else {**places, "store": self.store}).items():
            module, colon, function = place.partition(":")
            if not (module and colon and function.isidentifier()):
                raise InvalidInput(
                    f"the {what} of {self.name!r} is at {place!r}, which is not module:function; the kind was not made."
                )

    def opened(self, setting: object) -> Any:  # of the class that it names, which is above core
        """The store of one vault, which ``setting`` describes; None where a vault keeps none of this kind."""
        if self.store is None:
            return None
        module, _, name = self.store.partition(":")
        return getattr(importlib.import_module(module), name)(setting)


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
        for module in tuple(_announced):
            importlib.import_module(module)  # threads that come at once all wait here until it is whole
            with suppress(ValueError):
                _announced.remove(module)
    return tuple(kind for _, kind in sorted(_known.items()))


@runtime_checkable
class DataStore(Protocol[Asked]):
    """Declared data of one kind, and how its queries are answered. Nothing here charges; the gate does.

    A store that inherits from this says what it answers, checks and reads; the rest is then that of rows in memory: one
    dataset for each query, no limit, no columns to check, and nothing known of where the rows lie.
    """

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this query is one of this store; told by its exact class, since a subclass could say anything."""
        ...

    def check(self, query: Asked) -> None:
        """Refuse a query with foreign parts, or about data that is not declared; reads nothing."""
        ...

    def limit(self, query: Asked) -> Limit | None:
        """How much of each person counts in the data that is asked."""
        return None

    def private(self, query: Asked) -> Sequence[Dataset]:
        """The private datasets that a query reads."""
        return [query.dataset]

    def derived(self, query: Asked) -> Sequence[Dataset]:
        """Those of them of which the steward vouches that each row depends on the rows of one unit only."""
        return ()

    def check_fit(self, query: Asked) -> None:
        """Refuse a query that does not fit the names and types of the data; no row is read."""
        return

    def stored(self, query: Asked) -> Mapping[Dataset, Stored]:
        """What the private datasets that a query reads are known by, once they were checked.

        Whatever lies in a file or a database must say its name here: data are closed by it.
        """
        return {}

    def says_nothing(self, query: Asked, law: Law) -> str | None:
        """Why an answer with this error would say nothing, and what to do, from public facts alone; None where it may.

        It is a clause of an error: "… would say nothing: … Declare …", with no full stop at its end.
        """
        return None

    def read(self, query: Asked) -> object:
        """Read the data, after the charge. Sensitive: the result is exact and must meet noise before anyone sees it."""
        ...


@runtime_checkable
class Limitable(Protocol):
    """A store whose data have a limit, of which a question may choose another: its noise then follows from that."""

    def limited(self, limit: Limit) -> "SomeStore":
        """The same data under another limit."""
        ...


SomeStore: TypeAlias = DataStore[Any]  # of some kind: ``answers`` says which queries it takes
