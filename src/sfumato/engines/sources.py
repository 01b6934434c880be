"""Sources: where rows come from. Names and types of columns are public; everything else stays behind the gate."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engines.expressions import Type
from sfumato.errors import EngineFailed, InvalidInput, Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["Source"]


class Source:
    """A Parquet file, opened no earlier than it is needed, or a copy of a data frame, on the embedded engine.

    Public: column names and types. Sensitive: every row, and how many there are. A file that changes after it was
    opened is refused: its types were checked, and stored answers speak of the rows that it had.
    """

    def __init__(self, data: object) -> None:
        self._frame: pa.Table | None = None
        self._path: Path | None = None
        self._table: ir.Table | None = None
        self._state: tuple[int, ...] | None = None
        self._turn = threading.Lock()
        if isinstance(data, str | Path):
            self._path = _parquet_path(data)
        elif hasattr(data, "__arrow_c_stream__"):
            self._frame = _plain(data)
            if self._frame is None:
                raise InvalidInput(
                    "a column of the data frame has no type of its own, such as text mixed with numbers; nothing was "
                    "done. Give each column one type."
                )
            self._table = (
                self._connect()
            )  # now, and not when an analyst asks: what fails here is for the steward to see
            self._frame = None
        else:
            raise Unsupported(
                f"a {type(data).__name__} is not a source of rows. Give the path of a Parquet file, or a pandas, "
                "Polars or Arrow table."
            )

    @contextmanager
    def opened(self) -> Iterator[ir.Table]:
        """The rows as an Ibis table, for one thread at a time: an embedded connection cannot be shared."""
        with self._turn:
            if self._table is None:
                self._state = self._seen()
                self._table = self._connect()
            self._unchanged()
            yield self._table
            self._unchanged()

    def columns(self) -> dict[str, Type]:
        """Names and types of the columns; what fails here fails before anything is charged."""
        with self.opened() as table:
            return {name: _type(dtype) for name, dtype in table.schema().items()}

    def _seen(self) -> tuple[int, ...] | None:
        """What tells one state of the file from another without reading it."""
        if self._path is None or not self._path.is_file():
            return None
        found = self._path.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _unchanged(self) -> None:
        if self._seen() != self._state:
            raise EngineFailed(
                "the file has changed since it was first opened; nothing was released. "
                "Declare its new state as a version of its own."
            )

    def _connect(self) -> ir.Table:
        import ibis

        if self._path is not None and not self._path.is_file():
            raise EngineFailed(
                f"there is no file {self._path.name!r} at the place given; nothing was read and nothing was spent. "
                "Check the path that the table was declared with."
            )
        # The engine's own words may quote data: raised outside, the error does not even carry them as its context.
        with suppress(Exception):
            engine = ibis.duckdb.connect()
            if self._path is not None:
                # A folder named id=7 must not override the file's own column id.
                return engine.read_parquet(self._path, hive_partitioning=False, filename=False, union_by_name=False)
            return engine.create_table("data", self._frame)
        name = "the data frame" if self._path is None else repr(self._path.name)
        raise EngineFailed(
            f"the engine could not open {name}; nothing was read and nothing was spent. "
            "Check that it is a whole Parquet file."
        )


def _parquet_path(path: str | Path) -> Path:
    place = Path(path)
    if any(sign in str(place) for sign in "*?["):
        raise InvalidInput("the path of a table names one file; patterns (* ? [) are refused. Nothing was done.")
    if place.suffix.lower() not in (".parquet", ".pq"):
        raise Unsupported(
            f"{place.name!r} is not a Parquet file (.parquet), the one kind of file that is read so far: its types are "
            "declared in it, not guessed from its rows."
        )
    return place


def _plain(data: Any) -> pa.Table | None:
    """Hold the frame as Arrow, with dictionary and view columns made plain; None where a column has no one type."""
    import pyarrow as pa

    try:
        frame = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # their words may quote a value
        return None
    for place, field in enumerate(frame.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            kind = pa.string()
        if kind != field.type:
            column = frame.column(place)
            if pa.types.is_dictionary(field.type):
                column = column.cast(pa.dictionary(field.type.index_type, kind))
            frame = frame.set_column(place, field.name, column.cast(kind))
    return frame.replace_schema_metadata(None)


def _type(dtype: Any) -> Type:
    if dtype.is_string():
        return Type.TEXT
    if dtype.is_boolean():
        return Type.TRUTH
    if (dtype.is_integer() and not dtype.is_unsigned_integer()) or (dtype.is_unsigned_integer() and dtype.nbytes < 8):
        return Type.WHOLE
    if dtype.is_floating():
        return Type.NUMBER
    return Type.OTHER
