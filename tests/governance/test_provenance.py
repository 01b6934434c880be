"""What each release rests on, worked out from the record alone."""

import json
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Account
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.board import Action, Choice
from sfumato.governance.consent import Ground, SpecialCategory, Terms
from sfumato.governance.entries import (
    START,
    Committed,
    DatasetDeclared,
    Entry,
    LedgerOpened,
    PopulationDeclared,
    Recovered,
    Reserved,
    Row,
    TermsDeclared,
)
from sfumato.governance.ledger import Ledger
from sfumato.governance.provenance import ChargeFate, Provenance, Trail
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, sqlite_home
from tests.governance.signers import key_of
from tests.governance.test_conformance import Clock
from tests.governance.test_governed import BOARD, TERMS, WHY, asked, passed

ROOMY = Budget(epsilon=10, delta="1/1000000")
CONSENTED = replace(
    TERMS,
    ground=Ground.CONSENT,
    condition=SpecialCategory.EXPLICIT_CONSENT,
    consent=("research/oncology",),
    consent_text="form 3 of 2024",
)
ROWS = pa.table({"patient_id": [1, 1, 2, 3], "region": ["north", "south", "north", "south"]})


@pytest.fixture
def lite(tmp_path: Path) -> Home:
    return sqlite_home(tmp_path)


def institution(home: Home, clock: Clock | None = None) -> Ledger:
    caps = dict.fromkeys(("hospital", "department", "project", "dataset", "population"), ROOMY)
    return furnished(home, clock=clock, **caps)


def released(ledger: Ledger, epsilon: str = "1/2", **use: Any) -> Release:
    vault = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, **use)
    table = vault.table(
        ROWS,
        name="visits",
        version="2026-10",
        limit=sf.Limit(groups=1, rows_per_group=1),
        keys={"region": ["north", "south"]},
    )
    return table.group_by("region").count().release(epsilon=epsilon, fresh=True)


def approved(ledger: Ledger, terms: Terms = CONSENTED) -> int:
    if ledger.board() is None:
        ledger.seat(BOARD, by="director", reason="the statute of 2026")
    ledger.declare_terms(terms)
    number = asked(ledger)
    passed(ledger, number)
    return number


ONCOLOGY = {"purpose": "research/oncology", "recipient": "public"}


@pytest.mark.claim("S0-32", "S0-35")
def test_a_release_resolves_to_data_code_question_unit_consent_and_approval(home: Home) -> None:
    ledger = institution(home)
    number = approved(ledger)
    release = released(ledger, **ONCOLOGY)
    said, (found,) = release.statement, Trail.of(ledger).charges
    (reading,) = found.readings
    assert (reading.dataset, reading.population) == (VISITS, "patients")
    assert (found.code, found.identifier) == (said.code, said.identifier)
    assert found.code == f"sfumato {sf.__version__}"
    assert reading.terms == CONSENTED
    assert reading.terms is not None
    assert (reading.terms.consent, reading.terms.ground) == (("research/oncology",), Ground.CONSENT)
    assert (found.purpose, found.recipient) == ("research/oncology", "public")
    assert (found.unit, found.cost, found.account) == (PATIENT, said.spend, said.account)
    assert json.loads(found.question or "")[0] == json.loads(release.certificate.text)["statement"]["query"]
    assert found.certificate == release.certificate.text
    for field in ("limit", "sensitivity", "mechanism"):
        assert found.statement[field] == release.certificate.document["statement"][field]
    (approval,) = found.approvals
    assert (approval.proposal.number, approval.proposal.reasons) == (number, WHY)
    assert [(one.vote.voter, one.vote.choice) for one in approval.ballots] == [
        ("ben", Choice.YES),
        ("cho", Choice.YES),
    ]
    assert approval.decision is not None
    assert approval.decision.outcome.value == "approved"
    assert reading.communities == ("valley",)
    assert (found.missing, found.disagreements, found.later) == ((), (), ())
    assert found.fate is ChargeFate.ANSWERED
    # Every place that it names is a row of the record, under its digest, and the head holds all of them.
    rows = {row.number: row.digest for row in ledger.rows()}
    places = [found.charged, found.settled, reading.declared, reading.terms_declared, approval.place]
    places += [one.place for one in approval.ballots] + [line.opened for line in found.lines]
    assert all(place is not None and rows[place.number] == place.digest for place in places)
    assert found.head.holds(ledger.key.public_text)
    assert found.head.head.number >= max(place.number for place in places if place is not None)
    assert [line.name for line in found.lines][-2:] == ["dataset visits", "population patients"]
    assert found.lines[0].reason == "decided by the tests"


