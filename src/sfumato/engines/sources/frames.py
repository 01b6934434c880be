"""Frames: pandas, Polars and Arrow tables, held by the embedded engine."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, Any  # frames of several libraries, which share no class

from sfumato.engines.sources.columns import projected
from sfumato.engines.sources.embedded import PLACE, connection, embedded
from sfumato.engines.sources.origin import IN_MEMORY, Settle, is_one_of
from sfumato.engines.sources.polars_plans import check_lazy_frame, collected, scanned
from sfumato.engines.stored_files import stored_as
from sfumato.errors import EngineFailed, InvalidInput

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["Frame", "LazyFrame", "held_types", "usable"]

MIXED = (
    "the data frame cannot be taken over: no column of it has one single type, such as text or numbers, or two columns "
    "have one name; nothing was done. Give each column one type and a name of its own."
)


class Frame:
    """A copy of a frame as it is at declaration: what fails then is for the steward to see, not for an analyst."""

    engine = "DuckDB"
    label = "the data frame"
    advice = "Check that its columns have plain types and different names, capital letters aside."

    def __init__(self, data: Any) -> None:
        frame = _plain(data)
        if frame is None:
            raise InvalidInput(MIXED)
        self.integers = frozenset() if _from_pandas(data) else _integers(frame)
        """Columns of whole numbers, by their types; pandas makes numbers of them where one value is missing."""
        self._name, self._types = _held_by_engine(frame)
        self._process = os.getpid()
        weakref.finalize(self, _dropped, self._name).atexit = False

    def state(self) -> object:
        """A copy does not change."""
        return None

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """Nothing: where rows in memory came from is not known."""
        return ()

    def place(self) -> Hashable:
        """Beside other frames and files."""
        return PLACE

    def session(self) -> AbstractContextManager[BaseBackend]:
        """The engine that holds the copy."""
        return embedded()

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Read off the copy when it was made; a process that was forked off has none, and is told before a charge."""
        if os.getpid() != self._process:
            raise LookupError("the copy is held by another process")
        return dict(self._types)

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The copy."""
        import ibis.expr.operations as ops

        held = self.held(engine)
        copy = ops.DatabaseTable(self._name, schema=held, source=engine, namespace=ops.Namespace())
        return projected(copy.to_expr(), settle(held))


class LazyFrame:
    """A lazy frame of Polars: its types are known beforehand, its rows are collected when they are first asked for.

    Its plan must take stored rows one by one and leave the columns of the ``unit`` alone, or be vouched for as
    ``derived``.
    """

    engine = "DuckDB"
    label = "the lazy frame"
    advice = "Check that what it scans is there, and that its columns have plain types and different names."

    def __init__(self, data: Any, *, derived: bool = False, unit: tuple[str, ...] = ()) -> None:
        if not derived:
            check_lazy_frame(data, self.label, unit=unit)
        self._lazy, self._derived, self._unit = data, derived, unit
        self._copy: Frame | None = None

    def state(self) -> object:
        """What was collected does not change."""
        return None

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The files that its plan scans, where the plan can be looked into."""
        return [what for file in scanned(self._lazy) for what in stored_as(file)]

    def place(self) -> Hashable:
        """Beside other frames and files."""
        return PLACE

    def session(self) -> AbstractContextManager[BaseBackend]:
        """The engine that will hold the copy."""
        return embedded()

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Resolve the plan without running it."""
        import polars

        return Frame(polars.DataFrame(schema=self._lazy.collect_schema())).held(engine)

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """Collect once, so that all releases speak of the same rows."""
        settle(self.held(engine))
        if self._copy is None:
            lazy = self._lazy
            self._copy = Frame(lazy.collect() if self._derived else collected(lazy, self.label, unit=self._unit))
        return self._copy.table(engine, settle, until)


def usable(frame: pa.Table, *, like: pa.Schema | None = None) -> pa.Table:
    """A table with plain columns; one that the engine cannot hold is there by name alone, as bytes that are missing.

    Which columns these are follows from their types, never from their rows.
    """
    import pyarrow as pa

    for place, field in enumerate(frame.schema if like is None else like):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            kind = pa.string()
        if not _holds(kind):
            frame = frame.set_column(place, field.name, pa.nulls(frame.num_rows, _unusable()))
        elif kind != field.type:
            column = frame.column(place)
            if pa.types.is_dictionary(field.type):
                column = column.cast(pa.dictionary(field.type.index_type, kind))
            frame = frame.set_column(place, field.name, column.cast(kind))
        elif pa.types.is_timestamp(kind) and kind.unit in COARSE:
            frame = frame.set_column(place, field.name, _fine(frame.column(place)))
    return frame.replace_schema_metadata(None)


def _fine(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Coarse times in microseconds, as the engine holds them; what is beyond the calendar is missing: it would fail."""
    import pyarrow as pa
    import pyarrow.compute as pc

    many, zone = COARSE[column.type.unit], column.type.tz
    number = column.cast(pa.int64())
    known = pc.and_(pc.greater_equal(number, FIRST_TIME // many), pc.less_equal(number, LAST_TIME // many))
    inside = pc.if_else(known, number, pa.scalar(None, pa.int64()))
    return pc.multiply(inside, pa.scalar(many, pa.int64())).cast(pa.timestamp("us", zone))


COARSE = {"s": 10**6, "ms": 10**3}  # microseconds of a unit
FIRST_TIME, LAST_TIME = -62_135_596_800 * 10**6, 253_402_300_799 * 10**6  # from the year 1 to the year 9999


def held_types(empty: pa.Table, engine: BaseBackend) -> dict[str, dt.DataType]:
    """The types that the engine gives to columns, asked with a table that has no rows."""
    name = f"types_{secrets.token_hex(8)}"
    engine.con.register(name, usable(empty))
    try:
        return dict(engine.table(name).schema().items())
    finally:
        engine.con.unregister(name)


def _from_pandas(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pandas"


def _integers(frame: pa.Table) -> frozenset[str]:
    import pyarrow as pa

    return frozenset(field.name for field in frame.schema if pa.types.is_integer(field.type))


@cache
def _holds(kind: pa.DataType) -> bool:
    """Whether the engine knows a type of Arrow; asked with a table that has no rows."""
    import pyarrow as pa

    cursor = connection()
    try:
        cursor.register("asked", pa.table({"column": pa.array([], kind)}))
        cursor.execute("DESCRIBE SELECT * FROM asked").fetchall()
    except Exception:  # noqa: BLE001 - whatever the engine says of a type that it does not know
        return False
    else:
        return True
    finally:
        cursor.close()


def _held_by_engine(frame: pa.Table) -> tuple[str, dict[str, dt.DataType]]:
    """The name of a copy, and the types that the engine gave to its columns."""
    name = f"frame_{secrets.token_hex(8)}"
    # The engine's words may quote a value: raised outside, the error does not carry them.
    with suppress(Exception), embedded() as engine:
        return name, dict(engine.create_table(name, frame).schema().items())
    raise EngineFailed(
        f"{Frame.engine} could not open {Frame.label}; nothing was read and nothing was spent. {Frame.advice}"
    )


def _dropped(name: str) -> None:
    """Give the memory of a copy back; in a process that was forked off, there is none."""
    with suppress(Exception):
        cursor = connection()
        cursor.execute(f"DROP TABLE {name}")
        cursor.close()


def _plain(data: Any) -> pa.Table | None:
    """Hold the frame as Arrow, with plain columns; None where that cannot be done.

    A column that has no one type, such as text mixed with numbers, is there by name alone: whoever does not ask for it
    need not care, and whoever does is told.
    """
    import pyarrow as pa

    frame = _arrow(data)
    if frame is None:
        names = [str(name) for name in getattr(data, "columns", ())]
        if not names or len(set(names)) != len(names) or not is_one_of(data, IN_MEMORY):
            return None
        columns = {name: _arrow(data[[given]]) for name, given in zip(names, data.columns, strict=True)}
        told = {name: column for name, column in columns.items() if column is not None}
        if not told:
            return None
        rows = next(iter(told.values())).num_rows
        frame = pa.table(
            {name: told[name].column(0) if name in told else pa.nulls(rows, _unusable()) for name in names}
        )
    return usable(frame)


def _arrow(data: object) -> pa.Table | None:
    import pyarrow as pa

    try:
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # their words may quote a value
        return None


def _unusable() -> pa.DataType:
    """The type of columns that are there by name alone."""
    import pyarrow as pa

    return pa.binary()
