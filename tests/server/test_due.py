"""Nothing shows what became of a question before its deadline, and nobody reads it whose account or use has ended."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any  # what JSON holds

import pytest
import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.documents import parse
from sfumato.core.query import Dataset
from sfumato.core.question import Intended
from sfumato.governance.board import Board, Community
from sfumato.server.asking.desk import open_desk
from sfumato.server.asking.offers import Offer, OfferDecision, Precision
from sfumato.server.jobs.queue import JobOutcome, Slots
from sfumato.server.jobs.tables import JOBS
from sfumato.server.roles import ServiceRole
from tests.governance.signers import key_of
from tests.governance.test_governed import TERMS
from tests.server.asked_services import (
    ACCOUNT,
    ADA,
    BY_WARD,
    OTHER,
    PERSON,
    SCHEMA,
    AskedService,
    MovedClock,
    asked,
    furnished,
)
from tests.server.visiting import Visiting

TOTAL = 'SELECT COUNT(*) AS "count" FROM "visits"'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedService]:
    with asked(tmp_path_factory.mktemp("due") / "service") as found:
        found.service.people.add("stella", shown="Stella", roles=[ServiceRole.STEWARD])
        found.service.people.add("olga", shown="Olga", roles=[ServiceRole.AUDITOR])
        found.service.people.add("cat", shown="Cat", roles=[ServiceRole.ANALYST], accounts=[ACCOUNT, OTHER])
        found.service.ledger.declare_terms(TERMS)
        found.service.datasets.declare(
            replace(SCHEMA, edition="2026-11"),
            found.service.data / "visits.parquet",
            population="patients",
            relation="add/remove",
            cap=Budget(epsilon=10, delta="1/100000"),
            by="stella",
            purpose="research/wards",
            recipient="public",
        )
        yield found


@pytest.fixture(scope="module")
def browser(made: AskedService) -> Visiting:
    return Visiting(made.service)


@pytest.fixture(scope="module")
def pending(made: AskedService, browser: Visiting) -> tuple[str, list[Any], list[Any]]:
    """A question that was stored inside its slot; what others were told of its price before, and then."""
    told = [of_price(browser, made.token(*each)) for each in (("ada", ACCOUNT), ("ben", OTHER))]
    name = made.submitted(TOTAL).name
    made.settled(name)
    assert made.desk.queue.job(name).outcome is JobOutcome.PENDING
    return name, told, [of_price(browser, made.token(*each)) for each in (("ada", ACCOUNT), ("ben", OTHER))]


def of_price(browser: Visiting, token: str) -> list[Any]:
    headers = {"authorization": f"Bearer {token}"}
    account = browser.ask("GET", "/api/v1/session", headers=headers).json()["accounts"][0]
    said = {"dataset": "visits", "account": account, "sql": TOTAL, "epsilon": "1/10"}
    offer = browser.ask("POST", "/api/v1/offers", json=said, headers=headers).json()
    return [offer["decision"], offer["price"], offer["refusal"]]


def test_an_offer_does_not_tell_before_the_deadline_that_an_answer_is_stored(
    made: AskedService, pending: tuple[str, list[Any], list[Any]]
) -> None:
    _, before, inside = pending
    assert before == inside
    assert {each[0] for each in before} == {"allowed"}


def test_what_questions_cost_together_does_not_tell_it_either(
    made: AskedService, pending: tuple[str, list[Any], list[Any]]
) -> None:
    job = made.desk.queue.job(pending[0])
    query = made.desk.asker.decoded(ACCOUNT, "visits", parse(job.query)).query
    asked = [Intended(query=query, spend=job.spend)]
    for limit in (None, SCHEMA.limit):  # the declared limit, left out and written out
        assert made.desk.asker.cost(ACCOUNT, "visits", asked, limit=limit) == Budget(epsilon="1/10")


def test_an_answer_is_on_no_page_before_its_deadline(
    made: AskedService, browser: Visiting, pending: tuple[str, list[Any], list[Any]]
) -> None:
    with made.service.database.reading() as connection:
        release = connection.execute(sa.select(JOBS.c.release).where(JOBS.c.name == pending[0])).scalar_one()
    steward, auditor = browser.other().sign_in("stella"), browser.other().sign_in("olga")
    assert release not in steward.get("/publish").text
    said = {"identifier": release, "reason": "beds are planned by it", "legal_basis": "section 7"}
    assert steward.post("/publish", said, page="/publish").status_code == 404
    assert browser.ask("GET", f"/public/releases/{release}").status_code == 404
    charge = made.service.ledger.head().head.number - 1
    for address in ("", "/receipt.json", "/certificate.json"):
        assert auditor.get(f"/audit/charges/{charge}{address}").status_code == 404
    pack = auditor.post("/audit/evidence", {"scope": "release", "of": release}, page="/audit")
    assert pack.status_code == 422
    made.ended(pending[0])
    assert release in steward.get("/publish").text
    assert auditor.get(f"/audit/charges/{charge}/certificate.json").status_code == 200
    assert of_price(browser, made.token())[0] == "stored"


def test_a_token_of_one_account_does_not_read_answers_of_another(made: AskedService, browser: Visiting) -> None:
    one = {"authorization": f"Bearer {made.token('cat', OTHER)}"}
    both = {"authorization": f"Bearer {made.token('cat', ACCOUNT)}"}
    said = {"dataset": "visits", "account": ACCOUNT, "sql": BY_WARD, "epsilon": "1/7"}
    address = "/api/v1/questions/" + browser.ask("POST", "/api/v1/questions", json=said, headers=both).json()["name"]
    assert browser.ask("GET", address, headers=both).status_code == 200
    assert browser.ask("GET", "/api/v1/questions", headers=one).json() == []
    for each in ("", "/certificate", "/result", "/files/csv"):
        assert browser.ask("GET", address + each, headers=one).status_code == 422


def test_whoever_loses_an_account_loses_its_answers_and_projects(made: AskedService, browser: Visiting) -> None:
    cat = browser.other().sign_in("cat")
    visitor, left = (
        type(ADA)(lang="en", name="cat", roles=ADA.roles, accounts=each) for each in ((ACCOUNT, OTHER), (OTHER,))
    )
    project = made.desk.projects.make(visitor, title="Wards", about="", account=ACCOUNT)
    (asked_before,) = made.desk.asked_by(visitor)
    assert cat.get(f"/questions/{asked_before.name}").status_code == 200
    made.service.people.change("cat", roles=[ServiceRole.ANALYST], accounts=[OTHER], closed=False)
    again = browser.other().sign_in("cat")
    assert again.get(f"/questions/{asked_before.name}").status_code == 422
    assert again.get(f"/projects/{project.name}").status_code == 422
    assert (made.desk.asked_by(left), made.desk.projects.of(left)) == ([], ())


def test_after_a_veto_an_answer_is_handed_out_in_no_way(
    made: AskedService, browser: Visiting, pending: tuple[str, list[Any], list[Any]]
) -> None:
    ada, token = browser.other().sign_in("ada"), {"authorization": f"Bearer {made.token()}"}
    name, ledger = pending[0], made.service.ledger
    made.ended(name)
    pages = [f"/questions/{name}{each}" for each in ("", "/picture.svg", "/download/csv", "/download/certificate")]
    shown = [ada.get(each) for each in pages]
    assert [each.status_code for each in shown] == [200] * len(pages)
    assert shown[1].headers["cache-control"] == "no-store, private"
    assert browser.ask("GET", f"/api/v1/questions/{name}/certificate", headers=token).status_code == 200
    board = Board(
        members=("ada", "ben", "cho"),
        quorum=2,
        communities=(Community(name="riverside", representatives=("eva",), datasets=("visits",)),),
        keys=tuple((each, key_of(each).public_text) for each in ("ada", "ben", "cho", "eva")),
    )
    ledger.seat(board, by="director", reason="statute of 5 January")
    ledger.veto(by="eva", key=key_of("eva"), community="riverside", dataset="visits", reason="we were not asked")
    assert [ada.get(each).status_code for each in pages] == [409] * len(pages)
    refused = browser.ask("GET", f"/api/v1/questions/{name}/certificate", headers=token)
    assert refused.status_code == 409
    assert "riverside" in refused.text


def test_a_failure_after_the_charge_shows_in_no_offer_before_the_deadline(tmp_path: Path) -> None:
    service = furnished(tmp_path / "service")
    desk, clock = open_desk(service, Slots(length=120, lanes=1)), MovedClock()
    desk.queue.now = clock

    def told(sql: str = BY_WARD) -> Offer:
        question = desk.asker.question(ACCOUNT, "visits", sql)
        return desk.asker.offer(ACCOUNT, "visits", question, Precision.read({"epsilon": "1/10"}), sql=sql)

    name = desk.ask(ADA, told()).name
    job, account = desk.queue.take(0), service.ledger.account(ACCOUNT, unit=PERSON)
    assert job is not None
    dataset = Dataset(name="visits", edition="2026-10")
    account.reserve(job.spend, datasets=[dataset], idempotency=job.filed)
    before = [told(), told(TOTAL)]
    account.close([dataset], {})
    desk.queue.failed(name)
    inside = [told(), told(TOTAL)]
    assert [facts(each) for each in before] == [facts(each) for each in inside]
    clock.pass_over(job.ends)
    assert [each.decision for each in (told(), told(TOTAL))] == [OfferDecision.REFUSED] * 2
    service.close()


def facts(offer: Offer) -> tuple[object, ...]:
    return offer.decision, offer.price, offer.refusal, offer.left, offer.balances
