"""The store: the record and its books in a database, SQLite for one machine or PostgreSQL for an institution.

Writers come one after the other: the chain has one end. SQLite takes its write lock before the first read (``BEGIN
IMMEDIATE``), PostgreSQL locks the row of the head; both before any balance is looked at, so no two writers ever decide
on the same numbers.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
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
from sfumato.governance.books import Charge, Edition, MemoryBooks, Totals, apply
from sfumato.governance.entries import ENTRIES, START, Entry, Recovered, Row
from sfumato.governance.memory import State
from sfumato.governance.migrations import migrate, newest, present

__all__ = ["Pages", "Store"]

PATIENCE = 60  # seconds to wait for other writers
PAGE = 1000  # rows of the record that are read at a time

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
HEAD = _table("head", "digest", "at", "epsilon", "delta", one=sa.Integer, number=sa.BigInteger)
BALANCE = _table(
    "balance",
    *("name", "unit", "cap_epsilon", "cap_delta", "cap_rho", "epsilon_spent", "delta_spent", "rho_spent"),
    charges=sa.BigInteger,
)
EDITION = _table("edition", "name", "edition", "population", closed=sa.Boolean)
CHARGE = _table(
    "charge",
    *("state", "epsilon", "delta", "rho", "lines", "idempotency", "request", "expires"),
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

    Nobody else can change what a transaction has read, so each balance is read once.
    """

    connection: sa.Connection
    _seen: dict[str, Balance] = field(default_factory=dict)
    _moved: dict[str, Balance] = field(default_factory=dict)
    _end: list[Totals] = field(default_factory=list)

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        if name not in self._seen:
            row = self._one(BALANCE, name=name)
            if row is None:
                return None
            self._seen[name] = _balance(row)
        return self._seen[name]

    def balances(self) -> list[Balance]:
        """All balances, by name."""
        rows = self.connection.execute(sa.select(BALANCE))
        found = {row.name: _balance(row) for row in rows} | self._moved
        return [found[name] for name in sorted(found)]

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name; written when its entry is."""
        self._seen[balance.name] = self._moved[balance.name] = balance

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        row = self._one(EDITION, name=dataset.name, edition=dataset.edition)
        return None if row is None else _edition(row)

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        values = {"name": edition.dataset.name, "edition": edition.dataset.edition, "population": edition.population}
        self._put(EDITION, values | {"closed": edition.closed})

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        row = self._one(CHARGE, number=number)
        return None if row is None else _charge(row)

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
        due = (CHARGE.c.state == State.RESERVED.value) & CHARGE.c.expires.is_not(None)
        rows = self.connection.execute(sa.select(CHARGE).where(due).order_by(CHARGE.c.number))
        return [_charge(row) for row in rows if row.expires <= now]  # compared here, not by a collation

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        values = {
            "number": charge.number,
            "state": charge.state.value,
            "epsilon": _text(charge.cost.epsilon),
            "delta": _text(charge.cost.delta),
            "rho": None if charge.rho is None else _text(charge.rho),
            "lines": canonical(list(charge.lines)),
            "idempotency": charge.idempotency,
            "request": charge.request,
            "queued": charge.queued,
            "started": charge.started,
            "expires": charge.expires,
            "answer": charge.answer,
        }
        self._put(CHARGE, values)

    def answer(self, key: str) -> int | None:
        """The entry that answers a question."""
        row = self._one(ANSWER, question=key)
        return None if row is None else int(row.number)

    def put_answer(self, key: str, number: int) -> None:
        """Remember the entry that answers a question."""
        self._put(ANSWER, {"question": key, "number": number})

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        if self._end:
            return self._end[0]
        row = self._one(HEAD, one=1)
        if row is None or row.number == 0:
            return None
        epsilon, delta = _part(row.epsilon), _part(row.delta)
        self._end.append(Totals(number=row.number, digest=row.digest, at=row.at, epsilon=epsilon, delta=delta))
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
        values |= {"epsilon": _text(totals.epsilon), "delta": _text(totals.delta)}
        self._put(HEAD, values)
        self._end[:] = [totals] if totals.number else []

    def row(self, number: int) -> Row | None:
        """A row of the record."""
        found = self._one(RECORD, number=number)
        return None if found is None else _row(found)

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The rows of the record after a number, in order, a page at a time."""
        while True:
            page = sa.select(RECORD).where(RECORD.c.number > after).order_by(RECORD.c.number).limit(PAGE)
            found = [_row(row) for row in self.connection.execute(page)]
            yield from found
            if len(found) < PAGE:
                return
            after = found[-1].number

    def append(self, entry: Entry, *, after: int | None = None) -> Row:
        """Write an entry at the end of the record, and what follows from it into the books."""
        totals = self.totals()
        number, previous = (0, START) if totals is None else (totals.number, totals.digest)
        if isinstance(entry, Recovered) and after is not None:
            number = max(number, after)
        row = Row.after(number, previous, entry)
        self.connection.execute(_added(RECORD), asdict(row))
        apply(self, row, entry)
        if self._moved:
            self._put(BALANCE, *(_written(balance) for balance in self._moved.values()))
            self._moved.clear()
        return row

    def copy(self) -> MemoryBooks:
        """All books as values, to be compared with a replay."""
        editions = [_edition(row) for row in self.connection.execute(sa.select(EDITION))]
        charges = [_charge(row) for row in self.connection.execute(sa.select(CHARGE))]
        return MemoryBooks(
            kept={balance.name: balance for balance in self.balances()},
            editions={edition.dataset: edition for edition in editions},
            charges={charge.number: charge for charge in charges},
            answers={row.question: row.number for row in self.connection.execute(sa.select(ANSWER))},
            head=self.totals(),
        )

    def _one(self, table: sa.Table, **keys: Any) -> Any:
        return self.connection.execute(_found(table, *keys), keys).one_or_none()

    def _put(self, table: sa.Table, *rows: dict[str, Any]) -> None:
        self.connection.execute(_kept(table), list(rows))


