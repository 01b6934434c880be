"""Research by pages: a project from its draft to the releases of a program; nothing but releases leaves."""

import json
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.core.budget import Budget
from sfumato.governance.ballots import Ballot
from sfumato.governance.board import Action, Board, Choice
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.program_paper import ProgramPaper
from sfumato.governance.research_entries import RunPhase
from sfumato.reports.stored import stored_release
from sfumato.server.rendering import FORM_FIELD
from sfumato.server.research.desk import ResearchDesk, open_research
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import ServiceSettings
from tests.governance.signers import key_of, keyed
from tests.research.worlds import CANARY, COUNTS, PERSON, PLAYED, ROWS, SCHEMA, WHY
from tests.server.visiting import ORIGIN, Visiting

ACCOUNT = "hospital/wards"
WORKER = (sys.executable, "-m", "tests.server.played_worker")
FORM = {"name": "wards", "purpose": "research/wards", "recipient": "public", "account": ACCOUNT, "reviewed": "yes"}
REASONS = {"benefit": "wards are staffed by it", "risk": "a rare case could be guessed", "choice": "±20 is enough"}
LEAKING = COUNTS.replace("ward, COUNT", "diagnosis, COUNT").replace("BY ward", "BY diagnosis")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service.create(tmp_path_factory.mktemp("research") / "service", ServiceSettings(workers=1))
    ledger, cap = made.ledger, Budget(epsilon=4)
    for path in ("hospital", ACCOUNT, "hospital/other"):
        ledger.open_account(path, unit=PERSON, cap=cap, reason="for 2026")
    ledger.declare_population("patients", unit=PERSON, cap=cap, reason="everybody")
    pq.write_table(ROWS, made.data / "visits.parquet")
    made.datasets.declare(
        SCHEMA, made.data / "visits.parquet", population="patients", relation="add/remove", cap=cap, by="stella"
    )
    ledger.seat(
        keyed(Board(members=("ada", "ben", "cho"), quorum=2, proposers=("rosa", "sven"))), by="director", reason="2026"
    )
    ledger.declare_terms(
        Terms(
            dataset="visits",
            purposes=("research",),
            ground=Ground.PUBLIC_TASK,
            condition=SpecialCategory.RESEARCH,
            hipaa=HipaaBasis.NOT_SUBJECT,
            consent=(),
            consent_text="",
            forbidden=(),
            recipients=(),
            until="2099-12-31",
            sites=(),
        )
    )
    number = ledger.propose(
        by="ada", action=Action.DATASET, subject="visits", reasons=WHY, datasets=("visits",), key=key_of("ada")
    )
    for voter in ("ben", "cho"):
        ledger.vote(number, by=voter, key=key_of(voter), choice=Choice.YES)
    for login, role in (
        ("rosa", ServiceRole.RESEARCHER),
        ("sven", ServiceRole.RESEARCHER),
        ("stella", ServiceRole.STEWARD),
        ("otto", ServiceRole.AUDITOR),
        ("nina", ServiceRole.ANALYST),
    ):
        made.people.add(login, shown=login, roles=[role], accounts=[ACCOUNT] if login == "rosa" else [])
    open_research(made, PLAYED, WORKER)
    made.start()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def application(service: Service) -> Visiting:
    return Visiting(service)


@pytest.fixture
def rosa(application: Visiting) -> Visiting:
    return application.other().sign_in("rosa")


@pytest.fixture(scope="module")
def desk(service: Service) -> ResearchDesk:
    return open_research(service)


def drafted(browser: Visiting, **other: object) -> str:
    """The address of a project that was drafted by the form."""
    said = {**FORM, "people": f"rosa {key_of('rosa').public_text}", "column": ["visits/ward", "visits/age"], **other}
    answer = browser.post("/research/new", said, page="/research/new")
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def handed_in(browser: Visiting, service: Service, text: str) -> int:
    """Hand in a request that was signed elsewhere, and let two members approve it; its number."""
    ballot = Ballot.read(text).signed(key_of("rosa"))
    token = browser.form_token("/board/ask")
    answer = browser.ask(
        "POST",
        "/board/ask/paper",
        data={FORM_FIELD: token},
        files={"ballot": ("signed.ballot", ballot.text().encode())},
        headers={"origin": ORIGIN},
    )
    assert answer.status_code == 303, answer.text
    assert "The board can now vote on it" in browser.get(answer.headers["location"]).text
    number = service.ledger.minutes().proposals[-1].number
    for voter in ("ben", "cho"):
        service.ledger.vote(number, by=voter, key=key_of(voter), choice=Choice.YES)
    return number


