"""An anchor in a second database: one row for each ledger, which only moves forward."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import LedgerError, SfumatoError
from sfumato.governance import rows
from sfumato.governance.anchor import Anchor, FileAnchor, SignedHead, foreign, forked
from sfumato.governance.rows import Cursor
from sfumato.governance.store import Store

__all__ = ["DatabaseAnchor", "anchor_at"]

TABLE = "sfumato_anchor"
ROW = "ledger"
"""The name of the row where the address gives none."""
_MADE = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (name TEXT PRIMARY KEY, ledger TEXT NOT NULL, number BIGINT NOT NULL, "
    "digest TEXT NOT NULL, head TEXT NOT NULL, witnessed TEXT)"
)


def anchor_at(place: str | Path) -> Anchor:
    """The anchor that a text names: an address is a row of a database, anything else is a file.

    >>> anchor_at("/mnt/apart/ledger.anchor").name
    '/mnt/apart/ledger.anchor'
    >>> anchor_at("sqlite:////mnt/apart/anchors.db#oncology").name
    '/mnt/apart/anchors.db#oncology'
    """
    return DatabaseAnchor(str(place)) if "://" in str(place) else FileAnchor(place)


class DatabaseAnchor:
    """One row of a table in SQLite or PostgreSQL, by the name behind the ``#`` of the address.

    Guarantee: that of :class:`~sfumato.governance.anchor.Anchor`; a head is compared and put in one transaction, under
    the lock of its row, and the statement itself does not move it back. Assumes: the database is another one than the
    ledger's, on another machine or disk and in no backup with it, and waits for its disk when it commits.
    """

    def __init__(self, address: str) -> None:
        url, mark, row = address.rpartition("#")
        named = bool(mark) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", row) is not None
        self.row = row if named else ROW
        self.store = Store(url if named else address)
        self._there = False

    @property
    def name(self) -> str:
        """The address, without a password, and the row."""
        return f"{self.store.name}#{self.row}"

    def create(self, head: SignedHead) -> None:
        """Insert the row, which must not exist yet; the table is made where there is none."""
        with self._transaction(writes=True) as cursor:
            rows.run(cursor, _MADE)
            if self._read(cursor) is not None:
                raise LedgerError(f"the anchor {self.name} exists already and was not overwritten. Name another row.")
            said = head.head
            rows.run(
                cursor,
                f"INSERT INTO {TABLE} (name, ledger, number, digest, head) VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - ours
                (self.row, said.ledger, said.number, said.digest, head.text),
            )
        self._there = True

    def last(self) -> SignedHead | None:
        """The head that was anchored last; None where there is no row."""
        text = self._text()
        return None if text is None else self._head(text)

    def readable(self) -> SignedHead | None:
        """The same; None also where the row holds none that can be read. A database that is down is an error."""
        text = self._text()
        try:
            return None if text is None else self._head(text)
        except LedgerError:
            return None

    def set_aside(self) -> None:
        """Give the row another name."""
        if self._text() is None:
            return
        other = f"{self.row}.unreadable-{secrets.token_hex(4)}"
        with self._transaction(writes=True) as cursor:
            rows.run(cursor, f"UPDATE {TABLE} SET name = ? WHERE name = ?", (other, self.row))  # noqa: S608 - ours

    def advance(self, head: SignedHead, *, durable: bool) -> SignedHead:
        """Move forward to a head; nothing where a later one is anchored. The newest one that is anchored then."""
        said = head.head
        with self._transaction(writes=True, durable=durable) as cursor:
            text = self._read(cursor, locked=True)
            if text is None:
                raise self._failed("its row is gone")
            newest = self._head(text)
            if newest.head.ledger != said.ledger:
                raise foreign(self.name, newest.head.ledger)
            if newest.head.number == said.number and newest.head.digest != said.digest:
                raise forked(self.name, said.number)
            later = max(newest, head, key=lambda one: one.head.number)
            if later is head or durable:  # a write that waits also makes those durable that did not
                rows.run(
                    cursor,
                    f"UPDATE {TABLE} SET number = ?, digest = ?, head = ? "  # noqa: S608 - ours
                    "WHERE name = ? AND ledger = ? AND number <= ?",
                    (later.head.number, later.head.digest, later.text, self.row, said.ledger, later.head.number),
                )
        return later

    def witnessed(self) -> str | None:
        """The text of the last witnessed head, from the same row."""
        return self._text("witnessed")

    def keep_witnessed(self, text: str) -> None:
        """Put a witnessed head in place of the one before."""
        with self._transaction(writes=True, durable=False) as cursor:
            rows.run(cursor, f"UPDATE {TABLE} SET witnessed = ? WHERE name = ?", (text, self.row))  # noqa: S608 - ours

    def close(self) -> None:
        """Give the connections back."""
        self.store.close()

    def _head(self, text: str) -> SignedHead:
        try:
            return SignedHead.read(text)
        except SfumatoError:
            raise LedgerError(
                f"the anchor {self.name} holds no head that can be read. Nothing was read and nothing was spent. "
                "Restore the anchor, or have the board recover the ledger: sfumato ledger recover"
            ) from None

    def _text(self, column: str = "head") -> str | None:
        if self.store.lite and not Path(str(self.store.url.database)).exists():
            return None  # to look would make the file
        with self._transaction(writes=False) as cursor:
            return self._read(cursor, column) if self._exists(cursor) else None

    def _exists(self, cursor: Cursor) -> bool:
        """Whether the table is there; looked up until it is."""
        if not self._there:
            asked = "SELECT name FROM sqlite_master WHERE name = ?" if self.store.lite else "SELECT to_regclass(?)"
            rows.run(cursor, asked, (TABLE,))
            found = cursor.fetchone()
            self._there = found is not None and found[0] is not None
        return self._there

    def _read(self, cursor: Cursor, column: str = "head", *, locked: bool = False) -> str | None:
        lock = " FOR UPDATE" if locked and not self.store.lite else ""
        rows.run(cursor, f"SELECT {column} FROM {TABLE} WHERE name = ?{lock}", (self.row,))  # noqa: S608 - ours
        found = cursor.fetchone()
        return None if found is None or found[0] is None else str(found[0])

    @contextmanager
    def _transaction(self, *, writes: bool, durable: bool = True) -> Iterator[Cursor]:
        try:
            with self.store.plain(
                writes=writes, also="" if durable else "; SET LOCAL synchronous_commit TO off"
            ) as one:
                yield one
        except self.store.errors as wrong:
            raise self._failed((str(wrong).strip() or type(wrong).__name__).splitlines()[0]) from None

    def _failed(self, why: str) -> LedgerError:
        return LedgerError(
            f"the anchor {self.name} cannot be used: {why}. Nothing was read and nothing was delivered; what the "
            "record holds counts. Repair the anchor's database and try again."
        )
