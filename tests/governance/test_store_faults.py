"""A disk that is full, a database that goes away, a store that is none: fail closed, with words."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

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
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.core.ledger import Reservation
from sfumato.core.query import Dataset
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance.entries import DatasetClosed, Migrated, Row, Started
from sfumato.governance.ledger import Ledger
from sfumato.governance.migrations import migrate, newest, present
from sfumato.governance.rows import commit, run
from sfumato.governance.store import Store
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished, older, postgres_home, sqlite_home
from tests.governance.signers import key_of, keyed
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
    """Charge and answer until nothing more fits on the disk; a charge that was not answered."""
    account = ledger.account(ACCOUNT, unit=PATIENT)
    waiting = account.reserve(Budget(epsilon="1/100"), datasets=[VISITS])
    for number in range(1000):
        before, told = ledger.head(), ""
        try:
            reservation = account.reserve(Budget(epsilon="1/100"), datasets=[VISITS])
            before = ledger.head()
            account.commit_text(reservation, f"question {number}", secrets.token_hex(40_000))
        except LedgerError as full:
            told = str(full)
        if told:
            assert re.search(r"cannot be used: .*(disk is full|No space left on device).*no answer was delivered", told)
            assert re.search(r"; (nothing was changed|whether it was written is not known)", told)
            assert ledger.head() == before
            assert account.answer(f"question {number}") is None
            assert {balance.epsilon_spent for balance in ledger.balances()} == {before.head.epsilon}
            return waiting
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


def test_a_server_gives_up_a_writer_that_says_nothing(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others wait for it: they go on once the server has ended it."""
    monkeypatch.setattr("sfumato.governance.store.STALLED", 1)
    home = postgres_home(tmp_path, postgres_url)
    ledger = furnished(home)

    def stalled() -> None:
        with ledger.record.writing() as writing:
            home.account().reserve(HALF, datasets=[VISITS])  # waits until the other is ended
            writing.append(Started(at=writing.time(), charge=7))

    with pytest.raises(LedgerError, match="cannot be used"):
        stalled()
    assert ledger.balance(ACCOUNT).spent == HALF
    assert ledger.verify() == ()
    ledger.close()


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


def test_a_ledger_with_a_board_is_brought_up_to_date_and_its_veto_stands(tmp_path: Path) -> None:
    home = older(tmp_path)
    before = home.execute("SELECT number, body, previous, digest FROM record ORDER BY number")
    ledger = home.open()
    assert ledger.verify() == ()
    after = home.execute("SELECT number, body, previous, digest FROM record ORDER BY number")
    assert after[:-1] == before  # old entries are untouched
    *_, last = ledger.rows()
    entry = last.entry
    assert isinstance(entry, Migrated)
    assert (entry.tables, entry.digest, entry.state) == ("0004", before[-1][3], ledger.head().head.state)
    account = ledger.account(ACCOUNT, unit=PATIENT, purpose="research/oncology", recipient="public")
    assert account.answer("how many?") == '{"answer":7}'
    charge = account.charge_named("open")
    assert charge is not None
    assert (charge.place, charge.holder) == (0, "a")
    assert account.closed(Dataset(name="register", edition="1"))
    assert home.open().head() == ledger.head()  # once
    ledger.confirm_clock("it lay in a drawer")
    with pytest.raises(Refused, match="veto"):
        account.reserve(HALF, datasets=[VISITS])
    assert ledger.verify() == ()


OLD_FORGERIES = {
    "a veto of another kind": (
        ["UPDATE record SET kind = 'x' WHERE body LIKE '%board.veto%'"],
        "is filed as 'x'",
    ),
    "a charge at another price": (
        ["UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 7"],
        "was edited",
    ),
    "cut short": (["DELETE FROM record WHERE number > 15"], "is missing: a signed head states it"),
}


