"""What is raised while a table is polled tells of no row: neither its words nor its kind; a real Ctrl-C goes on."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import ibis
import pytest

from sfumato.engines import incremental_read
from sfumato.errors import EngineFailed, InvalidInput, Refused
from sfumato.vault import Vault

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = "patient 17 has it"
KINDS = (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, Refused, InvalidInput)


class Table:
    """A table of PostgreSQL whose connection does something while rows are fetched, as code that adapts values can."""

    name, label, advice = ("visits",), "table 'visits'", "Check."

    def __init__(self, fetch: Callable[[int], Any], *, close: Callable[[], None] = lambda: None) -> None:
        self.fetch, self.close, self.pages, self.closed = fetch, close, 0, 0

    @contextmanager
    def session(self) -> Iterator[Any]:
        try:
            yield SimpleNamespace(con=self)
        finally:
            self.closed += 1
            self.close()

    def held(self, _: Any) -> dict[str, Any]:
        return {"id": ibis.dtype("int64"), "at": ibis.dtype("timestamp('UTC')"), "who": ibis.dtype("string")}

    def execute(self, words: str, _: Any = None) -> Any:
        if words.startswith("SHOW"):
            return SimpleNamespace(fetchone=lambda: ("UTF8",))
        if "pg_index" in words:
            return SimpleNamespace(fetchone=lambda: (True,))
        self.pages += 1
        return SimpleNamespace(fetchall=lambda: self.fetch(self.pages))

    def rows(self) -> Iterator[Any]:
        origin: Any = self
        return incremental_read.rows_since(origin, BEGIN, key="id", time="at", columns=["who"])


def raising(wrong: BaseException, *, page: int = 1) -> Callable[[int], Any]:
    def fetch(number: int) -> Any:
        if number == page:
            raise wrong
        return [(number, "a")]

    return fetch


@pytest.mark.parametrize("page", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_raised_while_rows_are_fetched_is_one_failure_without_words(
    kind: type[BaseException], page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental_read, "ROWS", 1)
    table = Table(raising(kind(WORDS), page=page))
    with pytest.raises(EngineFailed, match="PostgreSQL did not answer") as caught:
        list(table.rows())
    assert WORDS not in repr(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert table.closed == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_raised_while_the_session_ends_changes_nothing(kind: type[BaseException]) -> None:
    def close() -> None:
        raise kind(WORDS)

    assert list(Table(lambda _: [(1, "a")], close=close).rows()) == [(1, {"who": "a"})]


def test_a_real_ctrl_c_ends_a_poll_and_its_session() -> None:
    def fetch(_: int) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return [(1, "a")]

    table = Table(fetch)
    with pytest.raises(KeyboardInterrupt) as caught:
        list(table.rows())
    assert caught.value.__context__ is None
    assert table.closed == 1


def test_a_poll_that_is_dropped_half_way_ends_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_read, "ROWS", 1)
    table = Table(lambda number: [(number, "a")])
    rows = table.rows()
    assert next(rows) == (1, {"who": "a"})
    rows.close()  # type: ignore[attr-defined]
    assert (table.pages, table.closed) == (1, 1)


def test_code_that_runs_while_rows_are_fetched_asks_no_vault() -> None:
    import sfumato as sf

    vault = Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")

    def fetch(_: int) -> Any:
        vault.stream(name="er", horizon=3)
        return []

    with pytest.raises(EngineFailed):
        list(Table(fetch).rows())


def test_what_the_check_of_the_table_refuses_is_told() -> None:
    origin: Any = Table(lambda _: [])
    with pytest.raises(InvalidInput, match="has no column 'other'"):
        list(incremental_read.rows_since(origin, BEGIN, key="id", time="at", columns=["other"]))
    assert origin.closed == 1
