"""Where rows are, from the options of a command."""

from typing import Annotated

import typer

__all__ = ["Data", "Within", "source_of"]

Data = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A Parquet or CSV file, a DuckDB file with --table, or postgresql://…?table=…"),
]
Within = Annotated[str | None, typer.Option("--table", help="The table, if FILE is a database.")]


def source_of(data: str, table: str | None) -> object:
    """What the library takes as data; nothing is opened."""
    from sfumato.engines import sources

    if table is None:
        return data
    return sources.postgres(data, table=table) if "://" in data else sources.duckdb(data, table=table)
