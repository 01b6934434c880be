"""The witness by its commands: from two empty folders to a head that both have signed, and what a loss costs."""

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.governance.witness import Witness
from sfumato.governance.witness_server import WitnessServer


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    return tmp_path


@pytest.fixture
def address(here, done) -> Iterator[str]:
    """A ledger in this folder, and a witness that answers and was told of it."""
    done("ledger", "init")
    done("ledger", "head", "-o", "head.json")
    done("witness", "init", "witness")
    done("witness", "enrol", "witness", "head.json", "--key", "ledger.key.pub")
    with WitnessServer(Witness(here / "witness")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


@pytest.fixture
def done(run):
    """Run a command that must succeed; what it printed."""

    def run_it(*words: object) -> str:
        outcome = run(*words)
        assert outcome.exit_code == 0, (words, outcome.stderr, outcome.stdout)
        return str(outcome.stdout)

    return run_it


KEY = "witness/witness.key.pub"


def test_a_ledger_and_its_witness_by_their_commands(run, done, here, address):
    assert "witness" not in json.loads(done("ledger", "head", "--json"))
    said = done("witness", "name", KEY, "--lease-epsilon", "1/2", "--reason", "x", "--address", address)
    assert "with a lease of ε = 1/2" in said
    assert f'witness = "{address}"' in (here / "ledger.toml").read_text()
    assert run("witness", "name", KEY, "--lease-epsilon", 1, "--reason", "x", "--address", "http://b:1").exit_code == 1
    assert "has seen nothing of this record yet" in done("ledger", "verify")
    assert "entry 2 was witnessed" in done("witness", "renew", "-o", "seen.json")
    assert json.loads(done("witness", "ledgers", "witness", "--json"))[0]["entry"] == 2
    done("account", "open", "hospital", "--unit", "user:id", "--epsilon", 3, "--reason", "x")
    stands = json.loads(done("ledger", "verify", "--witnessed", "seen.json", "--json"))
    key = (here / KEY).read_text().strip()
    assert stands["holds"]
    assert (stands["witness"]["key"], stands["witness"]["entry"], stands["witness"]["entries_after"]) == (key, 2, 1)
    words = run("ledger", "head")
    assert json.loads(words.stdout)["kind"] == "ledger.signed_head"  # it can be piped
    assert f"The witness {key} has seen entry 2" in words.stderr
    assert "1 entry and ε = 0 came after it, of a lease of ε = 1/2" in words.stderr
    forged = json.loads((here / "seen.json").read_text()) | {"root": "0" * 64}
    (here / "forged.json").write_text(json.dumps(forged))
    assert run("ledger", "verify", "--witnessed", "forged.json").exit_code != 0
    assert "not a witnessed head" in run("ledger", "verify", "--witnessed", "head.json").stderr
    assert "goes with a ledger" in run("ledger", "verify", "--witnessed", "seen.json", "--export", "x").stderr


def test_a_recovery_says_how_it_knows(run, done, here, address):
    done("witness", "name", KEY, "--lease-epsilon", "1/2", "--reason", "x", "--address", address)
    done("account", "open", "hospital", "--unit", "user:id", "--epsilon", 3, "--reason", "x")
    done("witness", "renew")
    (here / "ledger.anchor").unlink()
    recovered = json.loads(done("ledger", "recover", "--reason", "the anchor's disk broke", "--json"))
    assert recovered["charged"]["epsilon"] == "1/2"
    assert recovered["basis"].startswith("the witness saw entry 3 last")
    assert "entry 4 was witnessed" in done("witness", "renew")
    (here / "ledger.anchor").unlink()
    said = done("ledger", "recover", "--reason", "again", "--witness-lost")
    assert "nothing is left under any cap" in said
    assert "How that is known: the witness is lost" in said


def test_an_old_folder_is_refused_by_the_witness(run, done, here, address):
    done("witness", "name", KEY, "--lease-epsilon", "1/2", "--reason", "x", "--address", address)
    for file in ("ledger.db", "ledger.anchor"):
        shutil.copy(here / file, here / f"old-{file}")
    done("account", "open", "hospital", "--unit", "user:id", "--epsilon", 3, "--reason", "x")
    done("witness", "renew")
    for file in ("ledger.db", "ledger.anchor"):
        (here / file).unlink()
        shutil.copy(here / f"old-{file}", here / file)
    (here / "ledger.anchor.witnessed").unlink()
    done("ledger", "verify")  # nothing in the folder shows it
    outcome = run("witness", "renew")
    assert outcome.exit_code == 1
    assert "has seen another entry 3 of this ledger" in outcome.stderr


def test_the_end_of_a_witness(run, done, here, address):
    name = json.loads((here / "head.json").read_text())["head"]["ledger"]
    assert name in done("witness", "end", "witness", "head.json")
    assert "ended at entry 0" in done("witness", "ledgers", "witness")
    assert run("witness", "end", "witness", "head.json").exit_code == 1
    assert run("witness", "init", "witness").exit_code == 1


def test_it_is_served_until_it_is_stopped(here, done):
    done("witness", "init", "witness")
    command = [sys.executable, "-m", "sfumato.cli", "witness", "serve", "witness", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = json.loads("".join(process.stdout.readline() for _ in range(4)))
        assert said["witness"] == (here / KEY).read_text().strip()
        from http.client import HTTPConnection

        host, _, port = said["address"].removeprefix("http://").partition(":")
        connection = HTTPConnection(host, int(port), timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert "Traceback" not in process.stderr.read()


def test_a_port_that_is_taken_is_said(run, here, address):
    port = address.rpartition(":")[2]
    outcome = run("witness", "serve", "witness", "--port", port)
    assert outcome.exit_code == 1
    assert f"cannot listen at 127.0.0.1:{port}" in outcome.stderr


def test_the_witness_is_told_of_another_key_that_charges(run, done, here, address):
    enrol = ("witness", "enrol", "witness", "head.json", "--key")
    assert "enrolled already" in run(*enrol, "ledger.key.pub").stderr
    assert " alone signs" in done(*enrol, "ledger.key.pub", "--instead")
    assert " too signs" in done(*enrol, "ledger.key.pub", "--also")
    assert "nothing was done" in run(*enrol, "ledger.key.pub", "--also", "--instead").stderr
    assert "not signed with this key" in run(*enrol, KEY, "--instead").stderr
