"""What a ledger shows of itself: receipts of what it stored, and what is wrong with its record, if anything is."""

from collections.abc import Sequence

from sfumato.core.certificate import Certificate
from sfumato.governance.anchor import SignedHead
from sfumato.governance.checkpoint import Checkpoint
from sfumato.governance.entries import Administered, Entry, Row, WitnessNamed, unwrapped
from sfumato.governance.receipts import Receipt, issued, place_of_certificate
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.verification import LedgerVerification, Watch, verification
from sfumato.governance.verify import LedgerFinding
from sfumato.governance.witnessed import WitnessedHead, witnessed_findings

__all__ = ["Verified"]


class Verified:
    """The part of a ledger that proves and verifies; nothing here writes."""

    record: SignedRecord

    def receipt(self, which: int | Certificate, *heads: SignedHead) -> Receipt:
        """The receipt of a release, by the number of its entry or by its certificate; it leads to published ``heads``.

        It shows to whoever has the certificate that this ledger stored it (:mod:`sfumato.governance.receipts`).
        """
        with self.record.reading() as transaction:
            number = which if isinstance(which, int) else place_of_certificate(transaction, which.text)
            return issued(
                transaction,
                number,
                self.record.head(transaction),
                holds=lambda one: self.record.holds(one, transaction),
                heads=heads,
                rooted=self.record.opening is not None,
            )

    def verify(
        self,
        *heads: SignedHead,
        since: Checkpoint | None = None,
        every_signature: bool = False,
        witnessed: Sequence[WitnessedHead] = (),
    ) -> tuple[LedgerFinding, ...]:
        """All that is wrong with the record, its stored state and its anchor, held to published ``heads`` too.

        ``since`` a checkpoint that the caller knows for its own, only what came after it is replayed. Heads that were
        ``witnessed`` are held to the witness that the record names, and the record to them.
        """
        found = self.verification(*heads, since=since, every_signature=every_signature).findings
        return (*found, *self.held_to_witness(witnessed))

    def held_to_witness(self, witnessed: Sequence[WitnessedHead]) -> tuple[LedgerFinding, ...]:
        """What is wrong between the record and heads that a witness countersigned."""
        found: list[LedgerFinding] = []
        with self.record.store.reading() as transaction:  # whatever it holds
            for head in witnessed:
                keys = [entry.key for row in transaction.rows() if isinstance(entry := _named(row), WitnessNamed)]
                signed = self.record.holds(head.signed, transaction)
                problems = witnessed_findings(transaction.rows(), head, keys, signed=signed)
                found += [LedgerFinding(entry=place, problem=problem) for place, problem in problems]
        return tuple(found)

    def verification(
        self,
        *heads: SignedHead,
        since: Checkpoint | None = None,
        chain_only: bool = False,
        every_signature: bool = False,
        watch: Watch | None = None,
    ) -> LedgerVerification:
        """The same with how far the record goes and what to remember for the next time.

        ``chain_only`` looks at digests and signatures, and replays nothing. One signature speaks for all rows above it;
        with ``every_signature`` each is checked none the less.
        """
        return verification(
            self.record,
            heads=heads,
            since=since,
            chain_only=chain_only,
            every_signature=every_signature,
            watch=watch,
        )


def _named(row: Row) -> Entry | None:
    return unwrapped(row.entry) if row.kind in (WitnessNamed.KIND, Administered.KIND) else None
