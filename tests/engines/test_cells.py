"""Cells of text are read as declared; what is written otherwise is missing, and how many that are can be asked."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.expressions import Type
from sfumato.engines.sources import CellFormat, Source, unreadable_name
from sfumato.errors import InvalidInput
from sfumato.tables.column_facts import ColumnFacts

GERMAN = CellFormat(
    decimal=",", thousands=".", date="DD.MM.YYYY", true=("ja", "J"), false=("nein",), missing=("k. A.",), trim=True
)
KINDS = {"text": Type.TEXT, "whole": Type.WHOLE, "number": Type.NUMBER, "truth": Type.TRUTH, "day": Type.DATE}


def read(folder: Path, column: str, cells: list[str], form: CellFormat) -> list[tuple[Any, bool]]:
    """What some cells are read as, and whether they could not be."""
    path = folder / "cells.csv"
    quoted = (cell.replace('"', '""') for cell in cells)
    path.write_text(f"{column}\n" + "".join(f'"{cell}"\n' for cell in quoted), encoding="utf-8", newline="")
    with Source(path, {column: KINDS[column]}, cells={column: form}).opened() as table:
        rows = table.to_pyarrow().to_pylist()
    return [(row[column], row.get(unreadable_name(column), False)) for row in rows]


CASES: list[tuple[str, CellFormat, dict[str, Any]]] = [
    (
        "number",
        GERMAN,
        {"1.234,5": 1234.5, "950": 950.0, " 0,46 ": 0.46, "-1.234.567": -1234567.0, ",5": 0.5, "1e2": 100.0},
    ),
    ("whole", GERMAN, {"1.234": 1234, " 5": 5, "5 ": 5, "+12": 12, "9223372036854775807": 2**63 - 1}),
    ("truth", GERMAN, {"ja": True, "JA": True, "j": True, "Nein": False}),
    ("day", GERMAN, {"31.12.2026": date(2026, 12, 31), "01.02.0003": date(3, 2, 1)}),
    ("day", CellFormat(date="M/D/YYYY"), {"2/1/2026": date(2026, 2, 1), "12/31/1999": date(1999, 12, 31)}),
    ("day", CellFormat(date="YYYYMMDD"), {"20260131": date(2026, 1, 31)}),
    ("truth", CellFormat(true=("yes", "y"), false=("no", "n")), {"Yes": True, "N": False}),
    ("truth", CellFormat(true=("yes",)), {"yes": True, "0": False, "false": False}),
    ("number", CellFormat(thousands=" "), {"1 234.5": 1234.5, "12 345 678": 12345678.0}),
    ("number", CellFormat(thousands="'"), {"1'234.5": 1234.5}),
    ("text", GERMAN, {" a b ": "a b", "": "", "   ": None}),
]


@pytest.mark.parametrize(("column", "form", "cells"), CASES)
def test_cells_are_read_by_their_declared_form(
    tmp_path: Path, column: str, form: CellFormat, cells: dict[str, Any]
) -> None:
    assert read(tmp_path, column, list(cells), form) == [(value, False) for value in cells.values()]


@pytest.mark.parametrize(
    ("column", "form", "cells"),
    [
        ("number", GERMAN, ["1,234.5", "1.23", "12.34,5", "1..234", "fünf", "--1", "1 2"]),
        ("whole", GERMAN, ["1.23", "1,0", "12.3456", "9.223.372.036.854.775.808", "x"]),
        ("truth", GERMAN, ["true", "1", "vielleicht"]),
        ("day", GERMAN, ["2026-12-31", "31.02.2026", "1.2.2026", "31.12.26", "31/12/2026"]),
        ("day", CellFormat(date="MM-DD-YYYY"), ["31-12-2026", "00-01-2026"]),
        ("number", CellFormat(), ["1,5", " 5", "1.234,5"]),
        ("truth", CellFormat(), ["yes"]),
    ],
)
def test_what_is_written_otherwise_is_missing_and_can_be_counted(
    tmp_path: Path, column: str, form: CellFormat, cells: list[str]
) -> None:
    assert read(tmp_path, column, cells, form) == [(None, True)] * len(cells)


@pytest.mark.parametrize("column", ["number", "whole", "truth", "day"])
def test_an_empty_cell_and_a_word_for_missing_are_missing_and_not_unreadable(tmp_path: Path, column: str) -> None:
    assert read(tmp_path, column, ["", "  ", "k. A."], GERMAN) == [(None, False)] * 3


@settings(max_examples=10)
@given(cells=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12), max_size=20))
def test_no_cell_stops_the_engine(tmp_path_factory: pytest.TempPathFactory, cells: list[str]) -> None:
    """If one did, whether there is an answer would reveal something about one row, at any ε."""
    folder = tmp_path_factory.mktemp("cells")
    for column in KINDS:
        found = read(folder, column, cells, GERMAN)
        assert len(found) == len(cells)
        assert all(value is None for value, wrong in found if wrong)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"decimal": ";"}, "decimal mark"),
        ({"thousands": "x"}, "thousands mark"),
        ({"thousands": "."}, "would also be the decimal mark"),
        ({"decimal": ",", "thousands": ","}, "would also be the decimal mark"),
        ({"date": "DD.MM.YY"}, "YYYY"),
        ({"date": "%d.%m.%Y"}, "YYYY"),
        ({"date": "DMYYYY"}, "YYYY"),
        ({"true": ()}, "true lists the words"),
        ({"true": ("x",), "false": ("X",)}, "both true and false"),
        ({"trim": "yes"}, "trim is True or False"),
    ],
)
def test_a_form_that_cannot_be_meant_is_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        CellFormat(**words)


# ------------------------------------------------------------------------------------------------- in a vault

SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "stays"
version = "1"
[unit]
column = "id"
[limit]
groups = 1
rows_per_group = 2
[cells]
decimal = ","
date = "DD.MM.YYYY"
true = ["yes"]
false = ["no"]
trim = true
[columns.id]
type = "text"
[columns.cost]
type = "number"
bounds = [0, 1000]
[columns.paid]
type = "truth"
[columns.left]
type = "date"
[columns.left.cells]
date = "YYYY/M/D"
"""
ROWS = ["a; 450,5 ;yes;2026/1/31", "b;499,5;no;2026/2/1", "c;about 10;maybe;31.01.2026", "d;;;", "c;1.5;no;2026/1/1"]


