"""A whole round in one process, for tests, demonstrations and benchmarks; bytes go through the same doors."""

from collections.abc import Mapping, Sequence

from sfumato.core.signature import SigningKey
from sfumato.federated.messages import SumPhase
from sfumato.federated.server import SumServer
from sfumato.federated.site import SumSite
from sfumato.federated.terms import RoundTerms
from sfumato.noise.sampler import IntArray

__all__ = ["round_in_process"]


def round_in_process(
    terms: RoundTerms,
    keys: Sequence[SigningKey],
    values: Sequence[IntArray],
    *,
    leaving: Mapping[int, SumPhase] | None = None,
) -> SumServer:
    """Run a round with all its sites; give the server at its end, whose ``result()`` is the sum.

    ``leaving`` says which sites, by number from 1 on, send nothing from which phase on.

    >>> import numpy as np
    >>> from sfumato.federated import Parties, ServerTrust
    >>> keys = [SigningKey.new() for _ in range(3)]
    >>> terms = RoundTerms(
    ...     run="doctest", number=1, roster=tuple(key.public_text for key in keys), length=2, bits=32,
    ...     parties=Parties(sites=3, missing=1, colluding=0, server=ServerTrust.CURIOUS),
    ... )
    >>> values = [np.array([1, 10]), np.array([2, 20]), np.array([4, 40])]
    >>> round_in_process(terms, keys, values, leaving={2: SumPhase.MASK}).result().total.tolist()
    [5, 50]
    """
    left = leaving or {}
    server = SumServer(terms=terms)
    sites = {number: SumSite.begin(terms, key) for number, key in enumerate(keys, start=1)}
    told = b""
    for phase in list(SumPhase)[:-1]:
        for number in tuple(sites):
            if left.get(number, SumPhase.DONE).order <= phase.order:
                del sites[number]
                continue
            sites[number], message = _step(sites[number], phase, told, values[number - 1])
            server = server.receive(message)
        server, told = server.close()
    return server


def _step(site: SumSite, phase: SumPhase, told: bytes, values: IntArray) -> tuple[SumSite, bytes]:
    match phase:
        case SumPhase.ADVERTISE:
            return site, site.sent[0]
        case SumPhase.SHARE:
            return site.share(told)
        case SumPhase.MASK:
            return site.mask(told, values)
        case SumPhase.AGREE:
            return site.agree(told)
    return site.reveal(told)
