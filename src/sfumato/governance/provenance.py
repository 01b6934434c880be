"""Provenance: what each release rests on, worked out from the record and from nothing else.

One walk over the record finds, for every charge, the data it read and whose they are, what was asked and answered, the
terms and approvals *as they were at that moment*, and what happened to any of it later. What was not declared then is
``None`` here and stays so: terms that came later do not reach back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, encode, parse
from sfumato.core.query import Dataset
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.board import Decision, Proposal, Veto, VetoLifted, Vote, Withdrawal
from sfumato.governance.consent import Terms
from sfumato.governance.decision_state import GOVERNING, DecisionState
from sfumato.governance.entries import (
    AccountOpened,
    Acted,
    Committed,
    DatasetClosed,
    DatasetDeclared,
    Entry,
    Expired,
    LedgerOpened,
    Migrated,
    PopulationDeclared,
    Recovered,
    Released,
    Repriced,
    Reserved,
    Row,
    TermsDeclared,
    unwrapped,
)

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["Approval", "CastBallot", "ChargeFate", "Later", "Place", "Provenance", "ProvenanceLine", "Reading", "Trail"]


class ChargeFate(Enum):
    """What became of a charge; all but ``GIVEN_BACK`` count."""

    ANSWERED = "answered"
    OPEN = "charged, no answer yet"
    FAILED = "charged, no answer: its data were closed"
    EXPIRED = "charged, no answer: it expired"
    GIVEN_BACK = "given back: nothing was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A row of the record: its number, its digest and when it was written."""

    number: int
    digest: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A version of a dataset that a charge reads, whose people it is about, and its terms at that moment.

    ``communities`` held a veto over it then.
    """

    dataset: Dataset
    population: str | None
    declared: Place | None
    terms: Terms | None
    terms_declared: Place | None
    communities: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenanceLine:
    """A balance that was charged: its cap when it was opened, and the recorded reason for that cap."""

    name: str
    cap: Budget | None
    reason: str | None
    opened: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CastBallot:
    """A vote, where it stands in the record, whether it is signed with its voter's own key, and that public key."""

    place: Place
    vote: Vote
    signed: bool
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A proposal that a release rests on, with its reasons for ε, its key, the votes, and how it was decided."""

    proposal: Proposal
    place: Place
    ballots: tuple[CastBallot, ...]
    decision: Decision | None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Something that happened after a charge and bears on it; ``key`` is the one that it is signed with."""

    place: Place
    what: str
    who: str
    reason: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Everything that the record says about one charge and its answer.

    Guarantee: a function of the record up to ``head`` alone; the same record gives the same provenance.
    Assumes: nothing of the certificate, which is quoted and not believed: ``disagreements`` says where it does not
    state its own charge. ``approvals`` opened its datasets, ``raises`` raised a cap that it was charged to before.
    Public: every field.
    """

    charged: Place
    fate: ChargeFate
    settled: Place | None
    account: Account
    unit: Unit
    cost: Budget
    lines: tuple[ProvenanceLine, ...]
    readings: tuple[Reading, ...]
    purpose: str | None
    recipient: str | None
    reads: tuple[str, str] | None
    approvals: tuple[Approval, ...]
    raises: tuple[Approval, ...]
    question: str | None
    certificate: str | None
    later: tuple[Later, ...]
    disagreements: tuple[str, ...]
    head: SignedHead

    @property
    def number(self) -> int:
        """The number of the charge."""
        return self.charged.number

    @property
    def counts(self) -> bool:
        """Whether the charge counts as spent."""
        return self.fate is not ChargeFate.GIVEN_BACK

    @property
    def statement(self) -> Mapping[str, Json]:
        """The statement in the certificate as plain JSON; empty where there is none that can be read."""
        return _statement(self.certificate)

    @property
    def identifier(self) -> str | None:
        """The identifier of the release, as its certificate states it."""
        found = self.statement.get("identifier")
        return found if isinstance(found, str) else None

    @property
    def code(self) -> str | None:
        """The version of the code that made the release."""
        found = self.statement.get("code")
        return found if isinstance(found, str) else None

    @property
    def missing(self) -> tuple[str, ...]:
        """What the record does not say of it, by name: nothing is made up in its place."""
        unsaid = {
            "population": any(reading.population is None for reading in self.readings),
            "terms (consent scope, legal ground)": any(reading.terms is None for reading in self.readings),
            "purpose": self.purpose is None,
            "recipient": self.recipient is None,
            "approval": not self.approvals,
            "certificate": self.fate is ChargeFate.ANSWERED and not self.statement,
        }
        return tuple(name for name, absent in unsaid.items() if absent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The provenance of every charge up to a signed head, and what of the record could not be read.

    >>> from fractions import Fraction
    >>> from sfumato.core.signature import SigningKey
    >>> from sfumato.governance.anchor import Head
    >>> row = Row.after(0, "0" * 64, LedgerOpened(at="2026-01-01T00:00:00+00:00", identifier="a", key="b"))
    >>> head = Head(ledger="a", number=1, digest=row.digest, at="2026-01-01", epsilon=Fraction(0), delta=Fraction(0))
    >>> Trail.read([row], SignedHead.sign(head, SigningKey.new())).charges
    ()
    """

    charges: tuple[Provenance, ...]
    unread: tuple[tuple[Place, str], ...]
    head: SignedHead

    @classmethod
    def of(cls, ledger: "Ledger") -> "Trail":
        """The trail of a ledger up to its head at this moment."""
        head = ledger.head()  # first: rows that are written from now on lie behind it
        return cls.read(ledger.rows(), head)

    @classmethod
    def read(cls, rows: Iterable[Row], head: SignedHead) -> "Trail":
        """Walk over a record up to ``head``; time and memory grow linearly with it."""
        walk = _Walk(decisions=DecisionState(ledger=head.head.ledger))
        for row in rows:
            if row.number > head.head.number:
                break  # written after the head was signed: it is not held by it
            walk.enter(row)
        return cls(charges=tuple(walk.finished(head)), unread=tuple(walk.unread), head=head)

    def within(self, *, account: str | None = None, dataset: str | None = None) -> tuple[Provenance, ...]:
        """The charges of an account and all below it, of a dataset in any version, or of both."""
        return tuple(
            charge
            for charge in self.charges
            if (account is None or (charge.account.name + "/").startswith(account.rstrip("/") + "/"))
            and (dataset is None or any(reading.dataset.name == dataset for reading in charge.readings))
        )

    def find(self, wanted: str | int) -> Provenance:
        """One charge, by the identifier of its release or by its own number."""
        text = str(wanted)
        found = [charge for charge in self.charges if charge.identifier == text]
        if not found:
            found = [charge for charge in self.charges if str(charge.number) == text]
        if not found:
            raise InvalidInput(
                f"the record holds no release {text!r} and no charge of that number; nothing was done. "
                "See them all: sfumato releases"
            )
        if len(found) > 1:
            numbers = ", ".join(str(charge.number) for charge in found)
            raise Refused(
                f"{len(found)} answers in the record state the identifier {text!r}: those of the charges {numbers}. "
                "Nothing was done. Name the charge by its number."
            )
        return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Charge:
    """A charge and what stood in the record before it."""

    place: Place
    entry: Reserved
    readings: tuple[Reading, ...]
    lines: tuple[ProvenanceLine, ...]
    approvals: tuple[Approval, ...]
    raises: tuple[Approval, ...]


