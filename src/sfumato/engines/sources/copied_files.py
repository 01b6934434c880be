"""Files of statistics programs and of Excel: read by a package of their own, after the charge, and held by the engine.

What they call a type is not what a schema means: a statistics program keeps whole numbers, truths, dates and codes as
floating-point numbers, and Excel each cell as it likes. So the types are declared, and every value becomes one of the
declared type or is missing. In files of statistics programs no value stops the reading or changes how another one is
read; a cell of Excel that its reader does not know stops it, after the charge, as a damaged file does.
"""

from __future__ import annotations

import codecs
import secrets
import warnings
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sfumato.core.extras import need
from sfumato.core.foreign import Frame
from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import Type
from sfumato.engines.sources.cells import unreadable_name
from sfumato.engines.sources.embedded_files import DeclaredFiles
from sfumato.engines.sources.origin import Settle
from sfumato.engines.sources.text_files import columns_read
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["COPIED", "CopiedFile", "named_in"]

COPIED = {"Excel": (".xlsx", ".xlsm"), "Stata": (".dta",), "SAS": (".sas7bdat", ".xpt"), "SPSS": (".sav", ".zsav")}
EXTRA = "pip install 'sfumato[files]'"
EXACT = "9007199254740992"  # 2^53: whole numbers up to it are doubles


@dataclass(slots=True, kw_only=True, eq=False)
class CopiedFile(DeclaredFiles):
    """One table in files of one of these kinds; its names are looked at before the charge, its rows after it."""

    kind: str

    @property
    def advice(self) -> str:
        """What to look at."""
        return f"Check that it is a whole {self.kind} file."

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """What was declared; each file must name it."""
        for file in self.files.checked():
            names = named_in(file, self.kind)
            lacking = sorted(name for name in self.types if names.count(name) != 1)
            if lacking:
                raise InvalidInput(
                    f"{file.name!r} does not have the declared columns, each once: not {', '.join(lacking)}; nothing "
                    "was spent. Declare the columns by the names that they have in the file."
                )
            self._check_clocks(file)
        return self.declared()

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows as declared; the copy is let go with the session."""
        settle(self.held(engine))
        parts = []
        for file in self.files.checked():
            name = f"copied_{secrets.token_hex(8)}"
            with warnings.catch_warnings():  # a warning about a value would reveal a row
                warnings.simplefilter("ignore")
                read = _excel(file, list(self.types)) if self.kind == "Excel" else None
                rows = _statistics(file, self.types, self.kind) if read is None else read
            engine.con.register(name, rows)
            until.callback(engine.con.unregister, name)
            parts.append(f"SELECT {', '.join(self._columns(rows.schema))} FROM {name}")  # noqa: S608 - quoted
        view = f"copied_{secrets.token_hex(8)}"
        engine.raw_sql(f"CREATE TEMP VIEW {view} AS {' UNION ALL '.join(parts)}")
        return engine.table(view)

    def _check_clocks(self, file: Path) -> None:
        """Refuse a date or a time that the file's own format does not say is one; formats stand in its head."""
        if self.kind == "Excel":
            return
        facts = _facts(file, self.kind)
        for name, declared in self.types.items():
            if declared in CLOCKS and name not in facts.texts and _clock(facts.formats[name], self.kind) is None:
                raise InvalidInput(
                    f"column {name!r} is declared to hold {declared.value}s, and its format in {file.name!r} "
                    f"({facts.formats[name] or 'none'}) is not one of days or clocks; nothing was read and nothing was "
                    "spent. Declare it as a number, or give it a format of dates in the program that wrote it."
                )

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
        return column if kind in CLOCKS else "NULL"
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


# -------------------------------------------------------------------------------- names and rows of statistics programs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What the head of a file says of it: its columns with their formats, which of them are texts, and its encoding."""

    formats: Mapping[str, str]
    texts: frozenset[str]
    encoding: str


def _facts(file: Path, kind: str) -> _Facts:
    _, about = _reader(file, kind)(file, metadataonly=True)
    texts = {name for name, held in about.readstat_variable_types.items() if held.startswith("string")}
    formats = {name: about.original_variable_types.get(name) or "" for name in about.column_names}
    return _Facts(formats=formats, texts=frozenset(texts), encoding=_known(about.file_encoding))


