"""Schemas: the public facts about a table, in a file."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput

__all__ = ["schema"]

schema = typer.Typer(
    help="Declare the public facts about a table.\n\nExample: $ sfumato schema draft sfumato-demo/visits.parquet",
    no_args_is_help=True,
)


@schema.command("draft")
def draft(
    data: Data,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write; never overwritten.")
    ] = None,
    table: Within = None,
    as_json: AsJson = False,
) -> None:
    """Write a schema to fill in: TOML, from the names and types of the columns alone.

    No row is read. Without -o the draft is printed.

    Example: $ sfumato schema draft sfumato-demo/visits.parquet -o visits.toml
    """
    from sfumato.tables.schema import Schema
    from sfumato.tables.schema_draft import draft as drafted

    if out is not None and (out.exists() or out.is_symlink()):
        raise InvalidInput(f"{out} already exists and was not overwritten. Name another file with -o.")
    text = drafted(source_of(data, table))
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
