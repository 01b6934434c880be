"""Compiled loops: equal to matrix products, to themselves uncompiled, and to what a missing numba says."""

import sys

import numpy as np
import pytest

from sfumato.errors import InvalidInput, MissingExtra
from sfumato.graphs import kernels
from sfumato.graphs.adjacency import Adjacency

pytest.importorskip("numba")


def drawn(n: int, density: float, seed: int) -> tuple[Adjacency, "np.ndarray[tuple[int, int], np.dtype[np.int64]]"]:
    """An invented graph with hubs, and its matrix."""
    chance = np.random.default_rng(seed)
    weights = chance.random(n) ** 2
    head, tail = np.nonzero(np.triu(chance.random((n, n)) < density * 3 * np.outer(weights, weights), 1))
    matrix = np.zeros((n, n), dtype=np.int64)
    matrix[head, tail] = matrix[tail, head] = 1
    return Adjacency.of_pairs(n, head, tail), matrix


@pytest.mark.parametrize("n", [0, 1, 2, 5, 60, 150])
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_triangles_and_common_neighbours_are_those_of_the_matrix(n: int, density: float) -> None:
    graph, matrix = drawn(n, density, seed=n)
    shared = matrix @ matrix
    assert kernels.triangles(graph) == int((shared * matrix).sum()) // 6
    left, right = np.triu_indices(n, 1)
    assert kernels.common_neighbours(graph, left, right).tolist() == shared[left, right].tolist()
    assert kernels.common_neighbours(graph, *graph.pairs()).sum() == 3 * kernels.triangles(graph)


@pytest.mark.parametrize("n", [2, 9, 70])
def test_pairs_of_hubs_and_top_pairs_are_those_of_the_matrix(n: int) -> None:
    graph, matrix = drawn(n, 0.4, seed=n)
    known = kernels.ranked(graph)
    ranked = matrix[np.ix_(known.order, known.order)]
    shared, degrees = ranked @ ranked, ranked.sum(axis=0)
    assert degrees.tolist() == known.degrees.tolist() == sorted(degrees.tolist(), reverse=True)
    low, high = 1, n
    found = kernels.hub_pairs(known, low, high)
    for a, total in enumerate(found.tolist()):
        of_pairs = [
            int(degrees[i] + degrees[j] - 2 * ranked[i, j])
            for i in range(low, high)
            for j in range(i)
            if shared[i, j] == a
        ]
        assert total == (max(of_pairs, default=-1) if a else -1)
    top = kernels.top_pairs(known)
    others = [
        (int(degrees[i] - ranked[i, j]), int(degrees[j] - ranked[i, j])) for i in range(n) for j in range(i + 1, n)
    ]
    assert set(top) <= set(others)
    assert all(any(x <= a and y <= b for a, b in top) for x, y in others)


def test_the_loops_say_the_same_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = drawn(40, 0.3, seed=1)
    known = kernels.ranked(graph)
    compiled = kernels.triangles(known), kernels.top_pairs(known), kernels.hub_pairs(known, 1, 40).tolist()
    names = list(kernels._Loops.__dataclass_fields__)
    plain = kernels._Loops(*(getattr(kernels, f"_{name}") for name in names))
    monkeypatch.setattr(kernels, "_loops", lambda: plain)
    monkeypatch.setattr(kernels, "prange", range)
    known = kernels.ranked(graph)
    assert compiled == (kernels.triangles(known), kernels.top_pairs(known), kernels.hub_pairs(known, 1, 40).tolist())


def test_directed_graphs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="undirected"):
        kernels.ranked(Adjacency.of_pairs(3, [0], [1], directed=True))


def test_a_missing_numba_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    kernels._loops.cache_clear()
    try:
        with pytest.raises(MissingExtra, match="graphs"):
            kernels.triangles(Adjacency.of_pairs(3, [0], [1]))
    finally:
        kernels._loops.cache_clear()
