"""The store: the record and its books in a database, SQLite for one machine or PostgreSQL for an institution.

Writers come one after the other: the chain has one end. SQLite takes its write lock before the first read (``BEGIN
IMMEDIATE``), PostgreSQL locks the row of the head; both before any balance is looked at, so no two writers ever decide
on the same numbers. SQLAlchemy keeps the connections and runs the migrations; the statements of a charge go straight to
the driver, since the layers in between take longer than the database.
"""

import os
import sqlite3
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.extras import need
from sfumato.core.query import Dataset
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, LedgerError
from sfumato.governance.balances import Balance
from sfumato.governance.books import Charge, Edition, Totals, apply
from sfumato.governance.entries import ENTRIES, START, Entry, LedgerOpened, Recovered, Row
from sfumato.governance.government import GOVERNING, Government
from sfumato.governance.memory import State
from sfumato.governance.migrations import migrate, newest, present

__all__ = ["Pages", "Store"]

PATIENCE = 60  # seconds to wait for other writers
PAGE = 1000  # rows that are read at a time
MOST = 500  # rows that one statement writes

_TABLES = sa.MetaData()
_connecting = threading.Lock()


def _forked() -> None:
    global _connecting  # a lock that another thread held stays locked in a forked process
    _connecting = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _table(name: str, *columns: str, **typed: Any) -> sa.Table:
    """A table as statements need it; the migrations make it."""
    return sa.Table(
        name, _TABLES, *(sa.Column(one, sa.Text) for one in columns), *(sa.Column(n, t) for n, t in typed.items())
    )


RECORD = _table("record", "kind", "body", "previous", "digest", number=sa.BigInteger)
HEAD = _table("head", "digest", "at", "epsilon", "delta", one=sa.Integer, number=sa.BigInteger, governed=sa.BigInteger)
BALANCE = _table(
    "balance",
    *("name", "unit", "cap_epsilon", "cap_delta", "cap_rho", "cap_loss", "loss_order"),
    *("epsilon_spent", "delta_spent", "rho_spent", "loss_spent"),
    charges=sa.BigInteger,
)
EDITION = _table("edition", "name", "edition", "population", closed=sa.Boolean)
CHARGE = _table(
    "charge",
    *("state", "epsilon", "delta", "losses", "lines", "idempotency", "request", "expires"),
    number=sa.BigInteger,
    queued=sa.Boolean,
    started=sa.Boolean,
    answer=sa.BigInteger,
)
ANSWER = _table("answer", "question", number=sa.BigInteger)
KEYS = {
    "head": ["one"],
    "balance": ["name"],
    "edition": ["name", "edition"],
    "charge": ["number"],
    "answer": ["question"],
}


