"""Edges of blocks: one cell for each edge, joint answers never worse than separate ones, numbers that agree."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import edge, node
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.queries.blocks import BlockEdges, cells_of, questions_of, strategy_for
from sfumato.graphs.shape import Shape
from sfumato.mechanisms import MatrixNoise
from sfumato.mechanisms.matrix.rational import all_least_squares, least_squares
from sfumato.reports.verify import parsed, verify

pytestmark = pytest.mark.kills

ADDED, REPLACED = edge(relation="add/remove"), edge(relation="replace")
WARDS = ["icu", "er", "lab"]
PARTS = [
    None,
    {"acute": ["icu", "er"], "all": WARDS},
    {f"part {i}": ["icu", "er"] for i in range(6)},
    {"all": WARDS, "again": WARDS, "once more": WARDS},
]


def query(subgraphs: dict | None = None, *, directed: bool = False, gaussian: bool = False) -> BlockEdges:
    asked, rows = questions_of(WARDS, subgraphs, directed=directed)
    strategy, bits = strategy_for(rows, gaussian=gaussian)
    return BlockEdges(
        dataset=Dataset(name="wards", edition="1"),
        shape=Shape(nodes=5, directed=directed),
        member=(0, 0, 1, 1, 2),
        questions=rows,
        asked=asked,
        strategy=strategy,
        bits=bits,
    )


def answer_variances(rule: MatrixNoise) -> list[Fraction]:
    """The variance of each answer, in edges."""
    factors = all_least_squares(rule.strategy, rule.questions)
    return [sum((r * r for r in row), Fraction(0)) * rule.law.variance for row in factors]


@pytest.mark.claim("S0-20")
@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
@pytest.mark.parametrize("subgraphs", PARTS)
def test_joint_answers_have_no_larger_error_than_separate_ones(subgraphs: dict | None, delta: Fraction) -> None:
    """Separate: every question with noise of its own, for the sensitivity of all of them together, at the same ε."""
    asked = query(subgraphs, gaussian=bool(delta))
    moved = asked.sensitivity(ADDED, None)
    joint = asked.mechanism(moved, ADDED, sf.Budget(epsilon=1, delta=delta))
    assert isinstance(joint, MatrixNoise)
    apart = MatrixNoise.calibrated(
        strategy=asked.questions, bits=0, questions=asked.questions, moved=moved, epsilon=1, delta=delta
    )
    separate = len(asked.questions) * apart.law.variance
    together = sum(answer_variances(joint))
    assert together <= separate
    assert together < separate * Fraction(2, 3)  # every list of parts here asks for one edge more than once


def graphs(directed: bool) -> list[Adjacency]:
    ends = [(i, j) for i in range(4) for j in range(4) if i < j or (directed and i != j)]
    found = []
    for graph in range(1 << min(len(ends), 8)):
        held = [pair for k, pair in enumerate(ends) if graph >> k & 1]
        found.append(Adjacency.of_pairs(5, [i for i, _ in held], [j for _, j in held], directed=directed))
    return found


@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_moves_one_cell_by_one(directed: bool) -> None:
    asked, every = query(directed=directed), graphs(directed)
    exact = np.array([asked.exact(graph) for graph in every])
    bits = len(every).bit_length() - 1
    for k in range(bits):
        move = abs(exact - exact[np.arange(len(every)) ^ 1 << k])
        assert (move.sum(axis=1) == 1).all()
    moved = asked.sensitivity(ADDED, None)
    assert (moved.l1.value, moved.linf.value) == (1, 1)
    assert asked.sensitivity(REPLACED, None).l1.value == 2
    assert (exact.sum(axis=1) == [graph.edges for graph in every]).all()


def test_cells_count_what_they_name() -> None:
    asked = query({"acute": ["icu", "er"]})
    graph = Adjacency.of_pairs(5, [0, 0, 2, 0, 1], [1, 2, 3, 4, 4])
    exact = dict(zip(cells_of(3, directed=False), asked.exact(graph), strict=True))
    assert exact == {(0, 0): 1, (0, 1): 1, (0, 2): 2, (1, 1): 1, (1, 2): 0, (2, 2): 0}
    acute = asked.questions[asked.asked.index("acute")]
    assert sum(c * x for c, x in zip(acute, asked.exact(graph), strict=True)) == 3
    pointed = query(directed=True)
    arrows = Adjacency.of_pairs(5, [4, 0], [0, 4], directed=True)
    assert [pair for pair, many in zip(cells_of(3, directed=True), pointed.exact(arrows), strict=True) if many] == [
        (0, 2),
        (2, 0),
    ]


def test_one_elimination_gives_what_each_gives() -> None:
    strategy = ((2, 0, 1), (0, 3, 1), (1, 1, 1), (0, 0, 5))
    questions = ((1, 0, 0), (1, 1, 1), (0, 2, -1))
    assert all_least_squares(strategy, questions) == [least_squares(strategy, row) for row in questions]
    singular = ((1, 1, 0), (2, 2, 0))
    assert all_least_squares(singular, [(1, 1, 0)]) == [(Fraction(1, 5), Fraction(2, 5))]
    with pytest.raises(Refused, match="rank 1"):
        all_least_squares(singular, [(1, 1, 0), (1, 0, 0)])


def test_through_the_vault_sums_and_parts_agree() -> None:
    vault = sf.Vault(unit=ADDED, budget=sf.Budget(epsilon=1000, delta=Fraction(1, 10**6)), name="contacts")
    pairs = list(combinations("abcde", 2))
    graph = vault.graph(pairs, name="wards", version="1", nodes=list("abcde"))
    blocks = {"a": "icu", "b": "icu", "c": "er", "d": "er", "e": "lab"}
    question = graph.block_edges(blocks, {"acute": ["icu", "er"], "all": ["icu", "er", "lab"]})
    release = question.release(epsilon=1)
    assert verify(parsed(release.certificate.text)).consistent
    found = dict(zip(release["edges"].labels["part"], release["edges"].values, strict=True))
    assert found["acute"] == found["icu – icu"] + found["icu – er"] + found["er – er"]
    exact = question.release(epsilon=500)
    shown = dict(zip(exact["edges"].labels["part"], exact["edges"].values, strict=True))
    assert {name: round(float(value)) for name, value in shown.items()} == {
        "icu – icu": 1,
        "icu – er": 4,
        "icu – lab": 2,
        "er – er": 1,
        "er – lab": 2,
        "lab – lab": 0,
        "acute": 6,
        "all": 10,
    }
    preview = question.preview(epsilon=1)
    assert preview.margin <= preview.joint_margin
    mixed = graph.block_edges(blocks, gaussian=True).release(epsilon=1, delta=Fraction(1, 10**7))
    assert verify(parsed(mixed.certificate.text)).consistent


def test_a_mechanism_with_another_strategy_is_found() -> None:
    asked = query()
    rule = asked.mechanism(asked.sensitivity(ADDED, None), ADDED, sf.Budget(epsilon=1))
    assert asked.misfit(rule, ADDED, (0,) * asked.size) is None
    other = query({"all": WARDS})
    assert "strategy" in str(other.misfit(rule, ADDED, (0,) * asked.size))


def test_what_cannot_be_asked() -> None:
    with pytest.raises(Refused, match="protected"):
        query().sensitivity(node(max_degree=2, relation="replace"), None)
    with pytest.raises(InvalidInput, match="must name blocks"):
        questions_of(WARDS, {"x": ["street"]}, directed=False)
    vault = sf.Vault(unit=ADDED, budget=sf.Budget(epsilon=1), name="contacts")
    graph = vault.graph([(0, 1)], name="wards", version="1", nodes=40)
    with pytest.raises(InvalidInput, match="one entry for each"):
        graph.block_edges(["icu"])
    with pytest.raises(InvalidInput, match="820 pairs, more than 120"):
        graph.block_edges([f"ward {i}" for i in range(40)])
