"""One transaction of the database: the record of a ledger and its stored state, read and written in it.

Whoever can write to the database can put anything there. What a transaction reads of the stored state is therefore kept
beside its key, and held to the root of the signed head, all at once: before an entry is signed, and before anything
that was read leaves the transaction (:meth:`Transaction.prove`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain

import sqlalchemy as sa

from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.errors import LedgerError, Refused, SfumatoError
from sfumato.governance import rows
from sfumato.governance.anchor import SignedHead
from sfumato.governance.balances import Balance
from sfumato.governance.decision_state import GOVERNING, DecisionState
from sfumato.governance.entries import ADMINISTRATIVE, CHARGING, START, Entry, Migrated, Row
from sfumato.governance.entries import KEYS as ROOT_SIGNED
from sfumato.governance.entry_tree import Frontier
from sfumato.governance.keyring import KeyRing, check_entry, needs_administrator
from sfumato.governance.leaves import (
    Key,
    about,
    answer_leaf,
    charge_leaf,
    edition_leaf,
    map_of,
    names_leaf,
    place_of,
    said,
)
from sfumato.governance.ledger_state import Charge, Edition, MemoryLedgerState, Totals, apply, decided_on
from sfumato.governance.rows import (
    ANSWER,
    BALANCE,
    CHARGE,
    EDITION,
    HEAD,
    NODE,
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
    edition_row,
    kept,
    named,
    on_sqlite,
    picked,
    row_of,
    stored,
    stored_together,
    totals_of,
    totals_row,
)
from sfumato.governance.state_map import StateMap, hashed

__all__ = ["Transaction"]

PAGE = 1000  # rows that are read at a time
MOST = 500  # rows that one statement writes


@dataclass(slots=True, eq=False)
class Transaction:
    """The state in one transaction: each number is text ``p/q``, read and compared as an exact rational.

    Nobody else can change what a transaction has read, so each balance and each charge is read once. What is put waits
    until something is read or the transaction ends, and is then written table by table. ``cursor`` is the driver's.
    Before :meth:`believe` nothing is proven, and nothing can be appended: so is a ledger verified that might be forged.
    """

    cursor: Cursor
    _known: dict[str, DecisionState] = field(default_factory=dict)
    _proven: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    _seen: dict[str, Balance] = field(default_factory=dict)
    _charges: dict[int, Charge] = field(default_factory=dict)
    _moved: dict[str, dict[str, object]] = field(default_factory=dict)
    _put_off: dict[sa.Table, dict[object, tuple[object, ...]]] = field(default_factory=dict)
    _end: Totals | None = None
    _decided: DecisionState | None = None
    _ledger: str = ""
    _opening: KeyRing | None = None
    _ring: tuple[str, KeyRing] | None = None
    _map: StateMap | None = None
    _met: dict[Key, bytes | None] = field(default_factory=dict)
    """What was read and is not proven yet, as the hash that its leaf must hold; None where nothing was found."""
    _made: dict[Key, bytes] = field(default_factory=dict)
    """What was put and is not in the map yet."""

    def believe(self, ledger: str, state: str, opening: KeyRing | None = None) -> None:
        """Hold all that is read from now on to the root of a head that was proven, of the ledger that it names.

        ``opening`` are the keys that it was opened with, where it has a root.
        """
        self._ledger, self._opening = ledger, opening
        self._map = StateMap(self._nodes, state, self._proven)

    def map_at(self, root: str) -> StateMap:
        """A map of its own over the stored nodes, held to a root; nothing that is put there is stored."""
        return StateMap(self._nodes, root)

    def prove(self) -> None:
        """Refuse what was read so far if any of it is not what the signed head states, and name it."""
        if self._map is None or not self._met:
            return
        self._map.fetch([place_of(key) for key in (*self._met, *self._made)])
        for key, found in self._met.items():
            if self._map.get(place_of(key)) != found:
                raise _forged(key)
        self._met.clear()

    def _meet(self, key: Key, found: bytes | None) -> None:
        """Have something that was read proven; what this transaction put itself is compared at once."""
        if self._map is None:
            return
        kept = self._made if key in self._made else self._met
        if kept.setdefault(key, found) != found:  # type: ignore[arg-type]  # what was made is there
            raise _forged(key)

    def _sealed(self) -> str:
        """The root of the map with all that was put."""
        if self._map is None:
            raise LedgerError("nothing is appended to a record whose head was not proven; nothing was changed.")
        if self._met:
            self.prove()  # which reads the way to what was made too
        else:
            self._map.fetch([place_of(key) for key in self._made])
        for key, leaf in self._made.items():
            self._map.put(place_of(key), leaf)
        self._made.clear()
        return self._map.root()

    def _nodes(self, paths: list[str]) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        for start in range(0, len(paths), MOST):
            some = tuple(paths[start : start + MOST])
            wanted = f"WHERE path IN ({', '.join(['?'] * len(some))})"
            found.update((row.path, row.children) for row in self._all(NODE, wanted, some))
        return found

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        if name not in self._seen:
            row = self._one(BALANCE, name=name)
            if row is None:
                self._meet(("balance", name), None)
                return None
            self._see(name, row)
        return self._seen[name]

    def _see(self, name: str, row: TableRow) -> Balance:
        balance = self._seen[name] = balance_of(row)
        self._meet(("balance", name), hashed(*row))  # all columns as they are there: their order is that of a leaf
        return balance

    def gather(self, names: Sequence[str]) -> None:
        """Read several balances at once, before they are asked for one by one."""
        new = tuple(name for name in names if name not in self._seen)
        if new:
            for row in self._all(BALANCE, f"WHERE name IN ({', '.join(['?'] * len(new))})", new):
                self._see(row.name, row)

    def balances(self) -> list[Balance]:
        """All balances, by name: to be shown. Each is proven, that none is missing is not."""
        found = [self._see(row.name, row) for row in self._all(BALANCE)]
        return sorted(found, key=lambda balance: balance.name)

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name."""
        self._seen[balance.name] = balance
        row = self._moved[balance.name] = balance_row(balance)
        self._made["balance", balance.name] = hashed(*row.values())

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        row = self._one(EDITION, name=dataset.name, edition=dataset.edition)
        found = None if row is None else edition_of(row)
        self._meet(("edition", dataset.name, dataset.edition), None if found is None else edition_leaf(found))
        return found

    def population(self, name: str) -> str | None:
        """The people that a dataset is about, in all its versions."""
        row = next(self._all(EDITION, "WHERE name = ? LIMIT 1", (name,)), None)
        found = None if row is None else edition_of(row)
        self._meet(("about", name), None if found is None else about(found))
        return None if found is None else found.population

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        name, people = edition.dataset.name, edition.population
        if self.population(name) is None:
            self._made["datasets", people] = names_leaf({*self.datasets(people), name}) or b""
            self._made["about", name] = about(edition)
        self._made["edition", name, edition.dataset.edition] = edition_leaf(edition)
        self._put(EDITION, edition_row(edition))

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        if number not in self._charges:
            row = self._one(CHARGE, number=number)
            if row is None:
                self._meet(("charge", number), None)
                return None
            self._charges[number] = self._charge(number, row)
        return self._charges[number]

    def _charge(self, number: int, row: TableRow) -> Charge:
        charge = charge_of(row)
        if self._map is not None:
            self._meet(("charge", number), charge_leaf(charge))
        return charge

    def charges(self) -> Iterator[Charge]:
        """All charges, by number."""
        return (self._charge(row.number, row) for row in self._paged(CHARGE, "number"))

    def known(self, number: int) -> Charge:
        """A charge that must be there."""
        charge = self.charge(number)
        if charge is None:
            raise LedgerError(f"there is no charge {number} in this ledger; nothing was changed.")
        return charge

    def reserved(self, number: int) -> Charge:
        """A charge that must be open, and from after the last recovery."""
        charge = self.known(number)
        if charge.state is not State.RESERVED:
            raise LedgerError(f"charge {number} is settled already ({charge.state.value}); nothing was changed.")
        self.check_certain(charge)
        return charge

    def check_certain(self, charge: Charge) -> None:
        """Refuse to go on with an open charge from before entries were lost: among them may be its start or its answer.

        What it paid for may have been delivered, so it pays for no other draw and is not given back.
        """
        if self.uncertain(charge):
            raise Refused(
                f"entries of this ledger were lost after charge {charge.number}, and nobody knows how far its "
                "stream had gone, or whether it was answered; nothing was read or released, and the charge counts. Ask "
                "anew, under another idempotency key, or open another stream."
            )

    def uncertain(self, charge: Charge) -> bool:
        """Whether entries were lost after a charge that is open."""
        return charge.state is State.RESERVED and self.decision_state().recovered > charge.number

    def charge_named(self, idempotency: str) -> Charge | None:
        """The charge that was made under an idempotency key."""
        row = self._one(CHARGE, idempotency=idempotency)
        self._meet(("key", idempotency), None if row is None else hashed(row.number))
        return None if row is None else self._charge(row.number, row)

    def stale(self, now: str) -> list[Charge]:
        """Open charges whose time is over, oldest first."""
        due = "WHERE state = ? AND expires IS NOT NULL ORDER BY number"
        found = self._all(CHARGE, due, (State.RESERVED.value,))
        charges = [self._charge(row.number, row) for row in found]
        return [one for one in charges if one.expires is not None and one.expires <= now]  # not by a collation

    def unsettled(self) -> list[Charge]:
        """Open charges, oldest first."""
        waiting = self._all(CHARGE, "WHERE state = ? ORDER BY number", (State.RESERVED.value,))
        return [self._charge(row.number, row) for row in waiting]

    def editions(self) -> list[Edition]:
        """All declared versions of datasets: to be shown. Each is proven, that none is missing is not."""
        found = [edition_of(row) for row in self._all(EDITION)]
        for one in found:
            self._meet(("edition", one.dataset.name, one.dataset.edition), edition_leaf(one))
        return found

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        self._put(CHARGE, charge_row(charge))
        self._charges[charge.number] = charge
        self._made["charge", charge.number] = charge_leaf(charge)
        if charge.idempotency is not None:
            self._made["key", charge.idempotency] = hashed(charge.number)

    def answer(self, key: str) -> tuple[int, str] | None:
        """The entry that answers a question, and its digest."""
        row = self._one(ANSWER, question=key)
        self._meet(("answer", key), None if row is None else answer_leaf(row.number, row.digest))
        return None if row is None else (row.number, row.digest)

    def answers(self) -> Iterator[tuple[str, tuple[int, str]]]:
        """The digests of all questions and the entries that answer them, as they are stored."""
        return ((row.question, (row.number, row.digest)) for row in self._paged(ANSWER, "question"))

    def put_answer(self, key: str, number: int, digest: str) -> None:
        """Remember the entry that answers a question, and its digest."""
        self._put(ANSWER, {"question": key, "number": number, "digest": digest})
        self._made["answer", key] = answer_leaf(number, digest)

    def nodes(self) -> Iterator[tuple[str, bytes]]:
        """All nodes of the map, as they are stored."""
        return ((row.path, row.children) for row in self._paged(NODE, "path"))

    def decision_state(self) -> DecisionState:
        """What was decided and declared; the store remembers it until the next decision."""
        if self._decided is None:
            end = self.end()
            found = self._known.get(end.decisions)
            self._decided = self._remembered(end, self.decisions_at(end) if found is None else found)
        return self._decided

    def _remembered(self, end: Totals, decisions: DecisionState) -> DecisionState:
        """Keep a state under the digest of all decisions that it follows from; no other state has that digest."""
        self._known.clear()
        self._known[end.decisions] = decisions
        return decisions

    def put_decision_state(self, decisions: DecisionState) -> None:
        """Keep what was decided and declared, in this transaction: it follows from the record."""
        self._decided = decisions

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        return self._end or self._totals(self._one(HEAD, one=1))

    def _totals(self, row: TableRow) -> Totals | None:
        self._end = None if row is None or row.number == 0 else totals_of(row)
        return self._end

    def end(self) -> Totals:
        """The head of a record that must have one."""
        totals = self.totals()
        if totals is None:
            raise LedgerError("the record of the ledger is empty; nothing was done.")
        return totals

    def put_totals(self, totals: Totals) -> None:
        """Move the head, with the root of all that was put before it."""
        self._end = replace(totals, state=self._sealed())
        self._put(HEAD, totals_row(self._end))

    def put_empty(self) -> None:
        """Make the row of a head that a first entry will move."""
        none = Totals(number=0, digest=START, at="", epsilon=Fraction(0), delta=Fraction(0))
        self._put(HEAD, totals_row(none))

    def row(self, number: int) -> Row | None:
        """A row of the record."""
        found = self._one(RECORD, number=number)
        return None if found is None else row_of(found)

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The rows of the record after a number, in order, in batches."""
        while True:
            self._run(RECORD, f"WHERE number > ? ORDER BY number LIMIT {PAGE}", (after,))
            found = self.cursor.fetchall()
            yield from map(row_of, found)
            if len(found) < PAGE:
                return
            after = row_of(found[-1]).number

    def row_until(self, number: int) -> Row | None:
        """The last row of the record up to a number: that row, unless it was lost."""
        found = next(self._all(RECORD, "WHERE number <= ? ORDER BY number DESC LIMIT 1", (number,)), None)
        return None if found is None else row_of(found)

    def rows_with(self, kind: str, word: str) -> Iterator[Row]:
        """The rows of a kind whose text holds a word of letters and digits, as the database says: to be looked at."""
        return map(row_of, self._all(RECORD, "WHERE kind = ? AND body LIKE ? ORDER BY number", (kind, f"%{word}%")))

    def rows_of(self, kinds: Sequence[str]) -> Iterator[Row]:
        """The rows that are filed as some kinds, in order, as the database says: to be looked at."""
        some = f"WHERE kind IN ({', '.join(['?'] * len(kinds))}) ORDER BY number"
        return map(row_of, self._all(RECORD, some, tuple(kinds)))

    def entry_at(self, number: int, digest: str) -> Entry:
        """An entry by its number and the digest that the state states for it: what is not that entry is refused."""
        row = self.row(number)
        if row is None or row.digest != digest or row.expected != digest:
            raise LedgerError(
                f"entry {number} of the record is not the one that the ledger's state names: it was edited or removed. "
                "Nothing was delivered and nothing was spent. Find the place: sfumato ledger verify"
            )
        return row.entry

    def datasets(self, population: str) -> set[str]:
        """The names of all datasets about some people."""
        found = {row.name for row in self._all(EDITION, "WHERE population = ?", (population,))}
        self._meet(("datasets", population), names_leaf(found))
        return found

    def declared(self, dataset: Dataset) -> int:
        """The entry that declared a version; 0 where there is none."""
        edition = self.edition(dataset)
        return 0 if edition is None else edition.declared

    def append(
        self, entry: Entry, sign: Callable[[Totals], SignedHead], charged: Sequence[Balance] | None = None
    ) -> SignedHead:
        """Write an entry at the end of the record, signed, and what follows from it into the stored state.

        ``charged`` are the balances of a charge, as it was admitted with them.
        """
        totals = self.totals()
        number, previous = (0, START) if totals is None else (totals.number, totals.digest)
        row = Row.after(number, previous, entry)
        if not isinstance(entry, CHARGING) and row.entry != entry:  # charges are checked by who makes them
            raise LedgerError("an entry could not be read as it was written; nothing was changed.")
        apply(self, row, entry, charged)
        if isinstance(entry, GOVERNING) and self._decided is not None:
            self._remembered(self.end(), self._decided)
        signed = sign(self.end())
        self.put_row(row, signed, self.end().frontier)
        return signed

    def put_row(self, row: Row, signed: SignedHead | None, tree: Frontier) -> None:
        """Write a row with the head that it is the end of, and what it completed of the tree that it ends.

        Without a signed head it is written with the one that it has.
        """
        made = {"head": row.head if signed is None else signed.text, "subtrees": tree.subtrees}
        self._put(RECORD, {name: getattr(row, name) for name in columns(RECORD)} | made)

    def replace_state(self, state: MemoryLedgerState) -> None:
        """Throw the stored state away and write this one, which was worked out from the record alone."""
        for table in (BALANCE, EDITION, CHARGE, ANSWER, NODE):
            rows.run(self.cursor, f"DELETE FROM {table.name}")  # noqa: S608 - ours
        self._map = map_of(state)
        for balance in state.kept.values():
            self._put(BALANCE, balance_row(balance))
        for edition in state.editions.values():
            self._put(EDITION, edition_row(edition))
        for charge in state.charges.values():
            self._put(CHARGE, charge_row(charge))
        for key, (number, digest) in state.answers.items():
            self._put(ANSWER, {"question": key, "number": number, "digest": digest})
        if state.head is not None:
            self._put(HEAD, totals_row(state.head))

    def flush(self) -> None:
        """Write what was put; with one statement for all of it, where the store is a server."""
        for row in self._moved.values():
            self._put(BALANCE, row)
        self._moved.clear()
        changed = {} if self._map is None else self._map.changed
        for path, children in changed.items():
            self._put(NODE, {"path": path, "children": children})
        changed.clear()
        waiting = {table: list(some.values()) for table, some in self._put_off.items()}
        self._put_off.clear()
        for start in range(0, max(map(len, waiting.values()), default=0), MOST):
            now = {table: some[start : start + MOST] for table, some in waiting.items() if len(some) > start}
            if not on_sqlite(self.cursor):
                rows.run(self.cursor, stored_together(), (stored(now),))
                continue
            for table, some in now.items():
                words = added(table, len(some)) if table is RECORD else kept(table, len(some))
                rows.run(self.cursor, words, tuple(chain.from_iterable(some)))

    def locked(self) -> None:
        """Take the head from the statement that locked it, where it did."""
        if on_sqlite(self.cursor):
            return
        while self.cursor.nextset():
            pass
        row = self.cursor.fetchone()
        self._totals(None if row is None else named(HEAD)(row))

    def decisions_at(self, end: Totals) -> DecisionState:
        """Work out again what was decided, from the rows whose digests the signed head states, and from no others."""
        decisions, digest = DecisionState(ledger=self._ledger, keys=self._opening), ""
        kinds = [cls.KIND for cls in GOVERNING]
        some = f"WHERE kind IN ({', '.join(['?'] * len(kinds))}) AND number <= ? ORDER BY number"
        found = [row_of(row) for row in self._all(RECORD, some, (*kinds, end.number))] if end.decisions else []
        for row in found:
            digest = decided_on(digest, row)
        if digest != end.decisions or any(row.digest != row.expected for row in found):
            raise LedgerError(
                "the decisions in the database are not those that the signed head states: an entry of the board, of "
                "terms or of windows was edited, removed, added or filed as another kind. Nothing was read and nothing "
                "was spent. Find the place: sfumato ledger verify"
            )
        digest = ""
        signed_from = self._signed_from() if found else 0
        for row in found:
            entry = row.entry
            with _named(row):
                check_entry(decisions.keys, entry, row.number, digest)
            try:
                decisions = replace(decisions, bare=row.number < signed_from).after(row.number, entry)
            except Refused as wrong:
                raise LedgerError(
                    f"entry {row.number} of the record does not follow from those before it, whoever signed its row: "
                    f"{wrong} Nothing was read and nothing was spent. See all of it: sfumato ledger verify"
                ) from None
            digest = decided_on(digest, row)
        return replace(decisions, bare=False)

    def _signed_from(self) -> int:
        """The entry from which on rows are signed, in a ledger whose first rows were not; 0 in any other."""
        first = self.row(1)
        if first is None or first.nonce:
            return 0
        row = next(self._all(RECORD, "WHERE kind = ? ORDER BY number LIMIT 1", (Migrated.KIND,)), None)
        return 0 if row is None else int(row.number)

    def keys(self, opening: KeyRing) -> KeyRing:
        """The key ring as the rows of the database have it: each document is signed by a root, none need be there."""
        claimed = self.end().decisions
        if self._ring is None or self._ring[0] != claimed:
            ring = opening
            for row in self.rows_of([cls.KIND for cls in ROOT_SIGNED]):
                entry = row.entry
                with _named(row):
                    ring = ring.after(row.number, entry) if isinstance(entry, ROOT_SIGNED) else ring
            self._ring = claimed, ring
        return self._ring[1]

    def unsigned(self) -> int | None:
        """The first entry that an administrator must sign and that stands by itself, if there is any.

        Rows are found by what they are filed as: a quick look for whoever opens a ledger, and not the replay of
        verification, which reads every one.
        """
        found = self.rows_of([cls.KIND for cls in ADMINISTRATIVE])
        return next((row.number for row in found if needs_administrator(row.entry)), None)

    def _one(self, table: sa.Table, **keys: object) -> TableRow:
        wanted = "WHERE " + " AND ".join(f"{key} = ?" for key in keys)
        return next(self._all(table, wanted, tuple(keys.values())), None)

    def _all(self, table: sa.Table, some: str = "", values: tuple[object, ...] = ()) -> Iterator[TableRow]:
        self._run(table, some, values)
        return map(named(table), self.cursor.fetchall())

    def _run(self, table: sa.Table, some: str, values: tuple[object, ...]) -> None:
        if self._put_off or self._moved:
            self.flush()
        rows.run(self.cursor, chosen(table, some), values)

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
        key, values = picked(table)
        self._put_off.setdefault(table, {})[key(row)] = values(row)


@contextmanager
def _named(row: Row) -> Iterator[None]:
    """Say which entry of the record nobody who might had signed."""
    try:
        yield
    except SfumatoError as wrong:
        raise LedgerError(
            f"entry {row.number} of the record was not signed by whom it needs: {wrong} Nothing was read and nothing "
            "was spent. Look at all of it: sfumato ledger verify"
        ) from None


def _forged(key: Key) -> LedgerError:
    return LedgerError(
        f"{said(key)} in the database is not what the signed head of the record states: somebody wrote to the database "
        "past the ledger. Nothing was read and nothing was spent. Find the place: sfumato ledger verify"
    )
