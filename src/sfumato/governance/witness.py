"""The witness: it remembers the last head of each ledger that it was told of, and countersigns what goes on from it.

It runs on another host than the ledger, with a key and a memory of its own, and reads no data. Two copies of a ledger
cannot both go on: at one number it has countersigned one record, and it never goes back.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, Refused, SfumatoError
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.entries import Recovered, Row
from sfumato.governance.entry_tree import Frontier
from sfumato.governance.signed_record import system_clock
from sfumato.governance.terms import written
from sfumato.governance.witnessed import Extension, LastSeen, SignedExtension, WitnessedHead, grown

__all__ = ["Conflict", "Witness"]

PATIENCE = 10
"""Seconds to wait for others who write to the memory."""
_TABLES = """
CREATE TABLE enrolled (ledger TEXT PRIMARY KEY, key TEXT NOT NULL, number INTEGER NOT NULL, ended INTEGER NOT NULL);
CREATE TABLE seen (ledger TEXT NOT NULL, number INTEGER NOT NULL, frontier TEXT NOT NULL, witnessed TEXT NOT NULL,
                   PRIMARY KEY (ledger, number));
CREATE TRIGGER seen_no_update BEFORE UPDATE ON seen BEGIN SELECT RAISE(ABORT, 'what was seen stays'); END;
CREATE TRIGGER seen_no_delete BEFORE DELETE ON seen BEGIN SELECT RAISE(ABORT, 'what was seen stays'); END;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """An extension that does not go on from what the witness saw last: ``last`` is that, None where it saw nothing."""

    last: WitnessedHead | None


@dataclass(frozen=True, slots=True)
class _Seen:
    frontier: Frontier
    witnessed: WitnessedHead | None

    @property
    def head(self) -> Head | None:
        return None if self.witnessed is None else self.witnessed.signed.head


