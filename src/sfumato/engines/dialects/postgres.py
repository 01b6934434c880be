"""PostgreSQL, read in one read-only transaction: one state, and nothing is created."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any  # a connection of psycopg, which nothing here imports

from sfumato.engines.dialect import Dialect, PublicColumns, builtin, doubled
from sfumato.engines.expressions import Side, Type, Unit
from sfumato.engines.operands import DTYPES, FIRST_DAY, double, whole
from sfumato.engines.public_text import one_text
from sfumato.engines.row_wise import not_row_wise

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["POSTGRES", "reading"]

NAMES = {
    Type.TEXT: "TEXT",
    Type.NUMBER: "DOUBLE PRECISION",
    Type.WHOLE: "BIGINT",
    Type.TRUTH: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIME: "TIMESTAMP",
}
DAY = 86_400_000_000  # microseconds
# What a step of a query may hold in memory before it writes to disk; a server that allows more is left alone.
ROOM = """
SELECT pg_catalog.set_config('work_mem', '64MB', true)
WHERE pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) < pg_catalog.pg_size_bytes('64MB')
"""
REPEATABLE_READ = 3  # psycopg's number for it
# Ours for the length of the transaction: they change how a query is read, or how its result is written.
SETTINGS = {
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
    "cursor_tuple_fraction": "1",  # all rows of a result are wanted, not the first ones soon
    "parallel_tuple_cost": "0.01",  # what a row costs on its way is little beside the md5 of its person
    "jit": "off",  # a question is one query of many expressions, and compiling them takes longer than they do
}
TYPES = {
    16: "boolean",
    20: "int64",
    21: "int16",
    23: "int32",
    700: "float32",
    701: "float64",
    19: "string",  # name
    25: "string",
    1042: "string",  # char(n)
    1043: "string",
    2950: "uuid",
    1082: "date",
    1114: "timestamp",
    1184: "timestamp('UTC')",
    1700: "decimal",
}
# What the server adds to each row (where it lies, who wrote it) has no number above 0.
LISTED = """
SELECT attname::text FROM pg_catalog.pg_attribute
WHERE attrelid = pg_catalog.to_regclass(%s)::pg_catalog.oid AND attnum > 0 AND NOT attisdropped
"""
# A table and all that inherit from it, partitions too: what is read of it is theirs.
CATALOGUE = """
WITH RECURSIVE tree AS (
    SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid AS oid
    UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT c.relkind::text, c.relpersistence::text, pg_catalog.row_security_active(c.oid)
FROM tree JOIN pg_catalog.pg_class c USING (oid)
"""
# The number of a server is its copies' too; not everyone may ask for it everywhere.
SERVER = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
MAY_ASK = "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"
NUMBERS = """
WITH RECURSIVE tree AS (
    SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid AS oid
    UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT d.oid::bigint, tree.oid::bigint FROM tree, pg_catalog.pg_database d
WHERE d.datname = pg_catalog.current_database() AND tree.oid IS NOT NULL
"""
KINDS = {"v": "is a view", "m": "is a materialised view", "f": "is, or has as a part, a table of another server"}


class Postgres(Dialect):
    """PostgreSQL, whose text compares by the collation of the database."""

    __slots__ = ()
    name = "postgres"
    title = "PostgreSQL"
    sieves = False
    """Marks cost more than putting rows in order does, and a second scan would work them out again."""
    places_keys = False
    """It was not timed here."""
    closes_by_membership = False

    def quoted(self, name: str) -> str:
        """Between double quotes.

        >>> POSTGRES.quoted('it"s')
        '"it""s"'
        """
        return doubled(name, '"')

    def sql_name(self, kind: Type) -> str:
        """As PostgreSQL calls it.

        >>> POSTGRES.sql_name(Type.NUMBER)
        'DOUBLE PRECISION'
        """
        return NAMES[kind]

    def cast(self, column: str, kind: Type, dtype: dt.DataType) -> str:
        """A text keeps its collation until another is named; a numeric can be beyond every double, on both ends."""
        name = NAMES[kind]
        if dtype.is_decimal():
            return (
                f"CASE WHEN {column} = 'NaN' THEN CAST('NaN' AS {name}) "
                f"WHEN ABS({column}) > 1e308 THEN SIGN({column}) * CAST('Infinity' AS {name}) "
                f"WHEN ABS({column}) < 1e-307 THEN 0 ELSE CAST({column} AS {name}) END"
            )
        if getattr(dtype, "timezone", None) is not None:
            return f"pg_catalog.timezone('UTC', {column})"
        cast = f"CAST({column} AS {name})"
        return f'{cast} COLLATE "C"' if kind is Type.TEXT else cast

    def tried_cast_fails(self, held: dt.DataType, made: dt.DataType) -> bool:
        """It has no cast that only tries: Ibis writes one that fails."""
        return True

    def bytes_of(self, text: ir.Value) -> ir.Value:
        """Converted."""
        return builtin("convert_to", ("string", "string"), "binary")(text, "UTF8")

    def bytes_constant(self, value: bytes) -> ir.Value:
        """Read from hexadecimal digits."""
        return _decode()(value.hex(), "hex")

    def wide(self, value: ir.Value) -> ir.Value:
        """19 digits hold 64 bits, and 38 digits a product."""
        return value.cast("decimal(19, 0)")

    def wide_constant(self, value: int) -> ir.Value:
        """38 digits."""
        import ibis

        return ibis.literal(Decimal(value), type="decimal(38, 0)")

    def from_decimal(self, value: ir.Value) -> ir.Value:
        """A numeric can be beyond every double, on both ends, and it can be no number."""
        import ibis

        size = value.abs()
        return ibis.cases(
            (value == ibis.literal("NaN").cast("decimal"), ibis.null("float64")),
            (size > ibis.literal("1e300").cast("decimal"), value.sign().cast("float64") * double(1e300)),
            (size < ibis.literal("1e-300").cast("decimal"), double(0.0)),
            else_=value.cast("float64"),
        )

    def divided(self, value: ir.Value, by: int) -> ir.Value:
        """The function behind its sign."""
        return builtin("int8div", ("int64", "int64"), "int64")(value, whole(by))

    def microseconds(self, time: ir.Value) -> ir.Value:
        """From the day and the parts of the clock, each of which a double holds exactly."""
        import ibis

        part = builtin("date_part", ("string", "timestamp(6)"), "float64")
        days = time.cast("date").delta(ibis.literal(FIRST_DAY), unit="day").cast("int64")
        hours, minutes, rest = (part(name, time).cast("int64") for name in ("hour", "minute", "microseconds"))
        return ((days * whole(24) + hours) * whole(60) + minutes) * whole(60_000_000) + rest

    def time_of(self, microseconds: ir.Value) -> ir.Value:
        """A day, and an interval of less than a day."""
        of_day = microseconds % whole(DAY)
        day = self.day_of(self.divided(microseconds, DAY))
        interval = builtin("make_interval", (*["int32"] * 6, "float64"), "interval('us')")
        length = interval(0, 0, 0, 0, 0, 0, of_day.cast("float64") / double(1e6))
        return builtin("timestamp_pl_interval", ("timestamp(6)", "interval('us')"), "timestamp(6)")(
            day.cast("timestamp(6)"), length
        )

    def day_of(self, number: ir.Value) -> ir.Value:
        """The function behind the plus of a date and a whole number."""
        import ibis

        return builtin("date_pli", ("date", "int32"), "date")(ibis.literal(FIRST_DAY), number.cast("int32"))

    def begun(self, day: ir.Value, unit: Unit) -> ir.Value:
        """Of a time without a zone: of a date, PostgreSQL would take one with the zone of the connection."""
        function = builtin("date_trunc", ("string", "timestamp(6)"), "timestamp(6)")
        return function(unit.value, day.cast("timestamp(6)")).cast("date")

    def months_later(self, day: ir.Value, months: int) -> ir.Value:
        """The function behind the plus of a date and an interval."""
        length = builtin("make_interval", (*["int32"] * 6, "float64"), "interval('us')")(0, months, 0, 0, 0, 0, 0.0)
        return builtin("date_pl_interval", ("date", "interval('us')"), "timestamp(6)")(day, length).cast("date")

    def trimmed(self, text: ir.Value, side: Side) -> ir.Value:
        """Spaces only, by themselves."""
        name = {Side.BOTH: "btrim", Side.START: "ltrim", Side.END: "rtrim"}[side]
        return builtin(name, ("string",), "string")(text)

    def total(self, column: ir.Value) -> ir.Value:
        """Added up in numerics of any length."""
        return column.sum().cast("decimal(38, 0)")

    def travels_as_text(self, dtype: dt.DataType) -> bool:
        """Whole numbers of more than 64 bits."""
        return bool(dtype.is_decimal())

    def ordered(self, digits: ir.Value) -> ir.Value:
        """As bytes."""
        return _decode()(digits, "hex")

    def number_of(self, digits: ir.Value) -> ir.Value:
        """By way of bits: the digits are named once, for whatever makes them is worked out wherever it is named."""
        import ibis

        bits = builtin("varbit", ("string",), "string", "pg_catalog")(ibis.literal("x") + digits)
        return builtin("int8", ("string",), "int64", "pg_catalog")(bits)

    def worked_out(self, table: ir.Table) -> ir.Table:
        """Behind OFFSET 0, which keeps the planner from putting expressions in the place of their names.

        Its name is one that no table of the server has: it would stand for that table.
        """
        import ibis.expr.operations as ops

        name = f"sfumato_{secrets.token_hex(8)}"
        query = f"SELECT * FROM {self.quoted(name)} OFFSET 0"  # noqa: S608 - quoted
        return ops.SQLStringView(table.alias(name), query, table.schema()).to_expr()

    def brought_out(self, table: ir.Table) -> pa.Table:
        """All rows at once: for a cursor, by which Ibis would read them, PostgreSQL starts no parallel workers."""
        import pyarrow as pa

        engine, schema = table.get_backend(), table.schema().to_pyarrow()
        rows = engine.con.execute(engine.compile(table)).fetchall()
        columns = zip(*rows, strict=True) if rows else [() for _ in schema]
        return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)

    def public_table(self, columns: PublicColumns) -> ir.Table:
        """As one text: a read-only transaction does not allow a temporary table.

        It is taken apart once, behind GROUP BY, by a function in FROM: parallel workers can then do so, too.
        """
        import ibis
        import ibis.expr.operations as ops

        given, name = one_text(columns), f"sfumato_{secrets.token_hex(8)}"
        cells = ", ".join(
            f"CAST(NULLIF(cells[{place}], '{given.nothing}') AS {NAMES[kind]}) AS {self.quoted(column)}"
            for place, (column, (kind, _)) in enumerate(columns.items(), 1)
        )
        # The signs are for private use and so none of SQL's; names are quoted.
        query = (
            f"SELECT {cells} FROM (SELECT number, STRING_TO_ARRAY(line, '{given.next_cell}') AS cells FROM "  # noqa: S608
            f"{self.quoted(name)} CROSS JOIN UNNEST(STRING_TO_ARRAY(content, '{given.next_row}')) WITH ORDINALITY "
            "AS lines(line, number) WHERE line <> '') AS taken GROUP BY number, cells"
        )
        text = ibis.literal(given.text).name("content").as_table()
        schema = ibis.schema({column: DTYPES[kind] for column, (kind, _) in columns.items()})
        return ops.SQLStringView(text.alias(name), query, schema).to_expr()

    def connection(self, engine: BaseBackend) -> object:
        """That of the driver."""
        return engine.con

    @contextmanager
    def session(self, engine: BaseBackend) -> Iterator[None]:
        """One read-only transaction that sees one state."""
        with reading(engine.con):
            yield

    def columns(self, engine: BaseBackend, query: str) -> dict[str, dt.DataType]:
        """Asked of the server for a query that returns no row."""
        import ibis

        with engine.con.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) AS data LIMIT 0")  # noqa: S608 - a query of ours
            named = [(column.name, column.type_code) for column in cursor.description]
            unknown = list({code for _, code in named} - TYPES.keys())
            # Texts of other kinds: a list of words, or text that ignores capital letters.
            cursor.execute(
                "SELECT oid FROM pg_catalog.pg_type WHERE oid = ANY(%s) AND (typtype = 'e' OR typname = 'citext')",
                (unknown,),
            )
            texts = {oid for (oid,) in cursor.fetchall()}
        if len({name for name, _ in named}) != len(named):
            raise ValueError("a column is there twice")
        return {name: ibis.dtype("string" if code in texts else TYPES.get(code, "json")) for name, code in named}

    def stored(self, engine: BaseBackend, name: Sequence[str]) -> list[Hashable]:
        """A table and its parts, by the numbers of server, database and table."""
        connection, relation = engine.con, self._relation(name)
        (may_ask,) = connection.execute(MAY_ASK).fetchone()
        (server,) = connection.execute(SERVER).fetchone() if may_ask else ("",)
        return [("PostgreSQL", server, *numbers) for numbers in connection.execute(NUMBERS, (relation,)).fetchall()]

    def check_stored(
        self,
        engine: BaseBackend,
        name: Sequence[str],
        label: str,
        *,
        unit: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """Of its ``columns``, all must be stored: others, such as ctid, describe other rows."""
        relation = self._relation(name)
        found = engine.con.execute(CATALOGUE, (relation,)).fetchall()
        if not found:
            raise LookupError("there is no table of this name")
        for kind, lasting, secured in found:
            if kind not in ("r", "p"):
                raise not_row_wise(label, KINDS.get(kind, "is no table"))
            if lasting == "t":
                raise not_row_wise(label, "is a temporary table, which may hold what a query made of all rows")
            if secured:
                raise not_row_wise(label, "has a policy that decides which rows this user sees")
        if columns:
            listed = {column for (column,) in engine.con.execute(LISTED, (relation,)).fetchall()}
            if not set(columns) <= listed:
                raise not_row_wise(label, "names a column that its table does not list")

    def _relation(self, name: Sequence[str]) -> str:
        """The connection has one database: its name, where it is said, is left out."""
        return ".".join(self.quoted(part) for part in name[-2:])


POSTGRES = Postgres()


@contextmanager
def reading(connection: Any) -> Iterator[None]:
    """One read-only transaction that sees one state; the connection is as before afterwards."""
    before = connection.read_only, connection.isolation_level
    connection.set_read_only(True)
    connection.set_isolation_level(REPEATABLE_READ)
    try:
        with connection.transaction(force_rollback=True):
            for name, value in SETTINGS.items():
                connection.execute("SELECT pg_catalog.set_config(%s, %s, true)", (name, value))
            connection.execute(ROOM)
            yield
    finally:
        with suppress(Exception):  # not where the connection broke meanwhile
            connection.set_read_only(before[0])
            connection.set_isolation_level(before[1])


def _decode() -> Callable[..., ir.Value]:
    return builtin("decode", ("string", "string"), "binary")
