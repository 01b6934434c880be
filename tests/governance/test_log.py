"""The log of a ledger: silent unless asked, one line for what happened, and nothing of anybody's data."""

import json
import logging
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.errors import SfumatoError
from sfumato.governance.log import FIELDS, LOGGER, log_to
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished

TELLING = ("the secret question", "the secret certificate", "the secret reason", "the secret purpose", "secret-key")


def worked(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT, purpose=TELLING[3], recipient="public")
    charge = account.reserve(Budget(epsilon="1/2"), datasets=[VISITS], idempotency=TELLING[4], question=TELLING[0])
    account.commit_text(charge, TELLING[0], TELLING[1])
    ledger.open_account("clinic", unit=PATIENT, cap=Budget(epsilon=1), reason=TELLING[2])
    with pytest.raises(SfumatoError):
        account.reserve(Budget(epsilon=10**5), datasets=[VISITS], question=TELLING[0])
    assert ledger.verify() == ()
    ledger.close()


def test_each_entry_is_a_line_without_questions_answers_or_reasons(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with log_to(file):
        worked(home)
    text = file.read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert file.stat().st_mode & 0o077 == 0
    assert not any(secret in text for secret in TELLING)
    assert all(set(line) <= {"at", "level", *FIELDS} for line in lines)
    charge = next(line for line in lines if line["event"] == "ledger.reserved")
    assert charge["seconds"] > 0
    kept = {name: charge[name] for name in ("entry", "account", "epsilon", "delta", "level")}
    assert kept == {"entry": 7, "account": ACCOUNT, "epsilon": "1/2", "delta": "0", "level": "info"}
    events = [line["event"] for line in lines]
    assert events[-5:] == [
        *("ledger.reserved", "ledger.committed", "ledger.account"),
        *("ledger.refused", "ledger.verified"),
    ]
    refused = next(line for line in lines if line["event"] == "ledger.refused")
    assert (refused["level"], refused["error"]) == ("warning", "BudgetExceeded")


def test_nothing_is_said_unless_somebody_listens(
    home: Home, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert LOGGER.level == logging.NOTSET
    worked(home)
    assert capfd.readouterr() == ("", "")
    assert [each.levelname for each in caplog.records if each.name == LOGGER.name] == ["WARNING"]
