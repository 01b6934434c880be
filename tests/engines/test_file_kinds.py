"""Files of many kinds: by their endings, in lists and by patterns; types are declared or stated, never guessed."""

import gzip
import sys
import zipfile
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.expressions import Type
from sfumato.engines.sources import CellFormat, Source
from sfumato.errors import EngineFailed, InvalidInput, MissingExtra, NotDeclared, Unsupported
from sfumato.tables.schema_draft import draft

TYPES = {"id": Type.TEXT, "n": Type.WHOLE}


def rows(data: object, types: dict[str, Type] | None = TYPES, **more: Any) -> list[Any]:
    with Source(data, types, **more).opened() as table:
        return sorted(map(tuple, (row.values() for row in table.to_pyarrow().to_pylist())), key=repr)


def csv_files(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "a-1.csv").write_text("id,n\na,1\n")
    (folder / "a-2.csv").write_text("n;other;id\n2;x;b\n")
    with gzip.open(folder / "deep" / "a-3.csv.gz", "wt") as file:
        file.write("id,n\nc,3\n")
    return folder


def test_a_pattern_and_a_list_are_one_table(tmp_path: Path) -> None:
    """Each file is read by its own header."""
    folder = csv_files(tmp_path)
    assert rows(folder / "a-*.csv") == [("a", 1), ("b", 2)]
    assert rows(str(folder / "**" / "*.csv.gz")) == [("c", 3)]
    assert rows([folder / "a-1.csv", folder / "a-2.csv", folder / "deep" / "a-3.csv.gz"]) == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
    ]
    pq.write_table(pa.table({"id": ["p"], "n": [7]}), folder / "p-1.parquet")
    assert rows(folder / "p-?.parquet", None) == [("p", 7)]


def test_a_file_that_joins_a_pattern_is_noticed(tmp_path: Path) -> None:
    source = Source(csv_files(tmp_path) / "a-*.csv", TYPES)
    source.columns()
    (tmp_path / "a-9.csv").write_text("id,n\nz,9\n")
    with pytest.raises(EngineFailed, match="has changed since it was first opened"), source.opened():
        pass


def test_one_file_under_two_names_and_mixed_kinds_are_refused(tmp_path: Path) -> None:
    folder = csv_files(tmp_path)
    (folder / "a-4.csv").symlink_to(folder / "a-1.csv")
    with pytest.raises(InvalidInput, match="under two names"):
        Source(folder / "a-*.csv", TYPES).columns()
    with pytest.raises(Unsupported, match=r"several kinds of them \(CSV, Parquet\)"):
        Source([folder / "a-1.csv", folder / "x.parquet"], TYPES)
    with pytest.raises(EngineFailed, match=r"no CSV file at 'none-\*\.csv'"):
        Source(folder / "none-*.csv", TYPES).columns()
    with pytest.raises(InvalidInput, match=r"sign of patterns \(\{\)"):
        Source(folder / "{a,b}.csv", TYPES)


def test_a_damaged_archive_stops_the_engine_and_quotes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"id,n\n" + b"secret,1\n" * 5000)[:-20])
    source = Source(path, TYPES)
    with pytest.raises(Exception, match=r".") as caught, source.opened() as table:
        table.to_pyarrow()
    assert "secret" not in str(caught.value)


