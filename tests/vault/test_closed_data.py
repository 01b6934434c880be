"""Data that made an engine fail is closed by what it is: under every name that was declared for it before."""

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pyarrow.parquet as pq
import pytest
from sqlalchemy.engine import make_url

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.engines.sources import duckdb as in_duckdb
from sfumato.engines.sources import postgres
from sfumato.errors import EngineFailed, Refused
from sfumato.tables import Table
from sfumato.tables.store import TableStore
from sfumato.vault import Vault
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, furnished, sqlite_home
from tests.vault.conftest import ROWS

Declare = Callable[..., Table]
ELSEWHERE = "closed under another name.*Nothing was read and nothing was spent"


def fail(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask once, while the engine fails."""

    def fails(*_: object) -> Any:
        raise ValueError("an engine's words")

    with monkeypatch.context() as patched:
        patched.setattr(TableStore, "read", fails)
        with pytest.raises(EngineFailed):
            table.count().release(epsilon="1/100")


def refused(table: Any) -> None:
    before = table._gate.spent
    with pytest.raises(Refused, match=ELSEWHERE):
        table.count().release(epsilon="1/100")
    assert table._gate.spent == before


def answered(table: Any) -> None:
    assert not table.count().release(epsilon="1/100").repeated


def test_a_file_is_closed_under_every_name_and_spelling_that_was_declared(
    vault: sf.Vault, declare: Declare, visits_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, hard, folder, copy = (tmp_path / name for name in ("link.parquet", "hard.parquet", "folder", "copy.parquet"))
    link.symlink_to(visits_file)
    os.link(visits_file, hard)
    folder.mkdir()
    os.link(visits_file, folder / "one.parquet")
    shutil.copy(visits_file, copy)
    same = (visits_file, link, hard, folder, [visits_file], pl.scan_parquet(visits_file))
    others = [declare(vault, data, name=f"other {place}", version="7") for place, data in enumerate(same)]
    apart = declare(vault, copy, name="copy")
    fail(declare(vault), monkeypatch)
    for other in others:
        refused(other)
    answered(apart)  # a copy is not known to be one
    answered(declare(vault, visits_file, version="mended"))  # the steward's word


def test_a_table_of_duckdb_is_closed_however_it_is_reached(
    vault: sf.Vault, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("given", ROWS)
        connection.execute("CREATE TABLE visits AS FROM given; CREATE TABLE others AS FROM given")
    by_path = declare(vault, in_duckdb(path, table="Visits"), name="by path")
    apart = declare(vault, in_duckdb(path, table="others"), name="another table")
    fail(declare(vault, in_duckdb(path, table="main.visits")), monkeypatch)
    refused(by_path)
    answered(apart)
    engine = ibis.duckdb.connect()
    engine.create_table("visits", ROWS)
    by_ibis = declare(vault, engine.table("visits"), name="by Ibis")
    fail(declare(vault, in_duckdb(engine.con, table="visits"), name="by connection"), monkeypatch)
    refused(by_ibis)


def test_a_table_of_postgres_is_closed_however_it_is_reached(
    vault: sf.Vault, declare: Declare, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS closed_visits, open_visits")
        connection.execute("CREATE TABLE closed_visits (patient_id text, region text, diagnosis text)")
        connection.execute("CREATE TABLE open_visits (LIKE closed_visits)")
    spelled = make_url(postgres_url).set(host="localhost").render_as_string(hide_password=False)
    other = declare(vault, postgres(spelled, table="public.closed_visits"), name="other")
    apart = declare(vault, postgres(spelled, table="open_visits"), name="another table")
    fail(declare(vault, postgres(postgres_url, table="closed_visits")), monkeypatch)
    refused(other)
    answered(apart)


def test_a_graph_of_the_same_file_is_closed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    path = tmp_path / "contacts.parquet"
    pq.write_table(pa.table({"source": ["a", "b"], "target": ["b", "c"]}), path)
    vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
    first, second = (vault.graph(path, name=name, version="1", nodes=["a", "b", "c"]) for name in ("one", "two"))

    def fails(*_: object) -> Any:
        raise ValueError("an engine's words")

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.graphs.store.GraphStore.read", fails)
        with pytest.raises(EngineFailed):
            first.edges().release(epsilon="1/100")
    with pytest.raises(Refused, match=ELSEWHERE):
        second.edges().release(epsilon="1/100")


def test_a_durable_ledger_closes_the_file_for_every_vault_and_every_name_declared_before(
    tmp_path: Path, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home, project=sf.Budget(epsilon=1))
    other = Dataset(name="other", edition="1")
    roomy = sf.Budget(epsilon=100, delta="1/1000")
    ledger.declare_dataset(other, population="patients", cap=roomy)
    fail(declare(Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT), name=VISITS.name), monkeypatch)
    later = Vault(unit=PATIENT, ledger=home.open(), account=ACCOUNT)  # as in another process, on another day
    refused(declare(later, name="other", version="1"))
    ledger.declare_dataset(Dataset(name="other", edition="2"), population="patients", cap=roomy)
    answered(declare(later, name="other", version="2"))
    assert ledger.verify() == ()


@pytest.mark.parametrize("durable", [False, True])
def test_of_questions_under_way_at_once_one_tells_that_the_engine_failed(
    durable: bool,
    vault: sf.Vault,
    declare: Declare,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if durable:
        ledger = furnished(sqlite_home(tmp_path), project=sf.Budget(epsilon=1))
        ledger.declare_dataset(Dataset(name="other", edition="1"), population="patients", cap=sf.Budget(epsilon=1))
        vault = Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)
    table = declare(vault, name=VISITS.name, version=VISITS.edition)
    other = declare(vault, name="other", version="1")
    under_way, read = threading.Barrier(4), TableStore.read

    def fails(self: TableStore, query: Any) -> Any:
        under_way.wait()
        if query.where is None:
            raise ValueError("an engine's words")
        return read(self, query)

    def ask(question: Any) -> type:
        try:
            return type(question.release(epsilon="1/100"))
        except (EngineFailed, Refused) as refusal:
            return type(refusal)

    monkeypatch.setattr(TableStore, "read", fails)
    questions = [table.count(), table.group_by("region").count(), other.count(), other.group_by("region").count()]
    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(ask, questions))
    assert sorted(each.__name__ for each in told) == ["EngineFailed", "Refused", "Refused", "Refused"]


def test_a_question_that_ends_after_its_data_was_closed_tells_nothing(
    vault: sf.Vault, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, read = declare(vault), TableStore.read

    def closed_meanwhile(self: TableStore, query: Any) -> Any:
        assert vault._ledger.close([table.dataset], {})
        return read(self, query)

    monkeypatch.setattr(TableStore, "read", closed_meanwhile)
    with pytest.raises(Refused, match=r"closed meanwhile.*is kept; no number was released"):
        table.group_by("region").count().release(epsilon="1/100")
