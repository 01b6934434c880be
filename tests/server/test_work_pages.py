"""Studies and synthetic rows by form: the offer first, the result at its deadline, files, and code that repeats it."""

import io
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.client.connection import connect
from sfumato.core.budget import Budget
from sfumato.errors import Refused
from sfumato.reports.verify import parsed, verify
from sfumato.server.jobs.queue import JobOutcome
from sfumato.server.works.answers import read_again, study_result, work_of
from sfumato.server.works.downloads import ROW_FILES, STUDY_FILES
from sfumato.server.works.forms import RegressionForm, SurvivalForm
from sfumato.server.works.kinds import kept
from sfumato.server.works.row_process import made_rows
from sfumato.server.works.rows import FileMaker, task_of
from sfumato.server.works.synthetic_form import SyntheticForm
from tests.server.asked_services import ACCOUNT, CANARY, OTHER, AskedService, asked
from tests.server.quick_line import Quick
from tests.server.trial_services import declare
from tests.server.visiting import ORIGIN, Visiting, fields_of

CAP = Budget(epsilon=8, delta="1/1000000")
SURVIVAL = {"time": "week", "event_column": "relapsed", "group": "arm", "by": "epsilon", "epsilon": "2"}
LINEAR = {"outcome": "sbp", "use": ["age", "arm"], "low:age": "20", "high:age": "88", "epsilon": "2", "delta": "1e-7"}
LOGISTIC = {"outcome": "relapsed", "event": "True", "use": ["arm"], "by": "rows", "rows": "1200"}
SYNTHETIC = {"use": ["arm", "relapsed", "age"], "bins:age": "4", "rows_made": "300", "epsilon": "1", "delta": "1e-7"}
Said = dict[str, Any]
STUDIES: dict[str, Said] = {"survival": SURVIVAL, "linear": LINEAR, "logistic": LOGISTIC}
FORMS: dict[str, Said] = {**STUDIES, "synthetic": SYNTHETIC}
Answered = dict[str, str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedService]:
    with asked(tmp_path_factory.mktemp("asked") / "service", cap=CAP) as found:
        declare(found)
        yield found


@pytest.fixture(scope="module")
def application(made: AskedService) -> Visiting:
    return Visiting(made.service)


@pytest.fixture
def ada(application: Visiting) -> Visiting:
    return application.other().sign_in("ada")


@pytest.fixture(scope="module")
def answered(made: AskedService, application: Visiting) -> Answered:
    """The addresses of works of each kind that were asked by their forms and answered."""
    browser, found = application.other().sign_in("ada"), {}
    for kind, said in FORMS.items():
        page = address_of(kind, said)
        text = browser.get(page).text
        sent = browser.post(f"/ask/trial/as/{kind}", offer_fields(text), page=page)
        assert sent.status_code == 303, unescape(text)
        found[kind] = sent.headers["location"]
        assert "Ready at" in browser.get(found[kind]).text
        assert made.ended(found[kind].rpartition("/")[2]).outcome is JobOutcome.RELEASED
    end = time.monotonic() + 60
    while "are being made" in browser.get(found["synthetic"]).text:
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def address_of(kind: str, said: Said, **more: str) -> str:
    return f"/ask/trial/as/{kind}?{urlencode({**said, **more, 'account': more.get('account', ACCOUNT)}, doseq=True)}"


def offer_fields(text: str) -> dict[str, str]:
    return fields_of(text[text.index('class="submit"') :])


def entries(made: AskedService) -> int:
    return made.service.ledger.head().head.number


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", FORMS)
def test_the_offer_of_a_work_comes_before_anything_is_charged(
    kind: str, language: str, made: AskedService, ada: Visiting
) -> None:
    before = entries(made)
    text = unescape(
        ada.get(
            address_of(
                kind,
                {**FORMS[kind], "where1_column": "age", "where1_operator": ">", "where1_value": "20"},
                lang=language,
            )
        ).text
    )
    assert 'class="submit"' in text
    assert (f"Account {ACCOUNT}" if language == "en" else f"账户 {ACCOUNT}") in text
    assert ("Ask for ε" if language == "en" else "以 ε") in text
    assert ("rows" in text) or language == "zh"
    assert entries(made) == before