@pytest.mark.claim("S0-32", "S0-35")
def test_every_release_resolves_and_what_was_not_declared_then_is_missing_for_ever(lite: Home) -> None:
    ledger = institution(lite)
    first = released(ledger)
    approved(ledger)
    second = released(ledger, **ONCOLOGY)
    trail = Trail.of(ledger)
    assert {each.identifier for each in trail.charges} == {first.statement.identifier, second.statement.identifier}
    early, late = trail.charges
    assert early.readings[0].terms is None
    assert early.missing == ("terms (consent scope, legal ground)", "purpose", "recipient", "approval")
    assert early.readings[0].communities == ()
    assert [later.what for later in early.later] == ["new terms declared"]
    assert late.missing == ()


@pytest.mark.long
def test_terms_and_approvals_are_those_of_the_moment(lite: Home) -> None:
    ledger = institution(lite)
    first = approved(ledger)
    released(ledger, **ONCOLOGY)
    wider = replace(CONSENTED, consent=("research",), consent_text="form 4 of 2026")
    second = approved(ledger, wider)
    released(ledger, **ONCOLOGY)
    one, two = Trail.of(ledger).charges
    assert (one.readings[0].terms, two.readings[0].terms) == (CONSENTED, wider)
    assert [each.proposal.number for each in one.approvals] == [first]
    assert [each.proposal.number for each in two.approvals] == [second]
    assert [later.reason for later in one.later] == ["form 4 of 2026"]


@pytest.mark.claim("S1-28")
def test_later_vetoes_are_part_of_the_story_and_earlier_ones_are_not(lite: Home) -> None:
    ledger = institution(lite)
    approved(ledger)
    ledger.veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="nobody asked")
    ledger.lift_veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="they did now")
    passed(ledger, asked(ledger))
    released(ledger, **ONCOLOGY)
    ledger.veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="harm was done")
    (found,) = Trail.of(ledger).charges
    (later,) = found.later
    assert (later.what, later.who, later.reason) == ("veto of valley", "mele", "harm was done")


@pytest.mark.long
def test_a_raise_before_the_charge_is_named_with_its_reasons(lite: Home) -> None:
    ledger = institution(lite)
    approved(ledger)
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=ROOMY, reason="tests")
    passed(ledger, asked(ledger, Action.RAISE, account="hospital/surgery", amount=Budget(epsilon=1)))
    raised = asked(ledger, Action.RAISE, account=ACCOUNT, amount=Budget(epsilon=1))
    passed(ledger, raised)
    elsewhere = asked(ledger, Action.RAISE, account="population patients", amount=Budget(epsilon=1))
    released(ledger, **ONCOLOGY)
    passed(ledger, elsewhere)
    released(ledger, "1/4", **ONCOLOGY)
    one, two = Trail.of(ledger).charges
    assert [each.proposal.number for each in one.raises] == [raised]
    assert [each.proposal.number for each in two.raises] == [raised, elsewhere]


