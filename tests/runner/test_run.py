"""A plan is carried out: a year of it, late data, changed data, other versions, and what stops it."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.question import Question
from sfumato.core.units import family
from sfumato.errors import BudgetExceeded, NotDeclared, Refused, Unsupported
from sfumato.governance.entries import Reserved
from sfumato.governance.ledger import Ledger
from sfumato.governance.periods import Cadence, periods
from sfumato.governance.plans import FigureSource
from sfumato.governance.time_windows import TimeWindows
from sfumato.reports.verify import verify
from sfumato.runner import Fate, PlanFile, Runner, Standing, StepOutcome, adopt
from sfumato.runner.record import key_of
from sfumato.vault import Vault
from tests.runner.clinic import (
    ACCOUNT,
    HEAD,
    MONTHS,
    PATIENT,
    QUARTERS,
    QUESTION,
    Clinic,
    built,
    days,
    fill,
    months,
    people_of,
)

FAR = 60
"""Further than any sum of noise here goes: at ε ≥ 1 a number is this far off with probability below 1e-20."""
FIXED = MONTHS.replace("{ margin = 3, confidence = 0.95 }", "{ epsilon = 1 }")
YEARS = f"""
[releases.year]
every = "yearly"
{QUESTION}
data = "data/{{period}}.parquet"
weight = 4
sums = "quarters"
"""


@pytest.fixture
def ledger(clinic: Clinic) -> Iterator[Ledger]:
    """Its ledger, opened."""
    opened = clinic.ledger()
    yield opened
    opened.close()


def ran(clinic: Clinic, ledger: Ledger, **asked: Any) -> list[StepOutcome]:
    return list(Runner.of(PlanFile.load(clinic.plan), ledger).run(clinic.out, **asked))


def labels(outcomes: list[StepOutcome], fate: Fate) -> list[str]:
    return [outcome.step.label for outcome in outcomes if outcome.fate is fate]


def result(clinic: Clinic, release: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((clinic.out / release / f"{name}.json").read_text("utf-8"))
    return found


def counts(body: dict[str, Any]) -> list[int]:
    values: list[int] = body["columns"]["count"]["values"]
    return values


@pytest.mark.long
def test_a_year_is_caught_up_and_what_follows_from_it_is_computed(clinic: Clinic, ledger: Ledger) -> None:
    adopted = adopt(ledger, clinic.write_plan(HEAD + MONTHS + QUARTERS))
    assert [line.source for line in adopted.schedule.lines] == [FigureSource.OWN, FigureSource.DERIVED]
    fill(clinic, *months())
    outcomes = ran(clinic, ledger)
    assert Counter(outcome.fate for outcome in outcomes) == {Fate.RELEASED: 12, Fate.COMPUTED: 4}
    each = adopted.schedule.line("months").amount
    assert {outcome.cost.epsilon for outcome in outcomes if outcome.fate is Fate.RELEASED} == {each}
    assert ledger.balance(ACCOUNT).epsilon_spent == 12 * each == adopted.schedule.total
    identifiers = {}
    for period in months():
        body = result(clinic, "months", period.label)
        assert all(abs(one - two) < FAR for one, two in zip(counts(body), people_of(period), strict=True))
        certificate = json.loads((clinic.out / "months" / f"{period.label}.certificate.json").read_text("utf-8"))
        assert verify(certificate).consistent
        assert certificate["statement"]["dataset"]["edition"] == period.label
        identifiers[period.label] = certificate["statement"]["identifier"]
    for place, period in enumerate(periods(Cadence.QUARTERLY, 2024)):
        body = result(clinic, "quarters", f"{period.label}.derived")
        parts = [month.label for month in months(*range(3 * place + 1, 3 * place + 4))]
        assert [(part["period"], part["identifier"]) for part in body["made_of"]] == [
            (label, identifiers[label]) for label in parts
        ]
        sums = [sum(numbers) for numbers in zip(*(counts(result(clinic, "months", at)) for at in parts), strict=True)]
        assert counts(body) == sums
        assert body["cost"] == {"epsilon": "0", "delta": "0"}
        column = body["columns"]["count"]
        widths = {high - low for low, high in zip(column["data_low"], column["data_high"], strict=True)}
        assert widths == {10}  # ±5 for three noises, where ±3 keeps both numbers of a month
    assert ran(clinic, ledger) == []
    assert {step.standing for step in Runner.of(PlanFile.load(clinic.plan), ledger).steps()} == {Standing.DONE}
    assert ledger.verify() == ()


@pytest.mark.long
def test_a_combined_figure_has_the_weights_of_the_schedule(clinic: Clinic, ledger: Ledger) -> None:
    quarters = FIXED.replace("months", "quarters").replace("monthly", "quarterly").replace("wanted", "# wanted")
    head = HEAD.replace("least cost", "least variance").replace("epsilon = 60", "epsilon = 1")
    schedule = adopt(ledger, clinic.write_plan(head + quarters + YEARS)).schedule
    line = schedule.line("year")
    assert line.source is FigureSource.COMBINED
    assert Fraction(1, 2) < line.own_share < 1
    parts_of_it = periods(Cadence.QUARTERLY, 2024)
    (year,) = periods(Cadence.YEARLY, 2024)
    fill(clinic, *parts_of_it, year)
    outcomes = ran(clinic, ledger)
    assert Counter(outcome.fate for outcome in outcomes) == {Fate.RELEASED: 5, Fate.COMPUTED: 1}
    body = result(clinic, "year", "2024.combined")
    assert [Fraction(part["weight"]) for part in body["made_of"]] == [line.own_share] + [1 - line.own_share] * 4
    own = counts(result(clinic, "year", "2024"))
    parts = [counts(result(clinic, "quarters", period.label)) for period in parts_of_it]
    for place, value in enumerate(counts(body)):
        exact = line.own_share * own[place] + (1 - line.own_share) * sum(part[place] for part in parts)
        assert math.isclose(value, exact)
    alone, mixed = (result(clinic, "year", name)["columns"]["count"] for name in ("2024", "2024.combined"))
    assert mixed["data_high"][0] - mixed["data_low"][0] < alone["data_high"][0] - alone["data_low"][0]
    assert ledger.balance(ACCOUNT).epsilon_spent == schedule.total


@pytest.mark.long
def test_data_that_comes_late_is_released_when_it_comes(clinic: Clinic, ledger: Ledger) -> None:
    adopt(ledger, clinic.write_plan(HEAD + FIXED + QUARTERS))
    fill(clinic, *months(1, 3))
    first = ran(clinic, ledger, until=date(2024, 3, 31))
    assert labels(first, Fate.RELEASED) == ["2024-01", "2024-03"]
    assert labels(first, Fate.MISSING) == ["2024-02", "2024-Q1"]
    runner = Runner.of(PlanFile.load(clinic.plan), ledger)
    assert [step.standing.value for step in runner.steps(until=date(2024, 3, 31))] == [
        *("done", "missing", "done", "missing"),
    ]
    fill(clinic, *months(2))
    second = ran(clinic, ledger, until=date(2024, 3, 31))
    assert labels(second, Fate.RELEASED) == ["2024-02"]
    assert labels(second, Fate.COMPUTED) == ["2024-Q1"]
    assert ledger.balance(ACCOUNT).epsilon_spent == 3


@pytest.mark.long
def test_a_period_that_is_not_over_waits_though_its_data_is_there(clinic: Clinic, ledger: Ledger) -> None:
    file = clinic.write_plan(HEAD + FIXED)
    adopt(ledger, file)
    fill(clinic, *months(1, 2))
    assert labels(ran(clinic, ledger, today=date(2024, 2, 29)), Fate.RELEASED) == ["2024-01"]
    runner = Runner.of(file, ledger)
    assert runner.steps(today=date(2024, 2, 29))[1].standing is Standing.WAITING
    assert runner.steps(today=date(2024, 3, 1))[1].standing is Standing.DUE


def test_data_that_changes_after_its_release_changes_nothing(clinic: Clinic, ledger: Ledger) -> None:
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(1))
    ran(clinic, ledger, until=date(2024, 1, 31))
    before = (clinic.out / "months" / "2024-01.certificate.json").read_bytes()
    fill(clinic, *months(2))
    clinic.data(months(2)[0]).replace(clinic.data(months(1)[0]))
    assert ran(clinic, ledger, until=date(2024, 1, 31)) == []
    clinic.data(months(1)[0]).unlink()
    for file in (clinic.out / "months").iterdir():
        file.unlink()
    again = ran(clinic, ledger, until=date(2024, 1, 31))
    assert [(outcome.fate, outcome.cost) for outcome in again] == [(Fate.KEPT, Budget.none())]
    assert (clinic.out / "months" / "2024-01.certificate.json").read_bytes() == before
    assert ledger.balance(ACCOUNT).charges == 1


def test_the_same_question_that_was_asked_outside_the_plan_is_not_drawn_again(clinic: Clinic, ledger: Ledger) -> None:
    file = clinic.write_plan(HEAD + FIXED + QUARTERS)
    adopt(ledger, file)
    fill(clinic, *months(1, 2, 3))
    asked = file.entry("months").asked
    ledger.declare_version(Dataset(name="visits", edition="2024-01"))
    table = Vault(unit=file.unit, ledger=ledger, account=ACCOUNT).table(
        clinic.data(months(1)[0]), schema=asked.schema, version="2024-01"
    )
    first = table.sql(asked.sql).release(epsilon=1)
    outcomes = ran(clinic, ledger, until=date(2024, 3, 31))
    assert [outcome.fate for outcome in outcomes] == [Fate.KEPT, Fate.RELEASED, Fate.RELEASED, Fate.COMPUTED]
    assert result(clinic, "months", "2024-01")["identifier"] == first.statement.identifier
    assert ledger.balance(ACCOUNT).epsilon_spent == 3
    assert ran(clinic, ledger, until=date(2024, 3, 31)) == []


def test_a_budget_that_is_used_up_stops_the_run_with_the_numbers(tmp_path: Path) -> None:
    clinic = built(tmp_path, cap=Budget(epsilon=12))
    ledger = clinic.ledger()
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(1, 2))
    ledger.declare_dataset(Dataset(name="other", edition="1"), population="city", cap=Budget(epsilon=100))
    other = ledger.account(ACCOUNT, unit=PlanFile.load(clinic.plan).unit)
    other.reserve(Budget(epsilon="21/2"), datasets=[Dataset(name="other", edition="1")])
    made = []
    with pytest.raises(BudgetExceeded, match=r"1/2 left; this release asks for ε = 1\."):
        made.extend(Runner.of(PlanFile.load(clinic.plan), ledger).run(clinic.out))
    assert not (clinic.out / "months" / "2024-02.json").exists()
    assert (clinic.out / "months" / "2024-01.json").exists()
    ledger.close()


def test_a_plan_that_does_not_fit_what_is_left_is_not_adopted(tmp_path: Path) -> None:
    clinic = built(tmp_path, cap=Budget(epsilon=11))
    ledger = clinic.ledger()
    with pytest.raises(BudgetExceeded, match=r"needs at least ε = 12 .* what 'account hospital/epidemiology' has left"):
        adopt(ledger, clinic.write_plan(HEAD + FIXED))
    assert ledger.plans() == ()
    ledger.close()


def test_only_the_adopted_plan_runs(clinic: Clinic, ledger: Ledger) -> None:
    file = clinic.write_plan(HEAD + FIXED)
    with pytest.raises(Refused, match="is not adopted"):
        Runner.of(file, ledger)
    adopt(ledger, file)
    changes = {
        "a question": HEAD + FIXED.replace("FROM visits", "FROM visits WHERE cost > 50"),
        "a path": HEAD + FIXED.replace("data/", "other/"),
        "a target": HEAD + FIXED.replace("epsilon = 1 }", "epsilon = 2 }"),
        "a recipient": HEAD.replace("[unit]", 'recipient = "public"\n[unit]') + FIXED,
    }
    for text in changes.values():
        with pytest.raises(Refused, match="differs"):
            Runner.of(clinic.write_plan(text), ledger)
    schema = clinic.folder / "visits.toml"
    kept = schema.read_text("utf-8")
    schema.write_text(kept.replace("[0, 100]", "[0, 200]"), "utf-8")
    with pytest.raises(Refused, match="differs"):
        Runner.of(clinic.write_plan(HEAD + FIXED), ledger)
    schema.write_text(kept, "utf-8")
    Runner.of(clinic.write_plan(HEAD + FIXED), ledger)


@pytest.mark.long
def test_a_new_version_of_a_plan_does_not_release_a_period_again(clinic: Clinic, ledger: Ledger) -> None:
    old = clinic.write_plan(HEAD + FIXED)
    adopt(ledger, old)
    fill(clinic, *months(1, 2, 3))
    ran(clinic, ledger, until=date(2024, 1, 31))
    before = (clinic.out / "months" / "2024-01.certificate.json").read_bytes()
    new = clinic.write_plan((HEAD + FIXED).replace("epsilon = 1 }", "epsilon = 2 }") + QUARTERS)
    stale = Runner.of(old, ledger).run(clinic.out, until=date(2024, 2, 29))
    adopt(ledger, new)
    with pytest.raises(Refused, match="differs"):
        next(stale)
    outcomes = ran(clinic, ledger, until=date(2024, 3, 31))
    assert labels(outcomes, Fate.RELEASED) == ["2024-02", "2024-03"]
    assert labels(outcomes, Fate.COMPUTED) == ["2024-Q1"]  # of a release of the old version and two of the new one
    assert (clinic.out / "months" / "2024-01.certificate.json").read_bytes() == before
    assert ledger.balance(ACCOUNT).epsilon_spent == 1 + 2 + 2


@pytest.mark.long
def test_a_week_needs_days_that_an_older_plan_released(clinic: Clinic, ledger: Ledger) -> None:
    """The first week of 2025 begins in 2024: without a plan of that year it is told, and never made of five days."""
    base = HEAD + FIXED.replace("months", "days").replace("monthly", "daily").replace("epsilon = 1", "epsilon = 0.1")
    weeks = QUARTERS.replace("quarters", "weeks").replace("quarterly", "weekly").replace("months", "days")
    plan = base.replace("2024", "2025") + weeks.replace("margin = 20", "margin = 200")
    adopt(ledger, clinic.write_plan(plan))
    first = days(date(2024, 12, 30), 7)
    fill(clinic, *first)
    week = date(2025, 1, 5)
    outcomes = ran(clinic, ledger, until=week)
    assert labels(outcomes, Fate.MISSING) == ["2025-W01"]
    assert outcomes[-1].words == "it needs periods of another year that were not released"
    assert labels(outcomes, Fate.RELEASED) == [day.label for day in first[2:]]
    adopt(ledger, clinic.write_plan(base))
    ran(clinic, ledger)
    clinic.write_plan(plan)
    assert labels(ran(clinic, ledger, until=week), Fate.COMPUTED) == ["2025-W01"]
    made_of = result(clinic, "weeks", "2025-W01.derived")["made_of"]
    assert [part["period"] for part in made_of] == [day.label for day in first]


@pytest.mark.long
def test_a_file_that_cannot_be_read_is_told_and_passed_over(clinic: Clinic, ledger: Ledger) -> None:
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(2))
    clinic.data(months(1)[0]).write_bytes(b"PAR1, but only in its first bytes")
    outcomes = ran(clinic, ledger, until=date(2024, 2, 29))
    assert [(outcome.step.label, outcome.fate) for outcome in outcomes] == [
        ("2024-01", Fate.FAILED),
        ("2024-02", Fate.RELEASED),
    ]
    assert "nothing was spent" in outcomes[0].words
    fill(clinic, *months(1))
    assert labels(ran(clinic, ledger, until=date(2024, 2, 29)), Fate.RELEASED) == ["2024-01"]


def test_data_whose_engine_failed_is_closed_and_the_rest_goes_on(
    clinic: Clinic, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(1, 2))
    with monkeypatch.context() as broken:
        broken.setattr("sfumato.tables.store.exact_numbers", lambda *_, **__: 1 / 0)
        (failed,) = ran(clinic, ledger, until=date(2024, 1, 31))
    assert failed.fate is Fate.FAILED
    assert "is kept" in failed.words
    outcomes = ran(clinic, ledger, until=date(2024, 2, 29))
    assert [(outcome.step.standing, outcome.fate) for outcome in outcomes] == [
        (Standing.CLOSED, Fate.FAILED),
        (Standing.DUE, Fate.RELEASED),
    ]
    assert ledger.balance(ACCOUNT).epsilon_spent == 2


def test_a_dataset_that_nobody_declared_and_a_plan_in_rho_are_not_adopted(clinic: Clinic, ledger: Ledger) -> None:
    schema = (clinic.folder / "visits.toml").read_text("utf-8")
    (clinic.folder / "visits.toml").write_text(schema.replace('name = "visits"', 'name = "stays"'), "utf-8")
    with pytest.raises(NotDeclared, match="'stays' is not declared"):
        adopt(ledger, clinic.write_plan(HEAD + FIXED.replace("FROM visits", "FROM stays")))
    (clinic.folder / "visits.toml").write_text(schema, "utf-8")
    zcdp = HEAD.replace("[unit]", 'accounting = "zcdp"\n[unit]').replace("epsilon = 60", "epsilon = 60\ndelta = 1e-6")
    file = clinic.write_plan(zcdp + FIXED)
    assert file.solved().total == 6
    with pytest.raises(Unsupported, match="adds up ρ"):
        adopt(ledger, file)


HIJACKS = {
    "its question": ("SELECT sex, COUNT(*) FROM visits WHERE cost < 3 GROUP BY sex", "2024-01", PATIENT),
    "the version of its data": ("SELECT sex, COUNT(*) FROM visits GROUP BY sex", "2024-02", PATIENT),
    "its unit": (
        "SELECT sex, COUNT(*) FROM visits GROUP BY sex",
        "2024-01",
        family(1, "patient_id", relation="add/remove"),
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("what", HIJACKS)
def test_an_answer_that_somebody_else_stored_under_the_key_of_a_release_is_not_published(
    clinic: Clinic, ledger: Ledger, what: str
) -> None:
    sql, version, unit = HIJACKS[what]
    file = clinic.write_plan(HEAD + FIXED + QUARTERS)
    adopt(ledger, file)
    fill(clinic, *months(1, 2, 3))
    ledger.declare_version(Dataset(name="visits", edition=version))
    table = Vault(unit=unit, ledger=ledger, account=ACCOUNT).table(
        clinic.data(months(1)[0]), schema=file.entry("months").asked.schema, version=version
    )
    table.sql(sql).release(epsilon=1, idempotency=key_of(file.digest, "months", "2024-01"))
    with pytest.raises(Refused, match=rf"'months' for 2024-01, and is not what was planned: {what} differs"):
        ran(clinic, ledger, until=date(2024, 3, 31))
    assert not clinic.out.exists()
    (clinic.out / "months").mkdir(parents=True)
    for name in ("2024-01.json", "2024-01.certificate.json"):  # as if the period had been published
        (clinic.out / "months" / name).write_text("{}", "utf-8")
    with pytest.raises(Refused, match=f"{what} differs"):
        ran(clinic, ledger, until=date(2024, 3, 31))
    assert not (clinic.out / "quarters").exists()


def test_a_stored_answer_that_the_ledger_hands_out_for_a_key_is_held_to_the_question(
    clinic: Clinic, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the answer was stored between the look and the release, and the ledger did not mind."""
    file = clinic.write_plan(HEAD + FIXED)
    adopt(ledger, file)
    fill(clinic, *months(1))
    ledger.declare_version(Dataset(name="visits", edition="2024-01"))
    table = Vault(unit=file.unit, ledger=ledger, account=ACCOUNT).table(
        clinic.data(months(1)[0]), schema=file.entry("months").asked.schema, version="2024-01"
    )
    other = table.sql("SELECT sex, COUNT(*) FROM visits WHERE cost < 3 GROUP BY sex").release(epsilon=1)
    monkeypatch.setattr(Question, "release", lambda *_, **__: other)
    with pytest.raises(Refused, match="its question differs"):
        ran(clinic, ledger, until=date(2024, 1, 31))
    assert not clinic.out.exists()


