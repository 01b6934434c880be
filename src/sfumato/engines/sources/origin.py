"""Origins: what all places that rows come from have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sfumato.engines.expressions import Type

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["IN_MEMORY", "EngineTable", "Origin", "Settle", "is_one_of"]

# Frames that are rows. A stream of batches may be a query that runs when it is read.
IN_MEMORY = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch"))
EngineTable: TypeAlias = "ir.Table"  # for whoever may not name Ibis
Settle = Callable[[Mapping[str, "dt.DataType"]], dict[str, Type]]  # from an engine's types to ours, checked


class Origin(Protocol):
    """One place that rows come from."""

    @property
    def engine(self) -> str:
        """The engine that reads it, as people call it."""
        ...

    @property
    def label(self) -> str:
        """What messages call it; holds no folder, no host and no password."""
        ...

    @property
    def advice(self) -> str:
        """What to look at when it cannot be opened."""
        ...

    def state(self) -> object:
        """What tells one state of it from another without reading it; always the same where nothing does."""
        ...

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """What its stored rows are known by, under whatever name they are declared; no row is read.

        Plain values that are the same in every process. Empty where nothing is known, as of rows in memory.
        """
        ...

    def place(self) -> Hashable:
        """The engine's place: tables of one place can be opened in one session, and joined there."""
        ...

    def session(self) -> AbstractContextManager[BaseBackend]:
        """An Ibis connection to the engine, in one state of the data; closed or put back afterwards."""
        ...

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Names and Ibis types of the columns, read from metadata alone."""
        ...

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows in a session; what was made for them is taken away when the stack is closed."""
        ...


def is_one_of(data: object, kinds: Iterable[tuple[str, str]]) -> bool:
    """Whether some data is of one of these classes, by package and name, and not of a class made from one.

    >>> is_one_of("rows", IN_MEMORY)
    False
    """
    return type(data) in {getattr(sys.modules.get(package), name, None) for package, name in kinds}
