"""What somebody sees who types a name at a prompt: short texts, no rows, and a hint where a name is wrong."""

import csv
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.spreadsheet import harmless_cell, write_csv
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.tables.table import Table

REGIONS = [f"region {number}" for number in range(12)]
SECRET = "XYZZY-4711"  # noqa: S105 - a data value that must never be shown


@pytest.fixture(scope="module")
def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=40), name="clinic")


@pytest.fixture(scope="module")
def visits(vault: sf.Vault) -> Table:
    rows = pa.table(
        {
            "id": list(range(240)),
            "region": REGIONS * 20,
            "age": [20 + number % 60 for number in range(240)],
            "note": [SECRET] * 240,
        }
    )
    return vault.table(
        rows,
        name="visits",
        version="1",
        limit=sf.Limit(groups=2, rows_per_group=3),
        keys={"region": REGIONS},
        bounds={"age": (0, 100)},
    )


@pytest.fixture(scope="module")
def counts(visits: Table) -> Release:
    return visits.group_by("region").count().release(epsilon=1)


def test_a_release_prints_as_a_small_table_with_its_charge_its_unit_and_its_limit(counts: Release) -> None:
    text = str(counts)
    assert len(text) < 1200
    assert repr(counts) == text
    lines = text.splitlines()
    assert lines[1].split() == ["region", "count", "95%", "interval"]
    (low, high), value = counts.interval()[0], counts.values[0]
    assert lines[2].split("  ")[0] == "region 0"
    assert f"{value:,}" in lines[2]
    assert lines[2].endswith(f"{low:,} to {high:,}")
    assert sum(line.startswith("region ") for line in lines[2:]) == 10
    assert "2 more" in text
    assert "spent: ε = 1\n" in text
    assert "add/remove" in text
    assert "3 rows" in lines[-1], "the line on the contribution limit"


def test_a_stored_answer_says_that_it_cost_nothing(visits: Table, counts: Release) -> None:
    again = visits.group_by("region").count().release(epsilon=1)
    assert again.values == counts.values
    assert "spent: nothing" in str(again)


def test_a_release_of_several_columns_and_one_of_chosen_values_print_too(visits: Table) -> None:
    several = str(visits.agg(n=sf.count(), age=sf.mean("age")).release(epsilon=1))
    assert several.count("95% interval") == 2
    assert "95% interval" in str(visits.median("age").release(epsilon=1)).splitlines()[1]
    median = visits.quantiles("age", ["1/2"]).release(epsilon=1)
    assert "95% interval" not in str(median).splitlines()[1]
    assert str(median["median"]).strip()


def test_what_a_steward_calls_things_cannot_move_the_cursor() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    table = vault.table(pa.table({"a": ["x"]}), name="vis\x1b[2Jits", version="1", keys={"a": ["x\x1b[2J", "区"]})
    text = str(table.group_by("a").count().release(epsilon=1))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    rows = [line for line in text.splitlines() if line.startswith(("x\\x1b", "区"))]
    assert len({len(line.encode("gbk")) for line in rows}) == 1, "Chinese signs take two places"


def test_every_thing_at_hand_has_a_short_text_without_rows(vault: sf.Vault, visits: Table, counts: Release) -> None:
    filtered = visits.where(sf.col("age") >= 65)
    held = [
        vault,
        filtered,
        filtered.group_by("region"),
        filtered.count(),
        filtered.count().preview(epsilon=1),
        counts.certificate,
        counts["count"],
        counts.figure.total() / 12,
        vault.left,
        visits.keys["region"],
        sf.col("age") >= 65,
        SigningKey.new(),
        vault.public(pa.table({"region": REGIONS}), name="places"),
    ]
    for thing in held:
        assert len(repr(thing)) < 700, type(thing)
        assert SECRET not in repr(thing)
        assert " object at 0x" not in repr(thing)
    assert "age >= 65" in repr(filtered)
    assert "age >= 65" in repr(filtered.count())
    assert "budget ε = 40" in repr(vault)
    assert repr(sf.Budget(epsilon="1/2", delta=1e-6)) == "Budget(epsilon='1/2', delta='1/1000000')"
    assert eval(repr(vault.left), {"Budget": sf.Budget}) == vault.left  # noqa: S307 - our own text
    assert len(repr(sf.Budget(epsilon=Fraction(10**60 + 1, 10**60)))) < 60


