"""What each graph query states for each unit, number by number; the enumeration shows that it is right."""

from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import Unit
from sfumato.errors import NotDeclared, Refused, Unsupported
from sfumato.graphs.moves import DegreeMoves, cap_of, check_unit, degree_moves, edge_moves
from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.query import GraphQuery
from sfumato.graphs.shape import Direction, Shape

pytestmark = pytest.mark.kills

DATA = Dataset(name="wards", edition="1")
NINE, POINTED = Shape(nodes=9), Shape(nodes=9, directed=True)
SECRET, LISTED = Shape(nodes=None), Shape(nodes=None, listed=True)
OUT = Direction.OUT


def edge(relation: str = "add/remove") -> Unit:
    return sf.edge(relation=relation)


def node(cap: int, relation: str = "add/remove") -> Unit:
    return sf.node(max_degree=cap, relation=relation)


def count(shape: Shape) -> EdgeCount:
    return EdgeCount(dataset=DATA, shape=shape)


def degrees(shape: Shape, direction: Direction = Direction.TOTAL) -> Degrees:
    return Degrees(dataset=DATA, shape=shape, direction=direction)


def ranked(shape: Shape, length: int, direction: Direction = Direction.TOTAL) -> SortedDegrees:
    return SortedDegrees(dataset=DATA, shape=shape, length=length, direction=direction)


def counts(shape: Shape, most: int, *, closed: bool = True, direction: Direction = Direction.TOTAL) -> DegreeHistogram:
    return DegreeHistogram(dataset=DATA, shape=shape, most=most, closed=closed, direction=direction)


def both(shape: Shape, most: int) -> EdgesAndDegrees:
    return EdgesAndDegrees(dataset=DATA, shape=shape, most=most)


def stars(shape: Shape, leaves: int = 2, cap: int | None = None, direction: Direction = Direction.TOTAL) -> Stars:
    return Stars(dataset=DATA, shape=shape, leaves=leaves, max_degree=cap, direction=direction)


SWAP = "replace"
HEAVY = [sf.weight(bound=3, relation=relation) for relation in ("add/remove", SWAP)]

# (query, unit, l0, l1, l2², linf)
STATED: list[tuple[GraphQuery, Unit, int, int, int, int]] = [
    (count(NINE), edge(), 1, 1, 1, 1),
    (count(NINE), edge(SWAP), 1, 1, 1, 1),
    (count(NINE), HEAVY[0], 1, 1, 1, 1),
    (count(NINE), HEAVY[1], 1, 1, 1, 1),
    (count(SECRET), node(7), 1, 7, 49, 7),
    (count(NINE), node(7, SWAP), 1, 7, 49, 7),
    (degrees(NINE), edge(), 2, 2, 2, 1),
    (degrees(NINE), edge(SWAP), 4, 4, 4, 1),
    (degrees(NINE), HEAVY[1], 2, 2, 2, 1),
    (degrees(POINTED, OUT), edge(), 1, 1, 1, 1),
    (degrees(POINTED, OUT), edge(SWAP), 2, 2, 2, 1),
    (degrees(Shape(nodes=3)), edge(SWAP), 3, 4, 4, 1),
    (ranked(NINE, 9), edge(), 9, 2, 2, 1),
    (ranked(NINE, 4), edge(SWAP), 4, 4, 4, 1),
    (ranked(POINTED, 9, OUT), edge(), 9, 1, 1, 1),
    (ranked(SECRET, 5), node(7), 5, 14, 98, 7),
    (ranked(NINE, 9), node(7, SWAP), 9, 21, 49 + 196, 14),
    (counts(NINE, 8), edge(), 4, 4, 8, 2),
    (counts(NINE, 1, closed=False), edge(), 2, 4, 8, 2),
    (counts(NINE, 8), edge(SWAP), 8, 8, 24, 4),
    (counts(POINTED, 8, direction=OUT), edge(), 2, 2, 2, 1),
    (counts(POINTED, 8, direction=OUT), edge(SWAP), 4, 4, 6, 2),
    (counts(LISTED, 3), node(3), 4, 7, 16 + 9, 4),
    (counts(LISTED, 9), node(3), 7, 7, 16 + 9, 4),
    (counts(NINE, 3), node(3, SWAP), 4, 14, 2 * 49, 7),
    (counts(NINE, 30), node(3, SWAP), 14, 14, 2 * 49, 7),
    (both(NINE, 8), edge(), 5, 5, 9, 2),
    (both(NINE, 8), edge(SWAP), 9, 8, 24, 4),
    (both(LISTED, 3), node(3), 5, 10, 9 + 16 + 9, 4),
    (both(NINE, 3), node(3, SWAP), 5, 17, 9 + 98, 7),
    (stars(NINE), edge(), 1, 14, 196, 14),
    (stars(NINE), edge(SWAP), 1, 14, 196, 14),
    (stars(NINE, 3), edge(), 1, 42, 42**2, 42),
    (stars(NINE, cap=4), edge(), 1, 6, 36, 6),
    (stars(NINE, cap=4), edge(SWAP), 1, 12, 144, 12),
    (stars(NINE, 3, cap=4), edge(), 1, 6, 36, 6),
    (stars(NINE, cap=7), edge(), 1, 12, 144, 12),
    (stars(NINE, cap=8), edge(SWAP), 1, 14, 196, 14),
    (stars(NINE, cap=1), edge(), 1, 1, 1, 1),
    (stars(POINTED, direction=OUT), edge(), 1, 7, 49, 7),
    (stars(POINTED, direction=OUT), edge(SWAP), 1, 7, 49, 7),
    (stars(POINTED), edge(), 1, 30, 900, 30),
    (stars(Shape(nodes=1)), edge(), 1, 1, 1, 1),
    (stars(SECRET), node(5), 1, 30, 900, 30),
    (stars(SECRET, 3), node(5), 1, 40, 1600, 40),
    (stars(NINE), node(5, SWAP), 1, 50, 2500, 50),
    (stars(SECRET), node(1), 1, 1, 1, 1),
]


