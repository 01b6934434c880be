"""Columns: what an engine calls their types, what we call them, and how one becomes the other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect, builtin
from sfumato.engines.expressions import Type
from sfumato.engines.operands import DTYPES, kind_of
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

__all__ = ["projected", "projection", "settled", "type_of"]


def type_of(dtype: dt.DataType) -> Type:
    """What a column of this Ibis type holds, if nothing else is declared; an identifier of 128 bits is a text."""
    return Type.TEXT if dtype.is_uuid() else kind_of(dtype)


def settled(
    held: Mapping[str, dt.DataType],
    declared: Mapping[str, Type] | None,
    label: str,
    zones: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Type]:
    """The columns of the table: those that the data has, or those declared, each of which the data must be able to be.

    A whole number may be declared a number, and a time a date. A time with a zone is one where its zone is declared.
    """
    for name in zones:
        if name not in held or not _has_zone(held[name]) or (declared or {}).get(name, Type.TIME) is not Type.TIME:
            raise InvalidInput(
                f"a zone is declared for column {name!r}, which must be times with a zone in {label}, and declared as "
                "times; nothing was read and nothing was spent. Leave the zone out."
            )
    held = {name: _clock(dtype) if name in zones else dtype for name, dtype in held.items()}
    if declared is None:
        return {name: type_of(dtype) for name, dtype in held.items()}
    for name, wanted in declared.items():
        if name not in held:
            raise InvalidInput(
                f"column {name!r} is declared, and {label} does not have it; nothing was read and nothing was spent. "
                f"The columns are {', '.join(sorted(held))}."
            )
        if wanted is not type_of(held[name]) and wanted is not _other_reading(held[name]):
            raise InvalidInput(
                f"column {name!r} is declared to hold {wanted.value}s, and in {label} it holds "
                f"{_described(held[name])}; nothing was read and nothing was spent. {_way_out(held[name])}"
            )
    return dict(declared)


def _has_zone(dtype: dt.DataType) -> bool:
    return bool(dtype.is_timestamp() and dtype.timezone is not None)


def _clock(dtype: dt.DataType) -> dt.DataType:
    """The same without its zone."""
    import ibis

    return ibis.dtype(DTYPES[Type.TIME]) if dtype.is_timestamp() else dtype


def _other_reading(dtype: dt.DataType) -> Type | None:
    """What else a column may be declared as, because each of its values has one value of that type."""
    return {Type.WHOLE: Type.NUMBER, Type.TIME: Type.DATE}.get(type_of(dtype))


def _way_out(dtype: dt.DataType) -> str:
    if type_of(dtype) is Type.OTHER:
        return "Give the column one of the types text, whole number, number, truth value or date, or leave it out."
    return "Declare the type that it has."


def _described(dtype: dt.DataType) -> str:
    if dtype.is_binary():
        return "bytes, or values of several types, such as text mixed with numbers"
    kind = type_of(dtype)
    return f"a type that is not supported ({dtype})" if kind is Type.OTHER else f"{kind.value}s"


def projected(table: ir.Table, types: Mapping[str, Type]) -> ir.Table:
    """Exactly the settled columns of a table whose text compares bytewise as it is, cast where they must be."""
    columns = {}
    for name, kind in types.items():
        column, dtype = table[name], table[name].type()
        cast = kind is not type_of(dtype) or dtype.is_uuid()
        if kind is Type.TIME:  # what a wider type holds beyond the calendar is missing
            columns[name] = _utc(column) if _has_zone(dtype) else column.try_cast(DTYPES[kind])
        else:
            columns[name] = column.cast(DTYPES[kind]) if cast and kind is not Type.OTHER else column
    as_it_is = tuple(columns) == table.columns and all(columns[name].equals(table[name]) for name in columns)
    return table if as_it_is else table.select(**columns)


def _utc(column: ir.Value) -> ir.Value:
    """On the clock of UTC, whatever zone the connection has; of the embedded engine."""
    since = builtin("epoch_us", ("timestamp('UTC')",), "int64")(column)
    return builtin("make_timestamp", ("int64",), "timestamp(6)")(since)


def projection(types: Mapping[str, Type], held: Mapping[str, dt.DataType], relation: str, dialect: Dialect) -> str:
    """The same as SQL for a relation of a database, where text may have a collation: it is made to compare bytewise.

    Columns of other types are left out; nothing can be asked of them.
    """
    parts = [
        f"{dialect.cast(dialect.quoted(name), kind, held[name])} AS {dialect.quoted(name)}"
        for name, kind in types.items()
        if kind is not Type.OTHER
    ]
    return f"SELECT {', '.join(parts)} FROM {relation}"  # noqa: S608 - every name is quoted