class Witness:
    """A witness in a folder: ``witness.key`` and ``witness.db``.

    Guarantee: of each ledger it countersigns one record only: numbers grow, at one number there is one digest, the
    tree of each head goes on from that of the one before, and sums of charges never fall; except by a recovery that
    names the head it gives up and charges its lease. What it answers is on its disk first. Safe for threads and
    processes. Assumes: its memory is never set back. Public / sensitive: it sees heads and digests, and no entry but
    recoveries.
    """

    def __init__(self, folder: str | Path, *, clock: Callable[[], datetime] = system_clock) -> None:
        self.folder = Path(folder)
        self.clock = clock
        if not self._memory.is_file():
            raise LedgerError(f"there is no witness in {folder}; nothing was done. Make one: sfumato witness init")
        self.key = SigningKey.load(self.folder / "witness.key")

    @classmethod
    def create(cls, folder: str | Path, *, clock: Callable[[], datetime] = system_clock) -> "Witness":
        """Make a key and an empty memory in a folder that has neither; its owner alone can read them."""
        place = Path(folder)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        memory = place / "witness.db"
        if memory.exists():
            raise LedgerError(f"{memory} exists already; nothing was changed. A witness that forgets is none.")
        SigningKey.new().save(place / "witness.key")
        os.close(os.open(memory, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(memory)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(_TABLES)
        return cls(place, clock=clock)

    def enrol(self, head: SignedHead, key: str) -> None:
        """Witness a ledger from now on: its name is that of a head which the owner of a public key has signed."""
        if not head.holds(key):
            raise Refused("the head is not signed with this key; nothing was enrolled. Compare the key by telephone.")
        with self._writing() as memory:
            found = memory.execute("SELECT key FROM enrolled WHERE ledger = ?", (head.head.ledger,)).fetchone()
            if found is not None:
                raise Refused(f"the ledger {head.head.ledger} is enrolled already; nothing was changed.")
            enrolled = (head.head.ledger, key, head.head.number)
            memory.execute("INSERT INTO enrolled (ledger, key, number, ended) VALUES (?, ?, ?, 0)", enrolled)

    def follow(self, head: SignedHead, key: str, *, also: bool) -> None:
        """Take another key for a ledger that is enrolled: one that charges ``also``, or else in place of all before.

        Where keys have roles, several charge, and one that was revoked must be listened to no more. Assumes: whoever
        keeps the witness asked those who decide about the ledger, as when it was enrolled. What was seen stays.
        """
        with self._writing() as memory:
            keys, _ = self._enrolled(memory, head.head.ledger)
            last = _last(memory, head.head.ledger).head
            if not head.holds(key) or (last is not None and head.head.number < last.number):
                raise Refused(
                    "the head is not signed with this key, or is older than what was seen; nothing was changed. Ask "
                    "for a new head, and compare the key by telephone."
                )
            taken = " ".join(dict.fromkeys((*keys, key))) if also else key
            memory.execute("UPDATE enrolled SET key = ? WHERE ledger = ?", (taken, head.head.ledger))

    def end(self, ledger: str) -> None:
        """Witness a ledger no more: it has named another witness. What was seen stays, and is not vouched for."""
        with self._writing() as memory:
            self._enrolled(memory, ledger)
            memory.execute("UPDATE enrolled SET ended = 1 WHERE ledger = ?", (ledger,))

    def ledgers(self) -> list[tuple[str, int, bool]]:
        """The ledgers that are enrolled, the last entry that was seen of each, and whether it was ended."""
        with self._writing() as memory:
            asked = (
                "SELECT ledger, coalesce((SELECT max(number) FROM seen WHERE seen.ledger = enrolled.ledger), 0), ended "
                "FROM enrolled ORDER BY ledger"
            )
            return [(ledger, number, bool(ended)) for ledger, number, ended in memory.execute(asked)]

    def extend(self, request: SignedExtension) -> WitnessedHead | Conflict:
        """Countersign a head that goes on from the last one, or say what was seen last; a forgery is refused."""
        said = request.extension
        head = SignedHead.read(said.head)
        with self._writing() as memory:
            keys, first = self._enrolled(memory, head.head.ledger)
            if not any(head.holds(key) for key in keys) or not any(request.holds(key) for key in keys):
                raise Refused(
                    "this is not signed with the key, or a key, that the ledger was enrolled with; nothing was seen. "
                    "Where another key charges now, tell the witness: sfumato witness enrol --instead, or --also."
                )
            last = _last(memory, head.head.ledger)
            if last.head is not None and (last.head.number, last.head.digest) == (head.head.number, head.head.digest):
                return last.witnessed or Conflict(last=None)  # asked again: an answer was lost on its way
            base = last
            if said.recovery is not None and _gives_up(said, head.head, last):
                base = _last(memory, head.head.ledger, upto=said.since)
            elif not _goes_on(said, head.head, last):
                return Conflict(last=last.witnessed)
            if said.since != base.frontier.size:
                return Conflict(last=last.witnessed)
            frontier = grown(base.frontier, said.rows)
            if not said.rows or said.rows[-1] != (head.head.number, head.head.digest) or head.head.number < first:
                raise InvalidInput("the rows of the extension do not end with its head; nothing was witnessed.")
            root = frontier.root().hex()
            if head.head.tree not in ("", root):
                raise InvalidInput("the head states another tree of entries than its rows make; nothing was witnessed.")
            made = WitnessedHead.sign(said.head, root, said.lease, written(self.clock()), self.key)
            seen = (head.head.ledger, head.head.number, frontier.text, made.text)
            memory.execute("INSERT INTO seen (ledger, number, frontier, witnessed) VALUES (?, ?, ?, ?)", seen)
        return made  # the block has waited for the disk

    def last(self, ledger: str, nonce: str, upto: int | None = None) -> LastSeen:
        """What was seen last of a ledger, up to an entry if one is given, signed with the nonce of who asks."""
        most = 0 if upto is None else upto
        with self._writing() as memory:
            self._enrolled(memory, ledger)
            found = _last(memory, ledger, upto=upto).witnessed
        return LastSeen.sign(ledger, nonce, most, "" if found is None else found.text, self.key)

    @property
    def _memory(self) -> Path:
        return self.folder / "witness.db"

    def _enrolled(self, memory: sqlite3.Connection, ledger: str) -> tuple[list[str], int]:
        found = memory.execute("SELECT key, number, ended FROM enrolled WHERE ledger = ?", (ledger,)).fetchone()
        if found is None or found[2]:
            raise Refused("this witness does not know the ledger, or was told to witness it no more; nothing was done.")
        return str(found[0]).split(), int(found[1])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The one who writes; when the block ends, all is on the disk."""
        try:
            with closing(sqlite3.connect(self._memory, timeout=PATIENCE, isolation_level=None)) as memory:
                memory.execute("PRAGMA synchronous=FULL")
                memory.execute("BEGIN IMMEDIATE")
                try:
                    yield memory
                except BaseException:
                    memory.execute("ROLLBACK")
                    raise
                memory.execute("COMMIT")
        except sqlite3.Error as wrong:
            raise LedgerError(f"the memory of the witness cannot be used: {wrong}. Nothing was witnessed.") from None


def _last(memory: sqlite3.Connection, ledger: str, *, upto: int | None = None) -> _Seen:
    asked = "SELECT frontier, witnessed FROM seen WHERE ledger = ? AND number <= ? ORDER BY number DESC LIMIT 1"
    found = memory.execute(asked, (ledger, 2**62 if upto is None else upto)).fetchone()
    if found is None:
        return _Seen(Frontier(), None)
    return _Seen(Frontier.read(found[0]), WitnessedHead.read(found[1]))


def _goes_on(said: Extension, head: Head, last: _Seen) -> bool:
    if last.head is None:
        return said.since == 0
    later = head.number > last.head.number and said.since == last.head.number
    return later and head.epsilon >= last.head.epsilon and head.delta >= last.head.delta


def _gives_up(said: Extension, head: Head, last: _Seen) -> bool:
    """Whether an extension holds a recovery that names the last head, and charges what may have come after it."""
    if said.recovery is None or last.witnessed is None or last.head is None or head.number <= last.head.number:
        return False
    number, previous, body, nonce = said.recovery
    row = Row(number, Recovered.KIND, body, previous, "", nonce)
    try:
        entry = row.entry
    except SfumatoError:
        return False
    if (number, row.expected) not in said.rows or not isinstance(entry, Recovered):
        return False
    lease = last.witnessed.lease
    covered = entry.gap.epsilon >= lease.epsilon and entry.gap.delta >= lease.delta
    more = head.epsilon >= last.head.epsilon + lease.epsilon and head.delta >= last.head.delta + lease.delta
    return entry.witnessed == last.witnessed.text and number > last.head.number and (entry.whole or (covered and more))
