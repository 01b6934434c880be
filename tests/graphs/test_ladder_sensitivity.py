"""How far an edge moves triangles, stars and both: enumerated over all graphs of up to six nodes, and attained."""

from math import comb

import numpy as np
import pytest

from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, edge, node, weight
from sfumato.errors import NotDeclared, Unsupported
from sfumato.graphs.queries.clustering import Clustering
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.triangles import Triangles
from sfumato.graphs.shape import Shape
from tests.graphs.small import counts, local, pairs_of

pytestmark = pytest.mark.kills

DATA = Dataset(name="wards", edition="1")
UNITS: list[Unit] = [edge(relation="add/remove"), edge(relation="replace"), weight(bound=1, relation="replace")]


def all_norms(moved: Sensitivity) -> tuple[object, ...]:
    return moved.l0.count, moved.l1.value, moved.l2.squared, moved.linf.value  # type: ignore[union-attr]


def most_moved(n: int, leaves: int | None, unit: Unit) -> int:
    """By the definition: one pair more or less, or one pair taken away and another one added."""
    if unit != edge(relation="replace"):
        return int(local(n, leaves).max())
    exact, graphs = counts(n, leaves), np.arange(counts(n, leaves).size)
    moved = 0
    for one in range(len(pairs_of(n))):
        for two in range(len(pairs_of(n))):
            fits = (graphs >> one & 1 == 1) & (graphs >> two & 1 == 0)
            if fits.any():
                moved = max(moved, int(abs(exact[graphs[fits] ^ (1 << one | 1 << two)] - exact[fits]).max()))
    return moved


@pytest.mark.claim("S0-10")
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_triangles_move_by_n_less_2(n: int, unit: Unit) -> None:
    said = Triangles(dataset=DATA, shape=Shape(nodes=n)).sensitivity(unit, None)
    assert all_norms(said) == (1, n - 2, (n - 2) ** 2, n - 2)
    # An edge that is replaced takes from one place and gives to another: in small graphs it moves less.
    assert most_moved(n, None, unit) == n - 2 or (unit == UNITS[1] and most_moved(n, None, unit) <= n - 2)


@pytest.mark.claim("S0-14")
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("leaves", [2, 3])
@pytest.mark.parametrize("n", [4, 5, 6])
def test_stars_move_by_twice_the_stars_of_one_end(n: int, leaves: int, unit: Unit) -> None:
    said = LocalStars(dataset=DATA, shape=Shape(nodes=n), leaves=leaves).sensitivity(unit, None)
    most = 2 * comb(n - 2, leaves - 1)
    assert all_norms(said) == (1, most, most**2, most)
    assert most_moved(n, leaves, unit) == most or (unit == UNITS[1] and most_moved(n, leaves, unit) <= most)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_triangles_and_wedges_move_together(n: int) -> None:
    said = Clustering(dataset=DATA, shape=Shape(nodes=n)).sensitivity(UNITS[0], None)
    graphs = np.arange(counts(n, None).size)
    moves = [
        np.stack([abs(counts(n, leaves)[graphs ^ (1 << k)] - counts(n, leaves)) for leaves in (None, 2)])
        for k in range(len(pairs_of(n)))
    ]
    l1, l2 = (max(int((move**power).sum(axis=0).max()) for move in moves) for power in (1, 2))
    assert all_norms(said) == (2, l1, l2, max(int(move.max()) for move in moves))


@pytest.mark.claim("S0-10")
@pytest.mark.parametrize("cap", [2, 3, 4])
@pytest.mark.parametrize("n", [5, 6])
def test_inside_a_class_of_small_degrees_triangles_move_less(n: int, cap: int) -> None:
    """D − 1 for an edge and D(D − 1)/2 for a node, between graphs that both hold the cap: no promise for others."""
    exact, graphs = counts(n, None), np.arange(counts(n, None).size)
    pairs = pairs_of(n)
    has = np.stack([graphs >> k & 1 for k in range(len(pairs))])
    held = np.all([has[[v in pair for pair in pairs]].sum(axis=0) <= cap for v in range(n)], axis=0)
    by_edge = max(
        int(abs(exact[graphs ^ (1 << k)] - exact)[held & held[graphs ^ (1 << k)]].max()) for k in range(len(pairs))
    )
    assert by_edge == cap - 1
    own = sum(1 << k for k, pair in enumerate(pairs) if 0 in pair)
    by_node = int((exact - exact[graphs & ~own])[held].max())
    assert by_node == cap * (cap - 1) // 2


def test_units_without_rungs_are_refused() -> None:
    for query in (
        Triangles(dataset=DATA, shape=Shape(nodes=None)),
        LocalStars(dataset=DATA, shape=Shape(nodes=None), leaves=2),
        Clustering(dataset=DATA, shape=Shape(nodes=None)),
    ):
        with pytest.raises(NotDeclared):
            query.sensitivity(UNITS[0], None)
        with pytest.raises(Unsupported):
            query.sensitivity(node(max_degree=3, relation="add/remove"), None)
