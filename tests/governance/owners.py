"""Owner processes for tests: in a thread of the test, forked, or started by the command; and who charges there."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from socket import socket
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.ledger import Reservation
from sfumato.core.release import Release, presenter_of
from sfumato.core.signature import SigningKey
from sfumato.errors import BudgetExceeded
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.client import RemoteLedger
from sfumato.governance.owner.frames import Frames, Peer, peer_of
from sfumato.governance.owner.permissions import Permissions
from sfumato.governance.owner.server import OwnerServer, ServerLimits
from sfumato.reports.stored import stored_release
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home
from tests.steps import Steps

COST = Budget(epsilon="1/3")
NEW_USERS = 0x10000000  # of unshare(2): a namespace with users of its own


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


@cache
def template() -> tuple[Release, SigningKey]:
    """The count of a few visits, as a vault signed it, and its key."""
    key = SigningKey.new()
    vault = sf.Vault(unit=PATIENT, budget=Budget(epsilon=1), name="template", key=key)
    limit = sf.Limit(groups=1, rows_per_group=1)
    visits = vault.table(pa.table({"patient_id": [1, 2, 3]}), name=VISITS.name, version=VISITS.edition, limit=limit)
    return visits.count().release(epsilon=COST.epsilon), key


def answer(reservation: Reservation, **changed: object) -> Release:
    """A release that states a charge, signed; ``changed`` fields of its statement make it another one."""
    release, key = template()
    stated = {"account": reservation.account, "spend": reservation.cost} | changed
    statement = replace(release.statement, **stated)  # type: ignore[arg-type]
    signed = Certificate.sign(statement, key)
    return replace(release, presenter=presenter_of(release), statement=statement, certificate=signed)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has few bytes."""
    folder = Path(tempfile.mkdtemp(prefix="own-", dir="/tmp"))
    folder.chmod(0o755)
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


def forked(home: Home, place: Path, *, last: int = 0, users: bool = False, **given: Any) -> int:
    """An owner in a forked process, which kills itself at its step ``last``; its id, once it listens.

    With ``users`` it lives in a namespace that knows no user but its own.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.close(read)
            if users:
                _alone_with_its_user()
            ledger = home.open()
            server = OwnerServer(ledger, place, reader=stored_release, **given)
            Steps(last).watch(Frames, "read", "write")
            server.serve(lambda: os.close(write))
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as listening:
        listening.read()
    return child


def killed(child: int) -> int:
    """Kill a forked process, wait for its end, and say how it ended."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spender(address: str, request: str, *, last: int = 0, uid: int | None = None) -> tuple[int, str]:
    """A forked process that makes one charge and stores its answer, and kills itself at its step ``last``.

    How it ended, and what it was told was done.
    """
    template()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.close(read)
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            step = Steps(last)
            step.watch(Frames, "read", "write")
            _spend(address, request, write)
            os.write(write, f"{step.done}".encode())
            code = 0
        except sf.errors.SfumatoError as wrong:
            os.write(write, f"{type(wrong).__name__}: {wrong}".encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as told:
        words = told.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words


def _spend(address: str, request: str, write: int) -> None:
    account = RemoteLedger(address, ACCOUNT, unit=PATIENT, reader=stored_release)
    with account.asking(request):
        reservation = account.reserve(COST, datasets=[VISITS], idempotency=request)
        os.write(write, b"reserved ")
        account.commit(reservation, request, answer(reservation))
    os.write(write, b"committed ")


def _alone_with_its_user() -> None:
    before = os.geteuid()
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USERS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/uid_map").write_text(f"{before} {before} 1")


def refused_or_spent(account: RemoteLedger, name: str) -> str:
    """One request: its answer, or the refusal."""
    try:
        reservation = account.reserve(Budget(epsilon="1/3"), datasets=[VISITS])
    except BudgetExceeded:
        return "refused"
    account.commit(reservation, f"question {name}", answer(reservation))
    return "answered"