@dataclass(frozen=True, slots=True)
class Pages:
    """The books in one transaction: each number is text ``p/q``, read and compared as an exact rational.

    Nobody else can change what a transaction has read, so each balance and each charge is read once. ``cursor`` is the
    driver's.
    """

    cursor: Any
    _known: dict[int, Government] = field(default_factory=dict)
    _seen: dict[str, Balance] = field(default_factory=dict)
    _charges: dict[int, Charge] = field(default_factory=dict)
    _moved: dict[str, Balance] = field(default_factory=dict)
    _end: list[Totals] = field(default_factory=list)
    _decided: list[Government] = field(default_factory=list)

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        if name not in self._seen:
            row = self._one(BALANCE, name=name)
            if row is None:
                return None
            self._seen[name] = _balance(row)
        return self._seen[name]

    def gather(self, names: Sequence[str]) -> None:
        """Read several balances at once, before they are asked for one by one."""
        new = tuple(name for name in names if name not in self._seen)
        if new:
            for row in self._all(BALANCE, f"WHERE name IN ({', '.join(['?'] * len(new))})", new):
                self._seen[row.name] = _balance(row)

    def balances(self) -> list[Balance]:
        """All balances, by name."""
        found = {row.name: _balance(row) for row in self._all(BALANCE)} | self._moved
        return [found[name] for name in sorted(found)]

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name; written when its entry is."""
        self._seen[balance.name] = self._moved[balance.name] = balance

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        row = self._one(EDITION, name=dataset.name, edition=dataset.edition)
        return None if row is None else _edition(row)

    def population(self, name: str) -> str | None:
        """The people that a dataset is about, in all its versions."""
        row = next(self._all(EDITION, "WHERE name = ? LIMIT 1", (name,)), None)
        return None if row is None else str(row.population)

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        values = {"name": edition.dataset.name, "edition": edition.dataset.edition, "population": edition.population}
        self._put(EDITION, values | {"closed": edition.closed})

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        if number not in self._charges:
            row = self._one(CHARGE, number=number)
            if row is None:
                return None
            self._charges[number] = _charge(row)
        return self._charges[number]

    def charges(self) -> Iterator[Charge]:
        """All charges, by number."""
        return map(_charge, self._paged(CHARGE, "number"))

    def known(self, number: int) -> Charge:
        """A charge that must be there."""
        charge = self.charge(number)
        if charge is None:
            raise LedgerError(f"there is no charge {number} in this ledger; nothing was changed.")
        return charge

    def reserved(self, number: int) -> Charge:
        """A charge that must be open."""
        charge = self.known(number)
        if charge.state is not State.RESERVED:
            raise LedgerError(f"charge {number} is settled already ({charge.state.value}); nothing was changed.")
        return charge

    def charge_named(self, idempotency: str) -> Charge | None:
        """The charge that was made under an idempotency key."""
        row = self._one(CHARGE, idempotency=idempotency)
        return None if row is None else _charge(row)

    def stale(self, now: str) -> list[Charge]:
        """Open charges whose time is over, oldest first."""
        due = "WHERE state = ? AND expires IS NOT NULL ORDER BY number"
        rows = self._all(CHARGE, due, (State.RESERVED.value,))
        return [_charge(row) for row in rows if row.expires <= now]  # compared here, not by a collation

    def unsettled(self) -> list[Charge]:
        """Open charges, oldest first."""
        waiting = self._all(CHARGE, "WHERE state = ? ORDER BY number", (State.RESERVED.value,))
        return [_charge(row) for row in waiting]

    def editions(self) -> list[Edition]:
        """All declared versions of datasets."""
        return [_edition(row) for row in self._all(EDITION)]

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        values = {
            "number": charge.number,
            "state": charge.state.value,
            "epsilon": _text(charge.cost.epsilon),
            "delta": _text(charge.cost.delta),
            "losses": canonical(encode(charge.losses)),
            "lines": _lines_text(charge.lines),
            "idempotency": charge.idempotency,
            "request": charge.request,
            "queued": charge.queued,
            "started": charge.started,
            "expires": charge.expires,
            "answer": charge.answer,
        }
        self._put(CHARGE, values)
        self._charges[charge.number] = charge

    def answer(self, key: str) -> int | None:
        """The entry that answers a question."""
        row = self._one(ANSWER, question=key)
        return None if row is None else int(row.number)

    def answers(self) -> Iterator[tuple[str, int]]:
        """The digests of all questions and the entries that answer them."""
        return ((row.question, row.number) for row in self._paged(ANSWER, "question"))

    def put_answer(self, key: str, number: int) -> None:
        """Remember the entry that answers a question."""
        self._put(ANSWER, {"question": key, "number": number})

    def government(self) -> Government:
        """What was decided and declared; the store remembers it until the next decision."""
        if not self._decided:
            last = self.end().governed
            if last not in self._known:
                found = self._governed(last)
                self._known.clear()
                self._known[last] = found
            self._decided.append(self._known[last])
        return self._decided[0]

    def put_government(self, government: Government) -> None:
        """Keep what was decided and declared, in this transaction: it follows from the record."""
        self._decided[:] = [government]

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        if self._end:
            return self._end[0]
        row = self._one(HEAD, one=1)
        if row is None or row.number == 0:
            return None
        epsilon, delta = _part(row.epsilon), _part(row.delta)
        self._end.append(
            Totals(number=row.number, digest=row.digest, at=row.at, epsilon=epsilon, delta=delta, governed=row.governed)
        )
        return self._end[0]

    def end(self) -> Totals:
        """The head of a record that must have one."""
        totals = self.totals()
        if totals is None:
            raise LedgerError("the record of the ledger is empty; nothing was done.")
        return totals

    def put_totals(self, totals: Totals) -> None:
        """Move the head."""
        values = {"one": 1, "number": totals.number, "digest": totals.digest, "at": totals.at}
        values |= {"epsilon": _text(totals.epsilon), "delta": _text(totals.delta), "governed": totals.governed}
        self._put(HEAD, values)
        self._end[:] = [totals] if totals.number else []

    def row(self, number: int) -> Row | None:
        """A row of the record."""
        found = self._one(RECORD, number=number)
        return None if found is None else _row(found)

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The rows of the record after a number, in order, a page at a time."""
        return map(_row, self._paged(RECORD, "number", after))

    def append(self, entry: Entry, *, after: int | None = None) -> Row:
        """Write an entry at the end of the record, and what follows from it into the books."""
        totals = self.totals()
        number, previous = (0, START) if totals is None else (totals.number, totals.digest)
        if isinstance(entry, Recovered) and after is not None:
            number = max(number, after)
        row = Row.after(number, previous, entry)
        run(self.cursor, _added(RECORD), tuple(getattr(row, name) for name in _names(RECORD)))
        apply(self, row, entry)
        if self._moved:
            self._put(BALANCE, *(_written(balance) for balance in self._moved.values()))
            self._moved.clear()
        return row

    def _governed(self, last: int) -> Government:
        """Work out again what was decided up to an entry."""
        first = self.row(1)
        opened = None if first is None else first.entry
        if not isinstance(opened, LedgerOpened):
            raise LedgerError("the record does not begin with its opening; nothing was done.")
        government = Government(ledger=opened.identifier)
        kinds = [cls.KIND for cls in GOVERNING]
        some = f"WHERE kind IN ({', '.join(['?'] * len(kinds))}) AND number <= ? ORDER BY number"
        for found in self._all(RECORD, some, (*kinds, last)) if last else ():
            row = _row(found)
            if row.digest != row.expected:
                raise LedgerError(f"entry {row.number} of the record was edited; nothing was done.")
            government = government.after(row.number, row.entry)
        return government

    def _one(self, table: sa.Table, **keys: Any) -> Any:
        wanted = "WHERE " + " AND ".join(f"{key} = ?" for key in keys)
        return next(self._all(table, wanted, tuple(keys.values())), None)

    def _all(self, table: sa.Table, some: str = "", values: tuple[Any, ...] = ()) -> Iterator[Any]:
        run(self.cursor, _chosen(table, some), values)
        return map(_named(table), self.cursor.fetchall())

    def _paged(self, table: sa.Table, key: str, after: Any = None) -> Iterator[Any]:
        """All rows in the order of their key, a page at a time."""
        while True:
            some = f"{'' if after is None else f'WHERE {key} > ?'} ORDER BY {key} LIMIT {PAGE}"
            found = list(self._all(table, some, () if after is None else (after,)))
            yield from found
            if len(found) < PAGE:
                return
            after = getattr(found[-1], key)

    def _put(self, table: sa.Table, *rows: dict[str, Any]) -> None:
        names = _names(table)
        for start in range(0, len(rows), MOST):
            some = rows[start : start + MOST]
            values = tuple(row[name] for row in some for name in names)
            run(self.cursor, _kept(table, len(some)), values)


