"""How far one unit moves the numbers that are compared, by brute force, and which ε that makes of a given noise."""

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.guarantees import GDP
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.reports.comparison import Case, EdgeCount, EventCount, _epsilon, compare

pytestmark = pytest.mark.kills

AR: Any = {"relation": "add/remove"}
EDGE, EVENT = sf.edge(**AR), sf.event(**AR)
PERSON = sf.user("id", **AR)
LIMIT = sf.Limit(groups=2, rows_per_group=3)


def projected(edges: list[tuple[int, int]], degree: int) -> int:
    """How many edges are kept, going through them in order and keeping those whose ends both have room."""
    used: dict[int, int] = {}
    kept = 0
    for ends in edges:
        if all(used.get(end, 0) < degree for end in ends):
            kept += 1
            for end in ends:
                used[end] = used.get(end, 0) + 1
    return kept


def truncated(edges: list[tuple[int, int]], degree: int) -> int:
    """The broken twin: every edge of a node that has too many is dropped."""
    count = {end: sum(end in other for other in edges) for ends in edges for end in ends}
    return sum(all(count[end] <= degree for end in ends) for ends in edges)


def worst(count: Any, nodes: int, degree: int) -> tuple[int, int]:
    """The furthest that one edge, and one node, moves a count over all graphs with so many nodes."""
    pairs = list(combinations(range(nodes), 2))
    by_edge = by_node = 0
    for chosen in range(2 ** len(pairs)):
        edges = [pair for place, pair in enumerate(pairs) if chosen >> place & 1]
        here = count(edges, degree)
        for gone in edges:
            by_edge = max(by_edge, abs(here - count([pair for pair in edges if pair != gone], degree)))
        for left in range(nodes):
            by_node = max(by_node, abs(here - count([pair for pair in edges if left not in pair], degree)))
    return by_edge, by_node


@pytest.mark.parametrize(("nodes", "degree"), [(4, 1), (4, 2), (5, 1), (5, 2), (5, 3)])
def test_no_node_moves_the_edges_of_a_projected_graph_by_more_than_its_degree(nodes: int, degree: int) -> None:
    by_edge, by_node = worst(projected, nodes, degree)
    assert by_edge == EdgeCount().sensitivity(EDGE, None).l1.value
    assert by_node == EdgeCount().sensitivity(sf.node(max_degree=degree, **AR), None).l1.value


def test_another_way_to_cut_degrees_would_be_noticed() -> None:
    assert worst(truncated, 5, 2)[1] > 2


@pytest.mark.parametrize("most", [1, 3])
def test_no_person_moves_the_events_by_more_than_count(most: int) -> None:
    counted = [min(events, most) for events in range(9)]
    statistic = EventCount(most=most)
    assert max(counted) == statistic.sensitivity(PERSON, None).l1.value
    assert 4 * max(counted) == statistic.sensitivity(sf.family(4, "id", **AR), None).l1.value
    assert max(abs(more - less) for less, more in pairwise(counted)) == 1
    assert statistic.sensitivity(EVENT, None).l1.value == 1


def test_units_that_a_statistic_does_not_have_are_refused() -> None:
    for statistic, unit in (
        (EdgeCount(), PERSON),
        (EdgeCount(), sf.edge(relation="replace")),
        (EventCount(most=2), EDGE),
        (EventCount(most=2), sf.event(relation="replace")),
        (EventCount(most=2), sf.user("id", relation="replace")),
    ):
        with pytest.raises(Refused, match="Nothing was compared"):
            compare(statistic, [Case(unit=unit)], epsilon=1)
    with pytest.raises(Refused):
        compare(EdgeCount(), [Case(unit=EDGE, limit=LIMIT)], epsilon=1)


@pytest.mark.parametrize(
    ("statistic", "unit", "moved"),
    [
        (EdgeCount(), EDGE, 1),
        (EdgeCount(), sf.node(max_degree=7, **AR), 7),
        (EventCount(most=5), EVENT, 1),
        (EventCount(most=5), PERSON, 5),
        (EventCount(most=5), sf.family(3, "id", **AR), 15),
    ],
)
def test_one_number_moves_alike_in_every_norm(statistic: Any, unit: Any, moved: int) -> None:
    assert statistic.sensitivity(unit, None) == Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)


def test_the_largest_degree_and_the_most_events_are_bounded() -> None:
    assert EdgeCount().sensitivity(sf.node(max_degree=2**31, **AR), None).l1.value == 2**31
    with pytest.raises(InvalidInput):
        EdgeCount().sensitivity(sf.node(max_degree=2**31 + 1, **AR), None)
    with pytest.raises(InvalidInput):
        EventCount(most=2**31 + 1)


def test_the_epsilon_of_laplace_noise_is_the_move_over_the_scale() -> None:
    moved = Sensitivity.of(l1=7, l2_squared=1)
    assert _epsilon(Laplace(l1=Fraction(1), scale=Fraction(3)), moved, Fraction(0)) == Fraction(7, 3)


def test_the_epsilon_of_gaussian_noise_is_the_least_that_its_curve_allows() -> None:
    noise, delta = Gaussian(l2_squared=Fraction(1), sigma=Fraction(10)), Fraction(1, 10**6)
    found = _epsilon(noise, Sensitivity.of(l1=900, l2_squared=9), delta)
    exact = GDP(mu=Fraction(3, 10))
    assert exact.delta_at(found) <= delta < exact.delta_at(found * Fraction(9999, 10_000))
    # From μ = 30 on a bound without numbers of thousands of digits: above the truth, and by little.
    near, far = (_epsilon(noise, Sensitivity.of(l1=1, l2_squared=size**2), delta) for size in (300, Fraction(3001, 10)))
    assert Fraction(1) < far / near < Fraction(11, 10)
    assert far > (Fraction(3001, 100)) ** 2 / 2


def test_noise_without_the_norm_that_it_needs_has_no_epsilon() -> None:
    for noise, moved in (
        (Laplace(l1=Fraction(1), scale=Fraction(1)), Sensitivity.of(l2_squared=1)),
        (Gaussian(l2_squared=Fraction(1), sigma=Fraction(1)), Sensitivity.of(l1=1)),
    ):
        with pytest.raises(Unsupported, match="nothing was compared"):
            _epsilon(noise, moved, Fraction(1, 10))
