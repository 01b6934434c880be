"""The rows of a ledger's database: its tables, the statements on them, and what a row stands for.

Each number is text ``p/q``, since a database would round it. Statements go straight to the driver: the layers of
SQLAlchemy in between take longer than the database.
"""

import json
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache, wraps
from operator import itemgetter
from typing import Any, TypeVar, cast  # what drivers and databases hand over

import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.core.units import Unit
from sfumato.errors import LedgerError, SfumatoError
from sfumato.governance.balances import Balance
from sfumato.governance.entries import ENTRIES, Row
from sfumato.governance.entry_tree import Frontier
from sfumato.governance.ledger_state import Charge, Edition, Totals

__all__ = [
    "ANSWER",
    "BALANCE",
    "CHARGE",
    "EDITION",
    "HEAD",
    "KEYS",
    "NODE",
    "RECORD",
    "TABLES",
    "added",
    "balance_of",
    "balance_row",
    "charge_of",
    "charge_row",
    "chosen",
    "columns",
    "commit",
    "edition_of",
    "edition_row",
    "kept",
    "named",
    "on_sqlite",
    "picked",
    "row_of",
    "run",
    "stored",
    "stored_together",
    "totals_of",
    "totals_row",
]

TABLES = sa.MetaData()
Cursor = Any  # of SQLite or of psycopg, which takes more than the common interface of drivers has
Connection = Any  # of the same
TableRow = Any  # a named tuple of what a database holds, to which anybody may have written


def _table(name: str, *columns: str, **typed: type[sa.types.TypeEngine[Any]]) -> sa.Table:
    """A table as statements need it; the migrations make it."""
    return sa.Table(
        name, TABLES, *(sa.Column(one, sa.Text) for one in columns), *(sa.Column(n, t) for n, t in typed.items())
    )


RECORD = _table("record", "kind", "body", "previous", "digest", "nonce", "head", "subtrees", number=sa.BigInteger)
HEAD = _table(
    *("head", "digest", "at", "epsilon", "delta", "state", "decisions", "frontier"),
    one=sa.Integer,
    number=sa.BigInteger,
)
BALANCE = _table(
    "balance",
    *("name", "unit", "cap_epsilon", "cap_delta", "cap_rho", "cap_loss", "loss_order"),
    *("epsilon_spent", "delta_spent", "rho_spent", "loss_spent"),
    charges=sa.BigInteger,
)
EDITION = _table("edition", "name", "edition", "population", closed=sa.Boolean, declared=sa.BigInteger)
CHARGE = _table(
    "charge",
    *("state", "epsilon", "delta", "losses", "lines", "idempotency", "request", "expires", "holder"),
    *("digest", "answered"),
    number=sa.BigInteger,
    queued=sa.Boolean,
    started=sa.Boolean,
    answer=sa.BigInteger,
    place=sa.BigInteger,
)
ANSWER = _table("answer", "question", "digest", number=sa.BigInteger)
NODE = _table("node", "path", children=sa.LargeBinary)
KEYS = {
    "record": ["number"],
    "head": ["one"],
    "balance": ["name"],
    "edition": ["name", "edition"],
    "charge": ["number"],
    "answer": ["question"],
    "node": ["path"],
}


def run(cursor: Cursor, statement: str, values: tuple[object, ...] = ()) -> None:
    """Give a statement to the driver: every one of a charge comes through here."""
    if on_sqlite(cursor):
        cursor.execute(statement, values)
    elif values:
        cursor.execute(statement.replace("?", "%s"), values)
    else:
        cursor.execute(statement, prepare=False)  # may be several in one, which cannot be prepared


def commit(connection: Connection) -> None:
    """End a transaction and wait for the disk."""
    connection.commit()


def on_sqlite(cursor: Cursor) -> bool:
    """Whether this is a cursor of SQLite."""
    return isinstance(cursor, sqlite3.Cursor)


@cache
def columns(table: sa.Table) -> tuple[str, ...]:
    """The names of a table's columns, in the order that statements give them."""
    return tuple(column.name for column in table.columns)


@cache
def picked(table: sa.Table) -> tuple[Callable[[Mapping[str, object]], object], Callable[[Mapping[str, object]], Any]]:
    """What picks the key of a row, and what picks all of it, in the order of the columns."""
    return itemgetter(*KEYS[table.name]), itemgetter(*columns(table))


