"""Workbooks that Excel opens (.xlsx), written with the standard library: numbers stay numbers, no text is a formula.

A workbook is a zip file of a few XML parts (ECMA-376, Office Open XML). Formulas stand in an element of their own,
``<f>``, which is never written here: every text is an inline string, and its cell has the format *Text*, so that it
stays a text when somebody edits it.
"""

import io
import math
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WorkbookSheet", "write_workbook"]

MOST_ROWS, MOST_COLUMNS, MOST_SIGNS = 1_048_576, 16_384, 32_767
MOST_EXACT = 10**15
"""Spreadsheets keep 15 digits; a whole number from here on is written as a text, so that none of them is lost."""
FIRST_DAY = datetime(1899, 12, 30)
LEAST_DAY = datetime(1900, 3, 1)
"""Excel takes 1900 for a leap year, so days before this one are written as texts."""
WIDEST = 60
SAME_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every part: the bytes of a workbook depend on what stands in it alone."""

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
KINDS = "application/vnd.openxmlformats-officedocument.spreadsheetml"

PLAIN, BOLD, TEXT, DAY, TIME, WRAPPED = range(6)  # places in the list of formats below
STYLES = (
    f'<styleSheet xmlns="{MAIN}">'
    '<numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="6"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="49" fontId="1" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyAlignment="1">'
    '<alignment vertical="top" wrapText="1"/></xf></cellXfs></styleSheet>'
)

UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""What XML cannot hold, and what would be read as the sign for it: written as _xHHHH_, as the standard says."""
FORBIDDEN = re.compile(r"[\[\]:*?/\\]")

Cell = str | int | float | bool | date | datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookSheet:
    """One sheet of a workbook: cells by column, under a bold head that stays in sight if there is one.

    ``wide`` sheets are to be read: their last column is broad and its lines are wrapped.
    """

    name: str
    columns: Sequence[Sequence[Cell]]
    head: Sequence[str] = ()
    wide: bool = False

    @classmethod
    def of(cls, table: "pa.Table", name: str) -> "WorkbookSheet":
        """A table as a sheet; its names are the head."""
        return cls(name=name, columns=[column.to_pylist() for column in table.columns], head=table.column_names)


def write_workbook(sheets: Sequence[WorkbookSheet], path: str | Path) -> Path:
    """Write a workbook in place of an earlier file of that name, and return the path.

    Guarantee: no cell is a formula. Numbers, truth values and days are written as such; a missing value, or a number
    that is none (NaN), is an empty cell; what a spreadsheet cannot hold exactly is a text. The same sheets give the
    same bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_workbook([WorkbookSheet(name="one", head=["k"], columns=[["=1+1"]])], Path(folder) / "a.xlsx")
    ...     b"<f>" in zipfile.ZipFile(file).read("xl/worksheets/sheet1.xml")
    False
    """
    target = Path(path)
    if target.suffix.lower() != ".xlsx":
        raise InvalidInput(f"{target.name} is no name of a workbook; nothing was written. Give one that ends in .xlsx.")
    packed = _packed(_parts(sheets))
    try:
        target.write_bytes(packed)
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or type(wrong).__name__}. The table was not written. Choose "
            "another path."
        ) from None
    return target


def _packed(parts: dict[str, str]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            part = zipfile.ZipInfo(name, SAME_TIME)
            part.create_system, part.compress_type = 0, zipfile.ZIP_DEFLATED
            packed.writestr(part, (HEAD + text).encode())
    return memory.getvalue()


def _parts(sheets: Sequence[WorkbookSheet]) -> dict[str, str]:
    """All parts of the file by name, in the order in which they are packed."""
    names = [_checked(sheet).name for sheet in sheets]
    if not sheets or len({name.casefold() for name in names}) < len(names):
        raise InvalidInput("a workbook has one sheet or more, each with a name of its own; nothing was written.")
    places = range(1, len(sheets) + 1)
    styles = len(sheets) + 1
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{place}.xml" ContentType="{KINDS}.worksheet+xml"/>'
        for place in places
    )
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{place}" r:id="r{place}"/>'
        for place, name in zip(places, names, strict=True)
    )
    linked = "".join(
        f'<Relationship Id="r{place}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{place}.xml"/>'
        for place in places
    )
    return {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KINDS}.sheet.main+xml"/>{kinds}'
        f'<Override PartName="/xl/styles.xml" ContentType="{KINDS}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{linked}'
        f'<Relationship Id="r{styles}" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": STYLES,
        **{f"xl/worksheets/sheet{place}.xml": _sheet(sheet) for place, sheet in zip(places, sheets, strict=True)},
    }


