"""What node-level queries state of themselves: every number, and every refusal."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core import events
from sfumato.core.guarantees import Pure
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import Refused
from sfumato.graphs.node_level.by_chosen_cap import ChosenEdges, ChosenHistogram
from sfumato.graphs.node_level.caps import in_the_way
from sfumato.graphs.node_level.extension import most_at_a_node
from sfumato.graphs.node_level.triangles import ChosenTriangles, NodeTriangles, triangle_moves
from sfumato.graphs.shape import Shape
from sfumato.mechanisms import ChosenCap

pytestmark = pytest.mark.kills

DATA, SECRET, LISTED = Dataset(name="tiny", edition="1"), Shape(nodes=None), Shape(nodes=None, listed=True)
ADD, SWAP = sf.node(max_degree=40, relation="add/remove"), sf.node(max_degree=40, relation="replace")


@pytest.mark.parametrize(
    ("query", "add", "swap", "l0"),
    [
        (ChosenEdges(dataset=DATA, shape=SECRET, most=40), 40, 40, 1),
        (ChosenHistogram(dataset=DATA, shape=SECRET, most=40), 80, 120, 40),
        (ChosenHistogram(dataset=DATA, shape=LISTED, most=40), 81, 120, 41),
        (ChosenTriangles(dataset=DATA, shape=SECRET, most=40), 781, 781, 1),
        (NodeTriangles(dataset=DATA, shape=SECRET, most=40), 781, 781, 1),
    ],
    ids=lambda given: getattr(given, "KIND", str(given)),
)
def test_stated(query: Any, add: int, swap: int, l0: int) -> None:
    for unit, most in ((ADD, add), (SWAP, swap)):
        stated = query.sensitivity(unit, None)
        assert stated == Sensitivity.of(l0=l0, l1=most, l2_squared=most**2, linf=most)
    public = replace(query, shape=Shape(nodes=9))
    for relation in ("add/remove", "replace"):
        with pytest.raises(Refused):
            query.sensitivity(sf.node(max_degree=41, relation=relation), None)
        with pytest.raises(Refused):
            public.sensitivity(sf.edge(relation=relation), None)


def test_the_noise_at_each_cap() -> None:
    asked = {
        ChosenEdges: ((10, 20, 40), (10, 20, 40)),
        ChosenHistogram: ((20, 40, 80), (30, 60, 120)),
        ChosenTriangles: ((46, 191, 781), (46, 191, 781)),
    }
    for kind, (add, swap) in asked.items():
        query = kind(dataset=DATA, shape=SECRET, most=40, least=10, share=Fraction(1, 4))
        for unit, moves, spread in ((ADD, add, 1), (SWAP, swap, 2)):
            mechanism = query.mechanism(query.sensitivity(unit, None), unit, sf.Budget(epsilon=2))
            assert isinstance(mechanism, ChosenCap)
            assert (mechanism.caps, mechanism.moves, mechanism.spread) == ((10, 20, 40), moves, spread)
            assert (mechanism.choice, mechanism.epsilon) == (Fraction(1, 2), Fraction(3, 2))
            assert mechanism.scale(20) == moves[1] / Fraction(3, 2)
            assert mechanism.loss(query.sensitivity(unit, None)) == events.Composed(
                events=(
                    events.Stated(guarantee=Pure(epsilon=Fraction(1, 2))),
                    events.Stated(guarantee=Pure(epsilon=Fraction(3, 2))),
                )
            )
            with pytest.raises(Refused, match="largest cap"):
                mechanism.loss(Sensitivity.of(l1=moves[-1] + 1))
            with pytest.raises(Refused, match="largest cap"):
                mechanism.loss(Sensitivity.of(l1=moves[-1] - 1))


def test_numbers_of_the_proof() -> None:
    assert [most_at_a_node(cap) for cap in (1, 2, 3, 6)] == [0, 1, 3, 15]
    assert [triangle_moves(cap) for cap in (1, 2, 3, 6)] == [1, 2, 4, 16]
    assert {type(found(6)) for found in (most_at_a_node, triangle_moves)} == {int}
    # at 8, without two nodes: 12 is over 8 + 2 by 2, which is 8/4; without one, 22 is over 9 by 13
    many = np.array([30, 22, 12, 10, 10, 9, 3])
    assert in_the_way(many, [8, 16, 32]) == [2, 2, 0]
    assert in_the_way(many, [8, 16, 32], ends=2) == [2, 1, 0]
    alike = np.array([9, 9, 9])
    assert in_the_way(alike, [4, 5, 6, 8, 12]) == [3, 3, 2, 1, 0]
    assert in_the_way(alike, [4, 5, 6, 8, 12], ends=2) == [2, 2, 2, 1, 0]
    more = np.array([9, 40, 21, 9, 20, 20, 15, 14, 9, 13])
    assert in_the_way(more, [2, 4, 6, 8, 10, 12]) == [7, 7, 6, 5, 4, 4]
    assert in_the_way(more, [2, 4, 6, 8, 10, 12], ends=2) == [6, 5, 4, 4, 4, 3]
    assert in_the_way(np.array([], dtype=np.int64), [1]) == [0]
