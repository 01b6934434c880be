"""Frames: a document as canonical JSON behind its length in four bytes, on a Unix socket, with limits of size and time.

Nothing that arrives is believed: a frame that is too long is refused before a byte of it is kept, and one that does not
arrive in time ends the connection.
"""

import socket
import struct
import time
from pathlib import Path

from sfumato.core.documents import Document, Registry, canonical, check_types, encode, parse
from sfumato.errors import InvalidInput, Unsupported
from sfumato.governance.owner.messages import MESSAGES

__all__ = ["MOST_BYTES", "SHORT_BYTES", "Broken", "Frames", "Gone", "Peer", "Stalled", "overflow_uid", "peer_of"]

MOST_BYTES = 16 * 2**20
"""The longest frame: a certificate of a large answer, and the question that it answers."""
SHORT_BYTES = 64 * 2**10
"""The longest frame of somebody who has not said yet which account is meant."""
_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("iII")
_PIECE = 2**16


class Gone(Exception):
    """The other side closed the connection, or its process ended."""


class Stalled(Exception):
    """The other side did not send, or take, in time what it had begun."""


class Broken(Exception):
    """What came is not a message of this protocol; the text says why, and nothing was done."""


class Peer:
    """Who is at the other end of a connection, as the system says it: never as the client says it."""

    __slots__ = ("pid", "uid")

    def __init__(self, *, uid: int, pid: int = 0) -> None:
        self.uid, self.pid = uid, pid


def peer_of(connection: socket.socket) -> Peer:
    """The user and the process that opened the other end, from the kernel (``SO_PEERCRED``)."""
    if not hasattr(socket, "SO_PEERCRED"):
        raise Unsupported("an owner process needs Linux, whose kernel says who connects; nothing was done.")
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Peer(uid=uid, pid=pid)


def overflow_uid() -> int:
    """The number that stands for every user whom a user namespace does not know: no user in particular.

    >>> overflow_uid() > 0
    True
    """
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text("ascii"))
    except (OSError, ValueError):
        return 65534


class Frames:
    """Whole messages on a socket, each read within limits.

    Guarantee: :meth:`read` gives a document of the protocol, or raises; what came of a frame stays with the connection,
    so that a reader that is interrupted can go on. ``messages`` is the protocol, whose kinds begin with ``area``.
    """

    def __init__(self, connection: socket.socket, messages: Registry = MESSAGES, area: str = "owner.") -> None:
        self._socket, self._buffer = connection, bytearray()
        self._messages, self._area = messages, area

    @staticmethod
    def packed(message: Document) -> bytes:
        """A message as it travels; one that is too long, or not of its types, is refused here."""
        check_types(message, "message")
        body = canonical(encode(message)).encode()
        if len(body) > MOST_BYTES:
            raise InvalidInput(
                f"a message of {len(body):,} bytes is longer than an owner process takes ({MOST_BYTES:,}); it was not "
                "sent. Ask for fewer numbers at once."
            )
        return _LENGTH.pack(len(body)) + body

    def write(self, packed: bytes, *, within: float) -> None:
        """Send a message; :class:`Stalled` where the other side does not take it within the given seconds."""
        self._socket.settimeout(within)
        try:
            self._socket.sendall(packed)
        except TimeoutError:
            raise Stalled from None
        except OSError:
            raise Gone from None

    def read(self, *, wait: float | None, within: float | None, most: int = MOST_BYTES) -> Document:
        """The next message: its first byte comes within ``wait`` seconds, the rest ``within`` as many more.

        None waits for ever. Nobody else's messages are held up meanwhile.
        """
        if not self._buffer:
            self._more(wait)
        end = None if within is None else time.monotonic() + within
        length = _LENGTH.unpack(self._whole(_LENGTH.size, end)[: _LENGTH.size])[0]
        if not 0 < length <= most:
            raise Broken(f"a message of {length:,} bytes is not one of this protocol, which takes up to {most:,}")
        frame = self._whole(_LENGTH.size + length, end)
        text = bytes(frame[_LENGTH.size : _LENGTH.size + length])
        del frame[: _LENGTH.size + length]
        try:
            found = self._messages.decode(parse(text.decode()), "message")
        except (InvalidInput, Unsupported) as wrong:
            raise Broken(str(wrong).rstrip(".")) from None
        except (UnicodeDecodeError, RecursionError):
            raise Broken("the message is not JSON in UTF-8") from None
        if not found.KIND.startswith(self._area):
            raise Broken(f"a message is not a {found.KIND!r}")
        message: Document = found
        return message

    def gone(self) -> bool:
        """Whether the other side has closed the connection; nothing is taken off it."""
        self._socket.settimeout(0)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def close(self) -> None:
        """End the connection; what is held by it is let go by the other side."""
        self._socket.close()

    def _whole(self, length: int, end: float | None) -> bytearray:
        while len(self._buffer) < length:
            self._more(None if end is None else max(0.0, end - time.monotonic()))
        return self._buffer

    def _more(self, wait: float | None) -> None:
        self._socket.settimeout(None if wait is None else max(wait, 0.001))
        try:
            piece = self._socket.recv(_PIECE)
        except TimeoutError:
            raise Stalled from None
        except OSError:
            raise Gone from None
        if not piece:
            raise Gone
        self._buffer += piece
