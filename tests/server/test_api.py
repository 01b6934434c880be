"""The API answers whatever it is sent, without a fault of its own; its description is what it does."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.server.api.reference import description
from sfumato.server.roles import ServiceRole
from tests import parts
from tests.server.asked_services import ACCOUNT, BY_WARD, CANARY, OTHER, AskedService, asked
from tests.server.visiting import ORIGIN, Visiting

CASES = 5_000
SMALL = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedService]:
    with asked(tmp_path_factory.mktemp("asked") / "service") as found:
        yield found


@pytest.fixture(scope="module")
def browser(made: AskedService) -> Visiting:
    return Visiting(made.service)


@pytest.fixture(scope="module")
def token(made: AskedService) -> dict[str, str]:
    return {"authorization": f"Bearer {made.token()}"}


def test_an_offer_a_question_and_its_certificate(made: AskedService, browser: Visiting, token: dict[str, str]) -> None:
    said = {"dataset": "visits", "account": ACCOUNT, "sql": BY_WARD, "margin": "20"}
    offer = browser.ask("POST", "/api/v1/offers", json=said, headers=token).json()
    assert (offer["decision"], offer["columns"][0]["margin"], offer["left"]["epsilon"]) == ("allowed", "20", "4")
    sent = browser.ask("POST", "/api/v1/questions", json=said, headers=token)
    assert sent.status_code == 202
    job = sent.json()
    assert (job["outcome"], job["release"], job["charged"]) == ("pending", None, None)
    early = browser.ask("GET", f"/api/v1/questions/{job['name']}/certificate", headers=token)
    assert early.status_code == 409
    made.ended(job["name"])
    job = browser.ask("GET", f"/api/v1/questions/{job['name']}", headers=token).json()
    assert (job["outcome"], job["charged"]["epsilon"]) == ("released", offer["price"]["epsilon"])
    text = browser.ask("GET", f"/api/v1/questions/{job['name']}/certificate", headers=token).text
    assert json.loads(text)["kind"] == "certificate"
    assert [each["name"] for each in browser.ask("GET", "/api/v1/questions", headers=token).json()] == [job["name"]]


def test_a_refusal_says_its_class_and_is_no_fault(browser: Visiting, token: dict[str, str]) -> None:
    over = {"dataset": "visits", "sql": BY_WARD, "epsilon": "9"}
    answer = browser.ask("POST", "/api/v1/questions", json=over, headers=token)
    assert (answer.status_code, answer.json()["error_class"]) == (409, "BudgetExceeded")
    assert browser.ask("POST", "/api/v1/offers", json=over, headers=token).json()["decision"] == "over"
    for wrong, status in (
        ({}, 422),
        ({**over, "margin": "1"}, 422),
        ({**over, "epsilon": "1e999999"}, 422),
        ({**over, "sql": None}, 422),
        ({**over, "query": "{}", "sql": None}, 422),
        ({**over, "query": "[" * 5000, "sql": None}, 422),
        ({**over, "surprise": 1}, 422),
        ({**over, "dataset": "no"}, 422),
        ({**over, "account": OTHER}, 409),
        ({**over, "limit": {"groups": 1, "rows_per_group": 1}}, 422),
    ):
        answer = browser.ask("POST", "/api/v1/offers", json=wrong, headers=token)
        assert answer.status_code == status, (wrong, answer.text)
        assert "error" in answer.json()


def test_a_token_of_another_is_told_of_nothing(made: AskedService, browser: Visiting) -> None:
    ben = {"authorization": f"Bearer {made.token('ben', OTHER)}"}
    name = made.submitted().name
    seen = browser.ask("GET", f"/api/v1/questions/{name}", headers=ben)
    none = browser.ask("GET", "/api/v1/questions/0123456789abcdef01234567", headers=ben)
    assert (seen.status_code, seen.text) == (none.status_code, none.text) == (422, none.text)
    assert browser.ask("GET", "/api/v1/questions", headers=ben).json() == []


def test_the_page_of_the_api_needs_no_network_and_names_every_route(browser: Visiting) -> None:
    text = browser.get("/api").text
    for path in description()["paths"]:
        assert path in text
    assert "://" not in text.replace(ORIGIN, "").replace("http://127.0.0.1", "")
    assert browser.get("/api/v1/openapi.json").json() == description()


def test_a_program_reaches_what_its_row_says_and_no_page(browser: Visiting, token: dict[str, str]) -> None:
    assert browser.ask("GET", "/ask", headers=token).status_code == 403
    assert browser.ask("GET", "/api/v1/session", headers=token).json()["accounts"] == [ACCOUNT]
    assert browser.ask("GET", "/api/v1/session").status_code == 401
    assert ServiceRole.ANALYST.value == "analyst"


@pytest.mark.parametrize("cases", [SMALL, pytest.param(CASES, marks=pytest.mark.long)], ids=["a few", "five thousand"])
def test_whatever_the_description_allows_or_not_is_answered_without_a_fault(
    cases: int, made: AskedService, browser: Visiting, token: dict[str, str]
) -> None:
    """Requests by schemathesis, positive and negative, at every route; none ends in a status of 500 or above."""
    parts.package("schemathesis")
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_dict(description())
    operations = [found.ok() for found in schema.get_all_operations()]
    each = max(1, cases // (2 * len(operations)))
    sent, statuses = 0, set()

    def tried(case: Any) -> None:
        nonlocal sent
        arguments = case.as_transport_kwargs(base_url=ORIGIN)
        body = {name: arguments[name] for name in ("json", "data", "params") if arguments.get(name) is not None}
        if isinstance(body.get("data"), str | bytes):
            body["content"] = body.pop("data")
        headers = {
            name: value
            for name, value in dict(arguments.get("headers") or {}).items()
            if name.lower() in ("content-type", "accept") and value.isascii() and value.isprintable()
        }
        address = arguments["url"].removeprefix(ORIGIN)
        try:
            answer = browser.ask(arguments["method"], address, headers={**headers, **token}, **body)
        except (UnicodeEncodeError, ValueError, TypeError):
            return  # what no client can send
        sent += 1
        statuses.add(answer.status_code)
        assert answer.status_code < 500, (arguments, answer.text)
        assert CANARY not in answer.text

    for operation in operations:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            try:
                strategy = operation.as_strategy(generation_mode=mode)
            except Exception:  # noqa: BLE001, S112 - a route without parameters has nothing that is wrong
                continue
            run = settings(
                max_examples=each,
                phases=[Phase.generate],
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                derandomize=os.environ.get("SFUMATO_LONG") != "1",
            )
            run(given(case=strategy)(lambda case: tried(case)))()
    assert sent >= min(cases, 20) / 2
    assert 422 in statuses
    assert max(statuses) < 500
    assert made.spent <= 4
