"""The anchor only moves forward; what is older than it, or went another way, is refused and can be recovered."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

import fcntl
import os
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import BudgetExceeded, LedgerError, NotDeclared, Refused
from sfumato.governance.anchor import SLOT, FileAnchor, Head, SignedHead
from sfumato.governance.ledger import Ledger
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished, readable, sqlite_home

HALF = Budget(epsilon="1/2")
TABLES = ("record", "head", "balance", "edition", "charge", "answer", "node")


def charged(ledger: Ledger, times: int = 1, cost: Budget = HALF) -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for number in range(times):
        account.commit_text(account.reserve(cost, datasets=[readable(ledger)]), f"question {number}", "{}")


class Backup:
    """All tables of a ledger as they were, and the way back to them."""

    def __init__(self, home: Home) -> None:
        self.home = home
        for table in TABLES:
            home.execute(f"CREATE TABLE saved_{table} AS SELECT * FROM {table}")

    def restore(self) -> None:
        statements = [f"DELETE FROM {table}" for table in TABLES]
        statements += [f"INSERT INTO {table} SELECT * FROM saved_{table}" for table in TABLES]
        self.home.unlocked(*statements)


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_restored_backup_is_refused_at_start_and_while_running(home: Home) -> None:
    ledger = furnished(home)
    charged(ledger)
    backup = Backup(home)
    charged(ledger)
    backup.restore()
    with pytest.raises(LedgerError, match=r"ends at entry 8 and its anchor is at entry 10: .* old backup or cut short"):
        home.open()
    with pytest.raises(LedgerError, match="old backup"):
        ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    assert any(finding.entry == 10 and "missing" in finding.problem for finding in ledger.verify())


def test_a_restored_file_is_refused(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    with sqlite3.connect(home.url) as source, sqlite3.connect(tmp_path / "backup.db") as target:
        source.backup(target)
    source.close()
    target.close()
    charged(ledger)
    ledger.close()
    for left in tmp_path.glob("ledger.db*"):
        left.unlink()
    shutil.copy(tmp_path / "backup.db", home.url)
    with pytest.raises(LedgerError, match="old backup"):
        home.open()


def test_without_the_anchor_the_same_backup_would_refill_the_budget(home: Home) -> None:
    """The broken twin: an anchor that is restored along with its database sees nothing."""
    ledger = furnished(home, project=HALF)
    backup, anchor = Backup(home), home.anchor.read_bytes()
    charged(ledger)
    backup.restore()
    home.anchor.write_bytes(anchor)
    assert home.open().balance(ACCOUNT).left == HALF


def replaced(home: Home, head: SignedHead) -> None:
    home.anchor.unlink()
    FileAnchor(home.anchor).create(head)


@pytest.mark.parametrize("lost", ["gone", "spoilt", "another ledger's", "forged"])
def test_a_ledger_without_its_anchor_is_refused(home: Home, lost: str, tmp_path: Path) -> None:
    ledger = furnished(home)
    match lost:
        case "gone":
            home.anchor.unlink()
        case "spoilt":
            home.anchor.write_bytes(b"x" * SLOT)
        case "another ledger's":
            (tmp_path / "other").mkdir()
            other = furnished(sqlite_home(tmp_path / "other"))
            replaced(home, other.head())
        case "forged":
            replaced(home, SignedHead.sign(ledger.head().head, SigningKey.new()))
            assert any("signature" in finding.problem for finding in ledger.verify())
    words = {"gone": "is missing", "spoilt": "no head that can be read"}.get(lost, "not signed for this ledger")
    with pytest.raises(LedgerError, match=words):
        home.open()
    with pytest.raises(LedgerError, match=words):
        charged(ledger)


def test_a_database_ahead_of_its_anchor_is_accepted_and_anchored(home: Home) -> None:
    ledger = furnished(home)
    before = home.anchor.read_bytes()
    charged(ledger)
    home.anchor.write_bytes(before)  # as if the process was killed before it could move the anchor
    home.open()
    assert FileAnchor(home.anchor).last() == ledger.head()


def test_an_unanchored_end_that_was_edited_is_refused(home: Home) -> None:
    ledger = furnished(home)
    before = home.anchor.read_bytes()
    charged(ledger)
    home.anchor.write_bytes(before)
    home.unlocked("UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 7")
    with pytest.raises(LedgerError, match="entry 7 of the record was edited"):
        home.open()


def test_recovery_charges_the_gap_to_every_balance(home: Home) -> None:
    ledger = furnished(home, project=Budget(epsilon=2))
    charged(ledger)
    backup = Backup(home)
    charged(ledger, times=2)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.release(account.reserve(Budget(epsilon="1/4"), datasets=[VISITS], queued=True))
    published = ledger.head()
    backup.restore()
    given: dict[str, Any] = {"key": home.key, "anchor": home.anchor}
    with pytest.raises(NotDeclared, match="reason"):
        Ledger.recover(home.url, **given, reason="")
    recovered = Ledger.recover(home.url, **given, reason="the disk failed on Sunday; decided by the board")
    # 1/2 is in the backup; 1/2 + 1/2 + 1/4 was charged afterwards, and nobody knows that 1/4 was given back.
    assert {balance.epsilon_spent for balance in recovered.balances()} == {Fraction(7, 4)}
    assert recovered.head().head.number == published.head.number + 1
    assert recovered.head().head.epsilon == published.head.epsilon
    assert recovered.verify() == ()
    assert recovered.verify(published) == ()  # it speaks of entries that a recorded decision gave up
    ledger = home.open()
    charged(ledger, cost=Budget(epsilon="1/4"))
    with pytest.raises(BudgetExceeded):
        charged(ledger)
    assert ledger.verify() == ()
    with pytest.raises(Refused, match="nothing to recover"):
        Ledger.recover(home.url, **given, reason="again")


def test_recovery_may_go_beyond_a_cap_and_then_nothing_is_left(home: Home) -> None:
    ledger = furnished(home, project=HALF)
    ledger.open_account(
        "hospital/research", unit=PATIENT, cap=Budget(epsilon=1, delta="1/10"), reason="a", method="zcdp"
    )
    other = Dataset(name="register", edition="1")
    ledger.declare_population("others", unit=PATIENT, cap=Budget(epsilon=10), reason="other people")
    ledger.declare_dataset(other, population="others", cap=Budget(epsilon=10))
    charged(ledger, cost=Budget(epsilon="1/4"))
    backup = Backup(home)
    ledger.open_account("hospital/library", unit=PATIENT, cap=Budget(epsilon=10), reason="lost with the disk")
    ledger.account("hospital/library", unit=PATIENT).reserve(Budget(epsilon=5), datasets=[other])
    backup.restore()
    recovered = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="a lost disk")
    assert recovered.balance(ACCOUNT).spent.epsilon == Fraction(21, 4)
    assert recovered.balance(ACCOUNT).left == Budget.none()
    research = recovered.balance("hospital/research")
    assert research.rho_spent == research.rho
    with pytest.raises(BudgetExceeded):
        charged(recovered, cost=Budget(epsilon="1/100"))
    assert recovered.verify() == ()


@pytest.mark.parametrize("said", [Budget.none(), None])
def test_where_the_anchor_is_lost_everything_left_is_charged(home: Home, said: Budget | None) -> None:
    """Else whoever restores a backup and deletes the anchor has the whole cap again."""
    ledger = furnished(home, project=HALF)
    backup = Backup(home)
    charged(ledger)
    backup.restore()
    home.anchor.unlink()
    given: dict[str, Any] = {"key": home.key, "anchor": home.anchor, "reason": "the anchor's disk is gone"}
    recovered = Ledger.recover(home.url, **given, charge=said)
    assert {balance.left for balance in recovered.balances()} == {Budget.none()}
    with pytest.raises(BudgetExceeded):
        charged(recovered, cost=Budget(epsilon="1/100"))
    recovered.open_account("hospital/library", unit=PATIENT, cap=HALF, reason="it may have been open before")
    assert recovered.balance("hospital/library").left == Budget.none()
    assert home.open().verify() == ()


def test_a_record_that_went_another_way_is_charged_all_that_was_anchored(home: Home) -> None:
    ledger = furnished(home)
    backup, anchor = Backup(home), home.anchor.read_bytes()
    charged(ledger)
    newer = home.anchor.read_bytes()
    backup.restore()
    home.anchor.write_bytes(anchor)  # the twin of this ledger, with an anchor of its own
    charged(home.open(), times=3, cost=Budget(epsilon="1/8"))
    home.anchor.write_bytes(newer)
    with pytest.raises(LedgerError, match="not the one that was anchored"):
        home.open()
    recovered = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="two copies were in use")
    assert recovered.balance("hospital").epsilon_spent == Fraction(3, 8) + Fraction(1, 2)
    assert recovered.verify() == ()


def head_at(number: int, key: SigningKey, *, ledger: str = "a", digest: str = "0" * 64) -> SignedHead:
    head = Head(ledger=ledger, number=number, digest=digest, at="2026", epsilon=Fraction(0), delta=Fraction(0))
    return SignedHead.sign(head, key)


def test_the_anchor_only_moves_forward(tmp_path: Path) -> None:
    key, anchor = SigningKey.new(), FileAnchor(tmp_path / "anchor")
    assert anchor.last() is None
    anchor.create(head_at(1, key))
    for number in (2, 7, 5, 3, 6):
        anchor.advance(head_at(number, key), durable=number % 2 == 0)
    assert anchor.last() == head_at(7, key)
    with pytest.raises(LedgerError, match="another ledger"):
        anchor.advance(head_at(9, key, ledger="b"), durable=True)
    with pytest.raises(LedgerError, match="two copies"):
        anchor.advance(head_at(7, key, digest="1" * 64), durable=True)
    with pytest.raises(LedgerError, match="File exists"):
        anchor.create(head_at(1, key))
    assert anchor.last() == head_at(7, key)


def test_a_write_that_was_cut_short_leaves_the_head_before_it(tmp_path: Path) -> None:
    key, anchor = SigningKey.new(), FileAnchor(tmp_path / "anchor")
    anchor.create(head_at(1, key))
    for number in (2, 3):
        anchor.advance(head_at(number, key), durable=True)
    before = anchor.path.read_bytes()
    anchor.advance(head_at(4, key), durable=True)
    after = anchor.path.read_bytes()
    length = len(before[SLOT:].rstrip())
    for written in range(length):  # power is lost in the middle: the beginning is new, the rest is old
        torn = before[:SLOT] + after[SLOT : SLOT + written] + before[SLOT + written :]
        anchor.path.write_bytes(torn)
        whole = torn == after  # the last digits of both digests can be the same by chance: then all of it was written
        assert anchor.last() == head_at(4 if whole else 3, key)
    anchor.advance(head_at(5, key), durable=True)
    assert anchor.last() == head_at(5, key)


def test_an_anchor_that_cannot_be_written_stops_the_charge(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = furnished(home)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full)
        with pytest.raises(LedgerError, match="No space left on device"):
            charged(ledger)
    assert ledger.balance("hospital").spent == HALF  # reserved in the record: it counts, and nothing was read
    charged(home.open())
    assert ledger.verify() == ()


def test_half_a_head_is_no_anchor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may write less than it was given, and say so only in a number."""
    key, anchor = SigningKey.new(), FileAnchor(tmp_path / "anchor")
    first, second = head_at(1, key), head_at(2, key)
    anchor.create(first)
    write = os.pwrite
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", lambda file, text, place: write(file, text[:100], place))
        with pytest.raises(LedgerError, match="No space left on device"):
            anchor.advance(second, durable=True)
    assert anchor.last() == first
    anchor.advance(second, durable=True)
    assert anchor.last() == second


