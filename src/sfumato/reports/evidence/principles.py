"""Five Safes, CARE and FAIR: what the record holds under each head, and what it cannot hold."""

from collections.abc import Iterator, Sequence

from sfumato.core.units import describe
from sfumato.governance.board import signed_by
from sfumato.governance.consent import Terms
from sfumato.governance.provenance import Approval, ChargeFate, Provenance
from sfumato.reports.evidence.declared import Declared
from sfumato.reports.evidence.sections import NOT_DECLARED, Section, distinct

__all__ = ["care", "fair", "five_safes"]


def five_safes(charges: Sequence[Provenance], *, problems: int) -> Section:
    """Projects, people, settings, data and outputs."""
    answered = [charge for charge in charges if charge.fate is ChargeFate.ANSWERED]
    return Section(
        title="Five Safes",
        source="Five Safes framework: projects, people, settings, data, outputs",
        says=("Each head asks how much was done about it; no head is a yes or a no.",),
        columns=("head", "as the record states it"),
        rows=(
            ("projects: purpose", distinct(charge.purpose for charge in charges)),
            ("projects: decided by", distinct(_decision(each) for charge in charges for each in _resting(charge))),
            ("people: recipients", distinct(charge.recipient for charge in charges)),
            ("people: who voted", distinct(_voters(each) for charge in charges for each in _resting(charge))),
            ("settings: code", distinct(charge.code for charge in answered)),
            ("settings: the record", "verified, nothing found" if problems == 0 else f"{problems} findings, see above"),
            ("data: versions", distinct(_version(charge) for charge in charges)),
            ("data: people", distinct(each.population for charge in charges for each in charge.readings)),
            ("outputs: units protected", distinct(describe(charge.unit) for charge in charges)),
            ("outputs: answers", f"{len(answered)} released, {len(charges) - len(answered)} charged without an answer"),
        ),
        questions=(
            "Who are the people behind the recipients, and are they trained and bound by an agreement?",
            "Where do the data lie, and who can reach them past the vault?",
            "Is the purpose in the public interest, and who judged that?",
        ),
    )


def care(charges: Sequence[Provenance]) -> Section:
    """Collective benefit, authority to control, responsibility, ethics."""
    terms = [reading.terms for charge in charges for reading in charge.readings]
    vetoes = [
        f"{later.what} (entry {later.place.number}, {later.who}, {signed_by(later.key)}): {later.reason}"
        for charge in charges
        for later in charge.later
        if later.what.startswith("veto ")
    ]
    communities = [name for charge in charges for each in charge.readings for name in each.communities]
    resting = [each for charge in charges for each in _resting(charge)]
    reasons = [None if each is None else each.proposal.reasons for each in resting]
    forbidden = [None if each is None else ", ".join(each.forbidden) or "nothing" for each in terms]
    return Section(
        title="CARE",
        source="CARE principles for Indigenous data governance",
        says=("A community that holds a veto can stop every later release; what was released before stays public.",),
        columns=("principle", "as the record states it"),
        rows=(
            (
                "collective benefit: the benefit weighed",
                distinct(None if each is None else each.benefit for each in reasons),
            ),
            ("authority to control: communities with a veto", distinct(communities)),
            ("authority to control: vetoes after the releases", distinct(vetoes)),
            ("responsibility: the risk weighed", distinct(None if each is None else each.risk for each in reasons)),
            ("responsibility: why this ε", distinct(None if each is None else each.choice for each in reasons)),
            ("ethics: what the people agreed to", distinct(_consent(each) for each in terms)),
            ("ethics: what is forbidden", distinct(forbidden)),
        ),
        questions=(
            "Is every community that the data are about on the list, and did it choose who speaks for it?",
            "Do the people in the data share in the benefit?",
        ),
    )


def fair(declared: Declared, *, published: int) -> Section:
    """Findable, accessible, interoperable, reusable."""
    return Section(
        title="FAIR",
        source="FAIR guiding principles",
        says=(f"fair.jsonld describes {published} releases, those whose stored certificate verifies.",),
        columns=("principle", "what is there"),
        rows=(
            ("findable", "an identifier for each release, which its certificate and the record state"),
            (
                "accessible",
                f"where: {declared.access or NOT_DECLARED}; the certificate is a file that needs no program",
            ),
            ("interoperable", "schema.org and DCAT terms; numbers as JSON, rationals as text p/q"),
            (
                "reusable",
                f"licence: {declared.licence or NOT_DECLARED}; publisher: {declared.publisher or NOT_DECLARED}; "
                "provenance and error of every number",
            ),
        ),
        questions=tuple(
            f"Nobody declared the {name}: give it with --{name} when the pack is written." for name in declared.missing
        ),
    )


def _resting(charge: Provenance) -> Iterator[Approval | None]:
    """The approvals of a charge, or None where it rests on none."""
    yield from charge.approvals or (None,)


def _decision(approval: Approval | None) -> str | None:
    if approval is None:
        return None
    decided = approval.decision
    outcome = "undecided" if decided is None else f"{decided.outcome.value} on {decided.at}"
    return f"proposal {approval.proposal.number} by {approval.proposal.proposer}, {outcome}"


def _voters(approval: Approval | None) -> str | None:
    if approval is None:
        return None
    return ", ".join(
        f"{ballot.vote.voter} {ballot.vote.choice.value} ({signed_by(ballot.key)})" for ballot in approval.ballots
    )


def _consent(terms: Terms | None) -> str | None:
    if terms is None:
        return None
    scope = f"{', '.join(terms.consent)} ({terms.consent_text})" if terms.by_consent else "use does not rest on consent"
    return f"{terms.dataset}: {scope}; ground: {terms.ground.value}; condition: {terms.condition.value}"


def _version(charge: Provenance) -> str:
    return ", ".join(f"{reading.dataset.name} {reading.dataset.edition}" for reading in charge.readings)
