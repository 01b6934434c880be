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
    return Source(_in_postgres(url, frame, name), zones=zones)


def _in_postgres(url: str, frame: pa.Table, name: str) -> object:
    import psycopg

    columns = ", ".join(f'"{field.name}" {POSTGRES[field.type]}' for field in frame.schema)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" ({columns})')
        with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in frame.to_pylist():
                copy.write_row(tuple(row.values()))
    return postgres(url, table=name)


def in_spark(session: Any, frame: pa.Table, name: str, zones: dict[str, str] | None = None) -> Source:
    """A view of the session."""
    return Source(_in_spark(session, frame, name), zones=zones)


def _in_spark(session: Any, frame: pa.Table, name: str) -> object:
    """A view of the session; by way of a file, because rows from Python would pass through Python in every query."""
    path = Path(session.conf.get("spark.sql.warehouse.dir").removeprefix("file:")).parent / f"{name}.parquet"
    pq.write_table(frame, path)
    session.read.parquet(str(path)).createOrReplaceTempView(name)
    return spark(session, table=name)


def put(engine: str, frame: pa.Table, name: str, *, url: str | None = None, session: Any = None) -> object:
    """The rows on the engine of this name, as a vault takes them."""
    match engine:
        case "PostgreSQL":
            assert url is not None
            return _in_postgres(url, frame, name)
        case "Spark":
            return _in_spark(session, frame, name)
    return frame


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
    return Source(put(engine, frame, name, url=url, session=session), zones=zones)
