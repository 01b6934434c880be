"""Health: open charges, the last verification, budgets near their end, closed data, vetoes and the clock."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.governance.health import Health, Limits, health, metrics
from sfumato.governance.ledger import Ledger
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished
from tests.governance.signers import key_of
from tests.governance.test_checkpoint import remembered
from tests.governance.test_governed import BOARD, TERMS, WHY, governed

HALF = Budget(epsilon="1/2")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(home: Home, clock: Clock) -> Ledger:
    return furnished(home, project=Budget(epsilon=1), clock=clock)


def said(found: Health) -> str:
    return " | ".join(found.attention())


def test_a_ledger_that_is_well_needs_nothing(ledger: Ledger) -> None:
    found = health(ledger)
    assert found.attention() == ()
    assert (found.entries, found.open_charges, found.unanchored, found.verified) == (6, 0, 0, None)


def test_open_and_stale_charges_are_counted_with_their_age(ledger: Ledger, clock: Clock) -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.reserve(Budget(epsilon="1/10"), datasets=[VISITS], lasts=timedelta(hours=1))
    clock.now += timedelta(hours=2)
    account.reserve(Budget(epsilon="1/10"), datasets=[VISITS])
    found = health(ledger)
    assert (found.open_charges, found.stale, found.oldest_open) == (2, 1, 7200)
    assert said(found) == "1 open charges are past their time: sfumato ledger expire"
    clock.now += timedelta(hours=23)
    assert "a charge has been open for 1 day" in said(health(ledger))
    assert "open for" not in said(health(ledger, limits=Limits(open_for=timedelta(days=2))))


def test_budgets_near_their_end_are_named_by_what_decides(home: Home, clock: Clock) -> None:
    ledger = furnished(home, project=Budget(epsilon=1, delta="1/1000"), clock=clock)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.reserve(Budget(epsilon="1/10", delta="1/1250"), datasets=[VISITS])
    found = health(ledger)
    assert ("account", ACCOUNT, Fraction(4, 5)) in found.near  # by δ
    assert {name for _, name, _ in found.near} == {ACCOUNT, "hospital", "hospital/oncology", "visits", "patients"}
    assert "has used 80% of its budget" in said(found)


def test_the_last_verification_gets_old(ledger: Ledger, clock: Clock) -> None:
    assert "never verified" in said(health(ledger, asked=True))
    done = ledger.verification().checkpoint(ledger.key, clock()).checkpoint
    assert health(ledger, checkpoint=done, asked=True).attention() == ()
    clock.now += timedelta(days=6, hours=23)
    assert health(ledger, checkpoint=done).attention() == ()
    assert "last verified 6 days ago" in said(
        health(ledger, checkpoint=done, limits=Limits(unverified=timedelta(days=6)))
    )
    assert remembered(ledger, done).whole == done.whole


def test_closed_versions_and_a_dataset_that_is_stuck(ledger: Ledger) -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.close([VISITS], {})
    found = health(ledger)
    assert found.closed == (("visits", "2026-10"),)
    assert "no version of 'visits' can be read any more" in said(found)
    ledger.declare_version(Dataset(name="visits", edition="2026-11"))
    assert health(ledger).attention() == ()


def test_a_veto_stands_and_is_no_fault(home: Home) -> None:
    ledger = governed(home, board=BOARD, terms=TERMS)
    ledger.veto(dataset="visits", by="mele", community="valley", reason="not asked", key=key_of("mele"))
    found = health(ledger)
    assert found.vetoes == (("visits", "valley"),)
    assert found.attention() == ()
    assert 'sfumato_ledger_veto{dataset="visits",community="valley"} 1' in metrics(found)
    assert WHY.benefit not in metrics(found)


def test_a_clock_that_is_wrong_is_said(ledger: Ledger, clock: Clock) -> None:
    clock.now -= timedelta(hours=1)
    assert "the clock is" in said(health(ledger))
    clock.now += timedelta(days=9)
    assert "sfumato ledger clock" in said(health(ledger))
    assert "sfumato_ledger_clock_right 0" in metrics(health(ledger))


def test_names_cannot_break_out_of_their_label(home: Home) -> None:
    ledger = furnished(home)
    ledger.open_account('odd"\\\nname 1', unit=PATIENT, cap=HALF, reason="x")
    lines = metrics(health(ledger)).splitlines()
    assert r'sfumato_ledger_budget_used_ratio{kind="account",name="odd\"\\\nname 1"} 0' in lines
