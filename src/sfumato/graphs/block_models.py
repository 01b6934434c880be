"""The likelihood of a graph under a stochastic block model, exactly; and partitions of nodes into blocks.

Pairs of nodes have an edge independently, with a probability that depends on the two blocks alone and is held to
[η, 1 − η]. For one partition the likelihood is largest at the observed shares, held to the same range, and is then a
rational number; its logarithm is rounded down to a step of 2⁻²⁰, which is found with as many bits as that needs.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import ceil, floor

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency

__all__ = ["STEPS", "all_partitions", "canonical", "edge_move", "icl_penalty", "likelihood_steps", "share_of"]

STEPS = 2**20
"""Steps of the logarithm in a unit."""


def share_of(eta: Exact) -> Fraction:
    """η, between 0 and 1/2."""
    least = positive(eta, "eta")
    if least >= Fraction(1, 2):
        raise InvalidInput(f"eta = {least} leaves no range of probabilities; nothing was done. Give one below 1/2.")
    return least


@lru_cache(maxsize=256)
def edge_move(eta: Fraction) -> int:
    """How many steps one pair can move a largest log-likelihood: ln((1 − η)/η), rounded up.

    Guarantee: for every fixed partition and probabilities in [η, 1 − η] one pair changes one factor of the likelihood,
    from p to 1 − p or back; so do the largest over any set of both that does not depend on the graph, and the floors of
    reals that differ by at most x differ by at most ⌈x⌉. Proof: docs/proofs/communities.md

    >>> round(edge_move(Fraction(1, 10)) / STEPS, 4)
    2.1972
    """
    return ceil(enclosures.log((1 - eta) / eta).high * STEPS)


@lru_cache(maxsize=65536)
def pair_steps(edges: int, pairs: int, eta: Fraction) -> enclosures.Enclosure:
    """The largest log-likelihood of ``edges`` edges among ``pairs`` pairs of one kind, in steps."""
    return _logs(edges, pairs, eta, 128)


def _logs(edges: int, pairs: int, eta: Fraction, bits: int) -> enclosures.Enclosure:
    share = min(max(Fraction(edges, pairs), eta), 1 - eta)
    found = edges * enclosures.log(share, bits=bits) + (pairs - edges) * enclosures.log(1 - share, bits=bits)
    return STEPS * found


def likelihood_steps(graph: Adjacency, partition: Sequence[int], eta: Fraction) -> int:
    """The largest log-likelihood of a graph for one partition, rounded down to steps. Sensitive.

    >>> round(likelihood_steps(Adjacency.of_pairs(2, [0], [1]), (0, 0), Fraction(1, 10)) / STEPS, 6)
    -0.105361
    """
    kinds = [(edges, pairs) for edges, pairs in block_counts(graph, partition) if pairs]
    if not kinds:
        return 0
    bounds = sum((pair_steps(edges, pairs, eta) for edges, pairs in kinds), enclosures.Enclosure(*(Fraction(0),) * 2))
    for more in count(1):
        if floor(bounds.low) == floor(bounds.high):
            break
        parts = (_logs(edges, pairs, eta, 128 << more) for edges, pairs in kinds)
        bounds = sum(parts, enclosures.Enclosure(Fraction(0), Fraction(0)))
    return floor(bounds.low)


def block_counts(graph: Adjacency, partition: Sequence[int]) -> list[tuple[int, int]]:
    """For each pair of blocks, how many edges and how many pairs of nodes it has. Sensitive.

    >>> block_counts(Adjacency.of_pairs(3, [0], [1]), (0, 0, 1))
    [(1, 1), (0, 2), (0, 0)]
    """
    import numpy as np

    member = np.asarray(partition, dtype=np.int64)
    blocks = int(member.max()) + 1
    head, tail = (member[ends] for ends in graph.pairs())
    if not graph.directed:
        head, tail = np.minimum(head, tail), np.maximum(head, tail)
    edges = np.bincount(head * blocks + tail, minlength=blocks * blocks).reshape(blocks, blocks).tolist()
    sizes: list[int] = np.bincount(member, minlength=blocks).tolist()
    found = []
    for one in range(blocks):
        for other in range(blocks) if graph.directed else range(one, blocks):
            pairs = sizes[one] * sizes[other]
            if one == other:
                pairs = sizes[one] * (sizes[one] - 1) // (1 if graph.directed else 2)
            found.append((edges[one][other], pairs))
    return found


def canonical(labels: Sequence[object]) -> tuple[int, ...]:
    """A partition with its blocks called 0, 1, … in the order in which they first appear.

    >>> canonical(["b", "a", "b"])
    (0, 1, 0)
    """
    seen: dict[object, int] = {}
    return tuple(seen.setdefault(label, len(seen)) for label in labels)


def all_partitions(nodes: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every partition of the nodes into at most a given number of blocks, each once.

    >>> list(all_partitions(3, 2))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]
    """

    def grown(start: tuple[int, ...], blocks: int) -> Iterator[tuple[int, ...]]:
        if len(start) == nodes:
            yield start
            return
        for block in range(min(blocks + 1, most)):
            yield from grown((*start, block), max(blocks, block + 1))

    return grown((), 0)


def icl_penalty(blocks: int, *, nodes: int, pairs: int, directed: bool = False) -> int:
    """What a number of blocks costs, in steps: half ln(pairs) for each probability, ln(blocks) for each node.

    Public facts alone: without a penalty the likelihood never falls with more blocks, and the largest number wins.

    >>> [round(icl_penalty(blocks, nodes=5, pairs=10) / STEPS, 3) for blocks in (1, 2)]
    [1.151, 6.92]
    """
    k = natural(blocks, "blocks")
    probabilities = k * k if directed else k * (k + 1) // 2
    cost = Fraction(probabilities, 2) * enclosures.log(Fraction(max(pairs, 1))) + nodes * enclosures.log(Fraction(k))
    return floor(cost.low * STEPS)