@dataclass(slots=True)
class _Walk:
    """What is known so far, on the way through the record."""

    decisions: DecisionState
    populations: dict[Dataset, tuple[str, Place]] = field(default_factory=dict)
    opened: dict[str, ProvenanceLine] = field(default_factory=dict)
    terms: dict[str, Place] = field(default_factory=dict)
    proposals: dict[int, Place] = field(default_factory=dict)
    ballots: dict[int, list[CastBallot]] = field(default_factory=dict)
    raised: list[int] = field(default_factory=list)
    charges: dict[int, "_Charge"] = field(default_factory=dict)
    settled: dict[int, tuple[Place, Committed | Released | Expired]] = field(default_factory=dict)
    closed: dict[Dataset, int] = field(default_factory=dict)
    by_dataset: dict[str, list[Later]] = field(default_factory=dict)
    by_charge: dict[int, list[Later]] = field(default_factory=dict)
    for_all: list[Later] = field(default_factory=list)
    unread: list[tuple[Place, str]] = field(default_factory=list)

    def enter(self, row: Row) -> None:
        try:
            entry = row.entry
            place = Place(number=row.number, digest=row.digest, at=entry.at)
            if isinstance(entry, GOVERNING):
                after = self.decisions.after(row.number, entry)
                self.raised += [proposal.number for proposal in self.decisions.raises(after)]
                self.decisions = after
        except SfumatoError as wrong:
            place = Place(number=row.number, digest=row.digest, at="")
            self.unread.append((place, f"{row.kind}: {wrong}"))
            return
        self._entered(place, unwrapped(entry), bare=not row.nonce)

    def _entered(self, place: Place, entry: Entry, *, bare: bool) -> None:
        match entry:
            case LedgerOpened():
                self.decisions = DecisionState.opened(entry, bare=bare)
            case Migrated():
                self.decisions = replace(self.decisions, bare=False)
            case AccountOpened():
                name = f"account {entry.path}"
                self.opened[name] = ProvenanceLine(name=name, cap=entry.cap, reason=entry.reason, opened=place)
            case PopulationDeclared():
                name = f"population {entry.name}"
                self.opened[name] = ProvenanceLine(name=name, cap=entry.cap, reason=entry.reason, opened=place)
            case DatasetDeclared():
                self.populations[entry.dataset] = (entry.population, place)
                name = f"dataset {entry.dataset.name}"
                self.opened.setdefault(name, ProvenanceLine(name=name, cap=entry.cap, reason=None, opened=place))
            case DatasetClosed():
                self.closed[entry.dataset] = place.number
                what = f"version {entry.dataset.edition} closed"
                self._note(entry.dataset.name, place, what, "", "its engine failed")
            case TermsDeclared():
                self.terms[entry.terms.dataset] = place
                self._note(entry.terms.dataset, place, "new terms declared", "", entry.terms.consent_text)
            case Acted():
                self._acted(place, entry)
            case Reserved():
                self._reserved(place, entry)
            case Committed() | Released() | Expired():
                self.settled[entry.charge] = (place, entry)
            case Repriced():
                what = f"re-priced to {entry.cost}"
                self.by_charge.setdefault(entry.charge, []).append(
                    Later(place=place, what=what, who="", reason=entry.reason)
                )
            case Recovered():
                what = f"record recovered: {entry.lost} entries lost, {entry.gap} charged to every balance"
                self.for_all.append(Later(place=place, what=what, who="", reason=entry.reason))

    def _acted(self, place: Place, entry: Acted) -> None:
        act = entry.act
        key = self.decisions.sitting().signer(act)
        match act:
            case Proposal():
                self.proposals[act.number] = place
            case Vote():
                cast = CastBallot(place=place, vote=act, signed=key is not None, key=key)
                self.ballots.setdefault(act.proposal, []).append(cast)
            case Veto():
                self._note(act.dataset, place, f"veto of {act.community}", act.voter, act.reason, key)
            case VetoLifted():
                self._note(act.dataset, place, f"veto of {act.community} lifted", act.voter, act.reason, key)
            case Withdrawal():
                pass  # an open proposal carries no release

    def _note(self, dataset: str, place: Place, what: str, who: str, reason: str, key: str | None = None) -> None:
        noted = Later(place=place, what=what, who=who, reason=reason, key=key)
        self.by_dataset.setdefault(dataset, []).append(noted)

    def _reserved(self, place: Place, entry: Reserved) -> None:
        readings = tuple(self._reading(dataset) for dataset in entry.datasets)
        lines = tuple(
            self.opened.get(name) or ProvenanceLine(name=name, cap=None, reason=None, opened=None)
            for name in entry.lines
        )
        self.charges[place.number] = _Charge(
            place=place,
            entry=entry,
            readings=readings,
            lines=lines,
            approvals=tuple(self._approvals(dict.fromkeys(entry.approvals))),
            raises=tuple(raised for raised in self._approvals(self.raised) if _raises(raised.proposal, entry.lines)),
        )

    def _reading(self, dataset: Dataset) -> Reading:
        population, declared = self.populations.get(dataset, (None, None))
        known, minutes = self.decisions.terms.get(dataset.name), self.decisions.minutes
        communities = () if minutes is None else minutes.board.communities
        return Reading(
            dataset=dataset,
            population=population,
            declared=declared,
            terms=None if known is None else known[0],
            terms_declared=None if known is None else self.terms.get(dataset.name),
            communities=tuple(each.name for each in communities if dataset.name in each.datasets),
        )

    def _approvals(self, numbers: Iterable[int]) -> Iterator[Approval]:
        minutes = self.decisions.minutes
        for number in numbers:
            if minutes is not None and number in self.proposals:
                yield Approval(
                    proposal=minutes.proposal(number),
                    place=self.proposals[number],
                    ballots=tuple(self.ballots.get(number, ())),
                    decision=minutes.decision(number),
                    key=minutes.signer(minutes.proposal(number)),
                )

    def finished(self, head: SignedHead) -> Iterator[Provenance]:
        for number, charge in self.charges.items():
            entry = charge.entry
            end, settled = self.settled.get(number, (None, None))
            answer = settled if isinstance(settled, Committed) else None
            yield Provenance(
                charged=charge.place,
                fate=self._fate(number, entry, settled),
                settled=end,
                account=entry.account,
                unit=entry.unit,
                cost=entry.cost,
                lines=charge.lines,
                readings=charge.readings,
                purpose=entry.purpose,
                recipient=entry.recipient,
                reads=entry.reads,
                approvals=charge.approvals,
                raises=charge.raises,
                question=None if answer is None else answer.question,
                certificate=None if answer is None else answer.certificate,
                later=self._later(number, entry),
                disagreements=() if answer is None else tuple(_disagreements(entry, answer)),
                head=head,
            )

    def _fate(self, number: int, entry: Reserved, settled: Committed | Released | Expired | None) -> ChargeFate:
        match settled:
            case Committed():
                return ChargeFate.ANSWERED
            case Released() | Expired(counted=False):
                return ChargeFate.GIVEN_BACK
            case Expired():
                return ChargeFate.EXPIRED
        failed = any(self.closed.get(dataset, 0) > number for dataset in entry.datasets)
        return ChargeFate.FAILED if failed else ChargeFate.OPEN

    def _later(self, number: int, entry: Reserved) -> tuple[Later, ...]:
        names = dict.fromkeys(dataset.name for dataset in entry.datasets)
        notes = [note for name in names for note in self.by_dataset.get(name, ())]
        notes += self.by_charge.get(number, ())
        return tuple(
            sorted(
                (note for note in (*notes, *self.for_all) if note.place.number > number),
                key=lambda note: note.place.number,
            )
        )