def run(cursor: Any, statement: str, values: tuple[Any, ...] = ()) -> None:
    """Give a statement to the driver: every one of a charge comes through here."""
    if isinstance(cursor, sqlite3.Cursor):
        cursor.execute(statement, values)
    elif values:
        cursor.execute(statement.replace("?", "%s"), values)
    else:
        cursor.execute(statement, prepare=False)  # may be several in one, which cannot be prepared


@cache
def _names(table: sa.Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


@cache
def _named(table: sa.Table) -> Callable[[Sequence[Any]], Any]:
    row: Any = namedtuple(table.name, _names(table))  # type: ignore[misc]
    make: Callable[[Sequence[Any]], Any] = row._make
    return make


@lru_cache(maxsize=256)
def _chosen(table: sa.Table, some: str) -> str:
    return f"SELECT {', '.join(_names(table))} FROM {table.name} {some}"  # noqa: S608 - ours


@lru_cache(maxsize=256)
def _added(table: sa.Table, rows: int = 1) -> str:
    names = _names(table)
    values = ", ".join([f"({', '.join(['?'] * len(names))})"] * rows)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {values}"  # noqa: S608 - ours


@lru_cache(maxsize=256)
def _kept(table: sa.Table, rows: int = 1) -> str:
    """Insert, or change the row with the same key: the same words on both stores."""
    keys = KEYS[table.name]
    changed = ", ".join(f"{name} = excluded.{name}" for name in _names(table) if name not in keys)
    return f"{_added(table, rows)} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"


class Store:
    """A database with a ledger in it; safe for threads, for several processes and after a fork."""

    def __init__(self, url: str | Path) -> None:
        self.url = _address(url)
        self._process = 0
        self._forked: list[sa.Engine] = []
        self._engine: sa.Engine | None = None
        self._decided: dict[int, Government] = {}
        self._turn = threading.Lock()
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, _driver_error(lite=self.lite))

    @property
    def name(self) -> str:
        """What messages call the database; without a password."""
        return self.url.database or "" if self.lite else self.url.render_as_string(hide_password=True)

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
            pages = Pages(connection.connection.cursor())
            pages.put_totals(Totals(number=0, digest=START, at="", epsilon=Fraction(0), delta=Fraction(0)))

    def upgrade(self) -> None:
        """Bring an older ledger to the tables of this code; a newer one is refused."""
        with self._failing("nothing was changed"), self._connected().connect() as connection:
            if present(connection) == newest():
                return
        with self.migrating() as connection:
            try:
                migrate(connection)
            except Exception as wrong:
                if isinstance(wrong, SQLAlchemyError):
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
    def reading(self) -> Iterator[Pages]:
        """One consistent view of the record and its books."""
        with self._failing("nothing was changed"), self._begun(_begin(lite=self.lite)) as connection:
            yield Pages(connection.cursor(), self._decided)
            connection.commit()

    @contextmanager
    def writing(self) -> Iterator[Pages]:
        """The one writer, until the block ends: all that it wrote is durable then, or nothing is."""
        begin = _begin(lite=self.lite, writes=True)
        if not self.lite:
            begin += "; SELECT number FROM head WHERE one = 1 FOR UPDATE"
        with self._failing("nothing was changed"), self._turn, self._begun(begin) as connection:
            yield Pages(connection.cursor(), self._decided)
            with self._failing("whether it was written is not known: if it was, it counts"):
                commit(connection)

    @contextmanager
    def _begun(self, begin: str) -> Iterator[sa.PoolProxiedConnection]:
        """A connection of the driver's in a transaction, which is rolled back when the block fails."""
        connection = self._answering(begin)
        try:
            yield connection
        except BaseException:
            try:
                connection.rollback()
            except self._errors:
                connection.invalidate()  # the server is gone, and the transaction with it
            raise
        finally:
            connection.close()

    def _answering(self, begin: str) -> sa.PoolProxiedConnection:
        """A connection that has begun; one that its server dropped while nobody used it is replaced, once."""
        engine = self._connected()
        connection = engine.raw_connection()
        try:
            run(connection.cursor(), begin)
        except self._errors as wrong:
            gone = engine.dialect.is_disconnect(wrong, connection.dbapi_connection, None)  # type: ignore[arg-type]
            if not gone:
                connection.close()
                raise
            connection.invalidate()
            engine.dispose()
            connection = engine.raw_connection()
            run(connection.cursor(), begin)
        return connection

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
                self._engine = _engine(self.url)
                weakref.finalize(self, _dispose, self._engine, os.getpid())
            return self._engine

    @contextmanager
    def _failing(self, outcome: str) -> Iterator[None]:
        try:
            yield
        except self._errors as wrong:
            cause = getattr(wrong, "orig", None) if isinstance(wrong, SQLAlchemyError) else wrong
            reason = (str(cause or "").strip() or type(wrong).__name__).splitlines()[0]
            raise LedgerError(
                f"the ledger {self.name} cannot be used: {reason}. No row was read and no answer was delivered; "
                f"{outcome}. Mend the database and try again."
            ) from None


