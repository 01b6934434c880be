"""Certificates that are verified from the root of an institution, not by one key: who might sign, and as of when."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.documents import Json, canonical
from sfumato.core.finding import Finding
from sfumato.core.signature import read_public_key
from sfumato.errors import NotDeclared, SfumatoError
from sfumato.governance.entries import Committed
from sfumato.governance.key_documents import KeyCertificate, Role, SignedByRoot
from sfumato.governance.keyring import KeyRing
from sfumato.governance.receipts import Receipt, check_receipt
from sfumato.reports.verify import verify

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["RootedVerification", "verify_by_certificate", "verify_by_ledger", "verify_by_receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootedVerification:
    """The outcome: no findings means consistent, and signed by a key that the root certified for releases.

    ``said`` is by which certificate or entry that is known, and as of when about revocation.
    """

    findings: tuple[Finding, ...]
    said: str

    @property
    def consistent(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        if self.findings:
            return "\n".join(f"{finding.field}: {finding.problem}" for finding in self.findings)
        return f"consistent, and {self.said}"


def verify_by_certificate(
    document: dict[str, Json], *, root: str | Path, certificate: SignedByRoot
) -> RootedVerification:
    """Check a certificate of a release and that the root vouches for the key that signed it, from two files alone.

    Guarantee: the root said that this key signs releases of this ledger. Assumes: the key was not revoked since, which
    only the ledger can say, and a last day is judged by the time that the release states itself.
    """
    trusted, said = read_public_key(root), certificate.said
    outcome = verify(document)
    findings = list(outcome.findings)
    if not certificate.holds(trusted):
        findings.append(_finding("the certificate of the key is not signed by the root that is trusted"))
    if not isinstance(said, KeyCertificate) or said.role is not Role.RELEASE:
        findings.append(_finding("what the root signed does not certify a key for releases"))
        return RootedVerification(findings=tuple(findings), said="")
    if said.key != _signer(document):
        findings.append(_finding("is not the key that the root certified: someone else signed this"))
    if said.ledger != _at(document, "account", "ledger"):
        findings.append(Finding(field="statement.account.ledger", problem="is not the ledger that the key is for"))
    issued = _at(document, "issued")
    if said.until is not None and (issued is None or issued[:10] > said.until):
        findings.append(Finding(field="statement.issued", problem=f"is after the last day of the key, {said.until}"))
    words = f"signed by a key that the root certified for releases ({said.holder}, document {said.number} of the root)"
    doubt = "whether the key was revoked since is not known from this: ask the ledger, --ledger FILE"
    return RootedVerification(findings=tuple(findings), said=f"{words}; {doubt}")


def verify_by_ledger(document: dict[str, Json], *, ledger: "Ledger") -> RootedVerification:
    """Check a certificate of a release, that the record stores it, and that its key might sign certificates there.

    Guarantee: as of the ledger's head, the root certified the key before the entry that stores the certificate, and did
    not revoke it before that entry; what is revoked later does not touch it.
    """
    ring = ledger.keys()
    if ring is None:
        raise NotDeclared("this ledger has no root; nothing was verified. Verify with the key of its publisher: --key")
    place = _stored(document, ledger)
    if place is None:
        unknown = Finding(field="document", problem="is not stored in this ledger: its place is not known")
        return RootedVerification(findings=(*verify(document).findings, unknown), said="")
    return _at_its_place(document, ring, *place, ledger.head().head.number)


def verify_by_receipt(document: dict[str, Json], *, root: str | Path, receipt: Receipt) -> RootedVerification:
    """The same from files alone: the receipt shows the entry that stores the certificate, and the keys of the root.

    Guarantee: the receipt is of this very certificate and holds from the root
    (:func:`~sfumato.governance.receipts.check_receipt`), and the root had certified the key at that entry. Assumes:
    that the receipt leaves no later word of the root out, which a published head from after it shows.
    """
    try:
        ring, at = receipt.ring, receipt.at
    except SfumatoError as wrong:
        unshown = Finding(field="receipt", problem=f"{wrong} Get a new one: sfumato receipt CERTIFICATE")
        return RootedVerification(findings=(*verify(document).findings, unshown), said="")
    trusted = read_public_key(root)
    if trusted not in ring.roots:
        foreign = _finding("was certified by another root than the one that is trusted")
        return RootedVerification(findings=(*verify(document).findings, foreign), said="")
    problems = check_receipt(canonical(document), receipt, root=trusted).problems
    if problems:  # a place in the record that another certificate has says nothing of this one
        unheld = tuple(Finding(field="receipt", problem=problem) for problem in problems)
        return RootedVerification(findings=(*verify(document).findings, *unheld), said="")
    return _at_its_place(document, ring, receipt.number, at, receipt.head.head.number)


def _at_its_place(document: dict[str, Json], ring: KeyRing, number: int, at: str, end: int) -> RootedVerification:
    """Whether the key of a certificate might sign it in the entry that stores it, and what became of the key since."""
    findings, signer = list(verify(document).findings), _signer(document)
    holders = [one for one in ring.keys if (one.role, one.key) == (Role.RELEASE, signer) and one.valid(number, at)]
    if not holders:
        findings.append(_finding(f"might not sign certificates at entry {number}, which stores this"))
        return RootedVerification(findings=tuple(findings), said="")
    ended = holders[-1].ended
    since = f"revoked later, by entry {ended}, " if ended is not None else "not revoked "
    words = f"signed by a key that the root certified for releases ({holders[-1].holder}), stored in entry {number}"
    return RootedVerification(findings=tuple(findings), said=f"{words}; the key was {since}as of entry {end}")


def _stored(document: dict[str, Json], ledger: "Ledger") -> tuple[int, str] | None:
    """The entry that stores a certificate and its time; believed by the charge that names it, which is proven."""
    text, identifier = canonical(document), _at(document, "identifier")
    for row in ledger.rows():
        if identifier is None or row.kind != Committed.KIND or identifier not in row.body:
            continue
        try:
            entry = row.entry
            charge = ledger.charge(entry.charge) if isinstance(entry, Committed) else None
        except SfumatoError:
            continue
        if charge is None or not isinstance(entry, Committed) or entry.certificate != text:
            continue
        if (charge.answer, charge.answered) == (row.number, row.digest) and row.digest == row.expected:
            return row.number, entry.at
    return None


def _finding(problem: str) -> Finding:
    return Finding(field="signature.key", problem=problem)


def _signer(document: dict[str, Json]) -> str | None:
    signature = document.get("signature")
    signer = signature.get("key") if isinstance(signature, dict) else None
    return signer if isinstance(signer, str) else None


def _at(document: dict[str, Json], *names: str) -> str | None:
    found: Json = document.get("statement")
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else None
