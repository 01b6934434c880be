"""A disk that is full, a database that goes away, a store that is none: fail closed, with words."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, LedgerError
from sfumato.governance.ledger import Ledger
from sfumato.governance.migrations import migrate, newest, present
from sfumato.governance.store import Store, run
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, postgres_home, sqlite_home

HALF = Budget(epsilon="1/2")


def test_a_full_disk_refuses_and_nothing_is_half_done(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    reservation = account.reserve(HALF, datasets=[VISITS])
    before = ledger.head()

    @sa.event.listens_for(ledger._store._connected(), "begin")
    def small(connection: sa.Connection) -> None:
        (pages,) = connection.exec_driver_sql("PRAGMA page_count").one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(LedgerError, match=r"database or disk is full.*nothing was changed"):
        account.commit_text(reservation, "question", "x" * 10**6)
    assert ledger.head() == before
    sa.event.remove(ledger._store._connected(), "begin", small)
    ledger.close()
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance("hospital").spent == HALF
    assert account.answer("question") is None


def test_a_database_that_goes_away_in_the_middle_changes_nothing(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = postgres_home(tmp_path, postgres_url)
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    before, gone = ledger.head(), []

    def leave(cursor: Any, statement: str, values: tuple[Any, ...] = ()) -> None:
        if "INSERT INTO balance" in statement and not gone:
            gone.append(statement)
            home.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                         "AND pid <> pg_backend_pid()")  # fmt: skip
        run(cursor, statement, values)

    monkeypatch.setattr("sfumato.governance.store.run", leave)
    with pytest.raises(LedgerError, match="nothing was changed"):
        account.reserve(HALF, datasets=[VISITS])
    assert gone
    monkeypatch.undo()
    assert ledger.head() == before
    account.reserve(HALF, datasets=[VISITS])
    assert ledger.verify() == ()


def test_a_writer_that_waits_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.governance.store.PATIENCE", 0)
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    other = sqlite3.connect(home.url, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match=r"database is locked.*nothing was changed"):
        account.reserve(HALF, datasets=[VISITS])
    other.close()
    account.reserve(HALF, datasets=[VISITS])
    assert account.spent == HALF


def test_what_is_no_ledger_is_not_opened(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    furnished(home).close()
    Path(tmp_path / "other.db").write_text("this is a text file, and a long one: " * 100)
    with pytest.raises(LedgerError, match="not a database"):
        Ledger.open(tmp_path / "other.db", key=home.key, anchor=home.anchor)
    for address in ("mysql://host/ledger", "sqlite://", "sqlite:///:memory:", "://"):
        with pytest.raises(InvalidInput, match="ledger"):
            Store(address)
    assert "secret" not in Store("postgresql://steward:secret@host/ledger").name


def test_a_ledger_of_newer_code_is_refused(home: Home) -> None:
    furnished(home)
    home.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerError, match="newer sfumato"):
        home.open()


def test_the_tables_of_the_statements_are_those_of_the_migrations(home: Home) -> None:
    from sfumato.governance.store import _TABLES, KEYS

    ledger = furnished(home)
    with ledger._store._connected().connect() as connection:
        assert present(connection) == newest()
        found = sa.inspect(connection)
        for table in _TABLES.tables.values():
            assert {column.name for column in table.columns} == {each["name"] for each in found.get_columns(table.name)}
            if table.name in KEYS:
                assert found.get_pk_constraint(table.name)["constrained_columns"] == KEYS[table.name]
        assert {*_TABLES.tables, "alembic_version"} == set(found.get_table_names())


def test_migrating_again_changes_nothing(home: Home) -> None:
    ledger = furnished(home)
    head = ledger.head()
    with ledger._store.migrating() as connection:
        migrate(connection)
    assert home.open().head() == head


@pytest.mark.parametrize("revision", ["0001"])
def test_a_ledger_of_an_older_migration_opens_and_verifies(tmp_path: Path, revision: str) -> None:
    """Each migration leaves a file behind, written when it was the newest; its key protects nothing."""
    shutil.copytree(Path(__file__).parent / "ledgers" / revision, tmp_path / "old")
    home = Home(url=str(tmp_path / "old" / "ledger.db"), folder=str(tmp_path / "old"))
    ledger = home.open()
    with ledger._store._connected().connect() as connection:
        assert present(connection) == newest()
    assert ledger.verify() == ()
    account = ledger.account(ACCOUNT, unit=PATIENT)
    assert account.spent == HALF
    assert account.answer("how many?") == '{"answer":7}'
    account.reserve(HALF, datasets=[VISITS])
    assert ledger.verify() == ()