def stays(folder: Path, rows: list[str]) -> Any:
    path = folder / "stays.csv"
    path.write_text("id;cost;paid;left\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="stays")
    return vault.table(path, schema=sf.Schema.from_toml(SCHEMA))


def test_a_sum_of_decimal_commas_is_the_sum_and_not_nothing(tmp_path: Path) -> None:
    """Noise at this ε has a scale of about a tenth of a cent."""
    table = stays(tmp_path, ROWS)
    total = table.agg(cost=sf.sum("cost")).release(epsilon=900_000)["cost"]
    assert abs(float(total.values[0]) - 950) < 0.05
    assert table.where(sf.col("left") == date(2026, 1, 31)).count().release(epsilon=1000).values == (1,)


@pytest.mark.parametrize(("column", "many"), [("cost", 2), ("paid", 1), ("left", 1)])
def test_values_that_cannot_be_read_are_counted_for_their_price(tmp_path: Path, column: str, many: int) -> None:
    """The limit holds: of one person no more rows count than it lets in."""
    table = stays(tmp_path, [*ROWS, "c;x;no;2026/1/1"] if column == "cost" else ROWS)
    release = table.where(sf.unreadable(column)).count().release(epsilon=1000)
    assert release.values == (many,)
    assert release.charged.epsilon == 1000
    asked = table.sql('SELECT COUNT(*) FROM stays WHERE "unreadable.?" = TRUE'.replace("?", column))
    assert asked.release(epsilon=1000, fresh=True).values == (many,)


def test_texts_have_no_unreadable_values_and_the_message_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no column 'unreadable\.id'.*unreadable\.cost"):
        stays(tmp_path, ROWS).where(sf.unreadable("id")).count().release(epsilon=1)


def test_a_schema_with_cells_is_the_same_when_written_and_read() -> None:
    schema = sf.Schema.from_toml(SCHEMA)
    assert sf.Schema.from_toml(schema.to_toml()) == schema
    assert schema.cell_formats["left"] == CellFormat(
        decimal=",", date="YYYY/M/D", true=("yes",), false=("no",), trim=True
    )
    plain = sf.Schema(columns=(ColumnFacts(name="id", type=Type.TEXT, cells=CellFormat()),))
    assert "cells" not in plain.to_toml()
    assert sf.Schema.from_toml(plain.to_toml()) == plain


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("[cells]\ndecimal = 1", "cells.decimal must be a text"),
        ("[cells]\nmark = ','", "cells has an unknown field 'mark'"),
        ("[cells]\ndate = 'D-M'", "cells: the form of dates"),
        ("[columns.id.cells]\ntrim = 'no'", "columns.id.cells: trim is True or False"),
    ],
)
def test_what_is_wrong_in_a_schema_is_said_with_its_place(said: str, wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        sf.Schema.from_toml(f'kind = "schema"\nversion = 1\n[columns.id]\ntype = "text"\n{said}\n')


def test_a_column_that_is_called_like_an_unreadable_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'unreadable\.n'.*another name"):
        Source(tmp_path / "a.csv", {"n": Type.WHOLE, "Unreadable.N": Type.TEXT}, cells={})
