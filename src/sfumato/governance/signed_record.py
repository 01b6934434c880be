"""The record of a ledger: its database, its anchor, its key and its clock, and the one way to write to it.

Order of a write: prove the head by the anchor, prove what was read by the head, append in one transaction, then anchor
the new head. The database is not trusted at any moment: whoever can write to it can stop the ledger, not fool it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance import log
from sfumato.governance.anchor import Anchor, Head, SignedHead
from sfumato.governance.balances import Balance
from sfumato.governance.decision_state import GOVERNING
from sfumato.governance.entries import ADMINISTRATIVE, Entry, Row
from sfumato.governance.key_documents import Role
from sfumato.governance.keyring import KeyRing, administered, needs_administrator
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger_state import MemoryLedgerState, Totals, account_line, apply, decided_on, end_of
from sfumato.governance.lineage import Lineage, follows
from sfumato.governance.seen_head import SeenHead
from sfumato.governance.store import Store
from sfumato.governance.terms import levels_of, written
from sfumato.governance.transaction import Transaction

__all__ = ["SignedRecord", "Writing", "account_in", "system_clock"]

SKEW = timedelta(minutes=5)
"""How far clocks of one institution may differ; a clock that is further back was set back."""
VERIFY = "Nothing was read and nothing was spent. Find the place: sfumato ledger verify"


def system_clock() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Writing:
    """One transaction of a record, and the head that is anchored when it ends."""

    record: "SignedRecord"
    transaction: Transaction
    head: SignedHead | None = field(default=None, init=False)
    made: list[tuple[Entry, int]] = field(default_factory=list, init=False)

    def time(self, *, confirmed: bool = False) -> str:
        """The time of the next entry."""
        return self.record.time(self.transaction, confirmed=confirmed)

    def append(self, entry: Entry, charged: Sequence[Balance] | None = None) -> SignedHead:
        """Append an entry; one that an administrator signs, with that signature where the ledger has a root.

        ``charged`` are the balances of a charge, as it was admitted with them in this transaction.
        """
        self.head = self.transaction.append(self.record.authorised(entry, self.transaction), self._signed, charged)
        self.made.append((entry, self.head.head.number))
        return self.head

    def _signed(self, totals: Totals) -> SignedHead:
        """A head, signed by a key that may sign it where it stands."""
        if self.record.opening is not None:
            keys = self.transaction.decision_state().keys or self.record.opening
            keys.check(Role.CHARGE, self.record.signing.public_text, totals.number, totals.at)
        return self.record.signed(totals)

    def confirm(self) -> SignedHead:
        """Have the head of the record anchored when the transaction ends, also where nothing was appended."""
        self.head = self.record.head(self.transaction)
        return self.head


_UNKNOWN_KEY = (
    " Perhaps the key that signed it was certified in the entries that were lost: give the documents of the root that "
    "certify it, and those that revoke it if there are any (--certified FILE, documents=…), or bring a newer backup "
    "back. If there is neither, move the anchor aside: nobody knows then what was charged, and everything left is."
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SignedRecord:
    """Entries in a database, each bound to those before it and signed, with the last signed head in an anchor.

    Guarantee: what is read in :meth:`reading` and :meth:`writing` is what the record says, or it is refused before
    anything is appended or handed out; also where somebody can write to the database. A database that is older than its
    anchor, or was rewritten, is refused. Assumes: the anchor is kept apart from the database, and whoever can write to
    both, or holds the key, is trusted.
    """

    store: Store
    anchor: Anchor | SeenHead
    key: SigningKey | None
    identifier: str
    clock: Callable[[], datetime] = system_clock
    trusted: str = ""
    """The public key by which heads are believed; that of ``key`` where nothing else is said. In a ledger with a root
    it is that of a root, and heads are believed by the keys that roots certified."""
    opening: KeyRing | None = None
    """The keys that a ledger with a root was opened with; None where one key does everything."""
    administrator: Callable[[], SigningKey] | None = None
    """Brings the key that signs administrative entries, where a ledger has a root."""
    rings: dict[str, KeyRing] = field(default_factory=dict)
    """The key ring that was proven last, by the digest of the decisions that it follows from."""

    @property
    def public_key(self) -> str:
        """The public key by which heads are believed."""
        return self.trusted or self.signing.public_text

    def authorised(self, entry: Entry, transaction: Transaction) -> Entry:
        """An entry as it is appended: with the signature of an administrator where one is needed."""
        if self.opening is None or not (isinstance(entry, ADMINISTRATIVE) and needs_administrator(entry)):
            return entry
        if self.administrator is None:
            raise Refused(
                f"an entry {entry.KIND!r} needs the signature of an administrator in this ledger, and no such key was "
                "given. Nothing was changed. Give one: Ledger.open(…, administer=…), or administer = … in the settings."
            )
        return administered(self.opening, entry, transaction.end().decisions, self.administrator())

    @property
    def signing(self) -> SigningKey:
        """The key that signs heads; a record that was opened for reading has none, and is not written to."""
        if self.key is None:
            raise Refused(
                "this ledger was opened for reading, with a public key alone: nothing can be charged, declared or "
                "decided like this. Nothing was changed. Open it with its private key: Ledger.open(…, key=…, anchor=…)"
            )
        return self.key

    lineage: Lineage = field(default_factory=Lineage)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that reads; what it read is proven when it ends."""
        last = self.anchored()  # before the database: the anchor must never be ahead of what is seen there
        with self.store.reading() as transaction, self._proving(transaction, last):
            yield transaction

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Writing]:
        """A transaction that appends; its head is anchored after it, and with ``durable`` waited for."""
        _ = self.signing
        start = time.monotonic()
        try:
            with self.store.writing() as transaction, self._proving(transaction, self.anchored()):
                writing, before = Writing(self, transaction), transaction.end().digest
                yield writing
            if writing.head is not None:
                self.lineage.grew(before, writing.head.head)
                self.advance(writing.head, durable=durable)
        except Exception as wrong:
            log.refused(wrong, time.monotonic() - start)
            raise
        for entry, number in writing.made:
            log.entered(entry, number, time.monotonic() - start)

    @contextmanager
    def _proving(self, transaction: Transaction, last: SignedHead | None) -> Iterator[None]:
        head = self.proven(transaction, last)
        transaction.believe(head.ledger, head.state, self.opening)
        if self.opening is not None and head.decisions not in self.rings:
            self._believe_keys(transaction, head)
        try:
            yield
        except self.store.errors:
            raise  # the database answers no more
        except Exception:
            transaction.prove()  # a refusal may come from what somebody wrote to the database: then say that
            raise
        transaction.prove()

    def _believe_keys(self, transaction: Transaction, head: Head) -> None:
        """Hold the key ring that a head was believed by to the decisions that the head itself states."""
        used, proven = self._ring(transaction), transaction.decision_state().keys
        if used != proven:
            raise LedgerError(f"the keys in the database are not those that the signed head states. {VERIFY}")
        self.rings.clear()
        self.rings[head.decisions] = used

    def _ring(self, transaction: Transaction) -> KeyRing:
        """The key ring of a ledger with a root; every key in it was certified by a root of its chain."""
        if self.opening is None:
            raise LedgerError("this ledger has no root; nothing was done.")
        known = self.rings.get(transaction.end().decisions)
        ring = transaction.keys(self.opening) if known is None else known
        if self.trusted not in ring.roots:
            raise LedgerError(
                f"the root {self.trusted[:16]}… that you trust is not a root of this ledger; nothing was read and "
                "nothing was spent. Ask the institution for the public key of its root."
            )
        return ring

    @property
    def own_key(self) -> str | None:
        """The one key that signs all heads; None where keys have roles, and several may."""
        return self.public_key if self.opening is None else None

    def holds(self, head: SignedHead, transaction: Transaction) -> bool:
        """Whether a head was signed for this ledger by a key that might sign it where it stands."""
        if head.head.ledger != self.identifier:
            return False
        return head.holds(self.public_key) if self.opening is None else self._ring(transaction).signed(head)

    def signed(self, totals: Totals) -> SignedHead:
        """A head, signed."""
        return SignedHead.sign(self._head(totals), self.signing)

    def head(self, transaction: Transaction) -> SignedHead:
        """The signed head of the record as it is now."""
        if self.key is None or self.opening is not None:  # another key may have signed it, and this one perhaps may not
            return self._signed_end(transaction)
        return self.signed(transaction.end())

    def _head(self, totals: Totals) -> Head:
        return Head(
            ledger=self.identifier,
            number=totals.number,
            digest=totals.digest,
            at=totals.at,
            epsilon=totals.epsilon,
            delta=totals.delta,
            decisions=totals.decisions,
            state=totals.state,
            tree=totals.tree,
        )

    def time(self, transaction: Transaction, *, confirmed: bool = False) -> str:
        """The time of an entry, never before that of the one before; a clock that was set back is refused.

        So is one that is far ahead of the record, unless it is ``confirmed`` that nobody used the ledger for so long.
        """
        now, totals = self.clock(), transaction.totals()
        if totals is None:
            return written(now)
        last = datetime.fromisoformat(totals.at)
        if now < last - SKEW:
            raise LedgerError(
                f"the clock says {written(now)} and the record is at {totals.at}: the clock was set back, or the "
                "record was written by one that ran ahead. Nothing was read and nothing was spent. Set the clock; if "
                "it is right, decide to go on: sfumato ledger recover"
            )
        silence = transaction.decision_state().silence
        if now - last > silence and not confirmed:
            raise LedgerError(
                f"the clock says {written(now)} and the last entry of the record is of {totals.at}, more than "
                f"{silence.days} days before: nobody used the ledger, or the clock runs ahead, and an entry from the "
                "future would shut the ledger. Nothing was read and nothing was spent. If the clock is right, say so: "
                "sfumato ledger clock --reason …"
            )
        return written(max(now, last))

    def anchored(self) -> SignedHead | None:
        """The head that was anchored last, signed for this ledger; None for a reader who knows of none."""
        last = self.anchor.last()
        if last is None and isinstance(self.anchor, SeenHead):
            return None
        if last is None:
            raise LedgerError(
                f"the anchor {self.anchor.name} is missing, and without it an old backup could pass for the ledger. "
                "Nothing was read and nothing was spent. Bring the anchor back, or have the board recover the ledger."
            )
        # Which keys may sign, where there is a root, stands in the database: then this is asked there.
        if last.head.ledger != self.identifier or (self.opening is None and not last.holds(self.public_key)):
            raise self._foreign()
        return last

    def _foreign(self) -> LedgerError:
        return LedgerError(
            f"the anchor {self.anchor.name} is not signed for this ledger; nothing was read and nothing was "
            "spent. Open the ledger with its own anchor."
        )

    def advance(self, head: SignedHead, *, durable: bool) -> None:
        """Anchor a head of one's own; where a later one is anchored already, that one must have come after it here."""
        if isinstance(self.anchor, SeenHead):
            self.anchor.saw(head)
            return
        newest = self.anchor.advance(head, durable=durable)
        if newest.head.number == head.head.number:
            return
        with self.store.reading() as transaction:
            digest = head.head.digest
            for row in transaction.rows(head.head.number):
                if row.number > newest.head.number or not follows(row, digest):
                    break
                digest = row.digest
        if digest != newest.head.digest:
            raise LedgerError(
                f"the anchor {self.anchor.name} is at entry {newest.head.number}, which does not follow entry "
                f"{head.head.number} here: two copies of this ledger are in use. Nothing was delivered. Stop both and "
                "compare them: sfumato ledger verify"
            )

    def proven(self, transaction: Transaction, last: SignedHead | None) -> Head:
        """The head of the database: the one that was anchored, or a later one by signed rows that lead to it.

        A record that does not hold what was anchored is refused, and so is a head that nobody signed. A reader who
        knows of no head is shown what the head in the last row signs.
        """
        totals = transaction.end()
        head = self._head(totals)
        if last is None:
            self.advance(self._signed_end(transaction), durable=False)
            return head
        if self.opening is not None and not self.holds(last, transaction):
            raise self._foreign()
        if head == last.head and head.tree:
            return head
        place = last.head
        if head.number < place.number:
            raise LedgerError(
                f"the record ends at entry {totals.number} and its anchor is at entry {place.number}: the database "
                "was restored from an old backup or cut short, and its budgets would be refilled. Nothing was read "
                "and nothing was spent. Bring the newer database back, or have the board recover the ledger."
            )
        if head.number == place.number and head.digest != place.digest:
            raise self._rewritten(place.number)
        decisions = place.decisions
        for row in transaction.rows(place.number):
            if not follows(row, place.digest):
                at = transaction.row(last.head.number)
                if at is None or at.digest != last.head.digest:
                    raise self._rewritten(last.head.number)
                raise LedgerError(f"entry {row.number} of the record was edited or moved; nothing was done.")
            place = self._signed_head(row, transaction).head
            # By what the entry is, not by what it is filed as: else a revoked key leaves its revocation out.
            decisions = decided_on(decisions, row) if isinstance(row.entry, GOVERNING) else decisions
            if last.head.state and place.decisions != decisions:  # heads of the first version state none
                raise LedgerError(
                    f"entry {row.number} of the record was signed with other decisions than those that were anchored "
                    f"and those since: one was left out, or added. {VERIFY}"
                )
        if place != head or not head.tree:  # no head without a tree ends these tables
            raise LedgerError(f"the head in the stored state is not the signed end of the record. {VERIFY}")
        if isinstance(self.anchor, SeenHead):
            self.anchor.saw(self._signed_end(transaction))
        return head

    def _signed_end(self, transaction: Transaction) -> SignedHead:
        """The signed head that the last row carries, which must be that of the stored state."""
        totals = transaction.end()
        row = transaction.row(totals.number)
        if row is None or row.digest != row.expected:
            raise LedgerError(f"the end of the record was edited or removed. {VERIFY}")
        signed = self._signed_head(row, transaction)
        if signed.head != self._head(totals):
            raise LedgerError(f"the head in the stored state is not the signed end of the record. {VERIFY}")
        return signed

    def _rewritten(self, number: int) -> LedgerError:
        return LedgerError(
            f"entry {number} of the record is not the one that was anchored: the record was rewritten. {VERIFY}"
        )

    def _signed_head(self, row: Row, transaction: Transaction) -> SignedHead:
        """The head that a row was signed with: what came after the anchor is believed by this alone."""
        try:
            signed = SignedHead.read(row.head)
        except SfumatoError:
            signed = None
        stated = None if signed is None else (signed.head.number, signed.head.digest)
        if signed is None or stated != (row.number, row.digest) or not self.holds(signed, transaction):
            raise LedgerError(
                f"entry {row.number} of the record came after what was anchored and is not signed with the key of this "
                f"ledger: somebody added it to the database. {VERIFY}"
            )
        return signed

    def rewrite(self, transaction: Transaction, state: MemoryLedgerState, entries: Sequence[Entry]) -> SignedHead:
        """Append entries to a record that was replayed and checked, and write the whole stored state anew from it.

        A recovery alone may leave numbers out: those of the entries that were lost.
        """
        for entry in entries:
            end = end_of(state)
            row = Row.after(end.number + getattr(entry, "lost", 0), end.digest, entry)
            apply(state, row, entry)
            state.head = replace(end_of(state), state=map_of(state).root())
            if state.decided.keys is not None:
                state.decided.keys.check(Role.CHARGE, self.signing.public_text, row.number, entry.at)
            signed = self.signed(state.head)
            transaction.put_row(row, signed, state.head.frontier)
        transaction.replace_state(state)
        return signed

    def gap(
        self,
        state: Totals,
        digests: dict[int, str],
        last: SignedHead | None,
        keys: KeyRing | None = None,
        *,
        missed: bool = False,
    ) -> tuple[int, Budget | None]:
        """How many entries are lost, and the most that they can have charged to any balance, if the anchor knows.

        ``digests`` are those of the record by number, ``last`` is the head that was anchored, ``keys`` the key ring.
        ``missed`` says that a witness has seen entries which the record does not hold.
        """
        if last is None:
            return 0, None
        holds = last.holds(self.public_key) if keys is None else keys.signed(last)
        if not holds or last.head.ledger != self.identifier:
            known = "" if keys is None else _UNKNOWN_KEY
            raise LedgerError(
                f"the anchor {self.anchor.name} is not signed for this ledger; nothing was changed.{known}"
            )
        found = digests.get(last.head.number)
        if found == last.head.digest:
            if missed or self._ran_ahead(state):
                return 0, Budget.none()  # as far as the anchor knows: an old one, or a clock that ran ahead
            raise Refused("the record holds all that was anchored; there is nothing to recover. Nothing was changed.")
        epsilon, delta = last.head.epsilon, last.head.delta
        sums = state.epsilon <= epsilon and state.delta <= delta  # which never fall, nor do times
        if found is None and sums and datetime.fromisoformat(state.at) <= datetime.fromisoformat(last.head.at):
            # Else the two went apart at an entry that nobody knows.
            epsilon, delta = epsilon - state.epsilon, delta - state.delta
        gap = Budget(epsilon=max(Fraction(0), epsilon), delta=min(Fraction(1), max(Fraction(0), delta)))
        return max(0, last.head.number - state.number), gap

    def _ran_ahead(self, totals: Totals) -> bool:
        """Whether the last entry was made by a clock that this one is far behind."""
        return self.clock() < datetime.fromisoformat(totals.at) - SKEW


def account_in(transaction: Transaction, path: str) -> Balance:
    """How an account stands; one that is not open, at any level, is refused."""
    for level in levels_of(path):
        balance = transaction.balance(account_line(level))
        if balance is None:
            raise NotDeclared(
                f"the account {level!r} is not open; nothing was read and nothing was spent. Have it opened: "
                f"sfumato account open {level}"
            )
    return balance  # type: ignore[return-value]  # a path has a level, and each was open
