"""Other packages that answer a private group-by, each in an environment of its own, which is built on first use.

Each program reads the file named on its command line and prints the seconds of one answer: reading the file, bounding,
adding up and noise, without the start of Python, of Spark and of the package. Three groups a person, five rows a group,
values in [0, 100], keys public, ε = 1.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CACHE", "CLOCK", "PEERS", "Peer", "built"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sfumato-benchmarks"

CLOCK = """
import json, resource, sys, time, warnings
warnings.filterwarnings("ignore")
path = sys.argv[1]

def timed(job, found="groups", read=len):
    start, spent = time.perf_counter(), time.process_time()
    answer = job()
    print(json.dumps({
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        found: read(answer),
    }))
"""

SMARTNOISE = """
import pandas as pd
from snsql import Privacy, from_df

about = {"": {"": {"rows": {
    "row_privacy": False, "max_ids": 3, "censor_dims": False,
    "person": {"type": "int", "private_id": True},
    "grp": {"type": "int"},
    "value": {"type": "float", "lower": 0, "upper": 100},
}}}}
ASK = "SELECT grp, COUNT(*) AS n, SUM(value) AS total, AVG(value) AS mean FROM rows GROUP BY grp"

def job():
    reader = from_df(pd.read_parquet(path), privacy=Privacy(epsilon=1.0, delta=1e-6), metadata=about)
    return reader.execute(ASK)

timed(job)
"""

PIPELINE = """
import pandas as pd
import pipeline_dp as dp

def job():
    rows = list(pd.read_parquet(path).itertuples(index=False, name=None))
    accountant = dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    params = dp.AggregateParams(
        noise_kind=dp.NoiseKind.LAPLACE,
        metrics=[dp.Metrics.COUNT, dp.Metrics.SUM, dp.Metrics.MEAN],
        max_partitions_contributed=3, max_contributions_per_partition=5, min_value=0, max_value=100)
    parts = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2])
    answer = engine.aggregate(rows, params, parts, public_partitions=list(range(1000)))
    accountant.compute_budgets()
    return list(answer)

timed(job)
"""

TUMULT = """
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, PureDPBudget, QueryBuilder, Session)

spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.range(10).count()

def job():
    session = Session.from_dataframe(
        PureDPBudget(1), "rows", spark.read.parquet(path), protected_change=AddRowsWithID("person"))
    question = (QueryBuilder("rows").enforce(MaxGroupsPerID("grp", 3)).enforce(MaxRowsPerGroupPerID("grp", 5))
        .groupby(KeySet.from_dict({"grp": list(range(1000))})).count())
    return session.evaluate(question, PureDPBudget(1)).collect()

timed(job)
"""

OPENDP = """
import opendp.prelude as dp
import polars as pl
dp.enable_features("contrib")

def job():
    keys = pl.LazyFrame({"grp": list(range(1000))}, schema={"grp": pl.Int64})
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=15),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=(), max_length=20_000_000), dp.polars.Margin(by=["grp"], max_groups=1000)])
    value = pl.col("value").fill_nan(0.0).fill_null(0.0)
    asked = (context.query().group_by("grp")
        .agg(dp.len().alias("n"), value.dp.sum((0.0, 100.0)).alias("total")).with_keys(keys))
    answer = asked.release().collect()
    return answer.with_columns(mean=pl.col("total") / pl.col("n"))

timed(job)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A package, what is installed after it, and its program; ``needs`` is a command."""

    package: str
    also: tuple[str, ...] = ()
    program: str
    needs: str | None = None

    def seconds(self, python: Path, path: Path) -> dict[str, float]:
        """Run the program once in a process of its own; refuse an answer without groups."""
        environment = os.environ | {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        answer = subprocess.run(
            [python, "-c", CLOCK + self.program, path], capture_output=True, text=True, check=False, env=environment
        )
        if answer.returncode != 0:
            raise SystemExit(f"{self.package} failed:\n{answer.stderr[-2000:]}")
        figures: dict[str, float] = json.loads(answer.stdout.strip().splitlines()[-1])
        if figures["groups"] < 1000:
            raise SystemExit(f"{self.package} answered for {figures['groups']} groups")
        return figures


PEERS = {
    "SmartNoise SQL 1.0.10": Peer(
        package="smartnoise-sql==1.0.10", also=("setuptools<81", "pyarrow"), program=SMARTNOISE
    ),
    "PipelineDP 0.3.1, local": Peer(package="pipeline-dp==0.3.1", also=("pyarrow", "pandas"), program=PIPELINE),
    "Tumult Analytics 0.21, count only": Peer(package="tmlt.analytics==0.21.0", program=TUMULT, needs="java"),
    "OpenDP 0.16 Polars, no truncation": Peer(package="opendp[polars]==0.16.0", program=OPENDP),
}


def built(peer: Peer) -> Path | str:
    """The interpreter of a peer's environment, or in words why there is none here."""
    if peer.needs is not None and shutil.which(peer.needs) is None:
        return f"not measured: there is no {peer.needs} here"
    folder = CACHE / peer.package
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        for package in (peer.package, *peer.also):
            tried = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", package], capture_output=True, text=True, check=False
            )
            if tried.returncode != 0:
                said = [line for line in tried.stderr.splitlines() if line.lower().startswith("error:")]
                why = said[-1] if said else "no reason given"
                return f"not measured: {package} cannot be installed on {platform.machine()} here ({why})"
        (folder / "complete").touch()
    return python
