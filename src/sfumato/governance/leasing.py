"""Leases: how much a ledger may charge beyond the last head that its witness has seen, and how it gets a new one.

A charge does not wait for the witness while the lease lasts; one that would go beyond it first has a new head
countersigned, or is refused before anything is read. So whoever brings back an old database together with its old
anchor gets at most one lease out of it, and then the witness says no.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from sfumato.core.budget import Budget
from sfumato.core.signature import read_public_key
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance.anchor import Head
from sfumato.governance.entries import START, Row, WitnessNamed
from sfumato.governance.ledger_state import Totals
from sfumato.governance.lineage import follows
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.transaction import Transaction
from sfumato.governance.witness import Conflict
from sfumato.governance.witness_client import WitnessClient
from sfumato.governance.witnessed import Extension, SignedExtension, WitnessedHead

__all__ = ["Lease", "LeaseStanding", "common_head", "holds"]

MOST_ROWS = 25_000
"""Entries that one request tells the witness of."""
TRIES = 8
"""How often others may be faster, to the lease or to the witness, before a charge is given up."""
PAUSE = 30.0
"""Seconds after which an attempt beside the charges is made again, where one has failed."""

Made = TypeVar("Made")


class _UsedUp(Exception):
    """A charge would go beyond the lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStanding:
    """How far a record is beyond what its witness has seen; ``witnessed`` is None where that is nothing of it."""

    named: WitnessNamed
    witnessed: WitnessedHead | None
    entries: int
    charged: Budget


