"""A secure sum with shared noise: what one site pays in a round, a whole round in one process, and one over HTTP.

Beside them, in the same run: a round of Flower's SecAgg+ (``flower_peer``), the noise alone, the ten keystreams that
masks are made of alone, and the plain sum of the same vectors, which protects nobody. CPU seconds of this process, of
its own for Flower; over HTTP wall seconds, with every site a process.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import federated_http
from benchmarks.flower_peer import flower_rounds
from benchmarks.harness import PAIRS, ratio, write
from sfumato.core.signature import SigningKey
from sfumato.federated import (
    Parties,
    RoundTerms,
    ServerTrust,
    SharedNoise,
    SumServer,
    SumSite,
    masks,
    round_in_process,
)
from sfumato.federated.messages import signed_by
from sfumato.noise import skellam
from sfumato.noise.sampler import IntArray

SITES, LENGTH, BITS = 10, 100_000, 32
VARIANCE = Fraction(500**2)


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    length, pairs = (2_000, 2) if smoke else (LENGTH, PAIRS)
    keys = [SigningKey.new() for _ in range(SITES)]
    terms = agreed(keys, length)
    values: list[IntArray] = [np.arange(length, dtype=np.int64) % 1000 - place for place in range(SITES)]
    share = VARIANCE / terms.parties.honest
    kind = masks.lane(BITS)
    peers: dict[str, Callable[[], object]] = {
        "noise alone": lambda: skellam(variance=share, size=length),
        "keystreams alone": lambda: [masks.keystream(bytes([n]) * 32, length, kind) for n in range(SITES)],
        "plain sum": lambda: np.sum(values, axis=0),
    }
    measured = {
        f"one site, {length} numbers, {SITES} sites": beside(one_site(terms, keys, values), peers, pairs),
        f"a round, {length} numbers, {SITES} sites": beside(
            lambda: cpu(lambda: round_in_process(terms, keys, values).result()), peers, pairs
        ),
    }
    if not smoke:
        beside_flower(next(one for name, one in measured.items() if name.startswith("a round")), terms, pairs)
    count = itertools.count(2)
    with federated_http.network(keys) as transport:
        measured[f"a round over HTTP, {length} numbers, {SITES} sites, wall"] = beside(
            lambda: federated_http.seconds_of(transport, replace(terms, number=next(count))), peers, pairs
        )
    return write("federated", measured, smoke=smoke)


def beside_flower(row: dict[str, object], terms: RoundTerms, pairs: int) -> None:
    """Put a round of Flower's SecAgg+ beside ours: as many sites, numbers and shares, without noise or signatures."""
    asked = {"sites": terms.parties.sites, "length": terms.length, "threshold": terms.parties.threshold}
    spent = flower_rounds(**asked, times=pairs)
    if isinstance(spent, str):
        row["Flower"] = spent
        return
    peers, own = row["peers"], row["ours_seconds"]
    assert isinstance(peers, dict)
    assert isinstance(own, float)
    peers["Flower SecAgg+ 1.41.0"] = {"seconds": median(spent), "ratio": ratio([one / own for one in spent])}


def agreed(keys: list[SigningKey], length: int) -> RoundTerms:
    """The terms of the round that is measured: two sites may leave, and a lying server has two sites at its side."""
    return RoundTerms(
        run="benchmark",
        number=1,
        roster=tuple(key.public_text for key in keys),
        parties=Parties(sites=SITES, missing=2, colluding=2, server=ServerTrust.LYING),
        length=length,
        bits=BITS,
        noise=SharedNoise(variance=VARIANCE),
    )


def one_site(terms: RoundTerms, keys: list[SigningKey], values: list[IntArray]) -> Callable[[], float]:
    """What gives the seconds of all steps of the first site; the others and the server are outside the clock."""

    def measured() -> float:
        spent = 0.0
        server = SumServer(terms=terms)
        start = time.process_time()
        first = SumSite.begin(terms, keys[0])
        spent += time.process_time() - start
        sites, sent = [first, *(SumSite.begin(terms, key) for key in keys[1:])], [first.sent[0]]
        sent += [site.sent[0] for site in sites[1:]]
        for step in range(1, 5):
            for message in sent:
                server = server.receive(message)
            server, told = server.close()
            moved = []
            signed_by.cache_clear()  # the server of this process has read the same messages
            for place, site in enumerate(sites):
                start = time.process_time()
                moved.append(stepped(site, step, told, values[place]))
                spent += (time.process_time() - start) if place == 0 else 0.0
            sites, sent = [site for site, _ in moved], [message for _, message in moved]
        return spent

    return measured


def stepped(site: SumSite, step: int, told: bytes, values: IntArray) -> tuple[SumSite, bytes]:
    """One step of a site."""
    match step:
        case 1:
            return site.share(told)
        case 2:
            return site.mask(told, values)
        case 3:
            return site.agree(told)
    return site.reveal(told)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def beside(ours: Callable[[], float], peers: dict[str, Callable[[], object]], pairs: int) -> dict[str, object]:
    """Ours and each peer alternately; ratios are time(peer) / time(ours)."""
    ours()
    own: list[float] = []
    others: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(ours())
        for name, work in peers.items():
            others[name].append(cpu(work))
    return {
        "pairs": pairs,
        "ours_seconds": median(own),
        "ours_least_seconds": min(own),
        "peers": {
            name: {"seconds": median(times), "ratio": ratio([b / a for a, b in zip(own, times, strict=True)])}
            for name, times in others.items()
        },
    }
