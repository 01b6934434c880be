"""Sites and a coordinator over HTTP: what arrives, who gets in, and what hostile clients bring about."""

import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPSConnection

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import HttpSite, HttpTransport, http_server, tls
from sfumato.federated.http_site import SiteConnection
from sfumato.federated.mailbox import request_number

COORDINATOR, STRANGER = SigningKey.new(), SigningKey.new()
SITES = {name: SigningKey.new() for name in ("north", "south")}
NORTH, SOUTH = (key.public_text for key in SITES.values())


class Echo:
    """A site that gives back what it is asked."""

    def answer(self, request: bytes) -> bytes:
        if request == b"no":
            raise Refused("not this")
        return request[::-1]


@contextmanager
def served(patience: float = 30.0, port: int = 0, largest: int = http_server.LARGEST) -> Iterator[HttpTransport]:
    keys = [NORTH, SOUTH]
    with HttpTransport(key=COORDINATOR, sites=keys, patience=patience, port=port, largest=largest) as transport:
        yield transport


@contextmanager
def answering(transport: HttpTransport, *names: str) -> Iterator[list[str]]:
    """Sites that answer, and what they say about it."""
    said, stopped = list[str](), threading.Event()
    for name in names:
        site = HttpSite(
            Echo(),
            key=SITES[name],
            coordinator=COORDINATOR.public_text,
            address=transport.address,
            log=said.append,
        )
        threading.Thread(target=site.run, args=(stopped,), daemon=True).start()
    try:
        yield said
    finally:
        stopped.set()


def calling(transport: HttpTransport, key: SigningKey = SITES["north"]) -> SiteConnection:
    host, port = transport.address.split(":")
    context = tls.calling_context(key, COORDINATOR.public_text)
    return SiteConnection(host, int(port), context, COORDINATOR.public_text)


def asked_meanwhile(transport: HttpTransport, requests: dict[str, bytes]) -> tuple[threading.Thread, list[object]]:
    answers = list[object]()
    thread = threading.Thread(target=lambda: answers.append(transport.ask_all(requests)), daemon=True)
    thread.start()
    return thread, answers


def test_all_sites_are_asked_at_once_and_refusals_do_not_wait() -> None:
    with served() as transport, answering(transport, "north", "south"):
        assert transport.ask_all({NORTH: b"abc", SOUTH: b"no"}) == {NORTH: b"cba", SOUTH: None}
        large = bytes(range(256)) * 4_000
        assert transport.ask(NORTH, large) == large[::-1]


def test_a_site_that_is_not_there_is_waited_for_and_then_left() -> None:
    with served(patience=30) as transport, answering(transport, "north"):
        assert transport.ask(NORTH, b"connected") is not None
        transport._patience = 2.0
        assert transport.ask_all({NORTH: b"abc", SOUTH: b"abc"}) == {NORTH: b"cba", SOUTH: None}


def test_a_site_goes_on_with_the_next_server_at_the_same_place() -> None:
    with served() as transport:
        port = int(transport.address.split(":")[1])
        with answering(transport, "north"):
            assert transport.ask(NORTH, b"one") == b"eno"
            transport.close()
            with served(port=port) as second:
                assert second.ask(NORTH, b"two") == b"owt"


def test_nobody_but_the_sites_gets_in_and_a_site_tells_nobody_else() -> None:
    with served() as transport:
        with pytest.raises((ssl.SSLError, OSError)), calling(transport, STRANGER) as connection:
            connection.exchanged("GET", "/next")
        host, port = transport.address.split(":")
        with pytest.raises(ssl.SSLError):
            SiteConnection(host, int(port), tls.calling_context(SITES["north"], NORTH), NORTH)
        plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        plain.check_hostname, plain.verify_mode = False, ssl.CERT_NONE
        with closing(HTTPSConnection(host, int(port), context=plain)) as nobody, suppress(OSError):
            nobody.request("GET", "/next")
            assert nobody.getresponse() is None  # it comes to no answer
        old = tls.calling_context(SITES["north"], COORDINATOR.public_text)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, OSError)):
            SiteConnection(host, int(port), old, COORDINATOR.public_text)


