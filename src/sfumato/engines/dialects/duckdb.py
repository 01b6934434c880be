"""DuckDB: the engine that is embedded, and connections of the steward's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any  # rows of a catalogue, as DuckDB gives them

from sfumato.engines.dialect import Dialect, PublicColumns, builtin, doubled
from sfumato.engines.expressions import Side, Type, Unit
from sfumato.engines.operands import DTYPES, FIRST_DAY, whole
from sfumato.engines.row_wise import not_row_wise
from sfumato.engines.stored_files import stored_as
from sfumato.errors import Refused

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from ibis.backends import BaseBackend

__all__ = ["DUCKDB", "usual_settings"]

NAMES = {
    Type.TEXT: "VARCHAR",
    Type.NUMBER: "DOUBLE",
    Type.WHOLE: "BIGINT",
    Type.TRUTH: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIME: "TIMESTAMP",
}
SINCE_1970 = 62_135_596_800_000_000  # microseconds from the first moment of the year 1
# Settings of an instance that change what a query means; those of a fresh instance are the ones tested.
MEANING = (
    "default_collation",
    "default_null_order",
    "ieee_floating_point_ops",
    "integer_division",
    "old_implicit_casting",
)
# Names of DuckDB ignore capital letters. A database of another kind that is attached shows its views as tables.
CATALOGUE = """
SELECT d.type = 'duckdb' AND found.stored, found.columns, d.path, found.schema_name, found.name FROM (
    SELECT t.database_name, t.schema_name, t.table_name AS name, NOT t.temporary AS stored,
        (SELECT list(c.column_name) FROM duckdb_columns() c WHERE c.table_oid = t.table_oid AND
            c.database_oid = t.database_oid) AS columns
    FROM duckdb_tables() t
    UNION ALL
    SELECT database_name, schema_name, view_name, false, [] FROM duckdb_views() WHERE NOT internal
) found JOIN duckdb_databases() d USING (database_name)
WHERE lower(found.name) = lower($1) AND ($2 IS NULL OR lower(found.schema_name) = lower($2) OR
    ($3 IS NULL AND lower(found.database_name) = lower($2))) AND ($3 IS NULL OR lower(found.database_name) = lower($3))
