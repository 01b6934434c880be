"""A site's end of HTTP: it connects to the coordinator, asks what is wanted and brings answers. Nobody calls it."""

import http.client
import ssl
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.federated.http_server import LARGEST, NUMBER, POLL
from sfumato.federated.tls import calling_context, peer_of

__all__ = ["AnsweringSite", "HttpSite", "SiteConnection", "place_of"]

PATIENCE, LONGEST = 10.0, 60.0
"""Seconds for the next bytes beyond the time that the coordinator keeps a site waiting, and for a whole message."""
FIRST_PAUSE, LAST_PAUSE = 0.2, 5.0
"""Seconds between two attempts to connect, the later ones longer."""
PIECE = 1 << 16


class AnsweringSite(Protocol):
    """Whatever answers bytes with bytes: a :class:`~sfumato.federated.Hospital`."""

    def answer(self, request: bytes) -> bytes:
        """The answer; an error of Sfumato where there is none."""
        ...


def _unheard(words: str) -> None:
    del words


class HttpSite:
    """Carries requests from the coordinator at ``address`` to a site, and its answers back, over connections it makes.

    ``key`` is the site's, that of its vault; ``coordinator`` the public key of the only one whom it answers. Whatever
    breaks is begun again: a site that was killed is asked again, and gives the bytes that it had stored.

    Guarantee: TLS 1.3 with the pinned keys of both ends; nothing is sent to anybody else. Requests have at most
    ``largest`` bytes.
    """

    def __init__(
        self,
        site: AnsweringSite,
        *,
        key: SigningKey,
        coordinator: str,
        address: str,
        largest: int = LARGEST,
        log: Callable[[str], None] = _unheard,
    ) -> None:
        self._site, self._largest, self._log, self._said = site, largest, log, ""
        self._coordinator = read_public_key(coordinator)
        self._host, self._port = place_of(address)
        self._context = calling_context(key, self._coordinator)

    def run(self, stopped: threading.Event | None = None) -> None:
        """Answer until stopped; where the coordinator is not there, try again."""
        end, pause = stopped or threading.Event(), FIRST_PAUSE
        while not end.is_set():
            try:
                with self._connected() as connection:
                    self._tell("connected to the coordinator")
                    pause = FIRST_PAUSE
                    while not end.is_set():
                        self.step(connection)
            except (OSError, http.client.HTTPException, Refused) as wrong:
                self._tell(_words(wrong))
                end.wait(pause)
                pause = min(LAST_PAUSE, 2 * pause)

    def step(self, connection: "SiteConnection") -> bool:
        """Wait for one request and answer it; False where none came."""
        status, number, request = connection.exchanged("GET", "/next", largest=self._largest)
        if status != http.client.OK or not request:
            if status not in (http.client.OK, http.client.NO_CONTENT):
                raise Refused(f"the coordinator answered with {status}; nothing was sent.")
            return False
        try:
            answer = self._site.answer(request)
        except SfumatoError as wrong:
            self._log(f"a request was refused: {wrong}")
            connection.exchanged("POST", f"/refusals/{number}")
        else:
            status, _, _ = connection.exchanged("POST", f"/answers/{number}", answer)
            self._log(f"answered {len(request):,} bytes with {len(answer):,}" + ("" if status < 300 else ", too late"))
        return True

    def _connected(self) -> "SiteConnection":
        return SiteConnection(self._host, self._port, self._context, self._coordinator)

    def _tell(self, words: str) -> None:
        """Say what is new: not the same line at every attempt."""
        if words != self._said:
            self._said = words
            self._log(words)


class SiteConnection:
    """One connection to the coordinator, whose key was checked before a byte was sent."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, coordinator: str) -> None:
        self._wire = http.client.HTTPSConnection(host, port, context=context, timeout=POLL + PATIENCE)
        try:
            self._wire.connect()
            peer_of(self._wire.sock, {coordinator})
        except BaseException:
            self._wire.close()
            raise

    def __enter__(self) -> "SiteConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def exchanged(self, how: str, path: str, body: bytes = b"", *, largest: int = 0) -> tuple[int, str, bytes]:
        """The status of an answer, the number of the request in it, and the request."""
        self._wire.request(how, path, body)
        answer = self._wire.getresponse()
        size = answer.length
        if size is None or size > largest:
            self._wire.close()
            raise Refused(
                f"the coordinator sent more than {largest:,} bytes, or did not say how many; nothing was read."
            )
        parts, got, end = list[bytes](), 0, time.monotonic() + LONGEST
        while got < size:
            part = answer.read1(min(PIECE, size - got))
            if not part or time.monotonic() > end:
                raise ConnectionError("the message of the coordinator did not come to its end")
            parts.append(part)
            got += len(part)
        answer.read()  # nothing is left: it lets the next request begin
        return answer.status, answer.headers.get(NUMBER, ""), b"".join(parts)


def place_of(address: str) -> tuple[str, int]:
    """The host and the port of an address.

    >>> place_of("coordinator.example:7443")
    ('coordinator.example', 7443)
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidInput("the address of a coordinator is HOST:PORT; nothing was sent.")
    return host, int(port)


def _words(wrong: Exception) -> str:
    if isinstance(wrong, ssl.SSLError):
        return "who answers at this address is not the coordinator, or does not take this site; nothing was sent"
    return f"no connection: {getattr(wrong, 'strerror', None) or str(wrong) or type(wrong).__name__}"