def test_lines_of_json_are_read_by_declared_types(tmp_path: Path) -> None:
    lines = [
        '{"id": "a", "n": 5, "other": [1, 2]}',
        '{"n": "7", "id": 3}',
        '{"id": "c", "n": 1.5}',
        '{"id": null, "n": {"x": 1}}',
        '{"id": "é"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected = [("3", 7, False), ("a", 5, False), ("c", None, True), ("é", None, False), (None, None, True)]
    assert rows(tmp_path / "a.jsonl", cells={}) == sorted(expected, key=repr)
    with gzip.open(tmp_path / "b.ndjson.gz", "wt") as file:
        file.write('{"id": "z", "n": 1}\n')
    assert rows(tmp_path / "b.ndjson.gz") == [("z", 1)]


def test_arrow_files_state_their_types(tmp_path: Path) -> None:
    frame = pa.table(
        {
            "id": pa.array(["a", "b"]).dictionary_encode(),
            "n": [1, 2],
            "wide": pa.array([1, 2], pa.decimal256(60, 2)),
            "half": pa.array([1, 2], pa.float16()),
        }
    )
    feather.write_feather(frame, tmp_path / "f-1.feather")
    feather.write_feather(frame, tmp_path / "f-2.feather", compression="zstd")
    source = Source(tmp_path / "f-*.feather")
    assert source.columns() == {**TYPES, "wide": Type.OTHER, "half": Type.OTHER}
    assert rows(tmp_path / "f-*.feather") == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    feather.write_feather(frame.select(["id"]), tmp_path / "f-3.feather")
    with pytest.raises(InvalidInput, match="same columns"):
        Source(tmp_path / "f-*.feather").columns()
    (tmp_path / "torn.arrow").write_bytes((tmp_path / "f-1.feather").read_bytes()[:100])
    with pytest.raises(EngineFailed, match=r"could not open 'torn\.arrow'"):
        Source(tmp_path / "torn.arrow").columns()


STATA = {"id": Type.TEXT, "n": Type.WHOLE, "t": Type.TRUTH, "day": Type.DATE}


def stata(folder: Path) -> Path:
    days = pd.to_datetime(pd.Series(["2026-01-31", None, "1800-01-01"]))
    frame = pd.DataFrame({"id": ["a", "b", "c"], "n": [1.0, None, 2.5], "t": [1, 0, 3], "day": days})
    frame.to_stata(folder / "s.dta", convert_dates={"day": "td"}, write_index=False)
    return folder / "s.dta"


def test_a_stata_file_is_read_by_declared_types_and_no_value_stops_it(tmp_path: Path) -> None:
    path = stata(tmp_path)
    assert rows(path, STATA, cells={}) == [
        ("a", 1, True, date(2026, 1, 31), False, False, False),
        ("b", None, False, None, False, False, False),
        ("c", None, None, date(1800, 1, 1), True, True, False),
    ]
    assert rows(path, {"id": Type.TEXT, "t": Type.TEXT, "n": Type.NUMBER}) == [
        ("a", "1", 1.0),
        ("b", "0", None),
        ("c", "3", 2.5),
    ]
    with pytest.raises(InvalidInput, match=r"'s\.dta' does not have the declared columns, each once: not zip"):
        Source(path, {"zip": Type.TEXT}).columns()
    with pytest.raises(NotDeclared, match="Declare the types in a schema"):
        Source(path)


def test_a_stata_file_in_a_vault(tmp_path: Path) -> None:
    schema = sf.Schema.from_toml(draft(stata(tmp_path)).replace("# column = ", "column = ", 1))
    assert list(schema.types) == list(STATA)
    assert schema.unit == "id"


@pytest.mark.parametrize(("name", "package"), [("a.xlsx", "fastexcel"), ("a.sav", "pyreadstat")], ids=["Excel", "SPSS"])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(MissingExtra, match=rf"'{package}'.*sfumato\[files\]"):
        Source(tmp_path / name, TYPES).columns()


def workbook(place: Path, *more: str) -> Path:
    """The least that is a workbook of Excel: a sheet of three columns, the last of which holds days; and more rows."""
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    head = '<c t="inlineStr"><is><t>{}</t></is></c>'
    rows = [
        "".join(map(head.format, ("id", "n", "day"))),
        f'{head.format("a")}<c><v>1</v></c><c s="1"><v>46053</v></c>',  # days since the end of 1899
        f"{head.format('b')}{head.format('x')}",
        *more,
    ]
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kinds}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{relations}/styles" Target="styles.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{sheets}" xmlns:r="{relations}"><sheets>'
        '<sheet name="one" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/styles.xml": f'<styleSheet xmlns="{sheets}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{sheets}"><sheetData>'
        f"{''.join(f'<row>{row}</row>' for row in rows)}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(place, "w") as packed:
        for name, text in parts.items():
            packed.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return place


