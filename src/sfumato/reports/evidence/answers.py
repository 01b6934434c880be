"""The stored answer of a charge, checked again from itself alone."""

from dataclasses import dataclass

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import canonical
from sfumato.core.release import Release
from sfumato.errors import SfumatoError
from sfumato.governance.key_documents import Role
from sfumato.governance.keyring import KeyRing
from sfumato.governance.provenance import Provenance
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports
from sfumato.reports.verify import Finding, parsed, verify

__all__ = ["Answer", "answer_of", "certified_then"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What checking a stored answer found; ``release`` only where nothing is wrong with it.

    ``signer`` is the key that the certificate names, and ``release`` is not given for a certificate that verifies but
    does not state its own charge.
    """

    findings: tuple[Finding, ...]
    signer: str | None
    release: Release | None

    @property
    def consistent(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def answer_of(charge: Provenance, ring: KeyRing | None = None) -> Answer | None:
    """Check the stored answer of a charge; None where there is none.

    Where the keys of the ledger have roles, ``ring`` says who might sign certificates when it was stored: what another
    key signed is a finding.
    """
    if charge.certificate is None:
        return None
    strange = [Finding(field="charge", problem=problem) for problem in charge.disagreements]
    try:
        document = parsed(charge.certificate)
    except SfumatoError as wrong:
        return Answer(findings=(Finding(field="document", problem=str(wrong)), *strange), signer=None, release=None)
    outcome = verify(document)
    signature = document.get("signature")
    signer = signature.get("key") if isinstance(signature, dict) else None
    if ring is not None and not certified_then(charge, signer, ring):
        problem = "is no key that the root had certified for releases when this was stored"
        strange.append(Finding(field="signature.key", problem=problem))
    findings = (*outcome.findings, *strange)
    release = None
    if not findings:
        release = Release(
            statement=DECLARATIONS.decode(document["statement"], "statement"),
            certificate=Certificate(canonical(document)),
            charged=Budget.none(),
            repeated=False,
            presenter=Reports(),
        )
    return Answer(findings=findings, signer=signer if isinstance(signer, str) else None, release=release)


def certified_then(charge: Provenance, signer: object, ring: KeyRing) -> bool:
    """Whether a key might sign certificates where the record stores the answer of a charge."""
    place = charge.settled
    if place is None or not isinstance(signer, str):
        return False
    return ring.allows(Role.RELEASE, signer, place.number, place.at)
