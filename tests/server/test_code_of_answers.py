"""Code that people download asks the same again, and holds no code of whoever chose a name."""

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.server.asking.desk import open_desk
from sfumato.server.asking.offers import Precision
from sfumato.server.asking.results import connected, in_code, notebook
from sfumato.server.roles import ServiceRole
from tests.server.asked_services import ACCOUNT, ADA, SCHEMA, furnished
from tests.server.test_onboarding import FORM
from tests.server.visiting import Visiting

UPLOADED = f"file-{'a' * 43}.csv"
NAMES = (
    'v", x=print("code of a steward") or "',
    "v', x=print(1) or '",
    'v\\", print(1), "',
    'v\n"\nprint(1)\n"',
    "v\r\x85\u2028print(1)\x00",
    "\u202e\U0001f642\x7f",
    "{print(1)}",
    "oncology",
)


def calls(code: str) -> list[str]:
    return sorted(ast.unparse(each.func) for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Call))


@pytest.mark.parametrize("name", NAMES)
def test_a_text_in_code_is_that_text_and_never_code(name: str) -> None:
    assert ast.literal_eval(in_code(name)) == name
    assert calls(connected(name, name)) == ["sf.connect"]


def test_the_notebook_of_an_answer_holds_no_code_of_a_steward(tmp_path: Path) -> None:
    name = NAMES[0]
    service = furnished(tmp_path / "service")
    try:
        service.datasets.declare(
            replace(SCHEMA, name=name, edition="1"),
            service.data / "visits.parquet",
            population="patients",
            relation="add/remove",
            cap=Budget(epsilon=1),
            by="stella",
        )
        desk = open_desk(service)
        sql = 'SELECT COUNT(*) AS "n" FROM "' + name.replace('"', '""') + '"'  # noqa: S608 - it is parsed here
        question = desk.asker.question(ACCOUNT, name, sql)
        offer = desk.asker.offer(ACCOUNT, name, question, Precision(epsilon=Fraction(1, 10)), sql=sql)
        asked = desk.ask(ADA, offer)
        cells = json.loads(notebook(asked, address="http://127.0.0.1"))["cells"]
    finally:
        service.close()
    assert calls("".join(cells[2]["source"])) == ["service.sql"]
    assert [calls("".join(cell["source"])) for cell in cells[3:]] == [["answer.explain", "print"], ["answer.plot"]]
    assert calls("".join(cells[1]["source"])) == ["sf.connect"]


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visiting]:
    service = furnished(tmp_path_factory.mktemp("refusing") / "service")
    (service.data / UPLOADED).write_text("patient_id,ward,age\n", "utf-8")
    service.people.add("stella", shown="Stella", roles=[ServiceRole.STEWARD])
    yield Visiting(service).sign_in("stella")
    service.close()


@pytest.mark.parametrize("field", ["name", "edition"])
@pytest.mark.parametrize("name", ['visits"', "visits'", "visits\\", "vis\nits", "visits\u202e", "visits`"])
def test_a_name_with_quotes_is_refused_at_onboarding(name: str, field: str, refusing: Visiting) -> None:
    answer = refusing.post("/data/declare", FORM | {field: name, "file": UPLOADED}, page="/data/new")
    assert answer.status_code == 422
    assert "without quotes" in answer.text
    assert list(refusing.service.datasets) == ["visits"]
