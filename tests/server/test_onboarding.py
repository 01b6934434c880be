"""Stewards declare a file by a form; no value of it is ever on a page."""

import secrets
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError
from sfumato.server.datasets.onboarding import DraftColumn, drafted, new_place, place_of, schema_of
from sfumato.server.rendering import FORM_FIELD
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from tests.server.visiting import ORIGIN, Visiting, fields_of

CANARY = f"canary{secrets.token_hex(6)}"


def rows(folder: Path, ending: str = ".parquet") -> Path:
    place = folder / f"secret-name{ending}"
    table = pa.table({"patient_id": [CANARY, "b"], "ward": ["north", CANARY], "age": [731_931, 5]})
    if ending == ".parquet":
        pq.write_table(table, place)
    else:
        place.write_text(f"patient_id,ward,age\n{CANARY},north,731931\n", "utf-8")
    return place


@pytest.fixture
def steward(empty: Service) -> Visiting:
    empty.people.add("stella", shown="Stella", roles=[ServiceRole.STEWARD])
    return Visiting(empty).sign_in("stella")


def sent(browser: Visiting, file: Path, **more: str) -> str:
    token = browser.form_token("/data/new")
    answer = browser.ask(
        "POST",
        "/data/new",
        data={FORM_FIELD: token, **more},
        files={"file": (file.name, file.read_bytes())},
        headers={"origin": ORIGIN},
    )
    assert answer.status_code == 200, answer.text
    return answer.text


FORM = {
    "count": "3",
    "name": "visits",
    "edition": "2026-10",
    "groups": "2",
    "rows": "1",
    "relation": "add/remove",
    "people": "100000",
    "new_population": "patients",
    "population_epsilon": "8",
    "reason": "decided in the test",
    "epsilon": "4",
    "delta": "0",
    "person": "0",
    "name-0": "patient_id",
    "kind-0": "text",
    "used-0": "1",
    "name-1": "ward",
    "kind-1": "text",
    "keys-1": "north\nsouth",
    "used-1": "1",
    "name-2": "age",
    "kind-2": "whole",
    "low-2": "0",
    "high-2": "120",
}


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_file_is_declared_by_two_forms_and_then_asked(
    ending: str, steward: Visiting, empty: Service, tmp_path: Path
) -> None:
    text = sent(steward, rows(tmp_path, ending))
    assert CANARY not in text
    assert "731931" not in text.replace(",", "")
    assert "secret-name" not in text
    assert 'name="name-1" value="ward"' in text
    form = FORM | {"file": fields_of(text)["file"], FORM_FIELD: fields_of(text)[FORM_FIELD]}
    answer = steward.ask("POST", "/data/declare", data=form, headers={"origin": ORIGIN})
    assert (answer.status_code, answer.headers.get("location")) == (303, "/data/visits"), answer.text
    held = empty.datasets["visits"]
    assert (held.schema.unit, set(held.schema.types)) == ("patient_id", {"patient_id", "ward"})
    empty.ledger.open_account("hospital", unit=held.unit, cap=sf.Budget(epsilon=2), reason="decided in the test")
    vault = sf.Vault(unit=held.unit, ledger=empty.ledger, account="hospital", key=empty.release_key)
    assert len(vault.table(held.place, schema=held.schema).group_by("ward").count().release(epsilon=1).values) == 2
    shown = steward.get("/data/visits").text + steward.get("/data").text
    assert CANARY not in shown
    assert held.place not in shown
    assert "north, south" in shown


