"""What lost entries can have charged, and how that is known: by the anchor, by the witness, or by nobody."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.errors import LedgerError, NotDeclared, Refused
from sfumato.governance.entries import WitnessNamed
from sfumato.governance.leasing import common_head, holds
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.transaction import Transaction
from sfumato.governance.witness_client import WitnessClient
from sfumato.governance.witnessed import WitnessedHead

__all__ = ["SeenLoss", "seen_loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLoss:
    """What a witness knows of a loss: its last head, whether the record holds it, and the most that was charged.

    ``gap`` is None where that is beyond any budget.
    """

    last: WitnessedHead
    held: bool
    gap: Budget | None
    basis: str


def seen_loss(
    record: SignedRecord, transaction: Transaction, named: WitnessNamed, address: str | None
) -> SeenLoss | None:
    """Ask the witness what it saw last, and work out what may be missing; None where it saw nothing of this ledger.

    Guarantee: the record, and ``gap`` more, cover all charges of the line that the witness has seen and of one lease
    beyond it; the record's own charges, if it went another way, are in it. Assumes: besides these two, no third copy of
    the ledger was in use.
    """
    if address is None:
        raise NotDeclared(
            "this ledger names a witness, and nobody said where it is asked. Nothing was changed. Write "
            'witness = "http://HOST:PORT" into the settings; or, where the witness is lost too, say so: --witness-lost'
        )
    client = WitnessClient(address, named.key, record.own_key)
    try:
        last = client.last(record.identifier)
    except (LedgerError, Refused) as wrong:
        raise Refused(
            f"{wrong} The ledger was not recovered: the witness knows what was charged. Where it is lost too, say so, "
            "and everything left is charged: --witness-lost"
        ) from None
    if last is None:
        return None
    held = holds(transaction, last)
    seen = last.signed.head
    common = last if held else common_head(client, transaction, record.identifier, seen.number)
    place, epsilon, delta = (
        (0, Fraction(0), Fraction(0))
        if common is None
        else (common.signed.head.number, common.signed.head.epsilon, common.signed.head.delta)
    )
    lost = (seen.epsilon - epsilon + last.lease.epsilon, seen.delta - delta + last.lease.delta)
    gap = Budget(epsilon=lost[0], delta=lost[1]) if lost[1] < 1 else None
    basis = f"the witness saw entry {seen.number} last, the record holds what it saw up to entry {place}; "
    basis += f"beyond it a lease of {last.lease} may have been charged"
    return SeenLoss(last=last, held=held, gap=gap, basis=basis)
