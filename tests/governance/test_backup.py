"""Backups and the way back: rehearsed, on both stores, and nothing that was spent comes back."""

import random
import secrets
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, LedgerError, Refused, SfumatoError
from sfumato.governance.backup import backup, restore
from sfumato.governance.ledger import Ledger
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, dropped, furnished, postgres_home
from tests.governance.test_checkpoint import answered

HALF = Budget(epsilon="1/2")


def spent(ledger: Ledger) -> dict[str, Fraction]:
    return {balance.name: balance.epsilon_spent for balance in ledger.balances()}


def emptied(home: Home) -> None:
    """What is left of a ledger whose database is gone: its key and its anchor."""
    if home.lite:
        for part in Path(home.url).parent.glob("ledger.db*"):
            part.unlink()
    else:
        home.execute("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def file_of(home: Home, tmp_path: Path) -> Path:
    return tmp_path / ("kept.db" if home.lite else "kept.jsonl")


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_backup_is_restored_as_it_was(home: Home, tmp_path: Path) -> None:
    ledger = furnished(home)
    answered(ledger, "first", "second")
    before, head = spent(ledger), ledger.head()
    file = file_of(home, tmp_path)
    assert backup(ledger, file) == head.head
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("kept")] == [file.name]
    with pytest.raises(InvalidInput, match="was not overwritten"):
        backup(ledger, file)
    with pytest.raises(Refused, match="holds a ledger already; nothing was restored"):
        restore(home.url, key=home.key, anchor=home.anchor, file=file)
    ledger.close()
    emptied(home)
    done = restore(home.url, key=home.key, anchor=home.anchor, file=file)
    assert (done.entries, done.lost) == (head.head.number, False)
    again = home.open()
    assert (spent(again), again.head(), again.verify(head)) == (before, head, ())
    assert home.account().answer("second") == "{}"
    answered(again, "third")
    assert again.verify() == ()
    again.close()


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_the_rehearsal_backup_spend_restore_recover(home: Home, tmp_path: Path) -> None:
    """What was spent after the backup is never given back: refused, shut, and then charged."""
    ledger = furnished(home)
    answered(ledger, "first")
    file = file_of(home, tmp_path)
    backup(ledger, file)
    answered(ledger, "second", "third")
    ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    most = spent(ledger)
    ledger.close()
    emptied(home)
    with pytest.raises(Refused, match=r"backup ends at entry 8 and its anchor is at entry 13.*Nothing was restored"):
        restore(home.url, key=home.key, anchor=home.anchor, file=file)
    with pytest.raises(LedgerError, match="there is no ledger"):
        home.open()
    assert restore(home.url, key=home.key, anchor=home.anchor, file=file, older=True).lost
    with pytest.raises(LedgerError, match="budgets would be refilled"):
        home.open()
    with pytest.raises(LedgerError, match="budgets would be refilled"):
        home.account()
    again = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="the disk failed")
    now = spent(again)
    assert all(now[name] >= amount for name, amount in most.items())
    assert now[f"account {ACCOUNT}"] == most[f"account {ACCOUNT}"] == 2
    assert again.verify() == ()
    again.close()


def test_lines_of_one_store_are_restored_in_another(home: Home, tmp_path: Path, postgres_url: str) -> None:
    ledger = furnished(home)
    answered(ledger, "first")
    backup(ledger, tmp_path / "kept.jsonl")
    before = ledger.head()
    ledger.close()
    (tmp_path / "other").mkdir()
    other = postgres_home(tmp_path / "other", postgres_url)
    restore(other.url, key=home.key, anchor=home.anchor, file=tmp_path / "kept.jsonl")
    moved = Ledger.open(other.url, key=home.key, anchor=home.anchor)
    assert (moved.head(), moved.verify(before)) == (before, ())
    moved.close()
    dropped(other, postgres_url)


