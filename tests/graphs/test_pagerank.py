"""PageRank: proven bounds against all small graphs, whole-number ranks against linear algebra, and what is refused."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import edge, node
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.pagerank import half_moves, leftover, ranks, rounding_error, steps_for, textbook_bound
from sfumato.graphs.queries.pagerank import PageRank, pagerank_of_degrees
from sfumato.graphs.shape import Shape
from sfumato.reports.verify import parsed, verify

pytestmark = pytest.mark.kills

ALPHA = Fraction(17, 20)
ADDED, REPLACED = edge(relation="add/remove"), edge(relation="replace")
SIZES = [(4, True), (5, False)]


def pairs_of(n: int, directed: bool) -> list[tuple[int, int]]:
    return list(permutations(range(n), 2)) if directed else list(combinations(range(n), 2))


def all_ranks(n: int, directed: bool, v: np.ndarray, *, loops: int = 0, alpha: float = 0.85) -> np.ndarray:
    """PageRank of every graph on n nodes by linear algebra; dangling nodes restart."""
    pairs = pairs_of(n, directed)
    graphs = np.arange(1 << len(pairs))
    table = np.zeros((len(graphs), n, n))
    for k, (i, j) in enumerate(pairs):
        table[:, i, j] = graphs >> k & 1
        if not directed:
            table[:, j, i] = table[:, i, j]
    table += loops * np.eye(n)
    ways = table.sum(axis=2, keepdims=True)
    walk = np.where(ways > 0, table / np.maximum(ways, 1), v)
    return np.linalg.solve(
        np.eye(n) - alpha * walk.transpose(0, 2, 1), np.tile((1 - alpha) * v, (len(graphs), 1))[..., None]
    )[..., 0]


def out_degrees(n: int, directed: bool) -> np.ndarray:
    pairs = pairs_of(n, directed)
    graphs = np.arange(1 << len(pairs))
    found = np.zeros((len(graphs), n), dtype=np.int64)
    for k, (i, j) in enumerate(pairs):
        found[:, i] += graphs >> k & 1
        if not directed:
            found[:, j] += graphs >> k & 1
    return found


def moves(found: np.ndarray, keep: np.ndarray) -> tuple[float, float]:
    """The largest move of an entry, and half of the largest l1 move, over all kept neighbours."""
    entry = half = 0.0
    for k in range(len(found).bit_length() - 1):
        graphs = np.arange(len(found))
        both = keep & keep[graphs ^ 1 << k]
        if both.any():
            move = abs(found - found[graphs ^ 1 << k])[both]
            entry, half = max(entry, move.max()), max(half, move.sum(axis=1).max() / 2)
    return float(entry), float(half)


def vectors(n: int) -> Iterator[tuple[bool, np.ndarray]]:
    yield True, np.full(n, 1 / n)
    yield False, np.eye(n)[0]
    yield False, (np.eye(n)[0] + np.eye(n)[1]) / 2


@pytest.mark.claim("S0-19")
@pytest.mark.parametrize(("n", "directed"), SIZES)
@pytest.mark.parametrize(("loops", "minimum"), [(0, 0), (0, 1), (0, 2), (1, 1), (3, 3)])
def test_no_small_graph_moves_further_than_any_bound(n: int, directed: bool, loops: int, minimum: int) -> None:
    for uniform, v in vectors(n):
        found = all_ranks(n, directed, v, loops=loops)
        keep = (out_degrees(n, directed) + loops >= minimum).all(axis=1)
        bounds = half_moves(ALPHA, nodes=n, directed=directed, uniform=uniform, loops=loops > 0, minimum=minimum)
        entry, half = moves(found, keep)
        for bound in bounds.values():
            assert entry <= float(bound) + 1e-9
            assert half <= float(bound) + 1e-9


@pytest.mark.claim("S0-19")
def test_figures_of_the_bounds_and_which_are_reached() -> None:
    facts = {"nodes": 100, "directed": False, "uniform": True}
    found = half_moves(ALPHA, **facts, loops=True, minimum=1)
    assert float(found["coupling"]) == pytest.approx(0.739, abs=5e-4)
    assert float(2 * found["coupling"]) == pytest.approx(1.478, abs=5e-4)
    assert float(2 * found["uniform"]) == pytest.approx(22.67 / 100, abs=5e-5)
    bare = half_moves(ALPHA, nodes=100, directed=True, uniform=False, loops=False, minimum=1)
    assert float(bare["no loops"]) == pytest.approx(0.665, abs=5e-4)
    start = np.eye(4)[0]
    everything = np.ones(4096, dtype=bool)
    assert moves(all_ranks(4, True, start), everything) == pytest.approx((0.85, 0.85))
    assert moves(all_ranks(4, True, start, loops=1), everything)[1] == pytest.approx(float(found["coupling"]))
    no_loops = (out_degrees(4, True) >= 1).all(axis=1)
    assert moves(all_ranks(4, True, start), no_loops)[1] == pytest.approx(float(bare["no loops"]))


@pytest.mark.claim("S0-19")
def test_a_bound_for_nodes_with_a_way_out_fails_where_one_may_have_none() -> None:
    """The broken twin: deleting an edge can leave a node without a way out, whatever degrees were seen before."""
    careless = half_moves(ALPHA, nodes=4, directed=True, uniform=False, loops=True, minimum=1)["coupling"]
    found = all_ranks(4, True, np.eye(4)[0])
    seen = (out_degrees(4, True) >= 1).all(axis=1)
    everything = np.ones(4096, dtype=bool)
    assert moves(found, seen)[1] <= float(careless)
    assert moves(found, everything)[1] > float(careless)
    observed = half_moves(ALPHA, nodes=4, directed=True, uniform=False, loops=True, minimum=3)["coupling"]
    assert moves(found, everything)[1] > float(observed)


@pytest.mark.claim("S0-19")
def test_the_textbook_scale_is_refused_with_a_message() -> None:
    with pytest.raises(Refused, match=r"5\.66 at α = 17/20.*says nothing"):
        textbook_bound(0.85)
    with pytest.raises(Refused, match="says nothing"):
        textbook_bound("1/2")
    assert textbook_bound("1/3") == Fraction(1, 2)
    vault = sf.Vault(unit=ADDED, budget=sf.Budget(epsilon=4), name="web")
    graph = vault.graph([(0, 1)], name="web", version="1", nodes=3)
    with pytest.raises(Refused, match="the least of the proven bounds"):
        graph.pagerank(textbook=True)
    assert graph.pagerank("1/4", textbook=True).query.half_moves()["any"] <= textbook_bound("1/4")


def query(n: int, directed: bool, **more: object) -> PageRank:
    return PageRank(
        dataset=Dataset(name="web", edition="1"), shape=Shape(nodes=n, directed=directed), damping=ALPHA, **more
    )


def released(asked: PageRank) -> np.ndarray:
    """What the query computes for every small graph, in its units."""
    n, directed = asked.size, asked.shape.directed
    pairs = pairs_of(n, directed)
    rows = []
    for graph in range(1 << len(pairs)):
        held = [pair for k, pair in enumerate(pairs) if graph >> k & 1]
        rows.append(asked.exact(Adjacency.of_pairs(n, [i for i, _ in held], [j for _, j in held], directed=directed)))
    return np.array(rows, dtype=np.int64)


CASES = [
    (3, True, {}),
    (4, False, {}),
    (3, True, {"loops": 1, "restart": (0,)}),
    (4, False, {"loops": 2}),
    (3, True, {"edge_flow": Fraction(1, 100)}),
    (4, False, {"edge_flow": Fraction(1, 50), "restart": (1,)}),
    (4, False, {"edge_flow": Fraction(1, 10), "loops": 1}),
]


@pytest.mark.few(3)
@pytest.mark.claim("S0-19")
@pytest.mark.parametrize(("n", "directed", "more"), CASES)
def test_whole_number_ranks_move_no_further_than_is_stated(n: int, directed: bool, more: dict) -> None:
    asked = query(n, directed, **more)
    found, moved = released(asked), asked.sensitivity(ADDED, None)
    for k in range(len(found).bit_length() - 1):
        move = abs(found - found[np.arange(len(found)) ^ 1 << k]).astype(object)
        assert move.sum(axis=1).max() <= moved.l1.value
        assert move.max() <= moved.linf.value
        assert (move**2).sum(axis=1).max() <= moved.l2.squared
    twice = asked.sensitivity(REPLACED, None)
    assert moved.l1.value <= twice.l1.value <= 2 * moved.l1.value


def test_an_edge_moves_more_than_it_carries() -> None:
    """The broken twin: what one edge no longer carries is missing further on too, so twice the flow is not enough."""
    flow = Fraction(1, 1000)
    asked = query(3, True, edge_flow=flow, restart=(0,))
    found = released(asked)
    far = max(abs(found - found[np.arange(64) ^ 1 << k]).sum(axis=1).max() for k in range(6))
    stated = asked.sensitivity(ADDED, None).l1.value
    assert float(stated / 2**48) == pytest.approx(2 * flow / (1 - ALPHA), rel=1e-6)
    assert 2 * flow * 2**48 < far <= stated
    both = query(3, False, edge_flow=flow).sensitivity(ADDED, None).l1.value
    assert float(both / stated) == pytest.approx(2, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("n", "directed"), [(3, True), (4, False)])
@pytest.mark.parametrize("loops", [0, 2])
def test_ranks_are_those_of_linear_algebra(n: int, directed: bool, loops: int) -> None:
    for restart, v in [((), np.full(n, 1 / n)), ((0, 1), (np.eye(n)[0] + np.eye(n)[1]) / 2)]:
        found = released(query(n, directed, loops=loops, restart=restart)) / 2**48
        assert np.allclose(found, all_ranks(n, directed, v, loops=loops), atol=1e-12)
    error = rounding_error(n, loops, ALPHA) / 2**62 + leftover(ALPHA)
    assert error < 1e-14


def test_a_cap_that_nothing_reaches_changes_nothing() -> None:
    ring = Adjacency.of_pairs(6, range(6), [1, 2, 3, 4, 5, 0])
    plain, wide = ranks(ring, ALPHA), ranks(ring, ALPHA, edge_flow=2**61)
    assert plain.tolist() == wide.tolist()
    narrow = ranks(ring, ALPHA, edge_flow=2**50)
    assert (narrow < plain).all()
    assert narrow[0] == int((1 - ALPHA) * 2**62 / 6) + 2 * 2**50


def test_roundings_and_steps_that_are_not_taken_are_in_the_sensitivity() -> None:
    asked = query(1000, False, loops=1)
    bound = 2 * min(asked.half_moves().values()) * 2**48
    extra = asked.sensitivity(ADDED, None).l1.value - bound
    assert extra >= 1000 + 2 * rounding_error(1000, 1, ALPHA) / 2**14 + 2 * leftover(ALPHA) * 2**48
    assert extra < bound / 10**6
    assert steps_for(Fraction(999, 1000)) == 2500
    assert leftover(Fraction(999, 1000)) > Fraction(1, 20)  # too much: such a damping is refused
    assert leftover(Fraction(99, 100)) < Fraction(1, 2**20)


def test_the_least_bound_shrinks_with_n_where_edges_have_no_direction() -> None:
    for n, directed, more, expected in [
        (1000, False, {"loops": 10}, 22.67 / 10**4),
        (1000, True, {"loops": 10}, 2 * 0.85 / 11 / (0.15 + 0.85 / 11)),
        (1000, False, {}, 1.7),
        (1000, False, {"loops": 10, "restart": (3,)}, 2 * 0.85 / 11 / (0.15 + 0.85 / 11)),
    ]:
        moved = query(n, directed, **more).sensitivity(ADDED, None)
        assert float(moved.l1.value / 2**48) == pytest.approx(expected, rel=1e-3)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(Refused, match="protected"):
        query(4, False).sensitivity(node(max_degree=3, relation="replace"), None)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        half_moves(1, nodes=3, directed=True, uniform=True, loops=False, minimum=0)
    with pytest.raises(InvalidInput, match="share of all rank"):
        query(4, False, edge_flow=Fraction(2))
    with pytest.raises(InvalidInput, match="in their order"):
        query(4, False, restart=(2, 1))


def test_through_the_vault() -> None:
    vault = sf.Vault(unit=ADDED, budget=sf.Budget(epsilon=10**6), name="web")
    graph = vault.graph([("a", "b"), ("b", "c")], name="web", version="1", nodes=["a", "b", "c"])
    release = graph.pagerank(restart=["b"], loops=1).release(epsilon=10**5)
    assert [round(float(rank), 2) for rank in release["rank"].values] == pytest.approx(
        all_ranks(3, False, np.eye(3)[1], loops=1)[0b101].round(2).tolist()
    )
    assert verify(parsed(release.certificate.text)).consistent
    with pytest.raises(InvalidInput, match="not the name"):
        graph.pagerank(restart=["z"])


def test_degrees_that_were_released_make_a_pagerank_for_nothing() -> None:
    vault = sf.Vault(unit=ADDED, budget=sf.Budget(epsilon=2000), name="web")
    star = vault.graph([("hub", name) for name in "abcd"], name="web", version="1", nodes=["hub", *"abcd"])
    release = star.degrees().release(epsilon=1000)
    before = vault.spent
    found = pagerank_of_degrees(release)
    assert vault.spent == before
    assert sum(found.values()) == 1
    assert found["hub"] == Fraction(3, 100) + ALPHA / 2  # the degrees are exact but for a part below e^-400
    with pytest.raises(InvalidInput, match="only degrees"):
        pagerank_of_degrees(star.edges().release(epsilon=1))
