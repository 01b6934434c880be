"""Pages of board and auditors: papers leave, signed ballots come back, raises and vetoes hold, evidence leaves."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from datetime import date
from fractions import Fraction

import pytest

from sfumato.core.signature import SigningKey
from sfumato.governance.anchor import SignedHead
from sfumato.governance.ballots import Ballot
from sfumato.governance.board import Choice, Outcome
from sfumato.governance.receipts import Receipt, check_receipt
from sfumato.server.rendering import FORM_FIELD
from sfumato.server.views.snapshot import snapshot_of
from sfumato.server.words import PageWords
from tests.server.institution import Institution, institution
from tests.server.visiting import ORIGIN, Visiting

EN = PageWords("en").say


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Institution]:
    made = institution(tmp_path_factory.mktemp("board"), today=date(2026, 11, 18), first=date(2026, 11, 15))
    yield made
    made.service.close()


@pytest.fixture(scope="module")
def app(hospital: Institution) -> Visiting:
    return Visiting(hospital.service)


@pytest.fixture
def member(app: Visiting, hospital: Institution) -> Visiting:
    return app.other().sign_in("board")


def handed_in(browser: Visiting, text: str) -> "tuple[int, str]":
    """Hand a ballot in by the form, and read what the page says then."""
    token = browser.form_token("/board/requests")
    answer = browser.ask(
        "POST",
        "/board/ballots",
        data={FORM_FIELD: token},
        files={"ballot": ("signed.ballot", text.encode())},
        headers={"origin": ORIGIN},
    )
    if answer.status_code == 303:
        return 303, browser.get(answer.headers["location"]).text
    return answer.status_code, answer.text


def asked(browser: Visiting, **said: str) -> Ballot:
    """The paper of a request, as the form gives it."""
    reasons = {"benefit": "beds are planned", "risk": "somebody could be guessed", "choice": "±40 is enough"}
    answer = browser.post("/board/ask", {"name": "ada", **reasons, **said}, page="/board/ask")
    assert answer.status_code == 200, answer.text
    return Ballot.read(answer.text)


def signed(text: str, key: SigningKey, choice: Choice | None = None, reason: str = "") -> str:
    """A paper signed on some other machine, as ``sfumato ballot sign`` does."""
    return Ballot.read(text).signed(key, choice=choice, reason=reason).text()


def test_a_raise_is_approved_by_two_members(hospital: Institution, member: Visiting) -> None:
    before = hospital.ledger.balance("hospital/heart").cap.epsilon
    paper = asked(member, action="raise", account="hospital/heart", epsilon="1/2", subject="half more for the heart")
    status, page = handed_in(member, signed(paper.text(), hospital.keys["ada"]))
    assert status == 303
    number = hospital.ledger.minutes().proposals[-1].number
    assert EN("board.entered_request", number=number) in page
    address = f"/board/requests/{number}"
    assert EN("board.needed_board", n=2, names="ben, cho") in member.get(address).text
    for place, name in enumerate(("ben", "cho")):
        ballot = member.get(f"{address}/paper").text
        status, page = handed_in(member, signed(ballot, hospital.keys[name], Choice.YES))
        assert status == 303
        assert EN("board.entered_vote", name=name, number=number) in page
        raised = hospital.ledger.balance("hospital/heart").cap.epsilon - before
        assert raised == (Fraction(1, 2) if place == 1 else 0), "one vote is not enough, and two are"
    text = member.get(address).text
    assert EN("board.state_approved") in text
    assert EN("board.vote_yes", voter="cho") in text
    assert "sfumato ballot sign" not in text, "what is decided asks for no vote"
    assert "4.5" in member.get("/board").text


def test_a_ballot_that_is_altered_or_handed_in_twice_is_refused(hospital: Institution, member: Visiting) -> None:
    paper = asked(member, action="raise", account="hospital/heart", epsilon="1", subject="once")
    text = signed(paper.text(), hospital.keys["ada"])
    altered = text.replace('"1/1"', '"3/1"')
    assert altered != text
    for wrong in (
        altered,
        paper.text(),
        "{}",
        "no ballot",
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    ):
        status, page = handed_in(member, wrong)
        assert status == 409
        assert EN("board.refused") in page
    assert handed_in(member, text)[0] == 303
    assert handed_in(member, text)[0] == 409
    assert handed_in(member, "")[0] == 422
    hospital.ledger.withdraw(hospital.ledger.minutes().proposals[-1].number, by="ada", key=hospital.keys["ada"])


def test_a_request_without_its_reasons_is_not_written(member: Visiting) -> None:
    said = {"name": "ada", "action": "raise", "account": "hospital/heart", "epsilon": "1", "benefit": "beds & staff"}
    answer = member.post("/board/ask", said, page="/board/ask")
    assert answer.status_code == 409
    assert "nothing was done" in answer.text
    assert "beds &amp; staff" in answer.text, "what was typed is kept, and escaped"


def test_a_veto_ends_requests_and_blocks_its_dataset(hospital: Institution, member: Visiting) -> None:
    paper = asked(member, action="dataset", dataset="visits", subject="visits for next year")
    assert handed_in(member, signed(paper.text(), hospital.keys["ada"]))[0] == 303
    number = hospital.ledger.minutes().proposals[-1].number
    veto = member.get("/board/vetoes/paper?about=riverside%2Fvisits").text
    status, page = handed_in(member, signed(veto, hospital.keys["eva"], reason="we were not asked"))
    assert status == 303
    assert EN("board.entered_veto", name="riverside", dataset="visits") in page
    assert EN("board.veto_ended_one", numbers=number) in page
    decided = hospital.ledger.minutes().decision(number)
    assert decided is not None
    assert decided.outcome is Outcome.VETOED
    home = member.get("/board").text
    assert EN("board.vetoed", by="riverside") in home
    assert EN("board.veto_effect") in home
    lift = member.get("/board/vetoes/paper?lift=true&about=riverside%2Fvisits").text
    status, page = handed_in(member, signed(lift, hospital.keys["eva"], reason="we were asked"))
    assert status == 303
    assert EN("board.entered_lift", name="riverside", dataset="visits") in page
    assert EN("board.standing_none") in member.get("/board").text


def test_somebody_else_s_key_decides_nothing(hospital: Institution, member: Visiting) -> None:
    veto = member.get("/board/vetoes/paper?about=riverside%2Fvisits").text
    status, page = handed_in(member, signed(veto, hospital.keys["ben"], reason="in her name"))
    assert status == 409
    assert "does not speak for" in page
    assert hospital.ledger.minutes().vetoes("visits") == ()


def test_a_vote_asks_for_a_second_sign_in(hospital: Institution, app: Visiting) -> None:
    other = app.other().sign_in("board")
    session = hospital.service.sessions.find(other.cookies["__Host-sfumato"])
    assert session is not None
    now = hospital.service.sessions
    assert now.is_confirmed(session), "who has just signed in is not asked again"


def test_the_tree_shows_every_balance_and_how_it_was_spent(hospital: Institution, member: Visiting) -> None:
    text = member.get("/board").text
    for line in hospital.ledger.balances():
        name = line.name.partition(" ")[2].rpartition("/")[2]
        assert f'<span class="name">{name}</span>' in text
    spent = member.get("/board/budgets/spent?line=dataset%20visits").text
    assert 'class="stair"' in spent
    assert len(re.findall(r"<tr><th scope=\"row\">2", spent)) == 2
    assert member.ask("GET", "/board/budgets/spent?line=nothing").status_code == 404


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_the_calendar_counts_what_was_released_each_month(
    hospital: Institution, member: Visiting, language: str
) -> None:
    text = member.get(f"/board/calendar?lang={language}").text
    say = PageWords(language).say
    assert say("board.calendar_cell", shown=3, total=30) in text, "three days of November were released"
    assert say("board.calendar_label", shown=0, skipped=31, waiting=0) in text
    assert max(hospital.service.clock().date(), date(2026, 11, 18)).isoformat() in text
    member.get("/board?lang=en")


def test_sliders_are_a_form_and_say_what_a_margin_costs(member: Visiting) -> None:
    text = member.get("/board/what-if").text
    (digest,) = re.findall(r'name="plan" value="(\w+)"', text)
    assert EN("board.what_if_fits", cap="60") in text

    def total(more: str) -> float:
        page = member.get(f"/board/what-if?plan={digest}&{more}").text
        (said,) = re.findall(r"ε = ([\d.]+) for the year", page)
        return float(said)

    adopted = total("margin.days=30")
    looser = total("margin.days=60&margin.weeks=220&margin.months=360")
    assert 1.9 < adopted / looser < 2.1, "twice the margins are half the price"
    assert EN("board.what_if_over", over="38.81", cap="10") in member.get(f"/board/what-if?plan={digest}&cap=10").text
    for wrong in (
        "every.days=monthly",
        "margin.days=0",
        "margin.days=x",
        "margin.days=1/3",
        "every.days=never",
        "cap=-1",
    ):
        answer = member.ask("GET", f"/board/what-if?plan={digest}&{wrong}")
        assert answer.status_code == 200
        assert EN("board.what_if_refused", why="").strip() in answer.text


# ------------------------------------------------------------------------------------------------------------- auditors


@pytest.fixture
def auditor(app: Visiting) -> Visiting:
    return app.other().sign_in("auditor")


def test_the_record_is_verified_on_request(auditor: Visiting, hospital: Institution) -> None:
    answer = auditor.post("/audit/verify", {}, page="/audit")
    assert answer.status_code == 200
    end = hospital.ledger.head().head.number
    assert re.search(rf"Verified {end} entries on .*: everything holds", answer.text)
    head = SignedHead.read(auditor.get("/audit/head.json").text.strip())
    assert head.holds(hospital.ledger.public_key)
    assert len(auditor.get("/audit/record.jsonl").text.splitlines()) == end


def test_a_release_is_proved_to_be_in_the_record(auditor: Visiting, hospital: Institution) -> None:
    charge = snapshot_of(hospital.ledger).trail.charges[-1]
    text = auditor.get(f"/audit/charges/{charge.number}").text
    assert EN("audit.proof_holds", number=charge.settled.number, head=hospital.ledger.head().head.number) in text  # type: ignore[union-attr]
    receipt = Receipt.read(auditor.get(f"/audit/charges/{charge.number}/receipt.json").text)
    certificate = auditor.get(f"/audit/charges/{charge.number}/certificate.json").text.strip()
    assert check_receipt(certificate, receipt, key=hospital.ledger.public_key).holds
    other = certificate.replace('"values"', '"valves"')
    assert not check_receipt(other, receipt, key=hospital.ledger.public_key).holds
    assert auditor.ask("GET", "/audit/charges/1").status_code == 404


def test_the_evidence_pack_leaves_as_one_file(auditor: Visiting, hospital: Institution) -> None:
    def packed(**said: str) -> dict[str, bytes]:
        answer = auditor.post("/audit/evidence", said, page="/audit")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    draft = packed(scope="all")
    assert "evidence/registry.json" not in draft
    whole = packed(scope="all", reason="the dashboard needs it", legal_basis="section 7", publisher="City Hospital")
    assert set(draft) < set(whole)
    evidence = json.loads(whole["evidence/evidence.json"])
    assert evidence["record"]["verified"] is True
    assert evidence["charges"]["answered"] == len(snapshot_of(hospital.ledger).trail.charges)
    wrong = auditor.post("/audit/evidence", {"scope": "release", "of": "nothing"}, page="/audit")
    assert wrong.status_code == 422
    assert EN("audit.refused") in wrong.text


@pytest.mark.parametrize("address", ["/audit", "/board", "/board/requests", "/board/calendar", "/board/what-if"])
def test_pages_speak_chinese(app: Visiting, address: str) -> None:
    who = "auditor" if address == "/audit" else "board"
    text = app.other().sign_in(who).get(f"{address}?lang=zh").text
    assert '<html lang="zh-Hans">' in text
    heading = re.findall(r"<h1>(.*?)</h1>", text)[0]
    assert re.search(r"[\u4e00-\u9fff]", heading)
