"""The pages of an analyst: the offer before anything is charged, the answer at its deadline, files, projects."""

import io
import json
import logging
import re
from collections.abc import Iterator
from fractions import Fraction
from html import unescape
from urllib.parse import urlencode

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from sfumato.core.budget import Budget
from sfumato.reports.verify import parsed, verify
from sfumato.server.asking.results import DOWNLOADS
from sfumato.server.jobs.queue import JobOutcome
from tests.server.asked_services import ACCOUNT, BY_WARD, CANARY, OTHER, AskedService, asked
from tests.server.visiting import Visiting, fields_of

FORM = {"measure": "count", "group1": "ward", "by": "margin", "margin": "20", "account": ACCOUNT}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedService]:
    with asked(tmp_path_factory.mktemp("asked") / "service") as found:
        yield found


@pytest.fixture(scope="module")
def application(made: AskedService) -> Visiting:
    return Visiting(made.service)


@pytest.fixture
def ada(application: Visiting) -> Visiting:
    return application.other().sign_in("ada")


@pytest.fixture(scope="module")
def answered(made: AskedService, application: Visiting) -> str:
    """The address of a question that was asked by the form and answered."""
    browser = application.other().sign_in("ada")
    page = f"/ask/visits?{urlencode(FORM)}"
    sent = browser.post("/ask/visits", offer_fields(browser.get(page).text), page=page)
    assert sent.status_code == 303
    address = sent.headers["location"]
    assert "Ready at" in browser.get(address).text
    assert made.ended(address.rpartition("/")[2]).outcome is JobOutcome.RELEASED
    return str(address)


def offer_fields(text: str) -> dict[str, str]:
    """The fields of the form that hands a question in."""
    return fields_of(text[text.index('class="submit"') :])


def entries(made: AskedService) -> int:
    return made.service.ledger.head().head.number


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_offer_comes_before_anything_is_charged_and_says_all(
    language: str, made: AskedService, ada: Visiting
) -> None:
    before = entries(made)
    fields = {**FORM, "where1_column": "age", "where1_operator": ">=", "where1_value": "50"}
    text = unescape(ada.get(f"/ask/visits?{urlencode({**fields, 'lang': language})}").text)
    assert f'<html lang="{"en" if language == "en" else "zh-Hans"}">' in text
    assert "±20" in text
    assert '"age" >= 50' in text
    assert (f"Account {ACCOUNT}" if language == "en" else f"账户 {ACCOUNT}") in text
    assert 'name="epsilon" value="' in text
    assert entries(made) == before


def test_the_fragment_for_the_script_is_the_offer_of_the_page(ada: Visiting) -> None:
    query = urlencode({**FORM, "margin": "17"})
    fragment = ada.get(f"/ask/visits/offer?{query}").text
    assert "<html" not in fragment
    page = ada.get(f"/ask/visits?{query}").text
    panel = fragment[fragment.index("<h2>") : fragment.index("<details")]
    assert panel in page


def test_what_is_more_than_is_left_looks_like_a_decision_and_not_like_an_error(
    made: AskedService, ada: Visiting
) -> None:
    before = entries(made)
    address = f"/ask/visits?{urlencode({**FORM, 'by': 'epsilon', 'epsilon': '9', 'margin': ''})}"
    answer = ada.get(address)
    text = unescape(answer.text)
    assert answer.status_code == 200
    assert "This is more than is left" in text
    assert "Ask for ε = " in text
    assert "instead" in text
    assert "Propose to the board" not in text, "no board is seated here"
    assert not [
        word for word in ("error", "Error", "denied", "forbidden", "failed", "attention") if word in panel(text)
    ]
    sent = ada.post("/ask/visits", offer_fields(answer.text), page=address)  # a stale button does no harm
    assert sent.status_code == 200
    assert entries(made) == before


