"""Tables of databases that an administrator named are declared by name; no address leaves the settings."""

import secrets
from pathlib import Path

import duckdb
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.server.datasets.databases import LEDGER, OWN, SourceDatabases, check_apart
from sfumato.server.rendering import FORM_FIELD
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import FILE, ServiceSettings
from tests.server.test_onboarding import FORM
from tests.server.visiting import ORIGIN, Visiting, fields_of

CANARY = f"canary{secrets.token_hex(6)}"
ROWS = f"VALUES ('{CANARY}', 'north', 731931), ('b', '{CANARY}', 5)"


def served(folder: Path, address: str) -> Visiting:
    """A steward at a service whose settings name a database."""
    Service.create(folder).close()
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(f'[databases]\nclinic = "{address}"\n')
    service = Service.open(folder)
    service.people.add("stella", shown="Stella", roles=[ServiceRole.STEWARD])
    return Visiting(service).sign_in("stella")


@pytest.fixture
def clinic(tmp_path: Path) -> str:
    place = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE visits (patient_id VARCHAR, ward VARCHAR, age BIGINT)")
        connection.execute(f"INSERT INTO visits {ROWS}")
        connection.execute("CREATE VIEW two AS SELECT * FROM visits LIMIT 2")
        connection.execute("CREATE SCHEMA lab")
        connection.execute("CREATE TABLE lab.tests (patient_id VARCHAR)")
    return f"duckdb:///{place}"


def declared(steward: Visiting, table: str, **changed: str) -> tuple[int, str, str]:
    """Both forms for a table: the status of the second, what the first one showed, and what the second one said."""
    shown = steward.post("/data/table", {"database": "clinic", "table": table}, page="/data/new")
    assert shown.status_code == 200, shown.text
    form = FORM | changed | {"file": fields_of(shown.text)["file"], FORM_FIELD: fields_of(shown.text)[FORM_FIELD]}
    answer = steward.ask("POST", "/data/declare", data=form, headers={"origin": ORIGIN})
    return answer.status_code, shown.text, answer.text


def released(steward: Visiting) -> Release:
    service = steward.service
    held = service.datasets["visits"]
    service.ledger.open_account("hospital", unit=held.unit, cap=sf.Budget(epsilon=2), reason="decided in the test")
    vault = sf.Vault(unit=held.unit, ledger=service.ledger, account="hospital", key=service.release_key)
    return vault.table(held.place, schema=held.schema).group_by("ward").count().release(epsilon=1)


def test_a_table_of_a_file_of_duckdb_is_declared_and_asked(tmp_path: Path, clinic: str) -> None:
    steward = served(tmp_path / "service", clinic)
    offered = steward.get("/data/new").text
    assert 'value="visits"' in offered
    assert 'value="lab.tests"' in offered
    assert 'value="two"' not in offered
    status, shown, _ = declared(steward, "visits", keys_1="", **{"used-2": "1"})
    assert status == 303
    assert 'name="file" value="database:clinic/visits"' in shown
    pages = offered + shown + steward.get("/data/visits").text
    for secret in (CANARY, "731931", "clinic.duckdb", str(tmp_path)):
        assert secret not in pages.replace("731,931", "731931")
    with steward.service.database.reading() as connection:
        from sqlalchemy import text

        assert connection.execute(text("SELECT place FROM datasets")).scalar_one() == "database:clinic/visits"
    assert len(released(steward).values) == 2
    steward.service.close()


def test_a_view_is_refused_before_it_is_declared(tmp_path: Path, clinic: str) -> None:
    steward = served(tmp_path / "service", clinic)
    status, _, said = declared(steward, "two")
    assert status == 422
    assert "is a view" in said
    assert list(steward.service.datasets) == []
    steward.service.close()


@pytest.mark.parametrize("table", ["none", "visits; DROP TABLE visits", 'visits" --', "a.b.c", "", "visits?table=x"])
def test_a_table_that_is_not_there_is_refused_without_an_address(table: str, tmp_path: Path, clinic: str) -> None:
    steward = served(tmp_path / "service", clinic)
    answer = steward.post("/data/table", {"database": "clinic", "table": table}, page="/data/new")
    assert answer.status_code in (422, 503)
    assert str(tmp_path) not in answer.text
    other = steward.post("/data/table", {"database": "other", "table": "visits"}, page="/data/new")
    assert other.status_code == 422
    steward.service.close()


