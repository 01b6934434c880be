"""The provenance of a charge as plain JSON; ``null`` stands for what the record does not say."""

from collections.abc import Container, Sequence

from sfumato.core.documents import Json, encode
from sfumato.core.exact import fraction_text
from sfumato.core.statement import Statement
from sfumato.core.units import describe
from sfumato.errors import SfumatoError
from sfumato.governance.keyring import KeyRing
from sfumato.governance.provenance import Approval, Later, Place, Provenance, ProvenanceLine, Reading
from sfumato.reports.evidence.answers import Answer, certified_then
from sfumato.reports.evidence.batches import batches_of
from sfumato.reports.explain import explain
from sfumato.reports.particulars import asked, margins

__all__ = ["about", "certificate_file", "described", "listed", "receipt_file"]

LANGUAGES = ("en", "zh")
STATED = ("issued", "limit", "query", "sensitivity", "mechanism", "law", "event", "guarantee", "values", "found")


def certificate_file(number: int) -> str:
    """Where a pack keeps the certificate of a charge: named by its number alone, since identifiers are foreign text.

    >>> certificate_file(12)
    'certificates/charge-12.json'
    """
    return f"certificates/charge-{number}.json"


def receipt_file(number: int) -> str:
    """Where a pack keeps the receipt of a charge's answer.

    >>> receipt_file(12)
    'receipts/charge-12.receipt.json'
    """
    return f"receipts/charge-{number}.receipt.json"


def about(said: Statement) -> str:
    """What was asked, in one line; the kind of the question where there are no words for it yet."""
    try:
        return asked(said, "en")
    except SfumatoError:
        return said.query.KIND


def listed(charge: Provenance) -> dict[str, Json]:
    """One line about a charge: when, where, how much and what became of it."""
    mechanism = charge.statement.get("mechanism")
    return {
        "charge": charge.number,
        "at": charge.charged.at,
        "state": charge.fate.value,
        "counts": charge.counts,
        "account": charge.account.name,
        "datasets": [f"{each.dataset.name} {each.dataset.edition}" for each in charge.readings],
        "epsilon": fraction_text(charge.cost.epsilon),
        "delta": fraction_text(charge.cost.delta),
        "mechanism": str(mechanism.get("kind")) if isinstance(mechanism, dict) else None,
        "purpose": charge.purpose,
        "recipient": charge.recipient,
        "approvals": [approval.proposal.number for approval in charge.approvals],
        "identifier": charge.identifier,
    }


def described(
    charge: Provenance,
    answer: Answer | None,
    *,
    key: str,
    ring: KeyRing | None = None,
    receipts: Container[str] = (),
) -> dict[str, Json]:
    """All that is known of a charge; ``key`` is the ledger's own, to say whether it signed the certificate too.

    Where the keys of a ledger have roles, ``ring`` says which might sign certificates when this one was stored.
    ``receipts`` are the files of those that were made.
    """
    said = charge.statement
    return {
        "charge": _place(charge.charged),
        "state": charge.fate.value,
        "counts": charge.counts,
        "settled": _place(charge.settled),
        "identifier": charge.identifier,
        "code": charge.code,
        "datasets": [_reading(reading) for reading in charge.readings],
        "reads": None if charge.reads is None else list(charge.reads),
        "unit": {"words": describe(charge.unit), "declared": encode(charge.unit)},
        "question": charge.question,
        "spend": encode(charge.cost),
        "account": encode(charge.account),
        "lines": [_line(line) for line in charge.lines],
        "purpose": charge.purpose,
        "recipient": charge.recipient,
        "approvals": [_approval(approval) for approval in charge.approvals],
        "raises": [_approval(approval) for approval in charge.raises],
        "later": [_later(later) for later in charge.later],
        "missing": list(charge.missing),
        "stated": {name: said.get(name) for name in STATED} if said else None,
        "certificate": None if answer is None else _certificate(charge, answer, key, ring, receipts),
        "words": None if answer is None else _words(answer),
        "batches": None if answer is None else batches_of(answer.release),
    }


def _certificate(charge: Provenance, answer: Answer, key: str, ring: KeyRing | None, receipts: Container[str]) -> Json:
    receipt = receipt_file(charge.number)
    return {
        "file": certificate_file(charge.number) if answer.release is not None else None,
        "receipt": receipt if receipt in receipts else None,
        "text": charge.certificate,
        "consistent": answer.consistent,
        "findings": [{"field": finding.field, "problem": finding.problem} for finding in answer.findings],
        "signer": answer.signer,
        "signed_by_ledger": answer.signer == key if ring is None else certified_then(charge, answer.signer, ring),
    }


def _words(answer: Answer) -> Json:
    """What an ethics board reads, in each language, and the margins; only of an answer that verifies."""
    if answer.release is None:
        return None
    try:
        texts: dict[str, Json] = {
            language: list(explain(answer.release, language, "board").split("\n\n")) for language in LANGUAGES
        }
        return texts | {"margins": margins(answer.release, "en")}
    except SfumatoError:
        return None  # a kind of release that has no words yet; its certificate still states all of it


def _place(place: Place | None) -> Json:
    return None if place is None else {"entry": place.number, "digest": place.digest, "at": place.at}


def _reading(reading: Reading) -> Json:
    return {
        "name": reading.dataset.name,
        "version": reading.dataset.edition,
        "population": reading.population,
        "declared": _place(reading.declared),
        "terms": None if reading.terms is None else encode(reading.terms),
        "terms_declared": _place(reading.terms_declared),
        "communities": list(reading.communities),
    }


def _line(line: ProvenanceLine) -> Json:
    return {
        "name": line.name,
        "cap": None if line.cap is None else encode(line.cap),
        "reason": line.reason,
        "opened": _place(line.opened),
    }


def _approval(approval: Approval) -> Json:
    asked, decided = approval.proposal, approval.decision
    votes: Sequence[Json] = [
        {
            "voter": ballot.vote.voter,
            "choice": ballot.vote.choice.value,
            "reason": ballot.vote.reason,
            "signed": ballot.signed,
            "key": ballot.key,
            "record": _place(ballot.place),
        }
        for ballot in approval.ballots
    ]
    return {
        "proposal": asked.number,
        "record": _place(approval.place),
        "action": asked.action.value,
        "subject": asked.subject,
        "proposer": asked.proposer,
        "key": approval.key,
        "amount": None if asked.amount is None else encode(asked.amount),
        "sites": list(asked.sites),
        "reasons": {"benefit": asked.reasons.benefit, "risk": asked.reasons.risk, "choice": asked.reasons.choice},
        "votes": list(votes),
        "outcome": None if decided is None else decided.outcome.value,
        "decided": None if decided is None else decided.at,
        "why": None if decided is None else decided.why,
    }


def _later(later: Later) -> Json:
    said: dict[str, Json] = {"what": later.what, "who": later.who or None, "reason": later.reason or None}
    return {"record": _place(later.place), "key": later.key, **said}
