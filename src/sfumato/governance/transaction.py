"""One transaction of the database: the record of a ledger and its stored state, read and written in it."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain

import sqlalchemy as sa

from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.errors import LedgerError
from sfumato.governance import rows
from sfumato.governance.balances import Balance
from sfumato.governance.decision_state import GOVERNING, DecisionState
from sfumato.governance.entries import CHARGING, START, DatasetDeclared, Entry, LedgerOpened, Recovered, Row
from sfumato.governance.ledger_state import Charge, Edition, Totals, apply
from sfumato.governance.rows import (
    ANSWER,
    BALANCE,
    CHARGE,
    EDITION,
    HEAD,
    KEYS,
    RECORD,
    Cursor,
    TableRow,
    added,
    balance_of,
    balance_row,
    charge_of,
    charge_row,
    chosen,
    columns,
    edition_of,
    kept,
    named,
    on_sqlite,
    row_of,
    totals_of,
    totals_row,
)

__all__ = ["Transaction"]

PAGE = 1000  # rows that are read at a time
MOST = 500  # rows that one statement writes


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state in one transaction: each number is text ``p/q``, read and compared as an exact rational.

    Nobody else can change what a transaction has read, so each balance and each charge is read once. What is put waits
    until something is read or the transaction ends, and is then written table by table. ``cursor`` is the driver's.
    """

    cursor: Cursor
    _known: dict[int, DecisionState] = field(default_factory=dict)
    _seen: dict[str, Balance] = field(default_factory=dict)
    _charges: dict[int, Charge] = field(default_factory=dict)
    _moved: dict[str, Balance] = field(default_factory=dict)
    _put_off: dict[sa.Table, dict[tuple[object, ...], tuple[object, ...]]] = field(default_factory=dict)
    _end: list[Totals] = field(default_factory=list)
    _decided: list[DecisionState] = field(default_factory=list)

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        if name not in self._seen:
            row = self._one(BALANCE, name=name)
            if row is None:
                return None
            self._seen[name] = balance_of(row)
        return self._seen[name]

    def gather(self, names: Sequence[str]) -> None:
        """Read several balances at once, before they are asked for one by one."""
        new = tuple(name for name in names if name not in self._seen)
        if new:
            for row in self._all(BALANCE, f"WHERE name IN ({', '.join(['?'] * len(new))})", new):
                self._seen[row.name] = balance_of(row)

    def balances(self) -> list[Balance]:
        """All balances, by name."""
        return sorted(map(balance_of, self._all(BALANCE)), key=lambda balance: balance.name)

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name."""
        self._seen[balance.name] = self._moved[balance.name] = balance

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        row = self._one(EDITION, name=dataset.name, edition=dataset.edition)
        return None if row is None else edition_of(row)

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
            self._charges[number] = charge_of(row)
        return self._charges[number]

    def charges(self) -> Iterator[Charge]:
        """All charges, by number."""
        return map(charge_of, self._paged(CHARGE, "number"))

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
        return None if row is None else charge_of(row)

    def stale(self, now: str) -> list[Charge]:
        """Open charges whose time is over, oldest first."""
        due = "WHERE state = ? AND expires IS NOT NULL ORDER BY number"
        found = self._all(CHARGE, due, (State.RESERVED.value,))
        return [charge_of(row) for row in found if row.expires <= now]  # compared here, not by a collation

    def unsettled(self) -> list[Charge]:
        """Open charges, oldest first."""
        waiting = self._all(CHARGE, "WHERE state = ? ORDER BY number", (State.RESERVED.value,))
        return [charge_of(row) for row in waiting]

    def editions(self) -> list[Edition]:
        """All declared versions of datasets."""
        return [edition_of(row) for row in self._all(EDITION)]

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        self._put(CHARGE, charge_row(charge))
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

    def decision_state(self) -> DecisionState:
        """What was decided and declared; the store remembers it until the next decision."""
        if not self._decided:
            last = self.end().governed
            if last not in self._known:
                found = self._governed(last)
                self._known.clear()
                self._known[last] = found
            self._decided.append(self._known[last])
        return self._decided[0]

    def put_decision_state(self, decisions: DecisionState) -> None:
        """Keep what was decided and declared, in this transaction: it follows from the record."""
        self._decided[:] = [decisions]

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        if self._end:
            return self._end[0]
        return self._totals(self._one(HEAD, one=1))

    def _totals(self, row: TableRow) -> Totals | None:
        if row is None or row.number == 0:
            return None
        self._end.append(totals_of(row))
        return self._end[0]

    def end(self) -> Totals:
        """The head of a record that must have one."""
        totals = self.totals()
        if totals is None:
            raise LedgerError("the record of the ledger is empty; nothing was done.")
        return totals

    def put_totals(self, totals: Totals) -> None:
        """Move the head."""
        self._put(HEAD, totals_row(totals))
        self._end[:] = [totals] if totals.number else []

    def row(self, number: int) -> Row | None:
        """A row of the record."""
        found = self._one(RECORD, number=number)
        return None if found is None else row_of(found)

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The rows of the record after a number, in order, in batches."""
        return map(row_of, self._paged(RECORD, "number", after))

    def datasets(self, population: str) -> set[str]:
        """The names of all datasets about some people."""
        return {row.name for row in self._all(EDITION, "WHERE population = ?", (population,))}

    def declared(self, dataset: Dataset) -> int:
        """The entry that declared a version; 0 where there is none. It looks through all that declare one."""
        for found in self._all(RECORD, "WHERE kind = ? ORDER BY number", (DatasetDeclared.KIND,)):
            row = row_of(found)
            if isinstance(row.entry, DatasetDeclared) and row.entry.dataset == dataset:
                return row.number
        return 0

    def append(self, entry: Entry, *, after: int | None = None) -> Row:
        """Write an entry at the end of the record, and what follows from it into the stored state."""
        totals = self.totals()
        number, previous = (0, START) if totals is None else (totals.number, totals.digest)
        if isinstance(entry, Recovered) and after is not None:
            number = max(number, after)
        row = Row.after(number, previous, entry)
        if not isinstance(entry, CHARGING) and row.entry != entry:  # charges are checked by who makes them
            raise LedgerError("an entry could not be read as it was written; nothing was changed.")
        self._put(RECORD, {name: getattr(row, name) for name in columns(RECORD)})
        apply(self, row, entry)
        return row

    def flush(self) -> None:
        """Write what was put; with one server's answer for all of it, where the store is a server."""
        for balance in self._moved.values():
            self._put(BALANCE, balance_row(balance))
        self._moved.clear()
        statements = []
        for table, waiting in self._put_off.items():
            values = list(waiting.values())
            for start in range(0, len(values), MOST):
                some = values[start : start + MOST]
                words = added(table, len(some)) if table is RECORD else kept(table, len(some))
                statements.append((words, tuple(chain.from_iterable(some))))
        self._put_off.clear()
        connection = self.cursor.connection
        with nullcontext() if len(statements) < 2 or on_sqlite(self.cursor) else connection.pipeline():
            for words, given in statements:
                rows.run(connection.cursor(), words, given)

    def locked(self) -> None:
        """Take the head from the statement that locked it, where it did."""
        while not on_sqlite(self.cursor) and self.cursor.nextset():
            pass
        row = None if self.cursor.description is None else self.cursor.fetchone()
        self._totals(None if row is None else named(HEAD)(row))

    def _governed(self, last: int) -> DecisionState:
        """Work out again what was decided up to an entry."""
        first = self.row(1)
        opened = None if first is None else first.entry
        if not isinstance(opened, LedgerOpened):
            raise LedgerError("the record does not begin with its opening; nothing was done.")
        decisions = DecisionState(ledger=opened.identifier)
        kinds = [cls.KIND for cls in GOVERNING]
        some = f"WHERE kind IN ({', '.join(['?'] * len(kinds))}) AND number <= ? ORDER BY number"
        for found in self._all(RECORD, some, (*kinds, last)) if last else ():
            row = row_of(found)
            if row.digest != row.expected:
                raise LedgerError(f"entry {row.number} of the record was edited; nothing was done.")
            decisions = decisions.after(row.number, row.entry)
        return decisions

    def _one(self, table: sa.Table, **keys: object) -> TableRow:
        wanted = "WHERE " + " AND ".join(f"{key} = ?" for key in keys)
        return next(self._all(table, wanted, tuple(keys.values())), None)

    def _all(self, table: sa.Table, some: str = "", values: tuple[object, ...] = ()) -> Iterator[TableRow]:
        if self._put_off or self._moved:
            self.flush()
        rows.run(self.cursor, chosen(table, some), values)
        return map(named(table), self.cursor.fetchall())

    def _paged(self, table: sa.Table, key: str, after: object = None) -> Iterator[TableRow]:
        """All rows in the order of their key, in batches."""
        while True:
            some = f"{'' if after is None else f'WHERE {key} > ?'} ORDER BY {key} LIMIT {PAGE}"
            found = list(self._all(table, some, () if after is None else (after,)))
            yield from found
            if len(found) < PAGE:
                return
            after = getattr(found[-1], key)

    def _put(self, table: sa.Table, row: dict[str, object]) -> None:
        waiting = self._put_off.setdefault(table, {})
        waiting[tuple(row[key] for key in KEYS[table.name])] = tuple(row[name] for name in columns(table))