def panel(text: str) -> str:
    return text[text.index('<div class="panel"') : text.index("</aside>")].replace("Error and price", "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "sql", "sql": "SELECT * FROM visits"}, "SELECT * is not supported"),
        ({"mode": "sql", "sql": "DROP TABLE visits"}, "DROP is no question"),
        ({"mode": "sql", "sql": "SELECT COUNT(*) FROM visits WHERE name = 'x'"}, "name"),
        ({"group1": "patient_id"}, "cannot be grouped by"),
        ({"margin": "soon"}, "the margin"),
        ({"account": OTHER}, "may not charge this account"),
        ({"account": "no/such"}, "may not charge this account"),
    ],
)
def test_what_cannot_be_asked_is_said_on_the_page(
    fields: dict[str, str], words: str, made: AskedService, ada: Visiting
) -> None:
    before = entries(made)
    answer = ada.get(f"/ask/visits?{urlencode({**FORM, **fields})}")
    assert (answer.status_code, entries(made)) == (200, before)
    assert words in unescape(answer.text)


def test_an_answer_has_its_numbers_intervals_picture_words_and_charge(
    made: AskedService, ada: Visiting, answered: str
) -> None:
    text = unescape(ada.get(answered).text)
    job = made.desk.queue.job(answered.rpartition("/")[2])
    release = made.desk.release(job)
    for word in ("east", "west", "95% interval", "Files", str(release.statement.identifier), "In words"):
        assert word in text
    assert f"{release.values[0]:,}" in text
    assert "This is the stored answer" not in text
    for theme in ("light", "dark"):
        drawn = ada.get(f"{answered}/picture.svg?theme={theme}&narrow=true")
        assert (drawn.status_code, drawn.text[:4]) == (200, "<svg")
    assert made.spent >= Fraction(1, 100)