@cache
def _found(table: sa.Table, *keys: str) -> sa.Select[Any]:
    """Select by keys; statements are made once, since making them takes longer than running them."""
    return sa.select(table).where(*(table.c[key] == sa.bindparam(key) for key in keys))


@cache
def _added(table: sa.Table) -> sa.TextClause:
    names = [column.name for column in table.columns]
    return sa.text(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES (:{', :'.join(names)})")  # noqa: S608 - ours


@cache
def _kept(table: sa.Table) -> sa.TextClause:
    """Insert, or change the row with the same key: the same words on both stores."""
    keys = KEYS[table.name]
    names = [column.name for column in table.columns if column.name not in keys]
    changed = ", ".join(f"{name} = excluded.{name}" for name in names)
    return sa.text(f"{_added(table).text} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}")


class Store:
    """A database with a ledger in it; safe for threads, for several processes and after a fork."""

    def __init__(self, url: str | Path) -> None:
        self.url = _address(url)
        self._process = 0
        self._forked: list[sa.Engine] = []
        self._engine: sa.Engine | None = None
        self._turn = threading.Lock()

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
        with self.writing(made=False) as pages:
            if present(pages.connection) is not None:
                raise LedgerError(f"{self.name} holds a ledger already; nothing was changed. Open it instead.")
            migrate(pages.connection)
            pages.put_totals(Totals(number=0, digest=START, at="", epsilon=Fraction(0), delta=Fraction(0)))

    def upgrade(self) -> None:
        """Bring an older ledger to the tables of this code; a newer one is refused."""
        with self._failing("nothing was changed"), self._connected().connect() as connection:
            if present(connection) == newest():
                return
        with self.writing(made=False) as pages:
            try:
                migrate(pages.connection)
            except Exception as wrong:
                if isinstance(wrong, SQLAlchemyError):
                    raise
                raise LedgerError(
                    f"{self.name} was written by a newer sfumato (tables {present(pages.connection)}, known are up to "
                    f"{newest()}); nothing was changed. Update sfumato."
                ) from None

    @contextmanager
    def reading(self) -> Iterator[Pages]:
        """One consistent view of the record and its books."""
        with self._failing("nothing was changed"), self._connected().connect() as connection, connection.begin():
            if not self.lite:
                connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            yield Pages(connection)

    @contextmanager
    def writing(self, *, made: bool = True) -> Iterator[Pages]:
        """The one writer, until the block ends: all that it wrote is durable then, or nothing is."""
        engine = self._connected()
        with self._failing("nothing was changed"), self._turn, engine.connect() as plain:
            connection = plain.execution_options(sfumato_writes=True)
            transaction = connection.begin()
            try:
                if not self.lite:
                    self._lock(connection, made=made)
                yield Pages(connection)
            except BaseException:
                transaction.rollback()
                raise
            with self._failing("whether it was written is not known: if it was, it counts"):
                transaction.commit()

    @staticmethod
    def _lock(connection: sa.Connection, *, made: bool) -> None:
        connection.execute(
            sa.text("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        )  # after the lock, see what is newest
        connection.execute(sa.text("SET LOCAL synchronous_commit TO on"))
        connection.execute(sa.text(f"SET LOCAL lock_timeout TO '{PATIENCE}s'"))
        if made:
            connection.execute(sa.select(HEAD.c.number).where(HEAD.c.one == 1).with_for_update())
        else:  # there is no row to lock yet
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('sfumato ledger'))"))

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
        except SQLAlchemyError as wrong:
            reason = str(getattr(wrong, "orig", None) or type(wrong).__name__).strip().splitlines()[0]
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
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_size=4, max_overflow=4, pool_timeout=PATIENCE, pool_pre_ping=True)
    engine = sa.create_engine(
        url, connect_args={"timeout": PATIENCE}, pool_size=4, max_overflow=4, pool_timeout=PATIENCE
    )

    @sa.event.listens_for(engine, "connect")
    def durable(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes after the first SELECT: too late
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("sfumato_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _text(number: Fraction) -> str:
    return str(encode(number))


def _part(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    try:
        return Fraction(int(top), int(bottom))
    except (ValueError, ZeroDivisionError):
        raise LedgerError(
            "a balance in the database is not a number 'p/q': somebody wrote to it. Nothing was read and nothing was "
            "spent. Find the place: sfumato ledger verify"
        ) from None


def _row(row: Any) -> Row:
    return Row(number=row.number, kind=row.kind, body=row.body, previous=row.previous, digest=row.digest)


@lru_cache(maxsize=256)
def _unit(text: str) -> Unit:
    unit: Unit = ENTRIES.decode(parse(text), "unit")
    return unit


def _written(balance: Balance) -> dict[str, Any]:
    return {
        "name": balance.name,
        "unit": canonical(encode(balance.unit)),
        "cap_epsilon": _text(balance.cap.epsilon),
        "cap_delta": _text(balance.cap.delta),
        "cap_rho": None if balance.rho is None else _text(balance.rho),
        "epsilon_spent": _text(balance.epsilon_spent),
        "delta_spent": _text(balance.delta_spent),
        "rho_spent": _text(balance.rho_spent),
        "charges": balance.charges,
    }


def _balance(row: Any) -> Balance:
    return Balance(
        name=row.name,
        unit=_unit(row.unit),
        cap=Budget(epsilon=_part(row.cap_epsilon), delta=_part(row.cap_delta)),
        rho=None if row.cap_rho is None else _part(row.cap_rho),
        epsilon_spent=_part(row.epsilon_spent),
        delta_spent=_part(row.delta_spent),
        rho_spent=_part(row.rho_spent),
        charges=row.charges,
    )


def _edition(row: Any) -> Edition:
    dataset = Dataset(name=row.name, edition=row.edition)
    return Edition(dataset=dataset, population=row.population, closed=row.closed)


def _charge(row: Any) -> Charge:
    lines: Any = parse(row.lines)
    return Charge(
        number=row.number,
        state=State(row.state),
        cost=Budget(epsilon=_part(row.epsilon), delta=_part(row.delta)),
        rho=None if row.rho is None else _part(row.rho),
        lines=tuple(lines),
        idempotency=row.idempotency,
        request=row.request,
        queued=row.queued,
        started=row.started,
        expires=row.expires,
        answer=row.answer,
    )
