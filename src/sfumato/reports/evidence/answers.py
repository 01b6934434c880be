"""The stored answer of a charge, checked again from itself alone."""

from dataclasses import dataclass

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import canonical
from sfumato.core.release import Release
from sfumato.errors import SfumatoError
from sfumato.governance.provenance import Provenance
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports
from sfumato.reports.verify import Finding, parsed, verify

__all__ = ["Answer", "answer_of"]


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


def answer_of(charge: Provenance) -> Answer | None:
    """Check the stored answer of a charge; None where there is none."""
    if charge.certificate is None:
        return None
    strange = [Finding(field="charge", problem=problem) for problem in charge.disagreements]
    try:
        document = parsed(charge.certificate)
    except SfumatoError as wrong:
        return Answer(findings=(Finding(field="document", problem=str(wrong)), *strange), signer=None, release=None)
    outcome = verify(document)
    findings = (*outcome.findings, *strange)
    signature = document.get("signature")
    signer = signature.get("key") if isinstance(signature, dict) else None
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
