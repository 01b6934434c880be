"""The same rows on every engine, as sources."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.engines.sources import Source, postgres, spark

POSTGRES = {
    pa.string(): "text",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.int8(): "smallint",
    pa.uint32(): "bigint",
    pa.float32(): "real",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.decimal128(10, 2): "numeric(10, 2)",
    pa.decimal128(38, 10): "numeric(38, 10)",
}


def in_postgres(url: str, frame: pa.Table, name: str, zones: dict[str, str] | None = None) -> Source:
    """A table of its own on the server."""
    import psycopg

    columns = ", ".join(f'"{field.name}" {POSTGRES[field.type]}' for field in frame.schema)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" ({columns})')
        with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in frame.to_pylist():
                copy.write_row(tuple(row.values()))
    return Source(postgres(url, table=name), zones=zones)


def in_spark(session: Any, frame: pa.Table, name: str, zones: dict[str, str] | None = None) -> Source:
    """A view of the session; by way of a file, because rows from Python would pass through Python in every query."""
    path = Path(session.conf.get("spark.sql.warehouse.dir").removeprefix("file:")).parent / f"{name}.parquet"
    pq.write_table(frame, path)
    session.read.parquet(str(path)).createOrReplaceTempView(name)
    return Source(spark(session, table=name), zones=zones)


def on(
    engine: str,
    frame: pa.Table,
    name: str,
    *,
    url: str | None = None,
    session: Any = None,
    zones: dict[str, str] | None = None,
) -> Source:
    """The rows on the engine of this name."""
    match engine:
        case "PostgreSQL":
            assert url is not None
            return in_postgres(url, frame, name, zones)
        case "Spark":
            return in_spark(session, frame, name, zones)
    return Source(frame, zones=zones)
