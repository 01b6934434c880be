"""The owner process: a Unix socket on which vaults of other processes charge the accounts of one ledger.

What a client is allowed follows from who it is, as the kernel states it.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sfumato.core.documents import Document
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, SfumatoError
from sfumato.governance.anchor import FileAnchor
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner import messages as said
from sfumato.governance.owner.frames import SHORT_BYTES, Frames, Gone, Peer, Stalled, peer_of
from sfumato.governance.owner.permissions import Permissions
from sfumato.governance.owner.served import Holders, ServedAccount
from sfumato.governance.owner.socket_server import ServerLimits, SocketServer

__all__ = ["OwnerServer", "ServerLimits"]


class OwnerServer(SocketServer):
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
        self._permissions = permissions or Permissions()
        super().__init__(place, alone=self._permissions.alone, limits=limits, credentials=credentials, log=log)
        self._ledger, self._reader = ledger, reader
        self._holders = Holders(self._limits.cut)

    def _check_user(self, uid: int) -> None:
        self._permissions.check_user(uid)

    def _frames(self, connection: socket.socket) -> Frames:
        return Frames(connection)

    def _refusal(self, wrong: SfumatoError) -> Document:
        return said.ErrorReply.of(wrong)

    def _locks(self) -> list[tuple[Path, str]]:
        place = self._ledger.record.anchor
        if not isinstance(place, FileAnchor):
            raise NotDeclared("an owner process keeps the anchor in a file of its own; nothing was served. Give one.")
        anchor = place.path.resolve()
        return [
            (anchor.with_name(f"{anchor.name}.owner"), "this ledger is served by another owner process"),
            (self.place.with_name(f"{self.place.name}.lock"), f"another owner process listens at {self.place}"),
        ]

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
