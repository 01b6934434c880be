"""A research environment on a Unix socket: the kernel says who connects, and the record who is of which project."""

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from sfumato.core.documents import Document
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.governance.owner.frames import SHORT_BYTES, Frames, Peer, overflow_uid, peer_of
from sfumato.governance.owner.socket_server import ServerLimits, SocketServer
from sfumato.governance.research_entries import Project
from sfumato.research import messages as said
from sfumato.research.environment import ResearchEnvironment

__all__ = ["ResearchServer"]


class ResearchServer(SocketServer):
    """Lets people of projects ask questions, until it is stopped.

    ``users`` are the people behind the users of this machine, by their numbers. Guarantee: whoever is not of a project
    that is in force learns nothing of it, not even whether it exists; a project whose programs are reviewed is not
    asked here. Assumes: the steward names the people behind users truly.
    """

    def __init__(
        self,
        environment: ResearchEnvironment,
        place: str | Path,
        *,
        users: Mapping[int, str],
        limits: ServerLimits | None = None,
        credentials: Callable[[socket.socket], Peer] = peer_of,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        alone = set(users) <= {os.geteuid()}
        super().__init__(place, alone=alone, limits=limits, credentials=credentials, log=log)
        self._environment, self._users = environment, dict(users)

    def _check_user(self, uid: int) -> None:
        if uid == overflow_uid() or uid not in self._users:
            raise Refused(f"user {uid} is nobody here; nothing was read and nothing was spent. Ask the steward.")

    def _frames(self, connection: socket.socket) -> Frames:
        return Frames(connection, said.RESEARCH_MESSAGES, said.AREA)

    def _refusal(self, wrong: SfumatoError) -> Document:
        return said.RefusalReply.of(wrong)

    def _answer(self, frames: Frames, uid: int) -> None:
        try:
            hello = self._read(frames, wait=self._limits.frame, most=SHORT_BYTES)
            served = self._environment.served(self._joined(hello, uid))
            self._write(frames, served.answered(hello))
            while not self._stopping.is_set():
                request = self._read(frames, wait=self._limits.idle)
                if self._joined(hello, uid) != served.project:  # what the board decides holds from the next question on
                    raise Refused("the project was changed meanwhile; nothing was read and nothing was spent.")
                self._write(frames, served.answered(request))
        except SfumatoError as wrong:
            self._write(frames, said.RefusalReply.of(wrong))
            raise

    def _joined(self, hello: Document, uid: int) -> Project:
        """The project that somebody asks for; who is not of it is told nothing else."""
        if not isinstance(hello, said.JoinRequest) or hello.project is None:
            raise InvalidInput("a connection begins by saying which project is meant; nothing was done.")
        try:
            project = self._environment.ledger.project(hello.project)
        except SfumatoError:
            raise _nobody() from None
        if self._users[uid] not in dict(project.people):
            raise _nobody()
        if project.reviewed:
            raise Refused(
                f"programs of {project.name!r} are approved one by one; nothing was read and nothing was spent. Hand "
                "them in: sfumato research submit"
            )
        return project


def _nobody() -> Refused:
    return Refused(
        "you are not of this project, whether or not there is one of this name; nothing was read and nothing was "
        "spent. Ask the steward."
    )
