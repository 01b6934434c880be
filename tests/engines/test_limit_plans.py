"""The plan of a limited, grouped question on each engine: what is worked out once, what is read once; the same rows."""

from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.engines.counts import KeyColumn, Share, bounded_counts, rows_by_cell
from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.sources import Source
from tests.engines.loading import in_postgres, in_spark
from tests.laws.scenarios import SECRET

PRIME = 2**31 - 1
REGIONS = tuple("abcdefgh")
KEYS = (KeyColumn(column="region", values=REGIONS),)
FRAME = pa.table(
    {
        "id": [f"p{at % 50}" for at in range(800)],
        "number": [at % 50 - 25 for at in range(800)],
        "region": [REGIONS[at * at % 11 % 8] for at in range(800)],
    }
)


def share(column: str, groups: int = 2) -> Share:
    return Share(column=column, limit=Limit(groups=groups, rows_per_group=3), secret=SECRET)


def counted(source: Source, column: str, groups: int = 2) -> list[int]:
    with source.opened() as table:
        return bounded_counts(table, where=None, keys=KEYS, share=share(column, groups))


def compiled(table: Any, column: str) -> str:
    return str(table.get_backend().compile(rows_by_cell(table, where=None, keys=KEYS, share=share(column))))


def test_postgres_works_out_each_mark_once_and_takes_the_keys_apart_once(postgres_url: str) -> None:
    """The planner puts an expression wherever its name stands, unless it is kept from it: 32 md5 for each row."""
    with in_postgres(postgres_url, FRAME, "planned").opened() as table:
        connection = table.get_backend().con
        rows = connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {compiled(table, 'id')}").fetchall()
    steps = "\n".join(row for (row,) in rows)
    assert steps.count("md5(") == 1, steps
    assert steps.count("Seq Scan on public.planned") == 1
    (marking,) = (step for step in steps.splitlines() if "md5(" in step)
    assert "string_to_array" not in marking


@pytest.mark.parametrize("column", ["id", "number"])
@pytest.mark.parametrize("groups", [1, 2, 20])
def test_postgres_keeps_the_rows_that_duckdb_keeps(postgres_url: str, column: str, groups: int) -> None:
    expected = counted(Source(FRAME), column, groups)
    assert counted(in_postgres(postgres_url, FRAME, "kept"), column, groups) == expected
    assert sum(expected) > 0


@pytest.mark.parametrize("column", ["id", "number"])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_the_same_rows_are_kept_with_and_without_a_sieve(
    column: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what holds of all neighbours on one plan (tests/laws) holds on the other."""
    sieved = counted(Source(FRAME), column, groups)
    monkeypatch.setattr(type(DUCKDB), "sieves", False)
    assert counted(Source(FRAME), column, groups) == sieved


def test_spark_reads_the_rows_once(spark: Any) -> None:
    source = in_spark(spark, FRAME, "scanned")
    with source.opened() as table:
        frame = table.get_backend().raw_sql(compiled(table, "id"))
        plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan parquet") == 1
    assert counted(source, "id") == counted(Source(FRAME), "id")


def test_people_whose_ids_are_equal_modulo_a_prime_do_not_all_keep_one_group() -> None:
    """They did: then seven of eight groups were empty, and the eighth had everybody."""
    people = [at * PRIME for at in range(1, 1001)]
    frame = pa.table({"number": [each for each in people for _ in REGIONS], "region": list(REGIONS) * 1000})
    found = counted(Source(frame), "number", groups=1)
    assert sum(found) == 1000
    assert min(found) > 60
