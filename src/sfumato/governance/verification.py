"""One verification of a ledger: of the whole record, of its chain alone, or of what came since a checkpoint."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sfumato.core.signature import SigningKey
from sfumato.errors import LedgerError, Refused
from sfumato.governance import log
from sfumato.governance.anchor import SignedHead
from sfumato.governance.checkpoint import Checkpoint, SignedCheckpoint, followed_since
from sfumato.governance.entries import Row
from sfumato.governance.ledger_state import MemoryLedgerState
from sfumato.governance.seen_head import SeenHead
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.terms import written
from sfumato.governance.transaction import Transaction
from sfumato.governance.verify import LedgerFinding, check_record

__all__ = ["LedgerVerification", "Watch", "verification"]

Watch = Callable[[int, int], None]
"""Is told how many entries were gone through, and how many there are."""
OFTEN = 500  # entries between two of these


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerVerification:
    """What a verification found, how far the record went, and which entries it looked at.

    ``since`` is the entry of the checkpoint that was believed; 0 where the whole record was gone through.
    """

    findings: tuple[LedgerFinding, ...]
    head: SignedHead | None
    since: int
    replayed: bool
    _state: MemoryLedgerState | None = field(default=None, repr=False)
    _whole: str | None = None

    def checkpoint(self, key: SigningKey, at: datetime) -> SignedCheckpoint:
        """What to remember for the next time, signed by the verifier; refused where anything is wrong."""
        if self.findings or self._state is None or self.head is None:
            raise Refused("a checkpoint is made of a record that was replayed and holds; none was made.")
        whole = written(at) if self._whole is None else self._whole
        return SignedCheckpoint.sign(Checkpoint.of(self._state, self.head, at=written(at), whole=whole), key)


def verification(
    record: SignedRecord,
    *,
    heads: Sequence[SignedHead] = (),
    since: Checkpoint | None = None,
    chain_only: bool = False,
    every_signature: bool = False,
    watch: Watch | None = None,
) -> LedgerVerification:
    """Verify a ledger that might be forged; a ``since`` that was signed by the verifier is believed.

    Where what came since a checkpoint is not in order, or cannot be told from it alone, the whole record is gone
    through, and held to the checkpoint too.
    """
    start = time.monotonic()
    done = _verification(record, heads, since, watch, chain_only=chain_only, every_signature=every_signature)
    entries = 0 if done.head is None else done.head.head.number - done.since
    seconds = round(time.monotonic() - start, 3)
    level = logging.WARNING if done.findings else logging.INFO
    log.happened("ledger.verified", level=level, entries=entries, findings=len(done.findings), seconds=seconds)
    return done


def _verification(
    record: SignedRecord,
    heads: Sequence[SignedHead],
    since: Checkpoint | None,
    watch: Watch | None,
    *,
    chain_only: bool,
    every_signature: bool,
) -> LedgerVerification:
    key, anchored = record.public_key, record.anchor.readable()
    known = (*heads, *(() if anchored is None else (anchored,)))
    if since is not None and since.head.head.ledger != record.identifier:
        raise LedgerError("this checkpoint is one of another ledger; nothing was verified.")
    with record.store.reading() as transaction:  # whatever it holds
        if since is not None and not chain_only and anchored is not None:
            followed = followed_since(transaction, since, heads=known, record=record)
            if followed is not None:
                state, end = followed
                number = since.head.head.number
                return LedgerVerification(
                    findings=(), head=end, since=number, replayed=True, _state=state, _whole=since.whole
                )
    with record.store.reading() as transaction:  # anew: it believes nothing
        remembered = () if since is None else (since.head,)
        state, last = MemoryLedgerState(), [""]
        found = tuple(
            check_record(
                _watched(transaction, watch, last),
                heads=(*known, *remembered),
                key=key,
                kept=None if chain_only else transaction,
                every_signature=every_signature,
                replayed=not chain_only,
                state=state,
            )
        )
    if anchored is None and not isinstance(record.anchor, SeenHead):
        gone = LedgerFinding(entry=0, problem=f"the anchor {record.anchor.name} is missing or cannot be read")
        found = (*found, gone)
    return LedgerVerification(
        findings=found,
        head=None if found or not last[0] else SignedHead.read(last[0]),
        since=0,
        replayed=not chain_only,
        _state=None if chain_only else state,
    )


def _watched(transaction: Transaction, watch: Watch | None, last: list[str]) -> Iterator[Row]:
    """The rows of the record; whoever watches is told, and the head of the last one is noted."""
    total = 0 if watch is None else _length(transaction)
    for row in transaction.rows():
        if watch is not None and row.number % OFTEN == 0:
            watch(row.number, total)
        last[0] = row.head
        yield row


def _length(transaction: Transaction) -> int:
    """How many entries the stored state says there are, for who watches; 0 where it cannot be read."""
    try:
        end = transaction.totals()
    except LedgerError:
        return 0  # which is found, and named, at the end
    return 0 if end is None else end.number