"""


class DuckDB(Dialect):
    """DuckDB. A 64-bit number beside an unsigned one becomes one of 128 bits, ten times as fast as a decimal."""

    __slots__ = ()
    name = "duckdb"
    title = "DuckDB"
    sieves = True
    """Its scans are quick, and putting rows in order costs memory."""
    places_keys = True
    """Joining 100,000 texts with two takes more than twice as long as comparing them with both."""
    closes_by_membership = True
    """A join would keep all wedges in memory, and pass edges by them."""

    def quoted(self, name: str) -> str:
        """Between double quotes."""
        return doubled(name, '"')

    def sql_name(self, kind: Type) -> str:
        """As DuckDB calls it."""
        return NAMES[kind]

    def cast(self, column: str, kind: Type, dtype: dt.DataType) -> str:
        """A text keeps its collation until another is named."""
        if getattr(dtype, "timezone", None) is not None:  # on the clock of UTC, whatever zone the connection has
            return f"make_timestamp(epoch_us({column}))"
        if dtype.is_timestamp() and kind is Type.TIME:
            return f"TRY_CAST({column} AS TIMESTAMP)"
        if dtype.is_decimal():
            return f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
        cast = f"CAST({column} AS {NAMES[kind]})"
        return f'{cast} COLLATE "C"' if kind is Type.TEXT else cast

    def tried_cast_fails(self, held: dt.DataType, made: dt.DataType) -> bool:
        """To a zone it does not try."""
        return getattr(made, "timezone", None) is not None

    def bytes_of(self, text: ir.Value) -> ir.Value:
        """Encoded."""
        return builtin("encode", ("string",), "binary")(text)

    def bytes_constant(self, value: bytes) -> ir.Value:
        """A literal."""
        import ibis

        return ibis.literal(value, type="binary")

    def wide(self, value: ir.Value) -> ir.Value:
        """128 bits, which Ibis takes for a decimal."""
        import ibis

        return _coalesce()(value, ibis.literal(0).cast("uint64"))

    def wide_constant(self, value: int) -> ir.Value:
        """128 bits."""
        import ibis

        return _coalesce()(ibis.literal(str(value)).cast("int64"), ibis.literal(0).cast("uint64"))

    def from_decimal(self, value: ir.Value) -> ir.Value:
        """By its text: DuckDB would divide two doubles, of which one may have been rounded already."""
        return value.cast("string").cast("float64")

    def divided(self, value: ir.Value, by: int) -> ir.Value:
        """Its function for whole numbers."""
        return builtin("divide", ("int64", "int64"), "int64")(value, whole(by))

    def microseconds(self, time: ir.Value) -> ir.Value:
        """Since 1970, and before."""
        return builtin("epoch_us", ("timestamp(6)",), "int64")(time.cast("timestamp(6)")) + whole(SINCE_1970)

    def time_of(self, microseconds: ir.Value) -> ir.Value:
        """From microseconds since 1970."""
        return builtin("make_timestamp", ("int64",), "timestamp(6)")(microseconds - whole(SINCE_1970))

    def day_of(self, number: ir.Value) -> ir.Value:
        """A date and a whole number are added as such."""
        import ibis

        return builtin("add", ("date", "int32"), "date")(ibis.literal(FIRST_DAY), number.cast("int32"))

    def begun(self, day: ir.Value, unit: Unit) -> ir.Value:
        """Put together again from its parts: ``date_trunc`` fails where a column holds a day beyond what a time can be.

        It fails while the query is planned, from the least and the greatest value of the column, whatever a condition
        around it says of the row.
        """
        month = {Unit.YEAR: whole(1), Unit.QUARTER: (day.quarter() - whole(1)) * whole(3) + whole(1)}.get(unit)
        first = day.month() if month is None else month
        return builtin("make_date", ("int64", "int64", "int64"), "date")(
            day.year().cast("int64"), first.cast("int64"), whole(1)
        )

    def months_later(self, day: ir.Value, months: int) -> ir.Value:
        """An interval is added."""
        length = builtin("to_months", ("int32",), "interval('M')")(months)
        return builtin("add", ("date", "interval('M')"), "timestamp(6)")(day, length).cast("date")

    def trimmed(self, text: ir.Value, side: Side) -> ir.Value:
        """The sign is named: by itself DuckDB takes every kind of space."""
        name = {Side.BOTH: "trim", Side.START: "ltrim", Side.END: "rtrim"}[side]
        return builtin(name, ("string", "string"), "string")(text, " ")

    def total(self, column: ir.Value) -> ir.Value:
        """Added up in 128 bits."""
        return column.sum().cast("decimal(38, 0)")

    def travels_as_text(self, dtype: dt.DataType) -> bool:
        """Whole numbers of more than 64 bits."""
        return bool(dtype.is_decimal())

    def ordered(self, digits: ir.Value) -> ir.Value:
        """Text compares bytewise."""
        return digits

    def number_of(self, digits: ir.Value) -> ir.Value:
        """Read from a text."""
        import ibis

        return (ibis.literal("0x") + digits).cast("int64")

    def worked_out(self, table: ir.Table) -> ir.Table:
        """As it is: expressions that occur several times are worked out once."""
        return table

    def brought_out(self, table: ir.Table) -> pa.Table:
        """By Ibis; by the text that it made of the plan before, where the embedded engine has kept it."""
        engine = table.get_backend()
        kept = getattr(engine, "text_of", None)
        text = None if kept is None else kept(table.op())
        if text is None:
            return table.to_pyarrow()
        return engine.con.sql(text).to_arrow_table().cast(table.schema().to_pyarrow())

    def public_table(self, columns: PublicColumns) -> ir.Table:
        """Handed over as an Arrow table."""
        import ibis
        import pyarrow as pa

        arrays = {
            name: pa.array(list(values), type=ibis.dtype(DTYPES[kind]).to_pyarrow())
            for name, (kind, values) in columns.items()
        }
        return ibis.memtable(pa.table(arrays))

    def connection(self, engine: BaseBackend) -> object:
        """DuckDB's own."""
        return engine.con

    @contextmanager
    def session(self, engine: BaseBackend) -> Iterator[None]:
        """One transaction, which sees one state; where the steward has begun one already, it is used and left open."""
        usual_settings(engine.con)
        # A failed BEGIN would spoil the steward's transaction. Outside of one, each statement has a number of its own.
        first, second = (engine.con.execute("SELECT txid_current()").fetchone() for _ in range(2))
        ours = first != second
        if ours:
            engine.con.execute("BEGIN TRANSACTION READ ONLY")
        try:
            yield
        finally:
            if ours:
                engine.con.execute("ROLLBACK")

    def columns(self, engine: BaseBackend, query: str) -> dict[str, dt.DataType]:
        """Described; not by Ibis, which calls what DuckDB has deprecated."""
        described = engine.raw_sql(f"DESCRIBE {query}").fetchall()
        return {name: engine.compiler.type_mapper.from_string(kind) for name, kind, *_ in described}

    def stored(self, engine: BaseBackend, name: Sequence[str]) -> list[Hashable]:
        """Their file, and their name in it. Databases in memory are taken for one, since nothing tells them apart."""
        return [
            ("DuckDB", where, schema.lower(), table.lower())
            for *_, path, schema, table in _listed(engine.con, name)
            for where in (stored_as(Path(path)) if path else ("in memory",))
        ]

    def check_stored(
        self,
        engine: BaseBackend,
        name: Sequence[str],
        label: str,
        *,
        unit: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """``name`` is (database, schema, table), or its last parts.

        Where it could be read in several ways, all of them must be stored tables with these ``columns``: others, such
        as rowid, describe other rows. A temporary table may hold what a query made of all rows. What no catalogue lists
        (a frame of Python, a file) is not opened by its name.
        """
        found = _listed(engine.con, name)
        if not found:
            raise LookupError("there is no table of this name")
        if not all(stored for stored, *_ in found):
            raise not_row_wise(label, "is a view, a temporary table, or a table of a database of another kind")
        if not all(set(columns) <= set(listed) for _, listed, *_ in found):
            raise not_row_wise(label, "names a column that its table does not list")


DUCKDB = DuckDB()


def usual_settings(connection: DuckDBPyConnection) -> None:
    """Refuse an instance that is set up to read a query otherwise than a fresh one does."""
    import duckdb

    asked = f"SELECT name, value FROM duckdb_settings() WHERE name IN {MEANING} ORDER BY name"  # noqa: S608
    with duckdb.connect() as fresh:
        usual = dict(fresh.execute(asked).fetchall())
    for name, value in connection.execute(asked).fetchall():
        if value != usual[name]:
            raise Refused(
                f"the DuckDB connection has {name} set to something else than usual, which changes what a query means; "
                f"nothing was read and nothing was spent. Take it back: RESET {name}"
            )


def _listed(connection: DuckDBPyConnection, name: Sequence[str]) -> list[tuple[Any, ...]]:
    """What the catalogue has under a name."""
    table, schema, database = [*reversed(name), None, None][:3]
    return list(connection.execute(CATALOGUE, [table, schema, database]).fetchall())


def _coalesce() -> Callable[..., ir.Value]:
    return builtin("coalesce", ("int64", "uint64"), "decimal(38, 0)")
