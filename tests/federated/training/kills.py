"""A training run by commands, killed at random points: ``python -m tests.federated.training.kills 100``.

Sites (``sfumato site answer``) and the coordinator (``sfumato consortium train``) are processes over HTTP. Every one is
killed as ``kill -9`` does, at a random moment, and started again with the same words. In the end the weights are those
that the released sums lead to, each sum is what its survivors add up to (noise is left out here, for that), every site
was charged once for each run, and it never sent two different numbers for one round.
"""

import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.federated_home import FederatedHome
from sfumato.federated import FedSGD, read_network
from sfumato.federated.http_site import FIRST_PAUSE
from sfumato.federated.messages import SumPhase
from sfumato.federated.server import SumResult
from sfumato.federated.training.run_exports import RunExports
from sfumato.federated.training.run_state import RunState
from tests.federated.hospitals import without_noise
from tests.federated.training.tables import SCHEMA, SITES, network, stays

ROUNDS, LR, PERSONS, CLIP = 4, 1.0, 90, 2
MOST_AGAIN = 5
COORDINATOR = "network"
CAP = ("--schema", "stays.toml", "--epsilon", "50", "--delta", "1e-6", "--reason", "test")
FORK = multiprocessing.get_context("fork")


@dataclass
class Commands:
    """The folders of all who take part, made by commands; whoever is killed is started again at once."""

    folder: Path
    port: int
    running: dict[str, ForkProcess] = field(default_factory=dict)

    def make(self) -> "Commands":
        os.chdir(self.folder)
        Path("stays.toml").write_text(SCHEMA, "utf-8")
        for seed, name in enumerate(SITES):
            self.ran("site", "new", name, *CAP)
            rows = stays(30, seed)
            lines = [",".join(rows), *(",".join(map(_cell, row)) for row in zip(*rows.values(), strict=True))]
            Path(f"{name}.csv").write_text("\n".join(lines), "utf-8")
        self.ran("consortium", "new", COORDINATOR, "--name", COORDINATOR, *CAP)
        keys = [word for name in SITES for word in ("--site", f"{name}={name}/ledger.key.pub")]
        place = ("--address", f"127.0.0.1:{self.port}", "-o", "agreement.toml")
        self.ran("consortium", "agree", COORDINATOR, *keys, "--sites-per-person", "1", "--missing", "1", *place)
        for name in SITES:
            self.ran("site", "join", name, "agreement.toml")
        return self

    def ran(self, *words: str) -> str:
        """What a command prints that ends by itself."""
        told = CliRunner().invoke(app, words)
        assert told.exit_code == 0, (words, told.stdout, told.stderr, told.exception)
        return told.stdout

    def start(self, name: str, number: int) -> None:
        words = ["site", "answer", name, f"{name}.csv"] if name != COORDINATOR else self.train(number)
        self.running[name] = FORK.Process(target=_command, args=(words, f"{name}.log"), daemon=True)
        self.running[name].start()

    def train(self, number: int) -> list[str]:
        """The words of the run with a number: each has a rate of its own, and is another run by that."""
        said = {"persons": PERSONS, "rounds": ROUNDS, "clip": CLIP, "lr": LR + number / 1000, "patience": 180}
        said |= {"epsilon": 1, "delta": "1e-8", "input": "age", "target": "died", "out": self.weights(number)}
        more = [word for name, value in said.items() for word in (f"--{name}", str(value))]
        return ["consortium", "train", COORDINATOR, "--input", "sex", *more]

    def weights(self, number: int) -> Path:
        return Path(f"model{number}.safetensors")

    def ended(self, number: int) -> bool:
        return self.weights(number).with_suffix(".json").exists()

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()

    def stop(self) -> None:
        for name in tuple(self.running):
            self.kill(name)

    def gone_on(self, number: int, times: int) -> int:
        """Give the command again that ended because sites were silent for too long, as it asks for."""
        if self.running[COORDINATOR].is_alive() or self.ended(number):
            return times
        said = Path(f"{COORDINATOR}.log").read_text()[-2000:]
        assert times < MOST_AGAIN, said
        assert "with the same call once they are back" in said or "too few sites take part" in said, said
        self.kill(COORDINATOR)
        self.start(COORDINATOR, number)
        return times + 1

    def spent(self, name: str) -> int:
        kind = "consortium" if name == COORDINATOR else "site"
        with FederatedHome.load(Path(name), kind).opened() as book:
            return int(book.balance(name).spent.epsilon)


def _cell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _command(words: list[str], log: str) -> None:
    with open(log, "a", buffering=1) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        app(words)


