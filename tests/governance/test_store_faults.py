"""A disk that is full, a database that goes away, a store that is none: fail closed, with words."""

import os
import re
import resource
import secrets
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.ledger import Reservation
from sfumato.errors import InvalidInput, LedgerError
from sfumato.governance.ledger import Ledger
from sfumato.governance.migrations import migrate, newest, present
from sfumato.governance.rows import commit, run
from sfumato.governance.store import Store
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished, postgres_home, sqlite_home
from tests.parts import absent, package
from tests.servers import QUICK, postgres_programs, private_postgres

HALF = Budget(epsilon="1/2")


@contextmanager
def small_disk(owner: str | None = None) -> Iterator[Path]:
    """A file system of 2 MB, really full when it is full."""
    place = Path(tempfile.mkdtemp(prefix="sfumato-disk-"))
    place.chmod(0o755)
    asked = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    able = os.geteuid() == 0 and shutil.which("mount") is not None
    if not able or subprocess.run(asked, check=False, capture_output=True).returncode != 0:
        place.rmdir()
        absent("only root can mount a small disk, and only where there is a program for it")
    try:
        if owner is not None:
            shutil.chown(place, owner, owner)
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def filled(ledger: Ledger) -> Reservation:
    """Charge and answer until nothing more fits on the disk; the charge that could not be answered."""
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for number in range(1000):
        reservation = account.reserve(Budget(epsilon="1/100"), datasets=[VISITS])
        before = ledger.head()
        told = ""
        try:
            account.commit_text(reservation, f"question {number}", secrets.token_hex(40_000))
        except LedgerError as full:
            told = str(full)
        if told:
            assert re.search(r"cannot be used: .*(disk is full|No space left on device).*no answer was delivered", told)
            assert re.search(r"; (nothing was changed|whether it was written is not known)", told)
            assert ledger.head() == before
            assert account.answer(f"question {number}") is None
            assert {balance.epsilon_spent for balance in ledger.balances()} == {Fraction(number + 1, 100)}
            return reservation
    raise AssertionError("the disk is not small")


def test_a_full_disk_refuses_and_nothing_is_half_done(tmp_path: Path) -> None:
    with small_disk() as disk:
        home = sqlite_home(tmp_path)
        home = Home(url=str(disk / "ledger.db"), folder=home.folder)
        ledger = furnished(home)
        (disk / "ballast").write_bytes(bytes(500_000))
        reservation = filled(ledger)
        ledger.close()
        (disk / "ballast").unlink()
        ledger = home.open()
        assert ledger.verify() == ()
        ledger.account(ACCOUNT, unit=PATIENT).commit_text(reservation, "question", "{}")
        assert ledger.verify() == ()
        ledger.close()


