"""Rounds for tests: terms, keys and numbers, and the lists of sites that leave."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from sfumato.core.signature import SigningKey
from sfumato.federated import Parties, RoundTerms, ServerTrust, SharedNoise, SumPhase, SumServer, SumSite
from sfumato.noise.sampler import IntArray

PHASES = tuple(SumPhase)[:-1]


@cache
def keys_of(sites: int) -> tuple[SigningKey, ...]:
    """Signing keys, the same ones for all tests of a process."""
    return tuple(SigningKey.new() for _ in range(sites))


def agreed(
    sites: int = 6,
    missing: int = 2,
    colluding: int = 0,
    *,
    lying: bool = False,
    length: int = 5,
    bits: int = 32,
    noise: SharedNoise | None = None,
    zero: bool = False,
    number: int = 1,
) -> RoundTerms:
    """Terms of a round of the keys for tests."""
    server = ServerTrust.LYING if lying else ServerTrust.CURIOUS
    return RoundTerms(
        run="tests",
        number=number,
        roster=tuple(key.public_text for key in keys_of(sites)),
        parties=Parties(sites=sites, missing=missing, colluding=colluding, server=server),
        length=length,
        bits=bits,
        noise=noise,
        zero=zero,
    )


def numbers(terms: RoundTerms) -> list[IntArray]:
    """Other numbers for each site, some of them negative and each within its limit."""
    each = np.arange(1, terms.length + 1) * (-1) ** np.arange(terms.length)
    return [each * pow(7, place, 10_007) % terms.limit - terms.limit // 3 for place in range(terms.parties.sites)]


def patterns(sites: int, missing: int) -> Iterator[dict[int, SumPhase]]:
    """Every way in which up to ``missing`` sites leave: who, and in which phase."""
    for count in range(missing + 1):
        for who in combinations(range(1, sites + 1), count):
            for when in product(PHASES, repeat=count):
                yield dict(zip(who, when, strict=True))


def unlike_patterns(sites: int, missing: int) -> Iterator[dict[int, SumPhase]]:
    """One of each kind of those: in which phases sites leave, whoever they are; now the first ones, now the last."""
    for count in range(missing + 1):
        for turn, when in enumerate(combinations_with_replacement(PHASES, count)):
            who = (1, sites, *range(2, sites))[:count] if turn % 2 else (3, 2, 1)[:count]
            yield dict(zip(who, when, strict=True))


def kept(terms: RoundTerms, values: list[IntArray], leaving: Mapping[int, SumPhase]) -> IntArray:
    """The sum over those whose numbers arrive."""
    stay = [n for n in range(1, len(values) + 1) if leaving.get(n, SumPhase.DONE).order > SumPhase.MASK.order]
    total: IntArray = np.sum([values[n - 1] for n in stay], axis=0)
    return total


def until_masked(terms: RoundTerms, values: list[IntArray]) -> tuple[dict[int, SumSite], SumServer]:
    """All sites and the server when everybody's numbers have arrived, before the server closes the phase."""
    server = SumServer(terms=terms)
    sites = {n: SumSite.begin(terms, key) for n, key in enumerate(keys_of(terms.parties.sites), start=1)}
    for site in sites.values():
        server = server.receive(site.sent[0])
    server, told = server.close()
    for n, site in sites.items():
        sites[n], message = site.share(told)
        server = server.receive(message)
    server, told = server.close()
    for n, site in sites.items():
        sites[n], message = site.mask(told, values[n - 1])
        server = server.receive(message)
    return sites, server