def _known(encoding: str | None) -> str:
    """A character set by its name; texts of one that Python does not know are read byte by byte."""
    try:
        return codecs.lookup(encoding or "utf-8").name
    except LookupError:
        return BYTES


def _reader(file: Path, kind: str) -> Callable[..., tuple[Mapping[str, list[object]], Frame]]:
    name = {"Stata": "read_dta", "SPSS": "read_sav"}.get(kind) or READ_SAS[file.suffix.lower()]
    read: Callable[..., tuple[Mapping[str, list[object]], Frame]] = getattr(need("pyreadstat", EXTRA), name)
    return read


def _statistics(file: Path, types: Mapping[str, Type], kind: str) -> pa.Table:
    """The declared columns as the file holds them: numbers and texts. What a column is, its head says, never its rows.

    Guarantee: no value stops the reading or changes how another is read. Numbers of days and clocks are turned into
    dates here, and those beyond the calendar are missing; texts are read byte by byte, and bytes that are none of their
    character set become escapes, so that two texts do not become one.
    """
    import pyarrow as pa

    facts = _facts(file, kind)
    asked = {"usecols": list(types), "disable_datetime_conversion": True, "encoding": BYTES, "output_format": "dict"}
    rows, _ = _reader(file, kind)(file, **asked)
    found = {}
    for name, declared in types.items():
        if name in facts.texts:
            found[name] = _text(pa.array(rows[name], pa.string()), facts.encoding)
            continue
        column, clock = pa.array(rows[name], pa.float64()), _clock(facts.formats[name], kind)
        found[name] = column if clock is None or declared not in CLOCKS else clock.read(column, declared)
    return pa.table(found)


def _text(column: pa.Array, encoding: str) -> pa.Array:
    """Texts from their bytes; each different one is looked at once."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    texts = [text.encode(BYTES).decode(encoding, "backslashreplace") for text in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string())).cast(pa.string())


@dataclass(frozen=True, slots=True)
class _Clock:
    """Numbers that are times: how many of them make a day, and this is the day that 0 lies in, from 1970 on."""

    a_day: int
    origin: int

    def read(self, column: pa.Array, declared: Type) -> pa.Array:
        """Days, or times of microseconds; what lies beyond the calendar is missing."""
        import numpy as np
        import pyarrow as pa

        number = column.to_numpy(zero_copy_only=False)
        with np.errstate(all="ignore"):
            days = np.floor(number / self.a_day)
            known = np.isfinite(number) & (days + self.origin >= FIRST_DAY) & (days + self.origin <= LAST_DAY)
            inside = np.where(known, days + self.origin, 0).astype(np.int64)
            if declared is Type.DATE:
                return pa.array(inside.astype(np.int32), pa.int32(), mask=~known).cast(pa.date32())
            rest = np.where(known, np.round((number - days * self.a_day) * (DAY / self.a_day)), 0).astype(np.int64)
        return pa.array(inside * DAY + rest, pa.int64(), mask=~known).cast(pa.timestamp("us"))


def _clock(form: str, kind: str) -> _Clock | None:
    """Which clock a format is of: a fact of the head of the file."""
    found = next((clock for start, clock in FORMATS[kind] if form.upper().startswith(start)), None)
    return None if kind == "Stata" and form.startswith("%tC") else found  # with leap seconds: not the time of a clock


def _days(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - date(1970, 1, 1).toordinal()


BYTES = "iso-8859-1"  # one sign for each byte
DAY = 86_400_000_000
FIRST_DAY, LAST_DAY = _days(1, 1, 1), _days(9999, 12, 31)
CLOCKS = (Type.DATE, Type.TIME)
READ_SAS = {".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}
_SAS_DAYS = ("DATE", "MMDDYY", "DDMMYY", "YYMMDD", "E8601DA", "IS8601DA", "B8601DA", "WEEKDATE", "WORDDATE", "NLDATE")
_SAS_SECONDS = ("DATETIME", "DATEAMPM", "E8601DT", "IS8601DT", "B8601DT", "NLDATM", "MDYAMPM")
_SPSS_SECONDS = ("DATETIME", "YMDHMS", "DATE", "ADATE", "EDATE", "SDATE", "JDATE")
_SINCE_1960 = {unit: _Clock(a_day, _days(1960, 1, 1)) for unit, a_day in (("d", 1), ("s", 86_400), ("ms", 86_400_000))}
FORMATS = {
    "Stata": (("%TD", _SINCE_1960["d"]), ("%D", _SINCE_1960["d"]), ("%TC", _SINCE_1960["ms"])),
    "SAS": (
        *((name, _SINCE_1960["s"]) for name in _SAS_SECONDS),
        *((name, _SINCE_1960["d"]) for name in _SAS_DAYS),
    ),
    "SPSS": tuple((name, _Clock(86_400, _days(1582, 10, 14))) for name in _SPSS_SECONDS),
}


# ---------------------------------------------------------------------------------------------- names and rows of Excel


def _excel_names(file: Path) -> list[str]:
    """The cells of the first row of the first sheet, and nothing after it: a cell below could not be read."""
    need("fastexcel", EXTRA)
    with zipfile.ZipFile(file) as book:
        cells = _first_row(book, _first_sheet(book))
        wanted = {int(text) for kind, text in cells if kind == "s" and text.isdecimal()}
        shared = _shared(book, wanted) if wanted else {}
    return [shared.get(int(text), "") if kind == "s" and text.isdecimal() else text for kind, text in cells]


def _nodes(book: zipfile.ZipFile, part: str, tag: str) -> Generator[ElementTree.Element, None, None]:
    """The nodes of a kind in a part of a workbook, one by one; what stands behind the last one taken is not read."""
    with book.open(part) as file:
        for _, node in ElementTree.iterparse(file):  # noqa: S314 - the file is the steward's own
            if node.tag.endswith("}" + tag):
                yield node


def _first_sheet(book: zipfile.ZipFile) -> str:
    """The part that holds the first sheet, by the book's own list."""
    with closing(_nodes(book, "xl/workbook.xml", "sheet")) as sheets:
        named = next(value for name, value in next(sheets).attrib.items() if name.endswith("}id"))
    places = {node.attrib["Id"]: node.attrib["Target"] for node in _nodes(book, RELATIONS, "Relationship")}
    return places[named].lstrip("/") if places[named].startswith("/") else f"xl/{places[named]}"


