"""The record of a ledger: its database, its anchor, its key and its clock, and the one way to write to it.

Order of a write: compare with the anchor, append in one transaction, then anchor the new head.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import LedgerError, NotDeclared, Refused
from sfumato.governance.anchor import FileAnchor, Head, SignedHead
from sfumato.governance.balances import Balance
from sfumato.governance.entries import Entry
from sfumato.governance.ledger_state import Totals, account_line
from sfumato.governance.store import Store
from sfumato.governance.terms import levels_of, written
from sfumato.governance.transaction import Transaction

__all__ = ["SignedRecord", "Writing", "account_in", "system_clock"]

SKEW = timedelta(minutes=5)
"""How far clocks of one institution may differ; a clock that is further back was set back."""


def system_clock() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Writing:
    """One transaction of a record, and the head that is anchored when it ends."""

    record: "SignedRecord"
    transaction: Transaction
    head: SignedHead | None = field(default=None, init=False)

    def time(self) -> str:
        """The time of the next entry."""
        return self.record.time(self.transaction)

    def append(self, entry: Entry) -> SignedHead:
        """Append an entry."""
        self.transaction.append(entry)
        return self.confirm()

    def confirm(self) -> SignedHead:
        """Have the head of the record anchored when the transaction ends, also where nothing was appended."""
        self.head = self.record.head(self.transaction)
        return self.head


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SignedRecord:
    """Entries in a database, each bound to those before it, with a signed head in an anchor.

    Guarantee: a database that is older than its anchor, or was rewritten, is refused before anything is appended.
    Assumes: the anchor is kept apart from the database, and whoever can write to both, or holds the key, is trusted.
    """

    store: Store
    anchor: FileAnchor
    key: SigningKey
    identifier: str
    clock: Callable[[], datetime] = system_clock

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that reads."""
        return self.store.reading()

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Writing]:
        """A transaction that appends; its head is anchored after it, and with ``durable`` waited for."""
        with self.store.writing() as transaction:
            self.check_anchor(transaction)
            writing = Writing(self, transaction)
            yield writing
        if writing.head is not None:
            self.anchor.advance(writing.head, durable=durable)

    def head(self, transaction: Transaction) -> SignedHead:
        """The signed head of the record as it is now."""
        totals = transaction.end()
        head = Head(
            ledger=self.identifier,
            number=totals.number,
            digest=totals.digest,
            at=totals.at,
            epsilon=totals.epsilon,
            delta=totals.delta,
        )
        return SignedHead.sign(head, self.key)

    def time(self, transaction: Transaction) -> str:
        """The time of an entry, never before that of the one before; a clock that was set back is refused."""
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
        return written(max(now, last))

    def check_anchor(self, transaction: Transaction, *, tail: bool = False) -> None:
        """Refuse a record that does not hold what was anchored; with ``tail`` also check what came after it."""
        last = self.anchor.last()
        if last is None:
            raise LedgerError(
                f"the anchor {self.anchor.path} is missing, and without it an old backup could pass for the ledger. "
                "Nothing was read and nothing was spent. Bring the anchor back, or have the board recover the ledger."
            )
        if not last.holds(self.key.public_text) or last.head.ledger != self.identifier:
            raise LedgerError(
                f"the anchor {self.anchor.path} is not signed for this ledger; nothing was read and nothing was "
                "spent. Open the ledger with its own anchor."
            )
        totals = transaction.end()
        if not tail and (totals.number, totals.digest) == (last.head.number, last.head.digest):
            return
        row = transaction.row(last.head.number)
        if row is None:
            raise LedgerError(
                f"the record ends at entry {totals.number} and its anchor is at entry {last.head.number}: the database "
                "was restored from an old backup or cut short, and its budgets would be refilled. Nothing was read "
                "and nothing was spent. Bring the newer database back, or have the board recover the ledger."
            )
        if row.digest != last.head.digest:
            raise LedgerError(
                f"entry {last.head.number} of the record is not the one that was anchored: the record was rewritten. "
                "Nothing was read and nothing was spent. Find the place: sfumato ledger verify"
            )
        if tail:
            number, digest = row.number, row.digest
            for later in transaction.rows(row.number):
                if later.number != number + 1 or later.previous != digest or later.digest != later.expected:
                    raise LedgerError(f"entry {later.number} of the record was edited or moved; nothing was done.")
                number, digest = later.number, later.digest
            if (number, digest) != (totals.number, totals.digest):
                raise LedgerError("the head in the stored state is not the end of the record; nothing was done.")

    def gap(self, transaction: Transaction, totals: Totals, last: SignedHead | None) -> tuple[int, Budget | None]:
        """How many entries are lost, and the most that they can have charged to any balance, if that is known."""
        if last is None:
            return 0, None
        if not last.holds(self.key.public_text) or last.head.ledger != self.identifier:
            raise LedgerError(f"the anchor {self.anchor.path} is not signed for this ledger; nothing was changed.")
        row = transaction.row(last.head.number)
        if row is not None and row.digest == last.head.digest:
            if self._ran_ahead(totals):
                return 0, Budget.none()  # nothing is lost: an entry was made by a clock that ran ahead
            raise Refused("the record holds all that was anchored; there is nothing to recover. Nothing was changed.")
        epsilon, delta = last.head.epsilon, last.head.delta
        if row is None:  # else the two went apart at an entry that nobody knows
            epsilon, delta = epsilon - totals.epsilon, delta - totals.delta
        gap = Budget(epsilon=max(Fraction(0), epsilon), delta=min(Fraction(1), max(Fraction(0), delta)))
        return max(0, last.head.number - totals.number), gap

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
