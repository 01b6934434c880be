"""Private group-by at the level of the person: beside SQL written by hand, beside other packages, on three engines.

Count, sum and mean by 1,000 groups, at most 3 groups a person, values in [0, 100], from Parquet; and, with one row made
of each person's rows, persons by how many rows they have, with the mean of their largest value. Each run is a process
of its own, so that its peak memory is its own; the clock starts when everything is imported. Rows are invented from a
fixed seed. Under other load the CPU seconds say more than the seconds; the load is written down.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import PAIRS, compare, ratio, write
from benchmarks.table_peers import PEERS, built

GROUPS = 1_000
KEPT, ROWS_A_GROUP = 3, 5
MOST = KEPT * ROWS_A_GROUP  # the numbers of rows that persons are counted by
PRIME = 2**31 - 1
RUNS = 2_000
TABLES = 10
FIGURES = ("seconds", "cpu_seconds", "peak_mb")

PLACED = "CAST(round(greatest(0.0, least(100.0, coalesce(value, 0.0))) * 167772.16) AS BIGINT)"
PAIRS_OF_ROWS = f"""
    SELECT person, grp, count(*) AS n, sum({PLACED}) AS total FROM {{rows}} WHERE person IS NOT NULL GROUP BY 1, 2
"""  # noqa: S608 - constants of this file
HELD = f"""
    least(n, {ROWS_A_GROUP}) AS n, CASE WHEN n > {ROWS_A_GROUP} THEN total * {ROWS_A_GROUP} // n ELSE total END AS total
"""
MD5 = "substr(md5('6:secretw' || CAST(person AS VARCHAR) || ';w' || CAST(grp AS VARCHAR) || ';'), 1, 12)"
WHOLE = f"(((person % {PRIME}) * 1925608199 + 611152984) % {PRIME} * weight + 123456791) % {PRIME}"
BY_HAND = f"""
    SELECT grp, sum(n), sum(total), sum(total) / sum(n) FROM (
        SELECT grp, {HELD} FROM ({PAIRS_OF_ROWS}) {{beside}}
        QUALIFY row_number() OVER (PARTITION BY person ORDER BY {{hash}}, grp) <= {KEPT}
    ) GROUP BY 1
"""  # noqa: S608 - constants of this file
WEIGHTS = f"""
    JOIN (SELECT i AS grp, 1 + CAST('0x' || substr(md5('secret' || i), 1, 7) AS BIGINT) AS weight
          FROM range({GROUPS}) AS keys(i)) USING (grp)
"""  # noqa: S608 - constants of this file
QUERIES = {
    "bounded SQL by hand, md5 of each pair": BY_HAND.replace("{hash}", MD5).replace("{beside}", ""),
    "bounded SQL by hand, whole-number hash": BY_HAND.replace("{hash}", f"({WHOLE}) * ({WHOLE}) % {PRIME}").replace(
        "{beside}", WEIGHTS
    ),
    "plain group-by": "SELECT grp, count(*), sum(value), avg(value) FROM {rows} GROUP BY 1",
}
PER_PERSON = f"""
    SELECT n, count(*), sum({PLACED.replace("value", "most")}) FROM (
        SELECT person, count(*) AS n, max(value) AS most FROM {{rows}} WHERE person IS NOT NULL GROUP BY 1
    ) WHERE n <= {MOST} GROUP BY 1
"""  # noqa: S608 - constants of this file
PERSON_QUERIES = {"SQL by hand, one row a person": PER_PERSON}
ON_SPARK = f"""
    SELECT grp, sum(n) AS n, sum(total) AS total, sum(total) / sum(n) AS mean FROM (
        SELECT grp, least(n, {ROWS_A_GROUP}) AS n,
            CASE WHEN n > {ROWS_A_GROUP} THEN floor(total * {ROWS_A_GROUP} / n) ELSE total END AS total
        FROM (
            SELECT *, row_number() OVER (
                PARTITION BY person
                ORDER BY substr(md5(concat('6:secretw', person, ';w', grp, ';')), 1, 12), grp) AS place
            FROM (
                SELECT person, grp, count(*) AS n, sum(CAST({PLACED} AS DECIMAL(28, 0))) AS total
                FROM measured WHERE person IS NOT NULL GROUP BY 1, 2)
        ) WHERE place <= {KEPT}
    ) GROUP BY 1
