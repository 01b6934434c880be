"""Tables of a real PostgreSQL: one read-only state, bytewise text, no password, and what a lost connection costs."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import ibis
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.engines import sources
from sfumato.engines.counts import KeyColumn, bounded_counts
from sfumato.engines.expressions import Type, col
from sfumato.engines.sources import Source
from sfumato.errors import EngineFailed, InvalidInput
from tests.engines.reading import SENSITIVE, SHARE, persons, rows
from tests.engines.test_sources import all_words_of
from tests.servers import PASSWORD

IN_POSTGRES = """
CREATE COLLATION IF NOT EXISTS careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
DROP SCHEMA IF EXISTS clinic CASCADE;
CREATE SCHEMA clinic;
CREATE TYPE clinic.words AS ENUM ('x', 'y');
CREATE DOMAIN clinic.years AS integer;
CREATE TABLE clinic."It's visits" (
    id text COLLATE careless, zip varchar(9), short char(4), n smallint, age clinic.years, w real, b boolean, d date,
    at timestamp, zoned timestamptz, u uuid, cost numeric, words clinic.words, j json);
INSERT INTO clinic."It's visits" VALUES
    ('p', 'a', 'x', 1, 65, 0.5, true, '2026-01-31', '2026-01-31 23:59:59', now(),
     '00010203-0405-0607-0809-0A0B0C0D0E0F', 1.25, 'x', '{}'),
    ('P', NULL, NULL, -32768, NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, 1e400, NULL, NULL),
    ('é', 'b', 'x ', NULL, NULL, '-Infinity', false, 'infinity', 'infinity', NULL, NULL, 1e-400, 'y', NULL);
