"""Checkpoints: what a verifier remembers of a record that held, so that next time only what came after is replayed.

A checkpoint states the signed head up to which all was replayed, and what a replay needs to go on from there: balances,
versions and open charges. Settled charges and stored answers are many and stay out of it. That none of them changed
without an entry is shown by the map of the stored state: whatever the new entries put there is taken out again, and the
root must be that of the checkpoint (docs/decisions/0032-checkpoints.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.ledger import State
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.entries import Row
from sfumato.governance.entry_tree import (
    Frontier,
    consistency_holds,
    consistency_path,
    inclusion_holds,
    inclusion_path,
    leaf_hash,
)
from sfumato.governance.leaves import leaves_of, place_of
from sfumato.governance.ledger_state import MemoryLedgerState, Totals, end_of
from sfumato.governance.receipts import stored_nodes
from sfumato.governance.rows import (
    BALANCE,
    CHARGE,
    EDITION,
    balance_of,
    balance_row,
    charge_of,
    charge_row,
    columns,
    edition_of,
    edition_row,
    named,
)
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.transaction import Transaction
from sfumato.governance.verify import check_record

__all__ = ["Checkpoint", "SignedCheckpoint", "followed_since"]

Values = tuple[str | int | bool | None, ...]
"""A row of the stored state, in the order of its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A record as it was verified: its signed head, when that was, and the state to go on from.

    ``at`` is the time of this verification, ``whole`` that of the last one that went through the whole record.
    """

    KIND: ClassVar[str] = "ledger.checkpoint"
    VERSION: ClassVar[int] = 1
    head: SignedHead
    at: str
    whole: str
    frontier: str
    balances: tuple[Values, ...]
    editions: tuple[Values, ...]
    charges: tuple[Values, ...]

    @classmethod
    def of(cls, state: MemoryLedgerState, head: SignedHead, *, at: str, whole: str) -> "Checkpoint":
        """What a replay up to a signed head leads to."""
        waiting = (charge for charge in state.charges.values() if charge.state is State.RESERVED)
        return cls(
            head=head,
            at=at,
            whole=whole,
            frontier=end_of(state).frontier.text,
            balances=tuple(_values(balance_row(one), columns(BALANCE)) for one in state.kept.values()),
            editions=tuple(_values(edition_row(one), columns(EDITION)) for one in state.editions.values()),
            charges=tuple(_values(charge_row(one), columns(CHARGE)) for one in waiting),
        )

    def state(self) -> MemoryLedgerState:
        """The state to go on from, without what was decided: that is read from the record again."""
        state, head = MemoryLedgerState(), self.head.head
        for balance in map(balance_of, map(named(BALANCE), self.balances)):
            state.put_balance(balance)
        for edition in map(edition_of, map(named(EDITION), self.editions)):
            state.put_edition(edition)
        for charge in map(charge_of, map(named(CHARGE), self.charges)):
            state.put_charge(charge)
        state.head = Totals(
            number=head.number,
            digest=head.digest,
            at=head.at,
            epsilon=head.epsilon,
            delta=head.delta,
            decisions=head.decisions,
            frontier=Frontier.read(self.frontier),
        )
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCheckpoint:
    """A checkpoint and the signature of whoever verified: it is believed instead of a whole replay.

    Guarantee: :meth:`holds` for the verifier's own key says that the verifier made it. Assumes: that key is the
    verifier's alone; whoever has it can say that anything was verified. It holds names and amounts of budgets, no data.
    """

    KIND: ClassVar[str] = "ledger.signed_checkpoint"
    VERSION: ClassVar[int] = 1
    checkpoint: Checkpoint
    signature: str

    @classmethod
    def sign(cls, checkpoint: Checkpoint, key: SigningKey) -> "SignedCheckpoint":
        """Sign a checkpoint."""
        return cls(checkpoint=checkpoint, signature=key.sign(_signed(checkpoint)))

    @classmethod
    def read(cls, text: str) -> "SignedCheckpoint":
        """Read what :attr:`text` wrote."""
        read = _CHECKPOINTS.decode(parse(text), "checkpoint")
        if not isinstance(read, SignedCheckpoint):
            raise InvalidInput("this is not a checkpoint of a ledger; nothing was verified.")
        return read

    @property
    def text(self) -> str:
        """The checkpoint as canonical JSON."""
        return canonical(encode(self))

    def holds(self, public_text: str) -> bool:
        """Whether the owner of a public key signed this checkpoint."""
        return signature_holds(public_text, self.signature, _signed(self.checkpoint))


_CHECKPOINTS = Registry((Head, SignedHead, Checkpoint, SignedCheckpoint))


def _signed(checkpoint: Checkpoint) -> bytes:
    return canonical(encode(checkpoint)).encode()


def _values(row: dict[str, object], names: Iterable[str]) -> Values:
    return tuple(row[name] for name in names)  # type: ignore[misc]  # rows hold texts, whole numbers, truth values, None


def followed_since(
    transaction: Transaction, checkpoint: Checkpoint, *, heads: Sequence[SignedHead], record: SignedRecord
) -> tuple[MemoryLedgerState, SignedHead] | None:
    """The state and the head of a record in which nothing is wrong since a checkpoint; None where that is not shown.

    Guarantee: if there is a state, and the checkpoint's was that of a whole replay, then a whole replay leads to the
    same head and the same root, and balances, versions and open charges are stored as they follow. Not looked at are
    rows of the record above the checkpoint, which its digest names, and stored charges and answers that were settled
    before it, which are proven wherever they are used. Assumes: SHA-256 has no collisions. None is no finding: the
    whole record then says what is wrong, if anything is.
    """
    try:
        return _followed(transaction, checkpoint, heads=heads, record=record)
    except (SfumatoError, ValueError):  # a signed head may state anything for a hash
        return None


def _followed(
    transaction: Transaction, checkpoint: Checkpoint, *, heads: Sequence[SignedHead], record: SignedRecord
) -> tuple[MemoryLedgerState, SignedHead] | None:
    start = checkpoint.head.head
    for head in (checkpoint.head, *heads):
        row = transaction.row(head.head.number)
        if row is None or not row.digest == row.expected == head.head.digest or not record.holds(head, transaction):
            return None
        if head.head.number < start.number and not _begins(transaction, head.head, start):
            return None
    state, before = checkpoint.state(), checkpoint.state()
    transaction.believe(start.ledger, start.state, record.opening)
    state.decided = transaction.decisions_at(end_of(state))
    last = [checkpoint.head.text]
    since = _noting(transaction.rows(start.number), last)
    if any(check_record(since, heads=(), key=record.public_key, state=state)):
        return None
    end = SignedHead.read(last[0])
    root = end.head.state
    same = all(head.head.state in ("", root) for head in heads if head.head.number == end.head.number)
    if not same or transaction.totals() != replace(end_of(state), state=root):
        return None
    transaction.believe(start.ledger, root, record.opening)
    shown = _stored(transaction, state) and _changed(transaction, before, state, start.state, root)
    return (state, end) if shown else None


def _begins(transaction: Transaction, early: Head, late: Head) -> bool:
    """Whether an earlier head is one of the record that a later head ends: rows between them may be anybody's."""
    nodes, sizes = stored_nodes(transaction), (early.number, late.number)
    if not early.tree or not late.tree:
        return False
    roots = bytes.fromhex(early.tree), bytes.fromhex(late.tree)
    entry = inclusion_path(early.number - 1, late.number, nodes)
    return consistency_holds(*sizes, *roots, consistency_path(*sizes, nodes)) and inclusion_holds(
        leaf_hash(early.digest), early.number - 1, late.number, entry, roots[1]
    )