def test_a_table_of_postgresql_is_declared_and_its_password_is_nowhere(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    from tests.servers import PASSWORD

    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS stays")
        connection.execute("CREATE TABLE stays (patient_id TEXT, ward TEXT, age BIGINT)")
        connection.execute(f"INSERT INTO stays {ROWS}")
    steward = served(tmp_path / "service", postgres_url)
    offered = steward.get("/data/new").text
    assert 'value="stays"' in offered
    status, shown, _ = declared(steward, "stays")
    assert status == 303
    pages = offered + shown + steward.get("/data/visits").text + repr(steward.service.settings)
    for secret in (CANARY, PASSWORD, "pass%40word"):
        assert secret not in pages
    assert len(released(steward).values) == 2
    steward.service.close()


def test_a_database_that_does_not_answer_is_said_and_the_form_for_files_stays(tmp_path: Path) -> None:
    steward = served(tmp_path / "service", f"duckdb:///{tmp_path}/none.duckdb")
    text = steward.get("/data/new").text
    assert "does not answer now" in text
    assert "Look at its columns" in text
    assert steward.post("/data/table", {"database": "clinic", "table": "a"}, page="/data/new").status_code == 503
    steward.service.close()


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("clinic/../x", "duckdb:///clinic.duckdb"),
        ("clinic", "mysql://ada:secret-word@db/clinic"),
        ("clinic", "postgresql://ada:secret-word@db:port/clinic"),
        ("clinic", "postgresql://ada:secret-word@db"),
        ("clinic", "postgresql://ada:secret-word@db/clinic?table=visits"),
        ("clinic", "secret-word"),
    ],
)
def test_settings_that_name_no_database_are_refused_without_a_word_of_the_address(name: str, address: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        ServiceSettings(databases=((name, address),))
    assert "secret-word" not in str(wrong.value)


def test_the_tables_of_the_service_are_no_data() -> None:
    own = "postgresql://service:a@db.example/sfumato"
    with pytest.raises(Refused, match="its ledger") as wrong:
        check_apart({"clinic": "postgres://reader:b@DB.example:5432/sfumato?sslmode=require"}, [own])
    assert "reader" not in str(wrong.value)
    check_apart({"clinic": "postgresql://reader:b@db.example/clinic"}, [own, "service.db"])


@pytest.mark.parametrize(
    "other",
    [
        "postgresql://reader@db.example./sfumato",
        "postgresql://reader@db%2Eexample/sfumat%6F",
        "postgresql://reader@elsewhere/sfumato?host=db.example",
        "postgresql://reader@db.example/clinic?dbname=sfumato",
        "postgresql://reader@db.example:1/sfumato?port=5432",
    ],
)
def test_another_spelling_of_an_address_is_the_same_database(other: str) -> None:
    with pytest.raises(Refused, match="its ledger"):
        check_apart({"clinic": other}, ["postgresql+psycopg://service:a@DB.example/sfumato"])


@pytest.mark.parametrize("tables", [("restated_datasets",), ("x.stream_points",), tuple(sorted(LEDGER))])
def test_a_database_with_tables_of_a_service_is_no_data_whatever_its_address_says(
    tables: tuple[str, ...], tmp_path: Path, clinic: str
) -> None:
    steward = served(tmp_path / "service", clinic)
    with duckdb.connect(clinic.removeprefix("duckdb:///")) as connection:
        connection.execute("CREATE SCHEMA x")
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (one BIGINT)")
    shown = steward.post("/data/table", {"database": "clinic", "table": "visits"}, page="/data/new")
    assert shown.status_code == 409
    assert "those are no data" in shown.text
    form = FORM | {"file": "database:clinic/visits"}
    answer = steward.post("/data/declare", form, page="/data/new")
    assert answer.status_code == 422
    assert "those are no data" in answer.text
    assert list(steward.service.datasets) == []
    steward.service.close()


def test_the_names_of_own_tables_are_those_of_the_service_and_of_its_ledger() -> None:
    from sfumato.governance import rows
    from sfumato.server.app import areas
    from sfumato.server.database import METADATA

    _ = areas()
    assert set(METADATA.tables) >= OWN
    assert set(rows.TABLES.tables) >= LEDGER


def test_places_name_a_database_of_the_settings_and_a_table() -> None:
    held = SourceDatabases({"clinic": "postgresql://reader:b@db/clinic?sslmode=require"})
    place = held.place("clinic", "lab.tests & more")
    assert place == "database:clinic/lab.tests & more"
    assert held.opened(place) == "postgresql://reader:b@db/clinic?sslmode=require&table=lab.tests%20%26%20more"
    assert held.opened("data/file.csv") == "data/file.csv"
    assert "reader" not in repr(held)
    assert SourceDatabases({}).opened(place) == place
    for wrong in (lambda: held.place("none", "a"), lambda: held.place("clinic", "a.b.c")):
        with pytest.raises((NotDeclared, InvalidInput, SfumatoError)):
            wrong()