"""
VISITS = ("clinic", "It's visits")


@pytest.fixture
def clinic(postgres_url: str) -> str:
    with server(postgres_url) as connection:
        connection.execute(IN_POSTGRES)
    return postgres_url


@contextmanager
def server(url: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def sessions(url: str) -> int:
    """How many connections of ours the server has."""
    for _ in range(100):
        with server(url) as connection:
            [(number,)] = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sfumato'"
            ).fetchall()
        if number == 0:
            break
        time.sleep(0.05)  # the server notices a closed connection a little later
    return int(number)


def test_a_table_of_postgresql(clinic: str) -> None:
    source = Source(sources.postgres(clinic, table=VISITS))
    assert source.engine == "PostgreSQL"
    assert source.columns() == {
        "id": Type.TEXT,
        "zip": Type.TEXT,
        "short": Type.TEXT,
        "n": Type.WHOLE,
        "age": Type.WHOLE,
        "w": Type.NUMBER,
        "b": Type.TRUTH,
        "d": Type.DATE,
        "at": Type.TIME,
        "zoned": Type.OTHER,
        "u": Type.TEXT,
        "cost": Type.NUMBER,
        "words": Type.TEXT,
        "j": Type.OTHER,
    }
    asked = {"id": Type.TEXT, "short": Type.TEXT, "age": Type.WHOLE, "w": Type.NUMBER, "at": Type.DATE, "u": Type.TEXT}
    few = Source(sources.postgres(clinic, table=VISITS), {**asked, "cost": Type.NUMBER, "words": Type.TEXT})
    with few.opened() as table:
        found = table.filter(table.id == "p").to_pyarrow().to_pylist()
        costs = table.select("cost").to_pyarrow().to_pylist()
        assert bounded_counts(table, where=col("id") < "a", keys=(), share=None) == [1]  # "P", bytewise
    assert found == [
        {
            "id": "p",
            "short": "x",
            "age": 65,
            "w": 0.5,
            "at": date(2026, 1, 31),
            "u": "00010203-0405-0607-0809-0a0b0c0d0e0f",
            "cost": 1.25,
            "words": "x",
        }
    ]
    assert [row["cost"] for row in costs] == [1.25, float("inf"), 0.0]
    assert persons(source) == 3
    assert sessions(clinic) == 0


def test_the_table_may_stand_in_the_url(clinic: str) -> None:
    with server(clinic) as connection:
        connection.execute("DROP TABLE IF EXISTS public.plain; CREATE TABLE public.plain AS SELECT 'p' AS id")
    for table in ("plain", "public.plain"):
        assert rows(Source(f"{clinic}?table={table}&sslmode=prefer")) == [{"id": "p"}]


def test_a_release_reads_one_state_and_can_write_nothing(clinic: str) -> None:
    import psycopg

    source = Source(sources.postgres(clinic, table=VISITS))
    with source.opened() as table, server(clinic) as other:
        before = bounded_counts(table, where=None, keys=(), share=None)
        other.execute("INSERT INTO clinic.\"It's visits\" (id) VALUES ('late')")
        assert bounded_counts(table, where=None, keys=(), share=None) == before == [3]
        inside = table.get_backend().con
        assert inside.execute("SHOW transaction_isolation").fetchall() == [("repeatable read",)]
        keys = (KeyColumn(column="zip", values=("a", "b", "\0")),)
        assert bounded_counts(table, where=None, keys=keys, share=SHARE) == [1, 1, 0]
        for statement in ("CREATE TEMP TABLE t (x int)", 'DELETE FROM clinic."It\'s visits"'):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), inside.transaction():
                inside.execute(statement)
    assert persons(source) == 4
    assert sessions(clinic) == 0


def test_an_ibis_table_of_postgresql_leaves_its_connection_as_it_was(clinic: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    reached = conninfo_to_dict(clinic)
    engine = ibis.postgres.connect(**reached | {"database": reached.pop("dbname"), "port": int(reached["port"])})
    table = engine.table(VISITS[1], database="clinic")
    source = Source(table.filter(table.id.notnull()).select("id", "n"))
    assert source.columns() == {"id": Type.TEXT, "n": Type.WHOLE}
    assert persons(source) == 3
    assert (engine.con.read_only, engine.con.isolation_level) == (None, None)
    engine.raw_sql("CREATE TEMP TABLE still_allowed (x int)")
    with engine.con.transaction(), pytest.raises(EngineFailed, match=r"could not open the Ibis table.*idle"):
        source.columns()
    engine.disconnect()
    with pytest.raises(EngineFailed, match="could not open the Ibis table"):
        source.columns()


def test_no_password_shows_anywhere(clinic: str) -> None:
    wrong = clinic.replace("@127", "wrong@127")
    table = sources.postgres(wrong, table="visits")
    source = Source(table)
    with pytest.raises(EngineFailed, match=r"PostgreSQL could not open table 'visits'.*nothing was spent") as caught:
        source.columns()
    shown = [repr(table), str(table), repr(source), all_words_of(caught.value)]
    with pytest.raises(InvalidInput) as unread:
        sources.postgres(f"postgresql://steward:{PASSWORD}@host:port/x?table=y")
    shown.append(all_words_of(unread.value))
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    visits = vault.table(sources.postgres(clinic, table=VISITS), name="visits", limit=Limit(groups=1, rows_per_group=1))
    shown += [repr(visits), repr(vault), str(visits.count().release(epsilon=1).certificate)]
    for words in shown:
        assert "pass@word" not in words
        assert "pass%40word" not in words
        assert "127.0.0.1" not in words


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "damage", ["DROP TABLE {}", "ALTER TABLE {} DROP COLUMN id", "ALTER TABLE {} ALTER zip TYPE integer USING NULL"]
)
def test_a_table_that_changes_before_the_charge_costs_nothing(clinic: str, damage: str) -> None:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    limit = Limit(groups=1, rows_per_group=1)
    visits = vault.table(sources.postgres(clinic, table=VISITS), name="visits", version="1", limit=limit)
    visits.count().release(epsilon="1/2")
    with server(clinic) as connection:
        connection.execute(damage.format('clinic."It\'s visits"'))
    with pytest.raises(EngineFailed):
        visits.count().release(epsilon="1/4")
    assert vault.spent == sf.Budget(epsilon="1/2")


def test_a_dropped_connection_keeps_the_charge_and_quotes_nothing(clinic: str) -> None:
    """The server is told to end the session while it reads."""
    with server(clinic) as connection:
        connection.execute("CREATE VIEW clinic.slow AS SELECT 'Zaphod-4711' AS id FROM pg_sleep(20)")
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    limit = Limit(groups=1, rows_per_group=1)
    given = sources.postgres(clinic, table="clinic.slow")
    slow = vault.table(given, name="slow", version="1", limit=limit, derived=True)
    ended: list[int] = []

    def end_it() -> None:
        query = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE application_name = 'sfumato' AND state = 'active' AND wait_event = 'PgSleep'"
        )
        for _ in range(300):
            with server(clinic) as connection:
                [(number,)] = connection.execute(query).fetchall()
            if number:
                ended.append(number)
                return
            time.sleep(0.05)

    killer = threading.Thread(target=end_it)
    killer.start()
    with pytest.raises(EngineFailed, match="charge of ε = 1/2 is kept") as caught:
        slow.count().release(epsilon="1/2")
    killer.join()
    assert ended == [1]
    assert vault.spent == sf.Budget(epsilon="1/2")
    assert SENSITIVE not in all_words_of(caught.value)
    assert caught.value.__context__ is None
    assert sessions(clinic) == 0


@pytest.mark.parametrize("table", ["absent", "clinic.absent", "nowhere.visits", "CLINIC.slow"])
def test_a_postgresql_table_that_is_not_there(clinic: str, table: str) -> None:
    with pytest.raises(EngineFailed, match=r"PostgreSQL could not open table.*the name is right") as caught:
        Source(sources.postgres(clinic, table=table)).columns()
    assert caught.value.__context__ is None


def test_a_table_that_may_not_be_read_fails_before_the_charge(clinic: str) -> None:
    with server(clinic) as connection:
        connection.execute("DROP TABLE IF EXISTS hidden; CREATE TABLE hidden AS SELECT 'p' AS id")
        connection.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN PASSWORD 'x'")
    stranger = clinic.replace(clinic.partition("//")[2].partition("@")[0], "stranger:x")
    source = Source(sources.postgres(stranger, table="hidden"))
    with pytest.raises(EngineFailed, match="the user may read the table"):
        source.columns()