def test_the_least_price_is_found_for_the_rows_that_are_expected(made: AskedService, ada: Visiting) -> None:
    before, found = entries(made), []
    for rows in ("400", "4000"):
        text = ada.get(address_of("survival", SURVIVAL, by="rows", rows=rows, epsilon="")).text
        found.append(Fraction(offer_fields(text)["epsilon"]))
    assert found[0] > found[1] > 0
    assert "say how many rows you expect" in ada.get(address_of("survival", SURVIVAL, by="rows", rows="")).text
    assert entries(made) == before


def test_the_fragment_of_a_work_is_the_offer_of_its_page(ada: Visiting) -> None:
    address = address_of("survival", SURVIVAL)
    fragment = ada.get(address.replace("survival?", "survival/offer?")).text
    assert "<html" not in fragment
    assert fragment[fragment.index("<h2>") : fragment.index("<details")] in ada.get(address).text


@pytest.mark.parametrize(
    ("kind", "said", "words"),
    [
        ("survival", {"time": ""}, "needs the column with the time"),
        ("survival", {"time": "sbp"}, "steps"),
        ("survival", {"event_column": "arm"}, "no declared value"),
        ("survival", {"until": "99"}, "beyond the declared bounds"),
        ("survival", {"until": "soon"}, "until"),
        ("survival", {"steps": "-1"}, "whole number"),
        ("survival", {"group": "age"}, "age"),
        ("survival", {"account": OTHER}, "may not charge this account"),
        ("survival", {"epsilon": "99"}, "more than is left"),
        ("linear", {"use": []}, "at least one column"),
        ("linear", {"use": ["sbp"]}, "does not explain itself"),
        ("linear", {"use": ["patient_id"]}, "patient_id"),
        ("linear", {"low:age": "88", "high:age": "20"}, "from a smaller to a larger"),
        ("linear", {"low:age": "young"}, "not a number"),
        ("logistic", {"event": "maybe"}, "no declared value"),
        ("linear", {"by": "rows", "rows": "1"}, "noise is not small"),
        ("synthetic", {"use": ["arm"]}, "at least two columns"),
        ("synthetic", {"use": ["arm", "patient_id"]}, "patient_id"),
        ("synthetic", {"rows_made": "900000"}, "rows at most"),
        ("synthetic", {"bins:age": "many"}, "whole number"),
        ("synthetic", {"epsilon": "-1"}, "ε"),
        ("linear", {"where1_column": "arm", "where1_operator": "<", "where1_value": "x"}, "is compared by"),
    ],
)
def test_what_cannot_be_asked_is_said_and_costs_nothing(
    kind: str, said: Said, words: str, made: AskedService, ada: Visiting
) -> None:
    before = entries(made)
    answer = ada.get(address_of(kind, {**FORMS[kind], **said}, account=str(said.get("account", ACCOUNT))))
    assert (answer.status_code, entries(made)) == (200, before)
    assert words in unescape(answer.text)
    assert "Ask for ε = <" not in answer.text


def test_a_form_of_no_kind_or_of_no_dataset_is_refused(ada: Visiting) -> None:
    assert ada.get("/ask/trial/as/secrets").status_code == 422
    assert ada.get("/ask/nothing/as/survival").status_code == 422


@pytest.mark.parametrize("kind", FORMS)
def test_a_result_has_its_figures_its_charge_and_the_code_that_repeats_it(
    kind: str, made: AskedService, ada: Visiting, answered: Answered
) -> None:
    job = made.desk.queue.job(answered[kind].rpartition("/")[2])
    for language in ("en", "zh"):
        answer = ada.get(f"{answered[kind]}?lang={language}")
        text = unescape(answer.text)
        assert answer.status_code == 200
        assert str(job.release) in text
        assert "table = service.table('trial')" in text
        assert CANARY not in text
    text = unescape(ada.get(f"{answered[kind]}?lang=en").text)
    words = {
        "survival": ("Log-rank", "ratio", "edian"),
        "linear": ("Intercept", "age", "arm[treated]"),
        "logistic": ("dds ratio", "arm[treated]"),
        "synthetic": ("The first 12 of 300 rows", "<svg", "Cramér"),
    }
    for word in words[kind]:
        assert word in text, word