def test_what_stands_against_a_form_comes_back_with_all_that_was_said(
    steward: Visiting, empty: Service, tmp_path: Path
) -> None:
    text = sent(steward, rows(tmp_path))
    form = FORM | {"file": fields_of(text)["file"], FORM_FIELD: fields_of(text)[FORM_FIELD]}
    for changed, words in (
        ({"person": "9"}, "which one column identifies persons"),
        ({"used-2": "1", "high-2": ""}, "a lowest and a highest value"),
        ({"groups": "none"}, "whole number from 1"),
        ({"epsilon": "0"}, "cap"),
        ({"edition": ""}, "non-empty"),
        ({"relation": "other"}, "relation"),
    ):
        answer = steward.ask("POST", "/data/declare", data=form | changed, headers={"origin": ORIGIN})
        assert answer.status_code == 422, changed
        assert words in answer.text, changed
        assert "north\nsouth" in answer.text
    assert list(empty.datasets) == []


def test_a_version_is_closed_and_a_newer_one_takes_over_what_was_said(
    steward: Visiting, empty: Service, tmp_path: Path
) -> None:
    first = sent(steward, rows(tmp_path))
    form = FORM | {"file": fields_of(first)["file"], FORM_FIELD: fields_of(first)[FORM_FIELD]}
    steward.ask("POST", "/data/declare", data=form, headers={"origin": ORIGIN})
    again = sent(steward, rows(tmp_path), like="visits")
    assert "north\nsouth" in again
    assert 'name="used-2"' in again
    form = FORM | {
        "file": fields_of(again)["file"],
        FORM_FIELD: fields_of(again)[FORM_FIELD],
        "edition": "2026-11",
        "new_population": "",
        "population": "patients",
    }
    assert steward.ask("POST", "/data/declare", data=form, headers={"origin": ORIGIN}).status_code == 303
    assert empty.datasets["visits"].edition == "2026-11"
    steward.post("/data/visits/close", {"edition": "2026-11"}, page="/data/visits")
    assert empty.datasets["visits"].edition == "2026-10"
    assert "closed" in steward.get("/data/visits").text


@pytest.mark.parametrize("name", ["../ledger.key", "file-x.csv", "release.key", "file-" + "a" * 43 + ".csv/../../x"])
def test_only_uploads_are_declared(name: str, empty: Service) -> None:
    with pytest.raises(NotDeclared, match="not here any more"):
        place_of(empty.data, name)


@pytest.mark.parametrize("name", ["visits.exe", "visits", "a/../../b.py", ".csv/"])
def test_other_endings_are_refused(name: str, empty: Service) -> None:
    with pytest.raises(InvalidInput, match="end with"):
        new_place(empty.data, name)


def test_the_name_that_was_sent_is_not_kept(empty: Service) -> None:
    place = new_place(empty.data, "../../oncology-patients.CSV")
    assert place.parent == empty.data
    assert "oncology" not in place.name


def test_a_file_that_cannot_be_read_is_thrown_away(steward: Visiting, empty: Service, tmp_path: Path) -> None:
    file = tmp_path / "broken.parquet"
    file.write_bytes(CANARY.encode())
    token = steward.form_token("/data/new")
    answer = steward.ask(
        "POST",
        "/data/new",
        data={FORM_FIELD: token},
        files={"file": (file.name, file.read_bytes())},
        headers={"origin": ORIGIN},
    )
    assert answer.status_code in (409, 422, 503)
    assert CANARY not in answer.text
    assert list(empty.data.iterdir()) == []


def test_errors_of_a_form_quote_no_value() -> None:
    for column in (
        DraftColumn(name="n", kind="whole", keys=CANARY),
        DraftColumn(name="n", kind="whole", low=CANARY, high="1"),
        DraftColumn(name="n", kind=CANARY),
    ):
        with pytest.raises(SfumatoError) as wrong:
            schema_of(
                [DraftColumn(name="id", kind="text", person=True), column],
                name="visits",
                edition="1",
                groups="1",
                rows_per_group="1",
            )
        assert CANARY not in str(wrong.value)


def test_a_draft_reads_the_head_alone(tmp_path: Path) -> None:
    found = drafted(rows(tmp_path))
    assert [(column.name, column.kind, column.person) for column in found] == [
        ("patient_id", "text", True),
        ("ward", "text", False),
        ("age", "whole", False),
    ]
