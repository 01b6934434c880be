"""One odd file stops no plan: it is passed over, can be corrected, and what it cost is in the total."""

import csv
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.core.budget import Budget
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.errors import BudgetExceeded, InvalidInput, Refused
from sfumato.governance.ledger import Ledger
from sfumato.runner import Fate, PlanFile, Runner, Standing, StepOutcome, adopt
from sfumato.vault import Vault
from tests.runner.clinic import ACCOUNT, HEAD, MONTHS, PATIENT, QUARTERS, Clinic, fill, months, people_of

FAR = 60


@pytest.fixture
def ledger(clinic: Clinic) -> Iterator[Ledger]:
    opened = clinic.ledger()
    adopt(opened, clinic.write_plan(HEAD + MONTHS + QUARTERS))
    yield opened
    opened.close()


def ran(clinic: Clinic, ledger: Ledger) -> dict[str, StepOutcome]:
    """The outcomes of a run by release and label."""
    made = Runner.of(PlanFile.load(clinic.plan), ledger).run(clinic.out)
    return {f"{one.step.name} {one.step.label}": one for one in made if one.fate is not Fate.MISSING}


def damage(place: Path) -> None:
    """Rows that say what they hold and do not: the head is whole, and reading them fails."""
    body = bytearray(place.read_bytes())
    body[4:200] = b"\xff" * 196
    place.write_bytes(bytes(body))