def test_a_ledger_that_is_refused_gives_its_connections_back(tmp_path: Path) -> None:
    """Files of an open database stay beside it while somebody holds the error."""
    key, place = SigningKey.new(), tmp_path / "ledger.db"
    Ledger.create(place, key=key, anchor=tmp_path / "anchor").close()
    with pytest.raises(Refused) as held:
        Ledger.recover(place, key=key, anchor=tmp_path / "anchor", reason="nothing was lost")
    assert held.value is not None
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("ledger")) == ["ledger.db"]


def copies(tmp_path: Path) -> tuple[Home, Home]:
    """Two copies of a database on one anchor."""
    home = sqlite_home(tmp_path)
    furnished(home).close()
    with sqlite3.connect(home.url) as source, sqlite3.connect(tmp_path / "copy.db") as target:
        source.backup(target)
    source.close()
    target.close()
    return home, Home(url=str(tmp_path / "copy.db"), folder=home.folder)


def test_two_copies_on_one_anchor_never_make_the_same_head(tmp_path: Path) -> None:
    """The same request in the same second: without something random both would be delivered for one charge."""
    ours, theirs = (home.account() for home in copies(tmp_path))
    with theirs.ledger.record.store.writing() as held:  # their charge is made before ours is anchored
        head = theirs.ledger.record.anchored().head
        held.believe(head.ledger, head.state)
        ours.reserve(HALF, datasets=[VISITS])
        number = ours.ledger.head().head.number
        with ours.ledger.record.reading() as transaction:
            found = transaction.row(number)
        assert found is not None
        other = held.append(found.entry, theirs.ledger.record.signed)
    assert other.head.number == number
    with pytest.raises(LedgerError, match="two copies of this ledger are in use"):
        theirs.ledger.record.advance(other, durable=True)


