"""The pack as one document: everything else in its folder is written from it or checked against it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.documents import Json
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.balances import Balance
from sfumato.governance.ledger_state import lifetime_line
from sfumato.governance.overview import lifetimes
from sfumato.governance.provenance import ChargeFate, Provenance, Trail
from sfumato.governance.verify import LedgerFinding
from sfumato.reports.evidence import metadata, principles, risks, shape
from sfumato.reports.evidence.answers import Answer, answer_of
from sfumato.reports.evidence.batches import batch_effects
from sfumato.reports.evidence.declared import Declared
from sfumato.reports.evidence.lineage import certificate_file, described, receipt_file
from sfumato.reports.evidence.registry import registry
from sfumato.reports.publication import standing
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["NOTE", "Pack", "Scope", "pack"]

NOTE = (
    "This pack gathers what the record of a ledger says about releases, with figures that follow from their "
    "guarantees. It gives no verdict and no legal opinion. null, or 'not declared', means that the record does not "
    "say it; nothing was put in its place."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a pack is about: one release (by identifier or number of its charge), an account with all below it, or all.

    >>> Scope(account="hospital/oncology").by
    'account'
    """

    release: str | None = None
    account: str | None = None

    def __post_init__(self) -> None:
        if self.release is not None and self.account is not None:
            raise InvalidInput("a pack is about one release or about one account; nothing was written. Give one.")

    @property
    def by(self) -> str:
        """Which of the three it is."""
        return "release" if self.release is not None else "account" if self.account is not None else "all"

    def of(self, trail: Trail) -> tuple[Provenance, ...]:
        """The charges that it is about; one that was given back only where it is asked for by name."""
        if self.release is not None:
            return (trail.find(self.release),)
        found = trail.within(account=self.account)
        if self.account is not None and not found:
            raise InvalidInput(
                f"the record holds no charge of {self.account!r} or below it; nothing was written. "
                "See them all: sfumato releases"
            )
        return tuple(charge for charge in found if charge.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The evidence, the metadata, the certificates and their receipts, ready to be written.

    ``fair`` and ``registry`` exist only to be published: a pack whose reason or legal basis is missing is a draft, and
    has neither.

    Guarantee: a function of the record up to its head, of the scope and of what the publisher declared; no clock and no
    data is read. Public: all of it.
    """

    evidence: dict[str, Json]
    fair: dict[str, Json] | None
    registry: dict[str, Json] | None
    certificates: dict[str, str]
    receipts: dict[str, str]
    head: str

    @property
    def sound(self) -> bool:
        """Whether the record and every stored answer in scope verify."""
        record, charges = self.evidence["record"], self.evidence["charges"]
        if not isinstance(record, dict) or not record["verified"] or not isinstance(charges, dict):
            return False
        return charges["unsound"] == 0


def pack(ledger: "Ledger", scope: Scope, declared: Declared | None = None) -> Pack:
    """Gather the evidence of a ledger; what has not the shape of its schema is refused."""
    declared = Declared() if declared is None else declared
    findings, trail = ledger.verify(), Trail.of(ledger)
    charges = scope.of(trail)
    touched = _touched(charges, [*ledger.balances(), *lifetimes(ledger)])
    key, ring = ledger.public_key, ledger.keys()
    answers = {charge.number: answer_of(charge, ring) for charge in charges}
    sound = [
        (charge, answer.release)
        for charge in charges
        if (answer := answers[charge.number]) is not None and answer.release is not None
    ]
    grounds = declared.grounds
    for _, release in sound:
        standing(release, grounds)  # on record for publication every release has its text for every reader
    receipts = _receipts(ledger, [charge for charge, _ in sound], trail.head)
    releases = [described(charge, answers[charge.number], key=key, ring=ring, receipts=receipts) for charge in charges]
    sections = [
        risks.singling_out(charges, touched),
        risks.linkage(charges, touched),
        risks.inference(charges, touched),
        risks.hipaa(charges, touched),
        principles.five_safes(charges, problems=len(findings) + len(trail.unread)),
        principles.care(charges),
        principles.fair(declared, published=len(sound)),
        batch_effects([(charge, said["batches"]) for charge, said in zip(charges, releases, strict=True)]),
    ]
    evidence: dict[str, Json] = {
        "kind": "sfumato.evidence",
        "version": 1,
        "note": NOTE,
        "publication": grounds.document(),
        "code": f"sfumato {__version__}",
        "ledger": trail.head.head.ledger,
        "scope": {"by": scope.by, "of": scope.release or scope.account},
        "head": {
            "entry": trail.head.head.number,
            "digest": trail.head.head.digest,
            "at": trail.head.head.at,
            "text": trail.head.text,
            "key": key,
        },
        "record": _record(findings, trail),
        "charges": _counted(charges, trail.within(account=scope.account), answers),
        "releases": list(releases),
        "sections": [section.document for section in sections],
        "questions": [
            *(
                f"Charge {charge.number}: {', '.join(charge.missing)} not declared."
                for charge in charges
                if charge.missing
            ),
            *(question for section in sections for question in section.questions),
        ],
    }
    public = None if grounds.missing else registry(sound, declared)
    shape.check(evidence, "evidence")
    if public is not None:
        shape.check(public, "registry")
    return Pack(
        evidence=evidence,
        fair=None if grounds.missing else metadata.fair(sound, declared),
        registry=public,
        certificates={certificate_file(charge.number): _file(release) for charge, release in sound},
        receipts=receipts,
        head=trail.head.text,
    )


def _receipts(ledger: "Ledger", charges: Sequence[Provenance], head: SignedHead) -> dict[str, str]:
    """The receipts of stored answers by their files, each leading to the head of the pack.

    An entry from before entries had a random part has none; nor has one of a record that does not hold.
    """
    made: dict[str, str] = {}
    for charge in charges:
        if charge.settled is None:
            continue
        try:
            made[receipt_file(charge.number)] = ledger.receipt(charge.settled.number, head).text + "\n"
        except SfumatoError:
            continue
    return made


def _touched(charges: Sequence[Provenance], balances: Sequence[Balance]) -> list[Balance]:
    """The balances that any of these charges counts against."""
    names = {line.name for charge in charges for line in charge.lines}
    lives = {name.rpartition(" × ")[0] for name in names if name.startswith("lifetime ")}  # charged several times over
    accounts = {name.removeprefix("window ").rpartition(" ")[0] for name in names if name.startswith("window ")}
    lives |= {lifetime_line(path) for path in accounts}
    return [balance for balance in balances if balance.name in names | lives]


def _record(findings: Sequence[LedgerFinding], trail: Trail) -> Json:
    return {
        "verified": not findings and not trail.unread,
        "findings": [{"entry": finding.entry, "problem": finding.problem} for finding in findings],
        "unread": [{"entry": place.number, "problem": problem} for place, problem in trail.unread],
    }


def _counted(charges: Sequence[Provenance], near: Sequence[Provenance], answers: dict[int, Answer | None]) -> Json:
    answered = sum(charge.fate is ChargeFate.ANSWERED for charge in charges)
    return {
        "answered": answered,
        "without_answer": sum(charge.counts for charge in charges) - answered,
        "given_back": sum(not charge.counts for charge in near),
        "unsound": sum(answer is not None and not answer.consistent for answer in answers.values()),
    }


def _file(release: Release) -> str:
    return release.certificate.to_json()