def test_names_that_are_nearly_right_are_asked_about(visits: Table, vault: sf.Vault, counts: Release) -> None:
    for wrong, right in (("groupby", "group_by"), ("avg", "mean"), ("filter", "where"), ("relase", None)):
        with pytest.raises(AttributeError, match=f"no attribute '{wrong}'") as caught:
            getattr(visits, wrong)
        assert (f"Did you mean {right!r}" in str(caught.value)) is (right is not None)
    for holder, wrong, right in ((counts, "topandas", "to_pandas"), (vault, "tabel", "table"), (sf, "Valut", "Vault")):
        with pytest.raises(AttributeError, match=f"Did you mean '{right}'"):
            getattr(holder, wrong)
    with pytest.raises(AttributeError, match="Did you mean 'release'"):
        visits.count().relase(epsilon=1)  # type: ignore[attr-defined]
    assert not hasattr(visits, "_no_such_thing")
    with pytest.raises(NotDeclared, match="Did you mean 'region'"):
        visits.group_by("regoin")
    with pytest.raises(NotDeclared, match="Did you mean 'age'"):
        visits.mean("agee")
    with pytest.raises(InvalidInput, match="Did you mean 'age'"):
        visits.where(sf.col("aeg") >= 65).count().release(epsilon=1)
    with pytest.raises(InvalidInput, match="Did you mean 'count'"):
        counts["conut"]
    for labels, right in (({"region": "regoin 1"}, "region 1"), ({"regoin": "region 1"}, "region")):
        with pytest.raises(InvalidInput, match=f"Did you mean '{right}"):
            counts.figure.at(**labels)
    with pytest.raises(AttributeError, match="Did you mean 'to_excel'"):
        counts.to_xlsx("counts.xlsx")  # type: ignore[attr-defined]
    with pytest.raises(Unsupported, match="Did you mean 'COUNT'"):
        visits.sql("SELECT CUONT(*) FROM visits")
    with pytest.raises(Unsupported, match="write AVG"):
        visits.sql("SELECT MEAN(age) FROM visits")


def test_hints_are_made_of_public_names_and_never_of_values(visits: Table) -> None:
    with pytest.raises(InvalidInput) as caught:
        visits.where(sf.col(SECRET[:-1]) == 1).count().release(epsilon=1)
    assert SECRET not in str(caught.value)


def test_a_table_of_a_release_is_written_as_csv_and_no_text_becomes_a_formula(tmp_path: Path) -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="clinic")
    names = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "plain", 'say "a, b"']
    table = vault.table(pa.table({"=k": ["plain"]}), name="visits", version="1", keys={"=k": names})
    release = table.group_by("=k").count().release(epsilon=1)
    path = release.to_csv(tmp_path / "out.csv")
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head[:2] == ["'=k", "count"]
    assert [row[0] for row in rows] == [f"'{name}" for name in names[:6]] + names[6:]
    assert [int(row[1]) for row in rows] == list(release.values), "numbers stay numbers, those below 0 too"
    assert (release - release).to_csv(tmp_path / "zero.csv").read_text(encoding="utf-8").startswith('"\'=k","count"')
    with pytest.raises(InvalidInput, match="was not written"):
        release.to_csv(tmp_path / "no folder" / "out.csv")
    assert harmless_cell("－x") == "'－x"
    numbers = write_csv(pa.table({"x": [-1.5, None]}), tmp_path / "numbers.csv").read_text(encoding="utf-8")
    assert numbers == '"x"\n-1.5\n\n'


def test_figures_print_with_as_many_digits_as_their_margin_makes_worth_reading(visits: Table) -> None:
    text = str(visits.mean("age").release(epsilon=20)["mean"])
    value = text.partition(" ")[0]
    assert 1 <= len(value.partition(".")[2]) <= 3, text
