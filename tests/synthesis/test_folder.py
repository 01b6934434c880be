"""The folder for whoever gets synthetic rows: whole or not at all, harmless to open, and of the release alone."""

import csv
import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.reports.verify import verify
from sfumato.synthesis.folder import write_folder
from sfumato.synthesis.result import SyntheticTable
from sfumato.tables import Table

SPEND = {"epsilon": 4, "delta": "1/1000000"}
NAMES = [
    *("rows.parquet", "certificate.json", "schema.json", "quality.html"),
    *("dictionary.en.md", "explanation.en.txt", "dictionary.zh.md", "explanation.zh.txt"),
]
KEYS: dict[str, Any] = {"sex": ["F", "M"], "ward": ["A", "B", "C"], "pregnant": [True, False]}
BOUNDS: dict[str, Any] = {
    "age": (0, 99),
    "died": (0, 99),
    "weight": (2.5, 120),
    "admitted": (date(2026, 1, 1), date(2026, 12, 31)),
}
SECRET = "XYZZY-4711"  # noqa: S105 - a value of the data that must stand in no file


def people(number: int = 2_000, *, other: bool = False) -> pa.Table:
    """Rows; the other ones have other values, types, holes, an order of their own, and much beyond the declarations."""
    ages = [(7 * place) % 100 for place in range(number)]
    rows = {
        "sex": ["FM"[place % 2] for place in range(number)],
        "ward": ["ABC"[age // 34] for age in ages],
        "pregnant": [place % 10 == 0 for place in range(number)],
        "age": pa.array(ages, pa.int64()),
        "died": pa.array([None if age < 50 else age for age in ages], pa.int64()),
        "weight": [40 + age / 2 for age in ages],
        "admitted": [date(2026, 1 + place % 12, 1 + place % 28) for place in range(number)],
    }
    if other:
        rows |= {
            "ward": [SECRET if place % 3 else None for place in range(number)],
            "age": pa.array([-500 + place for place in range(number)], pa.int16()),
            "died": pa.array([98765] * number, pa.int32()),
            "weight": pa.array([31415.0] * number, pa.float64()),
            "admitted": [date(1931, 4, 17)] * number,
        }
    return pa.table(rows)


def declared(rows: pa.Table) -> Table:
    budget = sf.Budget(epsilon=1_000, delta="1/1000000")
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="trial")
    return vault.table(rows, name="patients", version="1", keys=KEYS, bounds=BOUNDS)


ASKED: dict[str, Any] = {
    "columns": ["sex", "ward", "pregnant", "age", "died", "weight", "admitted"],
    "rows": 600,
    "bins": {"age": 5, "died": [20, 40, 60, 80], "weight": 4, "admitted": 6},
    "missing": ["died", "ward"],
    "never": [{"sex": "M", "pregnant": True}, {"ward": ["A", None], "pregnant": [True]}],
    "at_least": [("died", "age")],
}


@pytest.fixture(scope="module")
def made() -> SyntheticTable:
    return declared(people()).synthesize(**ASKED, **SPEND)


def test_the_folder_holds_rows_certificate_schema_dictionary_and_explanation(
    made: SyntheticTable, tmp_path: Path
) -> None:
    written = made.write(tmp_path / "partner")
    assert [file.name for file in written] == NAMES
    assert sorted(file.name for file in (tmp_path / "partner").iterdir()) == sorted(NAMES)
    assert list(tmp_path.iterdir()) == [tmp_path / "partner"]
    assert parquet.read_table(written[0]).equals(made.rows)
    assert verify(json.loads(written[1].read_text("utf-8"))).consistent
    assert written[5].read_text("utf-8").startswith(made.explain())
    chosen = made.write(tmp_path / "csv", format="csv", languages=["zh"])
    assert [file.name for file in chosen] == [
        *("rows.csv", "certificate.json", "schema.json", "quality.html", "dictionary.zh.md", "explanation.zh.txt")
    ]


def test_the_schema_says_what_was_declared_and_every_row_meets_it(made: SyntheticTable, tmp_path: Path) -> None:
    rows, _, file, *_ = made.write(tmp_path / "partner")
    found = json.loads(file.read_text("utf-8"))
    assert found["hash"] == f"sha256:{hashlib.sha256(rows.read_bytes()).hexdigest()}"
    assert found["bytes"] == rows.stat().st_size
    assert found["release"] == made.release.statement.identifier
    assert found["rows"]["number"] == 600
    fields = {field["name"]: field for field in found["schema"]["fields"]}
    assert list(fields) == ASKED["columns"]
    assert [field["type"] for field in fields.values()] == [
        *("string", "string", "boolean", "integer", "integer", "number", "date")
    ]
    assert fields["ward"]["constraints"] == {"required": False, "enum": ["A", "B", "C"]}
    assert fields["age"]["bins"][0] == {"least": 0, "most": 19}
    assert fields["admitted"]["constraints"] == {"required": True, "minimum": "2026-01-01", "maximum": "2026-12-31"}
    assert found["rules"]["at_least"] == [["died", "age"]]
    assert found["rules"]["never"] == [
        {"sex": ["M"], "pregnant": [True]},
        {"ward": ["A", None], "pregnant": [True]},
    ]
    for name, field in fields.items():
        column, holds = made.rows[name], field["constraints"]
        assert not holds["required"] or column.null_count == 0
        values = set(column.drop_null().to_pylist())
        if "enum" in holds:
            assert values <= set(holds["enum"])
        else:
            ends = [str(end) if isinstance(end, date) else end for end in (min(values), max(values))]
            assert holds["minimum"] <= ends[0] <= ends[1] <= holds["maximum"]


def test_the_dictionary_says_of_each_column_what_it_is_and_what_is_not_kept(
    made: SyntheticTable, tmp_path: Path
) -> None:
    files = made.write(tmp_path / "partner")
    english, chinese = (file.read_text("utf-8") for file in files if file.name.startswith("dictionary"))
    for text in (english, chinese):
        assert [f"### `{name}`" in text for name in ASKED["columns"]] == [True] * 7
    assert english.count("Not kept: ") == 7
    assert chinese.count("没有保留：") == 7
    assert "Bins, with both ends: 0 to 19, 20 to 39, 40 to 59, 60 to 79 and 80 to 99." in english
    assert "2026-01-01 to 2026-03-02" in english
    assert english.count("an empty cell says") == 2
    assert "`sex` is not `M` where `pregnant` is true." in english
    assert "`ward` is not `A` or empty where `pregnant` is true." in english
    assert "`died` 不小于 `age`。" in chinese


def test_columns_that_were_measured_alone_say_so_and_conditions_are_told(tmp_path: Path) -> None:
    table = declared(people()).where("age >= 65")
    made = table.synthesize(["sex", "ward", "age"], workload=[["sex", "ward"]], bins={"age": [70]}, rows=50, **SPEND)
    _, _, schema, _, words, explanation = made.write(tmp_path / "partner", languages=["en"])
    assert words.read_text("utf-8").count("How it goes together with other columns was not measured.") == 1
    assert "with `ward`; the noise" in words.read_text("utf-8")
    assert "No rules were declared." in words.read_text("utf-8")
    for file in (words, explanation):
        assert "rows with `age >= 65` count" in file.read_text("utf-8")
    assert json.loads(schema.read_text("utf-8"))["counted"]["condition"] == "age >= 65"


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_every_file_is_a_function_of_the_release_and_what_was_declared(
    made: SyntheticTable, tmp_path: Path, form: str
) -> None:
    """Other data with other types, holes, extremes and undeclared values: the same release gives the same bytes."""
    elsewhere = declared(people(37, other=True)).synthesis(**ASKED)
    again = elsewhere.made(made.release, made.quality.reason)
    one, two = made.write(tmp_path / "one", format=form), again.write(tmp_path / "two", format=form)
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_no_value_of_the_data_and_no_clock_is_in_the_files(tmp_path: Path) -> None:
    columns = ["ward", "age", "admitted"]
    made = declared(people(300, other=True)).synthesize(columns, bins={"age": 3, "admitted": 3}, rows=60, **SPEND)
    for form in ("parquet", "csv"):
        for file in made.write(tmp_path / form, format=form):
            content = file.read_bytes()
            assert [word for word in (SECRET, "1931-04-17") if word.encode() in content] == []
    stored = parquet.ParquetFile(tmp_path / "parquet" / "rows.parquet")
    assert set(stored.schema_arrow.metadata) == {b"sfumato.release"}
    assert set(stored.metadata.metadata) == {b"sfumato.release", b"ARROW:schema"}
    for place in range(stored.metadata.num_columns):  # what statistics say is of the rows in the file
        said, column = stored.metadata.row_group(0).column(place).statistics, made.rows.column(place)
        assert said.null_count == column.null_count
        ends = pc.min_max(column).as_py()
        assert (said.min, said.max) == (ends["min"], ends["max"])


NASTY = [
    "=1+1",
    "+2",
    "-3",
    "@sum",
    "a\nb",
    "a\r\n# b",
    "`",
    "``x`",
    "<script>alert(1)</script>",
    "[a](b)",
    "a|b",
    " pad ",
]


def test_names_and_values_do_nothing_where_they_are_opened(tmp_path: Path) -> None:
    name = "=cmd|' /C calc'!A0\n# heading"
    rows = pa.table({name: [NASTY[place % len(NASTY)] for place in range(400)], "x|`y`": ["F", "M"] * 200})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    table = vault.table(rows, name="a*b\n# c <i>", version="1", keys={name: NASTY, "x|`y`": ["F", "M"]})
    made = table.synthesize(epsilon=5, rows=300)
    files = {file.name: file for file in made.write(tmp_path / "csv", format="csv")}
    with files["rows.csv"].open(encoding="utf-8", newline="") as opened:
        header, *cells = list(csv.reader(opened))
    assert len(cells) == 300
    for cell in (*header, *(cell for row in cells for cell in row)):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    schema = json.loads(files["schema.json"].read_text("utf-8"))
    assert [field["name"] for field in schema["schema"]["fields"]] == header
    assert {cell for cell, _ in cells} <= set(schema["schema"]["fields"][0]["constraints"]["enum"])
    for language, said in (("en", "apostrophe"), ("zh", "撇号")):
        text = files[f"dictionary.{language}.md"].read_text("utf-8")
        assert said in text
        lines = text.splitlines()
        headings = [line for line in lines if line.startswith("#")]
        assert len(headings) == 5  # the title, two parts, two columns
        assert "<script>" not in text.replace("`<script>alert(1)</script>`", "")
        assert "[a](b)" not in text.replace("`[a](b)`", "")
        assert "<i>" not in text
    plain = made.write(tmp_path / "parquet", languages=["en"])
    assert parquet.read_table(plain[0]).column_names == [name, "x|`y`"]
    assert "apostrophe" not in plain[3].read_text("utf-8")


def test_nothing_is_overwritten_and_nothing_is_left_half_written(
    made: SyntheticTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "partner"
    target.mkdir()
    made.write(target)  # an empty folder is as good as a new one
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    with pytest.raises(InvalidInput, match="not an empty folder; nothing was written"):
        made.write(target, format="csv")
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before
    (tmp_path / "file").write_text("mine", "utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("file", "link"):
        with pytest.raises(InvalidInput, match="is not a folder"):
            made.write(tmp_path / name)
    with pytest.raises(InvalidInput, match="there is no folder"):
        made.write(tmp_path / "no" / "where")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.synthesis.folder.dictionary", full)
    with pytest.raises(InvalidInput, match=r"No space left on device\. Nothing was written"):
        made.write(tmp_path / "broken")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "link", "partner"]


def test_what_makes_no_sense_is_refused(made: SyntheticTable, tmp_path: Path) -> None:
    for given, words in (
        ({"format": "excel"}, "parquet or csv"),
        ({"languages": ["fr"]}, "en and zh"),
        ({"languages": []}, "en and zh"),
        ({"languages": "en"}, "en and zh"),
        ({"languages": 5}, "en and zh"),
        ({"languages": [["en"]]}, "en and zh"),
    ):
        with pytest.raises(InvalidInput, match=words):
            made.write(tmp_path / "partner", **given)  # type: ignore[arg-type]  # some are wrong on purpose
    bare = SyntheticTable(release=made.release, rows=made.rows, quality=made.quality)
    with pytest.raises(InvalidInput, match="without the facts"):
        write_folder(bare, tmp_path / "partner")
    assert list(tmp_path.iterdir()) == []


def test_a_preview_says_what_would_be_measured_and_reads_nothing() -> None:
    table = declared(people(5))
    asked = table.synthesis(["sex", "ward", "age"], bins={"age": 4}, expected_rows=2_000)
    found = asked.preview(**SPEND)
    plan = asked.plan(**SPEND)
    assert found.reason == plan.reason
    assert [each.columns for each in found.marginals] == [
        tuple(("sex", "ward", "age")[place] for place in some) for some in plan.tables
    ]
    made = declared(people()).synthesize(["sex", "ward", "age"], bins={"age": 4}, expected_rows=2_000, **SPEND)
    assert [each.noise for each in found.marginals] == pytest.approx([each.noise for each in made.quality.marginals])
    assert [each.cells for each in found.marginals] == [each.cells for each in made.quality.marginals]
    assert found.cells == sum(each.cells for each in found.marginals)
    assert "Nothing was read or spent." in str(found)
    assert "2,000 rows" in str(found)
    unknown = table.synthesis(["sex", "ward"]).preview(**SPEND)
    assert unknown.marginals[0].predicted_error is None
    assert "was not said" in str(unknown)
    assert "… and " in str(table.synthesis(expected_rows=100_000).preview(epsilon=1))
    assert "above 100%" in str(table.synthesis(["sex", "ward"], expected_rows=5).preview(epsilon="1/1000"))


def test_edges_are_of_the_kind_that_bounds_are() -> None:
    table = declared(people(5))
    for bins, words in (
        ({"age": [date(2026, 1, 1)]}, "must be numbers"),
        ({"admitted": [738_000]}, "must be dates"),
        ({"sex": 3}, "has keys and no bounds"),
    ):
        with pytest.raises(InvalidInput, match=words):
            table.synthesis(list(bins), bins=bins)  # type: ignore[arg-type]  # wrong on purpose