@dataclass(slots=True, eq=False)
class Lease:
    """The lease of one record, in this process: safe for threads.

    Guarantee: what is charged beyond the last witnessed head never exceeds the lease that the witness countersigned
    with it, and that head is one of this very record. Where no witness is named, nothing is asked of anybody; but where
    an ``address`` is given, somebody knows of a witness, and a record that names none charges nothing.
    """

    record: SignedRecord
    address: str | None = None
    _last: WitnessedHead | None = None
    _charged: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    _refused: LedgerError | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _beside: threading.Thread | None = None
    _again: float = 0.0

    def name(self, key: str, *, lease: Budget, reason: str) -> None:
        """Name the witness of this record by its public key, or give it another lease; a decision of the board.

        Who names another witness than before has the ledger taken off the old one's memory: sfumato witness end.
        """
        if not reason.strip():
            raise NotDeclared("to name a witness is a decision: say why in reason='…'. Nothing was changed.")
        if lease.epsilon == 0 or lease.rho is not None:
            raise InvalidInput("a lease is an ε above 0, and a δ; nothing was changed.")
        with self.record.writing() as writing:
            writing.append(
                WitnessNamed(at=writing.time(), key=read_public_key(key), lease=lease.without_rho, reason=reason)
            )

    def within(self, work: Callable[[], Made]) -> Made:
        """Do the work of a charge; where it stops at :meth:`admit`, have a new head witnessed first."""
        for _ in range(TRIES):
            try:
                return work()
            except _UsedUp:
                self.renew()
        raise Refused(
            "others used up the lease of the witness as fast as it was renewed. Nothing was read and nothing was "
            "spent. Try again, or have a larger lease decided."
        )

    def admit(self, transaction: Transaction, cost: Budget) -> None:
        """Refuse a charge that goes beyond the lease, in the transaction that would make it, before it is made."""
        named = transaction.decision_state().witness
        if named is None and self.address is not None:
            raise Refused(
                f"the settings say that a witness is asked at {self.address}, and the record names none: nobody named "
                "it yet, or an old database from before that was brought back. Nothing was read and nothing was spent. "
                "Bring the newer one back, or name the witness: sfumato witness name"
            )
        if named is None:
            return
        if self._refused is not None:
            raise self._refused
        end = transaction.end()
        last = self._standing(transaction, named, end)
        if last is not None and not self._bears(last, end, cost):
            kept = self._kept(transaction, named)  # others may have renewed it
            if kept is not None and kept.signed.head.number > last.signed.head.number:
                last = self._last = self._reached(transaction, named, end, kept)
        if last is None:
            raise _UsedUp
        if not self._bears(last, end, cost):
            _check_size(named.lease, cost)
            raise _UsedUp

    def check_size(self, transaction: Transaction, cost: Budget) -> None:
        """Refuse a charge that is larger than a whole lease, which no renewal makes room for."""
        named = transaction.decision_state().witness
        if named is not None:
            _check_size(named.lease, cost)

    def has_seen(self, transaction: Transaction, number: int) -> bool:
        """Whether a charge, by its number, is in what the witness has seen, so that no lease bounds what is drawn."""
        named, end = transaction.decision_state().witness, transaction.end()
        last = None if named is None else self._standing(transaction, named, end)
        return named is not None and (last is None or number <= last.signed.head.number)

    def _bears(self, last: WitnessedHead, end: Totals, cost: Budget) -> bool:
        """Whether a charge after the end of the record stays within the lease of a head that it goes on from."""
        seen = last.signed.head
        self._charged = end.epsilon + cost.epsilon - seen.epsilon, end.delta + cost.delta - seen.delta
        return self._charged[0] <= last.lease.epsilon and self._charged[1] <= last.lease.delta

    def renew(self) -> WitnessedHead:
        """Have the end of the record countersigned now. Refused where the witness has seen another record."""
        with self._turn:
            try:
                return self._renewed()
            except _Forked as found:
                self._refused = LedgerError(str(found))
                raise self._refused from None

    def renew_beside(self, *, at_once: bool = False) -> None:
        """Start to renew in a thread where half of the lease is used, or ``at_once``; nobody waits for it."""
        if self.address is None or time.monotonic() < self._again or not (at_once or self._half_used()):
            return
        if self._beside is not None and self._beside.is_alive():
            return
        self._beside = threading.Thread(target=self._try, name="sfumato-witness", daemon=True)
        self._beside.start()

    def _half_used(self) -> bool:
        epsilon, delta = self._charged
        lease = None if self._last is None else self._last.lease
        return lease is not None and (2 * epsilon >= lease.epsilon or 2 * delta > lease.delta)

    def wait(self, seconds: float = 2.0) -> None:
        """Let an attempt that was started come to its end, for so long at most."""
        if self._beside is not None and self._beside.is_alive():
            self._beside.join(seconds)

    def standing(self) -> LeaseStanding | None:
        """How far the record is beyond its witness; None where none is named. Asks nobody."""
        try:
            return self._stands()
        except LedgerError:
            return self._stands()  # others may have had a newer head witnessed than this transaction could see

    def _stands(self) -> LeaseStanding | None:
        with self.record.reading() as transaction:
            named, end = transaction.decision_state().witness, transaction.end()
            last = None if named is None else self._standing(transaction, named, end)
        if named is None:
            return None
        seen = (0, Fraction(0), Fraction(0)) if last is None else _sums(last.signed.head)
        charged = Budget(epsilon=end.epsilon - seen[1], delta=min(Fraction(1), end.delta - seen[2]))
        return LeaseStanding(named=named, witnessed=last, entries=end.number - seen[0], charged=charged)

    def _try(self) -> None:
        try:
            self.renew()
        except SfumatoError:
            self._again = time.monotonic() + PAUSE  # said by the charge that needs it

    def _standing(self, transaction: Transaction, named: WitnessNamed, end: Totals) -> WitnessedHead | None:
        """The last witnessed head, if the record as it is now goes on from it; None where a new one is needed.

        That it does is not looked up in the database, where anybody may have put a row, but followed from row to row.
        """
        last = self._reached(transaction, named, end, self._last)
        self._last = last or self._reached(transaction, named, end, self._kept(transaction, named))
        return self._last

    def _reached(
        self, transaction: Transaction, named: WitnessNamed, end: Totals, last: WitnessedHead | None
    ) -> WitnessedHead | None:
        """A witnessed head, if it counts; one that the record should go on from, and does not, shuts it."""
        if last is None or last.witness != named.key:
            return None
        if self.record.lineage.reaches(transaction, last, end):
            return last
        seen = last.signed.head.number
        if transaction.decision_state().recovered > seen:
            return None  # it was given up
        raise LedgerError(
            f"the witness has seen entry {seen} of this ledger, and the record, which ends at {end.number}, does not "
            "go on from it: an old database was brought back, with its anchor, or two copies are in use. Nothing was "
            "read and nothing was spent. Bring the newer one back, or have the board recover the ledger."
        )

    def _kept(self, transaction: Transaction, named: WitnessNamed) -> WitnessedHead | None:
        """The witnessed head that is kept beside the anchor, if it is one."""
        text = self.record.anchor.witnessed()
        try:
            head = None if text is None else WitnessedHead.read(text)
        except SfumatoError:
            return None
        if head is None or not head.countersigned_by(named.key):
            return None
        return head if self.record.holds(head.signed, transaction) else None

    def _renewed(self) -> WitnessedHead:
        with self.record.reading() as transaction:
            named, end = self._named(transaction), transaction.end()
            client = self._client(named)
            known = self._kept(transaction, named)
            base = known if known is not None and self.record.lineage.reaches(transaction, known, end) else None
        recovery: Row | None = None
        for _ in range(TRIES):
            whole = False
            while not whole:
                with self.record.reading() as transaction:
                    request, whole = self._request(transaction, base, recovery)
                answer = client.extend(request)
                if isinstance(answer, Conflict):
                    break
                self._keep(answer)
                base, recovery = answer, None
            else:
                self._last = base
                return base  # type: ignore[return-value]  # the loop ended with an answer
            if recovery is not None:
                raise LedgerError(
                    f"the witness does not take entry {recovery.number} for a recovery that gives up what it has seen: "
                    "it must name the last head and charge its lease. Nothing was read and nothing was spent."
                )
            base, recovery = self._seen_by(client, answer.last, known)
        raise Refused("others tell the witness more, as fast as this process; nothing was spent. Try again.")

    def _seen_by(
        self, client: WitnessClient, last: WitnessedHead | None, known: WitnessedHead | None
    ) -> tuple[WitnessedHead | None, Row | None]:
        """From where the record goes on with what the witness saw last, and the recovery that it needs for that."""
        place = 0 if last is None else last.signed.head.number
        if known is not None and known.signed.head.number > place:
            raise LedgerError(
                f"the witness has seen entry {place}, and has countersigned entry {known.signed.head.number} before: "
                "its memory was set back. Nothing was read and nothing was spent. Name another witness."
            )
        if last is None:
            return None, None
        with self.record.reading() as transaction:
            if holds(transaction, last):
                return last, None
            number = transaction.decision_state().recovered
            row = transaction.row(number) if number else None
            if row is not None and getattr(row.entry, "witnessed", "") == last.text:
                return common_head(client, transaction, self.record.identifier, row.number), row
            end = transaction.end().number
        raise _Forked(
            f"the witness has seen another entry {place} of this ledger than the record holds, which ends at {end}: an "
            "old database was brought back with its anchor, or two copies are in use. Nothing was read and nothing was "
            "spent. Stop all copies and compare them; then have the board recover the ledger."
        )

    def _request(
        self, transaction: Transaction, base: WitnessedHead | None, recovery: Row | None
    ) -> tuple[SignedExtension, bool]:
        """The next part of the record for the witness, and whether it reaches the end."""
        named, end = self._named(transaction), transaction.end()
        since, digest = (0, START) if base is None else (base.signed.head.number, base.signed.head.digest)
        rows: list[tuple[int, str]] = []
        head, length = "", 0
        for row in transaction.rows(since):
            if not follows(row, digest):
                raise LedgerError(
                    f"entry {row.number} does not follow what the witness has seen: the record was rewritten. Nothing "
                    "was read and nothing was spent. Find the place: sfumato ledger verify"
                )
            digest = row.digest
            rows.append((row.number, row.digest))
            if row.head:
                head, length = row.head, len(rows)
            if len(rows) >= MOST_ROWS and head:
                break
        whole = not rows or rows[-1][0] == end.number
        if whole:
            if rows and digest != end.digest:
                raise LedgerError("the rows of the record do not lead to its head; nothing was read or spent.")
            head, length = self.record.head(transaction).text, len(rows)
        told = None if recovery is None else (recovery.number, recovery.previous, recovery.body, recovery.nonce)
        extension = Extension(head=head, since=since, rows=tuple(rows[:length]), lease=named.lease, recovery=told)
        return SignedExtension.sign(extension, self.record.signing), whole

    def _keep(self, answer: WitnessedHead) -> None:
        """Keep the head for other processes, in place of an older one."""
        text = self.record.anchor.witnessed()
        try:
            older = text is None or WitnessedHead.read(text).signed.head.number < answer.signed.head.number
        except SfumatoError:
            older = True
        if older or WitnessedHead.read(text or "").witness != answer.witness:
            self.record.anchor.keep_witnessed(answer.text)

    def _named(self, transaction: Transaction) -> WitnessNamed:
        named = transaction.decision_state().witness
        if named is None:
            raise NotDeclared("this ledger names no witness; nothing was done. Name one: sfumato witness name")
        return named

    def _client(self, named: WitnessNamed) -> WitnessClient:
        if self.address is None:
            raise NotDeclared(
                "the lease is used up, or a charge that was open before is gone on with, and "
                "nobody said where the witness is asked. Nothing was read and nothing was spent. "
                'Write witness = "http://HOST:PORT" into the settings of the ledger.'
            )
        return WitnessClient(self.address, named.key, self.record.own_key)


class _Forked(LedgerError):
    """The witness has seen another record, and has shown it."""


def common_head(client: WitnessClient, transaction: Transaction, identifier: str, before: int) -> WitnessedHead | None:
    """The newest head of the witness, below an entry, that this record holds; None where there is none."""
    upto = before - 1
    while upto > 0:
        found = client.last(identifier, upto)
        if found is None or holds(transaction, found):
            return found
        upto = found.signed.head.number - 1
    return None


def holds(transaction: Transaction, head: WitnessedHead) -> bool:
    """Whether the record has the entry of a head; that what follows goes on from it is found when it is told."""
    row = transaction.row(head.signed.head.number)
    return row is not None and row.digest == head.signed.head.digest == row.expected


def _sums(head: Head) -> tuple[int, Fraction, Fraction]:
    return head.number, head.epsilon, head.delta


def _check_size(lease: Budget, cost: Budget) -> None:
    if not lease.covers(cost):
        raise Refused(
            f"this release asks for {cost}, and a ledger with a witness charges at most {lease} beyond what the "
            "witness has seen. Nothing was read and nothing was spent. Ask for less, or have a larger lease decided: "
            "sfumato witness name"
        )