def watched(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have sites write down the numbers that they send, and the coordinator the sums that it learns from."""
    message, learned = RunExports.message, RunState.learned

    def sent(self: RunExports, data: bytes, terms: Any, phase: SumPhase, release: object = None) -> bytes:
        found = message(self, data, terms, phase, release)
        if phase is SumPhase.MASK:
            _note(folder / "sent.log", [terms.run, terms.number, self._key, sha256(found).hexdigest()])
        return found

    def told(self: RunState, result: SumResult, optimizer: Any) -> RunState:
        there = [result.terms.roster[place - 1] for place in result.survivors]
        _note(folder / "sums.log", [result.terms.run, result.terms.number, there, result.total.tolist()])
        return learned(self, result, optimizer)

    patch.setattr(RunExports, "message", sent)
    patch.setattr(RunState, "learned", told)


def _note(file: Path, line: list[object]) -> None:
    with file.open("a") as opened:
        opened.write(json.dumps(line) + "\n")
        opened.flush()


def checked(commands: Commands, number: int, run: str, keys: dict[str, str]) -> dict[str, int]:
    """Hold the weights of a run to the sums that were written down; how many rounds were lost, and sites missed."""
    lines = [json.loads(line) for line in Path("sums.log").read_text().splitlines()]
    sums: dict[int, tuple[list[str], list[int]]] = {}
    for said, turn, there, total in lines:
        if said.endswith(run):
            assert sums.setdefault(turn, (there, total)) == (there, total), "one round, two sums"
    assert all(1 <= turn <= ROUNDS for turn in sums)
    released = json.loads(commands.weights(number).with_suffix(".json").read_text())["statement"]["query"]
    assert released["done"] == len(sums)
    numerator, denominator = map(int, released["step"].split("/"))
    weights, kept, step = np.zeros(8), (), numerator / denominator
    how = FedSGD(lr=LR + number / 1000, momentum=0.9)
    for done, turn in enumerate(sorted(sums), 1):
        there, total = sums[turn]
        plain = sum((summed(keys[key], weights, step) for key in there), np.zeros(8))
        assert np.abs(plain - total).max() <= 60, (turn, plain, total)  # each person is rounded up or down at random
        clients = PERSONS * len(there) / len(SITES)
        weights, kept = how.step(weights, np.array(total, float) * (step / clients), kept, done)
        weights = weights.astype(np.float32).astype(np.float64)
    _, model = read_network(commands.weights(number))
    found = torch.cat([one.detach().flatten() for one in model.parameters()]).double().numpy()
    np.testing.assert_allclose(found, weights, atol=1e-6)
    return {"lost": ROUNDS - len(sums), "missed": sum(len(SITES) - len(there) for there, _ in sums.values())}


def summed(name: str, weights: np.ndarray, step: float) -> np.ndarray:
    """What one site adds to a round without noise: clipped gradients in steps of the lattice."""
    rows = stays(30, SITES.index(name))
    inputs = np.hstack([network().features(rows), np.ones((30, 1), dtype=np.float32)])
    scores = inputs[:, :3] @ weights[:6].reshape(2, 3).T + weights[6:]
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    wrong = chances - np.eye(2)[np.array(rows["died"], dtype=int)]
    each = np.hstack([(wrong[:, :, None] * inputs[:, None, :3]).reshape(30, 6), wrong])
    cut = np.minimum(1, CLIP / np.linalg.norm(each, axis=1, keepdims=True))
    total: np.ndarray = (each * cut).sum(axis=0) / step
    return total


def run(kills: int, folder: Path, *, longest: float = 2.0, seed: int = 24) -> dict[str, object]:
    """Kill so many processes; what was found, which raises where anything is lost or charged twice."""
    draw, number, left, silent = random.Random(seed), 0, kills, {"lost": 0, "missed": 0}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    commands = Commands(folder, port).make()
    keys = {FederatedHome.load(Path(name), "site").key.public_text: name for name in SITES}
    by = dict.fromkeys((*SITES, COORDINATOR), 0)
    try:
        for name in SITES:
            commands.start(name, 0)
        while left > 0 or number == 0:
            number += 1
            commands.start(COORDINATOR, number)
            killed = again = 0
            while not commands.ended(number):
                if left > 0 and killed < 12:
                    time.sleep(draw.uniform(FIRST_PAUSE, longest))
                    victim = draw.choice([*SITES, COORDINATOR, COORDINATOR])
                    if commands.ended(number):
                        break
                    commands.kill(victim)
                    commands.start(victim, number)
                    by[victim] += 1
                    left, killed = left - 1, killed + 1
                else:
                    time.sleep(0.05)
                    again = commands.gone_on(number, again)
            commands.running[COORDINATOR].join(30)
            commands.kill(COORDINATOR)
            document = json.loads(commands.weights(number).with_suffix(".json").read_text())
            for what, times in checked(commands, number, document["statement"]["query"]["run"], keys).items():
                silent[what] += times
    finally:
        commands.stop()
    sent: dict[tuple[str, int, str], set[str]] = {}
    for line in Path("sent.log").read_text().splitlines():
        of, turn, site, seal = json.loads(line)
        sent.setdefault((of, turn, site), set()).add(seal)
    assert {len(seals) for seals in sent.values()} == {1}, "two different numbers for one round"
    assert commands.spent(COORDINATOR) == number
    for name in SITES:
        assert number - silent["missed"] <= commands.spent(name) <= number, (name, commands.spent(name), number)
    return {"kills": by, "runs": number, "rounds": number * ROUNDS, **silent}


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as place:
        without_noise(patch)
        watched(patch, Path(place))
        print(run(int(sys.argv[1]), Path(place)))