def test_excel_itself(tmp_path: Path) -> None:
    found = rows(workbook(tmp_path / "a.xlsx"), {**TYPES, "day": Type.DATE}, cells={})
    assert found == [("a", 1, date(2026, 1, 31), False, False), ("b", None, None, True, False)]


def test_cells_of_excel_are_texts_with_a_declared_form(tmp_path: Path) -> None:
    row = '<c t="inlineStr"><is><t>c</t></is></c><c t="inlineStr"><is><t>1.000</t></is></c>'
    form = CellFormat(decimal=",", thousands=".")
    found = rows(workbook(tmp_path / "a.xlsx", row), TYPES, cells={"n": form})
    assert found == [("a", 1, False), ("b", None, True), ("c", 1000, False)]


@pytest.mark.parametrize("cell", ['<c t="e"><v>#SPILL!</v></c>', '<c t="s"><v>99</v></c>', '<c t="odd"><v>1</v></c>'])
def test_no_cell_of_excel_shows_before_the_charge(tmp_path: Path, cell: str) -> None:
    """What its reader cannot read is met after the charge: the names are those of the first row alone."""
    place = workbook(tmp_path / "a.xlsx", f'<c t="inlineStr"><is><t>c</t></is></c>{cell}')
    assert set(Source(place, TYPES).columns()) == {"id", "n"}
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10), name="books")
    schema = sf.Schema.from_toml(draft(place).replace("# column = ", "column = ", 1))
    one = sf.Limit(groups=1, rows_per_group=1)
    table = vault.table(place, name="book", version="1", schema=schema, limit=one)
    try:
        table.count().release(epsilon=1)
    except EngineFailed:
        assert vault.spent.epsilon == 1
    assert vault.spent.epsilon == 1


def test_the_first_row_of_excel_may_share_its_texts(tmp_path: Path) -> None:
    sheets = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    place = workbook(tmp_path / "a.xlsx")
    with zipfile.ZipFile(place) as packed:
        held = {name: packed.read(name).decode() for name in packed.namelist()}
    sheet = held["xl/worksheets/sheet1.xml"]
    for number, name in enumerate(("id", "n", "day")):
        sheet = sheet.replace(f'<c t="inlineStr"><is><t>{name}</t></is></c>', f'<c t="s"><v>{number}</v></c>', 1)
    texts = "".join(f"<si><r><t>{name}</t></r></si>" for name in ("id", "n", "day"))
    held |= {"xl/worksheets/sheet1.xml": sheet, "xl/sharedStrings.xml": f'<sst xmlns="{sheets}">{texts}</sst>'}
    with zipfile.ZipFile(place, "w") as packed:
        for name, text in held.items():
            packed.writestr(name, text)
    assert set(Source(place, {**TYPES, "day": Type.DATE}).columns()) == {"id", "n", "day"}


def test_spss_itself(tmp_path: Path) -> None:
    import pyreadstat

    pyreadstat.write_sav(pd.DataFrame({"id": ["a", "b"], "n": [1.0, 2.5]}), str(tmp_path / "a.sav"))
    assert rows(tmp_path / "a.sav", TYPES, cells={}) == [("a", 1, False), ("b", None, True)]


@pytest.mark.parametrize(
    ("name", "way"), [("a.json", r"\.jsonl"), ("a.xls", r"\.xlsx"), ("a.zip", r"\.csv\.gz"), ("a.rds", "write_parquet")]
)
def test_another_kind_of_file_is_refused_with_the_way_out(name: str, way: str) -> None:
    with pytest.raises(Unsupported, match=rf"'{name}' is not a Parquet file.*nothing was done\. .*{way}"):
        Source(name, TYPES)


# ------------------------------------------------------------------------------------------------------------ frames


def odd() -> pd.DataFrame:
    return pd.DataFrame({"id": ["a", "b"], "mixed": [1, "x"], "complex": [1j, 2], "n": [1, 2]})


