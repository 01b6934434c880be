"""Training by commands, as processes over HTTP: some are killed, and one is taken out of the run by its committee."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.cli.federated_home import FederatedHome
from tests.federated.hospitals import without_noise
from tests.federated.training.kills import COORDINATOR, ROUNDS, Commands, checked, run, watched
from tests.federated.training.tables import SITES


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = Path.cwd()
    without_noise(monkeypatch)
    watched(monkeypatch, tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.mark.long
def test_killed_processes_of_a_run_lose_nothing_and_are_charged_once(place: Path) -> None:
    found = run(6, place)
    assert sum(found["kills"].values()) == 6  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_site_that_its_committee_takes_out_leaves_mid_way_and_the_others_go_on(place: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    commands, sums = Commands(place, port).make(), place / "sums.log"
    keys = {FederatedHome.load(Path(name), "site").key.public_text: name for name in SITES}
    try:
        for name in (*SITES, COORDINATOR):
            commands.start(name, 1)
        while not sums.exists():
            time.sleep(0.01)
            assert commands.running[COORDINATOR].is_alive()
        os.kill(commands.running[COORDINATOR].pid or 0, signal.SIGSTOP)  # the rounds wait while the committee meets
        (standing,) = json.loads(commands.ran("site", "runs", "west", "--json"))["runs"]
        commands.ran("site", "leave", "west", standing["run"][:12])
        os.kill(commands.running[COORDINATOR].pid or 0, signal.SIGCONT)
        while not commands.ended(1):
            time.sleep(0.05)
            assert commands.running[COORDINATOR].is_alive() or commands.ended(1)
    finally:
        commands.stop()
    found = checked(commands, 1, standing["run"], keys)
    assert found["lost"] == 0
    there = [[keys[key] for key in json.loads(line)[2]] for line in sums.read_text().splitlines()]
    assert "west" in there[0]
    assert "west" not in there[-1]
    assert all({"north", "south"} <= set(names) for names in there)
    assert len(there) == ROUNDS
    assert [commands.spent(name) for name in (*SITES, COORDINATOR)] == [1, 1, 1, 1]
