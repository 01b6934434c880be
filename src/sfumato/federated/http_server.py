"""The coordinator's end of HTTP: one small server to which sites connect; it connects to nobody.

A site asks for its next request and waits for it, and brings the answer. Who it is, TLS says. Nothing that a client
does holds up another one: handshakes and requests have threads of their own, a size and an end, and where there are too
many the oldest gives way.
"""

import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.mailbox import Mailbox
from sfumato.federated.tls import peer_of, serving_context

__all__ = ["LARGEST", "NUMBER", "POLL", "HttpTransport"]

NUMBER = "Sfumato-Request"
"""The header that says the number of a request."""
LARGEST = 64 << 20
"""Bytes of one message."""
POLL = 20.0
"""Seconds for which a site that asks for its next request is kept waiting before it is told that there is none."""
SHAKE, LONGEST, IDLE = 10.0, 60.0, 120.0
"""Seconds for a handshake, for the bytes of one message, and between two requests of a site."""
AT_DOOR, EACH_SITE = 64, 2
"""Connections of nobody in particular, and of one site, at once."""


class HttpTransport:
    """Reaches sites that connect to this address; they are named by their public keys, and nobody else gets in.

    ``key`` is that of the coordinator, which sites know. A site that has not answered after ``patience`` seconds is
    as one that left. Port 0 takes one that is free: :attr:`address` says which. It serves until :meth:`close`.

    Guarantee: TLS 1.3 with the pinned keys of both ends; a site gets and answers its own requests alone. What is not
    awaited, or larger than ``largest`` bytes, is not read. Assumes: none about the network but that bytes arrive.
    """

    def __init__(
        self,
        *,
        key: SigningKey,
        sites: Iterable[str],
        host: str = "127.0.0.1",
        port: int = 0,
        patience: float = 60.0,
        largest: int = LARGEST,
    ) -> None:
        if not isinstance(key, SigningKey):
            raise InvalidInput("key is the coordinator's signing key, that of its vault; nothing is served.")
        self._patience, self._mailbox = patience, Mailbox()
        members = frozenset(map(read_public_key, sites))
        try:
            self._server = _Server((host, port), key, members, self._mailbox, largest)
        except (OSError, OverflowError) as wrong:
            why = getattr(wrong, "strerror", None) or "ports go up to 65535"
            raise InvalidInput(f"nothing can be served at {host}:{port}: {why}. Choose another address.") from None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where sites connect to, HOST:PORT."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What one site answers; None where it refuses or is not there in time."""
        return self.ask_all({site: request})[site]

    def ask_all(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """What each site answers to its own request, all at the same time."""
        return self._mailbox.ask_all(requests, seconds=self._patience)

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "HttpTransport":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, place: tuple[str, int], key: SigningKey, members: frozenset[str], mailbox: Mailbox, largest: int
    ) -> None:
        self.members, self.mailbox, self.largest = members, mailbox, largest
        self.context, self.ends = serving_context(key, members), _Ends()
        self.stopped = threading.Event()
        self._door: deque[socket.socket] = deque()
        self._of_site: dict[str, deque[socket.socket]] = {}
        self._turn = threading.Lock()
        super().__init__(place, BaseHTTPRequestHandler)  # finish_request says which one
        threading.Thread(target=self.ends.watch, args=(self.stopped,), daemon=True).start()

    def server_close(self) -> None:
        """Shut the door, and every connection that is open."""
        self.stopped.set()
        super().server_close()
        with self._turn:
            for held in (self._door, *self._of_site.values()):
                for connection in held:
                    _cut(connection)

    def get_request(self) -> tuple[socket.socket, object]:
        """Take a connection without a word with it: the handshake has a thread of its own."""
        plain, address = super().get_request()
        plain.settimeout(SHAKE)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        secure = self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.ends.set(secure, SHAKE)
        with self._turn:
            self._admit(self._door, secure, AT_DOOR)
        return secure, address

    def finish_request(  # type: ignore[override]  # the base class knows no TLS
        self, request: socket.socket, client_address: object
    ) -> None:
        """Shake hands; then answer, as long as it is one of the sites."""
        assert isinstance(request, ssl.SSLSocket)  # noqa: S101 - get_request made it
        site = ""
        try:
            request.do_handshake()
            site = peer_of(request, self.members)
            with self._turn:
                self._leave(self._door, request)
                self._admit(self._of_site.setdefault(site, deque()), request, EACH_SITE)
            _Request(request, client_address, self, site)
        except (OSError, Refused, ValueError):
            return  # who breaks off, stalls or is nobody whom we know is told nothing
        finally:
            self.ends.clear(request)
            with self._turn:
                for held in (self._door, self._of_site.get(site, self._door)):
                    self._leave(held, request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: whoever connects can bring about no more than the end of its own connection."""

    @staticmethod
    def _admit(held: "deque[socket.socket]", connection: socket.socket, most: int) -> None:
        held.append(connection)
        while len(held) > most:
            _cut(held.popleft())

    @staticmethod
    def _leave(held: "deque[socket.socket]", connection: socket.socket) -> None:
        if connection in held:
            held.remove(connection)


class _Ends:
    """When each connection is cut at the latest; one thread sees to it."""

    def __init__(self) -> None:
        self._ends: dict[socket.socket, float] = {}
        self._turn = threading.Lock()

    def set(self, connection: socket.socket, seconds: float) -> None:
        with self._turn:
            self._ends[connection] = time.monotonic() + seconds

    def clear(self, connection: socket.socket) -> None:
        with self._turn:
            self._ends.pop(connection, None)

    def watch(self, stopped: threading.Event) -> None:
        while not stopped.wait(0.25):
            with self._turn:
                moment = time.monotonic()
                for connection in [one for one, end in self._ends.items() if end < moment]:
                    del self._ends[connection]
                    _cut(connection)


def _cut(connection: socket.socket) -> None:
    """End a connection from any thread; whoever reads or writes it finds that out."""
    try:
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would leave the rest in the clear
    except OSError:
        return


class _Request(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sfumato", ""
    disable_nagle_algorithm = True

    def __init__(self, request: ssl.SSLSocket, address: object, server: _Server, site: str) -> None:
        self.site = site
        super().__init__(request, address, server)

    def handle_one_request(self) -> None:
        """One request; its bytes must be here in time, counted from the last one's end."""
        self.request.settimeout(IDLE)
        self.server.ends.set(self.request, IDLE)
        super().handle_one_request()

    def do_GET(self) -> None:
        """Wait for what this site is asked next."""
        self.server.ends.set(self.request, POLL + LONGEST)
        if self.path != "/next":
            self._say(HTTPStatus.NOT_FOUND)
            return
        found = self.server.mailbox.next(self.site, seconds=POLL)
        if found is None:
            self._say(HTTPStatus.NO_CONTENT)
        else:
            self._say(HTTPStatus.OK, found[1], found[0])

    def do_POST(self) -> None:
        """Take an answer, or the word that there is none."""
        self.server.ends.set(self.request, LONGEST)
        _, kind, number, *rest = (*self.path.split("/", 3), "", "")[:4] if self.path.startswith("/") else ("",) * 4
        if kind not in ("answers", "refusals") or any(rest) or not self.server.mailbox.awaits(self.site, number):
            self._say(HTTPStatus.NOT_FOUND)
            return
        body = self._body(self.server.largest if kind == "answers" else 0)
        if body is None:
            return
        try:
            self.server.mailbox.answer(self.site, number, body if kind == "answers" else None)
        except Refused:
            self._say(HTTPStatus.CONFLICT)
            return
        self._say(HTTPStatus.NO_CONTENT)

    def _body(self, most: int) -> bytes | None:
        """What was sent; None where that was refused, before a byte of it was read."""
        said = self.headers.get_all("Content-Length") or []
        if self.headers.get("Transfer-Encoding") is not None or len(said) != 1 or not _whole(said[0]):
            self._say(HTTPStatus.LENGTH_REQUIRED)
            return None
        if int(said[0]) > most:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return None
        body = self.rfile.read(int(said[0]))
        if len(body) != int(said[0]):
            self.close_connection = True
            return None
        return body

    def _say(self, status: HTTPStatus, body: bytes = b"", number: str = "") -> None:
        if status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            self.close_connection = True  # what it has not read of the request would be taken for the next one
        self.send_response(status)
        if number:
            self.send_header(NUMBER, number)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses, without its words."""
        del message, explain
        self._say(HTTPStatus(code))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: who asks what when is nobody's business here."""


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