def _checked(sheet: WorkbookSheet) -> WorkbookSheet:
    """Refuse what Excel would call damaged, or cut off without a word."""
    name, rows = sheet.name, max(map(len, sheet.columns), default=0) + bool(sheet.head)
    if not 0 < len(name) <= 31 or FORBIDDEN.search(name) or UNWRITABLE.search(name) or "'" in (name[0], name[-1]):
        raise InvalidInput(f"{name!r} cannot name a sheet; nothing was written.")
    if rows > MOST_ROWS or len(sheet.columns) > MOST_COLUMNS:
        raise InvalidInput(
            f"a sheet holds {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns at the most, and this table has {rows:,} "
            f"and {len(sheet.columns):,}. Nothing was written. Write it with to_csv."
        )
    return sheet


def _sheet(sheet: WorkbookSheet) -> str:
    letters = [_letters(place) for place in range(len(sheet.columns))]
    words = WRAPPED if sheet.wide else TEXT
    first = 2 if sheet.head else 1
    cells = [
        [_cell(value, f"{letter}{row}", words) for row, value in enumerate(column, start=first)]
        for letter, column in zip(letters, sheet.columns, strict=True)
    ]
    top = pane = ""
    if sheet.head:
        names = (_text(name, f"{letter}1", BOLD) for letter, name in zip(letters, sheet.head, strict=True))
        top = f'<row r="1">{"".join(names)}</row>'
        pane = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
    body = "".join(
        f'<row r="{row}">{"".join(across)}</row>' for row, across in enumerate(zip(*cells, strict=True), start=first)
    )
    return (
        f'<worksheet xmlns="{MAIN}"><sheetViews><sheetView workbookViewId="0">{pane}</sheetView></sheetViews>'
        f"{_widths(sheet)}<sheetData>{top}{body}</sheetData></worksheet>"
    )


def _widths(sheet: WorkbookSheet) -> str:
    """How wide the columns are: as their longest text is, up to a limit; that of a sheet to be read is broad."""
    heads = sheet.head or [""] * len(sheet.columns)
    found = [
        min(WIDEST, max([len(head), 8, *(len(value) for value in column if isinstance(value, str))]) + 2)
        for head, column in zip(heads, sheet.columns, strict=True)
    ]
    if sheet.wide and found:
        found[-1] = 2 * WIDEST
    cols = "".join(
        f'<col min="{place}" max="{place}" width="{width}" customWidth="1"/>'
        for place, width in enumerate(found, start=1)
    )
    return f"<cols>{cols}</cols>" if cols else ""


def _letters(place: int) -> str:
    """The name of a column, from 0: A to Z, then AA.

    >>> _letters(0), _letters(25), _letters(26), _letters(16_383)
    ('A', 'Z', 'AA', 'XFD')
    """
    name, left = "", place + 1
    while left:
        left, sign = divmod(left - 1, 26)
        name = chr(ord("A") + sign) + name
    return name


def _cell(value: Cell, where: str, words: int) -> str:
    """One cell; an empty one is left out."""
    match value:
        case None:
            return ""
        case bool():
            return f'<c r="{where}" t="b"><v>{int(value)}</v></c>'
        case int() if abs(value) < MOST_EXACT:
            return _number(value, where, PLAIN)
        case float() if math.isfinite(value):
            return _number(repr(value), where, PLAIN)
        case float() if math.isnan(value):
            return ""
        case datetime() if value.tzinfo is None and value >= LEAST_DAY:
            passed = value - FIRST_DAY
            return _number(repr(passed / timedelta(days=1)), where, TIME)
        case date() if not isinstance(value, datetime) and value >= LEAST_DAY.date():
            return _number((value - FIRST_DAY.date()).days, where, DAY)
        case date():
            return _text(value.isoformat(), where, words)
    return _text(str(value), where, words)


def _number(number: str | int, where: str, style: int) -> str:
    return f'<c r="{where}" s="{style}"><v>{number}</v></c>'


def _text(text: str, where: str, style: int) -> str:
    if len(text) > MOST_SIGNS:
        raise InvalidInput(
            f"a cell holds {MOST_SIGNS:,} signs at the most, and a text here has {len(text):,}. Nothing was written. "
            "Write it with to_csv."
        )
    safe = escape(UNWRITABLE.sub(lambda sign: f"_x{ord(sign[0]):04X}_", text))
    return f'<c r="{where}" s="{style}" t="inlineStr"><is><t xml:space="preserve">{safe}</t></is></c>'
