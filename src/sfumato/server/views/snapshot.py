"""A ledger as pages read it: every charge with its verified answer, up to one head, worked out once for each head."""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.governance.balances import Balance
from sfumato.governance.decision_state import DecisionState
from sfumato.governance.entries import Reserved, unwrapped
from sfumato.governance.ledger import Ledger
from sfumato.governance.overview import Overview, overview
from sfumato.governance.provenance import Provenance, Trail
from sfumato.reports.evidence.answers import Answer, answer_of

__all__ = ["Snapshot", "Snapshots", "snapshot_of"]

TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that pages need of a ledger, up to the head of ``trail``.

    ``keys`` are the charges by the idempotency key that they were made under, ``answers`` the stored answers of those
    that have one, each checked again from itself. ``versions`` are all versions of datasets, each with the entry that
    declared it, and ``closed`` those that were closed.

    Guarantee: a function of the record and its stored state; no data is read. Public: to auditors all of it, to others
    what :mod:`sfumato.server.views.gate` lets through.
    """

    trail: Trail
    keys: Mapping[str, Provenance]
    answers: Mapping[int, Answer]
    decisions: DecisionState
    overview: Overview
    balances: Mapping[str, Balance]
    versions: Mapping[Dataset, int]
    closed: frozenset[Dataset]

    def release(self, charge: Provenance) -> Release | None:
        """The answer of a charge, where it has one and nothing is wrong with it."""
        answer = self.answers.get(charge.number)
        return None if answer is None else answer.release

    def found(self, identifier: str) -> Provenance:
        """The charge of a release."""
        return self.trail.find(identifier)


class Snapshots:
    """The snapshot of a ledger at its newest head; safe for threads.

    An answer never changes once it is stored, so that each is verified once in the life of this object.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._answers: dict[int, Answer] = {}
        self._last: Snapshot | None = None

    def now(self) -> Snapshot:
        """The ledger as it stands; the one before is handed out again where nothing was entered since."""
        with self._lock:
            for _ in range(TRIES):
                with self._ledger.record.reading() as transaction:
                    number = transaction.end().number
                if self._last is not None and self._last.trail.head.head.number == number:
                    return self._last
                made = self._made()
                if made.trail.head.head.number == made.overview.entries:
                    break  # nothing came in between
            self._last = made
            return made

    def _made(self) -> Snapshot:
        with self._ledger.record.reading() as transaction:
            decisions, editions = transaction.decision_state(), transaction.editions()
            balances = {balance.name: balance for balance in transaction.balances()}
        shown = overview(self._ledger)
        trail = Trail.of(self._ledger)
        ring = self._ledger.keys()
        names: dict[int, str] = {}
        for row in self._ledger.rows():
            entry = unwrapped(row.entry) if row.kind == Reserved.KIND else None
            if isinstance(entry, Reserved) and entry.idempotency is not None:
                names[row.number] = entry.idempotency
        for charge in trail.charges:
            if charge.certificate is not None and charge.number not in self._answers:
                answer = answer_of(charge, ring)
                if answer is not None:
                    self._answers[charge.number] = answer
        return Snapshot(
            trail=trail,
            keys={names[charge.number]: charge for charge in trail.charges if charge.number in names},
            answers=dict(self._answers),
            decisions=decisions,
            overview=shown,
            balances=balances,
            versions={edition.dataset: edition.declared for edition in editions},
            closed=frozenset(edition.dataset for edition in editions if edition.closed),
        )


_HELD: WeakKeyDictionary[Ledger, Snapshots] = WeakKeyDictionary()
_HOLDING = Lock()


def snapshot_of(ledger: Ledger) -> Snapshot:
    """The snapshot of a ledger that this process holds open; all pages share it."""
    with _HOLDING:
        held = _HELD.setdefault(ledger, Snapshots(ledger))
    return held.now()