def test_every_file_of_an_answer_can_be_downloaded_and_holds_it(
    made: AskedService, ada: Visiting, answered: str
) -> None:
    release = made.desk.release(made.desk.queue.job(answered.rpartition("/")[2]))
    found = {}
    for kind, (ending, media) in DOWNLOADS.items():
        answer = ada.get(f"{answered}/download/{kind}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, media)
        assert answer.headers["content-disposition"].endswith(f".{ending}")
        found[kind] = answer.content
        assert CANARY.encode() not in answer.content
    assert pq.read_table(io.BytesIO(found["parquet"])).equals(release.to_arrow())
    assert pa_csv.read_csv(io.BytesIO(found["csv"])).column("ward").to_pylist() == ["east", "west"]
    assert verify(parsed(found["certificate"].decode()), key=made.service.release_public_key).authenticated
    assert (found["png"][:4], found["excel"][:2]) == (b"\x89PNG", b"PK")
    cells = json.loads(found["notebook"])["cells"]
    assert any("sf.connect(" in "".join(cell["source"]) for cell in cells)
    assert any(json.dumps(BY_WARD) in "".join(cell["source"]) for cell in cells)
    assert ada.get(f"{answered}/download/secrets").status_code == 422


def test_what_others_asked_is_not_there_for_whoever_may_not_charge_their_account(
    application: Visiting, answered: str
) -> None:
    ben = application.other().sign_in("ben")
    for address in (answered, f"{answered}/picture.svg", f"{answered}/download/certificate"):
        mine, none = ben.get(address), ben.get(address.replace(answered, "/questions/0123456789abcdef01234567"))
        assert (mine.status_code, none.status_code) == (422, 422)
        assert without_tokens(mine.text).replace(answered, "") == without_tokens(none.text).replace(
            "/questions/0123456789abcdef01234567", ""
        )
    assert answered not in ben.get("/questions").text


def without_tokens(text: str) -> str:
    return re.sub(r'name="form_token" value="[^"]*"', "", text)


def test_the_same_again_is_stored_and_costs_nothing(made: AskedService, ada: Visiting, answered: str) -> None:
    spent, page = made.spent, f"/ask/visits?{urlencode(FORM)}"
    text = ada.get(page).text
    assert "The answer is there already" in text
    sent = ada.post("/ask/visits", offer_fields(text), page=page)
    job = made.ended(sent.headers["location"].rpartition("/")[2])
    first = made.desk.queue.job(answered.rpartition("/")[2])
    assert (job.outcome, job.release, made.spent) == (JobOutcome.RELEASED, first.release, spent)
    assert "was stored before and cost nothing" in ada.get(sent.headers["location"]).text


def test_sql_orders_what_it_shows(made: AskedService, ada: Visiting) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward DESC LIMIT 1"
    page = f"/ask/visits?{urlencode({'mode': 'sql', 'sql': sql, 'margin': '20', 'account': ACCOUNT})}"
    sent = ada.post("/ask/visits", offer_fields(ada.get(page).text), page=page)
    made.ended(sent.headers["location"].rpartition("/")[2])
    text = ada.get(sent.headers["location"]).text
    assert '<th scope="row">west</th>' in text
    assert '<th scope="row">east</th>' not in text


def test_drafts_are_kept_in_projects_and_cost_nothing(made: AskedService, ada: Visiting, application: Visiting) -> None:
    before = entries(made)
    sent = ada.post("/projects", {"title": "Stents", "about": "<script>", "account": ACCOUNT}, page="/projects")
    assert sent.status_code == 303
    project = sent.headers["location"]
    name = project.rpartition("/")[2]
    page = f"/ask/visits?{urlencode({**FORM, 'margin': '3'})}"
    fields = offer_fields(ada.get(page).text)
    kept = ada.post("/ask/visits", {**fields, "project": name, "keep": "draft"}, page=page)
    assert kept.headers["location"] == project
    text = unescape(ada.get(project).text)
    assert "count of visits, for each ward" in text
    address = text[text.index("/ask/visits?") :].partition('"')[0]
    assert "±3" in ada.get(address).text
    assert entries(made) == before
    ben = application.other().sign_in("ben")
    assert "Stents" not in ben.get("/projects").text
    assert ben.get(project).status_code == 422
    refused = ben.post(f"/projects/{name}/drop", {"draft": "x"}, page="/projects")
    assert refused.status_code == 422
    draft = fields_of(ada.get(project).text)["draft"]
    ada.post(f"/projects/{name}/drop", {"draft": draft}, page=project)
    assert "No drafts." in ada.get(project).text


def test_a_canary_in_the_rows_is_on_no_page_and_in_no_log(
    made: AskedService, ada: Visiting, answered: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    pages = ["/ask", "/ask/visits", f"/ask/visits?{urlencode(FORM)}", "/questions", answered, "/api", "/projects"]
    pages += [f"{answered}?audience={each}" for each in ("patient", "clinician", "manager", "board")]
    refused = {"mode": "sql", "margin": "1", "sql": "SELECT MAX(patient_id) FROM visits"}
    pages.append(f"/ask/visits?{urlencode(refused)}")
    for address in pages:
        for language in ("en", "zh"):
            answer = ada.get(f"{address}{'&' if '?' in address else '?'}lang={language}")
            assert answer.status_code == 200, address
            assert CANARY not in answer.text
    assert CANARY not in caplog.text
    for file in (made.service.folder / "service.db", made.service.folder / "service.db-wal"):
        assert not file.exists() or CANARY.encode() not in file.read_bytes()


def test_a_failed_question_says_the_same_whatever_happened(made: AskedService, ada: Visiting) -> None:
    texts = set()
    for _ in range(2):
        job = made.desk.queue.submit(
            login="ada",
            account=ACCOUNT,
            query=made.desk.asker.question(ACCOUNT, "visits", BY_WARD).query,
            spend=Budget(epsilon="1/50"),
            title="n",
        )
        made.settled(job.name)
        made.desk.queue.failed(job.name)
        made.clock.pass_over(job.ends)
        texts.add(without_tokens(ada.get(f"/questions/{job.name}").text).replace(job.name, ""))
    (text,) = texts
    assert "What was charged counts, and nothing was released" in text