def result(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return found


def test_a_file_that_is_not_as_its_schema_says_is_passed_over_and_costs_nothing(clinic: Clinic, ledger: Ledger) -> None:
    january, february, march = months(1, 2, 3)
    fill(clinic, january, february, march)
    whole = clinic.data(february).read_bytes()
    pq.write_table(pa.table({"patient_id": [1], "gender": ["F"], "cost": [1]}), clinic.data(february))
    found = ran(clinic, ledger)
    assert [found[f"months 2024-0{month}"].fate for month in (1, 2, 3)] == [Fate.RELEASED, Fate.FAILED, Fate.RELEASED]
    odd = found["months 2024-02"]
    assert "sex" in odd.words
    assert odd.cost.epsilon == 0
    clinic.data(february).write_bytes(whole)  # nothing was charged or read: the right file needs no word to the ledger
    again = ran(clinic, ledger)
    assert again["months 2024-02"].fate is Fate.RELEASED
    assert again["quarters 2024-Q1"].fate is Fate.COMPUTED


def test_a_damaged_file_is_charged_in_the_total_and_a_corrected_one_is_charged_anew(
    clinic: Clinic, ledger: Ledger
) -> None:
    january, february, march = months(1, 2, 3)
    fill(clinic, january, february, march)
    damage(clinic.data(february))
    ready = Runner.of(PlanFile.load(clinic.plan), ledger)
    with pytest.raises(Refused, match="nothing to correct"):
        ready.correct("visits", "2024-02")
    found = ran(clinic, ledger)
    each = ready.schedule.line("months").amount
    assert found["months 2024-02"].fate is Fate.FAILED
    assert sum(outcome.cost.epsilon for outcome in found.values()) == 3 * each == ledger.balance(ACCOUNT).epsilon_spent
    closed = ran(clinic, ledger)["months 2024-02"]
    assert closed.fate is Fate.FAILED
    assert closed.cost.epsilon == 0
    assert "sfumato plan correct" in closed.words

    fill(clinic, february)
    ready = Runner.of(PlanFile.load(clinic.plan), ledger)
    for dataset, label in (("visits", "2024-13"), ("others", "2024-02"), ("visits", "2024-Q1")):
        with pytest.raises(InvalidInput, match="releases nothing of"):
            ready.correct(dataset, label)
    version, names = ready.correct("visits", "2024-02")
    assert (version.edition, names) == ("2024-02.2", ("months",))
    steps = {step.label: step.standing for step in Runner.of(PlanFile.load(clinic.plan), ledger).steps()}
    assert steps["2024-02.2"] is Standing.DUE
    mended = ran(clinic, ledger)
    assert mended["months 2024-02.2"].fate is Fate.RELEASED
    assert mended["quarters 2024-Q1"].fate is Fate.COMPUTED
    assert ledger.balance(ACCOUNT).epsilon_spent == 4 * each
    body = result(clinic.out / "months" / "2024-02.2.json")
    told = body["columns"]["count"]["values"]
    assert all(abs(one - two) < FAR for one, two in zip(told, people_of(february), strict=True))
    assert body["dataset"]["version"] == "2024-02.2"
    assert ran(clinic, ledger) == {}


def test_a_correction_after_a_good_release_is_another_release_and_figures_follow_the_newest(
    clinic: Clinic, ledger: Ledger
) -> None:
    january, february, march = months(1, 2, 3)
    fill(clinic, january, february, march)
    ran(clinic, ledger)
    before = result(clinic.out / "quarters" / "2024-Q1.derived.json")
    rows = pq.read_table(clinic.data(march))
    pq.write_table(rows.filter(pa.compute.equal(rows["sex"], "M")), clinic.data(march))
    Runner.of(PlanFile.load(clinic.plan), ledger).correct("visits", "2024-03")
    found = ran(clinic, ledger)
    assert [outcome.fate for outcome in found.values()] == [Fate.RELEASED, Fate.COMPUTED]
    assert (clinic.out / "months" / "2024-03.json").is_file()  # what was released is not lost
    after = result(clinic.out / "quarters" / "2024-Q1.derived.json")
    women, _ = people_of(march)
    fell = before["columns"]["count"]["values"][0] - after["columns"]["count"]["values"][0]
    assert abs(fell - women) < FAR
    assert [part["version"] for part in after["made_of"]] == ["2024-01", "2024-02", "2024-03.2"]
    assert ran(clinic, ledger) == {}
    assert ledger.verify() == ()
    again, _ = Runner.of(PlanFile.load(clinic.plan), ledger).correct("visits", "2024-03")
    assert again.edition == "2024-03.3"


def test_a_used_up_budget_still_stops_the_run_and_leaves_its_tables(clinic: Clinic, ledger: Ledger) -> None:
    fill(clinic, *months(1, 2))
    each = Runner.of(PlanFile.load(clinic.plan), ledger).schedule.line("months").amount
    ledger.open_account("hospital/other", unit=PATIENT, cap=Budget(epsilon=1000), reason="decided by the tests")
    ledger.declare_dataset(Dataset(name="others", edition="1"), population="city", cap=Budget(epsilon=1000))
    vault = Vault(unit=PATIENT, ledger=ledger, account="hospital/other")
    one = Limit(groups=1, rows_per_group=1)
    rows = vault.table(pa.table({"patient_id": [1]}), name="others", version="1", limit=one)
    left = ledger.account(ACCOUNT, unit=PATIENT).left.epsilon
    rows.count().release(epsilon=left - Fraction(3, 2) * each, even_if_useless=True)
    with pytest.raises(BudgetExceeded):
        ran(clinic, ledger)
    assert (clinic.out / "months" / "2024-01.json").is_file()
    assert (clinic.out / "months.csv").is_file()


def test_a_run_leaves_a_table_and_a_page_in_both_languages(clinic: Clinic, ledger: Ledger) -> None:
    fill(clinic, *months(1, 2, 3))
    ran(clinic, ledger)
    with (clinic.out / "months.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["period"], row["sex"], row["column"]) for row in rows] == [
        (f"2024-0{month}", sex, "count") for month in (1, 2, 3) for sex in ("F", "M")
    ]
    shown = result(clinic.out / "months" / "2024-02.json")["columns"]["count"]
    assert [int(row["value"]) for row in rows[2:4]] == shown["values"]
    assert [float(row["data_low"]) for row in rows[2:4]] == shown["data_low"]
    assert (clinic.out / "quarters.derived.csv").is_file()
    for name, words in (("index.html", "differential privacy"), ("index.zh.html", "差分隐私")):
        page = (clinic.out / name).read_text("utf-8")
        assert words in page
        assert "months.csv" in page
        assert page.count("<svg") == 1  # one quarter has no course to draw
        assert "<script" not in page


def test_texts_in_a_table_are_no_formulas() -> None:
    from sfumato.runner.overview import _cell

    assert [_cell(value) for value in ("=1+1", 'a "b"', -2, 1.5, None)] == ['"\'=1+1"', '"a ""b"""', "-2", "1.5", ""]


def test_the_commands_say_what_failed_what_it_cost_and_how_to_correct_it(
    clinic: Clinic, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    january, february = months(1, 2)
    fill(clinic, january, february)
    damage(clinic.data(february))
    each = Runner.of(PlanFile.load(clinic.plan), ledger).schedule.line("months").amount
    monkeypatch.chdir(clinic.folder)
    Path("ledger.toml").write_text('url = "ledger.db"\nkey = "key"\nanchor = "apart/anchor"\n', "utf-8")
    runner = CliRunner()
    told = runner.invoke(app, ["plan", "run", "plan.toml", "--out", "out"])
    assert f"failed: months 2024-02, charged ε = {each}" in told.output
    assert f"charged by this run: ε = {2 * each}" in told.output
    fill(clinic, february)
    said = runner.invoke(app, ["plan", "correct", "plan.toml", "visits", "2024-02"])
    assert said.exit_code == 0, said.output
    assert "version 2024-02.2 of visits" in said.output
    assert f"ε = {each}" in said.output
