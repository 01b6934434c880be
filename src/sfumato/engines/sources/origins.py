"""Origins: what all places that rows come from have in common, and which one some data is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.engines.expressions import Type
from sfumato.engines.sources.row_wise import not_row_wise
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["IN_MEMORY", "Origin", "Settle", "is_one_of", "origin_of"]

# Frames that are rows. A stream of batches may be a query that runs when it is read.
IN_MEMORY = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch"))
Settle = Callable[[Mapping[str, Any]], dict[str, Type]]  # from an engine's types to ours, checked


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

    def stored(self, engine: Any) -> Iterable[Hashable]:
        """What its stored rows are known by, under whatever name they are declared; no row is read.

        Plain values that are the same in every process. Empty where nothing is known, as of rows in memory.
        """
        ...

    def place(self) -> Hashable:
        """The engine's place: tables of one place can be opened in one session, and joined there."""
        ...

    def session(self) -> AbstractContextManager[Any]:
        """An Ibis connection to the engine, in one state of the data; closed or put back afterwards."""
        ...

    def held(self, engine: Any) -> dict[str, Any]:
        """Names and Ibis types of the columns, read from metadata alone."""
        ...

    def table(self, engine: Any, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows in a session; what was made for them is taken away when the stack is closed."""
        ...


def is_one_of(data: object, kinds: Iterable[tuple[str, str]]) -> bool:
    """Whether some data is of one of these classes, by package and name, and not of a class made from one.

    >>> is_one_of("rows", IN_MEMORY)
    False
    """
    return type(data) in {getattr(sys.modules.get(package), name, None) for package, name in kinds}


def origin_of(
    data: object, declared: Mapping[str, Type] | None, *, derived: bool = False, unit: tuple[str, ...] = ()
) -> Origin:
    """Where some data comes from; nothing is opened, except that a frame is taken over as it is now.

    What runs a query when it is read must be row-wise by what can be seen of it, or ``derived``: vouched for; and the
    columns of the ``unit`` must be the stored ones.
    """
    from sfumato.engines.sources import databases, files, frames, ibis_tables

    match data:
        case databases.DatabaseTable():
            return data.origin(derived=derived, unit=unit)
        case str() if "://" in data:
            return databases.from_url(data).origin(derived=derived, unit=unit)
        case str() | Path():
            return files.origin_of_path(data, declared)
        case list() | tuple() if data and all(isinstance(each, str | Path) for each in data):
            return files.parquet([Path(each) for each in data])
    kind, module = type(data).__name__, type(data).__module__.partition(".")[0]
    match module, kind:
        case "ibis", _ if hasattr(data, "get_backend"):
            return ibis_tables.origin_of_table(data, derived=derived, unit=unit)
        case "pyspark", "DataFrame":
            return databases.spark(data).origin(derived=derived, unit=unit)
        case "polars", "LazyFrame":
            return frames.LazyFrame(data, derived=derived, unit=unit)
    if hasattr(data, "__arrow_c_stream__"):
        if not derived and not is_one_of(data, IN_MEMORY):
            raise not_row_wise(f"a {kind} of {module.removeprefix('_')}", "may be a query that is run when it is read")
        return frames.Frame(data)
    raise Unsupported(
        f"a {kind} is not a source of rows. Give the path of Parquet or CSV files, a pandas, Polars, Arrow or Spark "
        "frame, an Ibis table, the URL of a database, or a table of sfumato.engines.sources (duckdb, postgres, spark)."
    )
