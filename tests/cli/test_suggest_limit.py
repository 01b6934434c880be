"""A limit for planned questions, from the command line."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

SCHEMA = """kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
[unit]
column = "id"
[columns.id]
type = "whole"
[columns.place]
type = "text"
keys = ["north", "south"]
"""


@pytest.fixture
def asked(tmp_path: Path) -> list[object]:
    ids = [person for person in range(90) for _ in range(1 if person < 60 else 3)]
    rows = pa.table({"id": pa.array(ids, pa.int64()), "place": ["north"] * len(ids)})
    pyarrow.parquet.write_table(rows, tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(SCHEMA, encoding="utf-8")
    return ["suggest-limit", tmp_path / "visits.parquet", "--schema", tmp_path / "visits.toml"]


def test_it_prints_the_limit_and_what_was_charged(run, asked):
    # ε = 1000 leaves no noise; fewer than 4 persons have more than three rows.
    outcome = run(*asked, "--planned", "1", "--most", "16", "--epsilon", "1000")
    assert outcome.exit_code == 0, outcome.stderr
    assert [line.split() for line in outcome.stdout.splitlines()[:2]] == [["rows"], ["3"]]
    assert "charged: ε = 1000\n" in outcome.stdout


def test_programs_get_groups_and_rows(run, asked):
    outcome = run(*asked, "--planned", "1", "--planned", "1/2", "--by", "place", "--epsilon", "1000", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    columns = json.loads(outcome.stdout)["columns"]
    assert [columns[name]["values"] for name in ("groups", "rows_per_group")] == [[1], [3]]


def test_a_picture_is_refused_before_anything_is_spent(run, asked, tmp_path):
    outcome = run(*asked, "--planned", "1", "--epsilon", "1", "--plot", tmp_path / "limit.svg")
    assert outcome.exit_code == 1
    assert "nothing was read and nothing was spent" in " ".join(outcome.stderr.split())


def test_single_rows_have_no_limit(run, asked, tmp_path):
    (tmp_path / "visits.toml").write_text(SCHEMA.replace('[unit]\ncolumn = "id"\n', ""), encoding="utf-8")
    outcome = run(*asked, "--planned", "1", "--epsilon", "1", "--unit", "record")
    assert outcome.exit_code == 1
    assert "is not one person" in " ".join(outcome.stderr.split())
