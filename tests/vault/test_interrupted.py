"""Ctrl-C while an engine reads is a Ctrl-C: the charge counts, the data stay open, and nothing is delivered."""

# ruff: noqa: S608 - SQL of our own
import os
import signal
import threading
import time
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import sources
from sfumato.errors import EngineFailed
from sfumato.graphs.store import GraphStore
from sfumato.tables.store import TableStore

ENDLESS, SHORT = 10**12, 40


def vault_of(budget: int = 10) -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=budget), name="clinic")


def press_after_the_charge(vault: sf.Vault, moment: float) -> threading.Thread:
    """Press Ctrl-C a moment after the charge, when the engine begins to read."""

    def press() -> None:
        deadline = time.monotonic() + 20
        while vault.spent.epsilon == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(moment)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def filled(connection: Any, rows: int) -> None:
    connection.execute(f"CREATE OR REPLACE VIEW numbers AS SELECT range % 20 AS id FROM range({rows})")


@pytest.mark.few(2)
@pytest.mark.parametrize("moment", [0.003, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.3])
def test_ctrl_c_while_duckdb_reads_keeps_the_charge_and_closes_nothing(moment: float) -> None:
    """Pressed between two calls of the engine, it left a query running for whose end the closing waited."""
    connection, vault = duckdb.connect(), vault_of()
    filled(connection, ENDLESS)
    table = vault.table(
        sources.duckdb(connection, table="numbers"),
        name="numbers",
        version="1",
        limit=sf.Limit(groups=1, rows_per_group=1),
        derived=True,
    )
    question = table.count()
    pressed = press_after_the_charge(vault, moment)
    with pytest.raises(KeyboardInterrupt) as caught:
        question.release(epsilon=1)
    pressed.join()
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert vault.spent == sf.Budget(epsilon=1)
    filled(connection, SHORT)
    answered = question.release(epsilon=1)  # the version is not closed, and nothing was stored under the question
    assert (answered.repeated, answered.charged) == (False, sf.Budget(epsilon=1))
    assert vault.spent == sf.Budget(epsilon=2)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException, MemoryError])
@pytest.mark.parametrize("area", [TableStore, GraphStore])
def test_whatever_else_an_engine_raises_is_a_failure_of_the_engine(
    raised: type[BaseException], area: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> Any:
        raise raised("Zaphod-4711")

    monkeypatch.setattr(area, "read", read)
    if area is TableStore:
        vault = vault_of()
        limit = sf.Limit(groups=1, rows_per_group=1)
        question = vault.table(pa.table({"id": [1]}), name="x", version="1", limit=limit).count()
    else:
        vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=10), name="contacts")
        question = vault.graph([(0, 1)], name="x", version="1", nodes=2).edges()
    with pytest.raises(EngineFailed, match=r"charge of ε = 1 is kept") as caught:
        question.release(epsilon=1)
    assert caught.value.__context__ is None
    assert vault.spent.epsilon == 1