"""  # noqa: S608 - constants of this file

Figures = Mapping[str, float]


def run(*, smoke: bool) -> Path:
    """Measure and write the result, after each part anew: a run that is cut off leaves what it has measured."""
    big, small, pairs, runs = (30_000, 30_000, 2, 3) if smoke else (10_000_000, 1_000_000, PAIRS, RUNS)
    measured: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        large, little = Path(folder) / "large.parquet", Path(folder) / "little.parquet"
        invent(large, big)
        invent(little, small)
        for name, part in _parts(large, little, pairs, runs, smoke=smoke).items():
            measured[name.format(big=big, small=small)] = part()
            written = write("tables", measured, smoke=smoke)
    return written


def _parts(
    large: Path, little: Path, pairs: int, runs: int, *, smoke: bool
) -> dict[str, Callable[[], dict[str, object]]]:
    """What is measured, in order: the quick and telling parts first."""
    by_hand = {name: partial(_child, "by hand", large, name) for name in QUERIES}
    of_persons = {name: partial(_child, "by hand", large, name) for name in PERSON_QUERIES}

    def beside_packages() -> dict[str, object]:
        absent: dict[str, str] = {}
        packages = {} if smoke else _packages(little, absent)
        return _interleaved(lambda: _child("ours", little, GROUPED), packages, pairs) | {"absent": absent}

    parts: dict[str, Callable[[], dict[str, object]]] = {
        "{big} rows, beside SQL by hand": lambda: _interleaved(lambda: _child("ours", large, GROUPED), by_hand, pairs),
        "{big} rows, one row a person, beside SQL by hand": lambda: _interleaved(
            lambda: _child("ours", large, OF_PERSONS), of_persons, pairs
        ),
        "error at epsilon = 1": lambda: accuracy(runs),
        "{small} rows, beside other packages": beside_packages,
    }
    if not smoke:
        for asked in (GROUPED, OF_PERSONS):
            parts[f"{{small}} rows on PostgreSQL and Spark (local[2]) beside DuckDB, {asked}"] = partial(
                _child, "engines", little, asked, str(pairs)
            )
        parts["{small} rows on Spark, local[2]"] = lambda: _child("spark", little, str(pairs))
    return parts


def invent(path: Path, rows: int) -> None:
    """Fictional rows: some persons have many, some groups are common; 22 rows a person on average."""
    chance = np.random.default_rng(0)  # makes fictional rows, never noise
    person = (rows * 0.046 * chance.random(rows) ** 1.6).astype(np.int64)
    weights = np.cumsum(1 / np.arange(1, GROUPS + 1))
    group = np.minimum(np.searchsorted(weights / weights[-1], chance.random(rows)), GROUPS - 1).astype(np.int64)
    pq.write_table(pa.table({"person": person, "grp": group, "value": chance.gamma(2, 15, rows)}), path)


def _interleaved(
    ours: Callable[[], Figures], peers: Mapping[str, Callable[[], Figures]], pairs: int
) -> dict[str, object]:
    """Run ours and each peer alternately, after one warm-up each; ratios are peer / ours, as everywhere."""
    load = os.getloadavg()[0]
    for job in (ours, *peers.values()):
        job()
    own: list[Figures] = []
    others: dict[str, list[Figures]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(ours())
        for name, peer in peers.items():
            others[name].append(peer())

    def middle(runs: list[Figures]) -> dict[str, float]:
        return {figure: statistics.median(run[figure] for run in runs) for figure in FIGURES}

    def ratios(runs: list[Figures], figure: str) -> dict[str, float]:
        return ratio([theirs[figure] / mine[figure] for mine, theirs in zip(own, runs, strict=True)])

    return {
        "pairs": pairs,
        "load_before": load,
        **{f"ours_{figure}": value for figure, value in middle(own).items()},
        "peers": {
            name: middle(runs)
            | {
                "ratio": ratios(runs, "seconds"),
                "ratio_of_cpu": ratios(runs, "cpu_seconds"),
                "ratio_of_memory": ratios(runs, "peak_mb"),
            }
            for name, runs in others.items()
        },
    }


def _packages(path: Path, absent: dict[str, str]) -> dict[str, Callable[[], Figures]]:
    """A run of each package that can be installed here; why the others cannot goes to ``absent``."""
    found: dict[str, Callable[[], Figures]] = {}
    for name, peer in PEERS.items():
        python = built(peer)
        if isinstance(python, str):
            absent[name] = python
        else:
            found[name] = partial(peer.seconds, python, path)
    return found


def accuracy(runs: int) -> dict[str, object]:
    """The root mean squared error against the clipped values: 10,000 of lognormal(3, 1), bounds [0, 200].

    A tenth of the runs draw from each of ten tables, so that no single one decides; the rows are read once for each.
    """
    cases = {
        (relation, measure): np.concatenate(
            [_errors(seed, relation, measure, max(1, runs // TABLES)) for seed in range(TABLES)]
        )
        for relation, measure in (
            ("replace", "mean"),
            ("replace", "variance"),
            ("replace", "median"),
            ("add/remove", "mean"),
            ("add/remove", "variance"),
            ("add/remove", "median"),
        )
    }
    found: dict[str, object] = {"pairs": max(runs, 2), "peers": {}, "runs": runs, "tables": TABLES}
    for (relation, measure), errors in cases.items():
        squares = errors**2
        error = float(np.sqrt(squares.mean()))
        found[f"{measure}, {relation}"] = {
            "rmse": error,
            "standard_error": float(squares.std() / np.sqrt(squares.size) / (2 * error)),
        }
    return found


def _errors(seed: int, relation: str, measure: str, runs: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """What the mechanism that a vault would use gets wrong on one invented table."""
    import sfumato as sf
    from sfumato.core.budget import Budget
    from sfumato.engines.sources import Source
    from sfumato.noise import SystemWords
    from sfumato.tables.estimators import Reader
    from sfumato.tables.execution import Beside, exact_numbers
    from sfumato.tables.queries.quantiles import Quantiles

    values = np.random.default_rng(seed).lognormal(3, 1, 10_000)  # makes fictional rows, never noise
    held, rows = np.clip(values, 0, 200), pa.table({"value": values})
    means: dict[str, Any] = {"mean": np.mean, "variance": np.var, "median": np.median}
    truth = float(means[measure](held))
    vault = sf.Vault(unit=sf.record(relation=relation), budget=sf.Budget(epsilon=1), name="accuracy")
    number = held.size if relation == "replace" else None
    table = vault.table(rows, name="values", version="1", bounds={"value": (0, 200)}, n_units=number)
    query: Any = getattr(table, measure)("value").query
    mechanism = query.mechanism(query.sensitivity(vault.unit, None), vault.unit, Budget(epsilon=1))
    exact = exact_numbers(query, Beside(own=Source(rows)), unit=vault.unit, limit=None, secret="")
    words = SystemWords()

    def told() -> float:
        numbers, _ = mechanism.draw(exact, words)
        if isinstance(query, Quantiles):
            return 200 * numbers[0] / query.lattice.steps
        reader = Reader(
            blocks=query.blocks,
            cells=1,
            number=query.number,
            identifier="draw",
            law=mechanism.law,
            values=numbers,
            labels={},
            sources=(),
        )
        return float(query.measures[0].estimate(reader).values[0])

    return np.array([told() - truth for _ in range(runs)])


GROUPED, OF_PERSONS = "by group", "one row a person"


def _question(data: object, asked: str) -> Callable[[], object]:
    """Ours: a question of this benchmark, asked anew each time."""
    import sfumato as sf

    vault = sf.Vault(unit=sf.user("person", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="benchmark")
    table = vault.table(
        data,
        name="rows",
        version="1",
        limit=sf.Limit(groups=KEPT, rows_per_group=ROWS_A_GROUP),
        bounds={"value": (0, 100)},
        keys={"grp": list(range(GROUPS))},
    )
    if asked == GROUPED:
        question = table.group_by("grp").agg(n=sf.count(), total=sf.sum("value"), mean=sf.mean("value"))
    else:
        persons = table.per_person(n=sf.count(), most=sf.max("value"))
        question = persons.group_by("n").agg(persons=sf.count(), most=sf.mean("most"))
    return lambda: question.release(epsilon=1, fresh=True)


def _child(job: str, path: Path, *rest: str) -> dict[str, Any]:
    """Run one job of this file in a process of its own."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.tables", job, path, *rest],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if answer.returncode != 0:
        raise SystemExit(f"the job {job!r} failed:\n{answer.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def _measured(job: Callable[[], object]) -> Figures:
    import resource

    start, spent = time.perf_counter(), time.process_time()
    job()
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _ours(path: str, asked: str) -> Figures:
    # What is imported when it is first used is loaded before the clock starts, as it is for the others.
    _question(pa.table({"person": [1], "grp": [1], "value": [1.0]}), asked)()
    return _measured(_question(path, asked))


def _by_hand(path: str, name: str) -> Figures:
    import duckdb

    with duckdb.connect() as engine:
        query = (QUERIES | PERSON_QUERIES)[name].format(rows=f"read_parquet('{path}')")
        return _measured(lambda: engine.execute(query).fetchall())


def _on_spark(path: str, pairs: str) -> dict[str, object]:
    with _spark() as spark:
        rows = spark.read.parquet(path)
        rows.createOrReplaceTempView("measured")
        return compare(
            _question(rows, GROUPED), {"Spark SQL by hand": lambda: spark.sql(ON_SPARK).collect()}, pairs=int(pairs)
        )


def _on_engines(path: str, asked: str, pairs: str) -> dict[str, object]:
    """The same question on DuckDB, which the others are held to, on a PostgreSQL of its own and on Spark."""
    import psycopg

    from sfumato.engines.sources import postgres
    from tests.servers import private_postgres

    rows = pq.read_table(path)
    with private_postgres() as server, _spark() as spark:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE measured (person bigint, grp bigint, value double precision)")
            with connection.cursor().copy("COPY measured FROM STDIN") as copy:
                for batch in rows.to_batches(max_chunksize=100_000):
                    listed = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                    copy.write("".join(f"{person}\t{grp}\t{value}\n" for person, grp, value in listed))
            connection.execute("VACUUM ANALYZE measured")
        others = {
            "PostgreSQL": _question(postgres(server.url, table="measured"), asked),
            "Spark": _question(spark.read.parquet(path), asked),
        }
        return compare(_question(path, asked), others, pairs=int(pairs))


@contextmanager
def _spark() -> Iterator[Any]:
    """A Spark session of two threads that talks to nobody."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").appName("sfumato benchmark")
        for name, value in {
            "spark.driver.memory": "4g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.local.dir": folder,
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


JOBS: dict[str, Callable[..., Mapping[str, object]]] = {
    "ours": _ours,
    "by hand": _by_hand,
    "engines": _on_engines,
    "spark": _on_spark,
}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
