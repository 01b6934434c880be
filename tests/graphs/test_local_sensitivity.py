"""Local sensitivities at distance t: equal to the definition on every small graph, and covered at the hubs."""

from math import comb

import numpy as np
import pytest

from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.kernels import hub_pairs, ranked
from sfumato.graphs.local_sensitivity import Front, front_of, star_rungs, triangle_rungs
from tests.graphs.small import adjacency, classes, local_at

pytest.importorskip("numba")


def widths(graph: int, n: int, leaves: int | None) -> list[int]:
    known = ranked(adjacency(graph, n))
    _, rungs = triangle_rungs(known) if leaves is None else star_rungs(known, leaves)
    return [rungs.width(t) for t in range(comb(n, 2) + 1)]


@pytest.mark.few(4)
@pytest.mark.claim("S0-10")
@pytest.mark.claim("S0-14")
@pytest.mark.parametrize(
    ("n", "leaves"),
    [
        *((n, leaves) for n in (3, 4, 5) for leaves in (None, 2, 3, 4) if leaves is None or leaves < n),
        *(pytest.param(6, leaves, marks=pytest.mark.long) for leaves in (None, 2, 3, 4)),
    ],
)
def test_rungs_are_the_local_sensitivity_at_every_distance(n: int, leaves: int | None) -> None:
    """Every graph on n nodes is one of the classes with its nodes renamed."""
    for graph in classes(n):
        assert widths(graph, n, leaves) == local_at(graph, n, leaves)


def two_hubs(leaves: int) -> Adjacency:
    ends = np.arange(2 * leaves)
    return Adjacency.of_pairs(2 * leaves + 2, np.where(ends < leaves, 0, 1), ends + 2)


def test_two_hubs_without_a_common_neighbour_are_covered() -> None:
    """Ten edges give the hubs ten common neighbours. Pairs that share one, two leaves of a hub, would reach six."""
    known = ranked(two_hubs(20))
    _, rungs = triangle_rungs(known)
    assert rungs.width(10) == 10
    found = hub_pairs(known, 1, known.graph.n)
    by_wedges = Front.of((int(a), int(found[a])) for a in (found >= 0).nonzero()[0])
    assert by_wedges.at(10) == 6  # the broken twin


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [7, 30, 200])
def test_stopping_early_changes_nothing(n: int) -> None:
    """The front of all pairs, from the matrix itself, decides the same widths as the few pairs looked at."""
    chance = np.random.default_rng(n)
    for density in (0.02, 0.2, 0.7):
        weights = chance.random(n) ** 3
        head, tail = np.nonzero(np.triu(chance.random((n, n)) < density * 4 * np.outer(weights, weights), 1))
        graph = Adjacency.of_pairs(n, head, tail)
        matrix = np.zeros((n, n), dtype=np.int64)
        matrix[head, tail] = matrix[tail, head] = 1
        shared, degrees = matrix @ matrix, matrix.sum(axis=0)
        i, j = np.triu_indices(n, 1)
        totals = degrees[i] + degrees[j] - 2 * matrix[i, j]
        everything = Front.of(zip(shared[i, j].tolist(), totals.tolist(), strict=True))
        few = front_of(ranked(graph))
        assert [few.at(t) for t in range(2 * n)] == [everything.at(t) for t in range(2 * n)]
        rungs = few.rungs(n)
        assert [rungs.width(t) for t in range(2 * n)] == [min(everything.at(t), n - 2) for t in range(2 * n)]
