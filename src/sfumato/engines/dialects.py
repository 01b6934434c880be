"""What is written differently for each engine, because no common way to write it means the same on all."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Dialect", "bytes_constant", "bytes_of", "dialect_of", "wide", "wide_constant"]


class Dialect(Enum):
    """The engines whose meaning of every operation is pinned by tests; the names are Ibis's."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SPARK = "pyspark"


def dialect_of(table: ir.Table) -> Dialect:
    """Which engine a table lives on; one that is not pinned by tests is refused."""
    name = table.get_backend().name
    if name not in {dialect.value for dialect in Dialect}:
        raise Unsupported(f"expressions are not known to mean the same on {name!r}; nothing was read.")
    return Dialect(name)


def bytes_of(text: Any, dialect: Dialect) -> Any:
    """A text as its UTF-8 bytes, which compare the same everywhere, whatever collation a column or server has."""
    match dialect:
        case Dialect.DUCKDB:
            return _functions()["encode"](text)
        case Dialect.POSTGRES:
            return _functions()["convert_to"](text, "UTF8")
    return text.cast("binary")


def bytes_constant(value: bytes, dialect: Dialect) -> Any:
    """Constant bytes; PostgreSQL reads them from hexadecimal digits."""
    import ibis

    if dialect is Dialect.POSTGRES:
        return _functions()["decode"](value.hex(), "hex")
    return ibis.literal(value, type="binary")


def wide(value: Any, dialect: Dialect) -> Any:
    """A 64-bit whole number as one that holds the product of any two.

    19 digits hold 64 bits, and 38 digits a product. In DuckDB a 64-bit number beside an unsigned one becomes one of
    128 bits, which is ten times as fast as a decimal; Ibis takes it for a decimal.
    """
    import ibis

    if dialect is Dialect.DUCKDB:
        return _functions()["coalesce"](value, ibis.literal(0).cast("uint64"))
    return value.cast("decimal(19, 0)")


def wide_constant(value: int, dialect: Dialect) -> Any:
    """A constant to compare wide numbers with."""
    import ibis

    if dialect is Dialect.DUCKDB:
        return _functions()["coalesce"](ibis.literal(str(value)).cast("int64"), ibis.literal(0).cast("uint64"))
    return ibis.literal(Decimal(value), type="decimal(38, 0)")


@cache
def _functions() -> dict[str, Any]:
    """Functions that the engines have and Ibis does not; each is pinned by a test on its engine."""
    import ibis

    def unary(value):  # type: ignore[no-untyped-def]
        ...

    def binary(value, other):  # type: ignore[no-untyped-def]
        ...

    def made(name: str, of: Any, takes: tuple[str, ...], gives: str) -> Any:
        return ibis.udf.scalar.builtin(of, name=name, signature=(takes, gives))

    return {
        "encode": made("encode", unary, ("string",), "binary"),
        "convert_to": made("convert_to", binary, ("string", "string"), "binary"),
        "decode": made("decode", binary, ("string", "string"), "binary"),
        "coalesce": made("coalesce", binary, ("int64", "uint64"), "decimal(38, 0)"),
    }
