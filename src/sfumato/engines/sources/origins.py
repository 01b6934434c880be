"""Which place some data comes from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.engines.expressions import Type
from sfumato.engines.row_wise import not_row_wise
from sfumato.engines.sources import databases, files, frames, ibis_tables
from sfumato.engines.sources.cells import CellFormat
from sfumato.engines.sources.origin import IN_MEMORY, Origin, is_one_of
from sfumato.errors import Unsupported

__all__ = ["origin_of"]


def origin_of(
    data: object,
    declared: Mapping[str, Type] | None,
    *,
    derived: bool = False,
    unit: tuple[str, ...] = (),
    cells: Mapping[str, CellFormat] | None = None,
) -> Origin:
    """Where some data comes from; nothing is opened, except that a frame is taken over as it is now.

    What runs a query when it is read must be row-wise by what can be seen of it, or ``derived``: vouched for; and the
    columns of the ``unit`` must be the stored ones. ``cells`` says how values are written in a file of text.
    """
    match data:
        case databases.DatabaseTable():
            return data.origin(derived=derived, unit=unit)
        case str() if "://" in data:
            return databases.from_url(data).origin(derived=derived, unit=unit)
        case str() | Path():
            return files.origin_of_paths([data], declared, cells)
        case list() | tuple() if data and all(isinstance(each, str | Path) for each in data):
            return files.origin_of_paths(data, declared, cells)
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
        f"a {kind} is not a source of rows. Give the path of files (Parquet, CSV and others), a pandas, Polars, Arrow "
        "or Spark frame, an Ibis table, the URL of a database, or a table of sfumato.engines.sources (duckdb, "
        "postgres, spark)."
    )
