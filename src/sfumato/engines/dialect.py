"""The contract of a dialect: all that Sfumato must know of an engine, because no common way to write it exists.

An engine is one object in one file of :mod:`sfumato.engines.dialects`, where it is found by itself. Every rule is
abstract and none has a default: a dialect that leaves a rule out cannot be made, so no engine is read by the rules of
another one in silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from sfumato.engines.expressions import Side, Type, Unit

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["Dialect", "PublicColumns", "PublicValue", "builtin", "doubled"]

PublicValue = str | int | float | bool | date | None
PublicColumns = Mapping[str, tuple[Type, Sequence[PublicValue]]]


class Dialect(ABC):
    """An engine whose meaning of every operation is pinned by tests.

    Guarantee: none of its own; that all dialects mean the same is what tests/engines/test_three_engines.py shows.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What Ibis calls the engine."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call the engine."""

    # SQL that we write ourselves

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A name as the engine writes it, whatever signs are in it."""

    @abstractmethod
    def sql_name(self, kind: Type) -> str:
        """What the engine calls one of our types."""

    @abstractmethod
    def cast(self, column: str, kind: Type, dtype: dt.DataType) -> str:
        """A quoted column of an Ibis type as one of ours; it never raises, and text compares bytewise."""

    # Expressions of Ibis

    @abstractmethod
    def bytes_of(self, text: ir.Value) -> ir.Value:
        """A text as its UTF-8 bytes, which compare the same everywhere, whatever collation a column or server has."""

    @abstractmethod
    def bytes_constant(self, value: bytes) -> ir.Value:
        """Constant bytes."""

    @abstractmethod
    def wide(self, value: ir.Value) -> ir.Value:
        """A 64-bit whole number as one that holds the product of any two."""

    @abstractmethod
    def wide_constant(self, value: int) -> ir.Value:
        """A constant to compare wide numbers with."""

    @abstractmethod
    def from_decimal(self, value: ir.Value) -> ir.Value:
        """A decimal as the nearest double; null where it is no number."""

    @abstractmethod
    def divided(self, value: ir.Value, by: int) -> ir.Value:
        """A 64-bit whole number that is not negative, divided by a positive one and rounded down."""

    @abstractmethod
    def microseconds(self, time: ir.Value) -> ir.Value:
        """A timestamp of the years 1 to 9999, or null, as microseconds since the first moment of the year 1."""

    @abstractmethod
    def time_of(self, microseconds: ir.Value) -> ir.Value:
        """The timestamp this many microseconds after the first moment of the year 1; the years 1 to 9999."""

    @abstractmethod
    def day_of(self, number: ir.Value) -> ir.Value:
        """The date this many days after the first day of the year 1; the years 1 to 9999."""

    @abstractmethod
    def begun(self, day: ir.Value, unit: Unit) -> ir.Value:
        """The first day of the year, quarter or month that a date of the years 1 to 9999 is in, as a date."""

    @abstractmethod
    def months_later(self, day: ir.Value, months: int) -> ir.Value:
        """A date some months later, or the last day of a shorter month; both of the years 1 to 9999."""

    @abstractmethod
    def trimmed(self, text: ir.Value, side: Side) -> ir.Value:
        """A text without the spaces (U+0020) at its ends."""

    @abstractmethod
    def total(self, column: ir.Value) -> ir.Value:
        """The sum of 64-bit whole numbers, as a whole number of up to 38 digits, which Ibis calls a decimal."""

    @abstractmethod
    def travels_as_text(self, dtype: dt.DataType) -> bool:
        """Whether the engine or its driver could round numbers of this type on the way out."""

    @abstractmethod
    def ordered(self, digits: ir.Value) -> ir.Value:
        """Hexadecimal digits as something that orders bytewise."""

    @abstractmethod
    def number_of(self, digits: ir.Value) -> ir.Value:
        """Seven hexadecimal digits as a whole number."""

    @abstractmethod
    def public_table(self, columns: PublicColumns) -> ir.Table:
        """A small table of public values that we bring along; nothing is created on the engine."""

    @abstractmethod
    def worked_out(self, table: ir.Table) -> ir.Table:
        """The table, its columns worked out once for each row, and not wherever an expression above names them."""

    @property
    @abstractmethod
    def sieves(self) -> bool:
        """Whether a sieve in a scan of its own, before a person's rows are put in order, takes less time than it saves.

        The same rows are kept with and without it.
        """

    @property
    @abstractmethod
    def places_keys(self) -> bool:
        """Whether a key's place in a short list is worked out row by row, in less time than a join with the list takes.

        The same rows are in the same cells either way.
        """

    @abstractmethod
    def brought_out(self, table: ir.Table) -> pa.Table:
        """Run a query and bring its rows out. Sensitive: they are exact."""

    @property
    @abstractmethod
    def closes_by_membership(self) -> bool:
        """Whether wedges are closed by asking if an edge is among all; where not, by a join."""

    # Tables of an Ibis connection

    @abstractmethod
    def tried_cast_fails(self, held: dt.DataType, made: dt.DataType) -> bool:
        """Whether a cast that only tries, from one type of Ibis to another, can still stop a query."""

    @abstractmethod
    def connection(self, engine: BaseBackend) -> object:
        """The connection itself, which other backends of Ibis may share."""

    @abstractmethod
    def session(self, engine: BaseBackend) -> AbstractContextManager[object]:
        """Settings under which a query means what is tested, in one state of the data where the engine knows such.

        The connection is as before afterwards.
        """

    @abstractmethod
    def columns(self, engine: BaseBackend, query: str) -> dict[str, dt.DataType]:
        """Names and Ibis types of a query, as the engine works them out without reading a row."""

    @abstractmethod
    def stored(self, engine: BaseBackend, name: Sequence[str]) -> Iterable[Hashable]:
        """What the tables are known by that a name can mean, under whatever name they are declared."""

    @abstractmethod
    def check_stored(
        self,
        engine: BaseBackend,
        name: Sequence[str],
        label: str,
        *,
        unit: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """Refuse a name that does not stand for stored rows, or that lacks ``columns``: others describe other rows.

        The columns of the ``unit`` must be the stored ones.
        """


def doubled(name: str, sign: str) -> str:
    """A name between two signs, each of which is doubled inside it."""
    return f"{sign}{name.replace(sign, sign * 2)}{sign}"


@cache
def builtin(name: str, takes: tuple[str, ...], gives: str, schema: str | None = None) -> Callable[..., ir.Value]:
    """A function that an engine has and Ibis does not; each is pinned by a test on its engine."""
    import ibis

    def unary(value: object) -> None: ...

    def binary(value: object, other: object) -> None: ...

    def ternary(value: object, one: object, two: object) -> None: ...

    def seven(a: object, b: object, c: object, d: object, e: object, f: object, g: object) -> None: ...

    of = {1: unary, 2: binary, 3: ternary, 7: seven}[len(takes)]
    made: Callable[..., ir.Value] = ibis.udf.scalar.builtin(of, name=name, database=schema, signature=(takes, gives))
    return made
