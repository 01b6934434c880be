"""Rows of a PostgreSQL table that rows are added to: those from a moment on, identified by a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sfumato.core.interrupts import FAILED, attempt
from sfumato.engines.dialects.postgres import POSTGRES
from sfumato.engines.sources.databases import DatabaseTable
from sfumato.engines.sources.postgres_tables import PostgresTable
from sfumato.errors import EngineFailed, InvalidInput, SfumatoError, Unsupported

if TYPE_CHECKING:
    from ibis.backends import BaseBackend

__all__ = ["check_polled", "rows_since"]

ROWS = 20_000  # at a time
LONGEST = 4_096  # bytes of a value; a longer one is as one that is missing
# One value for each row: a unique index without conditions on that column alone, whose rows are all rows of the table
# (those of tables that inherit from it are not in its index; those of its partitions are).
UNIQUE = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
    WHERE i.indrelid = pg_catalog.to_regclass(%s) AND a.attname = %s AND a.attnotnull
    AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
    AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)))
"""
ENCODINGS = ("UTF8", "LATIN1")  # others can hold bytes that are not text, and reading them would be an error

Row = tuple[int, dict[str, str | None]]
Made = TypeVar("Made")


def check_polled(data: DatabaseTable) -> PostgresTable:
    """The origin of a table that can be polled; nothing is opened."""
    origin = data.origin() if isinstance(data, DatabaseTable) else None
    if not isinstance(origin, PostgresTable):
        raise Unsupported(
            "only tables of PostgreSQL are polled; nothing was done. Give sfumato.engines.sources.postgres(url, "
            "table=…)."
        )
    return origin


def rows_since(
    origin: PostgresTable,
    since: datetime,
    *,
    key: str,
    time: str,
    columns: Sequence[str],
    whole: Sequence[str] = (),
) -> Iterator[Row]:
    """The rows whose ``time`` is not before ``since``, with their ``key``, and the columns as texts.

    Texts are what every value can be written as, days outside the calendar too, so that no value makes an error; one
    of more than ``LONGEST`` bytes is None. The table must declare the key as unique whole numbers that are not null,
    the time with its zone, and the columns that are ``whole``; other columns hold texts, numbers or the like. The
    database must be one whose texts are texts, in UTF8 or LATIN1.
    """
    with ExitStack() as until:
        session = ExitStack()
        until.callback(attempt, session.close)  # a connection that broke cannot be closed any better
        engine = _begun(origin, session, lambda opened: _check(opened, origin, key, time, columns, whole))
        found: list[Row] | None = None
        while found is None or len(found) == ROWS:
            after = found[-1][0] if found else None
            found = _answered(origin, partial(_page, engine, _relation(origin), since, key, time, columns, after))
            yield from found


def _begun(origin: PostgresTable, session: ExitStack, check: Callable[[BaseBackend], None]) -> BaseBackend:
    """A session whose table was checked; a refusal of the check names its reason, since it looks at no row."""

    def begun() -> tuple[BaseBackend] | SfumatoError:
        try:
            engine = session.enter_context(origin.session())
            check(engine)
        except SfumatoError as ours:
            return ours
        return (engine,)

    made = _answered(origin, begun)
    if isinstance(made, SfumatoError):
        raise made
    return made[0]


def _answered(origin: PostgresTable, step: Callable[[], Made]) -> Made:
    """Take a step of the engine. Whatever it raises may reveal a row, and ends here; a real Ctrl-C goes on."""
    made = attempt(step)
    if made is FAILED:
        raise EngineFailed(
            f"PostgreSQL did not answer for {origin.label}; nothing more was released. {origin.advice} "
            "Then go on polling."
        )
    return made


def _relation(origin: PostgresTable) -> str:
    return ".".join(POSTGRES.quoted(part) for part in origin.name)


def _check(
    engine: BaseBackend, origin: PostgresTable, key: str, time: str, columns: Sequence[str], whole: Sequence[str]
) -> None:
    """What the table declares: public, and the same for all rows."""
    (encoding,) = engine.con.execute("SHOW server_encoding").fetchone()
    if encoding not in ENCODINGS:
        raise InvalidInput(
            f"the database of {origin.label} is in {encoding}, which can hold bytes that are not text; nothing was "
            f"released. Poll a database in {' or '.join(ENCODINGS)}."
        )
    held = origin.held(engine)
    for name in (key, time, *columns):
        if name not in held:
            raise InvalidInput(f"{origin.label} has no column {name!r}; nothing was released.")
    for name in (key, *whole):
        if not held[name].is_integer():
            raise InvalidInput(f"column {name!r} of {origin.label} must hold whole numbers; nothing was released.")
    for name in columns:
        if held[name].is_json():
            raise InvalidInput(
                f"column {name!r} of {origin.label} is of a type whose values cannot all be written down; nothing was "
                "released. Poll columns of texts and numbers."
            )
    if not held[time].is_timestamp() or held[time].timezone is None:
        raise InvalidInput(f"column {time!r} of {origin.label} must be a timestamptz; nothing was released.")
    if engine.con.execute(UNIQUE, (_relation(origin), key)).fetchone() != (True,):
        raise InvalidInput(
            f"column {key!r} of {origin.label} must be declared unique and not null; nothing was released. Where two "
            "rows share a key, one could take the place of the other. Make it the primary key, and poll a table, not a "
            "view or one that others inherit from."
        )


def _page(
    engine: BaseBackend, relation: str, since: datetime, key: str, time: str, columns: Sequence[str], after: int | None
) -> list[Row]:
    """The next rows in the order of their keys, ``ROWS`` of them unless they are the last."""
    number, moment, *names = (POSTGRES.quoted(name) for name in (key, time, *columns))
    texts = ", ".join(
        f"CASE WHEN pg_catalog.octet_length(CAST({name} AS TEXT)) <= {LONGEST} THEN CAST({name} AS TEXT) END"
        for name in names
    )
    first = f"{moment} >= TIMESTAMPTZ '{since.astimezone(UTC).isoformat()}'"
    where = first if after is None else f"{first} AND {number} > {after}"
    found = engine.con.execute(
        f"SELECT {number}, {texts} FROM {relation} WHERE {where} ORDER BY 1 LIMIT {ROWS}"  # noqa: S608 - quoted
    ).fetchall()
    return [(int(place), dict(zip(columns, values, strict=True))) for place, *values in found]
