"""The record of a ledger: its database, its anchor, its key and its clock, and the one way to write to it.

Order of a write: prove the head by the anchor, prove what was read by the head, append in one transaction, then anchor
the new head. The database is not trusted at any moment: whoever can write to it can stop the ledger, not fool it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance.anchor import Anchor, Head, SignedHead
from sfumato.governance.balances import Balance
from sfumato.governance.entries import Entry, Row
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger_state import MemoryLedgerState, Totals, account_line, apply, end_of
from sfumato.governance.lineage import Lineage, follows
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

    def time(self, *, confirmed: bool = False) -> str:
        """The time of the next entry."""
        return self.record.time(self.transaction, confirmed=confirmed)

    def append(self, entry: Entry) -> SignedHead:
        """Append an entry."""
        self.head = self.transaction.append(entry, self.record.signed)
        return self.head

    def confirm(self) -> SignedHead:
        """Have the head of the record anchored when the transaction ends, also where nothing was appended."""
        self.head = self.record.head(self.transaction)
        return self.head


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SignedRecord:
    """Entries in a database, each bound to those before it and signed, with the last signed head in an anchor.

    Guarantee: what is read in :meth:`reading` and :meth:`writing` is what the record says, or it is refused before
    anything is appended or handed out; also where somebody can write to the database. A database that is older than its
    anchor, or was rewritten, is refused. Assumes: the anchor is kept apart from the database, and whoever can write to
    both, or holds the key, is trusted.
    """

    store: Store
    anchor: Anchor
    key: SigningKey
    identifier: str
    clock: Callable[[], datetime] = system_clock
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
        with self.store.writing() as transaction, self._proving(transaction, self.anchored()):
            writing, before = Writing(self, transaction), transaction.end().digest
            yield writing
        if writing.head is not None:
            self.lineage.grew(before, writing.head.head)
            self.advance(writing.head, durable=durable)

    @contextmanager
    def _proving(self, transaction: Transaction, last: SignedHead) -> Iterator[None]:
        head = self.proven(transaction, last)
        transaction.believe(head.ledger, head.state)
        try:
            yield
        except self.store.errors:
            raise  # the database answers no more
        except Exception:
            transaction.prove()  # a refusal may come from what somebody wrote to the database: then say that
            raise
        transaction.prove()

    def signed(self, totals: Totals) -> SignedHead:
        """A head, signed."""
        return SignedHead.sign(self._head(totals), self.key)

    def head(self, transaction: Transaction) -> SignedHead:
        """The signed head of the record as it is now."""
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

    def anchored(self) -> SignedHead:
        """The head that was anchored last, signed for this ledger."""
        last = self.anchor.last()
        if last is None:
            raise LedgerError(
                f"the anchor {self.anchor.name} is missing, and without it an old backup could pass for the ledger. "
                "Nothing was read and nothing was spent. Bring the anchor back, or have the board recover the ledger."
            )
        if not last.holds(self.key.public_text) or last.head.ledger != self.identifier:
            raise LedgerError(
                f"the anchor {self.anchor.name} is not signed for this ledger; nothing was read and nothing was "
                "spent. Open the ledger with its own anchor."
            )
        return last

    def advance(self, head: SignedHead, *, durable: bool) -> None:
        """Anchor a head of one's own; where a later one is anchored already, that one must have come after it here."""
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

    def proven(self, transaction: Transaction, last: SignedHead) -> Head:
        """The head of the database: the one that was anchored, or a later one by signed rows that lead to it.

        A record that does not hold what was anchored is refused, and so is a head that nobody signed.
        """
        totals = transaction.end()
        head = self._head(totals)
        if head == last.head:
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
        for row in transaction.rows(place.number):
            if not follows(row, place.digest):
                at = transaction.row(last.head.number)
                if at is None or at.digest != last.head.digest:
                    raise self._rewritten(last.head.number)
                raise LedgerError(f"entry {row.number} of the record was edited or moved; nothing was done.")
            place = self._signed_head(row)
        if place != head:
            raise LedgerError(f"the head in the stored state is not the signed end of the record. {VERIFY}")
        return head

    def _rewritten(self, number: int) -> LedgerError:
        return LedgerError(
            f"entry {number} of the record is not the one that was anchored: the record was rewritten. {VERIFY}"
        )

    def _signed_head(self, row: Row) -> Head:
        """The head that a row was signed with: what came after the anchor is believed by this alone."""
        try:
            signed = SignedHead.read(row.head)
        except SfumatoError:
            signed = None
        stated = None if signed is None else (signed.head.ledger, signed.head.number, signed.head.digest)
        if (
            signed is None
            or stated != (self.identifier, row.number, row.digest)
            or not signed.holds(self.key.public_text)
        ):
            raise LedgerError(
                f"entry {row.number} of the record came after what was anchored and is not signed with the key of this "
                f"ledger: somebody added it to the database. {VERIFY}"
            )
        return signed.head

    def rewrite(self, transaction: Transaction, state: MemoryLedgerState, entries: Sequence[Entry]) -> SignedHead:
        """Append entries to a record that was replayed and checked, and write the whole stored state anew from it.

        A recovery alone may leave numbers out: those of the entries that were lost.
        """
        for entry in entries:
            end = end_of(state)
            row = Row.after(end.number + getattr(entry, "lost", 0), end.digest, entry)
            apply(state, row, entry)
            state.head = replace(end_of(state), state=map_of(state).root())
            signed = self.signed(state.head)
            transaction.put_row(row, signed)
        transaction.replace_state(state)
        return signed

    def gap(
        self, state: Totals, digests: dict[int, str], last: SignedHead | None, *, missed: bool = False
    ) -> tuple[int, Budget | None]:
        """How many entries are lost, and the most that they can have charged to any balance, if the anchor knows.

        ``digests`` are those of the record by number, ``last`` is the head that was anchored. ``missed`` says that a
        witness has seen entries which the record does not hold.
        """
        if last is None:
            return 0, None
        if not last.holds(self.key.public_text) or last.head.ledger != self.identifier:
            raise LedgerError(f"the anchor {self.anchor.name} is not signed for this ledger; nothing was changed.")
        found = digests.get(last.head.number)
        if found == last.head.digest:
            if missed or self._ran_ahead(state):
                return 0, Budget.none()  # as far as the anchor knows: an old one, or a clock that ran ahead
            raise Refused("the record holds all that was anchored; there is nothing to recover. Nothing was changed.")
        epsilon, delta = last.head.epsilon, last.head.delta
        if found is None:  # else the two went apart at an entry that nobody knows
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