def _dispose(engine: sa.Engine, process: int) -> None:
    if process == os.getpid():
        engine.dispose()


def _address(url: str | Path) -> URL:
    text = str(url)
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        address = make_url(text)
    except ArgumentError:
        raise InvalidInput("the address of a ledger is a file or postgresql://…; nothing was opened.") from None
    if address.get_backend_name() == "sqlite" and address.database not in (None, "", ":memory:"):
        return address
    if address.get_backend_name() != "postgresql":
        raise InvalidInput("a ledger lives in an SQLite file or in PostgreSQL; nothing was opened.")
    need("psycopg", "pip install 'sfumato[postgres]'")
    return address.set(drivername="postgresql+psycopg")


def _engine(url: URL) -> sa.Engine:
    """The connections; each is told when a transaction begins, since drivers begin one after the first SELECT."""
    lite = url.get_backend_name() == "sqlite"
    given = {"timeout": PATIENCE} if lite else {"autocommit": True}
    engine = sa.create_engine(url, connect_args=given, pool_size=4, max_overflow=4, pool_timeout=PATIENCE)

    @sa.event.listens_for(engine, "connect")
    def durable(connection: Any, _: object) -> None:
        if lite:
            connection.isolation_level = None
            for setting in ("journal_mode=WAL", "synchronous=FULL"):
                connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("sfumato_writes", False)
        connection.exec_driver_sql(_begin(lite=lite, writes=writes))

    return engine


