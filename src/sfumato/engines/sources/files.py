"""Files: Parquet, which states its types, and CSV, whose types must be declared; read by the embedded engine."""

from __future__ import annotations

import csv
import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import Type
from sfumato.engines.logged_folders import check_no_log, check_no_logs
from sfumato.engines.operands import DTYPES
from sfumato.engines.sources.columns import projected
from sfumato.engines.sources.embedded import PLACE, embedded
from sfumato.engines.sources.origin import Origin, Settle
from sfumato.engines.stored_files import named_twice, stored_as
from sfumato.errors import EngineFailed, InvalidInput, NotDeclared, Unsupported

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["header_of", "origin_of_path", "parquet"]

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv")
PATTERNS = "*?[{"  # an engine would read other files for a name that holds one
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


def origin_of_path(path: str | Path, declared: Mapping[str, Type] | None) -> Origin:
    """A Parquet file, a folder of them, or a CSV file with declared types; nothing is opened yet."""
    place = _one_place(path)
    ending = place.suffix.lower()
    check_no_log(place)
    if ending in CSV:
        if declared is None:
            raise NotDeclared(
                f"{place.name!r} is a CSV file, which does not say what its columns hold, and guessing that from the "
                "rows would reveal something about them. Nothing was read. Declare the types in a schema; sfumato "
                "schema draft FILE writes one to fill in."
            )
        return CsvFile(path=place, types=dict(declared))
    if ending in PARQUET or place.is_dir():
        return ParquetFiles(places=(place,))
    raise Unsupported(
        f"{place.name!r} is not a Parquet file (.parquet), a folder of them or a CSV file (.csv), the kinds of file "
        "that are read; nothing was done."
    )


def parquet(paths: Sequence[Path]) -> Origin:
    """Several Parquet files as one table."""
    places = tuple(_one_place(path) for path in paths)
    for place in places:
        if place.suffix.lower() not in PARQUET:
            raise Unsupported(f"{place.name!r} is not a Parquet file (.parquet); a list of files names nothing else.")
        check_no_log(place)
    if named_twice(places):
        raise InvalidInput("the list of files names one of them twice; nothing was done.")
    return ParquetFiles(places=places)


def _one_place(path: str | Path) -> Path:
    place = Path(path)
    if any(sign in str(place) for sign in PATTERNS):
        raise InvalidInput(
            "the path of a table names one file or folder; patterns (* ? [ {) are refused. Nothing was done."
        )
    return place


def _seen(files: Sequence[Path]) -> object:
    """What tells one state of some files from another without reading them."""
    found = ((str(file), file.stat()) for file in files if file.is_file())
    return [(name, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns) for name, at in found]


def _missing(name: str) -> EngineFailed:
    return EngineFailed(
        f"there is no file {name!r} at the place given; nothing was read and nothing was spent. "
        "Check the path that the table was declared with."
    )


@dataclass(slots=True, kw_only=True, eq=False)
class ParquetFiles:
    """One table in Parquet files of the same columns: a file, a folder, or a list of files."""

    places: tuple[Path, ...]
    engine: str = "DuckDB"
    advice: str = "Check that it is a whole Parquet file."
    _alike: bool = False

    @property
    def label(self) -> str:
        """The name of the file or folder, without the way to it."""
        more = len(self.places) - 1
        return repr(self.places[0].name) + (f" and {more} more files" if more else "")

    def files(self) -> list[Path]:
        """All files, in order; in a folder, those that end like Parquet and are not hidden, however deep."""
        found: list[Path] = []
        for place in self.places:
            if place.is_dir():
                inside = (file.relative_to(place) for file in place.rglob("*"))
                shown = [file for file in inside if not any(part[0] in "._" for part in file.parts)]
                found += sorted(place / file for file in shown if file.suffix.lower() in PARQUET)
            else:
                found.append(place)
        return [file for file in found if not file.is_dir()]

    def state(self) -> object:
        """Which files there are, and when they were written."""
        return _seen(self.files())

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """Each of its files."""
        return [what for file in self.files() for what in stored_as(file)]

    def place(self) -> Hashable:
        """Beside other files and frames."""
        return PLACE

    def session(self) -> AbstractContextManager[BaseBackend]:
        """The embedded engine."""
        return embedded()

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Read from the end of each file, where Parquet keeps its columns."""
        return dict(self._read(engine).schema().items())

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows, read as they are asked for."""
        table = self._read(engine)
        return projected(table, settle(dict(table.schema().items())))

    def _read(self, engine: BaseBackend) -> ir.Table:
        for place in self.places:  # again: a folder may have become such a table
            check_no_log(place)
        files = self.files()
        for file in files:
            if not file.is_file():
                raise _missing(file.name)
        if any(sign in str(file) for file in files for sign in PATTERNS):
            raise InvalidInput(
                f"a file of {self.label} has a sign of patterns (* ? [ {{) in its name, by which others would be read "
                "again; nothing was read and nothing was spent. Give it another name."
            )
        check_no_logs(files)  # of links inside the folder, too
        if named_twice(files):
            raise InvalidInput(
                f"one file of {self.label} is there under two names, and its records would count twice; nothing was "
                "read and nothing was spent. Take links and copies of names out of the folder."
            )
        if not files:
            raise EngineFailed(
                f"there is no Parquet file at {self.label}; nothing was read and nothing was spent. "
                "Check the path that the table was declared with."
            )
        # A folder named id=7 must not override the file's own column id.
        plainly = {"hive_partitioning": False, "filename": False, "union_by_name": False}
        table = engine.read_parquet(files, **plainly)
        if not self._alike:
            wanted = table.schema()
            if any(engine.read_parquet(file, **plainly).schema() != wanted for file in files[1:]):
                raise InvalidInput(
                    f"the files of {self.label} do not all have the same columns; nothing was read and nothing was "
                    "spent. Declare files of one kind."
                )
            self._alike = True
        return table


