"""Synthetic rows on the command line: one folder, one charge, the same rows again, and honest refusals."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sfumato.cli.synthesis_options import bins_of, cells_of, names_of, workload_of
from sfumato.errors import InvalidInput
from sfumato.reports.verify import verify
from sfumato.synthesis.result import SyntheticTable

SCHEMA = """kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
{unit}
[columns.patient_id]
type = "text"
[columns.sex]
type = "text"
keys = ["F", "M"]
[columns.pregnant]
type = "truth"
keys = [true, false]
[columns."ward, code"]
type = "whole"
keys = [1, 2, 3]
[columns.day]
type = "date"
keys = ["2026-01-01", "2026-01-02"]
[columns.age]
type = "whole"
bounds = [0, 99]
[columns.died]
type = "whole"
bounds = [0, 99]
[columns.note]
type = "text"
"""
UNIT = """[unit]
column = "patient_id"
[limit]
groups = 1
rows_per_group = 1
"""
SECRET = "XYZZY-4711"  # noqa: S105 - a data value that must never be quoted
NUMBER = 400
ROWS = pa.table(
    {
        "patient_id": [f"p{place}" for place in range(NUMBER)],
        "sex": ["F", "M"] * (NUMBER // 2),
        "pregnant": [place % 10 == 0 for place in range(NUMBER)],
        "ward, code": pa.array([1 + place % 3 for place in range(NUMBER)], pa.int64()),
        "day": pa.array([["2026-01-01", "2026-01-02"][place % 2] for place in range(NUMBER)]).cast(pa.date32()),
        "age": pa.array([place % 90 for place in range(NUMBER)], pa.int64()),
        "died": pa.array([None if place % 2 else 90 for place in range(NUMBER)], pa.int64()),
        "note": [SECRET] * NUMBER,
    }
)
SMALL = ("--columns", "sex,pregnant,age", "--rows", 200, "--expected-rows", 200, "--bins", "age=4", "--epsilon", 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(ROWS, tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(SCHEMA.format(unit=UNIT), encoding="utf-8")
    (tmp_path / "rows.toml").write_text(SCHEMA.format(unit=""), encoding="utf-8")
    return tmp_path


def ask(folder: Path, *more: object, data: str = "visits.parquet", schema: str = "visits.toml") -> list[object]:
    return ["synthesize", folder / data, "--schema", folder / schema, *more]


def test_it_writes_a_folder_and_says_what_was_charged(run, folder):
    outcome = run(*ask(folder, *SMALL, "--out", folder / "partner", "--never", "sex=M,pregnant=true"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "200 synthetic rows with the columns sex, pregnant and age" in outcome.stdout
    assert "charged: ε = 2\n" in outcome.stdout
    assert "ledger: none" in outcome.stdout
    assert outcome.stdout.count("written: ") == 8
    assert SECRET not in outcome.stdout + outcome.stderr
    rows = pyarrow.parquet.read_table(folder / "partner" / "rows.parquet").to_pylist()
    assert len(rows) == 200
    assert not [row for row in rows if row["sex"] == "M" and row["pregnant"]]
    assert verify(json.loads((folder / "partner" / "certificate.json").read_text("utf-8"))).consistent


def test_programs_get_the_same_and_csv_in_one_language(run, folder):
    outcome = run(*ask(folder, *SMALL, "--out", folder / "p", "--format", "csv", "--lang", "zh", "--json"))
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert found["charged"] == {"epsilon": "2", "delta": "0"}
    assert (found["rows"], found["rows_declared"], found["columns"]) == (200, True, ["sex", "pregnant", "age"])
    assert [Path(file).name for file in found["written"]] == [
        *("rows.csv", "certificate.json", "schema.json", "quality.html", "dictionary.zh.md", "explanation.zh.txt")
    ]
    assert pyarrow.csv.read_csv(folder / "p" / "rows.csv").num_rows == 200
    assert "合成记录" in (folder / "p" / "explanation.zh.txt").read_text("utf-8")


def test_every_option_is_understood(run, folder):
    asked = (
        *("--columns", "sex,ward, code", "--columns", "pregnant,day,age,died", "--rows", 150, "--epsilon", 3),
        *("--delta", "1e-6", "--bins", "age=30,60", "--bins", "died=50,", "--missing", "died,day"),
        *("--never", "ward, code=1,2,pregnant=TRUE", "--never", "day=missing,2026-01-01,sex=F"),
        *("--at-least", "died,age", "--workload", "sex,age=2", "--workload", "ward, code,pregnant,day"),
        *("--where", "age >= 10", "--rows-per-person", 1, "--unit", "user:patient_id", "--out", folder / "p"),
    )
    outcome = run(*ask(folder, *asked, schema="rows.toml"))
    assert outcome.exit_code == 0, outcome.stderr
    rows = pyarrow.parquet.read_table(folder / "p" / "rows.parquet").to_pylist()
    assert len(rows) == 150
    assert not [row for row in rows if row["ward, code"] in (1, 2) and row["pregnant"]]
    assert not [row for row in rows if row["sex"] == "F" and str(row["day"]) != "2026-01-02"]
    assert not [row for row in rows if row["died"] is not None and row["died"] < row["age"]]
    said = json.loads((folder / "p" / "schema.json").read_text("utf-8"))
    assert [table["columns"] for table in said["measured"]][:2] == [["sex", "age"], ["ward, code", "pregnant", "day"]]
    assert said["counted"] == {"condition": "age >= 10", "limit": "each patient once"}


def test_a_preview_opens_no_file_and_writes_nothing(run, folder):
    outcome = run(*ask(folder, *SMALL, "--preview", data="absent.parquet"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "Nothing was read or spent." in outcome.stdout
    assert "sex × pregnant: 4 cells" in outcome.stdout
    assert "protected: user (patient_id), add/remove" in outcome.stdout
    found = json.loads(run(*ask(folder, *SMALL, "--preview", "--json")).stdout)
    assert found["spend"] == {"epsilon": "2", "delta": "0"}
    assert found["cells"] == sum(table["cells"] for table in found["tables"])
    assert found["rows"] == 200
    assert sorted(file.name for file in folder.iterdir()) == ["rows.toml", "visits.parquet", "visits.toml"]


def test_rows_are_protected_where_that_is_said(run, folder):
    outcome = run(*ask(folder, *SMALL, "--unit", "record", "--out", folder / "p", schema="rows.toml"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "whoever has several rows is protected less" in outcome.stdout


def test_the_same_command_gives_the_stored_answer_and_the_same_rows(run, here):
    pyarrow.parquet.write_table(ROWS, here / "visits.parquet")
    (here / "visits.toml").write_text(SCHEMA.format(unit=UNIT), encoding="utf-8")
    outcomes = [
        run(*ask(here, *SMALL, "--epsilon", "1/2", "--account", "hospital/oncology", "--out", here / name))
        for name in ("one", "two")
    ]
    assert [outcome.exit_code for outcome in outcomes] == [0, 0], [outcome.stderr for outcome in outcomes]
    first, second = (outcome.stdout for outcome in outcomes)
    assert "charged: ε = 1/2\n" in first
    assert "charged: nothing, this is the stored answer" in second
    assert "ledger: hospital/oncology, which may still ask for ε = 3/2" in first
    assert "ledger: hospital/oncology, which may still ask for ε = 3/2" in second
    one, two = ({file.name: file.read_bytes() for file in (here / name).iterdir()} for name in ("one", "two"))
    assert one == two
    refused = run(*ask(here, *SMALL, "--out", here / "three"))
    assert refused.exit_code == 1
    assert "there is a ledger" in refused.stderr


def test_where_files_cannot_be_written_the_charge_is_told(run, folder, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise InvalidInput("partner cannot be written: No space left on device. Nothing was written.")

    monkeypatch.setattr(SyntheticTable, "write", full)
    outcome = run(*ask(folder, *SMALL, "--out", folder / "partner"))
    assert outcome.exit_code == 1
    assert "charged: ε = 2" in outcome.stdout
    assert "written: " not in outcome.stdout
    assert "No space left" in outcome.stderr


WRONG = [
    (("--out", "nowhere/partner"), "there is no folder"),
    (("--out", "visits.toml"), "is not a folder"),
    (("--out", "."), "not an empty folder"),
    ((), "nobody said where"),
    (("--out", "p", "--preview"), "a preview has nothing to write"),
    (("--out", "p", "--columns", "sx"), "Did you mean 'sex'?"),
    (("--out", "p", "--columns", "note"), "needs keys or bounds"),
    (("--out", "p", "--bins", "age"), "is not of the form"),
    (("--out", "p", "--bins", "ages=4"), "Did you mean 'age'?"),
    (("--out", "p", "--bins", "age="), "empty edge"),
    (("--out", "p", "--bins", "age=3,,4"), "empty edge"),
    (("--out", "p", "--bins", "age=x"), "neither how many bins"),
    (("--out", "p", "--bins", "age=-5"), "neither how many bins"),
    (("--out", "p", "--bins", "age=20,500"), "bounds 0 to 99"),
    (("--out", "p", "--bins", "age=2026-13-01,"), "is not a day"),
    (("--out", "p", "--bins", "age=2026-01-01,"), "must be numbers"),
    (("--out", "p", "--bins", "sex=3"), "has keys and no bounds"),
    (("--out", "p", "--bins", "died=3"), "none of the columns"),
    (("--out", "p", "--missing", "died"), "none of the columns"),
    (("--out", "p", "--never", "sex=M"), "does not name two columns"),
    (("--out", "p", "--never", "sex"), "is not of the form"),
    (("--out", "p", "--never", "sex=X,pregnant=true"), "it has F, M"),
    (("--out", "p", "--never", "sex=F,sex=M"), "twice"),
    (("--out", "p", "--never", "sex=M,age=3"), "takes columns with keys"),
    (("--out", "p", "--never", "sex=missing,pregnant=true"), "does not have"),
    (("--out", "p", "--never", 'sex="M"x,pregnant=true'), "goes on after a quote"),
    (("--out", "p", "--never", "sex=F,M,pregnant=true,false"), "no row keeps"),
    (("--out", "p", "--at-least", "age"), "does not name two columns"),
    (("--out", "p", "--at-least", "age,sex"), "two columns with bins"),
    (("--out", "p", "--workload", "sex,age=x"), "is not a number"),
    (("--out", "p", "--workload", "sex,age=0"), "above 0"),
    (("--out", "p", "--workload", "sex,age", "--workload", "sex,age"), "twice"),
    (("--out", "p", "--where", "agee > 3"), "no column 'agee'"),
    (("--out", "p", "--epsilon", "0"), "above 0"),
    (("--out", "p", "--account", "a/b", "--ledger", "none.toml"), "ledger"),
    (("--out", "p", "--purpose", "research"), "go with the account"),
    (("--out", "p", "--unit", "record"), "would protect single rows"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=lambda given: " ".join(given) if type(given) is tuple else "")
def test_what_makes_no_sense_is_refused_before_anything_is_read(run, folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    asked = [] if "--columns" in words else ["--columns", "sex,pregnant,age"]
    spend = [] if "--epsilon" in words else ["--epsilon", "1"]
    outcome = run(*ask(folder, *asked, *spend, *words))
    assert outcome.exit_code == 1, outcome.stdout
    assert said in outcome.stderr
    assert "othing was" in outcome.stderr
    assert SECRET not in outcome.stderr
    assert not (folder / "p").exists()


def test_options_are_read_as_they_are_meant():
    known = ["a", "a,b", "b=c", "b"]
    assert names_of("a,b,a", known, "--columns") == ["a,b", "a"]
    assert names_of(" a , b", ["a", "b"], "--columns") == ["a", "b"]
    assert bins_of(["b=c=4"], known) == {"b=c": 4}
    assert bins_of(["a=0.5,1/3"], known) == {"a": ["0.5", "1/3"]}
    assert workload_of(["a,b,b=3"], known) == {("a,b", "b"): "3"}
    assert cells_of('a=x=1,"y,z",b=t', ["a", "b"]) == {"a": ["x=1", "y,z"], "b": ["t"]}
    with pytest.raises(InvalidInput, match="twice"):
        bins_of(["a=2", "a=3"], known)