def _raises(proposal: Proposal, lines: tuple[str, ...]) -> bool:
    """Whether a proposal raised one of these balances; an account may be named by its path alone."""
    return proposal.account in lines or f"account {proposal.account}" in lines


def _statement(certificate: str | None) -> Mapping[str, Json]:
    if certificate is None:
        return {}
    try:
        document = parse(certificate)
    except SfumatoError:
        return {}
    statement = document.get("statement") if isinstance(document, dict) else None
    return statement if isinstance(statement, dict) else {}


def _disagreements(entry: Reserved, answer: Committed) -> Iterator[str]:
    """Where a stored certificate does not state the charge that it was stored for."""
    said = _statement(answer.certificate)
    if not said:
        yield "the stored answer is not a certificate that can be read"
        return
    for name, charged in (("spend", entry.cost), ("account", entry.account), ("unit", entry.unit)):
        if said.get(name) != encode(charged):
            yield f"the certificate states another {name} than the charge"
    if said.get("dataset") not in [encode(dataset) for dataset in entry.datasets]:
        yield "the certificate states a dataset that the charge does not read"
    try:
        asked = parse(answer.question)
    except SfumatoError:
        asked = None
    if isinstance(asked, list) and asked and asked[0] != said.get("query"):
        yield "the certificate answers another question than the one that is stored with it"
