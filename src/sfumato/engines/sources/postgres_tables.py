"""Tables of PostgreSQL, read in one read-only transaction for each release: one state, and nothing is created."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.extras import need
from sfumato.engines.dialects.postgres import POSTGRES, reading
from sfumato.engines.sources.origin import Settle
from sfumato.engines.sources.relations import table_of

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["PostgresTable"]


@dataclass(slots=True, kw_only=True, eq=False)
class PostgresTable:
    """A table or view of a server. Each opening connects anew and closes its connection."""

    reached: Mapping[str, object] = field(repr=False)
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

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The table and its parts, by the numbers that the server has given them."""
        return POSTGRES.stored(engine, self.name)

    def place(self) -> Hashable:
        """The database, as this user reaches it."""
        return self.engine, tuple(sorted((name, str(value)) for name, value in self.reached.items()))

    @contextmanager
    def session(self) -> Iterator[BaseBackend]:
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

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Asked of the server for a query that returns no row; that the user may read the table is checked by it."""
        if not self.derived:
            POSTGRES.check_stored(engine, self.name, self.label)
        return POSTGRES.columns(engine, f"SELECT * FROM {self._relation}")  # noqa: S608 - quoted

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The table."""
        held = self.held(engine)
        return table_of(engine, self._relation, settle(held), held, POSTGRES)

    @property
    def _relation(self) -> str:
        return ".".join(POSTGRES.quoted(part) for part in self.name)
