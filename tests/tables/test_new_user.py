"""What somebody stumbled over who came with a CSV file of hospital stays, and what the messages say now."""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.inference import quantile
from sfumato.tables.table import Table

SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "stays"
version = "1"
[unit]
column = "person"
[limit]
groups = 3
rows_per_group = 3
[cells]
decimal = ","
true = ["yes"]
false = ["no"]
[columns.person]
type = "whole"
[columns."age group"]
type = "text"
keys = ["young", "old"]
[columns.days]
type = "number"
bounds = [0, 20]
[columns.readmitted]
type = "truth"
"""


@pytest.fixture
def stays(tmp_path: Path) -> Table:
    rows = (f"{i};{'young' if i % 2 else 'old'};{i % 9},5;{'yes' if i % 4 == 0 else 'no'}" for i in range(800))
    (tmp_path / "stays.csv").write_text("\n".join(["person;age group;days;readmitted", *rows]), encoding="utf-8")
    vault = sf.Vault(unit=sf.user("person", relation="add/remove"), budget=sf.Budget(epsilon=5000), name="stays")
    return vault.table(tmp_path / "stays.csv", schema=sf.Schema.from_toml(SCHEMA))


def test_a_rate_of_a_column_of_truth_values_needs_its_name_alone(stays: Table) -> None:
    # ε = 1000 leaves no noise: another share than 1/2 and 0 has a probability below 1e-200.
    rates = stays.group_by("age group").proportion("readmitted").release(epsilon=1000)
    assert [round(float(rate), 3) for rate in rates["proportion"].values] == [0, 0.5]
    text = 'SELECT "age group", AVG("readmitted" = TRUE) AS rate FROM stays GROUP BY "age group"'
    assert stays.sql(text).release(epsilon=1000)["rate"].values == pytest.approx([0, 0.5], abs=1e-3)


def test_refusals_name_the_way_out(stays: Table) -> None:
    with pytest.raises(NotDeclared, match=r"sf\.proportion\('readmitted'\), in SQL AVG\(\"readmitted\" = TRUE\)"):
        stays.mean("readmitted")
    with pytest.raises(InvalidInput, match="in SQL, TRUE or FALSE"):
        stays.sql("SELECT COUNT(*) FROM stays WHERE readmitted = 'yes'").release(epsilon=1)
    with pytest.raises(InvalidInput, match='double quotes, "age group"'):
        stays.sql("SELECT COUNT(*) FROM stays WHERE age group = 'old'")
    with pytest.raises(InvalidInput, match=r"where\(condition\)\.count\(\) counts the rows"):
        stays.agg(bad=sf.unreadable("days"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="or the name of a column of truth values"):
        stays.proportion(3)  # type: ignore[arg-type]


def test_a_median_has_an_interval_also_by_counts(stays: Table) -> None:
    ((low, high),) = stays.median("days").release(epsilon=1000)["median"].interval(of="data")
    assert low <= 4.5 <= high
    with pytest.raises(Unsupported, match=r"sfumato\.inference\.quantile"):
        stays.quantiles("days", ["1/2"]).release(epsilon=1)["median"].interval()
    counts = stays.group_by(days=sf.col("days").floor()).count().release(epsilon=1000)
    assert quantile(counts, 0.5).interval(of="data") == [(4, 4)]