def tried(browser: Visiting, desk: ResearchDesk, project: str, code: str = COUNTS) -> str:
    """The address of a program after its trial."""
    answer = browser.post(f"{project}/try", {"job": "script", "code": code}, page=project)
    assert answer.status_code == 303, answer.text
    address = str(answer.headers["location"])
    until(lambda: "http-equiv" not in browser.get(address).text)
    return address


def until(holds: object, patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


def carried(browser: Visiting, trial: str, text: str) -> "tuple[int, str]":
    """Upload the paper of a program."""
    answer = browser.ask(
        "POST",
        f"{trial}/paper",
        data={FORM_FIELD: browser.form_token(trial)},
        files={"paper": ("signed.paper", text.encode())},
        headers={"origin": ORIGIN},
    )
    return answer.status_code, answer.headers.get("location", answer.text)


@pytest.fixture(scope="module")
def project(application: Visiting, service: Service) -> str:
    """The address of a project that was drafted, approved and opened by pages."""
    browser = application.other().sign_in("rosa")
    address = drafted(browser)
    assert "drafted" in browser.get(address).text
    paper = browser.post(f"{address}/paper", REASONS, page=address)
    handed_in(browser, service, paper.text)
    assert "Open the project" in browser.get(address).text
    assert browser.post(f"{address}/open", {}, page=address).status_code == 303
    return address


def test_a_program_from_its_trial_to_its_releases(
    project: str, rosa: Visiting, application: Visiting, service: Service, desk: ResearchDesk
) -> None:
    trial = tried(rosa, desk, project)
    shown = rosa.get(trial).text
    assert "came to its end" in shown
    assert "0.1" in shown
    assert service.ledger.balance(ACCOUNT).spent == Budget.none(), "nothing is charged by trying"
    paper = ProgramPaper.read(rosa.get(f"{trial}/paper").text)
    assert paper.code == COUNTS
    status, address = carried(rosa, trial, paper.signed(key_of("rosa")).text())
    assert status == 303, address
    assert "waits for the board" in rosa.get(address).text
    steward = application.other().sign_in("stella")
    early = steward.post(f"{address}/run", {}, page="/research")
    assert early.status_code == 409
    assert "has not approved" in early.text
    assert service.ledger.research().runs == {}
    asked = rosa.post(f"{address}/paper", REASONS, page=address)
    handed_in(rosa, service, asked.text)
    assert steward.post(f"{address}/run", {}, page=address).status_code == 303
    number = int(address.rpartition("/")[2])
    until(lambda: desk.program(number).state in ("released", "failed"))
    standing = desk.program(number)
    assert [run.phase for _, run in standing.runs] == [RunPhase.STARTED, RunPhase.RELEASED]
    assert service.ledger.balance(ACCOUNT).spent == Budget(epsilon=Fraction(1, 10))
    (identifier,) = standing.runs[-1][1].releases
    page = rosa.get(address).text
    assert identifier in page
    text = rosa.get(f"/research/releases/{identifier}").text
    assert stored_release(text).statement.identifier == identifier
    steward.post(f"{address}/run", {}, page=address)  # the same program on the same data: what it let out before
    until(lambda: len(desk.program(number).runs) == 3)
    assert desk.program(number).runs[-1][1].phase is RunPhase.STORED
    assert service.ledger.balance(ACCOUNT).spent == Budget(epsilon=Fraction(1, 10))
    public = application.other().get("/public/research").text
    assert "came to its end" in public
    assert "rosa" not in public
    assert ACCOUNT not in public
    for text in (page, public, shown):
        assert CANARY not in text
    assert service.ledger.verify() == ()


def test_a_program_that_asks_more_than_it_may_leaves_nothing(
    project: str, rosa: Visiting, service: Service, desk: ResearchDesk
) -> None:
    before = service.ledger.research()
    trial = tried(rosa, desk, project, LEAKING)
    page = rosa.get(trial)
    assert "did not come to its end" in page.text
    assert "diagnosis" not in page.text.partition("<pre")[0]
    assert rosa.ask("GET", f"{trial}/paper").status_code == 409
    assert carried(rosa, trial, "{}")[0] == 409
    assert service.ledger.research() == before


def test_a_paper_that_was_altered_or_is_not_theirs_is_refused(
    project: str, rosa: Visiting, application: Visiting, service: Service, desk: ResearchDesk
) -> None:
    code = COUNTS.replace("0.1", "0.2")
    trial = tried(rosa, desk, project, code)
    paper = ProgramPaper.read(rosa.get(f"{trial}/paper").text)
    before = service.ledger.research()
    good = paper.signed(key_of("rosa")).text()
    body = json.loads(good)
    body["code"] = body["code"].replace("0.2", "0.9")
    for wrong in (paper.text(), paper.signed(key_of("sven")).text(), json.dumps(body), "", "[]", "\ud800x"):
        status, _ = carried(rosa, trial, wrong.encode("utf-8", "replace").decode())
        assert status == 409, wrong
    other = application.other().sign_in("sven")
    assert other.ask("GET", trial).status_code in (404, 409, 422)
    assert other.post(f"{project}/try", {"job": "script", "code": COUNTS}, page="/research").status_code == 409
    assert service.ledger.research() == before
    assert carried(rosa, trial, good)[0] == 303
    assert carried(rosa, trial, good)[0] == 409, "a paper is entered once"


def test_only_releases_of_runs_are_handed_out(rosa: Visiting, service: Service) -> None:
    for name in ("nothing", "0" * 64, "../ledger", "visits"):
        assert rosa.ask("GET", f"/research/releases/{name}").status_code in (404, 422), name


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"account": "hospital/other"}, "not yours to charge"),
        ({"account": "hospital/nowhere"}, "not yours to charge"),
        ({"people": "rosa"}, "a name and a public key"),
        ({"people": "sven " + "0" * 64}, "not one of the people"),
        ({"column": []}, "missing"),
        ({"column": ["visits/salary"]}, "no such columns"),
        ({"column": ["secrets/key"]}, "no dataset"),
        ({"name": ""}, "name"),
        ({"purpose": "<b>bold</b>"}, ""),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, dict) else "",
)
def test_a_draft_that_does_not_fit_comes_back_with_why(
    rosa: Visiting, service: Service, other: dict[str, object], words: str
) -> None:
    said = {**FORM, "people": f"rosa {key_of('rosa').public_text}", "column": ["visits/ward"], **other}
    answer = rosa.post("/research/new", said, page="/research/new")
    assert "<b>bold" not in answer.text
    if words:
        assert answer.status_code == 422
        assert words in answer.text
        assert 'name="name"' in answer.text


