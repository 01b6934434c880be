"""The embedded engine: one DuckDB in memory for the whole process, which files and frames share."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from ibis.backends import BaseBackend

__all__ = ["PLACE", "connection", "embedded", "ended"]

PLACE = "the embedded engine"
# By process: an engine's threads do not survive a fork, so a child starts its own and leaves its parent's untouched.
_instances: dict[int, DuckDBPyConnection] = {}
_turn = threading.Lock()


def connection() -> DuckDBPyConnection:
    """A connection of its own to the engine, for one thread at a time."""
    import duckdb

    with _turn:
        if os.getpid() not in _instances:
            _instances[os.getpid()] = duckdb.connect()
        return _instances[os.getpid()].cursor()


@contextmanager
def embedded() -> Iterator[BaseBackend]:
    """An Ibis connection to the engine; temporary views are its own and end with it."""
    import ibis

    cursor = connection()
    try:
        yield ibis.duckdb.from_connection(cursor)
    finally:
        ended(cursor)


def ended(cursor: DuckDBPyConnection) -> None:
    """Close a connection and stop what Ctrl-C left running on it; closing alone would wait for the end of the query."""
    cursor.interrupt()
    cursor.close()