def _noting(rows: Iterable[Row], last: list[str]) -> Iterator[Row]:
    """The same rows; the signed head of the last one is noted."""
    for row in rows:
        last[0] = row.head
        yield row


def _stored(transaction: Transaction, state: MemoryLedgerState) -> bool:
    """Whether all that a charge may rest on, and all that the new entries changed, is stored as it follows."""
    waiting = {number: one for number, one in state.charges.items() if one.state is State.RESERVED}
    same = (
        {balance.name: balance for balance in transaction.balances()} == state.kept
        and {edition.dataset: edition for edition in transaction.editions()} == state.editions
        and {charge.number: charge for charge in transaction.unsettled()} == waiting
        and all(transaction.charge(number) == charge for number, charge in state.charges.items())
        and all(transaction.answer(question) == answer for question, answer in state.answers.items())
    )
    transaction.prove()
    return same


def _changed(
    transaction: Transaction, before: MemoryLedgerState, after: MemoryLedgerState, root_before: str, root_after: str
) -> bool:
    """Whether the new entries changed the map and nothing else did: undone, they give the root that it had."""
    old, new = dict(leaves_of(before)), dict(leaves_of(after))
    made = transaction.map_at(root_after)
    made.fetch([place_of(key) for key in new])
    for key, leaf in new.items():
        if made.get(place_of(key)) != leaf:
            return False
        if key not in old:
            made.take_out(place_of(key))
        elif old[key] != leaf:
            made.put(place_of(key), old[key])
    return made.root() == root_before