@pytest.mark.parametrize("address", ["/research", "/research/new", "/public/research"])
def test_pages_speak_chinese(application: Visiting, project: str, address: str) -> None:
    browser = application.other().sign_in("rosa")
    for place in (address, project):
        text = browser.get(f"{place}?lang=zh").text
        assert '<html lang="zh-Hans">' in text
        assert "研究" in text


def test_researchers_ask_for_their_own_accounts_alone(rosa: Visiting, service: Service) -> None:
    for account in ("hospital/other", "hospital/nowhere"):
        said = {"name": "rosa", "action": "raise", "account": account, "epsilon": "1", "subject": "more", **REASONS}
        answer = rosa.post("/board/ask", said, page="/board/ask")
        assert answer.status_code == 409
        assert "not yours" in answer.text
    said = {"name": "rosa", "action": "raise", "account": ACCOUNT, "epsilon": "1", "subject": "more", **REASONS}
    assert rosa.post("/board/ask", said, page="/board/ask").status_code == 200
    page = rosa.get("/board/ask?account=hospital/wards&epsilon=1/2&subject=a%20%3Cb%3E&action=raise").text
    assert 'value="1/2"' in page
    assert "hospital/other" not in page
    assert "a <b>" not in page


def test_votes_are_not_handed_in_by_researchers(rosa: Visiting, service: Service) -> None:
    ballot = service.ledger.request_ballot(
        by="ada", action=Action.RAISE, subject="more", reasons=WHY, account=ACCOUNT, amount=Budget(epsilon=1)
    )
    number = service.ledger.submit(ballot.signed(key_of("ada"))).number  # type: ignore[union-attr]
    vote = service.ledger.ballot(vote=number).signed(key_of("ben"), choice=Choice.YES)
    answer = rosa.ask(
        "POST",
        "/board/ask/paper",
        data={FORM_FIELD: rosa.form_token("/board/ask")},
        files={"ballot": ("signed.ballot", vote.text().encode())},
        headers={"origin": ORIGIN},
    )
    assert answer.status_code == 409
    assert service.ledger.minutes().votes(number) == ()
    service.ledger.withdraw(number, by="ada", key=key_of("ada"))


def test_a_folder_holds_no_key_of_a_researcher(service: Service) -> None:
    private = {key_of(name).public_text for name in ("rosa", "sven")}
    for place in Path(service.folder).rglob("*.key"):
        assert not any(key in place.read_text("utf-8", "replace") for key in private)
