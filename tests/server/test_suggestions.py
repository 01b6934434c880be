"""Stewards have limits and bounds suggested by charged private releases; no exact number is looked up for them."""

import re
from collections.abc import Iterator
from fractions import Fraction
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.engines.expressions import Type
from sfumato.reports.verify import parsed, verify
from sfumato.server.asking.suggestions import SuggestionForm
from sfumato.server.jobs.queue import JobOutcome
from sfumato.server.rendering import FORM_FIELD
from sfumato.server.roles import ServiceRole
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema
from tests.server.asked_services import ACCOUNT, CANARY, AskedService, asked
from tests.server.visiting import ORIGIN, Visiting

LARGEST = 731_931.25
"""The one value that stands out: whoever reads it off a page has read off the data."""
STAYS = Schema(
    name="stays",
    edition="1",
    unit="patient_id",
    limit=sf.Limit(groups=1, rows_per_group=1),
    columns=(
        ColumnFacts(name="patient_id", type=Type.TEXT),
        ColumnFacts(name="ward", type=Type.TEXT, keys=("east", "west")),
        ColumnFacts(name="cost", type=Type.NUMBER),
        ColumnFacts(name="days", type=Type.WHOLE),
    ),
)
LIMIT = {"kind": "limit", "most": "8", "planned": "0.5", "by1": "", "by2": "", "epsilon": "0.5", "account": ACCOUNT}
BOUNDS = {"kind": "bounds", "column": "cost", "most": "1048576", "epsilon": "0.5", "account": ACCOUNT}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedService]:
    with asked(tmp_path_factory.mktemp("asked") / "service") as found:
        persons = [f"{CANARY}-{place}" for place in range(300) for _ in range(2)]
        rows = {"patient_id": persons, "ward": ["east"] * 600, "cost": [100.0] * 599 + [LARGEST], "days": [3] * 600}
        place = found.service.data / "stays.parquet"
        pq.write_table(pa.table(rows), place)
        found.service.datasets.declare(
            STAYS, place, population="patients", relation="add/remove", cap=Budget(epsilon=8), by="stella"
        )
        found.service.people.add("stella", shown="Stella", roles=[ServiceRole.STEWARD], accounts=[ACCOUNT])
        found.service.people.add("otto", shown="Otto", roles=[ServiceRole.STEWARD])
        yield found


@pytest.fixture(scope="module")
def application(made: AskedService) -> Visiting:
    return Visiting(made.service)


@pytest.fixture
def stella(application: Visiting) -> Visiting:
    return application.other().sign_in("stella")


def suggested(made: AskedService, browser: Visiting, form: dict[str, str]) -> tuple[str, str]:
    """Ask for a suggestion by its form and wait; its address and what its page says."""
    page = f"/data/stays/suggest?{urlencode(form)}"
    sent = browser.post("/data/stays/suggest", form, page=page)
    assert sent.status_code == 303, sent.text
    address = sent.headers["location"]
    assert "Ready at" in browser.get(address).text
    early = browser.post(f"{address}/take", {}, page="/data/stays/suggest")
    assert early.status_code == 409  # nothing of the outcome is there before its deadline
    assert made.ended(address.rpartition("/")[2]).outcome is JobOutcome.RELEASED
    return address, browser.get(address).text


@pytest.fixture(scope="module")
def of_bounds(made: AskedService, application: Visiting) -> tuple[str, str]:
    return suggested(made, application.other().sign_in("stella"), BOUNDS)


def test_the_price_is_shown_before_anything_is_charged(made: AskedService, stella: Visiting) -> None:
    before = made.spent
    for form in (LIMIT, BOUNDS, LIMIT | {"by1": "ward"}):
        text = stella.get(f"/data/stays/suggest?{urlencode(form)}").text
        assert "Ask for ε = 0.5" in text
        assert "ε = 4" in text  # what is left
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
    assert made.spent == before
    over = stella.get(f"/data/stays/suggest?{urlencode(LIMIT | {'epsilon': '9'})}").text
    assert "cannot be asked now" in over
    assert "Ask for ε = 9" not in over


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "values"}, "a limit or bounds"),
        ({"epsilon": "none"}, "ε"),
        ({"most": "many"}, "whole number"),
        ({"by1": "cost"}, "keys"),
        ({"kind": "bounds", "column": "patient_id"}, "a column of numbers"),
        ({"kind": "bounds", "column": "none", "most": "9"}, "a column of numbers"),
        ({"kind": "bounds", "column": "cost", "most": "-1"}, "the largest value"),
        ({"account": "hospital/kitchen"}, "may not charge"),
    ],
)
def test_what_cannot_be_asked_is_said_and_nothing_is_charged(
    changed: dict[str, str], words: str, made: AskedService, stella: Visiting
) -> None:
    before = made.spent
    answer = stella.post("/data/stays/suggest", LIMIT | changed, page="/data/stays/suggest")
    assert answer.status_code == 422
    assert words in answer.text
    assert made.spent == before