_HELD = {sa.Text: (str,), sa.LargeBinary: (bytes,), sa.BigInteger: (int,), sa.Integer: (int,), sa.Boolean: (bool, int)}
_MAY_LACK = frozenset({"cap_rho", "cap_loss", "loss_order"})  # of balances
_MAY_LACK |= {"idempotency", "expires", "answer", "place", "holder", "answered"}  # of charges


@cache
def named(table: sa.Table) -> Callable[[Sequence[object]], TableRow]:
    """What makes a row with names out of a plain one; one that holds values of other types is refused.

    A text of the record is looked at where it is read (:func:`row_of`), so that verification can name the row.
    """
    row: Any = namedtuple(table.name, columns(table))  # type: ignore[misc]  # the names are those of a table
    kinds = [
        (object,)
        if table.name == "record" and column.name != "number"
        else _HELD[type(column.type)] + ((type(None),) if column.name in _MAY_LACK else ())
        for column in table.columns
    ]

    def make(values: Sequence[object]) -> TableRow:
        if not all(map(isinstance, values, kinds)):
            raise _unreadable(table.name)
        return row._make(values)

    return make


def _unreadable(table: str) -> LedgerError:
    return LedgerError(
        f"a row of the table {table} in the database cannot be read: somebody wrote to it. Nothing was read and "
        "nothing was spent. Find the place: sfumato ledger verify"
    )


@lru_cache(maxsize=256)
def chosen(table: sa.Table, some: str) -> str:
    """A SELECT of all columns; statements are made once."""
    return f"SELECT {', '.join(columns(table))} FROM {table.name} {some}"  # noqa: S608 - ours


@lru_cache(maxsize=256)
def added(table: sa.Table, rows: int = 1) -> str:
    """An INSERT of a number of rows."""
    names = columns(table)
    values = ", ".join([f"({', '.join(['?'] * len(names))})"] * rows)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {values}"  # noqa: S608 - ours


@lru_cache(maxsize=256)
def kept(table: sa.Table, rows: int = 1) -> str:
    """Insert, or change the row with the same key: the same words on both stores."""
    keys = KEYS[table.name]
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns(table) if name not in keys)
    return f"{added(table, rows)} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"


_ON_SERVERS = {sa.Text: "text", sa.LargeBinary: "bytea", sa.BigInteger: "bigint", sa.Integer: "int", sa.Boolean: "bool"}


@cache
def stored_together() -> str:
    """All that one flush writes, in all tables, as one statement for a server: its words are always the same.

    Its one value is what :func:`stored` makes. A driver that is given one statement a table spends more time on that
    than on all else, and reads the words of those with many values anew each time.
    """
    parts = []
    for table in TABLES.sorted_tables:
        name, keys = table.name, KEYS[table.name]
        typed = ", ".join(f"{column.name} {_ON_SERVERS[type(column.type)]}" for column in table.columns)
        words = f"INSERT INTO {name} ({', '.join(columns(table))}) SELECT new.* "
        words += f"FROM given, json_to_recordset(of_{name}) AS new({typed})"
        changed = [column for column in columns(table) if column not in keys]
        if table is not RECORD:
            words += f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET ({', '.join(changed)}) = "
            words += f"ROW({', '.join(f'excluded.{column}' for column in changed)})"
        parts.append(f"in_{name} AS ({words})")
    given = ", ".join(f"of_{table.name} json" for table in TABLES.sorted_tables)
    return f"WITH given AS (SELECT * FROM json_to_record(?::json) AS all_of_it({given})), {', '.join(parts)} SELECT"  # noqa: S608 - ours


_AS_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=lambda octets: f"\\x{octets.hex()}")


def stored(waiting: Mapping[sa.Table, Sequence[tuple[object, ...]]]) -> str:
    """The rows that wait, by their tables, as the value of :func:`stored_together`.

    >>> stored({NODE: [("ab", b"\\0")]})
    '{"of_node":[{"path":"ab","children":"\\\\\\\\x00"}]}'
    """
    made = {
        f"of_{table.name}": [dict(zip(columns(table), row, strict=True)) for row in some]
        for table, some in waiting.items()
    }
    return _AS_JSON.encode(made)


Kept = TypeVar("Kept")