def _first_row(book: zipfile.ZipFile, sheet: str) -> list[tuple[str, str]]:
    """The kind and the text of each cell of the first row."""
    with closing(_nodes(book, sheet, "row")) as rows:
        first = next(rows, None)
    cells = [] if first is None else [cell for cell in first if cell.tag.endswith("}c")]
    return [(cell.attrib.get("t", "n"), "".join(_texts(cell))) for cell in cells]


def _shared(book: zipfile.ZipFile, wanted: set[int]) -> dict[int, str]:
    """Some of the texts that cells share; those behind the last one are not looked at."""
    with closing(_nodes(book, "xl/sharedStrings.xml", "si")) as texts:
        return {
            place: "".join(_texts(node)) for place, node in enumerate(islice(texts, max(wanted) + 1)) if place in wanted
        }


def _texts(node: ElementTree.Element) -> Iterator[str]:
    return (part.text or "" for part in node.iter() if part.tag.endswith(("}t", "}v")))


def _excel(file: Path, columns: Sequence[str]) -> pa.Table:
    """All cells as texts: what a column holds would be guessed from its first rows. A day has no time of day."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sheet = need("fastexcel", EXTRA).read_excel(str(file)).load_sheet(0, use_columns=list(columns), dtypes="string")
    found = sheet.to_arrow()
    days = (pc.replace_substring_regex(column, pattern=MIDNIGHT, replacement=r"\1") for column in found.columns)
    return pa.table([column.cast(pa.string()) for column in days], names=found.schema.names)


RELATIONS = "xl/_rels/workbook.xml.rels"
MIDNIGHT = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}) 00:00:00$"  # how a cell with a day is written out


def named_in(file: Path, kind: str) -> list[str]:
    """The names of the columns of a file, from its head."""
    return _excel_names(file) if kind == "Excel" else list(_facts(file, kind).formats)