def test_bounds_are_a_release_and_never_the_largest_value(
    made: AskedService, of_bounds: tuple[str, str], stella: Visiting
) -> None:
    address, text = of_bounds
    plain = text.replace(",", "")
    assert str(LARGEST) not in plain
    assert "731931" not in plain
    assert CANARY not in text
    certificate = stella.get(f"{address}/certificate").text
    assert verify(parsed(certificate)).consistent
    assert "731931" not in certificate
    job = made.desk.queue.job(address.rpartition("/")[2])
    query = made.desk.release(job).statement.query
    assert stella.post(f"{address}/take", {"low": "0", "high": "1"}, page=address).status_code == 303
    low, high = made.service.datasets["stays"].schema.bounds["cost"]
    assert {abs(low), abs(high)} <= {Fraction(0), *query.tops}  # of places that are public, whatever the data
    shown = stella.get("/data/stays").text
    assert "Taken over from private releases" in shown
    assert made.desk.release(job).statement.identifier in shown
    again = stella.post(f"{address}/take", {}, page="/data/stays/suggest")
    assert again.status_code == 409
    assert "taken over before" in again.text


def test_a_limit_is_taken_over_and_offers_follow_it(made: AskedService, stella: Visiting) -> None:
    from sfumato.server.asking.offers import Precision

    def limited() -> object:
        asked = made.desk.asker.question(ACCOUNT, "stays", "SELECT COUNT(*) AS n FROM stays")
        return made.desk.asker.offer(ACCOUNT, "stays", asked, Precision(epsilon=Fraction(1, 10))).columns[0].margin

    before = limited()
    with pytest.raises(sf.errors.Refused, match="releases nothing"):
        made.desk.asker.table(ACCOUNT, "stays").count().release(epsilon=1)
    address, text = suggested(made, stella, LIMIT | {"epsilon": "1", "planned": "2"})
    assert stella.post(f"{address}/take", {"groups": "9", "rows": "9"}, page=address).status_code == 303
    limit = made.service.datasets["stays"].schema.limit
    assert limit is not None
    assert (limit.groups, limit.rows_per_group in (1, 2, 3, 4, 6, 8)) == (1, True)
    assert f"1 × {limit.rows_per_group}" in text
    assert (limited() != before) is (limit.rows_per_group != 1)


def test_only_a_suggestion_of_the_open_version_is_taken_over(made: AskedService, stella: Visiting) -> None:
    other = made.submitted()  # of an analyst, on an account that the steward may charge
    for address in (f"/data/visits/suggestions/{other.name}", f"/data/stays/suggestions/{other.name}"):
        assert stella.get(address).status_code == 404
        assert stella.post(f"{address}/take", {}, page="/data/stays/suggest").status_code == 404
    kept = made.service.datasets["stays"].schema
    made.service.datasets.close("stays", "1")
    try:
        assert stella.get("/data/stays/suggest").status_code == 404
        sent = stella.post("/data/stays/suggest", LIMIT, page="/account")
        assert sent.status_code == 404
    finally:
        import sqlalchemy as sa

        from sfumato.server.datasets.tables import DATASETS

        with made.service.database.writing() as connection:
            connection.execute(sa.update(DATASETS).where(DATASETS.c.name == "stays").values(closed=None))
    assert made.service.datasets["stays"].schema == kept


def test_another_steward_sees_nothing_and_one_without_an_account_is_told(
    made: AskedService, of_bounds: tuple[str, str], application: Visiting
) -> None:
    otto = application.other().sign_in("otto")
    address, _ = of_bounds
    for answer in (otto.get(address), otto.get(f"{address}/certificate")):
        assert answer.status_code == 422
        assert "not yours" in answer.text
    assert "No account is yours to charge" in otto.get("/data/stays/suggest").text
    refused = otto.post("/data/stays/suggest", LIMIT, page="/data/stays/suggest")
    assert refused.status_code == 422
    ada = application.other().sign_in("ada")  # an analyst, and no steward
    for method, place in (("GET", "/data/stays/suggest"), ("GET", address), ("POST", f"{address}/take")):
        said = {"headers": {"origin": ORIGIN}, "data": {FORM_FIELD: "none"}} if method == "POST" else {}
        assert ada.ask(method, place, **said).status_code == 403


def test_a_form_reads_what_it_says_and_no_more() -> None:
    form = SuggestionForm.read({**LIMIT, "by1": "ward", "by2": "ward"})
    assert (form.by, form.epsilon) == (("ward",), Fraction(1, 2))
    assert not re.search(r"\d{6}", repr(form))