def test_without_its_anchor_nobody_knows_how_old_a_backup_is(home: Home, tmp_path: Path) -> None:
    ledger = furnished(home)
    answered(ledger, "first")
    backup(ledger, tmp_path / "kept.jsonl")
    ledger.close()
    emptied(home)
    home.anchor.unlink()
    with pytest.raises(Refused, match=r"the anchor .* is missing"):
        restore(home.url, key=home.key, anchor=home.anchor, file=tmp_path / "kept.jsonl")
    restore(home.url, key=home.key, anchor=home.anchor, file=tmp_path / "kept.jsonl", older=True)
    with pytest.raises(LedgerError, match=r"the anchor .* is missing"):
        home.open()
    again = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="all is lost")
    assert {balance.left.epsilon for balance in again.balances()} == {0}
    again.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [('"1/2"', '"1/9"'), ('"charge":7', '"charge":9'), ('"signature\\":\\"', '"signature\\":\\"00')],
)
def test_an_edited_backup_is_not_restored(home: Home, tmp_path: Path, before: str, after: str) -> None:
    ledger = furnished(home)
    answered(ledger, "first")
    file = tmp_path / "kept.jsonl"
    backup(ledger, file)
    ledger.close()
    emptied(home)
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after), "utf-8")
    with pytest.raises(LedgerError, match="the record does not hold, and nothing was changed"):
        restore(home.url, key=home.key, anchor=home.anchor, file=file, older=True)
    assert not Path(home.url).exists()


def test_another_ledgers_backup_or_file_is_not_restored(home: Home, tmp_path: Path) -> None:
    ledger = furnished(home)
    backup(ledger, tmp_path / "kept.jsonl")
    ledger.close()
    other = Home(url=str(tmp_path / "other.db"), folder=str(tmp_path / "else"))
    (tmp_path / "else").mkdir()
    shutil.copy(home.key, other.key)
    furnished(other).close()
    Path(other.url).unlink()
    with pytest.raises(Refused, match="belongs to another ledger"):
        restore(other.url, key=other.key, anchor=other.anchor, file=tmp_path / "kept.jsonl", older=True)
    (tmp_path / "text").write_text("nothing\n", "utf-8")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE x (y)")
    for name in ("text", "bytes", "empty.db", "no such file"):
        with pytest.raises(InvalidInput):
            restore(other.url, key=other.key, anchor=other.anchor, file=tmp_path / name, older=True)
    assert not Path(other.url).exists()


@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
@pytest.mark.parametrize("times", [15, pytest.param(300, marks=pytest.mark.long)])
def test_a_damaged_file_is_verified_and_restored_in_words(home: Home, tmp_path: Path, times: int) -> None:
    """A few bytes by chance: verification and restoring raise errors of the ledger's, and restore no other sums."""
    ledger = furnished(home)
    answered(ledger, "first", "second")
    file, before, head = tmp_path / "kept.db", spent(ledger), ledger.head()
    backup(ledger, file)
    ledger.close()
    emptied(home)
    sound = file.read_bytes()
    for turn in range(times):
        seed = secrets.randbits(64)
        chance, body = random.Random(seed), bytearray(sound)
        for _ in range(chance.randint(1, 40)):
            body[chance.randrange(100, len(body))] = chance.randrange(256)
        damaged = Home(url=str(tmp_path / f"{turn}.db"), folder=home.folder)
        file.write_bytes(bytes(body))
        Path(damaged.url).write_bytes(bytes(body))
        new = tmp_path / f"new-{turn}.db"
        try:
            with_findings = Ledger.unchecked(damaged.url, key=home.key, anchor=home.anchor)
            found = with_findings.verify(head)
            with_findings.close()
        except SfumatoError:
            found = ("refused",)  # type: ignore[assignment]
        try:
            restore(new, key=home.key, anchor=home.anchor, file=file, older=True)
            restored = Ledger.open(new, key=home.key, anchor=home.anchor)
        except SfumatoError:
            continue
        assert (spent(restored), restored.verify(head)) == (before, ()), (seed, found)
        restored.close()
