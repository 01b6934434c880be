"""Compiled loops over an adjacency: triangles, common neighbours, and the pairs that decide local sensitivities.

The functions whose names begin with an underscore are plain Python on arrays; numba compiles them when they are first
used, and keeps what it compiled. Run as they are, they are the slow reference that the compiled ones are tested with.
All counts are whole numbers of 64 bits. Nodes are ranked by falling degree: rank 0 has the most neighbours.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from sfumato.core.extras import need
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Ranked", "common_neighbours", "hub_pairs", "ranked", "top_pairs", "triangles"]

Whole: TypeAlias = "NDArray[np.int64]"
Short: TypeAlias = "NDArray[np.int32]"
Result = TypeVar("Result")

prange = range  # numba's parallel range once the loops are compiled
CHUNKS = 64


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranked:
    """An undirected graph with its nodes in order of falling degree. Sensitive.

    ``order[r]`` is the node of rank r, ``rank`` the inverse, ``degrees[r]`` the degree at rank r; ``up`` holds for each
    rank, from ``start[r]`` to ``start[r + 1]``, the neighbours of a smaller rank: at most √(2·edges) of them.
    """

    graph: Adjacency
    order: "NDArray[np.int32]"
    rank: "NDArray[np.int32]"
    degrees: "NDArray[np.int64]"
    start: "NDArray[np.int64]"
    up: "NDArray[np.int32]"


def ranked(graph: Adjacency) -> Ranked:
    """Rank the nodes by degree, in linear time.

    >>> ranked(Adjacency.of_pairs(4, [2, 2, 2], [0, 1, 3])).order.tolist()
    [2, 0, 1, 3]
    """
    if graph.directed:
        raise InvalidInput("triangles and common neighbours are of undirected graphs; nothing was counted.")
    order, rank, degrees = _loops().by_degree(graph.indptr)
    start, up = _loops().upward(graph.indptr, graph.indices, order, rank)
    return Ranked(graph=graph, order=order, rank=rank, degrees=degrees, start=start, up=up)


def triangles(graph: "Adjacency | Ranked") -> int:
    """Count the triangles exactly; the time is Σ |up(u)| over the edges, at most edges^1.5. Sensitive.

    >>> triangles(Adjacency.of_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3]))
    1
    """
    known = graph if isinstance(graph, Ranked) else ranked(graph)
    return int(_loops().triangles(known.start, known.up, CHUNKS))


def common_neighbours(graph: Adjacency, left: "ArrayLike", right: "ArrayLike") -> "NDArray[np.int64]":
    """How many neighbours the two nodes of each pair share; for all edges, pass ``*graph.pairs()``. Sensitive.

    >>> common_neighbours(Adjacency.of_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3]), [0, 2], [1, 3]).tolist()
    [1, 1]
    """
    one, two = (np.ascontiguousarray(ends, dtype=np.int64) for ends in (left, right))
    return _loops().common(graph.indptr, graph.indices, one, two)


def hub_pairs(known: Ranked, low: int, high: int) -> "NDArray[np.int64]":
    """For each number a of common neighbours, the largest S of a pair that has exactly a; −1 where none has.

    S = d_i + d_j − 2·[i and j are adjacent]. Of all pairs, those are looked at whose larger rank is from ``low`` to
    ``high`` − 1 and which share a neighbour: the time is the number of their wedges. Sensitive.
    """
    graph, loops = known.graph, _loops()
    start, hubs = loops.hub_lists(graph.indptr, graph.indices, known.order, high)
    found: NDArray[np.int64] = loops.hub_pairs(
        graph.indptr, graph.indices, known.order, known.rank, known.degrees, start, hubs, low, high, CHUNKS
    )
    return found


def top_pairs(known: Ranked) -> list[tuple[int, int]]:
    """The largest (x, y) of all pairs of nodes: how many neighbours other than each other they have, x ≥ y.

    Every pair of the graph has at most as many as one of these. Time: the edges at most. Sensitive.

    >>> top_pairs(ranked(Adjacency.of_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3])))
    [(2, 1)]
    """
    if len(known.order) < 2:
        return []
    graph = known.graph
    found = _loops().top_pairs(graph.indptr, graph.indices, known.order, known.rank, known.degrees)
    pairs = sorted({(int(x), int(y)) for x, y in found}, reverse=True)
    kept: list[tuple[int, int]] = []
    for x, y in pairs:
        if not kept or y > kept[-1][1]:
            kept.append((x, y))
    return kept


@dataclass(frozen=True, slots=True)
class _Loops:
    """The loops below, compiled."""

    by_degree: Callable[[Whole], tuple[Short, Short, Whole]]
    upward: Callable[[Whole, Short, Short, Short], tuple[Whole, Short]]
    triangles: Callable[[Whole, Short, int], np.int64]
    common: Callable[..., Whole]
    hub_lists: Callable[[Whole, Short, Short, int], tuple[Whole, Short]]
    hub_pairs: Callable[..., Whole]
    top_pairs: Callable[..., list[tuple[int, int]]]


@lru_cache(maxsize=1)
def _loops() -> _Loops:
    """Compile, or read what was compiled before."""
    global prange
    numba = need("numba", "pip install 'sfumato[graphs]'")
    prange = numba.prange
    plain = numba.njit(cache=True)
    one_at_a_time = threading.Lock()  # not every threading layer of numba lets two threads in

    def several(loop: Callable[..., Result]) -> Callable[..., Result]:
        compiled: Callable[..., Result] = numba.njit(cache=True, parallel=True)(loop)

        def alone(*arrays: object) -> Result:
            with one_at_a_time:
                return compiled(*arrays)

        return alone

    return _Loops(
        by_degree=plain(_by_degree),
        upward=several(_upward),
        triangles=several(_triangles),
        common=several(_common),
        hub_lists=plain(_hub_lists),
        hub_pairs=several(_hub_pairs),
        top_pairs=plain(_top_pairs),
    )


def _by_degree(indptr: Whole) -> tuple[Short, Short, Whole]:
    """Sort the nodes by falling degree, by counting; nodes of one degree stay in order."""
    n = len(indptr) - 1
    most = 0
    for v in range(n):
        most = max(most, indptr[v + 1] - indptr[v])
    place = np.zeros(most + 2, np.int64)
    for v in range(n):
        place[most - (indptr[v + 1] - indptr[v]) + 1] += 1
    for d in range(most + 1):
        place[d + 1] += place[d]
    order = np.empty(n, np.int32)
    rank = np.empty(n, np.int32)
    degrees = np.empty(n, np.int64)
    for v in range(n):
        degree = indptr[v + 1] - indptr[v]
        r = place[most - degree]
        place[most - degree] += 1
        order[r] = v
        rank[v] = r
        degrees[r] = degree
    return order, rank, degrees


def _upward(indptr: Whole, indices: Short, order: Short, rank: Short) -> tuple[Whole, Short]:
    """For each rank, the neighbours of a smaller rank."""
    n = len(order)
    start = np.zeros(n + 1, np.int64)
    for r in prange(n):
        v = order[r]
        found = 0
        for p in range(indptr[v], indptr[v + 1]):
            if rank[indices[p]] < r:
                found += 1
        start[r + 1] = found
    for r in range(n):
        start[r + 1] += start[r]
    up = np.empty(start[n], np.int32)
    for r in prange(n):
        v = order[r]
        at = start[r]
        for p in range(indptr[v], indptr[v + 1]):
            other = rank[indices[p]]
            if other < r:
                up[at] = other
                at += 1
    return start, up


def _triangles(start: Whole, up: Short, chunks: int) -> np.int64:
    """Mark what is above v, and count the marks above each node above v: every triangle once, from its last node."""
    n = len(start) - 1
    totals = np.zeros(chunks, np.int64)
    for chunk in prange(chunks):
        marked = np.zeros(n, np.uint8)
        total = 0
        for v in range(chunk, n, chunks):
            first, last = start[v], start[v + 1]
            if last - first < 2:
                continue
            for p in range(first, last):
                marked[up[p]] = 1
            for p in range(first, last):
                u = up[p]
                for q in range(start[u], start[u + 1]):
                    total += marked[up[q]]
            for p in range(first, last):
                marked[up[p]] = 0
        totals[chunk] = total
    found: np.int64 = totals.sum()
    return found


def _common(indptr: Whole, indices: Short, left: Whole, right: Whole) -> Whole:
    """Walk both rows side by side."""
    shared = np.zeros(len(left), np.int64)
    for k in prange(len(left)):
        p, q = indptr[left[k]], indptr[right[k]]
        p_end, q_end = indptr[left[k] + 1], indptr[right[k] + 1]
        found = 0
        while p < p_end and q < q_end:
            a, b = indices[p], indices[q]
            found += a == b
            p += a <= b
            q += b <= a
        shared[k] = found
    return shared


def _hub_lists(indptr: Whole, indices: Short, order: Short, high: int) -> tuple[Whole, Short]:
    """For each node, its neighbours of a rank below ``high``, by rank."""
    n = len(indptr) - 1
    start = np.zeros(n + 1, np.int64)
    for r in range(high):
        v = order[r]
        for p in range(indptr[v], indptr[v + 1]):
            start[indices[p] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    hubs = np.empty(start[n], np.int32)
    at = start[:n].copy()
    for r in range(high):
        v = order[r]
        for p in range(indptr[v], indptr[v + 1]):
            hubs[at[indices[p]]] = r
            at[indices[p]] += 1
    return start, hubs


def _hub_pairs(
    indptr: Whole,
    indices: Short,
    order: Short,
    rank: Short,
    degrees: Whole,
    start: Whole,
    hubs: Short,
    low: int,
    high: int,
    chunks: int,
) -> Whole:
    """Walk the wedges from each rank to the smaller ones, and keep the best S for each number of common neighbours."""
    most = degrees[low]
    best = np.full((chunks, most + 1), -1, np.int64)
    for chunk in prange(chunks):
        shared = np.zeros(high, np.int32)
        beside = np.zeros(high, np.uint8)
        met = np.empty(high, np.int32)
        for i in range(low + chunk, high, chunks):
            v = order[i]
            many = 0
            for p in range(indptr[v], indptr[v + 1]):
                k = indices[p]
                if rank[k] < i:
                    beside[rank[k]] = 1
                for q in range(start[k], start[k + 1]):
                    j = hubs[q]
                    if j >= i:
                        break
                    if shared[j] == 0:
                        met[many] = j
                        many += 1
                    shared[j] += 1
            for m in range(many):
                j = met[m]
                total = degrees[i] + degrees[j] - 2 * beside[j]
                if total > best[chunk, shared[j]]:
                    best[chunk, shared[j]] = total
                shared[j] = 0
            for p in range(indptr[v], indptr[v + 1]):
                if rank[indices[p]] < i:
                    beside[rank[indices[p]]] = 0
    found: Whole = best[0].copy()
    for chunk in range(1, chunks):
        found = np.maximum(found, best[chunk])
    return found


def _top_pairs(indptr: Whole, indices: Short, order: Short, rank: Short, degrees: Whole) -> list[tuple[int, int]]:
    """The first two nodes, and each node with the first that is no neighbour of it, while that can be larger."""
    n = len(order)
    beside = np.zeros(n, np.uint8)
    found = []
    least = np.int64(-1)
    for u in range(n - 1):
        if u > 0 and degrees[u] <= least:
            break
        v = order[u]
        for p in range(indptr[v], indptr[v + 1]):
            beside[rank[indices[p]]] = 1
        if u == 0:
            found.append((degrees[0] - beside[1], degrees[1] - beside[1]))
            least = degrees[1] - beside[1]
        other = u + 1
        while other < n and beside[other] == 1:
            other += 1
        if other < n:
            found.append((degrees[u], degrees[other]))
            least = max(least, degrees[other])
        for p in range(indptr[v], indptr[v + 1]):
            beside[rank[indices[p]]] = 0
    return found
