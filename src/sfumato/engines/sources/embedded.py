"""The embedded engine: one DuckDB in memory for the whole process, which files and frames share."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.operations as ops
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
        engine = ibis.duckdb.from_connection(cursor)
        engine.text_of = _text_of  # connections of the steward's have none: what is kept would keep them open
        yield engine
    finally:
        ended(cursor)


@lru_cache(maxsize=64)
def _text_of(plan: ops.Node) -> str | None:
    """A plan as the SQL that Ibis makes of it; None where it brings rows along, which each session must be handed.

    Kept because Ibis takes longer over it than the engine over 100,000 rows, and a question is often asked again: at
    another ε, in another draw, next week. The key is the plan itself, all that its text follows from: names and types
    of columns, conditions, keys, bounds, limits and secret. No row is in it.
    """
    import ibis.expr.operations as ops

    table = plan.to_expr()
    return None if plan.find(ops.InMemoryTable) else str(table.get_backend().compile(table))


def ended(cursor: DuckDBPyConnection) -> None:
    """Close a connection and stop what Ctrl-C left running on it; closing alone would wait for the end of the query."""
    cursor.interrupt()
    cursor.close()
