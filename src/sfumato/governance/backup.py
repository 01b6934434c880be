"""Backups of a ledger, and the way back that cannot refill a budget.

A backup is the record: a copy of an SQLite database, or the rows as lines of JSON. To restore is to write the record
into an empty database and to work the stored state out again from it, so that nothing but signed rows is believed.
Where the anchor is newer than the backup, charges are lost; the ledger then opens for nobody until a recovery has
charged them.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance.anchor import Anchor, Head, SignedHead
from sfumato.governance.anchor_database import anchor_at
from sfumato.governance.entries import LedgerOpened, Row
from sfumato.governance.entry_tree import Frontier, entered
from sfumato.governance.exported import line_of, rows_of
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import MemoryLedgerState, end_of
from sfumato.governance.store import Store
from sfumato.governance.verify import checked_state

__all__ = ["Restored", "backup", "restore"]

LINES = ".jsonl"


def backup(ledger: Ledger, file: str | Path) -> Head:
    """Write a backup to a new file, readable by its owner alone; the head that it ends with.

    A file that ends with ``.jsonl``, and every backup of PostgreSQL, holds lines of JSON; any other is a copy of the
    SQLite database, made while others go on charging. Neither holds the key or the anchor, and both belong elsewhere:
    an anchor that is restored together with its database detects nothing.
    """
    place, store = Path(file), ledger.record.store
    if place.exists() or place.is_symlink():
        raise InvalidInput(f"{place} already exists and was not overwritten. Name another file.")
    ledger.head()  # a ledger that is refused is not backed up as if all were well
    lines = place.suffix == LINES
    if not lines and not store.lite:
        raise InvalidInput(f"a backup of PostgreSQL is written as lines: name it {place}{LINES}. Nothing was written.")
    part = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        end = _write_lines(ledger, part) if lines else _copy(str(store.url.database), part)
        os.link(part, place)  # never over another file
    finally:
        part.unlink()
    return end


def _write_lines(ledger: Ledger, part: Path) -> Head:
    last = ""
    with part.open("w", encoding="utf-8") as file:
        for row in ledger.rows():
            file.write(line_of(row) + "\n")
            last = row.head
        file.flush()
        os.fsync(file.fileno())
    return SignedHead.read(last).head


def _copy(database: str, part: Path) -> Head:
    try:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without others beside it
    except sqlite3.Error as wrong:
        raise LedgerError(f"the database could not be copied: {wrong}. No backup was made.") from None
    with part.open("rb") as file:
        os.fsync(file.fileno())
    with closing(Store(part)) as store, store.reading() as transaction:
        row = transaction.row(transaction.end().number)
        if row is None:
            raise LedgerError("the copy of the database has no end. No backup was made; see sfumato ledger verify")
        return SignedHead.read(row.head).head


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A record that was written back: its last entry, that of the anchor, and whether entries are lost."""

    entries: int
    anchored: int | None
    lost: bool


def restore(
    url: str | Path,
    *,
    key: SigningKey | str | Path,
    anchor: str | Path,
    file: str | Path,
    root: str | Path | None = None,
    older: bool = False,
) -> Restored:
    """Write a backup into an empty database, after checking every row of it; nothing else of it is believed.

    Guarantee: the ledger never has more left than its anchor allows. A backup that is older than the anchor is refused;
    with ``older`` it is written, and still nobody can open it before :meth:`Ledger.recover` charged what is lost.
    ``root`` is the public key of the root, where the ledger has one.
    """
    own = key if isinstance(key, SigningKey) else SigningKey.load(key)
    trusted = own.public_text if root is None else read_public_key(root)
    place, backed_up = anchor_at(anchor), Path(file)
    if not backed_up.is_file():
        raise InvalidInput(f"there is no backup {backed_up}; nothing was restored.")
    rows = _rows(backed_up)
    with closing(Store(url)) as store:
        if store.exists():
            raise Refused(f"{store.name} holds a ledger already; nothing was restored. Move it aside, and keep it.")
        state = checked_state(rows(), heads=(), key=trusted)
        state.head = replace(end_of(state), state=map_of(state).root())
        if SignedHead.read(_last(rows()).head).head.state != state.head.state:
            raise LedgerError("the backup leads to another state than its last signed head states; not restored.")
        lost = _lost(rows, state, place, trusted)
        if lost is not None and not older:
            raise Refused(
                f"{lost} Budgets would be refilled. Nothing was restored. Is there a newer backup? If not, restore "
                "this one with --older, and have what was lost charged: sfumato ledger recover --reason …"
            )
        _rebuild(store, rows(), state)
    last = place.readable()
    return Restored(
        entries=end_of(state).number, anchored=None if last is None else last.head.number, lost=lost is not None
    )


def _rows(file: Path) -> Callable[[], Iterator[Row]]:
    """The rows of a backup, as often as they are asked for."""
    with file.open("rb") as start:
        lite = start.read(16) == b"SQLite format 3\x00"
    if not lite:
        return lambda: rows_of(file)

    def copied() -> Iterator[Row]:
        with closing(Store(file)) as store:
            if not store.exists() or not store.current():
                raise InvalidInput(
                    f"{file} is not a backup of a ledger of this sfumato; nothing was restored. Open it once with the "
                    "sfumato that you have, beside its anchor, or restore it with the one that wrote it."
                )
            with store.reading() as transaction:
                yield from transaction.rows()

    return copied


def _last(rows: Iterator[Row]) -> Row:
    for row in rows:
        last = row
    return last  # a record that was checked has a row


def _lost(rows: Callable[[], Iterator[Row]], state: MemoryLedgerState, place: Anchor, trusted: str) -> str | None:
    """Why a backup is not all that was anchored; None where it is."""
    end, last = end_of(state), place.readable()
    if last is None:
        return f"the anchor {place.name} is missing or cannot be read, so that nobody knows how old the backup is."
    first = next(iter(rows())).entry
    named = first.identifier if isinstance(first, LedgerOpened) else ""
    keys = state.decided.keys
    holds = last.holds(trusted) if keys is None else keys.signed(last)
    if keys is not None and not holds and last.head.ledger == named and last.head.number > end.number:
        # Certified after the backup, perhaps; it is not believed here, and a recovery asks for the root's document.
        return f"the backup ends at entry {end.number}, and its anchor is signed by a key that it does not know."
    if last.head.ledger != named or not holds:
        raise Refused(f"the anchor {place.name} belongs to another ledger than the backup; nothing was restored.")
    if last.head.number > end.number:
        return f"the backup ends at entry {end.number} and its anchor is at entry {last.head.number}."
    if not any(row.number == last.head.number and row.digest == last.head.digest for row in rows()):
        return f"entry {last.head.number} of the backup is not the one that was anchored: the record was rewritten."
    return None


def _rebuild(store: Store, rows: Iterator[Row], state: MemoryLedgerState) -> None:
    store.create()
    with store.rewriting() as (transaction, _):
        tree = Frontier()
        for number, row in enumerate(rows, start=1):
            tree = entered(tree, row.number, row.digest)
            transaction.put_row(row, None, tree)
            if number % 1000 == 0:
                transaction.flush()
        transaction.replace_state(state)
