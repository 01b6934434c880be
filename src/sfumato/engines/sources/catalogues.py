"""Catalogues: whether a name stands for stored rows, or for a query that is run when it is read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from sfumato.engines.dialects import Dialect
from sfumato.engines.sources.columns import quoted
from sfumato.engines.sources.row_wise import not_row_wise
from sfumato.engines.sources.stored_files import stored_as

__all__ = ["check_duckdb_table", "check_postgres_table", "duckdb_stored", "postgres_stored", "spark_stored"]

# Names of DuckDB ignore capital letters. A database of another kind that is attached shows its views as tables.
DUCKDB = """
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
# What the server adds to each row (where it lies, who wrote it) has no number above 0.
POSTGRES_COLUMNS = """
SELECT attname::text FROM pg_catalog.pg_attribute
WHERE attrelid = pg_catalog.to_regclass(%s)::pg_catalog.oid AND attnum > 0 AND NOT attisdropped
"""
# A table and all that inherit from it, partitions too: what is read of it is theirs.
POSTGRES = """
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
HIDDEN = "names a column that its table does not list"
KINDS = {"v": "is a view", "m": "is a materialised view", "f": "is, or has as a part, a table of another server"}


def check_duckdb_table(connection: Any, name: Sequence[str], label: str, *, columns: Sequence[str] = ()) -> None:
    """Refuse a name of DuckDB that is not a stored table; ``name`` is (database, schema, table), or its last parts.

    Where it could be read in several ways, all of them must be stored tables with these ``columns``: others, such as
    rowid, tell of other rows. A temporary table may hold what a query made of all rows. What no catalogue lists (a
    frame of Python, a file) is not opened by its name.
    """
    table, schema, database = [*reversed(name), None, None][:3]
    found = connection.execute(DUCKDB, [table, schema, database]).fetchall()
    if not found:
        raise LookupError("there is no table of this name")
    if not all(stored for stored, *_ in found):
        raise not_row_wise(label, "is a view, a temporary table, or a table of a database of another kind")
    if not all(set(columns) <= set(listed) for _, listed, *_ in found):
        raise not_row_wise(label, HIDDEN)


def duckdb_stored(connection: Any, name: Sequence[str]) -> list[Hashable]:
    """What tables of DuckDB are known by that a name can mean: their file, and their name in it.

    Databases in memory are taken for one, since nothing tells them apart.
    """
    table, schema, database = [*reversed(name), None, None][:3]
    found = connection.execute(DUCKDB, [table, schema, database]).fetchall()
    return [
        ("DuckDB", where, schema.lower(), table.lower())
        for *_, path, schema, table in found
        for where in (stored_as(Path(path)) if path else ("in memory",))
    ]


def postgres_stored(connection: Any, name: Sequence[str]) -> list[Hashable]:
    """What a table of PostgreSQL and its parts are known by: the numbers of server, database and table."""
    relation = ".".join(quoted(part, Dialect.POSTGRES) for part in name)
    (may_ask,) = connection.execute(MAY_ASK).fetchone()
    (server,) = connection.execute(SERVER).fetchone() if may_ask else ("",)
    return [("PostgreSQL", server, *numbers) for numbers in connection.execute(NUMBERS, (relation,)).fetchall()]


def spark_stored(session: Any, name: Sequence[str]) -> list[Hashable]:
    """What a table of Spark is known by: its whole name."""
    before = (session.catalog.currentCatalog(), session.catalog.currentDatabase())
    return [("Spark", *(part.lower() for part in (*before, *name)[-3:]))]


def check_postgres_table(connection: Any, name: Sequence[str], label: str, *, columns: Sequence[str] = ()) -> None:
    """Refuse a name of PostgreSQL that is not a stored table, or of which a policy shows some rows only.

    Of its ``columns``, all must be stored: others, such as ctid, tell of other rows.
    """
    relation = ".".join(quoted(part, Dialect.POSTGRES) for part in name)
    found = connection.execute(POSTGRES, (relation,)).fetchall()
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
        listed = {column for (column,) in connection.execute(POSTGRES_COLUMNS, (relation,)).fetchall()}
        if not set(columns) <= listed:
            raise not_row_wise(label, HIDDEN)
