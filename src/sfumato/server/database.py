"""The service's own tables: people, sessions, tokens, datasets, jobs; nothing of the ledger, and no value of the data.

Each area declares its tables in a module of its own on :data:`METADATA`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url

__all__ = ["METADATA", "Database"]

METADATA = sa.MetaData()
PATIENCE = 30
"""Seconds to wait for another writer."""


class Database:
    """A database of the service, SQLite in a file or PostgreSQL; safe for threads.

    Guarantee: what is read and written in one block of :meth:`writing` is one transaction, and writers come one after
    the other.
    """

    def __init__(self, url: str) -> None:
        address = make_url(url)
        self._embedded = address.get_backend_name() == "sqlite"
        settings = {"connect_args": {"timeout": PATIENCE, "check_same_thread": False}} if self._embedded else {}
        if address.get_backend_name() == "postgresql" and "+" not in address.drivername:
            address = address.set(drivername="postgresql+psycopg")
        self._engine = sa.create_engine(address, hide_parameters=True, **settings)
        if self._embedded:
            sa.event.listen(self._engine, "connect", _embedded)
            sa.event.listen(self._engine, "begin", _begun)

    def create(self) -> None:
        """Make the tables that are not there yet."""
        METADATA.create_all(self._engine)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A view of the database in which nothing changes."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is written as a whole, or not at all where the block raises."""
        with self._engine.connect().execution_options(sfumato_writes=True) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


def _embedded(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
    connection.isolation_level = None  # transactions are begun below, and by nobody else
    cursor = connection.cursor()
    for statement in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {statement}")
    cursor.close()


def _begun(connection: Connection) -> None:
    writes = connection.get_execution_options().get("sfumato_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
