"""Tables of DuckDB: of a file, attached read-only to an engine of our own, or of a connection of the steward's."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engines.dialects.duckdb import DUCKDB, usual_settings
from sfumato.engines.sources.embedded import ended
from sfumato.engines.sources.origin import Settle
from sfumato.engines.sources.relations import relation_in
from sfumato.errors import EngineFailed

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from duckdb import DuckDBPyConnection
    from ibis.backends import BaseBackend

__all__ = ["DuckDBConnection", "DuckDBFile"]


@dataclass(slots=True, kw_only=True, eq=False)
class DuckDBFile:
    """A table of a database file. It is attached for one release and let go again, so that others may write to it."""

    path: Path
    name: tuple[str, ...]
    derived: bool = False
    engine: str = "DuckDB"
    advice: str = (
        "Check that it is a DuckDB database with such a table, and that nobody has it open for writing; in this "
        "process, give the connection instead of the path."
    )

    @property
    def label(self) -> str:
        """The table and the name of the file, without the way to it."""
        return f"table {'.'.join(self.name)!r} of {self.path.name!r}"

    def state(self) -> object:
        """When the file was written, and which it is."""
        if not self.path.is_file():
            return None
        found = self.path.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The table, by its file and its name there."""
        return DUCKDB.stored(engine, ("data", *(() if len(self.name) > 1 else ("main",)), *self.name))

    def place(self) -> Hashable:
        """The file."""
        return "DuckDB file", str(self.path.resolve())

    @contextmanager
    def session(self) -> Iterator[BaseBackend]:
        """An engine of its own, to which the file is attached; a file without writers has one state."""
        import ibis

        if not self.path.is_file():
            raise EngineFailed(
                f"there is no file {self.path.name!r} at the place given; nothing was read and nothing was spent. "
                "Check the path that the table was declared with."
            )
        engine = ibis.duckdb.connect()
        try:
            path = str(self.path).replace("'", "''")
            engine.raw_sql(f"ATTACH '{path}' AS data (READ_ONLY, TYPE duckdb)")
            yield engine
        finally:
            ended(engine.con)

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Read from the catalogue, which also says whether rows are stored under the name."""
        self._check_stored(engine)
        return DUCKDB.columns(engine, f"SELECT * FROM {self._relation}")  # noqa: S608 - quoted

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The table."""
        self._check_stored(engine)
        return relation_in(engine, self._relation, settle, DUCKDB)

    def _check_stored(self, engine: BaseBackend) -> None:
        if not self.derived:
            DUCKDB.check_stored(engine, ("data", *(() if len(self.name) > 1 else ("main",)), *self.name), self.label)

    @property
    def _relation(self) -> str:
        return ".".join(DUCKDB.quoted(part) for part in ("data", *self.name))


@dataclass(slots=True, kw_only=True, eq=False)
class DuckDBConnection:
    """A table that a connection sees, its temporary ones aside. It is read through a connection of its own."""

    connection: DuckDBPyConnection
    name: tuple[str, ...]
    derived: bool = False
    engine: str = "DuckDB"
    advice: str = (
        "Check that the connection is open and has such a table; temporary tables and registered frames are seen by "
        "their own connection alone: give the frame itself."
    )

    @property
    def label(self) -> str:
        """The name of the table."""
        return f"table {'.'.join(self.name)!r}"

    def state(self) -> object:
        """Nothing tells when a table was written to."""
        return None

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The table, by its file, where it has one, and its name there."""
        return DUCKDB.stored(engine, self.name)

    def place(self) -> Hashable:
        """The connection."""
        return "DuckDB connection", id(self.connection)

    @contextmanager
    def session(self) -> Iterator[BaseBackend]:
        """A connection beside the steward's, in the state that its tables have when the transaction begins."""
        import ibis

        cursor = self.connection.cursor()
        try:
            usual_settings(cursor)
            engine = ibis.duckdb.from_connection(cursor)
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield engine
        finally:
            ended(cursor)  # and with it the transaction

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Read from the catalogue, which also says whether rows are stored under the name."""
        self._check_stored(engine)
        return DUCKDB.columns(engine, f"SELECT * FROM {self._relation}")  # noqa: S608 - quoted

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The table."""
        self._check_stored(engine)
        return relation_in(engine, self._relation, settle, DUCKDB)

    def _check_stored(self, engine: BaseBackend) -> None:
        if not self.derived:
            DUCKDB.check_stored(engine, self.name, self.label)

    @property
    def _relation(self) -> str:
        return ".".join(DUCKDB.quoted(part) for part in self.name)
