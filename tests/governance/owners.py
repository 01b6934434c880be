"""Owner processes for tests: one in a thread of the test, one in a process of its own, and the accounts they keep."""

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import Any

from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.client import RemoteLedger
from sfumato.governance.owner.frames import Peer, peer_of
from sfumato.governance.owner.permissions import Permissions
from sfumato.governance.owner.server import OwnerServer, ServerLimits
from sfumato.reports.stored import stored_release
from tests.governance.homes import ACCOUNT, PATIENT, Home


@dataclass
class Owner:
    """Where an owner process listens, what it said, and the accounts that were opened through it."""

    place: Path
    said: list[str] = field(default_factory=list)
    process: "subprocess.Popen[str] | None" = None
    _accounts: list[RemoteLedger] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"unix:{self.place}"

    def account(self, path: str = ACCOUNT, **given: Any) -> RemoteLedger:
        account = RemoteLedger(self.address, path, unit=PATIENT, reader=stored_release, **given)
        self._accounts.append(account)
        return account

    def disconnect(self) -> None:
        for account in self._accounts:
            account.disconnect()


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has few bytes."""
    folder = Path(tempfile.mkdtemp(prefix="own-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def served(
    ledger: Ledger,
    *,
    place: Path | None = None,
    permissions: Permissions | None = None,
    limits: ServerLimits | None = None,
    credentials: Callable[[socket], Peer] = peer_of,
) -> Iterator[Owner]:
    """An owner in a thread of this process; ``credentials`` says who connects, where a test has no other users."""
    with short_folder() as folder:
        owner = Owner(place or folder / "s")
        server = OwnerServer(
            ledger,
            owner.place,
            reader=stored_release,
            permissions=permissions,
            limits=limits,
            credentials=credentials,
            log=owner.said.append,
        )
        ready = threading.Event()
        thread = threading.Thread(target=server.serve, args=(ready.set,))
        thread.start()
        assert ready.wait(10)
        try:
            yield owner
        finally:
            owner.disconnect()
            server.stop()
            thread.join(30)
            assert not thread.is_alive()


@contextmanager
def process(home: Home, *options: str, place: Path | None = None) -> Iterator[Owner]:
    """An owner in a process of its own, as ``sfumato ledger serve`` starts it."""
    with short_folder() as folder:
        owner = Owner(place or folder / "s")
        words = ("ledger", "serve", "--socket", owner.place, "--key", home.key, "--anchor", home.anchor, home.url)
        command = [sys.executable, "-m", "sfumato.cli", *map(str, words), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            owner.process = running
            assert running.stdout is not None
            line = running.stdout.readline()
            assert "serving" in line, line + running.stdout.read()
            try:
                yield owner
            finally:
                owner.disconnect()
                with suppress(ProcessLookupError):
                    running.send_signal(signal.SIGTERM)
                owner.said.extend(running.communicate(timeout=30)[0].splitlines())
