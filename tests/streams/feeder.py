"""A process that feeds a stream with a state and a ledger, and kills itself at a given step of that.

A step is anything that could be interrupted: before and after each SQL statement, each commit, each write to the
anchor, and whatever happens to the file of the state. It tells what it was told, as a client would know it.
"""

import os
import sys
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.governance.ledger import Ledger
from sfumato.vault import Vault
from tests.governance.homes import Home
from tests.steps import Steps

UNIT = sf.event(relation="add/remove")
LARGE = sf.Budget(epsilon=10**6, delta="1/1000000")
SPEND = {"epsilon": 100, "delta": "1/1000000000"}  # so much that totals come out right when rounded to hundreds
HORIZON = 8
FED = (300, 100, 400, 100, 500, 900, 200, 600)
RISING = (1, 300, 2, 300, 300)  # two alarms, at steps 2 and 4
WATCHED = {"threshold": 100, "alarms": 2}


def furnished(home: Home) -> Ledger:
    """A ledger with one account and one dataset."""
    ledger = home.create()
    ledger.declare_population("all", unit=UNIT, cap=LARGE, reason="test")
    ledger.declare_dataset(Dataset(name="er", edition="1"), population="all", cap=LARGE)
    ledger.open_account("er", unit=UNIT, cap=LARGE, reason="test")
    return ledger


def question(home: Home, kind: str = "totals", horizon: int = HORIZON) -> Any:
    """The same question in every process."""
    vault = Vault(unit=UNIT, ledger=home.url, account="er", key=home.key, anchor=home.anchor)
    stream = vault.stream(name="er", version="1", horizon=horizon)
    return stream.running_total(strategy="square root") if kind == "totals" else stream.alarms(**WATCHED)


def said(state: Path, kind: str = "totals") -> dict[str, Any]:
    """What opens and resumes the stream of a file."""
    spend = SPEND if kind == "totals" else {"epsilon": 100}
    return {**spend, "state": state, "idempotency": state.name}


def run(home: Home, state: Path, last: int, kind: str = "totals") -> tuple[int, list[str]]:
    """Feed a new stream in a process that is killed at its step ``last``; its exit code and what it told."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.close(read)
            _feed(home, state, last, kind, write)
            code = 0
        except Exception as wrong:  # noqa: BLE001 - a test that fails should say why
            os.write(write, f"{type(wrong).__name__}: {wrong}".encode())
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as told:
        words = told.read().split()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -9), " ".join(words)
    return code, words


def tried(home: Home, state: Path) -> str:
    """Resume a state in another process; how that went."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            question(home).resume(**said(state) | {"idempotency": "the stream"}).add(1)
            os.write(write, b"went on")
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is told
            os.write(write, f"{type(wrong).__name__}: {wrong}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        found = told.read()
    os.waitpid(child, 0)
    return found


def _feed(home: Home, state: Path, last: int, kind: str, write: int) -> None:
    asked = question(home, kind)
    step = Steps(last)
    step.watch(os, "fsync", "replace", "unlink")
    running = asked.open(**said(state, kind))
    for value in FED[:3] if kind == "totals" else RISING[:4]:
        if kind == "totals":
            os.write(write, f"{float(running.add(value))!r} ".encode())
        else:
            reading = running.check(value)
            os.write(write, f"{'-' if reading.gap is None else reading.gap} ".encode())
        step()
    running.close()
    os.write(write, b"closed ")
    step()
    os.write(write, str(step.done).encode())


def main() -> None:
    """Feed a long stream until somebody kills this process."""
    home = Home(url=sys.argv[1], folder=sys.argv[2])
    running = question(home, horizon=500).open(**said(Path(sys.argv[3])))
    for place in range(500):
        told = float(running.add(FED[place % HORIZON]))
        sys.stdout.write(f"{told!r}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
