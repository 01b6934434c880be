"""The store: the record and its stored state in a database, SQLite for one machine or PostgreSQL for an institution.

Writers come one after the other: the chain has one end. SQLite takes its write lock before the first read (``BEGIN
IMMEDIATE``), PostgreSQL locks the row of the head; both before any balance is looked at, so no two writers ever decide
on the same numbers.
"""

import os
import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from sfumato.core.extras import need
from sfumato.errors import InvalidInput, LedgerError
from sfumato.governance import rows
from sfumato.governance.alone import alone
from sfumato.governance.decision_state import DecisionState
from sfumato.governance.migrations import migrate, newest, present
from sfumato.governance.rows import HEAD, chosen
from sfumato.governance.transaction import Transaction

__all__ = ["Store", "shown"]

PATIENCE = 60  # seconds to wait for other writers
STALLED = 30  # seconds after which a server gives up a writer that says nothing: all others wait for it

# Who holds a question may take long, so nobody who waits is sent away; a machine that fell silent is given up.
HELD = (
    "SET lock_timeout TO 0; SET statement_timeout TO 0; SET tcp_keepalives_idle TO 30; "
    "SET tcp_keepalives_interval TO 10; SET tcp_keepalives_count TO 3"
)

_connecting = threading.Lock()
_asking: set[tuple[URL, str]] = set()  # the questions that this process holds, or waits for


def _forked() -> None:
    global _connecting  # a lock that another thread held stays locked in a forked process
    _connecting = threading.Lock()
    _asking.clear()


os.register_at_fork(after_in_child=_forked)


