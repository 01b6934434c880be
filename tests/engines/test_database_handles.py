"""Handles of database tables that are wrong."""

from typing import Any

import pytest

from sfumato.engines import sources
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError, Unsupported


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: sources.duckdb("x.duckdb"), NotDeclared, r"duckdb\(…, table='visits'\)"),
        (lambda: sources.duckdb("x.duckdb", table=""), InvalidInput, "one to"),
        (lambda: sources.duckdb("x.duckdb", table="a.b.c.d"), InvalidInput, "one to"),
        (lambda: sources.duckdb(7, table="x"), InvalidInput, "a int is not a DuckDB database"),
        (lambda: sources.postgres("mysql://x/y", table="t"), InvalidInput, "starts with postgresql://"),
        (lambda: sources.postgres("postgresql://h/d"), NotDeclared, "which table"),
        (lambda: sources.postgres("postgresql://h/d", table="a.b.c"), InvalidInput, "one to 2 parts"),
        (lambda: sources.postgres("postgresql://h/d?nonsense=1", table="t"), InvalidInput, "cannot be read"),
        (lambda: sources.spark(7, table="x"), InvalidInput, "neither a Spark session"),
        (lambda: Source("mysql://h/d?table=t"), Unsupported, "a URL of this kind is not read"),
        (lambda: Source("https://x.example/visits.parquet"), Unsupported, "a URL of this kind is not read"),
        (lambda: Source("duckdb:///x.duckdb?table=t&mode=rw"), InvalidInput, "table=… and nothing else"),
    ],
)
def test_handles_that_are_wrong(make: Any, error: type[SfumatoError], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.long
def test_spark_frames_that_are_wrong(spark: Any) -> None:
    frame = spark.range(1)
    with pytest.raises(InvalidInput, match="no table of a name"):
        sources.spark(frame, table="x")
    with pytest.raises(NotDeclared, match="which table"):
        sources.spark(spark)
    with pytest.raises(Unsupported, match="has no end"):
        sources.spark(spark.readStream.format("rate").load())
