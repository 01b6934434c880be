"""A table that is declared by a schema: its facts hold from the file to the release, for CSV and Parquet alike.

So large an ε leaves no noise: a count is wrong with probability below 1e-200.
"""

from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.tables.schema import Schema

FILE = """
kind = "schema"
version = 1
[dataset]
name = "visits"
version = "2026-10"
[unit]
column = "id"
number = 3
[limit]
groups = 2
rows_per_group = 1
[columns.id]
type = "whole"
[columns.sex]
type = "text"
keys = ["F", "M", "X"]
[columns.ward]
type = "whole"
keys = [1, 2]
[columns.sbp]
type = "number"
bounds = [80, 220]
[columns.day]
type = "date"
keys = [2026-01-31, 2026-02-01]
[columns.smoker]
type = "truth"
keys = [true, false]
"""
ROWS = pa.table(
    {
        "id": pa.array([1, 1, 1, 2, 3, None], pa.int64()),
        "sex": ["F", "F", "M", "M", None, "F"],
        "ward": pa.array([1, 1, 2, 2, 9, 1], pa.int64()),
        "sbp": pa.array([120.0, 120.0, 500.0, None, 90.5, 100.0], pa.float64()),
        "day": pa.array([date(2026, 1, 31), date(2026, 2, 1), date(2026, 2, 1), date(2026, 2, 1), None, None]),
        "smoker": pa.array([True, True, False, True, None, False], pa.bool_()),
        "note": ["", "a", "b", "c", "d", "e"],
    }
)
ADD = sf.user("id", relation="add/remove")
REPLACE = sf.user("id", relation="replace")


@pytest.fixture(params=["parquet", "csv"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / f"visits.{request.param}"
    (pyarrow.parquet.write_table if request.param == "parquet" else pyarrow.csv.write_csv)(ROWS, place)
    (tmp_path / "visits.toml").write_text(FILE, encoding="utf-8")
    return place


def vault(unit: Unit = ADD) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="clinic")


@pytest.mark.few(1)
def test_keys_limits_bounds_and_types_come_from_the_file(path: Path) -> None:
    visits = vault().table(path, schema=path.parent / "visits.toml")
    assert (visits.dataset.name, visits.dataset.edition) == ("visits", "2026-10")
    # Person 1 has two rows in F, of which one counts; the row of nobody and the one without a key do not.
    assert visits.group_by("sex").count().release(epsilon=1000).values == (1, 2, 0)
    assert visits.group_by("ward").count().release(epsilon=1000).values == (1, 2)
    assert visits.group_by("day").count().release(epsilon=1000).values == (1, 2)
    assert visits.group_by("smoker").count().release(epsilon=1000).values == (2, 1)
    total = visits.group_by("sex").sum("sbp").release(epsilon=10**5)
    # Two rows of 120 together, and one of 500, are held to what one row may be.
    assert [round(value) for value in total["sum"].values] == [220, 220, 0]
    persons = visits.sql("SELECT COUNT(DISTINCT id) AS n FROM visits").release(epsilon=10**5)
    assert round(persons["n"].values[0]) == 3


@pytest.mark.parametrize("form", [str, Path, Schema.load])
def test_a_schema_is_a_path_or_is_read_already(path: Path, form: type) -> None:
    visits = vault().table(path, schema=form(path.parent / "visits.toml"))
    assert sorted(visits.keys) == ["day", "sex", "smoker", "ward"]


def test_what_is_given_beside_it_takes_its_place(path: Path) -> None:
    visits = vault().table(
        path,
        schema=path.parent / "visits.toml",
        name="stays",
        version="2",
        limit=sf.Limit(groups=1, rows_per_group=5),
        keys={"sex": ["F"]},
        bounds={"sbp": (0, 1)},
    )
    assert (visits.dataset.name, visits.dataset.edition) == ("stays", "2")
    assert visits.keys["sex"].values == ("F",)
    assert visits.keys["ward"].values == (1, 2)
    assert visits.bounds == {"sbp": (Fraction(0), Fraction(1))}
    assert visits.group_by("sex").count().release(epsilon=1000).values == (2,)


def test_a_column_that_the_schema_leaves_out_cannot_be_asked_for(path: Path) -> None:
    visits = vault().table(path, schema=path.parent / "visits.toml")
    with pytest.raises(InvalidInput, match="no column 'note'"):
        visits.where("note = 'a'").count().release(epsilon=1)


def test_the_public_number_is_used_under_replace_alone(path: Path) -> None:
    single = FILE.replace("groups = 2", "groups = 1")
    (path.parent / "single.toml").write_text(single, encoding="utf-8")
    for unit, number in ((ADD, None), (REPLACE, 3)):
        visits = vault(unit).table(path, schema=path.parent / "single.toml")
        assert visits.mean(sf.coalesce(sf.col("sbp"), 120)).query.number == number  # type: ignore[attr-defined]
    assert vault(REPLACE).table(path, schema=path.parent / "visits.toml").n_units is None  # more than a row each


def test_a_schema_of_other_persons_or_of_none_is_refused(path: Path) -> None:
    schema = path.parent / "visits.toml"
    with pytest.raises(Refused, match="need not be the same people"):
        vault(sf.user("sex", relation="add/remove")).table(path, schema=schema)
    (path.parent / "bare.toml").write_text(FILE.replace('name = "visits"\n', ""), encoding="utf-8")
    with pytest.raises(NotDeclared, match="does not name its dataset"):
        vault().table(path, schema=path.parent / "bare.toml")


def test_under_rows_the_limit_on_persons_is_left_out(path: Path) -> None:
    rows = vault(sf.record(relation="add/remove")).table(path, schema=path.parent / "visits.toml")
    assert rows.group_by("sex").count().release(epsilon=1000).values == (3, 2, 0)


def test_a_type_that_the_file_does_not_have_is_refused_before_the_charge(path: Path) -> None:
    wrong = FILE.replace('[columns.sex]\ntype = "text"\nkeys = ["F", "M", "X"]', '[columns.sex]\ntype = "date"')
    (path.parent / "wrong.toml").write_text(wrong, encoding="utf-8")
    clinic = vault()
    visits = clinic.table(path, schema=path.parent / "wrong.toml")
    if path.suffix == ".parquet":  # a CSV file has no types of its own: what cannot be read is missing there
        with pytest.raises(sf.errors.SfumatoError, match="sex"):
            visits.count().release(epsilon=1)
        assert clinic.spent.epsilon == 0
