"""Attacks at the places where roles by key, ballots, witnesses and recoveries meet."""

import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.agreements import Agreement
from sfumato.governance.board import Board
from sfumato.governance.entries import Recovered
from sfumato.governance.ledger import Ledger
from tests.governance.homes import sqlite_home
from tests.governance.rooted import Rooted, charged
from tests.governance.signers import key_of

START = datetime(2026, 1, 28, tzinfo=UTC)


@pytest.fixture
def here(tmp_path: Path) -> Rooted:
    return Rooted(home=sqlite_home(tmp_path))


def test_a_key_whose_last_day_is_over_does_not_come_back_with_a_recovery_that_sets_the_clock_back(
    here: Rooted, tmp_path: Path
) -> None:
    clock = [START]
    old = SigningKey.new()
    with closing(here.furnished(clock=lambda: clock[0])) as ledger:
        ledger.certify(old.public_text, role="charge", holder="spare", root=here.root, until="2026-01-31")
        clock[0] += timedelta(days=5)
        charged(ledger)
        ledger.close()
        shutil.copy(here.home.url, tmp_path / "before.db")
    clock[0] += timedelta(days=1)
    with closing(here.open(clock=lambda: clock[0])) as ledger:
        charged(ledger)
    shutil.copy(tmp_path / "before.db", here.home.url)
    given = {"anchor": here.home.anchor, "root": here.root.public_text, "reason": "a thief's"}
    with pytest.raises(Refused, match="last day"):
        Ledger.recover(here.home.url, key=old, clock=lambda: clock[0], **given)
    with pytest.raises(Refused, match="valid again"):
        Ledger.recover(here.home.url, key=old, clock=lambda: START, **given)
    back = Ledger.recover(here.home.url, key=here.charge, clock=lambda: clock[0], **given)
    assert back.verify() == ()


def test_nobody_signs_an_agreement_that_leaves_out_what_its_words_say() -> None:
    """The first agreements stated neither the end of the record nor an expiry: such a text is signed by nobody now."""
    entry = Recovered(
        at=START.isoformat(),
        reason="the disk failed",
        anchored="",
        lost=1,
        gap=Budget(epsilon=1),
        expires="2026-02-11T00:00:00+00:00",
        basis="the anchor was at entry 7",
    )
    with pytest.raises(InvalidInput, match="does not say where the record ends"):
        Agreement.to(entry, "a" * 32, (("ben", key_of("ben").public_text),)).signed(key_of("ben"))
    Agreement.to(replace(entry, after="b" * 64), "a" * 32, (("ben", key_of("ben").public_text),)).signed(key_of("ben"))


@pytest.mark.parametrize("sign", ["\u034f", "\ufe0f", "\u115f", "\u3164", "\u2800", "\u00ad", "\u180b", "\U000e0100"])
def test_signs_that_nobody_sees_make_no_second_name(sign: str) -> None:
    with pytest.raises(InvalidInput, match="differ by their spelling alone"):
        Board(members=("ada", "ben", f"be{sign}n"), quorum=2)
    with pytest.raises(InvalidInput, match="differ by their spelling alone"):
        Board(members=("ada", "ben", "ben  x", "ben x"), quorum=2)
    assert Board(members=("ada", "ben", "cho"), quorum=2, proposers=("李 雷", "jos\u00e9", "jose")).proposers
