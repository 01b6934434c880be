"""A process that trains with a checkpoint and a ledger, and kills itself at a given point of that.

A point is anything that could be interrupted: before and after each SQL statement, each commit, each write to the
anchor, whatever happens to the file of the state, and each part of a step of training. It tells what it was shown.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.governance.ledger import Ledger
from sfumato.learning import Trainer, Units, weights_digest
from sfumato.learning.run import Run
from sfumato.vault import Vault
from tests.governance.homes import Home
from tests.learning.words import TestWords
from tests.steps import Steps

UNIT = sf.record(relation="add/remove")
LARGE = sf.Budget(epsilon=10**4, delta="1/1000000")
SPEND = {"epsilon": 2, "delta": "1/1000000000"}
NUMBER, STEPS, EVERY = 60, 8, 3


def furnished(home: Home) -> Ledger:
    """A ledger with one account and one dataset."""
    ledger = home.create()
    ledger.declare_population("all", unit=UNIT, cap=LARGE, reason="test")
    ledger.declare_dataset(Dataset(name="visits", edition="1"), population="all", cap=LARGE)
    ledger.open_account("clinic", unit=UNIT, cap=LARGE, reason="test")
    return ledger


def rows_of() -> tuple[Tensor, Tensor]:
    """The same invented rows in every process."""
    place = torch.arange(NUMBER * 3, dtype=torch.float32).reshape(NUMBER, 3)
    inputs = torch.sin(place * 1.7)
    return inputs, (inputs.sum(1) > 0).long()


def model_of() -> nn.Module:
    """The same untrained model in every process, with dropout: its draws are part of a state as well."""
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.1), nn.Linear(4, 2))


def trainer_of(home: Home) -> tuple[nn.Module, Trainer]:
    """The same question in every process."""
    torch.set_num_threads(1)  # a forked process has none of the others
    vault = Vault(unit=UNIT, ledger=home.url, account="clinic", key=home.key, anchor=home.anchor)
    model, (inputs, targets) = model_of(), rows_of()
    data = Units(inputs, targets, n_units=NUMBER, name="visits", version="1")
    trainer = vault.trainer(model, nn.functional.cross_entropy, data=data, clip=1)
    trainer._words = TestWords
    return model, trainer


def said(state: Path) -> dict[str, Any]:
    """What starts and resumes the run of a file."""
    return {
        **SPEND,
        "steps": STEPS,
        "batch": 20,
        "every": EVERY,
        "optimizer": torch.optim.Adam,
        "lr": 0.05,
        "checkpoint": state,
        "idempotency": state.name,
    }


def trained(home: Home, state: Path, watch: Callable[[int, Mapping[str, Tensor]], Any] | None = None) -> Any:
    """What a client does, after a crash and without one: resume where there is a state, else begin."""
    model, trainer = trainer_of(home)
    found = trainer.fit(**said(state), resume=state.exists(), callback=watch)
    assert found.model is model
    return found


def run(home: Home, state: Path, last: int) -> tuple[int, list[str]]:
    """Train in a process that is killed at its point ``last``; its exit code and what it was shown."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.close(read)
            _train(home, state, last, write)
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


def _train(home: Home, state: Path, last: int, write: int) -> None:
    point = Steps(last)
    point.watch(os, "fsync", "replace", "unlink")
    point.watch(Run, "_summed", "_learn")

    def shown(step: int, weights: Mapping[str, Tensor]) -> None:
        with torch.random.fork_rng():  # whoever looks on draws nothing of what the run draws
            copy = model_of()
        copy.load_state_dict(weights)
        os.write(write, f"{step}:{weights_digest(copy)} ".encode())
        point()

    found = trained(home, state, shown)
    os.write(write, f"end:{weights_digest(found.model)} ".encode())
    os.write(write, str(point.done).encode())
