"""Triangles under a node unit: the extension over all small graphs and all their nodes, and what holds its numbers."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize

from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.node_level import extension
from sfumato.graphs.node_level.extension import FINE, held_triangles, listed, most_at_a_node
from sfumato.graphs.node_level.triangles import triangle_moves
from tests.graphs.enumeration import Worlds, rewired
from tests.graphs.small import adjacency, classes, pairs_of, renamed

Graph = frozenset[tuple[int, int]]


def pairs(graph: int, n: int) -> Graph:
    return frozenset(pair for place, pair in enumerate(pairs_of(n)) if graph >> place & 1)


def corners(graph: Graph, n: int) -> list[tuple[int, int, int]]:
    """All triangles by the definition."""
    return [(a, b, c) for a, b, c in combinations(range(n), 3) if {(a, b), (a, c), (b, c)} <= graph]


def optimum(graph: Graph, n: int, most: int) -> float:
    """The extension as it is written down: one variable for each triangle, one rule for each node."""
    found = corners(graph, n)
    if not found:
        return 0.0
    at = np.array([[float(node in each) for each in found] for node in range(n)])
    return float(-optimize.linprog(-np.ones(len(found)), A_ub=at, b_ub=[most] * n, bounds=(0, 1)).fun)


def shipped(graph: Graph, n: int, most: int) -> int:
    return held_triangles(Adjacency.of_pairs(n, [i for i, _ in graph], [j for _, j in graph]), most)


@pytest.mark.claim("S0-10")
@pytest.mark.parametrize("n", [4, 5, pytest.param(6, marks=pytest.mark.long)])
def test_no_node_moves_the_extension_further_than_stated(n: int) -> None:
    """Every kind of graph and every node of it; the optimum itself moves by D(D − 1)/2, what is released by 1 more."""
    reached = 0
    for cap in (2, 3, 4):
        most = most_at_a_node(cap)
        values = {kind: optimum(pairs(kind, n), n, most) for kind in classes(n)}
        numbers = {kind: shipped(pairs(kind, n), n, most) for kind in classes(n)}
        for kind in classes(n):
            graph = pairs(kind, n)
            assert values[kind] - 1 < numbers[kind] <= values[kind] + 1
            degrees = [sum(node in pair for pair in graph) for node in range(n)]
            if max(degrees) <= cap:
                assert numbers[kind] == len(corners(graph, n))
            for node in range(n):
                gone = sum(1 << place for place, pair in enumerate(pairs_of(n)) if node in pair)
                rest = renamed(n)[kind & ~gone]
                assert -1e-6 <= values[kind] - values[rest] <= most + 1e-6
                moved = numbers[kind] - numbers[rest]
                assert -1 <= moved <= triangle_moves(cap)
                reached = max(reached, moved - most)
    assert reached >= 0  # the bound without the 1 for the rounding is reached


@pytest.mark.claim("S0-10")
def test_no_rewired_node_moves_the_extension_further_than_stated() -> None:
    worlds = Worlds(n=5)
    for cap in (2, 3):
        most = most_at_a_node(cap)
        kinds = {kind: held_triangles(adjacency(kind, 5), most) for kind in classes(5)}
        numbers = np.array([kinds[renamed(5)[graph]] for graph in range(1024)])  # bit k is pair k in both
        for node in range(5):
            some = numbers[rewired(worlds, node)]
            assert (some.max(axis=1) - some.min(axis=1)).max() <= triangle_moves(cap)


@pytest.mark.claim("S0-10")
def test_twin_triangles_after_the_projection_move_further() -> None:
    """D = 2 and six nodes: the value inside the class is 1, after the projection a node moves the count by 2."""
    worst = 0
    for salt in range(4):
        worlds = Worlds(n=6, salt=salt)
        held = worlds.projected(worlds.bits, 2)
        place = {pair: k for k, pair in enumerate(worlds.pairs)}
        counts = sum(
            (held[:, place[a, b]] & held[:, place[a, c]] & held[:, place[b, c]]).astype(np.int64)
            for a, b, c in combinations(range(6), 3)
        )
        for node in range(6):
            some = np.asarray(counts)[rewired(worlds, node)]
            worst = max(worst, int(np.abs(some - some[:, :1]).max()))
    assert worst == 2 > most_at_a_node(2)


def test_triangles_are_listed_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "CHUNK", 3)  # many small parts
    for kind in classes(6):
        found = [tuple(sorted(row)) for part in listed(adjacency(kind, 6)) for row in part.tolist()]
        assert sorted(found) == corners(pairs(kind, 6), 6)
    with pytest.raises(InvalidInput, match="undirected"):
        next(iter(listed(Adjacency.of_pairs(2, [0], [1], directed=True))))


def some_sets() -> tuple[np.ndarray, np.ndarray]:
    graph = pairs((1 << 21) - 1 - (1 << 4), 7)
    found = np.array(corners(graph, 7)) + 1
    return found, np.ones(len(found), dtype=np.int64)


def test_any_prices_bound_the_optimum_from_above_and_any_numbers_from_below() -> None:
    sets, many = some_sets()
    best = optimum(pairs((1 << 21) - 1 - (1 << 4), 7), 7, 3)
    for place in range(50):
        wave = np.abs(np.sin(np.arange(1, 40) * (place + 1))) * (place % 5) / 2 - 0.3
        assert extension._from_dual(sets, many, wave[:7], 3) >= best * FINE - 1e-3 * FINE
        assert extension._from_primal(sets, many, wave[: len(sets)] * 3, 7, 3) <= best * FINE + 1e-3 * FINE
    assert extension._from_dual(sets, many, np.full(7, np.nan), 3) == len(sets) * FINE
    assert extension._from_primal(sets, many, np.full(len(sets), np.nan), 7, 3) == 0


@pytest.mark.parametrize(("off", "refused"), [(1e-7, False), (0.3, True)])
def test_a_solver_that_errs_is_caught(off: float, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sets, many = some_sets()
    exact = optimize.linprog

    def erring(*given: object, **named: object) -> SimpleNamespace:
        solved = exact(*given, **named)
        return SimpleNamespace(x=solved.x + off, ineqlin=SimpleNamespace(marginals=solved.ineqlin.marginals - off))

    right = extension._optimum(sets, many, 7, 3)
    monkeypatch.setattr(optimize, "linprog", erring)
    if refused:
        with pytest.raises(Unsupported, match="finely enough"):
            extension._optimum(sets, many, 7, 3)
    else:
        assert abs(extension._optimum(sets, many, 7, 3) - right) <= 1
    monkeypatch.setattr(optimize, "linprog", lambda *given, **named: SimpleNamespace(x=None))
    with pytest.raises(Unsupported, match="not solved"):
        extension._optimum(sets, many, 7, 3)
