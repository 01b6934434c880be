"""Workbooks for Excel: read back equal by another program, never with a formula, and always the same bytes."""

import math
import re
import xml.etree.ElementTree as Elements
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.workbook import MAIN, MOST_COLUMNS, MOST_EXACT, MOST_SIGNS, Cell, WorkbookSheet, write_workbook
from sfumato.errors import InvalidInput

fastexcel = pytest.importorskip("fastexcel")

HOSTILE = ["=1+1", "+1", "-1", "@x", "\tx", "<f>1+1</f>", "]]>&amp;", 'say "a, b"', " spaced ", "数字", "_x000D_", "'="]


def back(file: Path, sheet: str | int = 0, *, head: bool = True) -> list[tuple[object, ...]]:
    table = fastexcel.read_excel(str(file)).load_sheet(sheet, header_row=0 if head else None).to_arrow()
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return [tuple(table.schema.names), *rows] if head else rows


def one(column: list[Cell], place: Path) -> list[object]:
    """A column as it is read back; a first column keeps rows whose cell is empty."""
    sheet = WorkbookSheet(name="one", head=["place", "x"], columns=[list(range(len(column))), column])
    return [row[1] for row in back(write_workbook([sheet], place / "one.xlsx"))[1:]]


def test_cells_are_read_back_as_what_they_are(tmp_path: Path) -> None:
    assert one([-3, 0, MOST_EXACT - 1], tmp_path) == [-3, 0, MOST_EXACT - 1]
    assert one([0.1, -1e-300, 1 / 3], tmp_path) == [0.1, -1e-300, 1 / 3]
    assert one([True, False, None], tmp_path) == [True, False, None]
    assert one([date(2026, 1, 31), date(1900, 3, 1)], tmp_path) == [datetime(2026, 1, 31), datetime(1900, 3, 1)]
    assert one([datetime(2026, 1, 31, 6, 30)], tmp_path) == [datetime(2026, 1, 31, 6, 30)]
    assert one([1.5, math.nan, None], tmp_path) == [1.5, None, None]
    assert one([math.inf, -math.inf], tmp_path) == ["inf", "-inf"]
    assert one([MOST_EXACT, -(10**18) - 1], tmp_path) == [str(MOST_EXACT), str(-(10**18) - 1)], "no digit is lost"
    assert one([date(1900, 2, 28), datetime(2026, 1, 1, tzinfo=UTC)], tmp_path) == [
        "1900-02-28",
        "2026-01-01T00:00:00+00:00",
    ]


def test_a_text_is_never_a_formula(tmp_path: Path) -> None:
    file = write_workbook([WorkbookSheet(name="one", head=["=k"], columns=[HOSTILE])], tmp_path / "a.xlsx")
    assert back(file) == [("=k",), *((text,) for text in HOSTILE)]
    assert not formulas(file)
    # The reader does see formulas: a cell that is one, written by hand, is found, and read as something else.
    broken = tmp_path / "broken.xlsx"
    with zipfile.ZipFile(file) as good, zipfile.ZipFile(broken, "w") as bad:
        for name in good.namelist():
            text = good.read(name).decode()
            bad.writestr(name, text.replace('t="inlineStr"><is><t xml:space="preserve">=1+1</t></is>', "><f>1+1</f>"))
    assert formulas(broken) == 1
    assert ("=1+1",) not in back(broken)


def parsed(part: bytes) -> Elements.Element:
    return Elements.fromstring(part)  # noqa: S314 - written by the test itself


def formulas(file: Path) -> int:
    with zipfile.ZipFile(file) as packed:
        sheets = [parsed(packed.read(name)) for name in packed.namelist() if "worksheets" in name]
    return sum(len(sheet.findall(f".//{{{MAIN}}}f")) for sheet in sheets)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8))
def test_every_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """All of Unicode, by the rule of the standard for what XML cannot hold."""
    place = tmp_path_factory.getbasetemp() / "texts.xlsx"
    file = write_workbook([WorkbookSheet(name="one", head=["i", "x"], columns=[list(range(len(texts))), texts])], place)
    with zipfile.ZipFile(file) as packed:
        cells = parsed(packed.read("xl/worksheets/sheet1.xml")).iter(f"{{{MAIN}}}t")
    found = [cell.text or "" for cell in cells][2:]
    assert [decoded(text) for text in found] == texts
    assert not formulas(file)


def decoded(text: str) -> str:
    """What _xHHHH_ stands for, in the words of the standard: a sign by its number."""
    return re.sub("_x([0-9A-F]{4})_", lambda sign: chr(int(sign[1], 16)), text)


def test_the_same_sheets_give_the_same_bytes(tmp_path: Path) -> None:
    sheets = [
        WorkbookSheet.of(pa.table({"k": ["a", None], "n": [1, 2]}), "answer"),
        WorkbookSheet(name="about", columns=[["x"]], wide=True),
    ]
    first, second = (write_workbook(sheets, tmp_path / name).read_bytes() for name in ("a.xlsx", "b.XLSX"))
    assert first == second
    assert fastexcel.read_excel(str(tmp_path / "a.xlsx")).sheet_names == ["answer", "about"]
    assert back(tmp_path / "a.xlsx") == [("k", "n"), ("a", 1), (None, 2)]
    assert back(tmp_path / "a.xlsx", "about", head=False) == [("x",)]


def test_the_head_is_bold_and_stays_in_sight(tmp_path: Path) -> None:
    file = write_workbook([WorkbookSheet(name="one", head=["k"], columns=[["a"]])], tmp_path / "a.xlsx")
    with zipfile.ZipFile(file) as packed:
        sheet = packed.read("xl/worksheets/sheet1.xml").decode()
        styles = parsed(packed.read("xl/styles.xml"))
    assert '<pane ySplit="1"' in sheet
    place = int(sheet.partition('<c r="A1" s="')[2][0])
    font = styles.findall(f"{{{MAIN}}}cellXfs/{{{MAIN}}}xf")[place].get("fontId")
    assert font is not None
    assert styles.findall(f"{{{MAIN}}}fonts/{{{MAIN}}}font")[int(font)].find(f"{{{MAIN}}}b") is not None


@pytest.mark.parametrize(
    ("sheets", "name"),
    [
        ([], "a.xlsx"),
        ([WorkbookSheet(name="One", columns=[["x"]]), WorkbookSheet(name="one", columns=[["x"]])], "a.xlsx"),
        ([WorkbookSheet(name="a/b", columns=[["x"]])], "a.xlsx"),
        ([WorkbookSheet(name="a" * 32, columns=[["x"]])], "a.xlsx"),
        ([WorkbookSheet(name="a", columns=[["x"]] * (MOST_COLUMNS + 1))], "a.xlsx"),
        ([WorkbookSheet(name="a", columns=[["x" * (MOST_SIGNS + 1)]])], "a.xlsx"),
        ([WorkbookSheet(name="a", columns=[["x"]])], "a.csv"),
        ([WorkbookSheet(name="a", columns=[["x"]])], "no folder/a.xlsx"),
    ],
    ids=["no sheet", "one name twice", "a sign", "a long name", "too wide", "a long text", "an ending", "no folder"],
)
def test_what_excel_would_not_open_is_not_written(sheets: list[WorkbookSheet], name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"othing was written|not written"):
        write_workbook(sheets, tmp_path / name)
    assert not list(tmp_path.iterdir())
