"""The service's own tables: people, sessions, tokens, datasets, jobs; nothing of the ledger, and no value of the data.

Each area declares its tables in a module of its own on :data:`METADATA`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # settings of an engine, each of its own type

import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url

__all__ = ["METADATA", "Database"]

METADATA = sa.MetaData()
PATIENCE = 30
"""Seconds to wait for another writer."""
TURN = 7_366_756_813
"""The lock of PostgreSQL that writers of a service's tables hold, one after the other."""


class Database:
    """A database of the service, SQLite in a file or PostgreSQL; safe for threads.

    Guarantee: what is read and written in one block of :meth:`writing` is one transaction, and writers come one after
    the other.
    """

    def __init__(self, url: str) -> None:
        address = make_url(url)
        self._embedded = address.get_backend_name() == "sqlite"
        settings: dict[str, Any] = {"pool_pre_ping": True, "pool_size": 10, "max_overflow": 40}
        if self._embedded:
            settings = {"connect_args": {"timeout": PATIENCE, "check_same_thread": False}}
        if address.get_backend_name() == "postgresql" and "+" not in address.drivername:
            address = address.set(drivername="postgresql+psycopg")
        self._engine = sa.create_engine(address, hide_parameters=True, **settings)
        if self._embedded:
            sa.event.listen(self._engine, "connect", _embedded)
        sa.event.listen(self._engine, "begin", _begun if self._embedded else _begun_there)

    @classmethod
    def at(cls, said: str, folder: Path) -> "Database":
        """The database that settings name: an address, or a file in the folder of the service."""
        return cls(said if "://" in said else f"sqlite:///{folder / said}")

    def create(self) -> None:
        """Make the tables that are not there yet."""
        with self.writing() as connection:
            METADATA.create_all(connection)

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


def _begun_there(connection: Connection) -> None:
    """Of PostgreSQL: a writer waits for the one before it, and a reader sees one state."""
    if connection.get_execution_options().get("sfumato_writes", False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
        connection.exec_driver_sql(f"SELECT pg_catalog.pg_advisory_xact_lock({TURN})")
    else:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _begun(connection: Connection) -> None:
    writes = connection.get_execution_options().get("sfumato_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
