"""Runs of a plan in processes that end themselves: ``python -m tests.runner.killed FOLDER...``.

One process loads everything and forks a child for each run, before any engine was started. In each folder but the last
a child kills itself at one of the steps of its first release. In the last one there are two children, both of which
ask the first question before either has its answer. The exit codes are printed as JSON.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis.backends.duckdb
import sqlglot.dialects.duckdb

from sfumato.governance.durable import DurableLedger
from sfumato.runner import PlanFile, Runner
from tests.runner.clinic import Clinic

STEPS = ("before reserve", "after reserve", "after draw", "after commit", "before certificate", "before result")
LOADED = (ibis.backends.duckdb, sqlglot.dialects.duckdb)  # once, and not in every child


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, *, before: Callable[[], None] | None, after: Callable[[], None] | None) -> None:
    plain = getattr(owner, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        if before is not None:
            before()
        result = plain(*given, **named)
        if after is not None:
            after()
        return result

    setattr(owner, name, wrapped)


def on_call(number: int, action: Callable[[], None]) -> Callable[[], None]:
    calls = 0

    def counted() -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            action()

    return counted


def arm(step: str) -> None:
    """Kill this process at a step of its first release."""
    match step:
        case "before reserve":
            around(DurableLedger, "reserve", before=die, after=None)
        case "after reserve":
            around(DurableLedger, "reserve", before=None, after=die)
        case "after draw":
            around(DurableLedger, "commit", before=die, after=None)
        case "after commit":
            around(DurableLedger, "commit", before=None, after=die)
        case "before certificate":
            around(Path, "replace", before=die, after=None)
        case "before result":
            around(Path, "replace", before=on_call(2, die), after=None)


def meet(folder: Path) -> None:
    """Wait, with a question that has no stored answer, until the other process is as far."""
    (folder / f"here-{os.getpid()}").touch()
    for _ in range(2000):
        if len(list(folder.glob("here-*"))) == 2:
            return
        time.sleep(0.01)
    os._exit(9)


def started(folder: Path, prepare: Callable[[], None], out: str) -> int:
    child = os.fork()
    if child == 0:
        code = 3
        try:
            prepare()
            clinic = Clinic(folder)
            for _ in Runner.of(PlanFile.load(clinic.plan), clinic.ledger()).run(folder / out):
                pass
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folders: list[Path]) -> list[int]:
    *several, both = folders
    killed = [
        ended(started(folder, lambda step=step: arm(step), "out")) for step, folder in zip(STEPS, several, strict=True)
    ]
    wait = on_call(1, lambda: meet(both))

    def ready() -> None:
        around(DurableLedger, "asking", before=wait, after=None)

    return killed + [ended(child) for child in [started(both, ready, out) for out in ("one", "two")]]


if __name__ == "__main__":
    print(json.dumps(main([Path(folder) for folder in sys.argv[1:]])))
