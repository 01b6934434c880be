"""What a newcomer tries on the command line: a draft that finds the person, files of every kind, a wrong question."""

import csv
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from tests import parts

HEADER = "encounter_id,patient_nbr,race,time_in_hospital,admission_source_id\n1,7,A,3,2\n"
SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
[unit]
column = "id"
[limit]
groups = 1
rows_per_group = 1
[columns.id]
type = "whole"
[columns.sex]
type = "text"
keys = ["F", "M", "=x"]
[columns.came]
type = "date"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = {"id": list(range(40)), "sex": ["F", "M"] * 20, "came": pa.array([date(2026, 1, 1)] * 40, pa.date32())}
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def asked(folder: Path, sql: str, *more: object) -> tuple[object, ...]:
    return ("query", folder / "visits.parquet", sql, "--schema", folder / "visits.toml", "--epsilon", 1, *more)


def test_the_draft_offers_the_person_before_the_visit_and_reads_no_row(run: Any, tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text(HEADER, encoding="utf-8")
    text = run("schema", "draft", tmp_path / "stays.csv").stdout
    assert '# column = "patient_nbr"' in text
    assert text.index('"patient_nbr"') < text.index('"encounter_id"')


def test_an_answer_is_written_as_pdf_and_csv(run: Any, folder: Path) -> None:
    parts.package("vl_convert")
    sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
    done = run(*asked(folder, sql, "--plot", folder / "n.pdf", "--csv", folder / "n.csv"))
    assert done.exit_code == 0, done.output
    assert (folder / "n.pdf").read_bytes().startswith(b"%PDF")
    with (folder / "n.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows] == ["sex", "F", "M", "'=x"]


def test_a_useless_answer_needs_a_word(run: Any, folder: Path) -> None:
    sql = "SELECT AVG(DATE_DIFF('day', came, DATE '2026-02-01')) AS days FROM visits"
    refused = run(*asked(folder, sql))
    assert refused.exit_code != 0
    assert "--even-if-useless" in refused.stderr
    assert "nothing was spent" in refused.stderr
    paid = run(*asked(folder, sql, "--even-if-useless"))
    assert paid.exit_code == 0, paid.output
    assert "charged: ε = 1" in paid.stdout


def test_commands_options_and_columns_that_are_nearly_right_are_asked_about(run: Any, folder: Path) -> None:
    assert "'query'" in run("qurey").output
    assert "--epsilon" in run("query", "--epsilonn").output
    wrong = run(*asked(folder, "SELECT COUNT(*) AS n FROM visits WHERE sexx = 'F'"))
    assert wrong.exit_code != 0
    assert "Did you mean 'sex'?" in wrong.stderr
