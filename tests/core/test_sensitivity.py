"""Norms are types, and a joint sensitivity bounds what brute force finds over all small graphs."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.sensitivity import L0, L1, L2, LInf, Sensitivity
from sfumato.errors import InvalidInput, WrongNorm
from sfumato.mechanisms import Gaussian, Laplace

pytestmark = pytest.mark.kills

# ------------------------------------------------------------------------------- graphs, by their sets of edges

Graph = frozenset[tuple[int, int]]


def degrees(nodes: int, graph: Graph) -> tuple[int, ...]:
    counted = Counter(end for edge in graph for end in edge)
    return tuple(counted[node] for node in range(nodes))


def edge_count(nodes: int, graph: Graph) -> tuple[int, ...]:
    return (len(graph),)


def triangles(nodes: int, graph: Graph) -> tuple[int, ...]:
    return (sum({(a, b), (a, c), (b, c)} <= graph for a, b, c in combinations(range(nodes), 3)),)


def degree_histogram(nodes: int, graph: Graph) -> tuple[int, ...]:
    counted = Counter(degrees(nodes, graph))
    return tuple(counted[degree] for degree in range(nodes))


def two_stars(nodes: int, graph: Graph) -> tuple[int, ...]:
    return (sum(degree * (degree - 1) // 2 for degree in degrees(nodes, graph)),)


STATISTICS = (edge_count, triangles, degrees, degree_histogram, two_stars)


def norms(move: tuple[int, ...]) -> tuple[int, int, int, int]:
    sizes = [abs(each) for each in move]
    return sum(map(bool, sizes)), sum(sizes), sum(size**2 for size in sizes), max(sizes)


def brute_force(moves: list[tuple[int, ...]]) -> Sensitivity:
    l0, l1, l2_squared, linf = (max(column) for column in zip(*map(norms, moves), strict=True))
    return Sensitivity.of(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf)


def all_moves(nodes: int) -> dict[str, list[tuple[int, ...]]]:
    """How each statistic moves when any edge is added to any graph without it; removal moves as far."""
    pairs = list(combinations(range(nodes), 2))
    graphs = [frozenset(e for at, e in enumerate(pairs) if code >> at & 1) for code in range(1 << len(pairs))]
    moves = {}
    for statistic in STATISTICS:
        value = {graph: statistic(nodes, graph) for graph in graphs}
        moves[statistic.__name__] = [
            tuple(there - here for here, there in zip(value[graph], value[graph | {edge}], strict=True))
            for graph in graphs
            for edge in pairs
            if edge not in graph
        ]
    return moves


@pytest.mark.claim("S0-02")
def test_what_is_released_together_moves_at_most_as_far_as_the_parts_together():
    undercut = set()
    for nodes in (2, 3, 4, 5):
        moves = all_moves(nodes)
        alone = {name: brute_force(parts) for name, parts in moves.items()}
        for one, other in combinations(moves, 2):
            joint = brute_force([a + b for a, b in zip(moves[one], moves[other], strict=True)])
            bound = Sensitivity.joint([alone[one], alone[other]])
            assert joint.l0 <= bound.l0
            assert joint.l1 <= bound.l1
            assert joint.l2 <= bound.l2
            assert joint.linf == bound.linf
            undercut |= {
                (one, other, nodes) for norm in ("l0", "l1", "l2") if getattr(joint, norm) < getattr(bound, norm)
            }
            assert bound.l1.value == alone[one].l1.value + alone[other].l1.value
    assert ("triangles", "degree_histogram", 4) in undercut  # the exact joint value can be smaller


vectors = st.lists(st.integers(-5, 5), min_size=1, max_size=4).map(tuple)


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(vectors, min_size=1, max_size=4))
def test_the_joint_norms_are_those_of_the_concatenation_when_all_parts_move_at_once(parts):
    assert Sensitivity.joint(brute_force([part]) for part in parts) == brute_force([sum(parts, ())])


def test_a_norm_that_one_part_does_not_know_is_unknown_for_all():
    joint = Sensitivity.joint([Sensitivity.of(l1=1, l2_squared=1, l0=1), Sensitivity.of(l1=2, linf=2)])
    assert joint == Sensitivity.of(l1=3)
    only = {"l0": Sensitivity.of(l0=2), "l2": Sensitivity.of(l2_squared=2), "linf": Sensitivity.of(linf="1/2")}
    assert Sensitivity.joint([only["l0"]] * 2) == Sensitivity.of(l0=4)
    assert Sensitivity.joint([only["l2"]] * 2) == Sensitivity.of(l2_squared=4)
    assert Sensitivity.joint([only["linf"], Sensitivity.of(linf=3)]) == Sensitivity.of(linf=3)
    with pytest.raises(InvalidInput, match="at least one norm"):
        Sensitivity.joint([only["l0"], only["l2"]])
    with pytest.raises(InvalidInput, match="at least one norm"):
        Sensitivity.joint([])


@pytest.mark.claim("S2-09")
@pytest.mark.parametrize(
    "bound", [L2(Fraction(1)), L0(1), LInf(Fraction(1)), Sensitivity.of(l2_squared=1), Sensitivity.of(l1=1)]
)
def test_laplace_takes_an_l1_bound_and_nothing_else(bound):
    with pytest.raises(WrongNorm, match=f"needs an l1 bound and was given {type(bound).__name__}"):
        Laplace.calibrated(l1=bound, epsilon=1)


@pytest.mark.claim("S2-09")
def test_a_sensitivity_without_l1_has_no_laplace_loss():
    with pytest.raises(TypeError, match="needs an l1 bound; this sensitivity has none"):
        Laplace.calibrated(l1=1, epsilon=1).loss(Sensitivity.of(l2_squared=1, l0=1, linf=1))
    assert issubclass(WrongNorm, TypeError)


@pytest.mark.claim("S2-09")
@pytest.mark.parametrize(
    "bound", [L1(Fraction(1)), L0(1), LInf(Fraction(1)), Sensitivity.of(l1=1), Sensitivity.of(l2_squared=1)]
)
def test_gaussian_takes_an_l2_bound_and_nothing_else(bound):
    with pytest.raises(TypeError, match=f"needs an l2 bound and was given {type(bound).__name__}"):
        Gaussian.calibrated(l2=bound, epsilon=1, delta=1e-5)
    with pytest.raises(TypeError, match="needs an l2 bound; this sensitivity has none"):
        Gaussian(l2_squared=Fraction(1), sigma=Fraction(1)).loss(Sensitivity.of(l0=1, l1=1, linf=1))


@pytest.mark.claim("S2-09")
def test_an_l1_bound_becomes_an_l2_bound_only_when_asked():
    assert L1(Fraction(3)).as_l2() == L2(Fraction(9))
    assert Sensitivity(l1=L1(Fraction(3))).l2 is None
    assert Sensitivity(l2=L1(Fraction(3)).as_l2()).l2 == L2(Fraction(9))
    with pytest.raises(WrongNorm, match=r"l2 was given as L1; nothing was done\. Give L2\."):
        Sensitivity(l2=L1(Fraction(3)))
    with pytest.raises(TypeError):
        assert L1(Fraction(1)) < L2(Fraction(2))


@pytest.mark.parametrize(("name", "cls"), [("l0", L0), ("l1", L1), ("l2", L2), ("linf", LInf)])
def test_every_norm_is_held_to_its_own_type(name, cls):
    for other in (L0(1), L1(Fraction(1)), L2(Fraction(1)), LInf(Fraction(1)), 1):
        if type(other) is not cls:
            with pytest.raises(WrongNorm, match=f"{name} was given as {type(other).__name__}.*Give {cls.__name__}"):
                Sensitivity(**{name: other})
    assert Sensitivity(**{name: cls(1)}) != Sensitivity.of(l0=7)


@pytest.mark.parametrize(
    ("given_as", "says"),
    [
        ({"l1": -1}, "l1 = -1 must not be below 0"),
        ({"l2_squared": -1}, "l2 squared = -1 must not be below 0"),
        ({"linf": float("inf")}, "linf = inf is not a finite number"),
        ({"l1": float("nan")}, "l1 = nan is not a finite number"),
        ({"l1": True}, "l1 is bool"),
        ({"l1": "far"}, "l1 = 'far' is not a number"),
        ({"l0": -1}, "l0 = -1 must be a whole number of at least 0"),
        ({"l0": 1.0}, "l0 = 1.0 must be a whole number"),
        ({}, "at least one norm"),
    ],
)
def test_a_bound_that_is_none_is_refused(given_as, says):
    with pytest.raises(InvalidInput, match=says):
        Sensitivity.of(**given_as)


def test_plain_numbers_are_read_exactly():
    assert Sensitivity.of(l1=0.1, l0=0) == Sensitivity(l0=L0(0), l1=L1(Fraction(1, 10)))
