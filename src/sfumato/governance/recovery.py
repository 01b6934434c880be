"""What a recovery would enter after a loss, and those who agreed to it.

An anchor is believed by the key that signed it. Where keys have roles, that key may have been revoked in the entries
that were lost, and whoever stole it can make an anchor that states a small loss. Nobody here can know that: so an
anchor that states entries which the record lacks is believed with the root's word, for this very recovery, that no
document of it is missing (:class:`~sfumato.governance.key_documents.RootStanding`), or beside a witness, or not at all.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.agreements import Agreement, recovery_text
from sfumato.governance.anchor import SignedHead
from sfumato.governance.anchor_database import anchor_at
from sfumato.governance.entries import Entry, Recovered
from sfumato.governance.key_documents import RootStanding, SignedByRoot
from sfumato.governance.keyring import KeyRing, signed_by_root
from sfumato.governance.ledger_state import MemoryLedgerState, end_of
from sfumato.governance.opening import Key, closed_on_error, existing, opened_in, private_key
from sfumato.governance.papers import LASTS
from sfumato.governance.seen_loss import seen_loss
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.terms import after, written
from sfumato.governance.transaction import Transaction

__all__ = ["Seen", "agreed", "entered_anew", "loss_of", "vouched"]

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

    ``documents`` of the root are entered anew with it: the anchor may be signed by a key that one of them certifies.
    Among them may be the root's word that they are all.
    """
    ring, word = _known(state, documents), _word(documents)
    digests = {} if last is None else _digests(transaction, last.head.number)
    named, end = state.decided.witness, end_of(state)
    seen = None if named is None or asked.lost else seen_loss(record, transaction, named, asked.address)
    missed = asked.lost or (seen is not None and not seen.held)
    lost, gap = record.gap(end, digests, last, ring, missed=missed)
    most, basis = charge or Budget.none(), _basis(last)
    unknown = gap is None or asked.lost
    if seen is not None:
        unknown, basis = seen.gap is None, seen.basis if last is None else f"{basis}; {seen.basis}"
        most = _larger(most, seen.gap or most)
        lost = max(lost, seen.last.signed.head.number - end.number)
    elif named is not None:
        unknown, basis = True, "the witness is lost, or saw nothing: nobody knows what was charged"
    whole = unknown or whole
    if ring is not None and last is not None and (word is not None or not (whole or seen is not None)):
        held = digests.get(last.head.number) == last.head.digest
        if word is not None or not held:
            _check_word(word, ring, end.digest, last)
            basis += f", and the root vouches for its {ring.number} documents"
    at, gap = written(record.clock()), _larger(gap or Budget.none(), most)
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
    for place, signed in enumerate(_numbered(documents), start=number + 1):
        ring = None if ring is None else ring.after(place, signed_by_root("", signed))
    if ring is None:
        return None
    return replace(ring, keys=tuple(one for one in ring.keys if one.ended is None or one.ended <= number))


def entered_anew(documents: Sequence[SignedByRoot], at: str, others: int) -> tuple[list[Entry], list[Entry]]:
    """The entries of documents that were lost, before the recovery and after it.

    What members agreed to has room for two entries before it in all, of which there are ``others``.
    """
    entries: list[Entry] = [signed_by_root(at, signed) for signed in _numbered(documents)]
    room = max(0, MOST_BEFORE - others)
    return entries[:room], entries[room:]


def vouched(url: str | Path, *, anchor: str | Path, root: Key, documents: int) -> SignedByRoot:
    """The root's word, for the recovery of a ledger as it lies there now, on how many documents it has signed.

    ``documents`` is the number of the last one, as the holder of the root knows it: the ledger may have lost some.
    Nothing is changed. The word holds for this end of the record and this anchor alone.
    """
    signing, store, last = private_key(root), existing(url), anchor_at(anchor).readable()
    with closed_on_error(store):
        if last is None or not store.current():
            raise Refused(
                "the anchor cannot be read, or the tables are older ones: then a recovery charges everything left, or "
                "is made at the ledger itself, and needs no word of the root. Nothing was signed."
            )
        with store.reading() as transaction:
            ledger, end = opened_in(transaction, store).identifier, transaction.end().digest
    store.close()
    said = RootStanding(ledger=ledger, number=documents, after=end, anchored=_digest_of(last))
    return SignedByRoot.sign(said, signing)


def _numbered(documents: Sequence[SignedByRoot]) -> list[SignedByRoot]:
    """The documents that are entered: all but the root's word on how many there are."""
    return [signed for signed in documents if not isinstance(signed.said, RootStanding)]


def _word(documents: Sequence[SignedByRoot]) -> SignedByRoot | None:
    return next((signed for signed in documents if isinstance(signed.said, RootStanding)), None)


def _check_word(word: SignedByRoot | None, ring: KeyRing, after: str, last: SignedHead) -> None:
    """Refuse an anchor without the root's word that no document of it is missing, or with one for something else."""
    if word is None or not isinstance(word.said, RootStanding):
        raise Refused(
            "the anchor states entries that the record lacks, and among those may be a revocation of the key that "
            "signed it: then whoever stole that key wrote the anchor. Nothing was changed, and the ledger stays shut. "
            "Have the holder of the root say how many documents it has signed (sfumato key standing), and give that "
            "with all documents that were lost (--certified FILE, documents=…). Where the root is lost too, move the "
            "anchor aside: nobody knows then what was charged, and everything left is."
        )
    said = RootStanding(ledger=ring.ledger, number=word.said.number, after=after, anchored=_digest_of(last))
    if word.said != said or not word.holds(ring.root):
        raise Refused(
            f"the root's word is for another ledger, another end of its record or another anchor, or is not signed by "
            f"the root {ring.root[:16]}…; nothing was changed. Have it made anew, here: sfumato key standing"
        )
    if word.said.number != ring.number:
        raise Refused(
            f"the root has signed {word.said.number} documents, and {ring.number} are in the record or were given: one "
            "that is missing may revoke the key that signed the anchor. Nothing was changed. Give all of them, in "
            "their order: --certified FILE, documents=…"
        )


def _digest_of(head: SignedHead) -> str:
    return hashlib.sha256(head.text.encode()).hexdigest()


def _digests(transaction: Transaction, number: int) -> dict[int, str]:
    row = transaction.row(number)
    return {} if row is None else {number: row.digest}


def _basis(last: SignedHead | None) -> str:
    if last is None:
        return "the anchor is lost: nobody knows what was charged"
    return f"the anchor was at entry {last.head.number}"


def _larger(one: Budget, other: Budget) -> Budget:
    return Budget(epsilon=max(one.epsilon, other.epsilon), delta=max(one.delta, other.delta))
