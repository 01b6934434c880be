"""The owner process by its command, and questions that are charged through its socket."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sfumato.core.signature import SigningKey
from tests.cli.institution import done, refused
from tests.cli.test_query_ledger import ask, spent
from tests.governance.owners import short_folder


@pytest.fixture
def socket():
    with short_folder() as folder:
        yield folder / "s"


def during(run, socket: Path, work, *words: object) -> tuple[str, object]:
    """Serve in this process, do something meanwhile, and stop it by a signal; what it said, and what was done."""
    found: list[object] = []

    def meanwhile() -> None:
        until = time.monotonic() + 20
        while not socket.exists():  # it never appears where nothing is served, and then nothing is stopped
            if time.monotonic() > until:
                return
            time.sleep(0.01)
        try:
            found.append(work())
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=meanwhile)
    thread.start()
    before = signal.getsignal(signal.SIGTERM)
    said = done(run, "ledger", "serve", "--socket", socket, *words)
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == before
    (outcome,) = found
    return said, outcome


def test_it_serves_until_it_is_stopped(run, here, socket):
    def work() -> str:
        from sfumato.core.units import user
        from sfumato.governance.owner.client import RemoteLedger

        unit = user("patient_id", relation="add/remove")
        account = RemoteLedger(f"unix:{socket}", "hospital/oncology", unit=unit)
        left = str(account.left)
        account.disconnect()
        return left

    said, left = during(run, socket, work)
    assert said.startswith("serving the ledger ")
    assert f" at unix:{socket}\n" in said
    assert said.endswith("stopped; nothing is served any more.\n")
    assert left == "ε = 2, δ = 1/1000000"
    place = ("--key", "ledger.key", "--anchor", "ledger.anchor", "ledger.db")
    said, left = during(run, socket, work, "--json", *place)
    assert '"serving": ' in said
    assert not socket.exists()


def test_a_ledger_with_a_root_is_served_by_its_address_and_its_root(run, tmp_path, socket, monkeypatch):
    from sfumato.core.budget import Budget
    from sfumato.core.units import user
    from sfumato.governance import settings
    from sfumato.governance.owner.client import RemoteLedger

    monkeypatch.chdir(tmp_path)
    SigningKey.new().save(tmp_path / "root.key")
    settings.made(tmp_path, root=tmp_path / "root.key")
    unit = user("patient_id", relation="add/remove")
    book = settings.opened(tmp_path)
    book.open_account("hospital", unit=unit, cap=Budget(epsilon=1), reason="decided by the tests")
    book.close()
    place = ("ledger.db", "--key", "ledger.key", "--anchor", "ledger.anchor")
    assert "which one you trust was not said" in refused(run, "ledger", "serve", "--socket", socket, *place)
    words = (*place, "--root", "ledger.key.pub")
    assert "is not a root of this ledger" in refused(run, "ledger", "serve", "--socket", socket, *words)

    def work() -> str:
        account = RemoteLedger(f"unix:{socket}", "hospital", unit=unit)
        left = str(account.left)
        account.disconnect()
        return left

    said, left = during(run, socket, work, *place, "--root", "root.key.pub")
    assert said.startswith("serving the ledger ")
    assert left == "ε = 1"


def test_a_question_is_charged_through_the_socket_however_it_is_named(run, here, socket, monkeypatch):
    from sfumato.governance import settings
    from tests.governance.owners import served

    SigningKey.new().save(here / "release.key")
    book = settings.opened(here)
    address = f"unix:{socket}"
    (here / "elsewhere.toml").write_text(f'url = "{address}"\n')
    charge = ("--account", "hospital/oncology", "--key", "release.key")
    with served(book, place=socket):
        said = done(run, *ask(here, "--ledger", address, *charge, "--save", "c.json"))
        assert "charged: ε = 1/10\n" in said
        assert "ledger: hospital/oncology, which may still ask for ε = 19/10" in said
        assert "consistent" in done(run, "verify", "c.json", "--key", "release.key.pub")
        again = done(run, *ask(here, "--ledger", "elsewhere.toml", *charge))
        assert "charged: nothing, this is the stored answer" in again
        assert "hands out no key" in refused(run, *ask(here, "--ledger", address, "--account", "hospital/oncology"))
        assert "is an owner process" in refused(run, "account", "list", "--ledger", address)
        with monkeypatch.context() as elsewhere:
            (here / "apart").mkdir()
            elsewhere.chdir(here / "apart")
            elsewhere.setenv("SFUMATO_LEDGER", address)
            charge = ("--account", "hospital/oncology", "--key", "../release.key")
            assert "the stored answer" in done(run, *ask(here / "apart", *charge))
            (here / "ledger.toml").rename(here / "ledger.away")
            assert f"there is a ledger, {address}" in refused(run, *ask(here / "apart"))
            (here / "ledger.away").rename(here / "ledger.toml")
    book.close()
    assert spent(run) == ["1/10"] * 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ledger.db",), "by URL, --key and --anchor together"),
        (("--root", "ledger.key.pub"), "by URL, --key and --anchor together"),
        (("--ledger", ".", "--witness", "http://127.0.0.1:9"), "by URL, --key and --anchor together"),
        (("ledger.db", "--key", "ledger.key", "--anchor", "ledger.anchor", "--ledger", "."), "together"),
        (("--allow", "nobody of this name=hospital"), "knows no user"),
        (("--allow", "hospital"), "says nothing about a user"),
        (("--release-key", "0=nonsense"), "a public key is"),
        (("--ledger", "unix:/run/x"), "is an owner process"),
        (("--ledger", "nowhere.toml"), "there is no settings file"),
    ],
)
def test_what_cannot_be_served_is_said_and_nothing_is_served(run, here, socket, words, said):
    assert said in refused(run, "ledger", "serve", "--socket", socket, *words)
    assert not socket.exists()