@pytest.mark.parametrize("forgery", OLD_FORGERIES)
def test_an_older_ledger_is_verified_before_its_tables_are_touched(tmp_path: Path, forgery: str) -> None:
    home = older(tmp_path)
    statements, words = OLD_FORGERIES[forgery]
    home.unlocked(*statements)
    with pytest.raises(LedgerError, match=f"nothing was changed: .*{words}"):
        home.open()
    assert home.execute("SELECT version_num FROM alembic_version") == [("0004",)]
    assert "governed" in {row[1] for row in home.execute("PRAGMA table_info(head)")}


def test_books_of_an_older_ledger_are_written_anew_from_its_record(tmp_path: Path) -> None:
    home = older(tmp_path)
    home.execute("UPDATE balance SET epsilon_spent = '0/1'", "UPDATE edition SET closed = 0", "DELETE FROM answer")
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance(ACCOUNT).epsilon_spent == Fraction(6, 10)


def test_entries_of_an_older_ledger_that_nobody_anchored_are_not_signed(tmp_path: Path) -> None:
    home = older(tmp_path)
    number, digest, at = home.execute("SELECT number, digest, at FROM head")[0]
    entry = Started(at=at, charge=7)
    body = canonical(encode(entry))
    row = replace(Row.after(number, digest, entry), nonce="")
    home.execute(
        f"INSERT INTO record VALUES ({row.number}, '{row.kind}', '{body}', '{digest}', '{row.expected}')",
        f"UPDATE head SET number = {row.number}, digest = '{row.expected}'",
    )
    with pytest.raises(LedgerError, match="settled already"):  # what the replay says of it
        home.open()
    closed = DatasetClosed(at=at, dataset=VISITS)
    row = replace(Row.after(number, digest, closed), nonce="")
    home.unlocked(
        f"UPDATE record SET kind = '{row.kind}', body = '{row.body}', digest = '{row.expected}' "
        f"WHERE number = {row.number}",
        f"UPDATE head SET digest = '{row.expected}'",
    )
    with pytest.raises(LedgerError, match="came after what was anchored, and rows were not signed then"):
        home.open()


def test_tables_older_than_their_anchor_are_a_backup(tmp_path: Path) -> None:
    home = older(tmp_path)
    kept = Path(home.url).read_bytes()
    ledger = home.open()
    sitting = ledger.board()
    assert sitting is not None
    ledger.close()
    for left in Path(home.folder).glob("ledger.db*"):
        left.unlink()
    Path(home.url).write_bytes(kept)
    with pytest.raises(LedgerError, match="are older than its anchor"):
        home.open()
    given: dict[str, Any] = {"key": home.key, "anchor": home.anchor, "approvals": {"ada": None, "ben": None}}
    keys = {name: key_of(name) for name in ("ada", "ben")}
    with pytest.raises(Refused, match="a backup from before rows were signed"):
        Ledger.recover(home.url, **given, reason="a backup")
    home.anchor.unlink()
    with pytest.raises(Refused, match="the agreement of 'ada' is not signed"):  # its board had no keys
        Ledger.recover(home.url, **given, reason="a backup, and the anchor is gone")
    given |= {"approvals": keys, "board": keyed(sitting)}
    with pytest.raises(Refused, match="the board changes by its own decision"):
        Ledger.recover(home.url, **given | {"board": keyed(replace(sitting, communities=()))}, reason="a backup")
    back = Ledger.recover(home.url, **given, reason="a backup, and the anchor is gone")
    assert back.verify() == ()
    assert {balance.left for balance in back.balances()} == {Budget.none()}


@pytest.mark.parametrize("revision", ["0001"])
def test_a_ledger_of_an_older_migration_opens_and_verifies(tmp_path: Path, revision: str) -> None:
    home = older(tmp_path, revision)
    ledger = home.open()
    with ledger.record.store._connected().connect() as connection:
        assert present(connection) == newest()
    assert ledger.verify() == ()
    account = ledger.account(ACCOUNT, unit=PATIENT)
    assert account.spent == HALF
    assert account.answer("how many?") == '{"answer":7}'
    ledger.confirm_clock("it lay in a drawer")
    account.reserve(HALF, datasets=[VISITS])
    assert ledger.verify() == ()
