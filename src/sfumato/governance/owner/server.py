"""The owner process: a Unix socket on which vaults of other processes charge the accounts of one ledger.

One thread for each connection, and limits for all that a client can make it wait for or keep. What a client is allowed
follows from who it is, as the kernel states it.
"""

import fcntl
import os
import select
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.documents import Document
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance.anchor import FileAnchor
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner import messages as said
from sfumato.governance.owner.frames import SHORT_BYTES, Broken, Frames, Gone, Peer, Stalled, peer_of
from sfumato.governance.owner.permissions import Permissions
from sfumato.governance.owner.served import Holders, ServedAccount

__all__ = ["OwnerServer", "ServerLimits"]

LONGEST_PATH = 100
"""Bytes of the path of a socket: the kernel takes 107."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What a client may make the process wait for or keep; times in seconds.

    ``frame`` is for a message that has begun to arrive or to be taken, ``idle`` for a connection that holds nothing,
    ``held`` for a question: after it others may ask the same, and pay for it. ``cut`` is how long a retry waits until
    the end of the connection before it was noticed.
    """

    frame: float = 10
    idle: float = 600
    held: float = 3600
    cut: float = 2
    ending: float = 10
    each_user: int = 128
    in_all: int = 512


class OwnerServer:
    """Serves one ledger on one socket, until it is stopped.

    Guarantee: budgets hold whatever clients send, and wherever one stops; no client holds up others, but by asking the
    same question; two owners never serve one ledger. Assumes: this process alone can write to database and anchor and
    read the key; who may charge an account tells the truth about what is read for it.
    """

    def __init__(
        self,
        ledger: Ledger,
        place: str | Path,
        *,
        reader: Callable[[str], Release],
        permissions: Permissions | None = None,
        limits: ServerLimits | None = None,
        credentials: Callable[[socket.socket], Peer] = peer_of,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.place = _checked(Path(place).absolute())
        self._ledger, self._reader, self._log = ledger, reader, log
        self._permissions, self._limits = permissions or Permissions(), limits or ServerLimits()
        self._credentials, self._holders = credentials, Holders(self._limits.cut)
        self._turn = threading.Lock()
        self._open: dict[socket.socket, tuple[threading.Thread, int]] = {}
        self._stopping = threading.Event()
        self._wake_read, self._wake_write = socket.socketpair()

    def stop(self) -> None:
        """Take no more connections and end :meth:`serve`; may be called by a signal, or by another thread."""
        self._stopping.set()
        with suppress(OSError):  # it has ended already
            self._wake_write.send(b".")

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer until :meth:`stop`. ``ready`` is called once connections are taken.

        At the end requests that are under way are finished, connections are closed, and what they left open counts.
        """
        with self._wake_read, self._wake_write, self._locked():
            try:
                with self._listening() as listening:
                    ready()
                    while not self._stopping.is_set():
                        connection = self._next(listening)
                        if connection is not None:
                            self._begin(connection)
            finally:
                self._end()

    # ---------------------------------------------------------------------------------------------------- the socket

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the ledger, and the place of the socket, against other owner processes."""
        place = self._ledger.record.anchor
        if not isinstance(place, FileAnchor):
            raise NotDeclared("an owner process keeps the anchor in a file of its own; nothing was served. Give one.")
        anchor = place.path.resolve()
        with ExitStack() as held:
            for file, what in (
                (anchor.with_name(f"{anchor.name}.owner"), "this ledger is served by another owner process"),
                (self.place.with_name(f"{self.place.name}.lock"), f"another owner process listens at {self.place}"),
            ):
                descriptor = _opened(file)
                held.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise LedgerError(f"{what} already; nothing was served. Stop that one first.") from None
            yield

    @contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        """The socket, in place of one that a killed process left; it appears with its mode, never before."""
        with suppress(FileNotFoundError):
            if not stat.S_ISSOCK(self.place.lstat().st_mode):
                raise InvalidInput(
                    f"{self.place} is there and is not a socket; nothing was served. Name another place."
                )
        early = self.place.with_name(f"{self.place.name}.new")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            try:
                early.unlink(missing_ok=True)
                listening.bind(str(early))
                early.chmod(0o600 if self._permissions.alone else 0o666)
                listening.listen(self._limits.in_all)
                early.rename(self.place)
            except OSError as wrong:
                raise LedgerError(
                    f"the socket {self.place} cannot be made: {wrong.strerror}. Nothing was served. Choose a folder of "
                    "the owner's."
                ) from None
            try:
                yield listening
            finally:
                self.place.unlink(missing_ok=True)

    def _next(self, listening: socket.socket) -> socket.socket | None:
        waited = select.poll()
        for each in (listening, self._wake_read):
            waited.register(each, select.POLLIN)
        ready = {number for number, _ in waited.poll()}
        if listening.fileno() not in ready:
            return None
        try:
            return listening.accept()[0]
        except OSError:  # who connected is gone, or this process has no more files
            self._stopping.wait(0.05)
            return None

    # ----------------------------------------------------------------------------------------------- the connections

    def _begin(self, connection: socket.socket) -> None:
        """Answer a connection in a thread of its own, or refuse it: who it is, and how many there are."""
        try:
            uid = self._credentials(connection).uid
            with self._turn:
                users = Counter(user for _, user in self._open.values())
            self._permissions.check_user(uid)
            if users[uid] >= self._limits.each_user or users.total() >= self._limits.in_all:
                raise LedgerError(
                    f"the owner process has {users[uid]} connections of user {uid} and {users.total()} in all, and "
                    "takes no more; nothing was read and nothing was spent. Close some, or try again later."
                )
        except (SfumatoError, OSError) as wrong:
            refusal = wrong if isinstance(wrong, SfumatoError) else Refused("nobody knows who connects.")
            self._log(f"refused: {refusal}")
            with suppress(Gone, Stalled):
                Frames(connection).write(Frames.packed(said.ErrorReply.of(refusal)), within=0.1)
            connection.close()
            return
        thread = threading.Thread(target=self._attended, args=(connection, uid), daemon=True)
        with self._turn:
            self._open[connection] = (thread, uid)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more threads
            with self._turn:
                del self._open[connection]
            connection.close()

    def _attended(self, connection: socket.socket, uid: int) -> None:
        """All of one connection; whatever ends it, its charges are closed and its place is free again."""
        try:
            self._answer(Frames(connection), uid)
        except Gone:
            pass  # as every connection ends
        except Stalled:
            self._log(f"user {uid}: the connection said nothing for too long and was closed")
        except SfumatoError as wrong:
            self._log(f"user {uid}: {wrong}")
        except Exception as bug:  # noqa: BLE001 - one connection's failure must not end the others
            self._log(f"user {uid}: the connection was ended by a {type(bug).__name__}")
        finally:
            with self._turn:
                self._open.pop(connection, None)
            connection.close()

    def _answer(self, frames: Frames, uid: int) -> None:
        patience, served = self._limits, None
        try:
            hello = self._read(frames, wait=patience.frame, most=SHORT_BYTES)
            served = self._welcomed(hello, uid)
            self._write(frames, said.WelcomeReply(ledger=self._ledger.identifier))
            while not self._stopping.is_set():
                request = self._read(frames, wait=None if served.holding else patience.idle)
                if isinstance(request, said.AskRequest):
                    self._hold(frames, served, request)
                    return
                self._write(frames, self._answered(served, request, uid))
        except SfumatoError as wrong:
            self._write(frames, said.ErrorReply.of(wrong))
            raise
        finally:
            if served is not None:
                closed = served.end()
                if closed:
                    self._log(f"user {uid}: left open and closed, counted if started: {', '.join(map(str, closed))}")

    def _welcomed(self, hello: Document, uid: int) -> ServedAccount:
        if not isinstance(hello, said.HelloRequest):
            raise InvalidInput("a connection begins by saying which account is meant; nothing was done.")
        return ServedAccount(
            self._ledger,
            hello,
            uid=uid,
            permissions=self._permissions,
            reader=self._reader,
            holders=self._holders,
        )

    def _answered(self, served: ServedAccount, request: Document, uid: int) -> Document:
        try:
            return served.answered(request)
        except Exception as bug:  # noqa: BLE001 - words of our own, never a traceback, and the others go on
            self._log(f"user {uid}: {request.KIND} failed with a {type(bug).__name__}")
            return said.ErrorReply.of(
                LedgerError(
                    "the owner process failed at this request. No answer was delivered; whether it was charged is not "
                    "known: if it was, it counts. Tell whoever runs it."
                )
            )

    def _hold(self, frames: Frames, served: ServedAccount, request: said.AskRequest) -> None:
        """Hold a question until the client says anything more, or goes, or has held it for too long."""
        with served.account.asking(request.question):
            self._write(frames, said.DoneReply())
            with suppress(Gone, Stalled):
                self._read(frames, wait=self._limits.held)

    def _read(self, frames: Frames, *, wait: float | None, most: int | None = None) -> Document:
        try:
            if most is None:
                return frames.read(wait=wait, within=self._limits.frame)
            return frames.read(wait=wait, within=self._limits.frame, most=most)
        except Broken as wrong:
            raise InvalidInput(f"{wrong}; nothing was done, and the connection is closed.") from None

    def _write(self, frames: Frames, message: Document) -> None:
        frames.write(frames.packed(message), within=self._limits.frame)

    def _end(self) -> None:
        """Close all connections and wait until their charges are closed."""
        with self._turn:
            left = dict(self._open)
        for connection in left:
            with suppress(OSError):  # it has ended meanwhile
                connection.shutdown(socket.SHUT_RD)
        end = time.monotonic() + self._limits.ending
        for thread, _ in left.values():
            thread.join(max(0.0, end - time.monotonic()))


def _checked(place: Path) -> Path:
    if len(os.fsencode(place)) > LONGEST_PATH:
        raise InvalidInput(
            f"the path of a socket has at most {LONGEST_PATH} bytes, and {place} has more; nothing was served. Choose "
            "a shorter one, such as /run/sfumato/ledger.sock"
        )
    return place


def _opened(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as wrong:
        raise LedgerError(
            f"the lock {file} cannot be used: {wrong.strerror}. Nothing was served. Serve as the owner of the ledger."
        ) from None