@pytest.mark.parametrize(("query", "unit", "l0", "l1", "l2_squared", "linf"), STATED, ids=lambda part: str(part)[:40])
def test_stated(query: GraphQuery, unit: Unit, l0: int, l1: int, l2_squared: int, linf: int) -> None:
    stated: Any = query.sensitivity(unit, None)
    found = stated.l0.count, stated.l1.value, stated.l2.squared, stated.linf.value
    assert found == (l0, Fraction(l1), Fraction(l2_squared), Fraction(linf))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (count(SECRET), (1, 1, 1, 1)),
        (ranked(SECRET, 5), (5, 2, 4, 2)),
        (counts(LISTED, 3), (4, 4, 8, 2)),
        (counts(LISTED, 1), (2, 4, 8, 2)),
        (counts(LISTED, 9), (4, 4, 8, 2)),
        (both(LISTED, 8), (5, 5, 9, 2)),
        (both(SECRET, 1), (2, 5, 9, 2)),
        (stars(SECRET), (1, 8, 64, 8)),
        (stars(SECRET, 3), (1, 12, 144, 12)),
        (stars(SECRET, 9), (1, 1, 1, 1)),
    ],
    ids=str,
)
def test_one_edge_of_a_projected_graph(query: Any, expected: tuple[int, int, int, int]) -> None:
    stated = query.one_edge(5)
    assert (stated.l0.count, stated.l1.value, stated.l2.squared, stated.linf.value) == expected


def test_moves_of_degrees() -> None:
    assert degree_moves(node(4), SECRET) == DegreeMoves(own=4, steps=4, apart=False, exchanged=False, comes=True)
    assert degree_moves(node(4, SWAP), NINE) == DegreeMoves(own=4, steps=8, apart=False, exchanged=True, comes=False)
    assert degree_moves(edge(), NINE) == DegreeMoves(own=0, steps=2, apart=True, exchanged=False, comes=False, ends=2)
    assert degree_moves(edge(SWAP), NINE, cap=3) == DegreeMoves(
        own=0, steps=4, apart=False, exchanged=True, comes=False, ends=2
    )
    assert degree_moves(HEAVY[1], NINE) == degree_moves(edge(), NINE)
    assert edge_moves(node(4, SWAP), NINE) == 4
    assert (cap_of(node(4)), cap_of(edge()), cap_of(edge(), 6)) == (4, None, 6)


@pytest.mark.claim("S0-07")
def test_units_that_are_none_of_a_graph_are_refused() -> None:
    for unit in (sf.user("id", relation="add/remove"), sf.record(relation="replace"), sf.event(relation="replace")):
        for query in (count(NINE), degrees(NINE), ranked(NINE, 9), counts(NINE, 8), both(NINE, 8), stars(NINE)):
            with pytest.raises(Refused):
                query.sensitivity(unit, None)
    for query in (count(NINE), ranked(NINE, 9), counts(NINE, 8), both(NINE, 8), stars(NINE)):
        with pytest.raises(Refused, match="secret"):
            query.sensitivity(node(3), None)
    for query in (count(SECRET), ranked(SECRET, 9), counts(SECRET, 8, closed=False), stars(SECRET)):
        with pytest.raises(NotDeclared):
            query.sensitivity(edge(), None)
    with pytest.raises(Refused, match="name the node"):
        degrees(NINE).sensitivity(node(3, SWAP), None)
    check_unit(node(3, SWAP), NINE)
    check_unit(node(3, SWAP), SECRET)


def test_what_is_not_proven_is_refused() -> None:
    for query in (ranked(POINTED, 9, OUT), counts(POINTED, 8, direction=OUT), stars(POINTED, direction=OUT)):
        with pytest.raises(Unsupported, match="nothing is proven"):
            query.sensitivity(node(3, SWAP), None)
    with pytest.raises(Unsupported, match="nothing is proven"):
        stars(POINTED, cap=3, direction=OUT).sensitivity(edge(), None)
    with pytest.raises(Refused, match="own max_degree"):
        stars(SECRET, cap=3).cap(node(3))
    with pytest.raises(Refused, match="larger most"):
        counts(NINE, 7).sensitivity(edge(), None)
    with pytest.raises(Refused, match="larger most"):
        counts(LISTED, 2).sensitivity(node(3), None)
    with pytest.raises(Refused, match="larger most"):
        both(NINE, 7).sensitivity(edge(), None)
