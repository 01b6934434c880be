"""What tells the units apart is the stored column of that name: one that a step computed or renamed is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import sources
from sfumato.engines.sources import Source
from sfumato.errors import Refused

VISITS = pa.table({"id": [7] * 5 + [8], "visit": list(range(6)), "sick": [1] * 6})
WORDS = "the column 'id', which identifies the protected units, .*Nothing was read and nothing was spent.*derived=True"


def sick(data: Any, unit: Any, *, derived: bool = False) -> tuple[int, ...]:
    """How many rows of the sick are counted with one row for each person; noise is 0 at this ε."""
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="clinic")
    limit = sf.Limit(groups=1, rows_per_group=1)
    table = vault.table(data, name="visits", version="1", limit=limit, derived=derived)
    try:
        return table.where(sf.col("sick") == 1).count().release(epsilon=10_000).values
    except Refused:
        assert vault.spent == sf.Budget(epsilon=0)
        raise


def in_ibis(_: Path) -> Any:
    engine = ibis.duckdb.connect()
    return engine.create_table("visits", VISITS)


def in_polars(folder: Path) -> Any:
    pq.write_table(VISITS, folder / "visits.parquet")
    return pl.scan_parquet(folder / "visits.parquet")


BY_IBIS: dict[str, Callable[[Any], Any]] = {
    "another column": lambda t: t.mutate(id=t.visit),
    "computed": lambda t: t.mutate(id=(t.visit > 2).ifelse(t.id, t.visit)),
    "renamed": lambda t: t.select(id=t.visit, sick=t.sick),
    "renamed below": lambda t: t.select(id=t.visit, sick=t.sick).filter(lambda u: u.id > -1).mutate(more=1),
    "swapped": lambda t: t.rename(id="visit", visit="id"),
    "cast": lambda t: t.mutate(id=t.id.try_cast("string")),
    "constant": lambda t: t.mutate(id=1),
    "filled": lambda t: t.fill_null({"id": 3}),
    "all filled": lambda t: t.fill_null(3),
}
BY_POLARS: dict[str, Callable[[Any], Any]] = {
    "another column": lambda t: t.with_columns(id=pl.col("visit")),
    "computed": lambda t: t.with_columns(id=pl.col("id") * 1000 + pl.col("visit")),
    "renamed": lambda t: t.select("sick", id=pl.col("visit")),
    "renamed below": lambda t: t.select("sick", id="visit").filter(pl.col("id") > -1).with_columns(more=1),
    "swapped": lambda t: t.rename({"id": "visit", "visit": "id"}),
    "cast": lambda t: t.cast({"id": pl.String}, strict=False),
    "constant": lambda t: t.with_columns(id=pl.lit(1)),
}
MADE = [(in_ibis, step, name) for name, step in BY_IBIS.items()] + [
    (in_polars, step, name) for name, step in BY_POLARS.items()
]


@pytest.mark.parametrize(("stored", "step", "name"), MADE, ids=[f"{made.__name__} {name}" for made, _, name in MADE])
def test_a_person_column_that_a_step_made_is_refused(stored: Any, step: Any, name: str, tmp_path: Path) -> None:
    """The leak: a person with five rows became five persons, and a limit of one row held for none of them."""
    data = step(stored(tmp_path))
    for unit in (sf.user("id", relation="add/remove"), sf.family(2, "id", relation="replace")):
        with pytest.raises(Refused, match=WORDS):
            sick(data, unit)
    assert sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="rows").table(
        data, name="visits", version="1"
    )


def test_a_person_column_by_a_step_that_may_fail_on_a_row_is_refused(tmp_path: Path) -> None:
    """Sums may overflow and strict casts may fail: which of the two refusals is told does not matter."""
    table, lazy = in_ibis(tmp_path), in_polars(tmp_path)
    for data in (
        table.mutate(id=table.id * 1000 + table.visit),
        table.mutate(id=table.id.cast("string")),
        lazy.cast({"id": pl.String}),
    ):
        with pytest.raises(Refused, match=r"cannot be shown to be row-wise.*Nothing was read and nothing was spent"):
            sick(data, sf.user("id", relation="add/remove"))


def test_the_stewards_word_is_taken_for_a_person_column(tmp_path: Path) -> None:
    unit = sf.user("id", relation="add/remove")
    assert sick(BY_IBIS["another column"](in_ibis(tmp_path)), unit, derived=True) == (6,)
    assert sick(BY_POLARS["another column"](in_polars(tmp_path)), unit, derived=True) == (6,)


def test_a_person_column_may_pass_through_steps(tmp_path: Path) -> None:
    unit = sf.user("id", relation="add/remove")
    table = in_ibis(tmp_path)
    table = table.rename(who="id").mutate(more=lambda t: t.visit >= 0).rename(id="who").filter(lambda t: t.more)
    assert sick(table.drop("visit").fill_null({"sick": 0}).drop_null("id"), unit) == (2,)
    lazy = in_polars(tmp_path).rename({"id": "who"}).with_columns(more=pl.col("visit") + 1).rename({"who": "id"})
    assert sick(lazy.filter(pl.col("more") > 0).select("id", "sick"), unit) == (2,)


def test_the_ends_of_edges_are_stored_columns() -> None:
    """With ends of its own for each edge, a node has degree 1 however many edges it has."""
    edges = ibis.duckdb.connect().create_table("met", pa.table({"source": [1, 1, 1], "target": [2, 3, 4]}))
    units = (sf.node(max_degree=1, relation="add/remove"), sf.edge(relation="add/remove"))
    for unit in units:
        vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10), name="contacts")
        for name in ("source", "target"):
            made = edges.mutate(**{name: (edges.source > 1).ifelse(edges.source, edges.target)})
            with pytest.raises(Refused, match=f"the column '{name}', which identifies the protected units"):
                vault.graph(made, name=f"by {name}", version="1", nodes=[1, 2, 3, 4])
        vault.graph(edges.filter(edges.source > 0), name="met", version="1", nodes=[1, 2, 3, 4])


def test_a_folder_named_like_the_person_column_does_not_name_persons_in_polars(tmp_path: Path) -> None:
    (tmp_path / "id=1").mkdir()
    pq.write_table(VISITS.drop_columns("id"), tmp_path / "id=1" / "visits.parquet")
    with pytest.raises(Refused, match=WORDS):
        Source(pl.scan_parquet(tmp_path, hive_partitioning=True), unit=("id",))
    pq.write_table(VISITS, tmp_path / "id=1" / "visits.parquet")
    assert Source(pl.scan_parquet(tmp_path / "id=1" / "visits.parquet"), unit=("id",)).columns()


@pytest.mark.long
def test_a_person_column_that_spark_made_is_refused(spark: Any, tmp_path: Path) -> None:
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    stored = spark.read.parquet(str(tmp_path / "visits.parquet"))
    stored.createOrReplaceTempView("units_visits")
    spark.sql("CREATE OR REPLACE TEMP VIEW units_kept AS SELECT id, sick FROM units_visits WHERE visit >= 0")
    spark.sql("CREATE OR REPLACE TEMP VIEW units_made AS SELECT visit AS id, sick FROM units_visits")
    session = ibis.pyspark.connect(spark)
    unit = sf.user("id", relation="add/remove")
    try:
        for data in (
            stored,
            stored.withColumnRenamed("id", "who").filter("visit >= 0").selectExpr("who AS id", "sick"),
            sources.spark(spark, table="units_kept"),
            session.table("units_kept"),
        ):
            assert sick(data, unit) == (2,)
        for data in (
            stored.selectExpr("visit AS id", "sick"),
            stored.selectExpr("CASE WHEN visit > 2 THEN id ELSE visit END AS id", "sick"),
            stored.selectExpr("TRY_CAST(id AS string) AS id", "sick"),
            stored.selectExpr("visit AS id", "sick").filter("id >= 0").select("sick", "id"),
            sources.spark(spark, table="units_made"),
            session.table("units_made"),
        ):
            with pytest.raises(Refused, match=WORDS):
                sick(data, unit)
    finally:
        for name in ("visits", "kept", "made"):
            spark.catalog.dropTempView(f"units_{name}")
