"""Files by their endings: Parquet and Arrow files, which state their types, and others, whose types are declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engines.expressions import Type
from sfumato.engines.sources.arrow_files import ARROW, ArrowFiles
from sfumato.engines.sources.cells import CellFormat
from sfumato.engines.sources.columns import projected
from sfumato.engines.sources.copied_files import COPIED, CopiedFile, named_in
from sfumato.engines.sources.embedded_files import EmbeddedFiles
from sfumato.engines.sources.file_lists import FileList
from sfumato.engines.sources.origin import Origin, Settle
from sfumato.engines.sources.text_files import CSV, JSON_LINES, TextFiles, header_of
from sfumato.errors import InvalidInput, NotDeclared, Unsupported

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["named_columns", "origin_of_paths"]

PARQUET = (".parquet", ".pq")
KINDS = {"Parquet": PARQUET, "CSV": CSV, "JSON lines": JSON_LINES, "Arrow": ARROW, **COPIED}
WAYS_OUT = {
    ".json": "Write one object to a line, and call the file .jsonl.",
    ".zip": "Unpack it first; .csv.gz is read as it is.",
    ".txt": "If it is a CSV file, call it .csv.",
    ".xls": "Save it as .xlsx.",
    ".sas7bcat": "That file holds labels; give the .sas7bdat file.",
    ".rds": "Write it from R as Parquet: arrow::write_parquet.",
    ".rdata": "Write the frame from R as Parquet: arrow::write_parquet.",
    ".db": "Give a table of a database: sfumato.engines.sources.duckdb or postgres.",
    ".duckdb": "Name its table: sfumato.engines.sources.duckdb(path, table=…).",
}


def origin_of_paths(
    paths: Sequence[str | Path],
    declared: Mapping[str, Type] | None,
    cells: Mapping[str, CellFormat] | None = None,
) -> Origin:
    """One or several files of one kind, folders of Parquet files or patterns; most are not opened yet.

    Public: the kind of file, which its name says.
    """
    places = tuple(Path(path) for path in paths)
    kinds = {_kind(place) for place in places}
    if len(kinds) > 1:
        raise Unsupported(
            f"the list of files has several kinds of them ({', '.join(sorted(kinds))}); nothing was done. Give files "
            "of one kind."
        )
    (kind,) = kinds
    files = FileList(places=places, endings=KINDS[kind], what=kind)
    if kind == "Parquet":
        return ParquetFiles(files=files)
    if kind == "Arrow":
        return ArrowFiles(files=files)
    if declared is None:
        raise NotDeclared(
            f"{places[0].name!r} is a {kind} file, which does not say what its columns hold, and guessing that from "
            "the rows would reveal something about them. Nothing was read. Declare the types in a schema; sfumato "
            "schema draft FILE writes one to fill in."
        )
    if kind in COPIED:
        return CopiedFile(files=files, kind=kind, types=dict(declared), cells=cells)
    return TextFiles(files=files, json=kind == "JSON lines", types=dict(declared), cells=cells)


def named_columns(place: Path) -> list[str] | None:
    """The names of the columns of a file that does not state their types; None of one that does, or is none.

    Read from its first line or its head; lines of JSON have neither, and are refused.
    """
    name = place.name.lower()
    kind = next((kind for kind, endings in KINDS.items() if name.endswith(endings)), "Parquet")
    if kind in ("Parquet", "Arrow"):
        return None
    if kind == "JSON lines":
        raise NotDeclared(
            f"{place.name!r} names its columns in its rows alone, which are not read; nothing was done. Write the "
            "schema by hand: [columns.NAME] with type = … for each."
        )
    if not place.is_file():
        raise InvalidInput(f"there is no file {place.name!r} at the place given; nothing was done.")
    if kind in COPIED:
        return named_in(place, kind)
    delimiter = max(",;\t|", key=lambda sign: len(header_of(place, sign)))
    return header_of(place, delimiter)


def _kind(place: Path) -> str:
    name = place.name.lower()
    found = next((kind for kind, endings in KINDS.items() if name.endswith(endings)), None)
    if found is None and place.is_dir():
        return "Parquet"
    if found is None:
        way = next((way for ending, way in WAYS_OUT.items() if name.endswith(ending)), "")
        raise Unsupported(
            f"{place.name!r} is not a Parquet file (.parquet), a folder of them, or another kind of file that is read: "
            f"CSV (.csv, .tsv, .csv.gz), JSON lines (.jsonl, .ndjson), Arrow (.feather, .arrow), Excel (.xlsx), Stata "
            f"(.dta), SAS (.sas7bdat, .xpt), SPSS (.sav); nothing was done. {way}".rstrip()
        )
    return found


@dataclass(slots=True, kw_only=True, eq=False)
class ParquetFiles(EmbeddedFiles):
    """One table in Parquet files of the same columns: a file, a folder, a pattern, or a list of files."""

    advice: str = "Check that it is a whole Parquet file."
    _alike: bool = False

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Read from the end of each file, where Parquet keeps its columns."""
        return dict(self._read(engine).schema().items())

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows, read as they are asked for."""
        table = self._read(engine)
        return projected(table, settle(dict(table.schema().items())))

    def _read(self, engine: BaseBackend) -> ir.Table:
        files = self.files.checked()
        # A folder named id=7 must not override the file's own column id.
        plainly = {"hive_partitioning": False, "filename": False, "union_by_name": False}
        table = engine.read_parquet(files, **plainly)
        if not self._alike:
            wanted = table.schema()
            if any(engine.read_parquet(file, **plainly).schema() != wanted for file in files[1:]):
                raise self.differ()
            self._alike = True
        return table
