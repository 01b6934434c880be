"""All graphs on few nodes, up to renaming, as sets of pairs in one number; and what the definitions say of them."""

from functools import cache
from itertools import combinations, permutations
from math import comb

import numpy as np

from sfumato.graphs.adjacency import Adjacency


@cache
def pairs_of(n: int) -> list[tuple[int, int]]:
    """The pairs of nodes; pair k is bit k of a graph."""
    return list(combinations(range(n), 2))


@cache
def renamed(n: int) -> dict[int, int]:
    """Every graph on n nodes, and the one of its kind that stands for it: the same with its nodes renamed."""
    pairs = pairs_of(n)
    place = {pair: k for k, pair in enumerate(pairs)}
    moved = [
        [place[tuple(sorted((order[i], order[j])))] for i, j in pairs]  # type: ignore[index]
        for order in permutations(range(n))
    ]
    first: dict[int, int] = {}
    for graph in range(1 << len(pairs)):
        if graph in first:
            continue
        bits = [k for k in range(len(pairs)) if graph >> k & 1]
        first |= {sum(1 << move[k] for k in bits): graph for move in moved}
    return first


def classes(n: int) -> list[int]:
    """One graph of each kind."""
    return sorted(set(renamed(n).values()))


def adjacency(graph: int, n: int) -> Adjacency:
    """A graph as the queries read it."""
    held = [pair for k, pair in enumerate(pairs_of(n)) if graph >> k & 1]
    return Adjacency.of_pairs(n, [i for i, _ in held], [j for _, j in held])


@cache
def counts(n: int, leaves: int | None) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The triangles (no leaves), or the stars, of every graph on n nodes, from the definition."""
    pairs = pairs_of(n)
    graphs = np.arange(1 << len(pairs), dtype=np.int64)
    has = {pair: graphs >> k & 1 for k, pair in enumerate(pairs)}
    if leaves is None:
        triples = combinations(range(n), 3)
        return sum((has[i, j] & has[i, k] & has[j, k] for i, j, k in triples), np.zeros_like(graphs))
    table = np.array([comb(d, leaves) for d in range(n)])
    degrees = [sum(has[pair] for pair in pairs if v in pair) for v in range(n)]
    return sum((table[degree] for degree in degrees), np.zeros_like(graphs))


@cache
def local(n: int, leaves: int | None) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """How far one pair moves the count, for every graph on n nodes."""
    exact = counts(n, leaves)
    graphs = np.arange(exact.size)
    return np.max([abs(exact[graphs ^ (1 << k)] - exact) for k in range(len(pairs_of(n)))], axis=0)


def local_at(graph: int, n: int, leaves: int | None) -> list[int]:
    """LS(t) for t = 0, 1, … by the definition: the largest local sensitivity of a graph at most t pairs away."""
    apart = np.bitwise_count(np.arange(1 << len(pairs_of(n))) ^ graph)
    far = [int(local(n, leaves)[apart == t].max()) for t in range(len(pairs_of(n)) + 1)]
    return [max(far[: t + 1]) for t in range(len(far))]