@pytest.mark.parametrize("kind", FORMS)
def test_every_file_of_a_work_can_be_downloaded(
    kind: str, made: AskedService, ada: Visiting, answered: Answered
) -> None:
    found = {}
    for file in ROW_FILES if kind == "synthetic" else STUDY_FILES:
        answer = ada.get(f"{answered[kind]}/download/{file}")
        assert answer.status_code == 200, (file, answer.text)
        assert CANARY.encode() not in answer.content
        found[file] = answer.content
    assert verify(parsed(found["certificate"].decode()), key=made.service.release_public_key).authenticated
    assert any("table" in "".join(cell["source"]) for cell in json.loads(found["notebook"])["cells"])
    compile(found["code"], "code.py", "exec")
    if kind == "synthetic":
        rows = pq.read_table(io.BytesIO(found["parquet"]))
        assert (rows.num_rows, rows.column_names) == (300, ["arm", "relapsed", "age"])
        assert pa_csv.read_csv(io.BytesIO(found["csv"])).num_rows == 300
    else:
        drawn = ada.get(f"{answered[kind]}/picture.svg?theme=dark&narrow=true")
        assert (drawn.status_code, drawn.text[:4]) == (200, "<svg")
        assert (found["png"][:4], found["excel"][:2]) == (b"\x89PNG", b"PK")
    assert ada.get(f"{answered[kind]}/download/secrets").status_code == 422


