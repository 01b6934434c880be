"""What a recovery would enter after a loss, and those who agreed to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.agreements import Agreement, recovery_text
from sfumato.governance.anchor import SignedHead
from sfumato.governance.entries import Entry, Recovered
from sfumato.governance.key_documents import SignedByRoot
from sfumato.governance.keyring import KeyRing, signed_by_root
from sfumato.governance.ledger_state import MemoryLedgerState, end_of
from sfumato.governance.papers import LASTS
from sfumato.governance.seen_loss import seen_loss
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.terms import after, written
from sfumato.governance.transaction import Transaction

__all__ = ["Seen", "agreed", "entered_anew", "loss_of"]

MOST_BEFORE = 2
"""Entries between the end that members agreed to and the recovery itself, as verification allows them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Where the witness of a record is asked what it saw; ``lost`` says that it is lost too."""

    address: str | None = None
    lost: bool = False


def loss_of(
    record: SignedRecord,
    transaction: Transaction,
    state: MemoryLedgerState,
    last: SignedHead | None,
    reason: str,
    charge: Budget | None,
    asked: Seen,
    *,
    whole: bool,
    documents: Sequence[SignedByRoot] = (),
) -> Recovered:
    """What a recovery would enter: how much was lost at most, and where the record ends; nobody has agreed yet.

    ``documents`` of the root are entered anew before it: the anchor may be signed by a key that one of them certifies.
    """
    digests = {} if last is None else _digests(transaction, last.head.number)
    named, end = state.decided.witness, end_of(state)
    seen = None if named is None or asked.lost else seen_loss(record, transaction, named, asked.address)
    missed = asked.lost or (seen is not None and not seen.held)
    lost, gap = record.gap(end, digests, last, _known(state, documents), missed=missed)
    most, basis = charge or Budget.none(), _basis(last)
    unknown = gap is None or asked.lost
    if seen is not None:
        unknown, basis = seen.gap is None, seen.basis if last is None else f"{basis}; {seen.basis}"
        most = _larger(most, seen.gap or most)
        lost = max(lost, seen.last.signed.head.number - end.number)
    elif named is not None:
        unknown, basis = True, "the witness is lost, or saw nothing: nobody knows what was charged"
    at, whole, gap = written(record.clock()), unknown or whole, _larger(gap or Budget.none(), most)
    return Recovered(
        at=at,
        reason=reason,
        anchored="" if last is None else last.text,
        lost=lost,
        gap=gap,
        whole=whole,
        after=end.digest,
        expires=after(at, LASTS),
        witnessed="" if seen is None else seen.last.text,
        basis=basis,
        closes=whole or lost > 0 or gap != Budget.none(),  # a clock that ran ahead loses nothing
    )


def agreed(
    record: SignedRecord,
    entry: Recovered,
    signers: Mapping[str, SigningKey | None],
    agreements: Sequence[Agreement],
) -> Recovered:
    """A recovery with those who agreed, here or elsewhere; an agreement to another one is refused."""
    entry = replace(entry, expires=min([agreement.expires for agreement in agreements], default=entry.expires))
    for agreement in agreements:
        if agreement.ledger != record.identifier or agreement.entry(entry.at) != entry:
            raise Refused(
                f"the agreement of {agreement.signer!r} is to another recovery than this one: another loss, charge, "
                "reason or paper. Nothing was changed, and the ledger stays shut. Have one paper signed by all."
            )
    text = recovery_text(record.identifier, entry)
    here = [(name, "" if signer is None else signer.sign(text)) for name, signer in signers.items()]
    away = [(str(agreement.signer), agreement.signature or "") for agreement in agreements]
    return replace(entry, approvals=(*here, *away))


def _known(state: MemoryLedgerState, documents: Sequence[SignedByRoot]) -> KeyRing | None:
    """The keys of a record, and those that its root certified in documents which were lost with their entries.

    A key that one of the documents revokes is left out: an anchor that it signed is not the last one, since the entry
    that revoked it came later, and whoever stole it could have made one that states a small loss.
    """
    ring, number = state.decided.keys, end_of(state).number
    if ring is None and documents:
        raise NotDeclared("this ledger has no root that could have certified a key; nothing was changed.")
    for place, signed in enumerate(documents, start=number + 1):
        ring = None if ring is None else ring.after(place, signed_by_root("", signed))
    if ring is None:
        return None
    return replace(ring, keys=tuple(one for one in ring.keys if one.ended is None or one.ended <= number))


def entered_anew(documents: Sequence[SignedByRoot], at: str, others: int) -> list[Entry]:
    """The entries of documents that were lost, beside ``others``: what members agreed to has room for two in all."""
    if documents and len(documents) + others > MOST_BEFORE:
        raise Refused(
            f"a recovery has room for {MOST_BEFORE} entries before it: documents of the root, new tables, a board with "
            "keys. Nothing was changed. Give those that certify or revoke the key that signed the anchor, and enter "
            "the others afterwards: sfumato key enter"
        )
    return [signed_by_root(at, signed) for signed in documents]


def _digests(transaction: Transaction, number: int) -> dict[int, str]:
    row = transaction.row(number)
    return {} if row is None else {number: row.digest}


def _basis(last: SignedHead | None) -> str:
    if last is None:
        return "the anchor is lost: nobody knows what was charged"
    return f"the anchor was at entry {last.head.number}"


def _larger(one: Budget, other: Budget) -> Budget:
    return Budget(epsilon=max(one.epsilon, other.epsilon), delta=max(one.delta, other.delta))
