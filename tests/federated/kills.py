"""Hospitals and a coordinator as processes over HTTP, killed at random points: ``python -m tests.federated.kills 100``.

Every process is killed as ``kill -9`` does, at a random moment of a round, and started again. In the end every sum is
exact (noise is left out here, for that), and each ledger was charged once for each question.
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
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.question import Question
from sfumato.core.signature import SigningKey
from sfumato.federated import Hospital, HttpSite, HttpTransport, SiteAgreement
from sfumato.governance.ledger import Ledger
from sfumato.tables.table import Table
from tests.federated.hospitals import FACTS, ROWS, UNIT, without_noise

EPSILON, DELTA = "1/10", "1/100000000"
PATIENCE = 60.0
COORDINATOR = "network"
FORK = multiprocessing.get_context("fork")


@dataclass
class Homes:
    """The folders of all who take part, and what they agreed on."""

    folder: Path
    port: int
    members: dict[str, str] = field(default_factory=dict)
    coordinator: str = ""

    def make(self) -> "Homes":
        cap = sf.Budget(epsilon=50, delta=1e-6)
        for name in (*ROWS, COORDINATOR):
            home = self.folder / name
            home.mkdir()
            SigningKey.new().save(home / "ledger.key")
            book = Ledger.create(str(home / "ledger.db"), key=home / "ledger.key", anchor=home / "anchor")
            book.open_account(name, unit=UNIT, cap=cap, reason="test")
            book.declare_population(name, unit=UNIT, cap=cap, reason="test")
            book.declare_dataset(Dataset(name="stays", edition="1"), population=name, cap=cap)
            book.close()
        self.members = {name: self.key(name).public_text for name in ROWS}
        self.coordinator = self.key(COORDINATOR).public_text
        return self

    def key(self, name: str) -> SigningKey:
        return SigningKey.load(self.folder / name / "ledger.key")

    def vault(self, name: str) -> sf.Vault:
        home = self.folder / name
        book = Ledger.open(str(home / "ledger.db"), key=home / "ledger.key", anchor=home / "anchor")
        return sf.Vault(unit=UNIT, ledger=book, account=name)

    def spent(self, name: str) -> sf.Budget:
        return self.vault(name).spent

    def serve(self, name: str) -> None:
        """The process of a hospital."""
        own = ROWS[name]
        frame = pa.table({**own, "died": [age > 45 for age in own["age"]]})
        paper = SiteAgreement(
            members=self.members, sites_per_person=1, missing=1, coordinator=self.coordinator, least_sites=2
        )
        table = self.vault(name).table(frame, name="stays", version="1", **FACTS)
        site = Hospital(table, agreement=paper, folder=self.folder / name / "rounds")
        address = f"127.0.0.1:{self.port}"
        HttpSite(site, key=self.key(name), coordinator=self.coordinator, address=address).run()

    def ask(self, number: int) -> None:
        """The process of a coordinator: one question; the answer is written when it was released."""
        transport = HttpTransport(
            key=self.key(COORDINATOR), sites=self.members.values(), port=self.port, patience=PATIENCE
        )
        network = self.vault(COORDINATOR).consortium(
            sites=self.members,
            missing=1,
            sites_per_person=1,
            transport=transport,
            folder=self.folder / COORDINATOR / "rounds",
        )
        stays = network.table(name="stays", whole=["weeks"], **FACTS)
        release = asked(stays, number).release(epsilon=EPSILON, delta=DELTA)
        there = network.verify(release).survivors
        text = json.dumps({"values": release.values, "survivors": [list(ROWS)[place - 1] for place in there]})
        part = self.folder / "part"
        part.write_text(text)
        part.replace(self.answer(number))

    def answer(self, number: int) -> Path:
        return self.folder / f"{number}.json"


def asked(stays: Table, number: int) -> Question:
    """A question of its own for each number."""
    return stays.where(sf.col("age") >= number).group_by("sex").count()


def exact(number: int, names: list[str]) -> list[int]:
    """What the sum is without noise."""
    chosen = [
        sex for name in names for sex, age in zip(ROWS[name]["sex"], ROWS[name]["age"], strict=True) if age >= number
    ]
    return [chosen.count("F"), chosen.count("M")]


class Processes:
    """Who runs; whoever is killed is started again at once."""

    def __init__(self, homes: Homes) -> None:
        self.homes, self.running = homes, dict[str, ForkProcess]()

    def start(self, name: str, number: int) -> None:
        work = (self.homes.ask, (number,)) if name == COORDINATOR else (self.homes.serve, (name,))
        self.running[name] = FORK.Process(target=work[0], args=work[1], daemon=True)
        self.running[name].start()

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()

    def stop(self) -> None:
        for name in tuple(self.running):
            self.kill(name)


def run(kills: int, folder: Path, *, longest: float = 2.0, seed: int = 24) -> dict[str, object]:
    """Kill so many processes; give what was found, which raises where anything is lost or charged twice."""
    draw, number, left = random.Random(seed), 0, kills
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    homes = Homes(folder, port).make()
    processes, by = Processes(homes), dict.fromkeys((*ROWS, COORDINATOR), 0)
    silent = 0
    try:
        for name in ROWS:
            processes.start(name, 0)
        while left > 0 or number == 0:
            number += 1
            processes.start(COORDINATOR, number)
            killed = 0
            while not homes.answer(number).exists():
                if left > 0 and killed < 12:
                    time.sleep(draw.uniform(0, longest))
                    victim = draw.choice([*ROWS, COORDINATOR, COORDINATOR])
                    processes.kill(victim)
                    processes.start(victim, number)
                    by[victim] += 1
                    left, killed = left - 1, killed + 1
                else:
                    time.sleep(0.05)
                    assert processes.running[COORDINATOR].is_alive() or homes.answer(number).exists()
            processes.kill(COORDINATOR)
            told = json.loads(homes.answer(number).read_text())
            assert told["values"] == exact(number, told["survivors"]), told
            silent += len(ROWS) - len(told["survivors"])
    finally:
        processes.stop()
    for name in (*ROWS, COORDINATOR):
        spent = homes.spent(name).epsilon * 10
        assert spent == number or (name in ROWS and number - silent <= spent <= number), (name, spent, number)
    return {"kills": by, "questions": number, "left a round": silent}


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as place:
        without_noise(patch)
        print(run(int(sys.argv[1]), Path(place)))
