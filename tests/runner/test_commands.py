"""The commands of a plan, from solving it to watching it."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.exits import Exit
from sfumato.core.budget import Budget
from sfumato.errors import Refused
from sfumato.governance.board import Action, Board, Choice, Reasons
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.ledger import Ledger
from sfumato.runner import Fate, PlanFile, Runner, adopt
from tests.governance.signers import key_of, keyed
from tests.runner.clinic import ACCOUNT, HEAD, MONTHS, QUARTERS, Clinic, built, fill, months

FIXED = MONTHS.replace("{ margin = 3, confidence = 0.95 }", "{ epsilon = 1 }")
BY_JUNE = ("--until", "2024-06-30")
Run = Callable[..., Any]


@pytest.fixture
def run(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of plan in the folder of the clinic."""
    return commands(clinic, monkeypatch)


def commands(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(clinic.folder)
    Path("ledger.toml").write_text('url = "ledger.db"\nkey = "key"\nanchor = "apart/anchor"\n', "utf-8")
    runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb", "NO_COLOR": "1"})
    return lambda *words: runner.invoke(app, ["plan", words[0], "plan.toml", *map(str, words[1:])])


def test_a_plan_is_solved_without_data_and_without_a_ledger(clinic: Clinic, run: Run) -> None:
    clinic.write_plan(HEAD + MONTHS + QUARTERS)
    Path("ledger.db").unlink()
    told = run("solve")
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert lines[0] == "dashboard 2024, charged to hospital/epidemiology; protected: user (patient_id), add/remove"
    assert lines[2].split() == ["months", "monthly,", "12", "released", "1.016", "±3", "12.192"]
    assert lines[3].split() == ["quarters", "quarterly,", "4", "derived,", "3", "of", "months", "0", "±6", "0"]
    assert lines[4] == "total: ε = 12.192 of 60; what binds is the plan's own cap; least amounts"
    assert lines[5].startswith("for information: carried out as it stands, the whole plan keeps ε = 12.19")
    said = json.loads(run("solve", "--json").stdout)
    assert (said["total"], said["cap"], said["digest"]) == ("1524/125", "60", run("digest").stdout.strip())
    assert [each["source"] for each in said["releases"]] == ["released", "derived"]
    assert json.loads(run("digest", "--json").stdout)["account"] == ACCOUNT


def test_a_plan_that_does_not_fit_is_refused_with_what_binds(clinic: Clinic, run: Run) -> None:
    clinic.write_plan((HEAD + FIXED).replace("epsilon = 60", "epsilon = 10"))
    told = run("solve")
    assert told.exit_code == Exit.REFUSED
    assert "needs at least ε = 12 in its year, and the plan's own cap is ε = 10" in told.stderr
    clinic.write_plan(HEAD + FIXED)
    ledger = clinic.ledger()
    ledger.open_account(f"{ACCOUNT}/small", unit=ledger.balance(ACCOUNT).unit, cap=Budget(epsilon=9), reason="small")
    ledger.close()
    clinic.write_plan((HEAD + FIXED).replace(ACCOUNT, f"{ACCOUNT}/small"))
    assert run("solve").exit_code == 0
    told = run("solve", "--ledger", "ledger.toml")
    assert "what 'account hospital/epidemiology/small' has left is ε = 9" in told.stderr


def test_the_year_of_a_plan_is_drawn(clinic: Clinic, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair", reason="plots need their extra")
    clinic.write_plan(HEAD + FIXED + QUARTERS)
    drawn: list[Any] = []
    monkeypatch.setattr("sfumato.reports.plots.save", lambda chart, _: drawn.append(chart.to_dict()))
    told = run("solve", "--plot", "year.svg")
    assert told.exit_code == 0
    assert "written: year.svg" in told.stdout
    (chart,) = drawn
    assert chart["title"]["text"] == "dashboard 2024"
    assert chart["title"]["subtitle"] == ["What 12 releases would charge."]
    assert '"2024-12-31 00:00"' in json.dumps(chart)


def test_from_adoption_to_the_end_of_a_year(clinic: Clinic, run: Run) -> None:
    clinic.write_plan(HEAD + FIXED + QUARTERS)
    fill(clinic, *months(1, 2, 3))
    refused = run("run")
    assert refused.exit_code == Exit.REFUSED
    assert "is not adopted" in refused.stderr
    adopted = run("adopt")
    assert adopted.exit_code == 0
    assert "adopted: entry " in adopted.stdout
    assert "adopted already" in run("adopt").stderr
    assert "due: months 2024-01, 2024-02, 2024-03" in run("status", *BY_JUNE).stdout
    told = run("run", *BY_JUNE)
    assert told.exit_code == 0, told.stderr
    assert told.stdout.splitlines() == [
        "released: months 2024-01, 2024-02, 2024-03, charged ε = 3",
        "computed: quarters 2024-Q1",
        "missing: months 2024-04, 2024-05, 2024-06",
        "missing: quarters 2024-Q2",
    ]
    assert told.stderr.startswith("Draft: not for publication. Not on record yet: the reason for this ε, and the legal")
    assert (clinic.folder / "releases" / "quarters" / "2024-Q1.derived.json").is_file()
    status = run("status", "--until", "2024-03-31").stdout.splitlines()
    assert [line.split()[:3] for line in status[1:]] == [["months", "released", "3"], ["quarters", "derived", "1"]]
    assert run("run", "--until", "2024-03-31").stdout == "nothing was due\n"
    assert json.loads(run("run", "--until", "2024-03-31", "--json").stdout) == []
    steps = json.loads(run("status", "--json").stdout)
    assert len(steps) == 16
    assert {step["standing"] for step in steps} == {"done", "missing"}
    assert "is not a day" in run("run", "--until", "June").stderr


def test_what_was_made_before_a_stop_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = built(tmp_path)
    run = commands(clinic, monkeypatch)
    clinic.adopt(HEAD + FIXED)
    fill(clinic, *months(1))
    clinic.data(months(2)[0]).write_bytes(b"no table at all")
    told = run("run", "--until", "2024-02-29")
    assert told.exit_code == Exit.REFUSED
    assert told.stdout == "released: months 2024-01, charged ε = 1\n"
    assert told.stderr.startswith("failed: months 2024-02: ")


@pytest.mark.long
def test_watching_waits_for_late_data_and_ends_when_all_is_done(
    clinic: Clinic, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic.adopt(HEAD + FIXED)
    fill(clinic, *months(1))
    naps = []
    clock = time.time

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        fill(clinic, *months(2))

    class Later:
        """A clock on which a nap is over at once."""

        @classmethod
        def now(cls, zone: Any) -> Any:
            from datetime import datetime, timedelta

            return datetime.fromtimestamp(clock(), zone) + timedelta(seconds=sum(naps))

    monkeypatch.setattr("sfumato.cli.plan.time", SimpleNamespace(sleep=sleep))  # its own: other threads nap too
    monkeypatch.setattr("sfumato.cli.plan.datetime", Later)
    told = run("run", "--until", "2024-02-29", "--watch", "--look-every", "1")
    assert told.exit_code == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[:2] == ["released: months 2024-01, charged ε = 1", "missing: months 2024-02"]
    assert lines[2].startswith("waiting until ")
    assert lines[3:] == ["released: months 2024-02, charged ε = 1"]
    assert 0 < sum(naps) <= 61


@pytest.mark.long
def test_watching_ends_cleanly_from_the_keyboard(clinic: Clinic, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic.adopt(HEAD + FIXED)
    fill(clinic, *months(1))

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.cli.plan.time", SimpleNamespace(sleep=interrupted))
    monkeypatch.setattr("sfumato.cli.plan.MANY", 0)  # a bar beside the very first release
    monkeypatch.setattr("rich.console.Console.is_terminal", property(lambda _: True))
    told = run("run", "--watch", "--until", "2024-02-29")
    assert told.exit_code == Exit.INTERRUPTED
    assert "What was printed or written so far stands" in told.stderr
    assert "released: months 2024-01" in told.stdout
    ledger = clinic.ledger()
    assert ledger.verify() == ()
    ledger.close()


def test_with_a_board_a_plan_needs_its_decision_and_its_data_theirs(clinic: Clinic) -> None:
    why = Reasons(benefit="beds are planned by it", risk="a rare case could be guessed", choice="±3 is enough")
    head = HEAD.replace("[unit]", 'purpose = "planning/beds"\nrecipient = "public"\n[unit]')
    file = clinic.write_plan(head + FIXED)
    fill(clinic, *months(1))
    ledger = clinic.ledger()
    ledger.seat(keyed(Board(members=("ada", "ben", "cho"), quorum=2)), by="ada", reason="founded")
    with pytest.raises(Refused, match="no approved request names this plan"):
        adopt(ledger, file)

    def decided(action: Action, subject: str, **about: Any) -> None:
        number = ledger.propose(by="ada", action=action, subject=subject, reasons=why, key=key_of("ada"), **about)
        for member in ("ben", "cho"):
            ledger.vote(number, by=member, key=key_of(member), choice=Choice.YES)

    decided(Action.PLAN, clinic.write_plan(head + MONTHS).digest, account=ACCOUNT)
    with pytest.raises(Refused, match="no approved request names this plan"):
        adopt(ledger, clinic.write_plan(head + FIXED))  # another one was approved
    decided(Action.PLAN, file.digest, account=ACCOUNT)
    adopt(ledger, file)
    with pytest.raises(Exception, match="no terms are declared for 'visits'"):
        list(Runner.of(file, ledger).run(clinic.out))
    ledger.declare_terms(terms())
    decided(Action.DATASET, "visits", datasets=("visits",))
    outcomes = list(Runner.of(PlanFile.load(clinic.plan), ledger).run(clinic.out))
    assert [outcome.step.label for outcome in outcomes if outcome.fate is Fate.RELEASED] == ["2024-01"]
    assert spent(ledger) == 1
    for written in (clinic.out / "months").iterdir():
        written.unlink()
    ledger.declare_terms(replace(terms(), purposes=("care",)))
    with pytest.raises(Refused, match="may be used for care"):  # a stored answer is not handed out either
        list(Runner.of(file, ledger).run(clinic.out))
    assert list((clinic.out / "months").iterdir()) == []
    ledger.close()


def terms() -> Terms:
    return Terms(
        dataset="visits",
        purposes=("planning",),
        ground=Ground.PUBLIC_TASK,
        condition=SpecialCategory.HEALTH_CARE,
        hipaa=HipaaBasis.NOT_SUBJECT,
        consent=(),
        consent_text="",
        forbidden=(),
        recipients=("public",),
        until="2999-12-31",
        sites=(),
    )


def spent(ledger: Ledger) -> object:
    return ledger.balance(ACCOUNT).epsilon_spent


@pytest.mark.claim("S1-25", "S1-26", "S1-33")
def test_results_of_a_plan_are_drafts_until_it_states_its_grounds(clinic: Clinic, run: Run) -> None:
    """The plan with its grounds is another plan to decide on; what was released before is then written as published."""
    fill(clinic, *months(1, 2, 3))
    until = ("--until", "2024-03-31")
    clinic.write_plan(HEAD + MONTHS + QUARTERS)
    assert run("adopt").exit_code == 0
    drafted = run("run", *until)
    assert "Draft: not for publication" in drafted.stderr
    files = sorted(file for file in Path("releases").rglob("*.json") if not file.name.endswith(".certificate.json"))
    assert len(files) == 4
    for file in files:
        stated = json.loads(file.read_text("utf-8"))["publication"]
        assert (stated["status"], stated["missing"]) == ("draft", ["reason", "legal_basis"])
        assert stated["note"][0].startswith("Draft: not for publication")
        assert stated["note"][1].startswith("草稿：不得公布")
    assert "Draft" not in run("run", *until).stderr, "nothing was written"

    values = {file: json.loads(file.read_text("utf-8"))["columns"] for file in files}
    grounds = {"reason": "The dashboard needs ±3.", "legal_basis": "Section 7 of the health statistics act."}
    said = "".join(f'{name} = "{words}"\n' for name, words in grounds.items())
    clinic.write_plan(HEAD.replace('aim = "least cost"\n', f'aim = "least cost"\n{said}') + MONTHS + QUARTERS)
    assert "differs" in run("run", *until).stderr, "the board has not decided on these grounds"
    assert run("adopt").exit_code == 0
    published = run("run", *until)
    assert published.exit_code == 0, published.output
    assert "Draft" not in published.stderr
    assert "charged" not in published.stdout
    for file in files:
        body = json.loads(file.read_text("utf-8"))
        assert body["publication"] == {"status": "publication", **grounds, "missing": []}
        assert body["columns"] == values[file]


@pytest.mark.parametrize("name", ["reason", "legal_basis"])
def test_a_plan_with_empty_grounds_is_not_read(clinic: Clinic, run: Run, name: str) -> None:
    clinic.plan.write_text(HEAD.replace('aim = "', f'{name} = " "\naim = "') + MONTHS, "utf-8")
    assert f"{name} must be a text in quotes" in run("solve").stderr
