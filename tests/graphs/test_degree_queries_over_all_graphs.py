"""Every query on degrees, over all small graphs and all their neighbours: no unit moves it further than stated.

Undirected graphs up to 6 nodes and directed ones up to 4 arcs' worth, edge and node units, add/remove and replace, each
query *after* the projection. Where the proof says that a bound is attained, it must be. Broken twins at the end.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, edge, node, weight
from sfumato.graphs.projection import projected
from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.query import GraphQuery
from sfumato.graphs.shape import Direction, Shape
from tests.graphs.enumeration import (
    Numbers,
    Worlds,
    edge_neighbours,
    edges,
    histogram,
    largest,
    moved,
    replaced_edges,
    rewired,
    sorted_degrees,
    stars,
)

DATA = Dataset(name="tiny", edition="1")
ADD, SWAP = "add/remove", "replace"
Norms = tuple[int, int, int, int]


@cache
def worlds(n: int, directed: bool = False, salt: int = 0) -> Worlds:
    return Worlds(n=n, directed=directed, salt=salt)


def norms(stated: Sensitivity) -> Norms:
    assert stated.l0 is not None
    assert stated.l1 is not None
    assert stated.l2 is not None
    assert stated.linf is not None
    bounds = stated.l0.count, stated.l1.value, stated.l2.squared, stated.linf.value
    assert all(bound == int(bound) for bound in bounds)
    return tuple(int(bound) for bound in bounds)  # type: ignore[return-value]


def within(found: Norms, query: GraphQuery, unit: Unit) -> None:
    stated = norms(query.sensitivity(unit, None))
    assert all(one <= other for one, other in zip(found, stated, strict=True)), (found, stated)


# ---------------------------------------------------------------------------------- the enumeration is the shipped code


@pytest.mark.parametrize(("n", "directed"), [(1, False), (2, False), (3, False), (4, False), (5, False), (3, True)])
@pytest.mark.parametrize("cap", [None, 1, 2, 3])
def test_the_enumeration_computes_what_the_queries_compute(n: int, directed: bool, cap: int | None) -> None:
    world = worlds(n, directed, salt=3)
    degrees = world.degrees(world.projected(world.bits, cap))
    shape, top = Shape(nodes=n, directed=directed), (n - 1) * (2 if directed else 1)
    expected = {
        EdgeCount(dataset=DATA, shape=shape): edges(degrees, n),
        Degrees(dataset=DATA, shape=shape): degrees,
        SortedDegrees(dataset=DATA, shape=shape, length=n): sorted_degrees(degrees, n),
        SortedDegrees(dataset=DATA, shape=Shape(nodes=None, directed=directed), length=n + 2): np.pad(
            sorted_degrees(degrees, n), ((0, 0), (2, 0))
        ),
        DegreeHistogram(dataset=DATA, shape=shape, most=top, closed=True): histogram(degrees, top),
        DegreeHistogram(dataset=DATA, shape=shape, most=1, closed=False): histogram(np.minimum(degrees, 1), 1),
        EdgesAndDegrees(dataset=DATA, shape=shape, most=top): np.hstack((edges(degrees, n), histogram(degrees, top))),
        Stars(dataset=DATA, shape=shape, leaves=2): stars(degrees, 2),
        Stars(dataset=DATA, shape=shape, leaves=3): stars(degrees, 3),
    }
    for place in range(0, len(world.bits), 1 if n < 5 else 7):
        graph = world.adjacency(place)
        graph = graph if cap is None else projected(graph, world.keys, cap)
        for query, answers in expected.items():
            assert query.exact(graph) == answers[place].tolist()


@pytest.mark.parametrize("cap", [1, 2, 3, 4])
def test_the_projection_of_six_nodes_is_the_one_by_definition(cap: int) -> None:
    world = worlds(6)
    chosen = np.arange(17, len(world.bits), 331)
    expected = world.projected(world.bits[chosen], cap)
    for place, taken in zip(chosen.tolist(), expected, strict=True):
        head, tail = projected(world.adjacency(place), world.keys, cap).pairs()
        assert list(zip(head.tolist(), tail.tolist(), strict=True)) == [
            pair for pair, there in zip(world.pairs, taken, strict=True) if there
        ]


# ------------------------------------------------------------------------------------------------------------ edge unit


def over_edges(world: Worlds, values: Numbers, unit: Unit) -> Norms:
    found = [moved(values[one], values[other]) for one, other in edge_neighbours(world)]
    if unit == edge(relation=SWAP):  # an edge that does not count may be exchanged too: one more or less
        found += [moved(values[one], values[other]) for one, other in replaced_edges(world)]
    return largest(found)


EDGE_UNITS = [edge(relation=ADD), edge(relation=SWAP), weight(bound=1, relation=ADD), weight(bound=1, relation=SWAP)]


@pytest.mark.few(8)
@pytest.mark.claim("S0-08", "S0-11", "S0-12", "S0-13", "S0-14")
@pytest.mark.parametrize("unit", EDGE_UNITS, ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_no_edge_moves_a_query_further_than_it_says(n: int, unit: Unit) -> None:
    world, shape = worlds(n), Shape(nodes=n)
    degrees = world.degrees(world.bits)
    both = np.hstack((edges(degrees, n), histogram(degrees, n - 1)))
    asked: list[tuple[GraphQuery, Numbers, bool]] = [
        (EdgeCount(dataset=DATA, shape=shape), edges(degrees, n), True),
        (Degrees(dataset=DATA, shape=shape), degrees, n >= 4),
        (SortedDegrees(dataset=DATA, shape=shape, length=n), sorted_degrees(degrees, n), n == 6),
        (SortedDegrees(dataset=DATA, shape=shape, length=2), sorted_degrees(degrees, n)[:, -2:], False),
        (DegreeHistogram(dataset=DATA, shape=shape, most=n - 1, closed=True), histogram(degrees, n - 1), n == 6),
        (
            DegreeHistogram(dataset=DATA, shape=shape, most=1, closed=False),
            histogram(np.minimum(degrees, 1), 1),
            False,
        ),
        (EdgesAndDegrees(dataset=DATA, shape=shape, most=n - 1), both, n == 6),
        (Stars(dataset=DATA, shape=shape, leaves=2), stars(degrees, 2), n > 2),
        (Stars(dataset=DATA, shape=shape, leaves=3), stars(degrees, 3), n > 3),
    ]
    for query, values, attained in asked:
        found = over_edges(world, values, unit)
        within(found, query, unit)
        if attained:
            assert found[1:3] == norms(query.sensitivity(unit, None))[1:3], query


@pytest.mark.claim("S0-11", "S0-12", "S0-13", "S0-14")
def test_the_numbers_for_six_nodes_are_those_of_the_requirements() -> None:
    world, unit = worlds(6), edge(relation=ADD)
    degrees = world.degrees(world.bits)
    counts = histogram(degrees, 5)
    assert over_edges(world, edges(degrees, 6), unit)[1] == 1
    assert over_edges(world, degrees, unit)[1:3] == (2, 2)
    assert over_edges(world, sorted_degrees(degrees, 6), unit)[1:3] == (2, 2)
    assert over_edges(world, counts, unit)[1:3] == (4, 8)
    assert over_edges(world, np.hstack((edges(degrees, 6), counts)), unit)[1:3] == (5, 9)
    assert over_edges(world, stars(degrees, 2), unit)[1] == 2 * 6 - 4
    assert over_edges(world, counts, edge(relation=SWAP))[1:3] == (8, 24)


@pytest.mark.claim("S0-12")
def test_ends_whose_degrees_differ_by_one_move_the_histogram_by_two() -> None:
    world = worlds(5)
    degrees = world.degrees(world.bits)
    counts = histogram(degrees, 4)
    for place, (i, j) in enumerate(world.pairs):
        without = np.arange(len(world.bits))[~world.bits[:, place]]
        gap = np.abs(degrees[without, i] - degrees[without, j])
        l1 = np.abs(counts[without] - counts[without | 1 << place]).sum(axis=1)
        assert (l1 == np.where(gap == 1, 2, 4)).all()


@pytest.mark.claim("S0-14")
@pytest.mark.parametrize("unit", [edge(relation=ADD), edge(relation=SWAP)], ids=str)
@pytest.mark.parametrize("leaves", [2, 3])
@pytest.mark.parametrize("cap", [1, 2, 3, 4])
def test_stars_under_a_cap(cap: int, leaves: int, unit: Unit) -> None:
    world = worlds(6)
    values = stars(world.degrees(world.projected(world.bits, cap)), leaves)
    query = Stars(dataset=DATA, shape=Shape(nodes=6), leaves=leaves, max_degree=cap)
    found = over_edges(world, values, unit)
    within(found, query, unit)
    if unit == edge(relation=ADD) and cap >= leaves:
        assert found[1] == norms(query.sensitivity(unit, None))[1]
    if leaves == 2 and cap > 1:
        assert norms(query.sensitivity(edge(relation=ADD), None))[1] == 2 * (cap - 1)


@pytest.mark.few(4)
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("unit", [edge(relation=ADD), edge(relation=SWAP)], ids=str)
def test_directed_graphs_of_four_nodes(direction: Direction, unit: Unit) -> None:
    world, shape = worlds(4, directed=True), Shape(nodes=4, directed=True)
    degrees, top = world.degrees(world.bits, direction.value), shape.top(direction)
    assert top is not None
    asked: list[tuple[GraphQuery, Numbers]] = [
        (Degrees(dataset=DATA, shape=shape, direction=direction), degrees),
        (SortedDegrees(dataset=DATA, shape=shape, direction=direction, length=4), sorted_degrees(degrees, 4)),
        (
            DegreeHistogram(dataset=DATA, shape=shape, direction=direction, most=top, closed=True),
            histogram(degrees, top),
        ),
        (Stars(dataset=DATA, shape=shape, direction=direction, leaves=2), stars(degrees, 2)),
    ]
    for query, values in asked:
        found = over_edges(world, values, unit)
        within(found, query, unit)
        if unit == edge(relation=ADD):
            assert found[1] == norms(query.sensitivity(unit, None))[1]


# ------------------------------------------------------------------------------------------------------------ node unit


def over_nodes(world: Worlds, values: Callable[[Numbers], Numbers], cap: int | None) -> Norms:
    """All graphs with a node and without it. ``values`` takes degrees; who is not there has degree −1."""
    degrees = world.degrees(world.projected(world.bits, cap))
    with_node, found = values(degrees), []
    for gone in range(world.n):
        rest = world.number(world.bits & ~world.at(gone))
        without = degrees[rest].copy()
        without[:, gone] = -1
        found.append(moved(with_node, values(without)))
    return largest(found)


def over_rewirings(world: Worlds, values: Callable[[Numbers], Numbers], cap: int, nodes: range) -> Norms:
    answers = values(world.degrees(world.projected(world.bits, cap))).astype(np.int16)
    found = []
    for rewire in nodes:
        around = answers[rewired(world, rewire)]
        found += [moved(around, around[:, place : place + 1]) for place in range(around.shape[1])]
    return largest(found)


def of_degrees(query: GraphQuery, cap: int) -> Callable[[Numbers], Numbers]:
    """The answer as a function of degrees, where −1 is a node that is not there."""

    def values(degrees: Numbers) -> Numbers:
        there = np.maximum(degrees, 0)
        least = 0 if query.shape.nodes is not None or query.shape.listed else 1
        counts = histogram(degrees, cap)[:, least:]  # who is not there is in no count
        match query:
            case EdgeCount():
                return edges(there, degrees.shape[1])
            case SortedDegrees(length=length):
                padded = np.pad(sorted_degrees(there, degrees.shape[1]), ((0, 0), (length, 0)))
                return padded[:, -length:]
            case DegreeHistogram():
                return counts
            case EdgesAndDegrees():
                return np.hstack((edges(there, degrees.shape[1]), counts))
            case Stars(leaves=leaves):
                return stars(there, leaves)
        raise AssertionError(query)

    return values


def node_queries(shape: Shape, cap: int) -> list[tuple[GraphQuery, bool]]:
    """Queries, and whether their bounds in l1 and l2 are attained with six nodes, where a node comes or goes."""
    listed = shape.listed
    return [
        (EdgeCount(dataset=DATA, shape=shape), True),
        (SortedDegrees(dataset=DATA, shape=shape, length=shape.nodes or 6), False),
        (SortedDegrees(dataset=DATA, shape=shape, length=3), False),
        (DegreeHistogram(dataset=DATA, shape=shape, most=cap, closed=True), listed),
        (EdgesAndDegrees(dataset=DATA, shape=shape, most=cap), listed),
        (Stars(dataset=DATA, shape=shape, leaves=2), cap > 1),
        (Stars(dataset=DATA, shape=shape, leaves=3), cap > 2),
    ]


@pytest.mark.few(16)
@pytest.mark.claim("S0-08", "S0-11", "S0-12", "S0-14")
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("cap", [1, 2, 3, 4])
@pytest.mark.parametrize(("n", "salt"), [(2, 0), (3, 0), (4, 0), (4, 1), (5, 0), (5, 1), (5, 2), (6, 0)])
def test_no_node_moves_a_query_further_than_it_says(n: int, salt: int, cap: int, listed: bool) -> None:
    world, shape, unit = worlds(n, salt=salt), Shape(nodes=None, listed=listed), node(max_degree=cap, relation=ADD)
    for query, attained in node_queries(shape, cap):
        found = over_nodes(world, of_degrees(query, cap), cap)
        within(found, query, unit)
        if attained and n == 6:
            assert found[1:3] == norms(query.sensitivity(unit, None))[1:3], query
        if n == 6 and query == SortedDegrees(dataset=DATA, shape=shape, length=6):
            assert found[1] == 2 * cap


@pytest.mark.few(5)
@pytest.mark.parametrize("cap", [1, 2, 3, 4])
@pytest.mark.parametrize(("n", "salt"), [(3, 0), (4, 0), (4, 1), (5, 0), (6, 0)])
def test_no_rewired_node_moves_a_query_further_than_it_says(n: int, salt: int, cap: int) -> None:
    world, unit = worlds(n, salt=salt), node(max_degree=cap, relation=SWAP)
    for query, _ in node_queries(Shape(nodes=n), cap):
        nodes = range(n) if n < 6 else range(cap, cap + 1)
        within(over_rewirings(world, of_degrees(query, cap), cap, nodes), query, unit)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_directed_graphs_with_a_node_more_or_less(cap: int) -> None:
    world, shape = worlds(4, directed=True), Shape(nodes=None, directed=True)
    for query, _ in node_queries(shape, cap):
        within(over_nodes(world, of_degrees(query, cap), cap), query, node(max_degree=cap, relation=ADD))


# ---------------------------------------------------------------------------------------------------------- the twins


@pytest.mark.claim("S0-08")
def test_twin_a_cap_read_off_the_graph_is_no_bound() -> None:
    """Twin: the sensitivity is the largest degree that was observed. A node comes, and moves the edges by more."""
    world = worlds(5)
    degrees = world.degrees(world.bits)
    beyond = 0
    for gone in range(5):
        rest = world.number(world.bits & ~world.at(gone))
        move = (edges(degrees, 5) - edges(degrees[rest], 5))[:, 0]
        beyond += int((move > degrees[rest].max(axis=1)).sum())
    assert beyond > 0
    assert over_nodes(world, lambda found: edges(np.maximum(found, 0), 5), None)[1] == 5 - 1  # without a cap: n − 1


@pytest.mark.claim("S0-08")
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_twin_without_the_projection_the_bounds_are_broken(cap: int) -> None:
    world, shape, unit = worlds(5), Shape(nodes=None, listed=True), node(max_degree=cap, relation=ADD)
    for query in (
        EdgeCount(dataset=DATA, shape=shape),
        SortedDegrees(dataset=DATA, shape=shape, length=5),
        Stars(dataset=DATA, shape=shape, leaves=2),
        DegreeHistogram(dataset=DATA, shape=shape, most=cap, closed=True),
    ):
        values = of_degrees(query, 4)
        assert over_nodes(world, values, None)[1] > norms(query.sensitivity(unit, None))[1], query


@pytest.mark.claim("S0-12")
def test_twin_a_histogram_with_l2_two_is_broken() -> None:
    world = worlds(4)
    counts = histogram(world.degrees(world.bits), 3)
    assert over_edges(world, counts, edge(relation=ADD))[2] > 2**2


def test_twin_an_order_that_looks_at_degrees_breaks_the_projection() -> None:
    """Twin: edges of nodes with small degrees first. A node that comes changes the order of edges it has no part in."""
    world, cap, worst = worlds(6), 1, 0
    raw = world.degrees(world.bits)
    weightiest = raw[:, world.head] + raw[:, world.tail]
    kept = np.zeros(len(world.bits), dtype=np.int64)
    room = np.full((len(world.bits), 6), cap)
    sorting = np.argsort(-weightiest, axis=1, kind="stable")
    every = np.arange(len(world.bits))
    for turn in range(len(world.pairs)):
        place = sorting[:, turn]
        i, j = world.head[place], world.tail[place]
        taken = world.bits[every, place] & (room[every, i] > 0) & (room[every, j] > 0)
        room[every[taken], i[taken]] -= 1
        room[every[taken], j[taken]] -= 1
        kept += taken
    for gone in range(6):
        rest = world.number(world.bits & ~world.at(gone))
        worst = max(worst, int(np.abs(kept - kept[rest]).max()))
    assert worst > cap


def test_twin_neighbours_that_move_by_one_each_are_no_bound_in_l2() -> None:
    """Twin: l2² = D² + D, as if each of D neighbours moved by 1. Moves meet in one node; 2D² is reached."""
    cap, query = 2, SortedDegrees(dataset=DATA, shape=Shape(nodes=None), length=6)
    found = largest([over_nodes(worlds(6, salt=salt), of_degrees(query, cap), cap) for salt in range(4)])
    assert found[2] == 2 * cap**2 > cap**2 + cap


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_one_edge_of_a_projected_graph_moves_no_further_than_reports_say(cap: int) -> None:
    world, shape = worlds(5, salt=1), Shape(nodes=None, listed=True)
    degrees = world.degrees(world.projected(world.bits, cap))
    for query, _ in node_queries(shape, cap):
        found = over_edges(world, of_degrees(query, cap)(degrees), edge(relation=ADD))
        stated = norms(query.one_edge(cap))  # type: ignore[attr-defined]
        assert all(one <= other for one, other in zip(found, stated, strict=True)), (query, found, stated)