def named_for_another(victim: str, member: SigningKey) -> ssl.SSLContext:
    """A member signs for a key of its own making, which it calls by the name of another member; that one signs on."""
    between, own = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    middle = tls._certificate(victim, member.public_text, between.public_key(), member.private, authority=True)
    leaf = tls._certificate(tls.LEAF, victim, own.public_key(), between, authority=False)
    context = tls.calling_context(member, COORDINATOR.public_text)
    with tempfile.NamedTemporaryFile() as file:
        secret = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write(secret + leaf.public_bytes(Encoding.PEM) + middle.public_bytes(Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    return context


def test_a_member_that_signs_a_certificate_in_anothers_name_is_not_that_one() -> None:
    with served() as transport:
        thread, answers = asked_meanwhile(transport, {NORTH: b"for the north alone"})
        host, port = transport.address.split(":")
        context = named_for_another(NORTH, SITES["south"])
        with (
            pytest.raises((ssl.SSLError, OSError)),
            SiteConnection(host, int(port), context, COORDINATOR.public_text) as connection,
        ):
            connection.exchanged("GET", "/next", largest=1000)
        with answering(transport, "north"):
            thread.join(30)
        assert answers == [{NORTH: b"enola htron eht rof"}]


class Shown:
    """A connection at whose other end somebody shows this certificate, whatever TLS made of it."""

    def __init__(self, leaf: bytes | None) -> None:
        self.leaf = leaf

    def getpeercert(self, *, binary_form: bool) -> bytes | None:
        assert binary_form
        return self.leaf


def test_whose_certificate_it_is_follows_from_the_signature_of_the_pinned_key_alone() -> None:
    own, south = Ed25519PrivateKey.generate(), SITES["south"]
    for signs, named, whose in ((south.private, SOUTH, SOUTH), (south.private, NORTH, None), (own, NORTH, None)):
        leaf = tls._certificate(tls.LEAF, named, own.public_key(), signs, authority=False)
        shown = Shown(leaf.public_bytes(Encoding.DER))
        if whose is not None:
            assert tls.peer_of(shown, {NORTH, SOUTH}) == whose  # type: ignore[arg-type]
            continue
        with pytest.raises(Refused, match="not one of the members"):
            tls.peer_of(shown, {NORTH, SOUTH})  # type: ignore[arg-type]
    with pytest.raises(Refused, match="not one of the members"):
        tls.peer_of(Shown(None), {NORTH, SOUTH})  # type: ignore[arg-type]


def test_no_site_sees_or_answers_what_another_is_asked() -> None:
    with served() as transport:
        thread, answers = asked_meanwhile(transport, {NORTH: b"secret of the north"})
        number = request_number(NORTH, b"secret of the north")
        with calling(transport, SITES["south"]) as connection:
            assert connection.exchanged("POST", f"/answers/{number}", b"lie")[0] == 404
        with calling(transport, SITES["south"]) as connection:
            assert connection.exchanged("POST", f"/refusals/{number}")[0] == 404
        with answering(transport, "north"):
            thread.join(30)
        assert answers == [{NORTH: b"htron eht fo terces"}]


def test_one_answer_stands_and_the_same_one_may_come_again() -> None:
    with served() as transport:
        number = request_number(NORTH, b"x")
        thread, answers = asked_meanwhile(transport, {NORTH: b"x", SOUTH: b"x"})
        with calling(transport) as connection:
            assert connection.exchanged("GET", "/next", largest=10) == (200, number, b"x")
            assert connection.exchanged("GET", "/next", largest=10) == (200, number, b"x")  # killed, and asked again
            assert [connection.exchanged("POST", f"/answers/{number}", b"a")[0] for _ in range(2)] == [204, 204]
            assert connection.exchanged("POST", f"/answers/{number}", b"b")[0] == 409
        with answering(transport, "south"):
            thread.join(30)
        assert answers == [{NORTH: b"a", SOUTH: b"x"}]
        with calling(transport) as connection:
            assert connection.exchanged("POST", f"/answers/{number}", b"a")[0] == 404  # too late: a replay


@pytest.mark.parametrize(
    "path",
    ["/", "/next/", "/answers", "/answers/", "/answers/../next", "/answers/%2e%2e", "x", "/refusals//"],
)
def test_other_paths_lead_nowhere(path: str) -> None:
    with served() as transport:
        for how in ("GET", "POST"):
            with calling(transport) as connection:
                assert connection.exchanged(how, path)[0] == 404
        with calling(transport) as connection:
            assert connection.exchanged("PUT", path)[0] in (404, 501)


def test_bodies_that_are_too_large_or_of_no_stated_length_are_not_read() -> None:
    with served(largest=100) as transport:
        thread, answers = asked_meanwhile(transport, {NORTH: b"x"})
        number = request_number(NORTH, b"x")
        path = f"/answers/{number}"
        while not transport._mailbox.awaits(NORTH, number):
            time.sleep(0.01)
        for head in (
            "Content-Length: 101",
            "Content-Length: 99999999999",
            "Content-Length: -1",
            "Content-Length: 1\r\nContent-Length: 100",
            "Transfer-Encoding: chunked",
            "",
        ):
            with calling(transport) as connection:
                wire = connection._wire.sock
                wire.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
                assert wire.recv(12) in (b"HTTP/1.1 413", b"HTTP/1.1 411")
        with calling(transport) as connection:
            assert connection.exchanged("POST", path, bytes(100))[0] == 204
        thread.join(30)
        assert answers == [{NORTH: bytes(100)}]


def test_a_site_reads_no_request_that_is_too_large() -> None:
    with served(patience=30) as transport:
        asked_meanwhile(transport, {NORTH: bytes(1000)})
        with calling(transport) as connection, pytest.raises(Refused, match="more than 10 bytes"):
            connection.exchanged("GET", "/next", largest=10)


def test_connections_that_say_nothing_and_slow_ones_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "AT_DOOR", 8)
    monkeypatch.setattr(http_server, "LONGEST", 0.5)
    with served() as transport:
        host, port = transport.address.split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(20)]
        number = request_number(NORTH, b"x")
        thread, _ = asked_meanwhile(transport, {NORTH: b"x"})
        with calling(transport) as slow:
            wire = slow._wire.sock
            wire.sendall(f"POST /answers/{number} HTTP/1.1\r\nContent-Length: 50\r\n\r\nab".encode())
            with answering(transport, "south"):
                assert transport.ask(SOUTH, b"abc") == b"cba"
            assert ended(wire)  # cut, although it has not finished
        for one in silent:
            one.close()
        with answering(transport, "north"):
            thread.join(30)


