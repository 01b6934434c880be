"""A whole charge waits for the disk three times at most: reserve, anchor, and the answer with its commit."""

import os
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.governance import rows
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_whole_charge_waits_for_the_disk_three_times(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    waits: list[str] = []

    def counted(name: str, wait: Any) -> Any:
        return lambda *given: waits.append(name) or wait(*given)

    monkeypatch.setattr(rows, "commit", counted("commit", rows.commit))
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    reservation = account.reserve(Budget(epsilon="1/10"), datasets=[VISITS])
    assert waits == ["commit", "fdatasync"]  # before a row is read
    account.commit_text(reservation, "question", "{}")
    assert waits == ["commit", "fdatasync", "commit"]
    ledger.close()


@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
def test_a_commit_of_sqlite_is_one_wait(home: Home) -> None:
    """A log that is written ahead: a commit waits for it once, and the database itself is written later."""
    ledger = furnished(home)
    with ledger.record.store.reading() as transaction:
        asked = (transaction.cursor.execute(f"PRAGMA {name}") for name in ("journal_mode", "synchronous"))
        settings = [answer.fetchone()[0] for answer in asked]
    assert settings == ["wal", 2]
    ledger.close()