@pytest.mark.parametrize("kind", FORMS)
def test_the_code_of_a_page_asks_the_same_and_costs_nothing(
    kind: str, made: AskedService, ada: Visiting, answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.client.connection.time.sleep", lambda seconds: None)
    before, text = made.spent, ada.get(f"{answered[kind]}/download/code").text
    lines = [line for line in text.splitlines() if line.startswith(("table", "study", "result =", "made ="))]
    service = connect(ORIGIN, token=made.token(), transport=Quick(made))
    names: Said = {"sf": sf, "service": service}
    exec("\n".join(lines), names)  # noqa: S102 - what the page shows
    job = made.desk.queue.job(answered[kind].rpartition("/")[2])
    result = names["made" if kind == "synthetic" else "result"]
    release = result.release if kind == "synthetic" else result.sources[0]
    assert (release.statement.identifier, made.spent) == (job.release, before)
    if kind == "synthetic":
        sent = ada.get(f"{answered[kind]}/download/parquet").content
        assert pq.read_table(io.BytesIO(sent)).equals(result.rows)


def test_what_others_studied_is_not_there(application: Visiting, answered: Answered) -> None:
    ben = application.other().sign_in("ben")
    for address in answered.values():
        for part in ("", "/picture.svg", "/download/certificate", "/download/csv"):
            assert ben.get(f"{address}{part}").status_code == 422


def test_a_work_is_kept_as_a_draft_and_gone_on_with(made: AskedService, ada: Visiting) -> None:
    before = entries(made)
    project = ada.post("/projects", {"title": "Trial", "about": "", "account": ACCOUNT}, page="/projects")
    address = project.headers["location"]
    page = address_of("linear", {**LINEAR, "epsilon": "3"})
    kept = {**offer_fields(ada.get(page).text), "project": address.rpartition("/")[2], "keep": "draft"}
    assert ada.post("/ask/trial/as/linear", kept, page=page).headers["location"] == address
    text = unescape(ada.get(address).text)
    again = text[text.index("/ask/trial/as/linear?") :].partition('"')[0]
    assert 'value="88"' in ada.get(again).text
    assert "Ask for ε" in ada.get(again).text
    assert entries(made) == before


def test_a_stale_button_asks_nothing_that_does_not_fit(made: AskedService, ada: Visiting) -> None:
    page, before = address_of("survival", SURVIVAL), entries(made)
    fields = {**offer_fields(ada.get(page).text), "epsilon": "90"}
    sent = ada.post("/ask/trial/as/survival", fields, page=page)
    assert (sent.status_code, entries(made)) == (200, before)
    assert "more than is left" in sent.text


# ------------------------------------------------------------------------------------------------- the API

BODIES: dict[str, Said] = {
    "survival": {"time": "week", "event": {"column": "relapsed"}, "group": "arm", "epsilon": "2"},
    "linear": {
        "outcome": "sbp",
        "use": ["age", "arm"],
        "ranges": {"age": ["20", "88"]},
        "epsilon": "2",
        "delta": "1e-7",
    },
    "synthetic": {
        "use": ["arm", "relapsed", "age"],
        "bins": {"age": 4},
        "rows_made": 300,
        "epsilon": "1",
        "delta": "1e-7",
    },
}


@pytest.fixture(scope="module")
def token(made: AskedService) -> dict[str, str]:
    return {"authorization": f"Bearer {made.token()}"}


@pytest.mark.parametrize("kind", BODIES)
def test_a_program_asks_the_same_and_gets_the_stored_answer(
    kind: str, made: AskedService, application: Visiting, token: dict[str, str], answered: Answered
) -> None:
    body, before = {"dataset": "trial", "kind": kind, **BODIES[kind]}, made.spent
    offer = application.ask("POST", "/api/v1/works/offers", json=body, headers=token).json()
    assert offer["decision"] == "stored", offer
    assert bool(offer["planned"]) is (kind == "synthetic")
    sent = application.ask("POST", "/api/v1/works", json={**body, "idempotency": kind}, headers=token)
    assert sent.status_code == 202, sent.text
    name = sent.json()["name"]
    early = application.ask("GET", f"/api/v1/questions/{name}/result", headers=token)
    assert early.status_code == 409
    first = made.desk.queue.job(answered[kind].rpartition("/")[2])
    assert (made.ended(name).release, made.spent) == (first.release, before)
    found = application.ask("GET", f"/api/v1/questions/{name}/result", headers=token).json()
    assert (found["kind"], found["made"], bool(found["parts"])) == (kind, True, kind != "synthetic")
    file = application.ask("GET", f"/api/v1/questions/{name}/files/csv", headers=token)
    assert (file.status_code, CANARY in file.text) == (200, False)
    again = application.ask("POST", "/api/v1/works", json={**body, "idempotency": kind}, headers=token)
    assert again.json()["name"] == name
    ben = {"authorization": f"Bearer {made.token('ben', OTHER)}"}
    for part in ("result", "files/csv"):
        assert application.ask("GET", f"/api/v1/questions/{name}/{part}", headers=ben).status_code == 422


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"kind": "survival"}, 422),
        ({"kind": "secrets", "epsilon": "1"}, 422),
        ({**BODIES["survival"], "kind": "survival", "epsilon": None}, 422),
        ({**BODIES["survival"], "kind": "survival", "epsilon": "99"}, 409),
        ({**BODIES["survival"], "kind": "survival", "account": OTHER}, 409),
        ({**BODIES["survival"], "kind": "survival", "dataset": "secrets"}, 422),
        ({**BODIES["survival"], "kind": "survival", "surprise": 1}, 422),
        ({**BODIES["linear"], "kind": "linear", "ranges": {"age": ["x", "1"]}}, 422),
        ({**BODIES["synthetic"], "kind": "synthetic", "epsilon": "1e999999"}, 422),
    ],
)
def test_a_program_is_refused_in_words_before_anything_is_charged(
    said: Said, status: int, made: AskedService, application: Visiting, token: dict[str, str]
) -> None:
    before = entries(made)
    answer = application.ask("POST", "/api/v1/works", json={"dataset": "trial", **said}, headers=token)
    assert (answer.status_code, entries(made)) == (status, before), answer.text
    assert answer.json()["error"]


