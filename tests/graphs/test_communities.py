"""The number of communities: the score's sensitivity over all small graphs, a local search that breaks it, choices."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import log

import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import edge, node
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.block_models import STEPS, all_partitions, canonical, edge_move, icl_penalty, likelihood_steps
from sfumato.graphs.queries.communities import CommunityCount
from sfumato.graphs.shape import Shape
from sfumato.mechanisms import Exponential
from sfumato.reports.verify import parsed, verify

pytestmark = pytest.mark.kills

ADDED, REPLACED = edge(relation="add/remove"), edge(relation="replace")
ETAS = [Fraction(1, 10), Fraction(1, 100)]
PAIRS = list(combinations(range(5), 2))


def log_likelihood(graph: int, partition: tuple[int, ...], eta: float, n: int = 5) -> float:
    """By the definition: each pair of blocks at its observed share, held to [η, 1 − η]."""
    seen: dict[tuple[int, int], list[int]] = {}
    for k, (i, j) in enumerate(combinations(range(n), 2)):
        kind = (min(partition[i], partition[j]), max(partition[i], partition[j]))
        seen.setdefault(kind, []).append(graph >> k & 1)
    total = 0.0
    for found in seen.values():
        share = min(max(sum(found) / len(found), eta), 1 - eta)
        total += sum(found) * log(share) + (len(found) - sum(found)) * log(1 - share)
    return total


def largest_move(scores: list[float], pairs: int) -> float:
    return max(abs(scores[graph] - scores[graph ^ 1 << k]) for graph in range(1 << pairs) for k in range(pairs))


@cache
def best(n: int, blocks: int, eta: float) -> tuple[float, ...]:
    parts = [partition for partition in all_partitions(n, blocks) if max(partition) == blocks - 1]
    return tuple(
        max(log_likelihood(graph, partition, eta, n) for partition in parts) for graph in range(1 << n * (n - 1) // 2)
    )


@pytest.mark.claim("S0-17")
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize(("n", "blocks"), [(3, 1), (4, 1), (5, 1), (4, 2), (5, 2), (4, 3)])
def test_the_exact_maximum_moves_no_further_than_stated(n: int, blocks: int, eta: Fraction) -> None:
    scores, limit = list(best(n, blocks, float(eta))), log((1 - eta) / eta)
    moved = largest_move(scores, n * (n - 1) // 2)
    assert moved <= limit + 1e-9
    if blocks == 1 and eta >= Fraction(1, n * (n - 1) // 2):
        assert moved == pytest.approx(limit)  # tight


@pytest.mark.claim("S0-17")
@pytest.mark.parametrize(("eta", "reached"), [(Fraction(1, 10), 4.78), (Fraction(1, 100), 5.64)])
def test_a_local_search_moves_further(eta: Fraction, reached: float) -> None:
    """The broken twin: one node at a time from a fixed start, until nothing improves."""

    def climbed(graph: int) -> float:
        here = (0, 1, 0, 1, 0)
        value = log_likelihood(graph, here, float(eta))
        while True:
            near = [tuple(1 - b if i == v else b for i, b in enumerate(here)) for v in range(5)]
            value_, there = max(
                (log_likelihood(graph, other, float(eta)), other) for other in near if len({*other}) == 2
            )
            if value_ <= value + 1e-12:
                return value
            value, here = value_, there

    moved = largest_move([climbed(graph) for graph in range(1 << 10)], 10)
    assert moved == pytest.approx(reached, abs=5e-3)
    assert moved > edge_move(eta) / STEPS


@pytest.mark.claim("S0-17")
@pytest.mark.parametrize("eta", ETAS)
def test_scores_in_steps_are_the_scores_rounded_down_and_keep_the_bound(eta: Fraction) -> None:
    asked = query(4, 3, eta)
    pairs = list(combinations(range(4), 2))
    scores = []
    for graph in range(1 << 6):
        held = [pair for k, pair in enumerate(pairs) if graph >> k & 1]
        scores.append(asked.exact(Adjacency.of_pairs(4, [i for i, _ in held], [j for _, j in held])))
    for place, blocks in enumerate((1, 2, 3)):
        column = [row[place] for row in scores]
        paid = Fraction(icl_penalty(blocks, nodes=4, pairs=6), STEPS)
        for score, exact in zip(column, best(4, blocks, float(eta)), strict=True):
            assert -1e-9 <= exact - float(score + paid) < 1 / STEPS + 1e-9
        limit = asked.sensitivity(ADDED, None).linf.value
        moves = [abs(column[g] - column[g ^ 1 << k]) for g in range(64) for k in range(6)]
        assert max(moves) <= limit
    assert asked.sensitivity(REPLACED, None).linf.value == 2 * asked.sensitivity(ADDED, None).linf.value


def query(n: int, most: int, eta: Fraction = Fraction(1, 10), **more: object) -> CommunityCount:
    return CommunityCount(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=n), eta=eta, most=most, **more)


@pytest.mark.claim("S0-17")
def test_without_a_penalty_more_blocks_never_fit_worse_and_with_it_two_cliques_are_two() -> None:
    for graph in range(0, 1 << 10, 7):
        one, two = (best(5, blocks, 0.1)[graph] for blocks in (1, 2))
        assert two >= one - 1e-12
    left = [(i, j) for i, j in combinations(range(10), 2) if (i < 5) == (j < 5)]
    graph = Adjacency.of_pairs(10, [i for i, _ in left], [j for _, j in left])
    given = ((0,) * 10, canonical([i // 5 for i in range(10)]), canonical([i // 3 for i in range(10)]))
    scores = query(10, 4, Fraction(1, 20), partitions=given).exact(graph)
    assert max(range(3), key=lambda place: scores[place]) == 1
    empty = Adjacency.of_pairs(10, [], [])
    scores = query(10, 4, Fraction(1, 20), partitions=given).exact(empty)
    assert max(range(3), key=lambda place: scores[place]) == 0


def test_the_mechanism_is_calibrated_for_scores_that_move_both_ways() -> None:
    asked = query(5, 3)
    moved = asked.sensitivity(ADDED, None)
    rule = asked.mechanism(moved, ADDED, sf.Budget(epsilon=1))
    assert isinstance(rule, Exponential)
    assert rule.spread == 2 * moved.linf.value
    assert rule.loss(moved).epsilon == 1
    assert moved.linf.value >= log(9)
    assert moved.linf.value - Fraction(1, STEPS) < log(9)


def test_partitions_must_be_handed_in_where_there_are_many() -> None:
    with pytest.raises(NotDeclared, match="Hand in public ones"):
        query(10, 3)
    with pytest.raises(InvalidInput, match="as they first appear"):
        query(3, 3, partitions=((1, 0, 0),))
    with pytest.raises(InvalidInput, match="more than 1 blocks"):
        query(3, 1, partitions=((0, 1, 0),))
    with pytest.raises(InvalidInput, match="below 1/2"):
        query(3, 1, Fraction(1, 2))
    with pytest.raises(Refused, match="without bound"):
        query(3, 1).sensitivity(node(max_degree=2, relation="replace"), None)
    assert query(3, 3, partitions=((0, 1, 2), (0, 0, 0))).numbers == (1, 3)


def test_all_partitions_are_all() -> None:
    assert [sum(1 for _ in all_partitions(n, n)) for n in range(1, 7)] == [1, 2, 5, 15, 52, 203]
    assert likelihood_steps(Adjacency.of_pairs(1, [], []), (0,), Fraction(1, 10)) == 0


def test_through_the_vault() -> None:
    vault = sf.Vault(unit=ADDED, budget=sf.Budget(epsilon=1000), name="contacts")
    left = [(i, j) for i, j in combinations(range(10), 2) if (i < 5) == (j < 5)]
    graph = vault.graph(left, name="wards", version="1", nodes=10)
    groups = {i: "left" if i < 5 else "right" for i in range(10)}
    question = graph.communities(partitions=[[0] * 10, groups], eta="1/20")
    release = question.release(epsilon=100)
    assert release["communities"].values == (2,)
    assert verify(parsed(release.certificate.text)).consistent
    assert question.query.misfit(release.statement.mechanism, ADDED, (2,)) is not None
