"""A forked process that makes one charge and kills itself at a given step of it.

A step is anything that could be interrupted: before and after each SQL statement, each commit, and each write to the
anchor. It tells what it was told was done, as a client would know it.
"""

import os

from sfumato.core.budget import Budget
from sfumato.errors import BudgetExceeded
from tests.governance.homes import VISITS, Home
from tests.steps import Steps

COST = Budget(epsilon="1/3")


def run(home: Home, request: str, last: int) -> tuple[int, list[str]]:
    """Make a charge in a process that is killed at its step ``last``; its exit code and what it told."""
    return finished(*started(home, request, last))


def started(home: Home, request: str, last: int) -> tuple[int, int]:
    """Start such a process: its id, and where it tells what was done."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.close(read)
            _spend(home, request, last, write)
            code = 0
        except BudgetExceeded:
            os.write(write, b"refused")
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    return child, read


def finished(child: int, read: int) -> tuple[int, list[str]]:
    """Wait for its end."""
    with os.fdopen(read) as told:
        words = told.read().split()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words


def _spend(home: Home, request: str, last: int, write: int) -> None:
    account = home.account()
    step = Steps(last)
    reservation = account.reserve(COST, datasets=[VISITS], idempotency=request)
    os.write(write, b"reserved ")
    step()
    account.commit_text(reservation, f"question of {request}", f'{{"answer":"{request}"}}')
    os.write(write, b"committed ")
    step()
    os.write(write, str(step.done).encode())
