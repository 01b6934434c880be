"""Tests of a plan: declared with it, made of its releases alone, and adjusted for all that were declared."""

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.governance.ledger import Ledger
from sfumato.runner import PlanFile, Runner, tested
from sfumato.studies.multiplicity import adjusted
from tests.runner.clinic import HEAD, MONTHS, QUARTERS, SCHEMA, Clinic, fill, months

RATES = """
[releases.months]
every = "monthly"
question = "SELECT sex, AVG(cost) AS cost, COUNT(*) AS n FROM visits GROUP BY sex"
schema = "visits.toml"
data = "data/{period}.parquet"
wanted = { epsilon = 1 }
"""
TESTS = """
[tests.compare.cost]
release = "months"
column = "cost"
first = { sex = "F" }
second = { sex = "M" }
[tests.compare.number]
release = "months"
column = "n"
first = { sex = "F" }
second = { sex = "M" }
"""


@pytest.fixture
def ledger(clinic: Clinic) -> Iterator[Ledger]:
    opened = clinic.ledger()
    yield opened
    opened.close()


def adopted(clinic: Clinic, text: str) -> PlanFile:
    return clinic.adopt(text)


def carried_out(clinic: Clinic, file: PlanFile) -> list[dict[str, str]]:
    ledger = clinic.ledger()
    list(Runner.of(file, ledger).run(clinic.out))
    ledger.close()
    with (clinic.out / "tests.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def test_a_run_writes_adjusted_p_values_in_a_table_and_on_both_pages(clinic: Clinic) -> None:
    fill(clinic, *months()[:2])
    rows = carried_out(clinic, adopted(clinic, HEAD + RATES + TESTS))
    assert [(row["test"], row["period"]) for row in rows] == [
        ("cost", "2024-01"),
        ("cost", "2024-02"),
        ("number", "2024-01"),
        ("number", "2024-02"),
    ]
    assert {row["adjusted_by"] for row in rows} == {"holm"}
    assert {row["tests_in_family"] for row in rows} == {"24"}
    # The 20 tests of later months count as p = 1.
    p = [float(row["p_value"]) for row in rows] + [1.0] * 20
    assert [float(row["adjusted_p_value"]) for row in rows] == pytest.approx(list(adjusted(p)[:4]))
    by_name = {row["test"]: row for row in rows}
    assert by_name["number"]["rejected"] == "yes"  # twice as many women as men
    assert {row["declared_before"] for row in rows} == {"yes"}
    page, other = ((clinic.out / name).read_text("utf-8") for name in ("index.html", "index.zh.html"))
    assert "Holm" in page
    assert "Tests that are not made yet: 20" in page
    assert "尚未进行的检验：20 项" in other


def test_later_periods_can_only_lower_an_adjusted_p_value(clinic: Clinic) -> None:
    file = adopted(clinic, HEAD + RATES + TESTS)
    fill(clinic, months()[0])
    first = {(row["test"], row["period"]): row for row in carried_out(clinic, file)}
    fill(clinic, *months()[1:4])
    later = {(row["test"], row["period"]): row for row in carried_out(clinic, file)}
    assert len(later) == 8
    for key, row in first.items():
        assert later[key]["p_value"] == row["p_value"]
        assert float(later[key]["adjusted_p_value"]) <= float(row["adjusted_p_value"])


def test_benjamini_hochberg_and_single_periods_are_by_choice(clinic: Clinic) -> None:
    fill(clinic, *months()[:2])
    said = '[tests]\nadjust = "benjamini-hochberg"\nfamily = "period"\nalpha = 0.1\n'
    rows = carried_out(clinic, adopted(clinic, HEAD + RATES + said + TESTS))
    for month in ("2024-01", "2024-02"):
        some = [row for row in rows if row["period"] == month]
        expected = adjusted([float(row["p_value"]) for row in some], "benjamini-hochberg")
        assert [float(row["adjusted_p_value"]) for row in some] == pytest.approx(list(expected))
    assert {(row["adjusted_by"], row["alpha"], row["tests_in_family"]) for row in rows} == {
        ("benjamini-hochberg", "0.1", "2")
    }
    assert "positively dependent" in (clinic.out / "index.html").read_text("utf-8")


def test_a_decision_on_a_plan_is_one_on_its_tests(clinic: Clinic) -> None:
    without = clinic.write_plan(HEAD + RATES)
    with_tests = clinic.write_plan(HEAD + RATES + TESTS)
    other = clinic.write_plan(HEAD + RATES + "[tests]\nalpha = 0.01\n" + TESTS)
    assert len({without.digest, with_tests.digest, other.digest}) == 3
    file = adopted(clinic, HEAD + RATES + TESTS)
    changed = clinic.write_plan(HEAD + RATES + TESTS.replace('column = "n"', 'column = "cost"'))
    ledger = clinic.ledger()
    with pytest.raises(Refused, match="adopted"):
        Runner.of(changed, ledger)
    assert Runner.of(file, ledger).file.tests is not None
    ledger.close()


def test_a_plan_without_tests_has_the_digest_that_it_had_and_no_table_of_tests(clinic: Clinic) -> None:
    fill(clinic, months()[0])
    file = adopted(clinic, HEAD + RATES)
    assert '"tests"' not in (file.plan.release("months").question or "")
    ledger = clinic.ledger()
    list(Runner.of(file, ledger).run(clinic.out))
    ledger.close()
    assert not (clinic.out / "tests.csv").exists()


def test_tests_that_were_added_after_a_release_say_so(clinic: Clinic) -> None:
    fill(clinic, *months()[:2])
    file = adopted(clinic, HEAD + RATES)
    ledger = clinic.ledger()
    list(Runner.of(file, ledger).run(clinic.out))
    ledger.close()
    rows = carried_out(clinic, adopted(clinic, HEAD + RATES + TESTS))
    assert {row["declared_before"] for row in rows} == {"no"}
    assert "were not declared beforehand" in (clinic.out / "index.html").read_text("utf-8")


def test_a_correction_does_not_make_tests_declared_that_were_added_after_a_look(clinic: Clinic) -> None:
    fill(clinic, *months()[:1])
    file = adopted(clinic, HEAD + RATES)
    ledger = clinic.ledger()
    list(Runner.of(file, ledger).run(clinic.out))
    ledger.close()
    added = adopted(clinic, HEAD + RATES + TESTS)
    ledger = clinic.ledger()
    runner = Runner.of(added, ledger)
    dataset = added.entry("months").asked.dataset
    runner.record.correct(dataset, months()[0])
    ledger.close()
    rows = carried_out(clinic, added)
    assert {row["version"] for row in rows} == {"2024-01.2"}
    assert {row["declared_before"] for row in rows} == {"no"}


def test_what_was_not_declared_helps_nothing_that_was() -> None:
    """Six tests of p = 1e-6 that were added later, and one of 0.008 that was declared, of twelve."""
    p_values = [1e-6] * 6 + [0.008] + [1.0] * 5
    declared = [False] * 6 + [True] * 6
    tests = SimpleNamespace(family="plan", method="holm", alpha=Fraction(1, 20), replicates=None)
    planned = [(_Fixed(p), SimpleNamespace(label="2024-01")) for p in p_values]
    at = iter(declared)
    found = tested.tested_plan(tests, planned, lambda test, period: (None, "2024-01", next(at)))  # type: ignore[arg-type]
    adjusted = [line.adjusted for line in found.lines]
    assert adjusted[6] == pytest.approx(0.096)
    assert not found.lines[6].rejected
    assert all(each is not None and each < 0.05 for each in adjusted[:6])


class _Fixed:
    """A test whose p-value is known."""

    name = "known"

    def __init__(self, p: float) -> None:
        self.p_value, self.estimate = p, 0.0

    def result(self, release: object, replicates: object) -> "_Fixed":
        return self

    def interval(self) -> tuple[float, float]:
        return -1.0, 1.0


@pytest.mark.parametrize(
    ("tests", "error", "words"),
    [
        ("[tests]\nadjust = 'sidak'\n" + TESTS, InvalidInput, "adjust must be one of holm"),
        ("[tests]\nfamily = 'year'\n" + TESTS, InvalidInput, "family must be"),
        ("[tests]\nalpha = 1.5\n" + TESTS, InvalidInput, "alpha"),
        ("[tests]\nalpha = 'small'\n" + TESTS, InvalidInput, "alpha must be a number"),
        ("[tests]\nlevel = 0.05\n" + TESTS, InvalidInput, "unknown field 'level'"),
        ("[tests]\nalpha = 0.05\n", NotDeclared, "nothing to compare"),
        (TESTS.replace('"months"', '"month"'), InvalidInput, "must name a release of this plan.*'months'"),
        (TESTS.replace('"cost"', '"costs"'), InvalidInput, "column must be one of cost, n"),
        (TESTS.replace('sex = "F"', 'sex = "W"'), InvalidInput, "no declared key 'W'"),
        (TESTS.replace('sex = "F"', 'age = "F"'), InvalidInput, "one group, with a value of each column"),
        (TESTS.replace('sex = "F"', 'sex = "M"'), InvalidInput, "the same group"),
        (TESTS + "size = 3\n", InvalidInput, "unknown field 'size'"),
        ("[tests]\nalpha = 0.0001\n" + TESTS, Unsupported, "simulated copies each"),
    ],
)
def test_what_cannot_be_tested_is_refused_with_its_place_before_anything_is_spent(
    clinic: Clinic, tests: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=rf"(?s)tests.*{words}"):
        clinic.write_plan(HEAD + RATES + tests)


def test_several_rows_of_a_person_and_computed_releases_are_refused(clinic: Clinic) -> None:
    Path(clinic.folder / "visits.toml").write_text(SCHEMA.replace("rows_per_group = 1", "rows_per_group = 3"), "utf-8")
    with pytest.raises(Refused, match="several rows"):
        clinic.write_plan(HEAD + RATES + TESTS)
    Path(clinic.folder / "visits.toml").write_text(SCHEMA, "utf-8")
    of_quarters = '[tests.compare.n]\nrelease = "quarters"\nfirst = { sex = "F" }\nsecond = { sex = "M" }\n'
    with pytest.raises(Unsupported, match="sums out"):
        clinic.write_plan(HEAD + MONTHS + QUARTERS + of_quarters)
