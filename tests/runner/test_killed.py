"""A run that is killed at any step, and two runs at once: one charge and one answer for each period."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.governance.entries import Committed, Reserved
from sfumato.runner import Fate, PlanFile, Runner
from sfumato.vault import Vault
from tests.runner.clinic import ACCOUNT, HEAD, MONTHS, Clinic, built, fill, months
from tests.runner.killed import STEPS

ROOT = Path(__file__).parents[2]


PERIODS = ["2024-01", "2024-02"]
SURVIVED = {"before reserve": (0, 0), "after reserve": (1, 0), "after draw": (1, 0)}
"""The charges and the answers that a killed run left; after its commit, one of both."""


@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Clinic]:
    """Clinics with an adopted plan and data of two periods, by what became of the runs of their plan."""
    place = tmp_path_factory.mktemp("killed")
    (place / "first").mkdir()
    clinic = built(place / "first")
    clinic.adopt(HEAD + MONTHS.replace("{ margin = 3, confidence = 0.95 }", "{ epsilon = 1 }"))
    fill(clinic, *months(1, 2))
    names = (*STEPS, "together")
    folders = [Path(shutil.copytree(clinic.folder, place / name)) for name in names]
    command = [sys.executable, "-m", "tests.runner.killed", *map(str, folders)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [-9] * len(STEPS) + [0, 0]
    return {name: Clinic(folder) for name, folder in zip(names, folders, strict=True)}


def committed(clinic: Clinic) -> dict[str, str]:
    """The stored certificate of each version of the data."""
    ledger = clinic.ledger()
    rows = list(ledger.rows())
    datasets = {row.number: row.entry.datasets for row in rows if isinstance(row.entry, Reserved)}
    found = {}
    for row in rows:
        if isinstance(row.entry, Committed):
            (dataset,) = datasets[row.entry.charge]
            assert dataset.edition not in found, "a period has two answers"
            found[dataset.edition] = row.entry.certificate
    ledger.close()
    return found


def check_once(clinic: Clinic, out: Path) -> None:
    """One charge and one answer for each of the two periods, no more and no less, and the files are the answers."""
    ledger = clinic.ledger()
    reserved = [row.entry for row in ledger.rows() if isinstance(row.entry, Reserved)]
    labels = [entry.datasets[0].edition for entry in reserved]
    assert sorted(labels) == PERIODS
    assert ledger.balance(ACCOUNT).epsilon_spent == sum(entry.cost.epsilon for entry in reserved)
    assert ledger.verify() == ()
    ledger.close()
    answers = committed(clinic)
    assert sorted(answers) == sorted(labels)
    for label, text in answers.items():
        assert (out / "months" / f"{label}.certificate.json").read_text("utf-8").rstrip("\n") == text
        said = json.loads((out / "months" / f"{label}.json").read_text("utf-8"))
        assert said["identifier"] == json.loads(text)["statement"]["identifier"]


def rerun(clinic: Clinic) -> list[Fate]:
    ledger = clinic.ledger()
    fates = [outcome.fate for outcome in Runner.of(PlanFile.load(clinic.plan), ledger).run(clinic.out)]
    ledger.close()
    return fates


def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: no idempotency key reaches the ledger."""
    plain = Vault.release

    def keyless(self: Vault, *given: Any, **named: Any) -> Any:
        return plain(self, *given, **(named | {"idempotency": None}))

    monkeypatch.setattr(Vault, "release", keyless)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.long
def test_a_run_that_is_killed_is_finished_by_the_next(clinics: dict[str, Clinic], step: str, tmp_path: Path) -> None:
    clinic = Clinic(Path(shutil.copytree(clinics[step].folder, tmp_path / "again")))
    charges, answers = SURVIVED.get(step, (1, 1))
    before = committed(clinic)
    assert len(before) == answers
    ledger = clinic.ledger()
    assert ledger.balance(ACCOUNT).charges == charges
    ledger.close()
    assert rerun(clinic).count(Fate.RELEASED) == 2 - answers
    assert before.items() <= committed(clinic).items()  # what was stored is what is delivered
    check_once(clinic, clinic.out)
    assert set(rerun(clinic)) == {Fate.MISSING}


@pytest.mark.long
def test_without_its_key_a_killed_release_is_charged_twice(
    clinics: dict[str, Clinic], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: the checks above would notice it."""
    clinic = clinics["after draw"]
    without_keys(monkeypatch)
    rerun(clinic)
    with pytest.raises(AssertionError):
        check_once(clinic, clinic.out)


@pytest.mark.long
def test_two_runners_at_once_make_one_release(clinics: dict[str, Clinic]) -> None:
    clinic = clinics["together"]
    for out in ("one", "two"):
        check_once(clinic, clinic.folder / out)
