"""Files of many kinds: by their endings, in lists and by patterns; types are declared or stated, never guessed."""

import gzip
import sys
import zipfile
from datetime import date
from pathlib import Path
from types import SimpleNamespace
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


def test_the_cells_of_excel_are_texts_with_a_declared_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package: what it must give is a column of texts for each column that is asked for."""
    names = ["note", "id", "n"]
    frame = pa.table({"note": ["x", "y"], "id": ["a", "b"], "n": ["1.000", "ten"]})

    def load(_: int, *, n_rows: int | None = None, use_columns: Any = None, dtypes: str | None = None) -> Any:
        assert n_rows == 0 or dtypes == "string"
        columns = [SimpleNamespace(name=name) for name in names]
        return SimpleNamespace(
            available_columns=lambda: columns, to_arrow=lambda: frame.select(use_columns).to_batches()[0]
        )

    stand_in = SimpleNamespace(read_excel=lambda _: SimpleNamespace(load_sheet=load))
    monkeypatch.setitem(sys.modules, "fastexcel", stand_in)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    form = CellFormat(decimal=",", thousands=".")
    assert rows(tmp_path / "a.xlsx", TYPES, cells={"n": form}) == [("a", 1000, False), ("b", None, True)]


def workbook(place: Path) -> Path:
    """The least that is a workbook of Excel: a sheet of three columns, the last of which holds days."""
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    head = '<c t="inlineStr"><is><t>{}</t></is></c>'
    rows = [
        "".join(map(head.format, ("id", "n", "day"))),
        f'{head.format("a")}<c><v>1</v></c><c s="1"><v>46053</v></c>',  # days since the end of 1899
        f"{head.format('b')}{head.format('x')}",
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
