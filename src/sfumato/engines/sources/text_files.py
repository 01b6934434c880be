"""Files of text: CSV and JSON lines, whose types are declared; read by the embedded engine, cell by cell."""

from __future__ import annotations

import csv
import gzip
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import Type
from sfumato.engines.sources.cells import PLAIN, CellFormat, could_not_be_read, read_as, unreadable_name
from sfumato.engines.sources.embedded_files import DeclaredFiles
from sfumato.engines.sources.origin import Settle
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["CSV", "JSON_LINES", "TextFiles", "columns_read", "header_of"]

CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
LONGEST_LINE, MOST_LINES = 2**20, 100  # a name in the header may hold line breaks
# How a cell is written. What does not match is missing: it may not stop the engine, for that would reveal one row,
# and nothing is guessed, for then one cell could change what others mean.
CELLS = {
    Type.WHOLE: "[+-]?[0-9]{1,19}",
    Type.NUMBER: "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,5})?|[nN][aA][nN]|[+-]?[iI][nN][fF]",
    Type.TRUTH: "[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[01]",
    Type.DATE: "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    Type.TIME: "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?",
}


def columns_read(
    types: Mapping[str, Type], cells: Mapping[str, CellFormat] | None, cell: Mapping[str, str]
) -> list[str]:
    """SQL of each column, read from its cell of text, and of the truth that says where it could not be."""
    forms = cells or {}
    made = [
        f"{read_as(kind, cell[name], forms.get(name, PLAIN), usual=CELLS)} AS {DUCKDB.quoted(name)}"
        for name, kind in types.items()
    ]
    for name, kind in types.items():
        if cells is not None and kind is not Type.TEXT:
            asked = could_not_be_read(kind, cell[name], forms.get(name, PLAIN), usual=CELLS)
            made.append(f"{asked} AS {DUCKDB.quoted(unreadable_name(name))}")
    return made


@dataclass(slots=True, kw_only=True, eq=False)
class TextFiles(DeclaredFiles):
    """CSV files in UTF-8 with a header, or files with one JSON object on each line.

    A cell that is not written as declared is missing. An empty cell is missing; in a column of text, a quoted empty
    cell is an empty text. A line that is no line of such a file stops the engine.
    """

    json: bool

    @property
    def advice(self) -> str:
        """What to look at."""
        if self.json:
            return "Check that it is in UTF-8, with one JSON object on each line."
        return "Check that it is a CSV file in UTF-8 whose first line names the columns."

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """What was declared; the header of each CSV file must name it."""
        self._headers()
        return self.declared()

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows, read as text and turned into what was declared."""
        settle(self.held(engine))
        name = f"text_{secrets.token_hex(8)}"
        parts = [self._json(self.files.checked())] if self.json else self._csv()
        engine.raw_sql(f"CREATE TEMP VIEW {name} AS {' UNION ALL '.join(parts)}")
        return engine.table(name)

    def _headers(self) -> dict[tuple[str, tuple[str, ...], bool], list[Path]]:
        """The files by their delimiter, the columns of their header, and whether they are compressed."""
        found: dict[tuple[str, tuple[str, ...], bool], list[Path]] = {}
        for file in self.files.checked():
            delimiter, names = ("", []) if self.json else self._header(file)
            found.setdefault((delimiter, tuple(names), file.name.lower().endswith(".gz")), []).append(file)
        return found

    def _header(self, file: Path) -> tuple[str, list[str]]:
        """The delimiter and the columns of the header; what else stands in it may be data, and is not quoted."""
        lacking: set[str] = set(self.types)
        for delimiter in ",;\t|":
            names = header_of(file, delimiter)
            missing = {name for name in self.types if names.count(name) != 1}
            if not missing:
                return delimiter, names
            lacking = min(lacking, missing, key=len)
        raise InvalidInput(
            f"the first line of {file.name!r} does not name the declared columns, each once: not "
            f"{', '.join(sorted(lacking))}; nothing was spent. Declare the columns by the names in the header."
        )

    def _csv(self) -> list[str]:
        """One query for all files of one header."""
        found = []
        for (delimiter, names, packed), files in self._headers().items():
            cells = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
            columns = columns_read(self.types, self.cells, {name: f"c{names.index(name)}" for name in self.types})
            found.append(
                f"SELECT {', '.join(columns)} FROM read_csv({_listed(files)}, columns={{{cells}}}, "  # noqa: S608
                f"delim='{delimiter}', auto_detect=false, header=true, quote='\"', escape='\"', nullstr='', "
                "allow_quoted_nulls=false, null_padding=false, ignore_errors=false, strict_mode=true, "
                f"encoding='utf-8', compression='{'gzip' if packed else 'none'}', filename=false, "
                "hive_partitioning=false, union_by_name=false)"
            )
        return found

    def _json(self, files: Sequence[Path]) -> str:
        """Each value is read as the text that it is written with."""
        kinds = ", ".join(f"{_constant(name)}: 'VARCHAR'" for name in self.types)
        columns = columns_read(self.types, self.cells, {name: DUCKDB.quoted(name) for name in self.types})
        return (
            f"SELECT {', '.join(columns)} FROM read_json({_listed(files)}, columns={{{kinds}}}, "  # noqa: S608
            "format='newline_delimited', auto_detect=false, records=true, ignore_errors=false, "
            "compression='auto_detect', filename=false, hive_partitioning=false, union_by_name=false)"
        )


def header_of(path: Path, delimiter: str = ",") -> list[str]:
    """The cells of the first line of a CSV file, and nothing after it; empty where it has none that can be read."""
    with _text(path) as file:
        lines = (file.readline(LONGEST_LINE) for _ in range(MOST_LINES))
        with suppress(csv.Error, StopIteration, OSError, EOFError):
            return next(csv.reader(takewhile(bool, lines), delimiter=delimiter, strict=True))
    return []


def _text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="")
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _listed(files: Sequence[Path]) -> str:
    return f"[{', '.join(_constant(str(file)) for file in files)}]"


def _constant(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
