"""The witness on the network: three requests over HTTP, for whoever can reach the port.

Both sides sign what they say, so that the connection need not be trusted: whoever sits on it can keep the two apart,
not fool them. What is too large, too slow or not understood is answered in one line, and nothing is remembered of it.
"""

import json
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sfumato.core.documents import parse
from sfumato.errors import InvalidInput, LedgerError, Refused, SfumatoError
from sfumato.governance.witness import Conflict, Witness
from sfumato.governance.witnessed import SignedExtension

__all__ = ["LARGEST", "WitnessServer"]

LARGEST = 4 * 2**20
"""Bytes of a request: about fifty thousand entries."""
PATIENCE = 10
"""Seconds to wait for the next bytes of a request."""
LONGEST = 60
"""Seconds that one request may take in all."""
AT_ONCE = 8
"""Requests at a time; whoever comes then is told to try again."""


class WitnessServer(ThreadingHTTPServer):
    """A witness at an address; port 0 takes one that is free. Call ``serve_forever``."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, witness: Witness, host: str = "127.0.0.1", port: int = 0, *, patience: float = PATIENCE) -> None:
        self.witness = witness
        self.patience = patience
        self.turn = threading.Lock()
        """Requests are read at once and understood one after the other: what a text unfolds to is far larger."""
        self._room = threading.BoundedSemaphore(AT_ONCE)
        super().__init__((host, port), _Request)

    @property
    def address(self) -> str:
        """Where it is asked."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def process_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]  # as the base class has it
        """Answer in a thread of its own, where there is room for one more."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.settimeout(1)
            request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            self.handle_error(request, client_address)
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address) -> None:  # type: ignore[no-untyped-def]  # as above
        """One request, and an end to it."""
        end = threading.Timer(LONGEST, _cut, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """One line for whoever runs the witness; nobody is shown a traceback."""
        wrong = sys.exception()
        print(f"a request from {client_address} was not finished: {type(wrong).__name__}", file=sys.stderr)  # noqa: T201


def _cut(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended


class _Request(BaseHTTPRequestHandler):
    server: WitnessServer
    server_version = "sfumato-witness"
    sys_version = ""

    def setup(self) -> None:
        self.request.settimeout(self.server.patience)
        super().setup()

    def do_GET(self) -> None:
        """Say who answers here."""
        if self.path != "/":
            self._say(HTTPStatus.NOT_FOUND, {"error": "ask GET /, POST /extend or POST /last"})
            return
        self._say(HTTPStatus.OK, {"witness": self.server.witness.key.public_text})

    def do_POST(self) -> None:
        """Take an extension, or say what was seen last."""
        if self.path not in ("/extend", "/last"):
            self._say(HTTPStatus.NOT_FOUND, {"error": "ask GET /, POST /extend or POST /last"})
            return
        try:
            text = self._body()
            if text is not None:
                with self.server.turn:
                    status, said = self._extended(text) if self.path == "/extend" else self._last(text)
                self._say(status, said)
        except (InvalidInput, UnicodeDecodeError) as wrong:
            said = "the request is no text in UTF-8" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
            self._say(HTTPStatus.BAD_REQUEST, {"error": said})
        except Refused as wrong:
            self._say(HTTPStatus.FORBIDDEN, {"error": str(wrong)})
        except LedgerError as wrong:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(wrong)})
        except SfumatoError as wrong:
            self._say(HTTPStatus.BAD_REQUEST, {"error": str(wrong)})

    def _extended(self, text: str) -> tuple[HTTPStatus, str | dict[str, str]]:
        answer = self.server.witness.extend(SignedExtension.read(text))
        if isinstance(answer, Conflict):
            last = "" if answer.last is None else answer.last.text
            return HTTPStatus.CONFLICT, {"error": "the record does not go on from what was seen", "last": last}
        return HTTPStatus.OK, answer.text

    def _last(self, text: str) -> tuple[HTTPStatus, str | dict[str, str]]:
        asked = parse(text)
        if not isinstance(asked, dict) or set(asked) != {"ledger", "nonce", "upto"}:
            raise InvalidInput("ask with ledger, nonce and upto; nothing was done.")
        ledger, nonce, upto = asked["ledger"], asked["nonce"], asked["upto"]
        if not isinstance(ledger, str) or not isinstance(nonce, str) or not (upto is None or type(upto) is int):
            raise InvalidInput("ledger and nonce are texts, upto a whole number or null; nothing was done.")
        if len(nonce) > 128 or (upto is not None and not 0 < upto < 2**62):
            raise InvalidInput("nonce or upto is too large; nothing was done.")
        return HTTPStatus.OK, self.server.witness.last(ledger, nonce, upto).text

    def _body(self) -> str | None:
        """The text of the request; None where it was refused already."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 12:
            self._say(HTTPStatus.LENGTH_REQUIRED, {"error": "say the length of the request; nothing was read"})
            return None
        if int(length) > LARGEST:
            self._say(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"a request has at most {LARGEST} bytes; not read"}
            )
            return None
        body, end = b"", time.monotonic() + LONGEST
        while len(body) < int(length):
            try:
                some = self.rfile.read1(min(2**16, int(length) - len(body)))
            except TimeoutError:
                some = b""
            if not some or time.monotonic() > end:
                self._say(
                    HTTPStatus.REQUEST_TIMEOUT, {"error": "the request did not come to its end; nothing was done"}
                )
                return None
            body += some
        return body.decode()

    def _say(self, status: HTTPStatus, said: str | dict[str, str]) -> None:
        text = (said if isinstance(said, str) else json.dumps(said)).encode()
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses, in the same words as the rest."""
        self._say(HTTPStatus(code), {"error": f"{HTTPStatus(code).phrase.lower()}; nothing was done"})

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: each answer is in the memory."""
