"""Edges, 2-stars and triangles together, over all graphs of up to six nodes and all their neighbours."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from sfumato.core.query import Dataset
from sfumato.core.units import Unit, edge, node, weight
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.ergm.statistics import NetworkStatistics, usual_weights
from sfumato.graphs.shape import Shape
from tests.graphs.enumeration import (
    Bits,
    Numbers,
    Worlds,
    edge_neighbours,
    largest,
    moved,
    replaced_edges,
    stars,
)

DATA = Dataset(name="tiny", edition="1")
UNITS = [
    edge(relation="add/remove"),
    edge(relation="replace"),
    weight(bound=1, relation="add/remove"),
    weight(bound=1, relation="replace"),
]


@cache
def worlds(n: int, salt: int = 0) -> Worlds:
    return Worlds(n=n, salt=salt)


def statistics(world: Worlds, bits: Bits) -> Numbers:
    """By the definitions, for all graphs at once."""
    place = {pair: k for k, pair in enumerate(world.pairs)}
    triangles = np.zeros(len(bits), dtype=np.int64)
    for i, j, k in combinations(range(world.n), 3):
        triangles += bits[:, place[i, j]] & bits[:, place[i, k]] & bits[:, place[j, k]]
    return np.hstack((bits.sum(axis=1)[:, None], stars(world.degrees(bits), 2), triangles[:, None]))


def stated(query: NetworkStatistics, unit: Unit) -> tuple[int, int, int, int]:
    bound = query.sensitivity(unit, None)
    assert bound.l0 is not None
    assert bound.l1 is not None
    assert bound.l2 is not None
    assert bound.linf is not None
    return bound.l0.count, int(bound.l1.value), int(bound.l2.squared), int(bound.linf.value)


def found(world: Worlds, values: Numbers, unit: Unit) -> tuple[int, int, int, int]:
    pairs = [moved(values[one], values[other]) for one, other in edge_neighbours(world)]
    if unit == edge(relation="replace"):
        pairs += [moved(values[one], values[other]) for one, other in replaced_edges(world)]
    return largest(pairs)


@pytest.mark.few(2)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_enumeration_computes_what_the_query_computes(n: int) -> None:
    query = NetworkStatistics(dataset=DATA, shape=Shape(nodes=n), weights=(5, 1, 2))
    values = statistics(worlds(n), worlds(n).bits) * np.array([5, 1, 2])
    for place in range(0, len(values), 1 if n < 5 else 13):
        assert query.exact(worlds(n).adjacency(place)) == values[place].tolist()


@pytest.mark.claim("S0-15")
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_no_edge_moves_the_statistics_further_than_stated_and_one_moves_them_so_far(n: int, unit: Unit) -> None:
    values = statistics(worlds(n), worlds(n).bits)
    for weights in ((1, 1, 1), usual_weights(n), (1, 3, 7)):
        query = NetworkStatistics(dataset=DATA, shape=Shape(nodes=n), weights=weights)
        assert found(worlds(n), values * np.array(weights), unit) == stated(query, unit)


@pytest.mark.claim("S0-15")
def test_the_norms_are_those_of_the_formula() -> None:
    for n in range(2, 60):
        query = NetworkStatistics(dataset=DATA, shape=Shape(nodes=n))
        assert stated(query, edge(relation="add/remove"))[1:3] == (3 * n - 5, 1 + 5 * (n - 2) ** 2)
    assert stated(NetworkStatistics(dataset=DATA, shape=Shape(nodes=6)), edge(relation="replace"))[1:3] == (13, 81)


@pytest.mark.claim("S0-15")
@pytest.mark.parametrize("cap", [1, 2, 3, 4, 5])
def test_among_graphs_of_small_degree_an_edge_moves_3d_minus_2(cap: int) -> None:
    world = worlds(6)
    values = statistics(world, world.bits)
    small = world.degrees(world.bits).max(axis=1) <= cap
    inside = [(one[small[other]], other[small[other]]) for one, other in edge_neighbours(world)]
    assert largest([moved(values[one], values[other]) for one, other in inside])[1] == 3 * cap - 2


# --------------------------------------------------------------------------------------------------------- broken twins


def test_the_value_of_small_degrees_is_broken_by_the_projection() -> None:
    """A query that projects to D and states 3D − 2 would be caught: an edge more can change a chain of edges."""
    caught = []
    for salt in range(4):
        world = worlds(6, salt)
        for cap in (2, 3):
            values = statistics(world, world.projected(world.bits, cap))
            caught.append(found(world, values, edge(relation="add/remove"))[1] > 3 * cap - 2)
    assert any(caught)


@pytest.mark.parametrize(
    ("broken", "n"),
    [
        (lambda n: 3 * n - 6, 6),  # the edge itself was left out
        (lambda n: 1 + (n - 2) + (n - 2), 6),  # 2-stars at one end alone
        (lambda n: 3 * (n - 1) - 5, 5),  # n − 3 others
        (lambda n: 2 * n - 4, 4),  # the largest of the three instead of their sum
    ],
)
def test_a_smaller_value_is_caught(broken: object, n: int) -> None:
    reached = found(worlds(n), statistics(worlds(n), worlds(n).bits), edge(relation="add/remove"))[1]
    assert reached > broken(n)  # type: ignore[operator]


def test_separate_l2_bounds_must_not_be_taken_for_the_joint_one() -> None:
    reached = found(worlds(6), statistics(worlds(6), worlds(6).bits), edge(relation="add/remove"))[2]
    assert reached == 81 > (2 * 6 - 4) ** 2


# ------------------------------------------------------------------------------------------------------------- refusals


def test_what_has_no_bound_is_refused() -> None:
    asked = NetworkStatistics(dataset=DATA, shape=Shape(nodes=6))
    with pytest.raises(Refused, match="one node does to the triangles"):
        asked.sensitivity(node(max_degree=3, relation="replace"), None)
    with pytest.raises(NotDeclared, match="public number of nodes"):
        NetworkStatistics(dataset=DATA, shape=Shape(nodes=None))
    with pytest.raises(InvalidInput, match="undirected"):
        NetworkStatistics(dataset=DATA, shape=Shape(nodes=6, directed=True))
    with pytest.raises(InvalidInput, match="three weights"):
        NetworkStatistics(dataset=DATA, shape=Shape(nodes=6), weights=(1, 1))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="weight"):
        NetworkStatistics(dataset=DATA, shape=Shape(nodes=6), weights=(1, 0, 1))