def _readable(read: Callable[[TableRow], Kept]) -> Callable[[TableRow], Kept]:
    """Read a row of the stored state; one that holds something else than a ledger wrote is an error of the ledger's."""

    @wraps(read)
    def held(row: TableRow) -> Kept:
        try:
            return read(row)
        except SfumatoError:
            raise
        except (AttributeError, TypeError, ValueError):
            raise _unreadable(type(row).__name__) from None

    return held


def _text(number: Fraction) -> str:
    top, bottom = number.as_integer_ratio()  # one call, where the two properties are two
    return f"{top}/{bottom}"


@lru_cache(maxsize=4096)
def _part(text: str) -> Fraction:
    try:
        top, _, bottom = text.partition("/")
        return Fraction(int(top), int(bottom))
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        raise LedgerError(
            "a balance in the database is not a number 'p/q': somebody wrote to it. Nothing was read and nothing was "
            "spent. Find the place: sfumato ledger verify"
        ) from None


@lru_cache(maxsize=4096)
def _budget(epsilon: str, delta: str) -> Budget:
    return Budget(epsilon=_part(epsilon), delta=_part(delta))


def row_of(row: Sequence[object]) -> Row:
    """A row of the record, from that of the database; bytes in the place of a text are never taken for it."""
    *texts, number = row  # in the order of the columns
    if type(number) is not int:
        raise _unreadable("record")
    if set(map(type, texts)) != {str}:
        texts = [text if type(text) is str else repr(text) for text in texts]
    return Row(number, *texts)  # type: ignore[arg-type]  # each is a text now


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
    return tuple(cast("list[str]", parse(text)))


@lru_cache(maxsize=4096)
def _losses(text: str) -> tuple[tuple[str, Fraction], ...]:
    return tuple((str(line), _part(loss)) for line, loss in cast("list[tuple[str, str]]", parse(text)))


def balance_row(balance: Balance) -> dict[str, object]:
    """A balance as a row."""
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


@_readable
def balance_of(row: TableRow) -> Balance:
    """A balance from its row."""
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


@_readable
def totals_of(row: TableRow) -> Totals:
    """The head and the sums, from their row."""
    epsilon, delta = _part(row.epsilon), _part(row.delta)
    return Totals(
        number=row.number,
        digest=row.digest,
        at=row.at,
        epsilon=epsilon,
        delta=delta,
        decisions=row.decisions,
        state=row.state,
        frontier=_frontier(row.frontier),
    )


_frontier = lru_cache(maxsize=64)(Frontier.read)


def totals_row(totals: Totals) -> dict[str, object]:
    """The head and the sums as a row."""
    values = {"one": 1, "number": totals.number, "digest": totals.digest, "at": totals.at}
    values |= {"epsilon": _text(totals.epsilon), "delta": _text(totals.delta)}
    return values | {"state": totals.state, "decisions": totals.decisions, "frontier": totals.frontier.text}


@_readable
def edition_of(row: TableRow) -> Edition:
    """A declared version, from its row."""
    dataset = Dataset(name=row.name, edition=row.edition)
    return Edition(dataset=dataset, population=row.population, closed=bool(row.closed), declared=row.declared)


def edition_row(edition: Edition) -> dict[str, object]:
    """A declared version as a row."""
    values = {"name": edition.dataset.name, "edition": edition.dataset.edition, "population": edition.population}
    return values | {"closed": edition.closed, "declared": edition.declared}


def charge_row(charge: Charge) -> dict[str, object]:
    """A charge as a row."""
    return {
        "number": charge.number,
        "state": charge.state.value,
        "epsilon": _text(charge.cost.epsilon),
        "delta": _text(charge.cost.delta),
        "losses": canonical(encode(charge.losses)) if charge.losses else "[]",
        "lines": _lines_text(charge.lines),
        "idempotency": charge.idempotency,
        "request": charge.request,
        "queued": charge.queued,
        "started": charge.started,
        "expires": charge.expires,
        "answer": charge.answer,
        "place": charge.place,
        "holder": charge.holder,
        "digest": charge.digest,
        "answered": charge.answered,
    }


@_readable
def charge_of(row: TableRow) -> Charge:
    """A charge from its row."""
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
        place=row.place,
        holder=row.holder,
        digest=row.digest,
        answered=row.answered,
    )
