"""Lineage: which heads a record is known to go on from, without reading all of it at each charge."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.governance.anchor import Head
from sfumato.governance.entries import Row
from sfumato.governance.ledger_state import Totals

if TYPE_CHECKING:
    from sfumato.governance.transaction import Transaction
    from sfumato.governance.witnessed import WitnessedHead

__all__ = ["Lineage", "follows"]


def follows(row: Row, digest: str) -> bool:
    """Whether a row is unchanged and comes right after the row with a digest."""
    return row.previous == digest and row.digest == row.expected


@dataclass(slots=True, eq=False)
class Lineage:
    """One head, and the newest entry that is known to go on from it.

    What this process wrote itself is known without a look; what others wrote is read once. Threads need no lock: at
    worst something is read again.
    """

    _reached: tuple[str, int, str] = field(default=("", 0, ""))
    """The digest of the head, and the number and the digest of the entry."""

    def grew(self, before: str, head: Head) -> None:
        """This process appended to the entry with a digest, and the record ends with a new head."""
        start, _, digest = self._reached
        if digest == before:
            self._reached = start, head.number, head.digest

    def reaches(self, transaction: "Transaction", witnessed: "WitnessedHead", end: Totals) -> bool:
        """Whether the proven end of a record goes on from a head, row by row."""
        head = witnessed.signed.head
        start, number, digest = self._reached
        places = [(number, digest)] if start == head.digest else []
        for place, follow in (*places, (head.number, head.digest)):
            if _leads(transaction, place, follow, end):
                self._reached = head.digest, end.number, end.digest
                return True
        return False


def _leads(transaction: "Transaction", number: int, digest: str, end: Totals) -> bool:
    if number >= end.number:
        return (number, digest) == (end.number, end.digest)
    for row in transaction.rows(number):
        if not follows(row, digest):
            return False
        digest = row.digest
    return digest == end.digest
