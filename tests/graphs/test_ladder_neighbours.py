"""The ladder between all neighbours on few nodes: whole output laws, and broken ladders that are caught."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.core.ladder_widths import Rungs, WidthSteps
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.kernels import ranked, triangles
from sfumato.graphs.local_sensitivity import Front, star_rungs, triangle_rungs
from tests.graphs.small import adjacency, classes, counts, pairs_of, renamed

pytest.importorskip("numba")

Made = tuple[int, Rungs]
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]


@cache
def total(rungs: Rungs, rate: Fraction) -> Enclosure:
    """The sum of all weights, rung by rung; from where the widths stay, by the geometric series."""
    weight = Enclosure(Fraction(1), Fraction(1))
    if not rungs.runs:
        return weight
    last = rungs.runs[-1].last
    for t in range(1, last + 2):
        weight = (weight + 2 * rungs.width(t - 1) * enclosures.exp(-rate * t)).outward()
    ratio = enclosures.exp(-rate)
    return weight + 2 * rungs.widest * enclosures.exp(-rate * (last + 2)) / (1 - ratio)


def worst(one: Made, two: Made, rate: Fraction) -> Fraction:
    """The largest ratio of the probabilities that two laws give to any number, rounded down.

    From where both ladders have reached their widest rung the ratios repeat themselves.
    """
    (centre, rungs), (other, others) = one, two
    if not rungs.runs and not others.runs:
        return Fraction(1 if centre == other else 10**9)
    far = max(r.reach(r.runs[-1].last + 2) + 2 * r.widest for r in (rungs, others)) + abs(centre - other)
    z = np.arange(centre - far, centre + far + 1)
    steps = rung_of(others, abs(z - other)) - rung_of(rungs, abs(z - centre))
    balance = total(others, rate) / total(rungs, rate)
    return (enclosures.exp(rate * int(steps.max())) * balance).low


def rung_of(rungs: Rungs, distances: Any) -> Any:
    """The rung of each distance, from the outer ends of all rungs."""
    ends = [0]
    while ends[-1] < distances.max():
        ends.append(rungs.reach(len(ends)))
    return np.searchsorted(ends, distances)


def broken(one: Made, two: Made, epsilon: Fraction, rate: Fraction | None = None) -> bool:
    """Whether some number is more than e^ε times likelier under one law than under the other, either way."""
    limit = enclosures.exp(epsilon).high
    given = epsilon / 2 if rate is None else rate
    return worst(one, two, given) > limit or worst(two, one, given) > limit


@cache
def made(graph: int, n: int, leaves: int | None) -> Made:
    known = ranked(adjacency(graph, n))
    rungs = triangle_rungs(known)[1] if leaves is None else star_rungs(known, leaves)[1]
    return int(counts(n, leaves)[graph]), rungs


@cache
def neighbours(n: int, leaves: int | None) -> list[tuple[Made, Made]]:
    """Every pair of laws that belongs to a pair of neighbours, once; nodes renamed change neither."""
    found: dict[object, tuple[Made, Made]] = {}
    for graph in classes(n):
        here = made(graph, n, leaves)
        for k in range(comb(n, 2)):
            there = made(renamed(n)[graph ^ (1 << k)], n, leaves)
            found[here[0], here[1].runs, there[0], there[1].runs] = (here, there)
    return list(found.values())


@pytest.mark.few(3)
@pytest.mark.claim("S0-10")
@pytest.mark.claim("S0-14")
@pytest.mark.parametrize(
    ("n", "leaves"),
    [
        *((n, leaves) for n in (3, 4, 5) for leaves in (None, 2, 3) if leaves is None or leaves < n),
        *(pytest.param(6, leaves, marks=pytest.mark.long) for leaves in (None, 2, 3)),
    ],
)
def test_no_number_tells_neighbours_apart_by_more_than_epsilon(n: int, leaves: int | None) -> None:
    pairs = neighbours(n, leaves)
    assert len(pairs) > 1
    for epsilon in EPSILONS:
        assert not any(broken(one, two, epsilon) for one, two in pairs)


def two_hubs(leaves: int, *more: tuple[int, int]) -> Adjacency:
    ends = [(hub, 2 + hub * leaves + leaf) for hub in (0, 1) for leaf in range(leaves)]
    return Adjacency.of_pairs(2 + 2 * leaves, *np.array([*ends, *more]).T)


def by_wedges(graph: Adjacency) -> Made:
    """The broken ladder of pairs that share a neighbour; where no pair does, of the empty graph."""
    known = ranked(graph)
    n = graph.n
    matrix = np.zeros((n, n), dtype=np.int64)
    head, tail = graph.pairs()
    matrix[head, tail] = matrix[tail, head] = 1
    shared, degrees = matrix @ matrix, matrix.sum(axis=0)
    pairs = [
        (int(shared[i, j]), int(degrees[i] + degrees[j] - 2 * matrix[i, j]))
        for i, j in combinations(range(n), 2)
        if shared[i, j]
    ]
    return triangles(known), Front.of(pairs or [(0, 0)]).rungs(n)


def test_a_ladder_of_wedges_alone_is_caught() -> None:
    """The first common neighbour of two hubs brings their pair into the front at once, and the rungs jump."""
    here, there = two_hubs(20), two_hubs(20, (0, 22))
    epsilon = Fraction(1, 10)
    assert broken(by_wedges(here), by_wedges(there), epsilon)
    sound = [(triangles(graph), triangle_rungs(ranked(graph))[1]) for graph in (here, there)]
    assert not broken(sound[0], sound[1], epsilon)


def caught(change: Callable[[Made], Made], epsilon: Fraction, rate: Fraction | None = None) -> bool:
    return any(broken(change(one), change(two), epsilon, rate) for one, two in neighbours(5, None))


def shifted(law: Made) -> Made:
    """Rung t as wide as LS(t) and not LS(t − 1): every growth comes one rung early."""
    count, rungs = law
    early = [WidthSteps(0, 1, 1, rungs.width(1)), *(_after(run) for run in rungs.runs)]
    return count, Rungs.of(early)


def _after(run: WidthSteps) -> WidthSteps:
    """A run one place earlier, without what falls on place 0 or before."""
    gone = min(run.count, max(0, -(-(2 - run.first) // run.step)))
    return WidthSteps(run.first + run.step * gone - 1, run.step, run.count - gone, run.amount)


def narrowed(law: Made) -> Made:
    """Rung t as wide as LS(t − 2): every growth comes one rung late."""
    count, rungs = law
    return count, Rungs.of(WidthSteps(run.first + 1, run.step, run.count, run.amount) for run in rungs.runs)


def test_rungs_that_come_early_keep_the_guarantee_and_are_only_wider() -> None:
    """Widths of LS(t) on rung t are a ladder too: sound, with more noise than is needed."""
    assert not any(caught(shifted, epsilon) for epsilon in EPSILONS)
    assert all(shifted(law)[1].width(t) == law[1].width(t + 1) for law, _ in neighbours(5, None) for t in range(20))


def test_rungs_that_come_late_are_caught() -> None:
    assert any(caught(narrowed, epsilon) for epsilon in EPSILONS)


def test_twice_the_rate_is_caught() -> None:
    """exp(−ε·t) instead of exp(−ε·t/2)."""
    for epsilon in EPSILONS:
        assert caught(lambda law: law, epsilon, rate=epsilon)


def test_there_are_as_many_kinds_of_graphs_as_there_should_be() -> None:
    assert [len(classes(n)) for n in (3, 4, 5, 6)] == [4, 11, 34, 156]
    assert [len(renamed(n)) for n in (3, 4, 5, 6)] == [2 ** len(pairs_of(n)) for n in (3, 4, 5, 6)]
