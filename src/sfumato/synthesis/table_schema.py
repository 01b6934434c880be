"""The schema of a file of synthetic rows, as JSON: its columns, their values and bins, and the rules that hold.

The form is that of a data resource with a table schema, as Frictionless tools read it, with a few entries beside it.
"""

from datetime import date
from typing import TYPE_CHECKING

from sfumato.core.documents import encode
from sfumato.core.spreadsheet import harmless_cell
from sfumato.synthesis.columns import BinnedColumn, SyntheticColumn
from sfumato.synthesis.declared import Cell, DeclaredRows, bins_of, kind_of

if TYPE_CHECKING:
    from sfumato.synthesis.result import SyntheticTable

__all__ = ["KIND", "MEDIA", "VERSION", "field_of", "name_in", "table_schema"]

KIND, VERSION = "synthetic_rows", 1
TYPES = {"text": "string", "whole": "integer", "truth": "boolean", "date": "date", "number": "number"}
MEDIA = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}


def table_schema(
    made: "SyntheticTable", declared: DeclaredRows, *, path: str, form: str, size: int, digest: str
) -> dict[str, object]:
    """The schema of the rows in a file of this form, size in bytes and SHA-256.

    Guarantee: a function of the release and of what was declared. Texts are as they stand in the file: in CSV with an
    apostrophe where a spreadsheet would take them for a formula.
    """
    said, quality = made.release.statement, made.quality
    return {
        "kind": KIND,
        "version": VERSION,
        "dataset": {"name": said.dataset.name, "version": said.dataset.edition},
        "release": said.identifier,
        "releases_before": [each.statement.identifier for each in made.releases[:-1]],
        "guarantee": encode(made.guarantee),
        "unit": encode(said.unit),
        "counted": {"condition": declared.condition or None, "limit": made.release.limit_words() or None},
        "path": path,
        "format": form,
        "mediatype": MEDIA[form],
        "encoding": "utf-8",
        "bytes": size,
        "hash": f"sha256:{digest}",
        "rows": {"number": made.rows.num_rows, "declared": quality.declared_rows, "noisy": quality.estimated_rows},
        "schema": {
            "fields": [field_of(column, form) for column in declared.columns],
            "missingValues": [""],
        },
        "rules": {
            "never": [
                {name_in(name, form): [_cell(value, form) for value in values] for name, values in rule}
                for rule in declared.never
            ],
            "at_least": [[name_in(name, form) for name in pair] for pair in declared.at_least],
        },
        "measured": [
            {"columns": list(each.columns), "cells": each.cells, "noise_standard_deviation": each.noise}
            for each in quality.marginals
        ],
    }


def field_of(column: SyntheticColumn, form: str) -> object:
    """The field of a column: its type, and its values or bins."""
    constraints: dict[str, object] = {"required": not column.missing}
    found: dict[str, object] = {"name": name_in(column.name, form), "type": TYPES[kind_of(column)]}
    if isinstance(column, BinnedColumn):
        bins = [[_cell(end, form) for end in ends] for ends in bins_of(column)]
        constraints |= {"minimum": bins[0][0], "maximum": bins[-1][1]}
        return found | {"constraints": constraints, "bins": [{"least": low, "most": high} for low, high in bins]}
    return found | {"constraints": constraints | {"enum": [_cell(value, form) for value in column.values]}}


def _cell(value: Cell | float, form: str) -> object:
    if isinstance(value, str):
        return name_in(value, form)
    return value.isoformat() if isinstance(value, date) else value


def name_in(text: str, form: str) -> str:
    """A text as it stands in a file of this form.

    >>> name_in("=1", "csv"), name_in("=1", "parquet")
    ("'=1", '=1')
    """
    return harmless_cell(text) if form == "csv" else text