def _begin(*, lite: bool, writes: bool = False) -> str:
    if lite:
        return "BEGIN IMMEDIATE" if writes else "BEGIN"
    if not writes:
        return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    waiting = f"SET LOCAL synchronous_commit TO on; SET LOCAL lock_timeout TO '{PATIENCE}s'"
    return f"BEGIN ISOLATION LEVEL READ COMMITTED; {waiting}"  # after the lock, see what is newest


def commit(connection: Any) -> None:
    """End a transaction and wait for the disk."""
    connection.commit()


def _driver_error(*, lite: bool) -> type[Exception]:
    if lite:
        return sqlite3.Error
    import psycopg

    return psycopg.Error


def _text(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"


@lru_cache(maxsize=4096)
def _part(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    try:
        return Fraction(int(top), int(bottom))
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        raise LedgerError(
            "a balance in the database is not a number 'p/q': somebody wrote to it. Nothing was read and nothing was "
            "spent. Find the place: sfumato ledger verify"
        ) from None


@lru_cache(maxsize=4096)
def _budget(epsilon: str, delta: str) -> Budget:
    return Budget(epsilon=_part(epsilon), delta=_part(delta))


def _row(row: Any) -> Row:
    return Row(number=row.number, kind=row.kind, body=row.body, previous=row.previous, digest=row.digest)


@lru_cache(maxsize=256)
def _unit(text: str) -> Unit:
    unit: Unit = ENTRIES.decode(parse(text), "unit")
    return unit


@lru_cache(maxsize=256)
def _unit_text(unit: Unit) -> str:
    return canonical(encode(unit))


@lru_cache(maxsize=4096)
def _lines_text(lines: tuple[str, ...]) -> str:
    return canonical(list(lines))


@lru_cache(maxsize=4096)
def _lines(text: str) -> tuple[str, ...]:
    lines: Any = parse(text)
    return tuple(lines)


@lru_cache(maxsize=4096)
def _losses(text: str) -> tuple[tuple[str, Fraction], ...]:
    losses: Any = parse(text)
    return tuple((str(line), _part(loss)) for line, loss in losses)


def _written(balance: Balance) -> dict[str, Any]:
    return {
        "name": balance.name,
        "unit": _unit_text(balance.unit),
        "cap_epsilon": _text(balance.cap.epsilon),
        "cap_delta": _text(balance.cap.delta),
        "cap_rho": None if balance.rho is None else _text(balance.rho),
        "cap_loss": None if balance.loss is None else _text(balance.loss),
        "loss_order": None if balance.order is None else _text(balance.order),
        "epsilon_spent": _text(balance.epsilon_spent),
        "delta_spent": _text(balance.delta_spent),
        "rho_spent": _text(balance.rho_spent),
        "loss_spent": _text(balance.loss_spent),
        "charges": balance.charges,
    }


def _balance(row: Any) -> Balance:
    return Balance(
        name=row.name,
        unit=_unit(row.unit),
        cap=_budget(row.cap_epsilon, row.cap_delta),
        rho=None if row.cap_rho is None else _part(row.cap_rho),
        order=None if row.loss_order is None else _part(row.loss_order),
        loss=None if row.cap_loss is None else _part(row.cap_loss),
        epsilon_spent=_part(row.epsilon_spent),
        delta_spent=_part(row.delta_spent),
        rho_spent=_part(row.rho_spent),
        loss_spent=_part(row.loss_spent),
        charges=row.charges,
    )


def _edition(row: Any) -> Edition:
    dataset = Dataset(name=row.name, edition=row.edition)
    return Edition(dataset=dataset, population=row.population, closed=bool(row.closed))


def _charge(row: Any) -> Charge:
    return Charge(
        number=row.number,
        state=State(row.state),
        cost=_budget(row.epsilon, row.delta),
        losses=_losses(row.losses),
        lines=_lines(row.lines),
        idempotency=row.idempotency,
        request=row.request,
        queued=bool(row.queued),
        started=bool(row.started),
        expires=row.expires,
        answer=row.answer,
    )
