"""A round of a secure sum over HTTP on one machine: each site a process of its own, TLS on both sides, wall seconds."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier

import numpy as np

from sfumato.core.signature import SigningKey
from sfumato.federated import HttpSite, HttpTransport, RoundTerms, SumPhase, SumServer, SumSite
from sfumato.federated.messages import packed, unpacked
from sfumato.federated.transports import ask_all
from sfumato.noise.sampler import IntArray

LONG = 120.0


class BareSite:
    """A site that has numbers and no ledger: what a round costs without charges."""

    def __init__(self, key: SigningKey, place: int) -> None:
        self.key, self.place = key, place
        self.site: SumSite | None = None

    def answer(self, request: bytes) -> bytes:
        """One step of a round."""
        head, told = unpacked(request)
        phase = SumPhase(head.decode())
        if phase is SumPhase.ADVERTISE:
            self.site = SumSite.begin(RoundTerms.from_json(told.decode()), self.key)
            return self.site.sent[0]
        assert self.site is not None
        match phase:
            case SumPhase.SHARE:
                self.site, message = self.site.share(told)
            case SumPhase.MASK:
                self.site, message = self.site.mask(told, numbers(self.site.terms.length, self.place))
            case SumPhase.AGREE:
                self.site, message = self.site.agree(told)
            case _:
                self.site, message = self.site.reveal(told)
        return message


def numbers(length: int, place: int) -> IntArray:
    """What a site adds."""
    return np.arange(length, dtype=np.int64) % 1000 - place


def serve_site(pem: bytes, place: int, coordinator: str, address: str, ready: Barrier) -> None:
    """The process of a site."""
    key = _read(pem)
    site = HttpSite(BareSite(key, place), key=key, coordinator=coordinator, address=address)
    ready.wait()
    site.run()


@contextmanager
def network(keys: list[SigningKey]) -> Iterator[HttpTransport]:
    """Sites as processes, and the server that they are connected to."""
    spawn, coordinator = multiprocessing.get_context("spawn"), SigningKey.new()
    ready = spawn.Barrier(len(keys) + 1)
    with HttpTransport(key=coordinator, sites=[key.public_text for key in keys], patience=LONG) as transport:
        started = [
            spawn.Process(
                target=serve_site,
                args=(key.private.private_bytes_raw(), place, coordinator.public_text, transport.address, ready),
                daemon=True,
            )
            for place, key in enumerate(keys)
        ]
        for process in started:
            process.start()
        ready.wait()
        try:
            yield transport
        finally:
            for process in started:
                process.terminate()
                process.join()


def round_over(transport: HttpTransport, terms: RoundTerms) -> SumServer:
    """One round, all sites of a phase at once."""
    server, told = SumServer(terms=terms), terms.to_json().encode()
    for phase in list(SumPhase)[:-1]:
        asked = [terms.roster[place - 1] for place in server.awaited]
        for answer in ask_all(transport, dict.fromkeys(asked, packed([phase.value.encode(), told]))).values():
            if answer is not None:
                server = server.receive(answer)
        server, told = server.close()
    return server


def seconds_of(transport: HttpTransport, terms: RoundTerms) -> float:
    """Wall seconds of a round and of its sum, which must be right where there is no noise."""
    start = time.perf_counter()
    result = round_over(transport, terms).result()
    spent = time.perf_counter() - start
    assert len(result.survivors) == terms.parties.sites
    return spent


def _read(raw: bytes) -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.from_private_bytes(raw))