@pytest.mark.long
def test_periods_that_answered_another_version_s_question_are_kept_and_not_added_up(
    clinic: Clinic, ledger: Ledger
) -> None:
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(1, 2, 3, 4))
    ran(clinic, ledger, until=date(2024, 1, 31))
    dearer = (HEAD + FIXED + QUARTERS).replace("FROM visits", "FROM visits WHERE cost > 50")
    adopt(ledger, clinic.write_plan(dearer))
    shutil.rmtree(clinic.out)
    outcomes = ran(clinic, ledger, until=date(2024, 4, 30))
    assert labels(outcomes, Fate.KEPT) == ["2024-01"]
    assert labels(outcomes, Fate.RELEASED) == ["2024-02", "2024-03", "2024-04"]
    (failed,) = [outcome for outcome in outcomes if outcome.fate is Fate.FAILED]
    assert failed.words.startswith("2024-01 answered what an earlier version of the plan asked")
    assert not (clinic.out / "quarters").exists()


@pytest.mark.claim("S1-19")
def test_a_period_is_charged_to_the_windows_of_its_days(clinic: Clinic, ledger: Ledger) -> None:
    windows = TimeWindows(unit=PATIENT, every=Cadence.QUARTERLY, cap=Budget(epsilon=2), most_windows=1)
    ledger.set_windows("hospital", windows)
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(1, 2, 4))
    assert labels(ran(clinic, ledger), Fate.RELEASED) == ["2024-01", "2024-02", "2024-04"]
    standing = ledger.window_standing("hospital")
    assert standing.windows == (("2024-Q1", Budget(epsilon=2)), ("2024-Q2", Budget(epsilon=1)))
    assert (standing.lifetime, standing.all_along) == (Budget(epsilon=2), Budget(epsilon=3))
    fill(clinic, *months(3))
    with pytest.raises(BudgetExceeded, match="window hospital 2024-Q1"):
        ran(clinic, ledger)
    assert ledger.verify() == ()


def test_without_windows_a_charge_of_a_plan_is_as_it_ever_was(clinic: Clinic, ledger: Ledger) -> None:
    """Else a run that was cut off before there were days could not be finished under its key."""
    adopt(ledger, clinic.write_plan(HEAD + FIXED))
    fill(clinic, *months(1))
    ran(clinic, ledger)
    assert [row.entry.reads for row in ledger.rows() if isinstance(row.entry, Reserved)] == [None]