@dataclass(slots=True, kw_only=True, eq=False)
class CsvFile:
    """A CSV file in UTF-8 with a header; a cell of another type than declared stops the engine.

    An empty cell is missing; in a column of text, a quoted empty cell is an empty text.
    """

    path: Path
    types: dict[str, Type]
    engine: str = "DuckDB"
    advice: str = "Check that it is a CSV file in UTF-8 whose first line names the columns."

    @property
    def label(self) -> str:
        """The name of the file, without the way to it."""
        return repr(self.path.name)

    def state(self) -> object:
        """When the file was written, and which it is."""
        return _seen([self.path])

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The file."""
        return stored_as(self.path)

    def place(self) -> Hashable:
        """Beside other files and frames."""
        return PLACE

    def session(self) -> AbstractContextManager[BaseBackend]:
        """The embedded engine."""
        return embedded()

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """What was declared; the header must name it."""
        import ibis

        self._columns()
        return {name: ibis.dtype(DTYPES[kind]) for name, kind in self.types.items()}

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows, read as text and turned into what was declared."""
        settle(self.held(engine))
        name = f"csv_{secrets.token_hex(8)}"
        engine.raw_sql(f"CREATE TEMP VIEW {name} AS {self._query(*self._columns())}")
        return engine.table(name)

    def _columns(self) -> tuple[str, list[str]]:
        """The delimiter and the columns of the header; what else stands in it may be data, and is not quoted."""
        if not self.path.is_file():
            raise _missing(self.path.name)
        lacking: set[str] = set(self.types)
        for delimiter in ",;\t|":
            names = header_of(self.path, delimiter)
            missing = {name for name in self.types if names.count(name) != 1}
            if not missing:
                return delimiter, names
            lacking = min(lacking, missing, key=len)
        raise InvalidInput(
            f"the first line of {self.label} does not name the declared columns, each once: not "
            f"{', '.join(sorted(lacking))}; nothing was spent. Declare the columns by the names in the header."
        )

    def _query(self, delimiter: str, names: Sequence[str]) -> str:
        cells = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
        columns = [
            f"{_read_as(kind, f'c{names.index(name)}')} AS {DUCKDB.quoted(name)}" for name, kind in self.types.items()
        ]
        path = str(self.path).replace("'", "''")
        return (
            f"SELECT {', '.join(columns)} FROM read_csv('{path}', columns={{{cells}}}, delim='{delimiter}', "  # noqa: S608
            "auto_detect=false, header=true, quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, "
            "null_padding=false, ignore_errors=false, strict_mode=true, encoding='utf-8', compression='none', "
            "filename=false, hive_partitioning=false, union_by_name=false)"
        )


def header_of(path: Path, delimiter: str = ",") -> list[str]:
    """The cells of the first line of a CSV file, and nothing after it; empty where it has none that can be read."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = (file.readline(LONGEST_LINE) for _ in range(MOST_LINES))
        with suppress(csv.Error, StopIteration):
            return next(csv.reader(takewhile(bool, lines), delimiter=delimiter, strict=True))
    return []


def _read_as(kind: Type, cell: str) -> str:
    if kind is Type.TEXT:
        return cell
    name = DUCKDB.sql_name(kind)
    return f"CASE WHEN regexp_full_match({cell}, '{CELLS[kind]}') THEN TRY_CAST({cell} AS {name}) END"