def test_a_column_that_nobody_asks_for_may_be_what_it_likes() -> None:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**4), name="odd")
    limit = sf.Limit(groups=1, rows_per_group=1)
    table = vault.table(odd(), name="odd", version="1", limit=limit)
    assert table.count().release(epsilon=1000).values == (2,)
    with pytest.raises(
        Unsupported, match="column 'mixed' has a type that is not supported, or values of several types"
    ):
        table.where(sf.col("mixed") == "x").count().release(epsilon=1)
    assert rows(odd(), TYPES) == [("a", 1), ("b", 2)]


def test_a_column_that_is_declared_and_has_no_one_type_is_named_with_the_way_out() -> None:
    source = Source(odd(), {"id": Type.TEXT, "mixed": Type.TEXT})
    with pytest.raises(InvalidInput, match=r"column 'mixed' .* several types.* Give the column one of the types"):
        source.columns()


SPSS_SECONDS = 86_400 * (date(2022, 5, 6) - date(1582, 10, 14)).days


@pytest.mark.parametrize("form", ["DATE11", "DATETIME20"])
@pytest.mark.parametrize("odd", [0.0, 1e13, -1e300, 1e300, float(SPSS_SECONDS)])
def test_no_date_of_spss_changes_another(tmp_path: Path, form: str, odd: float) -> None:
    import pyreadstat

    frame = pd.DataFrame({"id": ["a", "b"], "d": [SPSS_SECONDS + 1, odd]})
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_format={"d": form})
    (first, second) = rows(tmp_path / "a.sav", {"id": Type.TEXT, "d": Type.DATE})
    assert first == ("a", date(2022, 5, 6))
    expected = {0.0: date(1582, 10, 14), float(SPSS_SECONDS): date(2022, 5, 6)}.get(odd)
    assert second == ("b", expected)
    (timed, _) = rows(tmp_path / "a.sav", {"id": Type.TEXT, "d": Type.TIME})
    assert timed == ("a", datetime(2022, 5, 6, 0, 0, 1))


@pytest.mark.parametrize("odd", [1e7, -1e9, 1e16, 22_000])
@pytest.mark.parametrize("form", ["%td", "%tc"])
def test_no_date_of_stata_stops_the_reading(tmp_path: Path, form: str, odd: float) -> None:
    import pyreadstat

    good = 22_000.0 * (1 if form == "%td" else 86_400_000)
    frame = pd.DataFrame({"id": ["a", "b"], "d": [good, odd]})
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"), variable_format={"d": form})
    first, second = rows(tmp_path / "a.dta", {"id": Type.TEXT, "d": Type.DATE})
    assert first == ("a", date(1960, 1, 1) + timedelta(days=22_000))
    assert second[0] == "b"


def test_a_number_that_is_no_date_in_its_file_is_not_declared_one(tmp_path: Path) -> None:
    import pyreadstat

    frame = pd.DataFrame({"id": ["a"], "d": [1.0], "m": [5.0]})
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"), variable_format={"m": "%tm"})
    for name in ("d", "m"):
        with pytest.raises(InvalidInput, match="is not one of days or clocks; nothing was read and nothing was spent"):
            Source(tmp_path / "a.dta", {"id": Type.TEXT, name: Type.DATE}).columns()


@pytest.mark.parametrize("name", ["a.sav", "a.xpt"])
def test_texts_that_are_not_utf8_stop_nothing_and_stay_apart(tmp_path: Path, name: str) -> None:
    """Two persons whose names cannot be read must not become one person."""
    import pyreadstat

    write = pyreadstat.write_sav if name.endswith(".sav") else pyreadstat.write_xport
    frame = pd.DataFrame({"id": ["MQQller", "MZZller", "Müller"], "n": [1.0, 2.0, 3.0]})
    write(frame, str(tmp_path / name))
    place = tmp_path / name
    place.write_bytes(place.read_bytes().replace(b"MQQller", b"M\xfc\xfcller").replace(b"MZZller", b"M\xf6\xf6ller"))
    found = [row[0] for row in rows(place, TYPES)]
    assert len(set(found)) == 3
    assert found[2] == "Müller"
