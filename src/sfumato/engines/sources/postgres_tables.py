"""Tables of PostgreSQL, read in one read-only transaction for each release: one state, and nothing is created."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sfumato.core.extras import need
from sfumato.engines.dialects import Dialect
from sfumato.engines.sources.catalogues import check_postgres_table, postgres_stored
from sfumato.engines.sources.columns import quoted
from sfumato.engines.sources.origins import Settle
from sfumato.engines.sources.relations import table_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["PostgresTable", "columns_of_query", "reading"]

REPEATABLE_READ = 3  # psycopg's number for it
# Ours for the length of the transaction: they change how a query is read, or how its result is written.
SETTINGS = {
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
    "cursor_tuple_fraction": "1",  # all rows of a result are wanted, not the first ones soon
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


@dataclass(slots=True, kw_only=True, eq=False)
class PostgresTable:
    """A table or view of a server. Each opening connects anew and closes its connection."""

    reached: Mapping[str, Any] = field(repr=False)
    name: tuple[str, ...]
    derived: bool = False
    engine: str = "PostgreSQL"
    advice: str = (
        "Check that the server answers, that the user may read the table, and that the name is right: schema.table, "
        "capital letters included."
    )

    @property
    def label(self) -> str:
        """The name of the table."""
        return f"table {'.'.join(self.name)!r}"

    def state(self) -> object:
        """Nothing tells when a table was written to."""
        return None

    def stored(self, engine: Any) -> Iterable[Hashable]:
        """The table and its parts, by the numbers that the server has given them."""
        return postgres_stored(engine.con, self.name)

    def place(self) -> Hashable:
        """The database, as this user reaches it."""
        return self.engine, tuple(sorted((name, str(value)) for name, value in self.reached.items()))

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A new connection, in the state that the database has when the transaction begins."""
        need("psycopg", "pip install 'sfumato[postgres]'")
        import ibis

        words = {"application_name": "sfumato", "connect_timeout": 30, "client_encoding": "UTF8", **self.reached}
        words["database"] = words.pop("dbname", None)
        engine = ibis.postgres.connect(**words)
        try:
            with reading(engine.con):
                yield engine
        finally:
            with suppress(Exception):  # a connection that broke cannot be closed any better
                engine.disconnect()

    def held(self, engine: Any) -> dict[str, Any]:
        """Asked of the server for a query that returns no row; that the user may read the table is checked by it."""
        if not self.derived:
            check_postgres_table(engine.con, self.name, self.label)
        return columns_of_query(engine.con, f"SELECT * FROM {self._relation}")  # noqa: S608 - quoted

    def table(self, engine: Any, settle: Settle, until: ExitStack) -> ir.Table:
        """The table."""
        held = self.held(engine)
        return table_of(engine, self._relation, settle(held), held, Dialect.POSTGRES)

    @property
    def _relation(self) -> str:
        return ".".join(quoted(part, Dialect.POSTGRES) for part in self.name)


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
            yield
    finally:
        with suppress(Exception):  # not where the connection broke meanwhile
            connection.set_read_only(before[0])
            connection.set_isolation_level(before[1])


def columns_of_query(connection: Any, query: str) -> dict[str, Any]:
    """Names and Ibis types of a query's columns; no row is read."""
    import ibis

    with connection.cursor() as cursor:
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
