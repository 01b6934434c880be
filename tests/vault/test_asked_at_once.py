"""One question that several threads ask at once is charged once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import EngineFailed, Refused
from sfumato.tables import Table
from sfumato.tables.store import TableStore
from sfumato.vault import Vault
from tests.governance.homes import ACCOUNT, PATIENT, furnished, sqlite_home

Declare = Callable[..., Table]
THREADS = 6


def at_once(ask: Callable[[int], Release]) -> list[Release]:
    """Ask in as many threads, all of which begin together."""
    ready = threading.Barrier(THREADS)

    def begin(place: int) -> Release:
        ready.wait()
        return ask(place)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(begin, range(THREADS)))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading takes until the others had time to come as well."""
    read, late = TableStore.read, threading.Event()

    def slowly(self: TableStore, query: Any) -> Any:
        late.wait(0.3)
        return read(self, query)

    monkeypatch.setattr(TableStore, "read", slowly)


@pytest.mark.usefixtures("slow")
def test_six_threads_with_one_question_pay_once(vault: sf.Vault, declare: Declare) -> None:
    question = declare(vault).group_by("region").count()
    found = at_once(lambda _: question.release(epsilon="1/10"))
    assert len({release.values for release in found}) == 1
    assert sorted(release.repeated for release in found) == [False, *[True] * (THREADS - 1)]
    assert [release.charged for release in found if release.repeated] == [sf.Budget(epsilon=0)] * (THREADS - 1)
    assert vault.spent == sf.Budget(epsilon="1/10")


@pytest.mark.usefixtures("slow")
def test_fresh_draws_wait_for_nobody_and_each_pays(vault: sf.Vault, declare: Declare) -> None:
    question = declare(vault).count()
    found = at_once(lambda _: question.release(epsilon="1/10", fresh=True))
    assert [release.repeated for release in found] == [False] * THREADS
    assert vault.spent == sf.Budget(epsilon="6/10")


@pytest.mark.usefixtures("slow")
def test_other_questions_are_charged_each(vault: sf.Vault, declare: Declare) -> None:
    table = declare(vault)
    found = at_once(lambda place: table.where(sf.col("region") == f"r{place}").count().release(epsilon="1/10"))
    assert [release.repeated for release in found] == [False] * THREADS
    assert vault.spent == sf.Budget(epsilon="6/10")


@pytest.mark.usefixtures("slow")
def test_six_vaults_of_one_durable_ledger_pay_once(tmp_path: Any, declare: Declare) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home, project=sf.Budget(epsilon=1))
    vaults = [Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT) for _ in range(THREADS)]
    questions = [declare(vault).group_by("region").count() for vault in vaults]
    found = at_once(lambda place: questions[place].release(epsilon="1/10"))
    assert len({release.certificate.text for release in found}) == 1
    assert sorted(release.repeated for release in found) == [False, *[True] * (THREADS - 1)]
    assert vaults[0].spent == sf.Budget(epsilon="1/10")


def test_where_the_first_fails_the_others_are_refused_and_pay_nothing(
    vault: sf.Vault, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Any:
        threading.Event().wait(0.3)
        raise ValueError("an engine's words")

    monkeypatch.setattr(TableStore, "read", fails)
    question = declare(vault).count()

    def ask(_: int) -> Any:
        with pytest.raises((EngineFailed, Refused)) as caught:
            question.release(epsilon="1/10")
        return type(caught.value)

    found: list[Any] = at_once(ask)
    assert sorted(kind.__name__ for kind in found) == ["EngineFailed", *["Refused"] * (THREADS - 1)]
    assert vault.spent == sf.Budget(epsilon="1/10")
