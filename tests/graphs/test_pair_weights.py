"""Weights of pairs: sensitivity by brute force, both halves of the matrix, refusals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import edge, node, weight
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.pairs import pairs, places
from sfumato.graphs.queries.weights import PairWeights, mirrored
from sfumato.graphs.shape import Shape
from sfumato.graphs.source import WEIGHT_STEPS
from sfumato.reports.verify import parsed, verify

pytestmark = pytest.mark.kills

LEVELS = (0, WEIGHT_STEPS // 3, WEIGHT_STEPS)
UNIT = weight(bound=5, relation="replace")


def query(n: int = 3, *, directed: bool = False, bound: int = 5) -> PairWeights:
    return PairWeights(
        dataset=Dataset(name="proteins", edition="1"), shape=Shape(nodes=n, directed=directed), bound=Fraction(bound)
    )


def networks(asked: PairWeights) -> dict[tuple[int, ...], list[int]]:
    """The answer for every network of three nodes whose weights are of a few levels; weight 0 is no edge."""
    ends = list(pairs(asked.shape))
    found = {}
    for levels in product(LEVELS, repeat=len(ends)):
        held = [(i, j, level) for (i, j), level in zip(ends, levels, strict=True) if level]
        rows = list(zip(*held, strict=True)) or [(), (), ()]
        found[levels] = asked.exact(
            Adjacency.of_pairs(3, rows[0], rows[1], directed=asked.shape.directed, weights=rows[2])
        )
    return found


def farthest(answers: dict[tuple[int, ...], np.ndarray]) -> tuple[int, int]:
    """The largest l1 and squared l2 move over all pairs of networks that differ in one weight."""
    moves = [
        (int(abs(one - two).sum()), int(((one - two) ** 2).sum()))
        for here, one in answers.items()
        for there, two in answers.items()
        if sum(a != b for a, b in zip(here, there, strict=True)) == 1
    ]
    return max(l1 for l1, _ in moves), max(squared for _, squared in moves)


@pytest.mark.claim("S0-18")
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_one_weight_moves_one_number_by_the_bound(relation: str) -> None:
    asked, unit = query(), weight(bound=5, relation=relation)
    found = farthest({levels: np.array(answer) for levels, answer in networks(asked).items()})
    moved = asked.sensitivity(unit, None)
    assert found == (moved.l1.value, moved.l2.squared) == (WEIGHT_STEPS, WEIGHT_STEPS**2)
    assert moved.l1.value * asked.step == 5
    assert moved.l2.squared * asked.step**2 == 25
    assert moved.linf.value * asked.step == 5


@pytest.mark.claim("S0-18")
def test_noise_on_both_halves_of_the_matrix_is_charged_twice() -> None:
    """The broken twin: a symmetric matrix whose entries all have noise of their own moves by 2B, and √2·B in l2."""
    asked = query()
    whole = {}
    for levels, answer in networks(asked).items():
        table = np.zeros((3, 3), dtype=np.int64)
        for (i, j), value in zip(pairs(asked.shape), answer, strict=True):
            table[i, j] = table[j, i] = value
        whole[levels] = table.reshape(-1)
    once = asked.sensitivity(UNIT, None)
    twice = Sensitivity.joint([once, once])
    assert farthest(whole) == (twice.l1.value, twice.l2.squared) == (2 * WEIGHT_STEPS, 2 * WEIGHT_STEPS**2)
    rule = asked.mechanism(once, UNIT, sf.Budget(epsilon=1))
    assert rule.loss(once).l1 / rule.scale == 1
    assert rule.loss(twice).l1 / rule.scale == 2


def test_an_edge_that_is_replaced_moves_two_pairs() -> None:
    asked = query()
    assert asked.sensitivity(edge(relation="add/remove"), None).l1.value == WEIGHT_STEPS
    moved = asked.sensitivity(edge(relation="replace"), None)
    assert (moved.l1.value, moved.l2.squared) == (2 * WEIGHT_STEPS, 2 * WEIGHT_STEPS**2)


@pytest.mark.parametrize("directed", [False, True])
def test_each_weight_stands_at_its_pair(directed: bool) -> None:
    for levels, answer in networks(query(directed=directed)).items():
        assert tuple(answer) == levels
        if directed:
            break
    shape = Shape(nodes=6, directed=directed)
    ends = list(pairs(shape))
    whole = Adjacency.of_pairs(6, [i for i, _ in ends], [j for _, j in ends], directed=directed)
    assert places(whole).tolist() == list(range(len(ends)))


def test_through_the_vault_the_matrix_is_symmetric_and_absent_edges_have_noise() -> None:
    vault = sf.Vault(unit=UNIT, budget=sf.Budget(epsilon=100), name="proteins")
    graph = vault.graph(
        [("A", "B", 2.5), ("B", "C", 9.0)], name="proteins", version="1", nodes=["A", "B", "C"], weight="affinity"
    )
    release = graph.weights().release(epsilon=10)
    assert len(release.values) == 3
    assert release.charged.epsilon == 10
    assert verify(parsed(release.certificate.text)).consistent
    table = mirrored(release)
    assert (table == table.T).all()
    assert table[0, 1] == float(release["weight"].values[0])
    assert not table.diagonal().any()
    drawn = [graph.weights().release(epsilon=1, fresh=True).values[1] for _ in range(3)]
    assert any(drawn)  # the pair without an edge: no noise on it three times has probability below 1e-18
    low, high = release["weight"].interval(Fraction(999_999, 1_000_000))[1]
    assert low < high
    exact = graph.weights().release(epsilon=50)
    assert abs(float(exact["weight"].values[0]) - 2.5) < 3
    assert abs(float(exact["weight"].values[2]) - 5) < 3


def test_too_many_pairs_are_refused_with_their_number() -> None:
    with pytest.raises(InvalidInput, match=r"4,039 nodes have 8,154,741 pairs"):
        query(4039)
    with pytest.raises(InvalidInput, match=r"1,001,000 pairs"):
        query(1001, directed=True)
    assert query(1414).size == 998_991


def test_what_cannot_be_asked() -> None:
    with pytest.raises(Refused, match="protected"):
        query().sensitivity(node(max_degree=2, relation="replace"), None)
    with pytest.raises(Refused, match="go up to 7"):
        query().sensitivity(weight(bound=7, relation="replace"), None)
    with pytest.raises(InvalidInput, match="no pair"):
        query(1)
    plain = sf.Vault(unit=edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
    graph = plain.graph([(0, 1)], name="wards", version="1", nodes=3)
    with pytest.raises(NotDeclared, match="no weights"):
        graph.weights()
    forged = PairWeights(dataset=graph.dataset, shape=graph.shape, bound=Fraction(1))
    with pytest.raises(Refused, match="not those declared"):
        plain.release(forged, sf.Budget(epsilon=1))
