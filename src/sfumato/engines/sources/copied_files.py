"""Files of statistics programs and of Excel: read by a package of their own, after the charge, and held by the engine.

What they call a type is not what a schema means: a statistics program keeps whole numbers, truths and codes as
floating-point numbers, and Excel each cell as it likes. So the types are declared, and every value becomes one of the
declared type or is missing; no value stops the reading.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sfumato.core.extras import need
from sfumato.core.foreign import Frame
from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import Type
from sfumato.engines.operands import DTYPES
from sfumato.engines.sources.cells import CellFormat, unreadable_name
from sfumato.engines.sources.embedded import PLACE, embedded
from sfumato.engines.sources.file_lists import FileList
from sfumato.engines.sources.origin import Settle
from sfumato.engines.sources.text_files import columns_read, virtual_columns
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["COPIED", "NAMES", "CopiedFile"]

COPIED = {"Excel": (".xlsx", ".xlsm"), "Stata": (".dta",), "SAS": (".sas7bdat", ".xpt"), "SPSS": (".sav", ".zsav")}
EXTRA = "pip install 'sfumato[files]'"
EXACT = "9007199254740992"  # 2^53: whole numbers up to it are doubles


@dataclass(slots=True, kw_only=True, eq=False)
class CopiedFile:
    """One table in files of one of these kinds; its names are looked at before the charge, its rows after it."""

    files: FileList
    kind: str
    types: dict[str, Type]
    cells: Mapping[str, CellFormat] | None = None
    engine: str = "DuckDB"

    def __post_init__(self) -> None:
        virtual_columns(self.types, self.cells)

    @property
    def advice(self) -> str:
        """What to look at."""
        return f"Check that it is a whole {self.kind} file."

    @property
    def label(self) -> str:
        """The name of the file, without the way to it."""
        return self.files.label

    @property
    def virtual(self) -> dict[str, Type]:
        """The columns that say where a value could not be read."""
        return virtual_columns(self.types, self.cells)

    def state(self) -> object:
        """When the files were written, and which they are."""
        return self.files.state()

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The files."""
        return self.files.stored()

    def place(self) -> Hashable:
        """Beside other files and frames."""
        return PLACE

    def session(self) -> AbstractContextManager[BaseBackend]:
        """The embedded engine."""
        return embedded()

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """What was declared; each file must name it."""
        import ibis

        for file in self.files.checked():
            names = NAMES[self.kind](file)
            lacking = sorted(name for name in self.types if names.count(name) != 1)
            if lacking:
                raise InvalidInput(
                    f"{file.name!r} does not have the declared columns, each once: not {', '.join(lacking)}; nothing "
                    "was spent. Declare the columns by the names that they have in the file."
                )
        return {name: ibis.dtype(DTYPES[kind]) for name, kind in (self.types | self.virtual).items()}

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows as declared; the copy is let go with the session."""
        settle(self.held(engine))
        parts = []
        for file in self.files.checked():
            name = f"copied_{secrets.token_hex(8)}"
            with warnings.catch_warnings():  # a warning about a value would reveal a row
                warnings.simplefilter("ignore")
                rows = _plain(ROWS[self.kind](file, list(self.types)))
            engine.con.register(name, rows)
            until.callback(engine.con.unregister, name)
            parts.append(f"SELECT {', '.join(self._columns(rows.schema))} FROM {name}")  # noqa: S608 - quoted
        view = f"copied_{secrets.token_hex(8)}"
        engine.raw_sql(f"CREATE TEMP VIEW {view} AS {' UNION ALL '.join(parts)}")
        return engine.table(view)

    def _columns(self, held: pa.Schema) -> list[str]:
        """SQL of each column: texts by their declared form, other values by what they are."""
        import pyarrow as pa

        texts = {name: kind for name, kind in self.types.items() if pa.types.is_string(held.field(name).type)}
        made = columns_read(texts, self.cells, {name: DUCKDB.quoted(name) for name in texts})
        for name, kind in self.types.items():
            if name in texts:
                continue
            column, dtype = DUCKDB.quoted(name), held.field(name).type
            read = f"CAST({_value(column, dtype, kind)} AS {DUCKDB.sql_name(kind)})"
            made.append(f"{read} AS {DUCKDB.quoted(name)}")
            if self.cells is not None and kind is not Type.TEXT:
                there = f"NOT isnan({column})" if pa.types.is_floating(dtype) else f"{column} IS NOT NULL"
                made.append(f"coalesce({there} AND {read} IS NULL, false) AS {DUCKDB.quoted(unreadable_name(name))}")
        order = [DUCKDB.quoted(name) for name in (*self.types, *self.virtual)]
        return sorted(made, key=lambda part: order.index(part.rpartition(" AS ")[2]))


def _value(column: str, dtype: pa.DataType, kind: Type) -> str:
    """SQL of DuckDB that makes a value one of the declared type; null where it is none. It never fails."""
    import pyarrow as pa

    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        return {Type.DATE: f"CAST({column} AS DATE)", Type.TEXT: f"CAST({column} AS DATE)"}.get(kind, "NULL")
    if pa.types.is_boolean(dtype):
        return {Type.TRUTH: column, Type.DATE: "NULL"}.get(kind, f"CAST({column} AS INTEGER)")
    if pa.types.is_integer(dtype):
        truth = f"CASE {column} WHEN 1 THEN true WHEN 0 THEN false END"
        return {Type.TRUTH: truth, Type.DATE: "NULL", Type.WHOLE: f"TRY_CAST({column} AS BIGINT)"}.get(kind, column)
    if not pa.types.is_floating(dtype):
        return "NULL"
    within = f"isfinite({column}) AND {column} = floor({column}) AND abs({column}) <= {EXACT}"
    whole = f"CASE WHEN {within} THEN TRY_CAST({column} AS BIGINT) END"
    match kind:
        case Type.NUMBER:
            return column
        case Type.WHOLE:
            return whole
        case Type.TRUTH:
            return f"CASE {column} WHEN 1 THEN true WHEN 0 THEN false END"
        case Type.TEXT:
            other = f"WHEN isfinite({column}) THEN CAST({column} AS VARCHAR)"
            return f"CASE WHEN {within} THEN CAST({whole} AS VARCHAR) {other} END"
    return "NULL"


def _plain(frame: Frame) -> pa.Table:
    """A frame as Arrow; a column that holds several types becomes texts, so that none fails."""
    import pyarrow as pa

    if isinstance(frame, pa.Table | pa.RecordBatch):
        columns = {name: frame.column(name) for name in frame.schema.names}
    else:
        columns = {}
        for name in frame.columns:
            column = frame[name]
            if column.dtype == object or str(column.dtype) == "category":
                column = column.astype("string")
            columns[name] = pa.Array.from_pandas(column)
    for name, column in columns.items():
        kind = column.type
        if (
            pa.types.is_null(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_string_view(kind)
            or pa.types.is_dictionary(kind)
        ):
            columns[name] = column.cast(pa.string())
    return pa.table(columns)


# ----------------------------------------------------------------------------------------- names and rows of each kind


def _pandas() -> ModuleType:
    return need("pandas", "pip install pandas")


def _stata_names(file: Path) -> list[str]:
    with _pandas().read_stata(file, iterator=True) as reader:
        return list(reader.variable_labels())


def _stata(file: Path, columns: Sequence[str]) -> Frame:
    pandas = _pandas()
    found = pandas.read_stata(file, convert_categoricals=False, columns=list(columns), preserve_dtypes=True)
    with pandas.read_stata(file, iterator=True) as reader:
        texts = {name for name in columns if found[name].dtype == object} - set(reader.value_labels())
    for name in texts:
        if not all(isinstance(value, str) for value in found[name].head(1)):  # days beyond what a timestamp holds
            found[name] = pandas.to_datetime(found[name], errors="coerce")
    return found


def _sas_names(file: Path) -> list[str]:
    with _pandas().read_sas(file, iterator=True, encoding="latin-1") as reader:
        names = getattr(reader, "column_names", None) or getattr(reader, "columns", [])
        return [name.decode("latin-1") if isinstance(name, bytes) else str(name) for name in names]


def _sas(file: Path, columns: Sequence[str]) -> Frame:
    found = _pandas().read_sas(file)  # texts as bytes: one that cannot be decoded may not stop the reading
    found.columns = [name.decode("latin-1") if isinstance(name, bytes) else name for name in found.columns]
    found = found[list(columns)]
    for name in columns:
        if found[name].dtype == object:
            found[name] = found[name].str.decode("utf-8", errors="replace")
    return found


def _spss_names(file: Path) -> list[str]:
    _, about = need("pyreadstat", EXTRA).read_sav(file, metadataonly=True)
    return list(about.column_names)


def _spss(file: Path, columns: Sequence[str]) -> Frame:
    found, _ = need("pyreadstat", EXTRA).read_sav(file, usecols=list(columns), apply_value_formats=False)
    return found


def _excel_names(file: Path) -> list[str]:
    sheet = need("fastexcel", EXTRA).read_excel(str(file)).load_sheet(0, n_rows=0)
    return [column.name for column in sheet.available_columns()]


def _excel(file: Path, columns: Sequence[str]) -> Frame:
    """All cells as texts: what a column holds would be guessed from its first rows. A day has no time of day."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sheet = need("fastexcel", EXTRA).read_excel(str(file)).load_sheet(0, use_columns=list(columns), dtypes="string")
    found = sheet.to_arrow()
    days = (pc.replace_substring_regex(column, pattern=MIDNIGHT, replacement=r"\1") for column in found.columns)
    return pa.table(list(days), names=found.schema.names)


MIDNIGHT = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}) 00:00:00$"  # how a cell with a day is written out
NAMES: dict[str, Callable[[Path], list[str]]] = {
    "Stata": _stata_names,
    "SAS": _sas_names,
    "SPSS": _spss_names,
    "Excel": _excel_names,
}
ROWS: dict[str, Callable[[Path, Sequence[str]], Frame]] = {
    "Stata": _stata,
    "SAS": _sas,
    "SPSS": _spss,
    "Excel": _excel,
}
