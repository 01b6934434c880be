"""Triangles by an extension that is Lipschitz: as many as fit when no node counts in more than a public number of them.

A linear programme is solved in floats, and whole numbers alone decide what comes of it.
Proof: docs/proofs/node_level.md
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["held_triangles", "listed", "most_at_a_node"]

FINE = 1 << 30
CHUNK = 1 << 21


def most_at_a_node(cap: int) -> int:
    """In how many triangles a node of at most ``cap`` neighbours can be.

    >>> most_at_a_node(5)
    10
    """
    return natural(cap, "cap") * (cap - 1) // 2


def held_triangles(graph: Adjacency, most: int) -> int:
    """The extension, to within 1: the largest Σ x over triangles, 0 ≤ x ≤ 1, Σ x at most ``most`` at each node.

    Guarantee: one node with all its edges moves this by at most ``most`` + 1. If no node is in more than ``most``
    triangles, it is the number of triangles exactly. No float decides: a solution of the dual, in whole numbers, bounds
    the optimum from above, one of the primal from below, and both are no more than 1 apart. Sensitive.

    >>> held_triangles(Adjacency.of_pairs(4, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]), 3)
    4
    >>> held_triangles(Adjacency.of_pairs(4, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]), 1)
    1
    """
    natural(most, "most", least=0)
    count, at = 0, np.zeros(graph.n, dtype=np.int64)
    for corners in listed(graph):
        count += len(corners)
        at += np.bincount(corners.ravel(), minlength=graph.n)
    busy = np.flatnonzero(at > most)
    if not len(busy):
        return count
    place = np.zeros(graph.n, dtype=np.int64)  # 0: not busy, else its place among the busy ones, from 1
    place[busy] = np.arange(1, len(busy) + 1)
    sets, many = _by_busy(graph, place, len(busy))
    free = count - int(many.sum())
    return free + _optimum(sets, many, len(busy), most)


def listed(graph: Adjacency) -> "Iterator[NDArray[np.int64]]":
    """All triangles, each once, some rows of three nodes at a time. Sensitive."""
    if graph.directed:
        raise InvalidInput("triangles are of undirected graphs; nothing was counted.")
    n, degrees = graph.n, graph.degrees
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.arange(n), degrees))] = np.arange(n)
    head, tail = graph.pairs()
    low, high = (np.where(rank[head] < rank[tail], one, two) for one, two in ((head, tail), (tail, head)))
    order = np.lexsort((high, low))  # each edge leaves its end of smaller degree
    low, high = low[order].astype(np.int64), high[order].astype(np.int64)
    edges = low * n + high
    start = np.searchsorted(low, np.arange(n + 1))
    wedges = start[low + 1] - np.arange(len(low)) - 1  # with each later edge that leaves the same node
    ends = np.cumsum(wedges)
    first = 0
    while first < len(low):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
        here = np.arange(first, last)
        one = np.repeat(here, wedges[here])
        step = np.arange(len(one)) - np.repeat(np.cumsum(wedges[here]) - wedges[here], wedges[here])
        two = one + 1 + step
        a, b = high[one], high[two]
        up = rank[a] < rank[b]
        wanted = np.where(up, a, b) * n + np.where(up, b, a)
        found = np.searchsorted(edges, wanted)
        there = edges[np.minimum(found, len(edges) - 1)] == wanted
        yield np.stack([low[one][there], a[there], b[there]], axis=1)
        first = last


def _by_busy(graph: Adjacency, place: "NDArray[np.int64]", busy: int) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Which sets of busy nodes triangles have, as rows of places with 0 for none, and how many triangles have each."""
    base = busy + 1
    if base**3 >= 2**63:
        raise Unsupported("too many nodes are in more triangles than the cap allows; choose a larger max_degree.")
    keys, many = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for corners in listed(graph):
        held = np.sort(place[corners], axis=1)
        held = held[held[:, 2] > 0]
        key, times = np.unique((held[:, 0] * base + held[:, 1]) * base + held[:, 2], return_counts=True)
        keys, back = np.unique(np.concatenate([keys, key]), return_inverse=True)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, back, np.concatenate([many, times]))
        many = total
    return np.stack([keys // base**2, keys // base % base, keys % base], axis=1), many


def _optimum(sets: "NDArray[np.int64]", many: "NDArray[np.int64]", busy: int, most: int) -> int:
    """The largest Σ x with 0 ≤ x ≤ ``many`` and at most ``most`` at each busy node: whole, and within 1."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    rows, columns = sets.ravel(), np.repeat(np.arange(len(sets)), 3)
    there = rows > 0
    at = csr_matrix((np.ones(int(there.sum())), (rows[there] - 1, columns[there])), shape=(busy, len(sets)))
    solved = linprog(
        -np.ones(len(sets)),
        A_ub=at,
        b_ub=np.full(busy, float(most)),
        bounds=np.stack([np.zeros(len(sets)), many.astype(float)], axis=1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if solved.x is None:
        raise Unsupported("the linear programme of the triangles was not solved; nothing was released.")
    above = _from_dual(sets, many, -solved.ineqlin.marginals, most)
    below = _from_primal(sets, many, solved.x, busy, most)
    if above - below > FINE:
        raise Unsupported("the linear programme of the triangles was not solved finely enough; nothing was released.")
    return above // FINE


def _from_dual(sets: "NDArray[np.int64]", many: "NDArray[np.int64]", prices: "NDArray[np.float64]", most: int) -> int:
    """A number that is never below the optimum, times FINE: any prices of nodes, none below 0, give one."""
    exact = np.concatenate([[0], np.rint(np.clip(np.nan_to_num(prices), 0, 1) * FINE)]).astype(np.int64)
    left = np.maximum(FINE - exact[sets].sum(axis=1), 0)
    held: int = sum(times * rest for times, rest in zip(many.tolist(), left.tolist(), strict=True) if rest)
    return most * int(exact.sum()) + held


def _from_primal(
    sets: "NDArray[np.int64]", many: "NDArray[np.int64]", x: "NDArray[np.float64]", busy: int, most: int
) -> int:
    """A number that is never above the optimum, times FINE: what is near enough to a solution is made to be one."""
    taken = [
        min(max(int(value * FINE), 0), times * FINE)
        for value, times in zip(np.nan_to_num(x).tolist(), many.tolist(), strict=True)
    ]
    loads, nodes, room = [0] * (busy + 1), sets.tolist(), most * FINE
    for part, held in zip(taken, nodes, strict=True):
        for node in held:
            loads[node] += part
    loads[0] = 0
    total = 0
    for part, held in zip(taken, nodes, strict=True):
        fullest = max(loads[node] for node in held)
        total += part if fullest <= room else part * room // fullest
    return total
