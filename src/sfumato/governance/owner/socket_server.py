"""A process that answers on a Unix socket: one thread for each connection, and limits for all that a client can do.

What is said on it, and who may say it, is that of whoever builds on this: the owner process of a ledger, and the
research environment.
"""

import fcntl
import os
import select
import socket
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.documents import Document
from sfumato.errors import InvalidInput, LedgerError, Refused, SfumatoError
from sfumato.governance.owner.frames import Broken, Frames, Gone, Peer, Stalled, peer_of

__all__ = ["ServerLimits", "SocketServer"]

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


class SocketServer(ABC):
    """Answers connections on one socket, until it is stopped.

    Guarantee: who connects is known from the kernel; no connection holds up another, keeps more than its limits, or
    ends the process by failing. Assumes: the folder of the socket is the owner's.
    """

    def __init__(
        self,
        place: str | Path,
        *,
        alone: bool,
        limits: "ServerLimits | None" = None,
        credentials: Callable[[socket.socket], Peer] = peer_of,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.place = _checked(Path(place).absolute())
        self._alone, self._limits = alone, limits or ServerLimits()
        self._credentials, self._log = credentials, log
        self._turn = threading.Lock()
        self._open: dict[socket.socket, tuple[threading.Thread, int]] = {}
        self._stopping = threading.Event()
        self._wake_read, self._wake_write = socket.socketpair()

    @abstractmethod
    def _check_user(self, uid: int) -> None:
        """Refuse a user who may not connect."""

    @abstractmethod
    def _answer(self, frames: Frames, uid: int) -> None:
        """All of one connection."""

    @abstractmethod
    def _frames(self, connection: socket.socket) -> Frames:
        """Messages of the protocol on a connection."""

    @abstractmethod
    def _refusal(self, wrong: SfumatoError) -> Document:
        """An error as the protocol says it."""

    def _locks(self) -> list[tuple[Path, str]]:
        """Files that are locked while it serves, and what is said where another holds one."""
        return [(self.place.with_name(f"{self.place.name}.lock"), f"another process listens at {self.place}")]

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
        """Hold the place of the socket, and whatever else is served, against other processes."""
        with ExitStack() as held:
            for file, what in self._locks():
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
                early.chmod(0o600 if self._alone else 0o666)
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
            self._check_user(uid)
            if users[uid] >= self._limits.each_user or users.total() >= self._limits.in_all:
                raise LedgerError(
                    f"the process has {users[uid]} connections of user {uid} and {users.total()} in all, and "
                    "takes no more; nothing was read and nothing was spent. Close some, or try again later."
                )
        except (SfumatoError, OSError) as wrong:
            refusal = wrong if isinstance(wrong, SfumatoError) else Refused("nobody knows who connects.")
            self._log(f"refused: {refusal}")
            with suppress(Gone, Stalled):
                self._frames(connection).write(Frames.packed(self._refusal(refusal)), within=0.1)
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
            self._answer(self._frames(connection), uid)
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
