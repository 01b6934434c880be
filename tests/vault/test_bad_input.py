"""Bad input: a clear error of the right class, no data value in any word of it, and the truth about the charge."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.question import Question
from sfumato.engines import sources
from sfumato.engines.expressions import Type
from sfumato.tables import Table
from sfumato.tables.schema import ColumnFacts, Schema
from sfumato.vault import Vault
from tests.engines.test_sources import all_words_of, damage

MARKER = "Marguerite-7731"  # stands in every column that can hold it, and in no error
NUMBER = 77310077
ROWS = pa.table(
    {
        "id": [MARKER, "b", "c", "d"],
        "hosp": [MARKER, "a", "a", "b"],
        "day": [NUMBER, 1, 2, 3],
        "weight": [float(NUMBER), 1.5, None, 2.5],
        "note": [MARKER, "x", "y", "z"],
    }
)
LIMIT = sf.Limit(groups=2, rows_per_group=2)
NOTHING = sf.Budget(epsilon=0)


def new_vault(unit: Any = None) -> Vault:
    return sf.Vault(
        unit=unit or sf.user("id", relation="add/remove"),
        budget=sf.Budget(epsilon=100, delta="1/1000"),
        name="trial",
        population=100,
    )


def declared(vault: Vault, data: object = ROWS, **changes: Any) -> Table:
    facts: dict[str, Any] = {"name": "visits", "version": "1", "limit": LIMIT}
    facts |= {"keys": {"hosp": ["a", "b"]}, "bounds": {"day": (0, 31), "weight": (0, 200)}}
    return vault.table(data, **(facts | changes))


@contextmanager
def told(error: type[BaseException], words: str) -> Iterator[None]:
    """This error, with these words, and without a data value in anything that depends on it."""
    with pytest.raises(error, match=words) as caught:
        yield
    said = all_words_of(caught.value)
    assert isinstance(caught.value, errors.SfumatoError)
    assert MARKER not in said
    assert str(NUMBER) not in said
    assert str(caught.value).endswith((".", "…).", "?"))


# ------------------------------------------------------------------------------------------- before any charge

UNKNOWN: list[tuple[str, Callable[[Table], Question]]] = [
    ("where", lambda table: table.where(sf.col("nope") > 1).count()),
    ("group", lambda table: table.with_keys(nope=["a"]).group_by("nope").count()),
    ("mean", lambda table: table.mean(sf.col("nope").clip(0, 1))),
    ("median", lambda table: table.median(sf.col("nope").clip(0, 1))),
    ("keys", lambda table: table.find_keys("nope")),
    ("top", lambda table: table.with_keys(nope=["a"]).group_by("nope").top(1)),
    ("marginals", lambda table: table.with_keys(nope=["a"]).marginals(["nope"])),
    ("histogram", lambda table: table.histogram("nope", [0, 1, 2])),
    ("share", lambda table: table.proportion(sf.col("nope") == "a")),
    ("join", lambda table: table.join(table, on={"id": "id", "nope": "hosp"}).count()),
]


@pytest.mark.parametrize("ask", [ask for _, ask in UNKNOWN], ids=[name for name, _ in UNKNOWN])
def test_an_unknown_column_is_named_and_costs_nothing(ask: Callable[[Table], Question]) -> None:
    vault = new_vault()
    question = ask(declared(vault))
    with told(errors.InvalidInput, r"'nope'.*nothing was (read|spent|done)"):
        question.release(epsilon=1, delta=1e-6)
    assert vault.spent == NOTHING


WRONG: list[tuple[str, Callable[[Table], Question]]] = [
    ("sum", lambda table: table.sum(sf.col("note").clip(0, 1))),
    ("median", lambda table: table.median(sf.col("note").clip(0, 1))),
    ("compare", lambda table: table.where(sf.col("note") > 3).count()),
    ("cut", lambda table: table.histogram("note", [0, 1])),
    ("keys", lambda table: table.with_keys(day=["a"]).group_by("day").count()),
    ("found", lambda table: table.find_keys("weight")),
]


@pytest.mark.parametrize("ask", [ask for _, ask in WRONG], ids=[name for name, _ in WRONG])
def test_text_where_a_number_is_meant_is_refused_and_costs_nothing(ask: Callable[[Table], Question]) -> None:
    vault = new_vault()
    with told(errors.SfumatoError, r"[Nn]othing was|does not|cannot"):
        ask(declared(vault)).release(epsilon=1, delta=1e-6)
    assert vault.spent == NOTHING


def test_what_was_not_declared_is_named_with_how_to_declare_it() -> None:
    vault = new_vault()
    table = declared(vault)
    with told(errors.NotDeclared, r"range of note.*Declare bounds="):
        table.mean("note")
    with told(errors.NotDeclared, r"range of note.*Declare bounds="):
        table.median("note")
    for grouped in (lambda: table.group_by("note"), lambda: table.marginals(["note"])):
        with told(errors.NotDeclared, r"'note' are not declared.*Declare keys="):
            grouped()
    with told(errors.NotDeclared, "needs a δ.*delta="):
        table.find_keys("hosp").release(epsilon=1)
    with told(errors.NotDeclared, "a vault needs its unit"):
        sf.Vault(budget=sf.Budget(epsilon=1), name="trial")
    with told(errors.NotDeclared, "needs a limit"):
        declared(new_vault(), limit=None).count().release(epsilon=1)
    with told(errors.NotDeclared, "a table needs a public name"):
        declared(new_vault(), name=None)
    with told(errors.NotDeclared, "a public table needs a name"):
        new_vault().public(pa.table({"a": [1]}))
    with told(errors.NotDeclared, "CSV file.*Declare the types in a schema"):
        declared(new_vault(), "visits.csv")
    assert vault.spent == NOTHING


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((nan, 1), "lower bound of 'day'"),
        ((0, nan), "upper bound of 'day'"),
        ((-inf, 1), "lower bound of 'day'"),
        ((0, inf), "upper bound of 'day'"),
        ((2, 1), "bounds of 'day' are the wrong way round"),
        (("a", "b"), "lower bound of 'day'"),
        ((None, 1), "lower bound of 'day'"),
    ],
)
def test_bounds_that_are_none_are_refused_where_they_are_declared(bounds: Any, words: str) -> None:
    with told(errors.InvalidInput, words):
        declared(new_vault(), bounds={"day": bounds})


@pytest.mark.parametrize("bounds", [(3, 3), (10**400, 10**400 + 1), (0, 10**400)])
def test_bounds_that_leave_no_range_are_refused_when_a_question_is_made_of_them(bounds: Any) -> None:
    for ask in (Table.mean, Table.median, Table.sum):
        vault = new_vault()
        with told(errors.InvalidInput, "bounds .*nothing was done"):
            ask(declared(vault, bounds={"day": bounds}), "day").release(epsilon=1)
        assert vault.spent == NOTHING


@pytest.mark.parametrize("values", [range(10**7), count()], ids=["ten million", "endless"])
def test_ten_million_keys_are_refused_at_once(values: Any) -> None:
    begun = time.monotonic()
    with told(errors.InvalidInput, "'day' has more than 1,000,000 values; nothing was done"):
        declared(new_vault(), keys={"day": values})
    assert time.monotonic() - begun < 20


def test_ten_million_cells_are_refused_in_every_query() -> None:
    wide = {name: range(4000) for name in ("day", "age")}
    table = declared(new_vault(), keys=wide, bounds={"weight": (0, 1)})
    grouped = table.group_by("day", "age")
    for ask in (
        lambda: grouped.count(),
        lambda: grouped.persons(),
        lambda: grouped.quantiles("weight", ["1/2"]),
        lambda: grouped.top(3),
        lambda: table.marginals(["day"], ["day", "age"]),
    ):
        with told(errors.InvalidInput, r"16,\d{3},000 cells, more than 10,000,000; nothing was done"):
            ask()


@pytest.mark.parametrize("keys", [{"hosp": "abc"}, {"hosp": []}, {"hosp": [1.5]}, {"hosp": [None]}, {"hosp": ["a", 1]}])
def test_keys_that_are_none_are_refused(keys: Any) -> None:
    with told(errors.InvalidInput, "'hosp'.*[Nn]othing was done"):
        declared(new_vault(), keys=keys)


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.join(table, on=7),
        lambda table: table.join(table, on=None),
        lambda table: table.join(table, on=[("id", "id", "id")]),
        lambda table: table.join(table, on=[("id", 7)]),
        lambda table: table.join(table, on={"id": None}),
        lambda table: table.join("labs", on="id"),
        lambda table: table.join(ROWS, on="id"),
        lambda table: table.join(table.where(sf.col("day") > 1), on="id"),
        lambda table: table.quantiles("day", None),
        lambda table: table.quantiles("day", [0.5, 0.5]),
        lambda table: table.quantiles("day", [1.5]),
        lambda table: table.quantiles("day", [nan]),
        lambda table: table.median(7),
        lambda table: table.histogram(7, [0, 1]),
        lambda table: table.histogram("day", [1, 0]),
        lambda table: table.histogram("day", [nan, 1]),
        lambda table: table.marginals(7),
        lambda table: table.marginals(),
        lambda table: table.marginals([]),
        lambda table: table.marginals(["hosp"], ["hosp"]),
        lambda table: table.find_keys(),
        lambda table: table.find_keys("hosp", "hosp"),
        lambda table: table.group_by("hosp").find_keys("hosp"),
        lambda table: table.group_by("hosp").marginals(["hosp"]),
        lambda table: table.top(1),
        lambda table: table.group_by("hosp").top(3),
        lambda table: table.group_by("hosp").top(True),
        lambda table: table.group_by("hosp", other="a"),
        lambda table: table.with_keys(day=[1, 2]).group_by("day", other="rest"),
        lambda table: table.group_by(band=sf.col("day")),
        lambda table: table.group_by(sf.col("day").cut([0, 10])),
        lambda table: table.group_by(count_data_low=sf.col("day").cut([0, 10])).count(),
    ],
)
def test_a_question_that_cannot_be_made_is_refused_while_it_is_made(ask: Callable[[Any], Any]) -> None:
    with told(errors.InvalidInput, "[Nn]othing was done"):
        ask(declared(new_vault()))


def test_a_computed_group_whose_values_do_not_follow_is_refused() -> None:
    with told(errors.NotDeclared, "does not follow from it; nothing was done"):
        declared(new_vault()).group_by(twice=sf.col("day") * 2)


# ------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    pq.write_table(ROWS, path)
    return path


ASKED: dict[str, Callable[[Table], Question]] = {
    "count": lambda table: table.group_by("hosp").count(),
    "agg": lambda table: table.agg(n=sf.count(), mean=sf.mean("day")),
    "median": lambda table: table.median("day"),
    "keys": lambda table: table.find_keys("hosp"),
    "top": lambda table: table.group_by("hosp").top(1),
    "marginals": lambda table: table.marginals(["hosp"]),
    "join": lambda table: table.join(table, on="id").count(),
}
every_query = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


@every_query
def test_preview_and_price_open_nothing(ask: Callable[[Table], Question], tmp_path: Path) -> None:
    """The file is not there: whoever opened it would fail with EngineFailed."""
    vault = new_vault()
    question = ask(declared(vault, tmp_path / "absent.parquet"))
    preview = question.preview(epsilon=1, delta=1e-6, rows=100)
    assert preview.spend.epsilon <= 1
    assert "Nothing was read or spent" in str(preview)
    assert set(preview.margins) | set(preview.untold) == set(question.query.names)
    column = question.query.names[-1]
    if column in preview.margins:
        found = question.epsilon_for(margin=100, rows=100, column=column)
        assert question.preview(epsilon=found, rows=100).margins[column] <= 100
    else:
        with told(errors.InvalidInput, "depends on the data; nothing was done"):
            question.epsilon_for(margin=100, rows=100, column=column, delta=1e-6)
    assert vault.spent == NOTHING


@every_query
def test_a_file_that_vanished_before_the_release_costs_nothing(ask: Callable[[Table], Question], parquet: Path) -> None:
    vault = new_vault()
    question = ask(declared(vault, parquet))
    parquet.unlink()
    with told(errors.EngineFailed, "no file 'visits.parquet'.*nothing was spent.*Check the path"):
        question.release(epsilon=1, delta=1e-6)
    assert vault.spent == NOTHING


@every_query
@pytest.mark.parametrize("what", ["vanishes", "changes", "is destroyed"])
def test_a_file_that_is_lost_after_the_charge_keeps_it(
    ask: Callable[[Table], Question], what: str, parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = new_vault()
    question = ask(declared(vault, parquet))
    reserve = vault._ledger.reserve

    def meanwhile(cost: sf.Budget, **said: Any) -> Any:
        held = reserve(cost, **said)
        if what == "vanishes":
            parquet.unlink()
        elif what == "changes":
            pq.write_table(ROWS.slice(1), parquet)
        else:
            damage(parquet)
        return held

    monkeypatch.setattr(vault._ledger, "reserve", meanwhile)
    with told(errors.EngineFailed, "'visits'.*is kept; no number was released.*declare it as a new version"):
        question.release(epsilon=1, delta=1e-6)
    assert vault.spent.epsilon == 1
    with told(errors.Refused, "was closed after its engine failed.*nothing was spent"):
        question.release(epsilon="1/2", delta=1e-6)
    assert vault.spent.epsilon == 1


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + MARKER.encode() * 20 + b"PAR1", MARKER.encode()])
def test_what_is_no_parquet_file_costs_nothing(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    path.write_bytes(content)
    vault = new_vault()
    with told(errors.EngineFailed, "could not open 'visits.parquet'; nothing was read and nothing was spent"):
        declared(vault, path).count().release(epsilon=1)
    assert vault.spent == NOTHING


def schema() -> Schema:
    return Schema(
        name="visits",
        edition="1",
        unit="id",
        limit=LIMIT,
        columns=(ColumnFacts(name="id", type=Type.TEXT), ColumnFacts(name="day", type=Type.WHOLE, bounds=(0, 31))),
    )


@pytest.mark.parametrize(
    ("text", "charged"),
    [
        (f"id,day\na,1\nb,2,{MARKER}\n", True),  # a cell too many
        (f'id,day\na,1\n"{MARKER},2\n', True),  # a quote that never ends
        (f"{MARKER},day\na,1\n", False),  # another header
        ("", False),
    ],
    ids=["too many", "quote", "header", "empty"],
)
def test_a_corrupt_csv_file(text: str, charged: bool, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(text)
    vault = new_vault()
    table = vault.table(path, schema=schema())
    error, words = (errors.EngineFailed, "charge of ε = 1 is kept") if charged else (errors.InvalidInput, "not .*id")
    with told(error, words):
        table.mean("day").release(epsilon=1)
    assert vault.spent == (sf.Budget(epsilon=1) if charged else NOTHING)


def test_a_cell_that_cannot_be_read_does_not_end_a_release(tmp_path: Path) -> None:
    """If it did, whether there is an answer would reveal something about one row; the cell is missing."""
    path = tmp_path / "visits.csv"
    path.write_text(f"id,day\na,1\nb,{MARKER}\n")  # text where a whole number was declared
    vault = new_vault()
    assert MARKER not in str(vault.table(path, schema=schema()).mean("day").release(epsilon=1).to_arrow())
    assert vault.spent == sf.Budget(epsilon=1)


def test_a_public_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.csv", b"\xff\xfe,\n1"), ("b.parquet", b"PAR1"), ("absent.parquet", None)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with told(errors.InvalidInput, "cannot be read as a Parquet or CSV file; nothing was done"):
            new_vault().public(tmp_path / name, name="places")


# -------------------------------------------------------------------------------------------------- PostgreSQL

IN_POSTGRES = f"""
DROP SCHEMA IF EXISTS ward CASCADE;
CREATE SCHEMA ward;
CREATE TABLE ward.visits AS SELECT '{MARKER}' AS id, 'a' AS hosp, {NUMBER} AS day;
CREATE TABLE ward.labs AS SELECT '{MARKER}' AS id, 'x' AS code;
CREATE VIEW ward.slow AS SELECT id, hosp, day FROM ward.visits WHERE pg_sleep(20)::text IS NOT NULL;
"""  # noqa: S608 - our own words
ASLEEP = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE application_name = 'sfumato' AND state = 'active' AND wait_event = 'PgSleep'"
)


@contextmanager
def cut_off(url: str) -> Iterator[list[int]]:
    """Meanwhile, the server ends the session that reads, as soon as it has begun to."""
    import psycopg

    ended: list[int] = []

    def watch() -> None:
        for _ in range(400):
            with psycopg.connect(url, autocommit=True) as connection:
                [(number,)] = connection.execute(ASLEEP).fetchall()
            if number:
                ended.append(number)
                return
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield ended
    watcher.join()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["median", "keys", "agg", "joined"])
def test_a_connection_that_is_dropped_while_rows_are_read_keeps_the_charge(name: str, postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(IN_POSTGRES)
    vault = new_vault()
    slow = declared(vault, sources.postgres(postgres_url, table="ward.slow"), derived=True)
    labs = vault.table(sources.postgres(postgres_url, table="ward.labs"), name="labs", version="1", limit=LIMIT)
    question = slow.join(labs, on="id").count() if name == "joined" else ASKED[name](slow)
    with cut_off(postgres_url) as ended, told(errors.EngineFailed, "is kept; no number was released"):
        question.release(epsilon=1, delta=1e-6)
    assert ended == [1]
    assert vault.spent.epsilon == 1
    if name == "joined":
        with told(errors.Refused, "was closed"):
            labs.count().release(epsilon=1)
    assert vault.spent.epsilon == 1


def test_a_server_that_is_not_there_costs_nothing(postgres_url: str) -> None:
    vault = new_vault()
    nowhere = postgres_url.rpartition(":")[0] + ":1/postgres"
    table = declared(vault, sources.postgres(nowhere, table="visits"))
    assert table.median("day").preview(epsilon=1).spend.epsilon == 1
    with told(errors.EngineFailed, "PostgreSQL could not open table.*nothing was spent"):
        table.median("day").release(epsilon=1)
    assert vault.spent == NOTHING
