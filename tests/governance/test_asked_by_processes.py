"""One question that several processes ask at once on one ledger is charged once; also through an owner process."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.errors import LedgerError, Refused
from sfumato.governance.ledger import Ledger
from sfumato.governance.store import Store
from tests.governance.asker import ask, asked
from tests.governance.homes import ACCOUNT, Home, furnished, sqlite_home
from tests.governance.owners import served

LOCKS = """
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
TENTH, TWO_TENTHS = Budget(epsilon="1/10"), Budget(epsilon="2/10")


@contextmanager
def reached(ledger: Ledger, home: Home, through: str) -> Iterator[Home]:
    """The same ledger, opened by each process itself or kept by an owner process."""
    if through == "itself":
        yield home
        return
    with served(ledger) as owner:
        yield replace(home, socket=owner.address)


WAYS = pytest.mark.parametrize("through", ["itself", "owner"])


def spent(ledger: Ledger) -> Budget:
    return ledger.balance(ACCOUNT).spent


@contextmanager
def another(home: Home, end: str = "reads") -> Iterator[tuple[Any, Any]]:
    """Another process that has been charged for the question and reads: how it goes on, and what it told."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([ask.__module__])  # imported once; processes are forked from there, not from here
    told, begun, go_on = context.Queue(), context.Event(), context.Event()
    process = context.Process(target=ask, args=(home, told, begun, go_on, end))
    process.start()
    try:
        while not begun.wait(0.1):
            assert process.is_alive()
        yield go_on, told
    finally:
        go_on.set()
        process.join(60)
        told.close()


@WAYS
def test_two_processes_with_one_question_pay_once_and_get_one_answer(home: Home, through: str) -> None:
    ledger = furnished(home, project=Budget(epsilon=1))
    with reached(ledger, home, through) as home, another(home) as (go_on, told):
        go_on.set()
        release = asked(home)
        assert told.get(timeout=10) == (False, release.certificate.text)
    assert (release.repeated, release.charged) == (True, Budget.none())
    assert spent(ledger) == TENTH
    assert ledger.verify() == ()


@WAYS
@pytest.mark.long
def test_a_process_that_was_killed_while_it_read_has_spent_and_holds_up_nobody(home: Home, through: str) -> None:
    ledger = furnished(home, project=Budget(epsilon=1))
    with reached(ledger, home, through) as home, another(home, "killed") as (go_on, _):
        go_on.set()
        release = asked(home)
    assert (release.repeated, release.charged) == (False, TENTH)
    assert spent(ledger) == TWO_TENTHS


@WAYS
@pytest.mark.long
def test_where_the_first_process_fails_the_other_is_refused_and_pays_nothing(home: Home, through: str) -> None:
    ledger = furnished(home, project=Budget(epsilon=1))
    with reached(ledger, home, through) as home, another(home, "fails") as (go_on, told):
        go_on.set()
        with pytest.raises(Refused, match="closed"):
            asked(home)
        assert told.get(timeout=10)[0] == "EngineFailed"
    assert spent(ledger) == TENTH


@WAYS
@pytest.mark.long
def test_other_questions_and_fresh_draws_wait_for_no_other_process(home: Home, through: str) -> None:
    ledger = furnished(home, project=Budget(epsilon=1))
    with reached(ledger, home, through) as home, another(home) as (go_on, told):
        assert not asked(home, region="south").repeated
        assert not asked(home, fresh=True).repeated
        assert spent(ledger) == Budget(epsilon="3/10")
        go_on.set()
        assert told.get(timeout=10)[0] is False


def test_a_question_that_cannot_be_held_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home, project=Budget(epsilon=1))
    key = "0" * 64
    (tmp_path / f"ledger.db-asked-{key}").mkdir()
    with pytest.raises(LedgerError, match=r"beside the ledger ledger\.db cannot be used.*nothing was spent"):
        ledger.record.store.asking(key).__enter__()
    assert spent(ledger) == Budget.none()


def test_nothing_is_left_of_a_question_that_was_answered(home: Home) -> None:
    furnished(home, project=Budget(epsilon=1))
    asked(home)
    if home.lite:
        assert list(Path(home.url).parent.glob("*asked*")) == []
        return
    until = time.monotonic() + 10  # the server lets go a moment after its client has
    while home.execute(LOCKS) != [(0,)]:
        assert time.monotonic() < until


def test_a_question_is_held_beside_the_ledger_itself_by_whatever_link_it_was_named(tmp_path: Path) -> None:
    home, link = tmp_path / "home" / "ledger.db", tmp_path / "link.db"
    home.parent.mkdir()
    home.touch()
    link.symlink_to(home)
    with Store(link).asking("00"):
        assert [file.name for file in home.parent.iterdir() if "asked" in file.name] == ["ledger.db-asked-00"]