def test_charges_without_an_answer_are_listed_by_what_became_of_them(lite: Home) -> None:
    clock = Clock()
    ledger = institution(lite, clock)
    ledger.declare_dataset(Dataset(name="visits", edition="2026-11"), population="patients", cap=ROOMY)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    tenth = Budget(epsilon="1/10")
    other = [Dataset(name="visits", edition="2026-11")]
    account.reserve(tenth, datasets=other)
    account.close(other, {})
    account.release(account.reserve(tenth, datasets=[VISITS], queued=True))
    account.reserve(tenth, datasets=[VISITS], lasts=timedelta(minutes=1))
    account.reserve(tenth, datasets=[VISITS], queued=True, lasts=timedelta(minutes=1))
    clock.now += timedelta(hours=1)
    ledger.expire()
    account.reserve(tenth, datasets=[VISITS])
    fates = [each.fate for each in Trail.of(ledger).charges]
    assert fates == [
        ChargeFate.FAILED,
        ChargeFate.GIVEN_BACK,
        ChargeFate.EXPIRED,
        ChargeFate.GIVEN_BACK,
        ChargeFate.OPEN,
    ]
    counted = sum((each.cost for each in Trail.of(ledger).charges if each.counts), start=Budget.none())
    assert counted == ledger.balance(ACCOUNT).spent


def test_an_account_holds_what_is_below_it_and_not_what_begins_alike(lite: Home) -> None:
    ledger = institution(lite)
    ledger.open_account("hospital/oncology-trials", unit=PATIENT, cap=ROOMY, reason="tests")
    tenth = Budget(epsilon="1/10")
    for path in (ACCOUNT, "hospital/oncology-trials"):
        ledger.account(path, unit=PATIENT).reserve(tenth, datasets=[VISITS])
    trail = Trail.of(ledger)
    assert [each.account.name for each in trail.within(account="hospital/oncology")] == [ACCOUNT]
    assert len(trail.within(account="hospital/")) == len(trail.within(dataset="visits")) == 2
    assert trail.within(dataset="visit") == trail.within(account="hosp") == ()


def test_a_release_is_found_by_identifier_or_by_number(lite: Home) -> None:
    ledger = institution(lite)
    release = released(ledger)
    trail = Trail.of(ledger)
    found = trail.find(release.statement.identifier)
    assert trail.find(found.number) == trail.find(str(found.number)) == found
    for unknown in ("", "../../etc/passwd", "999", found.number + 1, release.statement.identifier.upper() + " "):
        with pytest.raises(InvalidInput, match="the record holds no release"):
            trail.find(unknown)


# A record made by hand: what nobody can write through a ledger, but somebody with the database can.

AT = "2026-11-15T12:00:00+00:00"
KEY = SigningKey.new()
LEDGER = "ab" * 16
BASE: tuple[Entry, ...] = (
    LedgerOpened(at=AT, identifier=LEDGER, key=KEY.public_text),
    PopulationDeclared(at=AT, name="patients", unit=PATIENT, cap=ROOMY, rho=None, reason="tests"),
    DatasetDeclared(at=AT, dataset=VISITS, population="patients", cap=ROOMY),
)
CHARGE = Reserved(
    at=AT,
    account=Account(name="a", ledger=LEDGER, budget=ROOMY, spent=Budget(epsilon=1), releases=1),
    unit=PATIENT,
    datasets=(VISITS,),
    lines=("population patients",),
    cost=Budget(epsilon=1),
    rho=None,
    idempotency=None,
    queued=False,
    expires=None,
)


def record(*entries: Entry | Row) -> list[Row]:
    rows: list[Row] = []
    for entry in entries:
        number, digest = (rows[-1].number, rows[-1].digest) if rows else (0, START)
        if isinstance(entry, Row):
            rows.append(replace(entry, number=number + 1, previous=digest))
        else:
            lost = entry.lost if isinstance(entry, Recovered) else 0
            rows.append(Row.after(number + lost, digest, entry))
    return rows


def trail_of(rows: list[Row], upto: int | None = None) -> Trail:
    last = rows[-1] if upto is None else next(row for row in rows if row.number == upto)
    head = Head(ledger=LEDGER, number=last.number, digest=last.digest, at=AT, epsilon=Fraction(1), delta=Fraction(0))
    return Trail.read(rows, SignedHead.sign(head, KEY))


def only(trail: Trail) -> Provenance:
    (found,) = trail.charges
    return found