def ended(wire: socket.socket) -> bool:
    """Whether the other end has cut a connection, or does so within half a minute."""
    wire.settimeout(30)
    try:
        return wire.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_of_many_connections_of_one_site_the_latest_stay() -> None:
    with served() as transport:
        with ExitStack() as held:
            first, *later = [held.enter_context(calling(transport)) for _ in range(http_server.EACH_SITE + 1)]
            assert ended(first._wire.sock)
            thread, answers = asked_meanwhile(transport, {NORTH: b"x"})
            assert later[-1].exchanged("GET", "/next", largest=10)[2] == b"x"
            later[-1].exchanged("POST", f"/answers/{request_number(NORTH, b'x')}", b"y")
        thread.join(30)
        assert answers == [{NORTH: b"y"}]


def test_addresses_and_keys_that_are_none_are_refused() -> None:
    key = SITES["north"]
    for wrong in ("", "host", "host:", ":7000", "host:0", "host:99999", "host:http"):
        with pytest.raises(InvalidInput, match="HOST:PORT"):
            HttpSite(Echo(), key=key, coordinator=COORDINATOR.public_text, address=wrong)
    with pytest.raises(InvalidInput, match="signing key"):
        HttpTransport(key="key", sites=[NORTH])  # type: ignore[arg-type]
    with served() as transport, pytest.raises(InvalidInput, match="nothing can be served"):
        served(port=int(transport.address.split(":")[1])).__enter__()
    with pytest.raises(InvalidInput, match="nothing can be served"):
        served(port=70_000).__enter__()
