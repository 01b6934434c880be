"""Slots: time says nothing, blocks run one by one, and a run that is killed is charged once."""

import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.blocks import OUTCOMES
from sfumato.boxes import slots
from sfumato.boxes.box import Box, BoxLimits
from sfumato.core.budget import Budget
from sfumato.errors import Unsupported
from tests.governance.homes import furnished, sqlite_home
from tests.parts import boxes

LIMITS = BoxLimits(seconds=Fraction(1, 2), libraries=())
BLOCKS = [pa.table({"x": [float(place)]}) for place in range(3)]


def test_each_block_gets_its_own_answer_in_its_place() -> None:
    boxes()
    code = "def analyse(rows):\n  x = rows['x'][0].as_py()\n  return 1 / 0 if x == 1 else 10 * x"
    assert slots.answers_of_blocks(Box(limits=LIMITS), code, BLOCKS) == [(0.0,), None, (20.0,)]


@pytest.mark.long
def test_a_run_takes_the_same_time_whatever_its_program_does() -> None:
    boxes()
    box = Box(limits=BoxLimits(seconds=Fraction(1), libraries=()))
    taken = []
    for code in OUTCOMES.values():
        start = time.monotonic()
        slots.answers_of_blocks(box, code, BLOCKS)
        taken.append(time.monotonic() - start)
    step = slots.changing_time(len(BLOCKS))
    beside = [(each - 3) % step for each in taken]  # on a busy host some of them may be a whole step later
    assert all(min(each, step - each) < 0.05 for each in beside)


def test_a_box_that_never_starts_has_no_answer_and_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the block before could bring that about, by the memory that it takes."""
    boxes()

    def refused(self: object) -> None:
        raise Unsupported("a box could not be shut")

    monkeypatch.setattr(slots, "_TRIES", 1)
    monkeypatch.setattr("sfumato.boxes.box.WarmBox.ready", refused)
    quick = Box(limits=BoxLimits(seconds=Fraction(1, 100), libraries=()))
    assert slots.answers_of_blocks(quick, "def analyse(rows): return 1", BLOCKS[:2]) == [None, None]


def test_a_run_whose_boxes_start_more_slowly_than_slots_pass_is_planned_by_what_was_seen_before_any_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its end would come in steps by how busy the host is, which programs can bring about."""
    boxes()
    monkeypatch.setattr(slots, "_answer", lambda ready, code, block: None)
    quick = BoxLimits(seconds=Fraction(1, 100), libraries=())
    start = time.monotonic()
    slots.answers_of_blocks(Box(limits=quick, starts_in=2.0), "def analyse(rows): return 1", BLOCKS[:2])
    assert time.monotonic() - start >= 1 + 2 * (0.085 + 3)


KILLED = """
import sys
from fractions import Fraction
import pyarrow as pa, sfumato as sf
from sfumato.boxes.box import BoxLimits
from sfumato.boxes import slots
run = slots.answers_of_blocks
def told(*given):
    print("reading", flush=True)
    return run(*given)
slots.answers_of_blocks = told
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home
home = Home(url=sys.argv[1], folder=sys.argv[2])
vault = sf.Vault(unit=PATIENT, ledger=home.open(), account=ACCOUNT)
table = vault.table(pa.table({"patient_id": [1, 2, 3]}), name=VISITS.name, version=VISITS.edition)
code = "def analyse(rows): return 1.0"
asked = vault.block_mean(table, code, bounds=(0, 2), blocks=3, limits=BoxLimits(seconds=Fraction(1, 2), libraries=()))
print(asked.release(epsilon=5, idempotency="first").values, vault.spent.epsilon, flush=True)
"""


@pytest.mark.long
def test_a_run_that_is_killed_is_charged_once_and_finished_by_a_retry(tmp_path: Path) -> None:
    boxes()
    home = sqlite_home(tmp_path)
    roomy = Budget(epsilon=100)
    furnished(home, hospital=roomy, department=roomy, project=roomy).close()
    command = [sys.executable, "-c", KILLED, home.url, home.folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline().strip() == "reading"
        first.send_signal(signal.SIGKILL)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    values, _, spent = done.stdout.splitlines()[-1].rpartition(" ")
    assert (spent, again.stdout.splitlines()[-1]) == ("5", f"{values} 5")
    assert "reading" not in again.stdout