def test_a_charge_that_is_not_below_what_is_anchored_is_not_delivered(tmp_path: Path) -> None:
    """The other copy was faster by several entries: the newest anchored one must follow one's own."""
    ours, theirs = (home.account() for home in copies(tmp_path))
    with theirs.ledger.record.store.writing() as held:
        head = theirs.ledger.record.anchored().head
        held.believe(head.ledger, head.state)
        charged(ours.ledger, times=2)
        with ours.ledger.record.reading() as transaction:
            found = transaction.row(head.number + 1)
        assert found is not None
        other = held.append(found.entry, theirs.ledger.record.signed)
    with pytest.raises(LedgerError, match="which does not follow entry 7 here: two copies"):
        theirs.ledger.record.advance(other, durable=True)
    with ours.ledger.record.reading() as transaction:
        row = transaction.row(head.number + 1)
    assert row is not None
    # One's own, with what came after it in the same record: that is delivered.
    ours.ledger.record.advance(SignedHead.read(row.head), durable=True)


def test_an_anchor_that_somebody_holds_is_not_waited_for_without_end(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = furnished(home)
    assert home.anchor.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr("sfumato.governance.anchor.PATIENCE", 0.1)
    with home.anchor.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match=r"locked by another process for 0.1 seconds.*chmod 600"):
            charged(ledger)
    charged(ledger)
