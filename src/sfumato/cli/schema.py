"""Schemas: the public facts about a table, in a file."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput

__all__ = ["schema"]

schema = typer.Typer(
    help="Declare the public facts about a table in a file.\n\nExample: $ sfumato schema draft visits.parquet",
    no_args_is_help=True,
)


@schema.command("draft")
def draft(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A Parquet or CSV file, a DuckDB file with --table, or postgresql://…?table=…"
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write; never overwritten.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table, if FILE is a database.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a schema to fill in: TOML, from the names and types of the columns alone.

    No row is read. Without -o the draft is printed.

    Example: $ sfumato schema draft visits.parquet -o visits.toml
    """
    from sfumato.engines import sources
    from sfumato.tables.schema import Schema
    from sfumato.tables.schema_draft import draft as drafted

    if out is not None and (out.exists() or out.is_symlink()):
        raise InvalidInput(f"{out} is there already and was not overwritten. Name another file with -o.")
    source: object = data
    if table is not None:
        make = sources.postgres if "://" in data else sources.duckdb
        source = make(data, table=table)
    text = drafted(source)
    if out is not None:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    if as_json:
        columns = {name: kind.value for name, kind in Schema.from_toml(text).types.items()}
        say_json({"written": out and str(out), "columns": columns, "schema": None if out else text})
    elif out is None:
        say(text)
    else:
        say(f"written: {out}\nFill in what is marked with #, then give it as schema=… or --schema {out}.")