def test_a_full_disk_of_a_server_refuses_and_nothing_is_half_done(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    home = postgres_home(tmp_path, postgres_url)
    ledger = furnished(home)
    owner = "postgres" if os.geteuid() == 0 else None
    with small_disk(owner) as disk, psycopg.connect(home.url, autocommit=True) as steward:
        steward.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")  # type: ignore[call-overload]
        steward.execute("ALTER TABLE record SET TABLESPACE small")
        reservation = filled(ledger)
        steward.execute("ALTER TABLE record SET TABLESPACE pg_default")
        steward.execute("DROP TABLESPACE small")
        assert ledger.verify() == ()
        ledger.account(ACCOUNT, unit=PATIENT).commit_text(reservation, "question", "{}")
        assert ledger.verify() == ()
    ledger.close()


def test_an_anchor_needs_no_room_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk() as disk:
        home = Home(url=str(tmp_path / "ledger.db"), folder=str(disk))
        account = furnished(home).account(ACCOUNT, unit=PATIENT)
        with pytest.raises(OSError, match="No space left"):
            (disk / "ballast").write_bytes(bytes(3_000_000))
        assert os.statvfs(disk).f_bavail == 0
        account.reserve(HALF, datasets=[VISITS])
        assert home.open().verify() == ()


@pytest.mark.long
def test_a_file_that_may_not_grow_refuses_the_charge(tmp_path: Path) -> None:
    """The same for whoever cannot mount a disk: a limit on the size of files, in a process of its own."""
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    ledger.close()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            most = 8192 + max(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
            account = home.account()
            reservation = account.reserve(HALF, datasets=[VISITS])
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            try:
                account.commit_text(reservation, "question", secrets.token_hex(most))
            except LedgerError as refused:
                os.write(write, str(refused).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        words = told.read()
    os.waitpid(child, 0)
    assert re.search(r"cannot be used: (disk I/O error|database or disk is full)\. .*no answer was delivered", words)
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance("hospital").spent == HALF
    assert home.account().answer("question") is None


GOODBYE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()"
)


@pytest.mark.parametrize("moment", ["INSERT INTO balance", "commit"])
def test_a_database_that_goes_away_in_the_middle_fails_closed(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    home = postgres_home(tmp_path, postgres_url)
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    before, gone = ledger.head(), []

    def leave(*given: Any) -> None:
        if not gone and (len(given) == 1 if moment == "commit" else moment in given[1]):
            gone.append(moment)
            home.execute(GOODBYE)
        (commit if len(given) == 1 else run)(*given)

    monkeypatch.setattr("sfumato.governance.rows.run", leave)
    monkeypatch.setattr("sfumato.governance.rows.commit", leave)
    outcome = "whether it was written is not known" if moment == "commit" else "nothing was changed"
    with pytest.raises(LedgerError, match=outcome):
        account.reserve(HALF, datasets=[VISITS], idempotency="once")
    assert gone
    monkeypatch.undo()
    assert ledger.head() == before
    home.execute(GOODBYE)  # connections that nobody uses are replaced without a word
    account.reserve(HALF, datasets=[VISITS], idempotency="once")
    assert ledger.balance("hospital").charges == 1
    assert ledger.verify() == ()


@pytest.mark.long
def test_a_server_that_stops_in_the_middle_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at once, as by a loss of power to it alone: what was promised is there when it is back."""
    package("psycopg")
    if postgres_programs() is None:
        absent("no PostgreSQL server is installed")
    with private_postgres(**QUICK) as server:
        home = postgres_home(tmp_path, server.url)
        ledger = furnished(home)
        account = ledger.account(ACCOUNT, unit=PATIENT)
        account.reserve(HALF, datasets=[VISITS], idempotency="first")

        def leave(cursor: Any, statement: str, values: tuple[Any, ...] = ()) -> None:
            if "INSERT INTO charge" in statement:
                server.stop(signal.SIGQUIT)
            run(cursor, statement, values)

        monkeypatch.setattr("sfumato.governance.rows.run", leave)
        with pytest.raises(LedgerError, match="no answer was delivered; nothing was changed"):
            account.reserve(HALF, datasets=[VISITS], idempotency="second")
        with pytest.raises(LedgerError, match="no answer was delivered; nothing was changed"):
            account.reserve(HALF, datasets=[VISITS], idempotency="second")
        monkeypatch.undo()
        server.start()
        assert ledger.balance("hospital").charges == 1
        account.reserve(HALF, datasets=[VISITS], idempotency="second")
        account.reserve(HALF, datasets=[VISITS], idempotency="first")
        assert ledger.balance("hospital").spent == Budget(epsilon=1)
        assert ledger.verify() == ()
        ledger.close()


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


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_ledger_of_newer_code_is_refused(home: Home) -> None:
    furnished(home)
    home.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerError, match="newer sfumato"):
        home.open()


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_the_tables_of_the_statements_are_those_of_the_migrations(home: Home) -> None:
    from sfumato.governance.rows import KEYS, TABLES

    ledger = furnished(home)
    with ledger.record.store._connected().connect() as connection:
        assert present(connection) == newest()
        found = sa.inspect(connection)
        for table in TABLES.tables.values():
            assert {column.name for column in table.columns} == {each["name"] for each in found.get_columns(table.name)}
            if table.name in KEYS:
                assert found.get_pk_constraint(table.name)["constrained_columns"] == KEYS[table.name]
        assert {*TABLES.tables, "alembic_version"} == set(found.get_table_names())


def test_migrating_again_changes_nothing(home: Home) -> None:
    ledger = furnished(home)
    head = ledger.head()
    with ledger.record.store.migrating() as connection:
        migrate(connection)
    assert home.open().head() == head


@pytest.mark.parametrize("revision", ["0001"])
def test_a_ledger_of_an_older_migration_opens_and_verifies(tmp_path: Path, revision: str) -> None:
    """Each migration leaves a file behind, written when it was the newest; its key protects nothing."""
    shutil.copytree(Path(__file__).parent / "ledgers" / revision, tmp_path / "old")
    home = Home(url=str(tmp_path / "old" / "ledger.db"), folder=str(tmp_path / "old"))
    ledger = home.open()
    with ledger.record.store._connected().connect() as connection:
        assert present(connection) == newest()
    assert ledger.verify() == ()
    account = ledger.account(ACCOUNT, unit=PATIENT)
    assert account.spent == HALF
    assert account.answer("how many?") == '{"answer":7}'
    account.reserve(HALF, datasets=[VISITS])
    assert ledger.verify() == ()
