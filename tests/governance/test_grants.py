"""Roles on a real PostgreSQL: who reads verifies and cannot write, who charges cannot change what was written."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from sfumato.core.budget import Budget
from sfumato.errors import LedgerError
from sfumato.governance.grants import statements
from sfumato.governance.ledger import Ledger
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, dropped, furnished, postgres_home
from tests.governance.test_checkpoint import answered

HALF = Budget(epsilon="1/2")
WORD = "of-the-tests"


@pytest.fixture
def home(tmp_path: Path, postgres_url: str) -> Iterator[Home]:
    """A ledger on PostgreSQL whose owner ran the statements, twice."""
    import psycopg

    place = postgres_home(tmp_path, postgres_url)
    ledger = furnished(place)
    answered(ledger, "first")
    ledger.close()
    roles = {"charger": f"charger_{place.url[-12:]}", "reader": f"reader_{place.url[-12:]}"}
    with psycopg.connect(place.url, autocommit=True) as owner:
        for statement in [*statements(**roles), *statements(**roles)]:
            owner.execute(statement.encode())
        for role in roles.values():
            owner.execute(f"ALTER ROLE \"{role}\" PASSWORD '{WORD}'".encode())
    yield place
    dropped(place, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for role in roles.values():
            owner.execute(f'DROP ROLE "{role}"'.encode())


def as_role(home: Home, role: str) -> Home:
    url = make_url(home.url).set(username=f"{role}_{home.url[-12:]}", password=WORD)
    return Home(url=url.render_as_string(hide_password=False), folder=home.folder)


def test_a_reader_verifies_and_writes_nothing(home: Home) -> None:
    import psycopg

    place = as_role(home, "reader")
    reader = place.open()
    assert reader.verify() == ()
    assert reader.balance(ACCOUNT).spent == HALF
    with pytest.raises(LedgerError, match="permission denied"):
        reader.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    reader.close()
    with psycopg.connect(place.url, autocommit=True) as plain:
        for statement in (
            "UPDATE balance SET epsilon_spent = '0/1'",
            "DELETE FROM record",
            "INSERT INTO answer (question) VALUES ('a')",
            "TRUNCATE record",
            "CREATE TABLE mine (x int)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                plain.execute(statement.encode())


def test_a_charger_charges_and_cannot_change_the_record(home: Home) -> None:
    import psycopg

    place = as_role(home, "charger")
    ledger: Ledger = place.open()
    answered(ledger, "second")
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=HALF, reason="decided by the tests")
    assert ledger.verify() == ()
    ledger.close()
    with psycopg.connect(place.url, autocommit=True) as plain:
        for statement in (
            "DELETE FROM record WHERE number = 7",
            "UPDATE record SET body = '' WHERE number = 7",
            "TRUNCATE record",
            "DELETE FROM balance",
            "DROP TRIGGER record_kept ON record",
            "ALTER TABLE record DISABLE TRIGGER ALL",
            "DROP TABLE answer",
            "UPDATE alembic_version SET version_num = '0'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                plain.execute(statement.encode())
    assert home.open().verify() == ()


def test_a_session_that_stalls_is_ended_and_waits_are_bounded(home: Home) -> None:
    """The role's own timeouts, for sessions that are not the ledger's; the ledger's are in test_store_faults.py."""
    import psycopg

    with psycopg.connect(as_role(home, "reader").url, autocommit=True) as plain:
        found = {
            name: plain.execute(f"SHOW {name}".encode()).fetchone()
            for name in ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
        }
    assert found == {
        "idle_in_transaction_session_timeout": ("1min",),
        "lock_timeout": ("1min",),
        "statement_timeout": ("10min",),
    }