@pytest.mark.parametrize(
    "body",
    [
        '{"kind":"ledger.future","version":1,"at":"x"}',
        "",
        "null",
        "[" * 10_000,
        '{"kind":"budget","version":1}',
        "\x1b",
    ],
)
def test_an_entry_of_another_kind_is_named_and_the_rest_still_resolves(body: str) -> None:
    strange = Row(number=0, kind="ledger.future", body=body, previous="", digest="0" * 64)
    trail = trail_of(record(*BASE, strange, CHARGE, strange))
    assert [place.number for place, _ in trail.unread] == [4, 6]
    assert all(problem.startswith("ledger.future: ") for _, problem in trail.unread)
    assert only(trail).readings[0].population == "patients"


def test_what_was_written_after_the_head_is_not_held_by_it() -> None:
    answer = Committed(at=AT, charge=4, question="[]", certificate="{}")
    rows = record(*BASE, CHARGE, answer, TermsDeclared(at=AT, terms=TERMS))
    assert only(trail_of(rows, 4)).fate is ChargeFate.OPEN
    assert only(trail_of(rows, 5)).fate is ChargeFate.ANSWERED
    assert only(trail_of(rows, 5)).later == ()
    assert [later.what for later in only(trail_of(rows, 6)).later] == ["new terms declared"]
    assert trail_of(rows, 3).charges == ()


def test_a_recovery_bears_on_every_release_before_it() -> None:
    lost = Recovered(at=AT, reason="the disk broke", anchored="", lost=7, gap=Budget(epsilon=2))
    first, second = trail_of(record(*BASE, CHARGE, lost, CHARGE)).charges
    (later,) = first.later
    assert (later.place.number, later.reason) == (12, "the disk broke")
    assert later.what == "record recovered: 7 entries lost, ε = 2 charged to every balance"
    assert second.later == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"statement":7}', '{"statement":{}}', "[" * 10_000, "1e5"])
def test_a_stored_answer_that_is_no_certificate_is_said_to_be_none(text: str) -> None:
    found = only(trail_of(record(*BASE, CHARGE, Committed(at=AT, charge=4, question="", certificate=text))))
    assert found.disagreements == ("the stored answer is not a certificate that can be read",)
    assert found.identifier is None
    assert found.code is None
    assert "certificate" in found.missing
    assert found.fate is ChargeFate.ANSWERED


def test_a_certificate_of_another_charge_does_not_pass_for_its_own(lite: Home) -> None:
    release = released(institution(lite))
    question = '[{"kind":"query.count"}]'
    answer = Committed(at=AT, charge=4, question=question, certificate=release.certificate.text)
    found = only(trail_of(record(*BASE, CHARGE, answer)))
    assert found.disagreements == (
        "the certificate states another spend than the charge",
        "the certificate states another account than the charge",
        "the certificate answers another question than the one that is stored with it",
    )
    other = replace(CHARGE, datasets=(Dataset(name="x", edition="1"),), unit=sf.record(relation="replace"))
    found = only(trail_of(record(*BASE, other, answer)))
    assert "the certificate states another unit than the charge" in found.disagreements
    assert "the certificate states a dataset that the charge does not read" in found.disagreements
    assert found.readings[0].population is None
    assert "population" in found.missing


def test_two_answers_under_one_identifier_are_not_told_apart_by_it() -> None:
    text = '{"statement":{"identifier":"4"}}'
    answers = [Committed(at=AT, charge=number, question="", certificate=text) for number in (4, 5)]
    trail = trail_of(record(*BASE, CHARGE, CHARGE, *answers))
    with pytest.raises(Refused, match="2 answers in the record state the identifier '4': those of the charges 4, 5"):
        trail.find("4")
    assert trail.find(5).number == 5


@pytest.mark.long
def test_the_same_record_gives_the_same_provenance(lite: Home) -> None:
    ledger = institution(lite)
    approved(ledger)
    released(ledger, **ONCOLOGY)
    rows, head = list(ledger.rows()), ledger.head()
    assert Trail.read(rows, head) == Trail.read(iter(rows), head) == Trail.of(ledger)
