"""Tables of databases, named so that a password shows nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # a session or a frame of Spark, which may not be installed
from urllib.parse import parse_qsl, unquote, urlencode

from sfumato.core.extras import need
from sfumato.engines.sources.origin import Origin
from sfumato.errors import InvalidInput, NotDeclared, Unsupported

__all__ = ["DatabaseTable", "duckdb", "from_url", "postgres", "spark", "stored_tables"]

TableName = str | tuple[str, ...]
CATALOGUES = {
    "PostgreSQL": """
        SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND NOT c.relispartition
        AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2 LIMIT 500
    """,
    "DuckDB": """
        SELECT schema_name, table_name FROM duckdb_tables()
        WHERE database_name = 'data' AND NOT internal AND NOT temporary ORDER BY 1, 2 LIMIT 500
    """,
}
USUAL = ("public", "main")
UNREADABLE = (
    "the URL of the database cannot be read; nothing was done. Write it as postgresql://user@host:port/database?table=…"
    ", with signs such as @ / : ? in a password written %40 %2F %3A %3F."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTable:
    """A table of a database, to be declared with ``vault.table``; nothing is opened yet.

    A view is taken where it is declared ``derived=True``. Public: the kind of database and the name of the table. What
    it is reached by is not shown.
    """

    kind: str
    name: tuple[str, ...]
    place: Any = field(repr=False)

    def origin(self, *, derived: bool = False, unit: tuple[str, ...] = ()) -> Origin:
        """What opens it. One that is ``derived`` may be a view: its steward vouches for it.

        Stored tables have the columns of the ``unit`` as they are; of Spark, views and frames are taken too.
        """
        from sfumato.engines.sources import duckdb_tables, postgres_tables, spark_tables

        match self.kind:
            case "DuckDB" if isinstance(self.place, Path):
                return duckdb_tables.DuckDBFile(path=self.place, name=self.name, derived=derived)
            case "DuckDB":
                return duckdb_tables.DuckDBConnection(connection=self.place, name=self.name, derived=derived)
            case "PostgreSQL":
                return postgres_tables.PostgresTable(reached=self.place, name=self.name, derived=derived)
        return spark_tables.SparkTable(given=self.place, name=self.name, derived=derived, unit=unit)


def duckdb(database: object, *, table: TableName | None = None) -> DatabaseTable:
    """A table of a DuckDB database: the path of its file, which is opened read-only, or a connection.

    >>> duckdb("clinic.duckdb", table="main.visits")
    DatabaseTable(kind='DuckDB', name=('main', 'visits'))
    """
    name = _name(table, "duckdb", most=2 if isinstance(database, str | Path) else 3)
    if isinstance(database, str | Path):
        return DatabaseTable(kind="DuckDB", name=name, place=Path(database))
    if not (hasattr(database, "cursor") and type(database).__name__ == "DuckDBPyConnection"):
        raise InvalidInput(
            f"a {type(database).__name__} is not a DuckDB database; give the path of its file or a connection."
        )
    return DatabaseTable(kind="DuckDB", name=name, place=database)


def postgres(url: str, *, table: TableName | None = None) -> DatabaseTable:
    """A table of a PostgreSQL database. Each release reads it in one read-only transaction, in one state.

    The table may also stand in the URL: ``postgresql://reader@db.example/clinic?table=public.visits``.

    >>> postgres("postgresql://reader:secret@db.example/clinic", table="visits")
    DatabaseTable(kind='PostgreSQL', name=('visits',))
    """
    if not isinstance(url, str) or not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput("the URL of a PostgreSQL database starts with postgresql://; nothing was done.")
    plain, query = _without_table(url)
    conninfo = need("psycopg.conninfo", "pip install 'sfumato[postgres]'")
    reached: dict[str, object] | None = None
    with suppress(Exception):  # its words would quote the URL with its password
        reached = conninfo.conninfo_to_dict(plain)
    if reached is None:
        raise InvalidInput(UNREADABLE)
    name = _name(query.get("table") if table is None else table, "postgres", most=2)
    return DatabaseTable(kind="PostgreSQL", name=name, place=reached)


def spark(place: Any, *, table: TableName | None = None) -> DatabaseTable:
    """A table or view of a Spark session, or a Spark frame; its plan must take stored rows one by one.

    While a release runs, settings that change the meaning of a query are set in the session, and put back afterwards.
    """
    kind, module = type(place).__name__, type(place).__module__.partition(".")[0]
    if module == "pyspark" and kind == "DataFrame":
        if table is not None:
            raise InvalidInput("a Spark frame has no table of a name; give the session with the name instead.")
        if place.isStreaming:
            raise Unsupported("a streaming frame has no end; nothing was done. Give a frame of rows that are there.")
        return DatabaseTable(kind="Spark", name=(), place=place)
    if module != "pyspark" or kind != "SparkSession":
        raise InvalidInput(f"a {kind} is neither a Spark session nor a Spark frame; nothing was done.")
    return DatabaseTable(kind="Spark", name=_name(table, "spark", most=3), place=place)


def from_url(url: str) -> DatabaseTable:
    """The table that a URL names: ``postgresql://…?table=…`` or ``duckdb:///path?table=…``."""
    scheme = url.partition("://")[0]
    match scheme:
        case "postgresql" | "postgres":
            return postgres(url)
        case "duckdb":
            plain, query = _without_table(url)
            if query.keys() - {"table"}:
                raise InvalidInput("the URL of a DuckDB file takes table=… and nothing else; nothing was done.")
            return duckdb(unquote(plain.removeprefix("duckdb://")), table=query.get("table"))
    raise Unsupported(
        "a URL of this kind is not read; nothing was done. Known are postgresql://…?table=… and duckdb://…?table=…; "
        "for Spark, give a session: sfumato.engines.sources.spark(session, table=…)."
    )


def stored_tables(url: str) -> tuple[str, ...]:
    """The stored tables that the user of a database may read, by its catalogue alone; ``url`` names no table."""
    database = from_url(f"{url}{'&' if '?' in url else '?'}table=any")
    with database.origin().session() as engine:
        connection: Any = engine.con
        rows = connection.execute(CATALOGUES[database.kind]).fetchall()
    named = (name if schema in USUAL else f"{schema}.{name}" for schema, name in rows if "." not in f"{schema}{name}")
    return tuple(named)


def _without_table(url: str) -> tuple[str, Mapping[str, str]]:
    """The URL that a database knows, and what stood behind its question mark."""
    plain, _, asked = url.partition("?")
    query: dict[str, str] | None = None
    with suppress(ValueError):
        query = dict(parse_qsl(asked, keep_blank_values=True, strict_parsing=bool(asked)))
    if query is None:
        raise InvalidInput(UNREADABLE)
    rest = urlencode({name: value for name, value in query.items() if name != "table"})
    return f"{plain}?{rest}" if rest else plain, query


def _name(table: TableName | None, kind: str, *, most: int) -> tuple[str, ...]:
    if table is None:
        raise NotDeclared(f"say which table of the database is meant: {kind}(…, table='visits'). Nothing was done.")
    parts = tuple(table.split(".")) if isinstance(table, str) else tuple(table)
    if not 1 <= len(parts) <= most or not all(isinstance(part, str) and part and "\0" not in part for part in parts):
        raise InvalidInput(
            f"the name of a table has one to {most} parts, such as 'public.visits'; nothing was done. Where a part "
            "holds a dot, give the parts as a tuple."
        )
    return parts