class Store:
    """A database with a ledger in it; safe for threads, for several processes and after a fork."""

    def __init__(self, url: str | Path, *, reads: bool = False) -> None:
        self.url = _address(url)
        self.reads = reads
        self._process = 0
        self._forked: list[sa.Engine] = []
        self._engine: sa.Engine | None = None
        self._decided: dict[str, DecisionState] = {}
        self._proven: dict[bytes, tuple[bytes, ...]] = {}
        self._turn = threading.Lock()
        driver = self.url.get_dialect().import_dbapi()
        self.errors: tuple[type[Exception], ...] = (SQLAlchemyError, driver.Error, UnicodeDecodeError)
        self._apart = sa.create_engine(self.url, poolclass=sa.NullPool, connect_args=_given(self.url))

    @property
    def name(self) -> str:
        """What messages call the database; without a password."""
        return self.url.database or "" if self.lite else shown(self.url)

    @property
    def lite(self) -> bool:
        """Whether this is SQLite."""
        return self.url.get_backend_name() == "sqlite"

    def exists(self) -> bool:
        """Whether there is a ledger."""
        if self.lite and not Path(str(self.url.database)).exists():
            return False
        with self._failing("nothing was changed"), self._connected().connect() as connection:
            return present(connection) is not None

    def create(self) -> None:
        """Make the tables in an empty database; what holds a ledger already is refused."""
        with self.migrating() as connection:
            if present(connection) is not None:
                raise LedgerError(f"{self.name} holds a ledger already; nothing was changed. Open it instead.")
            migrate(connection)
            transaction = Transaction(connection.connection.cursor())
            transaction.put_empty()
            transaction.flush()

    def current(self) -> bool:
        """Whether the tables are those of this code."""
        with self._failing("nothing was changed"), self._connected().connect() as connection:
            return present(connection) == newest()

    @contextmanager
    def rewriting(self) -> Iterator[tuple[Transaction, str | None]]:
        """The one writer, who may write the whole stored state anew, in the tables of this code.

        With the revision that they had, None where they were current. A newer one is refused. Where the block fails,
        tables and rows are as they were.
        """
        with self.migrating() as connection:
            before = present(connection)
            if before != newest():
                self._migrate(connection)
            cursor = connection.connection.cursor()
            if not self.lite:
                rows.run(cursor, chosen(HEAD, "WHERE one = 1 FOR UPDATE"))
            transaction = Transaction(cursor)
            yield transaction, None if before == newest() else before
            transaction.flush()

    def _migrate(self, connection: sa.Connection) -> None:
        try:
            migrate(connection)
        except Exception as wrong:
            if isinstance(wrong, (SQLAlchemyError, LedgerError)):
                raise
            raise LedgerError(
                f"{self.name} was written by a newer sfumato (tables {present(connection)}, known are up to "
                f"{newest()}); nothing was changed. Update sfumato."
            ) from None

    @contextmanager
    def migrating(self) -> Iterator[sa.Connection]:
        """The one writer, on a connection of SQLAlchemy's, before there is a row of the head to lock."""
        engine = self._connected()
        with self._failing("nothing was changed"), self._turn, engine.connect() as plain:
            connection = plain.execution_options(sfumato_writes=True)
            transaction = connection.begin()
            try:
                if not self.lite:
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('sfumato ledger'))")
                yield connection
            except BaseException:
                transaction.rollback()
                raise
            with self._failing("whether it was written is not known: if it was, it counts"):
                transaction.commit()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One consistent view of the record and its stored state."""
        with self._failing("nothing was changed"), self._begun(_begin(lite=self.lite)) as cursor:
            yield Transaction(cursor, self._decided, self._proven)
            cursor.connection.commit()

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """The one writer, until the block ends: all that it wrote is durable then, or nothing is."""
        begin = _begin(lite=self.lite, writes=True)
        if not self.lite:
            begin += "; " + chosen(HEAD, "WHERE one = 1 FOR UPDATE")
        self._connected()  # a forked process has a turn of its own
        with self._failing("nothing was changed"), self._turn, self._begun(begin) as cursor:
            transaction = Transaction(cursor, self._decided, self._proven)
            transaction.locked()
            yield transaction
            transaction.flush()
            with self._failing("whether it was written is not known: if it was, it counts"):
                rows.commit(cursor.connection)

    @contextmanager
    def plain(self, *, writes: bool, also: str = "") -> Iterator[rows.Cursor]:
        """A transaction on a database that holds something else than a ledger; its errors are those of the driver.

        ``also`` are statements for a server that go with its beginning.
        """
        begin = _begin(lite=self.lite, writes=writes)
        with self._begun(begin if self.lite else begin + also) as cursor:
            yield cursor
            rows.commit(cursor.connection)

    @contextmanager
    def asking(self, question: str) -> Iterator[None]:
        """Hold a question, by its key, against all other processes that ask it of this database; they wait.

        Guarantee: who dies lets go of it: the system sees to that on SQLite, and the server on PostgreSQL, within a
        minute where a machine fell silent. A thread that holds the question already goes on. No transaction is open
        meanwhile, so that other questions are charged as ever. Assumes: threads of one process come one at a time.
        """
        held = (self.url, question)
        with ExitStack() as stack:
            if held not in _asking:
                _asking.add(held)
                stack.callback(_asking.discard, held)
                with self._failing("nothing was changed"):
                    stack.enter_context(self._alone(question))
            yield

    @contextmanager
    def _alone(self, question: str) -> Iterator[None]:
        if self.lite:
            database = Path(str(self.url.database)).resolve()  # one file by whatever link it was named
            with alone(database.with_name(f"{database.name}-asked-{question}"), beside=database):
                yield
            return
        # A connection of its own: in the pool, those who wait could keep out the one that they wait for.
        connection = self._apart.raw_connection()
        try:
            number = int.from_bytes(bytes.fromhex(question)[:8], "big", signed=True)
            rows.run(connection.cursor(), f"{HELD}; SELECT pg_advisory_lock({number})")
            yield
        finally:
            connection.close()  # which lets go

    @contextmanager
    def _begun(self, begin: str) -> Iterator[rows.Cursor]:
        """The driver's cursor in a transaction, which is rolled back when the block fails."""
        connection, cursor = self._answering(begin)
        try:
            yield cursor
        except BaseException:
            try:
                connection.rollback()
            except self.errors:
                connection.invalidate()  # the server is gone, and the transaction with it
            raise
        finally:
            connection.close()

    def _answering(self, begin: str) -> tuple[sa.PoolProxiedConnection, rows.Cursor]:
        """A connection that has begun; one that its server dropped while nobody used it is replaced, once."""
        engine = self._connected()
        connection = engine.raw_connection()
        cursor: rows.Cursor = connection.cursor()
        try:
            rows.run(cursor, begin)
        except self.errors as wrong:
            gone = engine.dialect.is_disconnect(wrong, connection.dbapi_connection, None)  # type: ignore[arg-type]  # an error of the driver
            if not gone:
                connection.close()
                raise
            connection.invalidate()
            engine.dispose()
            connection = engine.raw_connection()
            cursor = connection.cursor()
            rows.run(cursor, begin)
        return connection, cursor

    def close(self) -> None:
        """Give all connections back."""
        if self._engine is not None and self._process == os.getpid():
            self._engine.dispose()
            self._engine = None

    def _connected(self) -> sa.Engine:
        with _connecting:
            if self._process != os.getpid():
                # Connections and locks must not be shared with the process that this one was forked from.
                if self._engine is not None:
                    self._forked.append(self._engine)  # kept: to drop it would close what the other process uses
                self._engine, self._turn, self._process = None, threading.Lock(), os.getpid()
            if self._engine is None:
                self._engine = _engine(self.url, reads=self.reads)
                weakref.finalize(self, _dispose, self._engine, os.getpid())
            return self._engine

    @contextmanager
    def _failing(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except self.errors as wrong:
            cause = getattr(wrong, "orig", None) if isinstance(wrong, SQLAlchemyError) else wrong
            reason = (str(cause or "").strip() or type(wrong).__name__).splitlines()[0]
            raise LedgerError(
                f"the ledger {self.name} cannot be used: {reason}. No row was read and no answer was delivered; "
                f"{outcome}. Repair the database and try again."
            ) from None


def shown(address: str | URL) -> str:
    """An address to be printed: the password is left out, also where it stands among the options.

    >>> shown("postgresql://ada:secret@db/ledger"), shown("postgresql://db/ledger?password=secret&user=ada")
    ('postgresql://ada:***@db/ledger', 'postgresql://db/ledger?password=***&user=ada')
    """
    text = make_url(address).render_as_string(hide_password=True)
    return re.sub(r"(?i)(?<=password=)[^&]*", "***", text)


def _dispose(engine: sa.Engine, process: int) -> None:
    if process == os.getpid():
        engine.dispose()


def _address(url: str | Path) -> URL:
    text = str(url)
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        address = make_url(text)
    except (ArgumentError, ValueError):  # ValueError: a port of thousands of digits
        raise InvalidInput("the address of a ledger is a file or postgresql://…; nothing was opened.") from None
    if address.get_backend_name() == "sqlite" and address.database not in (None, "", ":memory:"):
        return address
    if address.get_backend_name() != "postgresql":
        raise InvalidInput("a ledger lives in an SQLite file or in PostgreSQL; nothing was opened.")
    need("psycopg", "pip install 'sfumato[postgres]'")
    return address.set(drivername="postgresql+psycopg")


def _given(url: URL) -> dict[str, object]:
    return {"timeout": PATIENCE} if url.get_backend_name() == "sqlite" else {"autocommit": True}


def _engine(url: URL, *, reads: bool = False) -> sa.Engine:
    """The connections; each begins its transactions explicitly, since drivers begin one after the first SELECT.

    With ``reads`` nothing can be written to a file of SQLite; a server is asked for transactions that read, whatever
    its role may do.
    """
    lite = url.get_backend_name() == "sqlite"
    if lite and reads:
        url = _as_it_lies(url)
    pool = {"pool_size": 4, "max_overflow": 4, "pool_timeout": PATIENCE}
    # Whoever begins a transaction ends it (see _begun): no second ROLLBACK when a connection is given back.
    engine = sa.create_engine(url, connect_args=_given(url), pool_reset_on_return=None, **pool)

    @sa.event.listens_for(engine, "connect")
    def durable(connection: rows.Connection, _: object) -> None:
        if lite:
            connection.isolation_level = None
            for setting in ("query_only=ON",) if reads else ("journal_mode=WAL", "synchronous=FULL"):
                connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("sfumato_writes", False)
        connection.exec_driver_sql(_begin(lite=lite, writes=writes))

    return engine


def _as_it_lies(url: URL) -> URL:
    """The address of a file for a reader who may not write to it or beside it; any other reader tidies up behind."""
    path = Path(str(url.database))
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return url
    how = {"mode": "ro", "uri": "true"}
    beside = path.with_name(f"{path.name}-wal")
    if not (beside.exists() and beside.stat().st_size):
        how["immutable"] = "1"  # SQLite would make files beside it; what is read is proven, whoever writes meanwhile
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query=how)


def _begin(*, lite: bool, writes: bool = False) -> str:
    if lite:
        return "BEGIN IMMEDIATE" if writes else "BEGIN"
    if not writes:
        return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    waiting = f"SET LOCAL synchronous_commit TO on; SET LOCAL lock_timeout TO '{PATIENCE}s'; "
    waiting += f"SET LOCAL idle_in_transaction_session_timeout TO '{STALLED}s'"
    return f"BEGIN ISOLATION LEVEL READ COMMITTED; {waiting}"  # after the lock, see what is newest
