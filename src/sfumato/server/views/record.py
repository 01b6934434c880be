"""The record as an auditor reads it: every entry, what each release rests on, and whether all of it holds."""

import io
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.entries import Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.provenance import ChargeFate, Provenance
from sfumato.governance.receipts import Receipt, ReceiptCheck, check_receipt
from sfumato.governance.terms import written
from sfumato.governance.verify import LedgerFinding
from sfumato.reports.evidence import Declared, Scope, pack, write
from sfumato.server.views.snapshot import Snapshot

__all__ = [
    "ChargeLine",
    "EntryLine",
    "Packed",
    "Proof",
    "RecordVerified",
    "charges_of",
    "entries_of",
    "evidence_zip",
    "proof_of",
    "verified_now",
]

LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a pack: the same record gives the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLine:
    """An entry of the record: its number, its kind, when it was made, and its digest."""

    number: int
    kind: str
    at: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeLine:
    """A charge as an auditor lists it, with what the record does not say of it."""

    number: int
    at: str
    fate: ChargeFate
    account: str
    datasets: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction
    purpose: str | None
    recipient: str | None
    approvals: tuple[int, ...]
    identifier: str | None
    sound: bool | None
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordVerified:
    """What a verification of the whole record found, and when it was made."""

    at: str
    entries: int
    findings: tuple[LedgerFinding, ...]
    head: SignedHead | None

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The inclusion proof of a release: its receipt, and what checking it found."""

    charge: int
    receipt: Receipt
    checked: ReceiptCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An evidence pack as one file, and whether the record and every stored answer in it verify."""

    content: bytes
    files: int
    sound: bool
    draft: bool


def entries_of(ledger: Ledger, *, first: int, number: int) -> tuple[EntryLine, ...]:
    """Some entries of the record, the newest of them first; ``first`` is the number of the newest."""
    found = [
        EntryLine(number=row.number, kind=row.kind, at=_at(row), digest=row.digest)
        for row in ledger.rows()
        if first - number < row.number <= first
    ]
    return tuple(reversed(found))


def _at(row: Row) -> str:
    try:
        return row.entry.at
    except SfumatoError:
        return ""


def charges_of(snapshot: Snapshot) -> tuple[ChargeLine, ...]:
    """Every charge, the newest first."""
    return tuple(_line(charge, snapshot) for charge in reversed(snapshot.trail.charges))


def _line(charge: Provenance, snapshot: Snapshot) -> ChargeLine:
    answer = snapshot.answers.get(charge.number)
    return ChargeLine(
        number=charge.number,
        at=charge.charged.at,
        fate=charge.fate,
        account=charge.account.name,
        datasets=tuple(f"{each.dataset.name} {each.dataset.edition}" for each in charge.readings),
        epsilon=charge.cost.epsilon,
        delta=charge.cost.delta,
        purpose=charge.purpose,
        recipient=charge.recipient,
        approvals=tuple(each.proposal.number for each in charge.approvals),
        identifier=charge.identifier,
        sound=None if answer is None else answer.consistent,
        missing=charge.missing,
    )


def verified_now(ledger: Ledger, *, now: datetime) -> RecordVerified:
    """Verify the whole record: every digest, signature and rule from the first entry on."""
    done = ledger.verification()
    entries = 0 if done.head is None else done.head.head.number
    return RecordVerified(at=written(now), entries=entries, findings=done.findings, head=done.head)


def proof_of(ledger: Ledger, charge: Provenance) -> Proof:
    """The way from a stored answer to the signed head of the record, checked as a reader would check it."""
    if charge.settled is None or charge.certificate is None:
        raise SfumatoError(f"charge {charge.number} has no stored answer, so there is nothing to prove of it.")
    receipt = ledger.receipt(charge.settled.number)
    return Proof(
        charge=charge.number,
        receipt=receipt,
        checked=check_receipt(charge.certificate, receipt, key=ledger.public_key),
    )


def evidence_zip(ledger: Ledger, scope: Scope, declared: Declared) -> Packed:
    """The evidence pack of a scope as one file; a draft where reason or legal basis are missing."""
    made = pack(ledger, scope, declared)
    with tempfile.TemporaryDirectory() as folder:
        files = write(made, Path(folder) / "evidence")
        content = zipped({str(file.relative_to(folder)): file.read_bytes() for file in files})
    return Packed(content=content, files=len(files), sound=made.sound, draft=bool(declared.grounds.missing))


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Files as one archive that says nothing of this machine or of the time."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), files[name], zipfile.ZIP_DEFLATED)
    return held.getvalue()