def test_a_question_that_is_no_work_has_no_result_of_one(
    made: AskedService, application: Visiting, token: dict[str, str]
) -> None:
    name = made.ended(made.submitted(epsilon="1/50").name).name
    for part in ("result", "files/csv"):
        assert application.ask("GET", f"/api/v1/questions/{name}/{part}", headers=token).status_code == 422


def test_under_one_key_another_form_of_the_same_question_is_refused(
    made: AskedService, application: Visiting, token: dict[str, str]
) -> None:
    body = {"dataset": "trial", "kind": "synthetic", **BODIES["synthetic"], "idempotency": "friday"}
    first = application.ask("POST", "/api/v1/works", json=body, headers=token)
    other = application.ask("POST", "/api/v1/works", json={**body, "rows_made": 299}, headers=token)
    assert (first.status_code, other.status_code) == (202, 409)
    made.ended(first.json()["name"])


# ------------------------------------------------------------------------------------------------- attacks and failures


def test_a_form_that_asks_something_else_than_was_answered_shows_nothing_of_it(
    made: AskedService, answered: Answered
) -> None:
    job = made.desk.queue.job(answered["survival"].rpartition("/")[2])
    for form in (
        SurvivalForm.read("trial", {"time": "week", "event_column": "relapsed"}),
        RegressionForm.read("logistic", "trial", {"outcome": "relapsed", "use": "arm"}),
    ):
        answer = replace(read_again(made.desk, replace(job, name="another"), form), form=form)
        with pytest.raises(Refused, match="asks something else"):
            study_result(answer)
    rows = SyntheticForm.read("trial", {"use": "arm\nage"})
    answer = read_again(made.desk, job, rows)
    task = {
        "certificate": answer.release.certificate.text,
        "schema": answer.schema.to_toml(),
        "form": kept(rows),
        "epsilon": "2",
        "delta": "0",
    }
    with pytest.raises(Refused, match="asks something else"):
        made_rows(task)


def test_rows_that_cannot_be_made_are_told_of_and_the_certificate_is_still_there(
    made: AskedService, ada: Visiting, answered: Answered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    maker = FileMaker(tmp_path / "made", command=(sys.executable, "-c", "raise SystemExit(1)"))
    monkeypatch.setattr(made.desk, "files", maker)
    end = time.monotonic() + 30
    while "are being made" in (text := ada.get(f"{answered['synthetic']}?lang=en").text):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "could not be made" in text
    assert ada.get(f"{answered['synthetic']}/download/certificate").status_code == 200
    assert ada.get(f"{answered['synthetic']}/download/csv").status_code == 409
    maker.stop()


def test_the_process_that_makes_rows_is_given_no_key_and_no_place_of_data(
    made: AskedService, answered: Answered
) -> None:
    job = made.desk.queue.job(answered["synthetic"].rpartition("/")[2])
    form = work_of(made.desk, job)
    assert form is not None
    told = json.dumps(task_of(read_again(made.desk, job, form)))
    held = made.service.datasets["trial"]
    for secret in (held.place, made.service.owner, str(made.service.release_key), str(made.service.folder), CANARY):
        assert secret not in told


def test_a_work_that_failed_after_its_charge_says_what_a_question_says(made: AskedService, ada: Visiting) -> None:
    texts = []
    for work in (None, kept(SurvivalForm.read("trial", {"time": "week", "event_column": "relapsed"}))):
        query = made.desk.asker.question(ACCOUNT, "trial", "SELECT COUNT(*) AS n FROM trial").query
        job = made.desk.queue.submit(
            login="ada", account=ACCOUNT, query=query, spend=Budget(epsilon="1/90"), title="n", work=work
        )
        made.settled(job.name)
        made.desk.queue.failed(job.name)
        made.clock.pass_over(job.ends)
        text = ada.get(f"/questions/{job.name}?lang=en").text
        texts.append(text[text.index("<main") : text.index('class="actions"')])
    assert texts[0] == texts[1]
    assert "What was charged counts, and nothing was released" in texts[0]
