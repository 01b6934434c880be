"""A bounded count by group: our plan beside SQL written by hand, with the same limit, and beside a plain group-by."""

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.harness import compare, write

GROUPS = 1_000

BOUNDED = """
    SELECT region, sum(n) FROM (
        SELECT person, region, least(n, 5) AS n FROM (
            SELECT person, region, count(*) AS n FROM read_parquet('{path}') WHERE person IS NOT NULL GROUP BY 1, 2
        ) QUALIFY row_number() OVER (PARTITION BY person ORDER BY md5('secret' || person || region), region) <= 3
    ) GROUP BY 1
"""
PLAIN = "SELECT region, count(*) FROM read_parquet('{path}') GROUP BY 1"


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    rows = 20_000 if smoke else 2_000_000
    draw = np.random.default_rng(0)  # makes fictional rows, never noise
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        people = (rows // 20 * draw.random(rows) ** 2).astype(np.int64)
        pq.write_table(pa.table({"person": people, "region": draw.integers(0, GROUPS, rows)}), path)
        vault = sf.Vault(
            unit=sf.user("person", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="benchmark"
        )
        table = vault.table(
            path,
            name="rows",
            version="1",
            limit=sf.Limit(groups=3, rows_per_group=5),
            keys={"region": list(range(GROUPS))},
        )
        question = table.group_by("region").count()

        def sql(text: str) -> None:
            with duckdb.connect() as engine:
                engine.execute(text.format(path=path)).fetchall()

        measured = {
            f"count by {GROUPS} groups, {rows} rows": compare(
                lambda: question.release(epsilon=1, fresh=True),
                {"bounded SQL by hand": lambda: sql(BOUNDED), "plain group-by": lambda: sql(PLAIN)},
                pairs=2 if smoke else 7,
            )
        }
    return write("counts", measured, smoke=smoke)
