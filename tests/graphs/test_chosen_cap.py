"""A cap that is chosen privately: over all small graphs one node moves the scores and the numbers as stated."""

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from benchmarks import node_level
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.node_level.by_chosen_cap import ChosenEdges, ChosenHistogram, counts_from
from sfumato.graphs.node_level.caps import caps_up_to, in_the_way
from sfumato.graphs.projection import mixed, projected
from sfumato.graphs.shape import Shape
from sfumato.mechanisms import ChosenCap
from sfumato.noise.words import SystemWords
from sfumato.reports.verify import verify
from tests.graphs.enumeration import Numbers, Worlds, rewired
from tests.parts import dataset
from tests.reports.forgeries import signed_anew

ADD, SWAP = sf.node(max_degree=20, relation="add/remove"), sf.node(max_degree=20, relation="replace")
CAPS = (1, 2, 3, 4, 5)
DATA = Dataset(name="tiny", edition="1")


@cache
def worlds(n: int, directed: bool = False) -> Worlds:
    return Worlds(n=n, directed=directed)


def of_degrees(degrees: Numbers, found: Callable[[Any], Sequence[int]]) -> Numbers:
    """Something that depends on the degrees alone, for every row of them."""
    kinds, which = np.unique(np.sort(degrees, axis=1), axis=0, return_inverse=True)
    return np.array([found(row) for row in kinds])[which.reshape(-1)]


def changes(n: int, numbers: Numbers, directed: bool = False) -> Numbers:
    """What a node that comes does to each row of numbers: with its edges less without them."""
    every = [rewired(worlds(n, directed), node) for node in range(n)]
    return np.concatenate(
        [(numbers[with_it] - numbers[with_it[:, :1]]).reshape(-1, numbers.shape[1]) for with_it in every]
    )


@pytest.mark.claim("S0-08")
@pytest.mark.parametrize(("n", "directed"), [(4, False), (5, False), (6, False), (4, True)])
def test_a_node_raises_every_score_by_0_or_1(n: int, directed: bool) -> None:
    held = worlds(n, directed)
    ends = 2 if directed else 1
    found = of_degrees(held.degrees(held.bits), lambda row: in_the_way(row, CAPS, ends=ends))
    assert set(np.unique(changes(n, found, directed))) == {0, 1}


def test_the_nodes_in_the_way_are_those_of_the_definition() -> None:
    held = worlds(5)
    for degrees in np.unique(np.sort(held.degrees(held.bits), axis=1), axis=0):
        for cap, found in zip(CAPS, in_the_way(degrees, CAPS), strict=True):
            ranked = sorted(degrees.tolist(), reverse=True)
            excess = [sum(max(d - cap - t, 0) for d in ranked[t:]) for t in range(len(ranked) + 1)]
            assert found == next(t for t, sum_ in enumerate(excess) if 4 * sum_ <= cap)


def test_twin_nodes_that_are_merely_above_the_cap_move_further() -> None:
    held = worlds(6)
    above = of_degrees(held.degrees(held.bits), lambda row: [int((row > cap).sum()) for cap in CAPS])
    assert changes(6, above).max() > 1


def test_twin_one_end_for_each_neighbour_is_not_enough_in_directed_graphs() -> None:
    held = worlds(4, True)
    found = of_degrees(held.degrees(held.bits), lambda row: in_the_way(row, CAPS, ends=1))
    assert changes(4, found, True).max() > 1


@pytest.mark.long
def test_a_node_that_is_replaced_moves_scores_apart_by_2() -> None:
    """Why the spread is 2 under replace: one cap's score rises and another's falls."""
    held = worlds(6)
    found = of_degrees(held.degrees(held.bits), lambda row: in_the_way(row, CAPS))
    spread = 0
    for node in range(6):
        some = found[rewired(held, node)]
        apart = some[:, :, None, :] - some[:, None, :, :]
        spread = max(spread, int((apart.max(axis=3) - apart.min(axis=3)).max()))
    assert spread <= 2
    assert np.abs(apart).max() == 1


@pytest.mark.few(4)
@pytest.mark.claim("S0-08")
@pytest.mark.parametrize("cap", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [5, 6])
def test_no_node_moves_the_numbers_at_a_cap_further_than_stated(n: int, cap: int) -> None:
    held = worlds(n)
    degrees = held.degrees(held.projected(held.bits, cap))
    assert degrees.max() <= cap
    at_least = np.stack([(degrees >= degree).sum(axis=1) for degree in range(1, cap + 1)], axis=1)
    edges = degrees.sum(axis=1, keepdims=True) // 2
    shape = Shape(nodes=None)
    asked = {ChosenHistogram: at_least, ChosenEdges: edges}
    for kind, numbers in asked.items():
        query = kind(dataset=DATA, shape=shape, most=20, least=1)
        come = np.abs(changes(n, numbers)).sum(axis=1).max()
        assert come == query.moves(ADD, cap)  # attained: a node that joins a clique
        for node in range(n):
            some = numbers[rewired(held, node)]
            swapped = max(np.abs(some - some[:, [place]]).sum(axis=2).max() for place in range(some.shape[1]))
            assert swapped <= query.moves(SWAP, cap)


def test_twin_without_the_projection_a_node_moves_the_numbers_further() -> None:
    held = worlds(6)
    degrees = np.minimum(held.degrees(held.bits), 2)
    at_least = np.stack([(degrees >= degree).sum(axis=1) for degree in (1, 2)], axis=1)
    assert np.abs(changes(6, at_least)).sum(axis=1).max() > 4


def test_counts_by_degree_or_more_are_what_the_query_reads() -> None:
    query = ChosenHistogram(dataset=DATA, shape=Shape(nodes=None, listed=True), most=20, least=4)
    held = worlds(5)
    for world in range(0, 1024, 31):
        graph = held.adjacency(world)
        degrees = graph.degrees
        assert query.exact_at(graph, 4) == [int((degrees >= degree).sum()) for degree in range(5)]
        assert len(query.exact_at(graph, 20)) == 21
    assert query.moves(ADD, 4) == 9


def chances(mechanism: ChosenCap, nodes: Sequence[int]) -> list[float]:
    """The law of the choice by its definition: every order of the caps, and a coin at each."""
    scores = mechanism.scores(nodes)
    coins = [exp(float(mechanism.choice) / mechanism.spread * (score - max(scores))) for score in scores]
    found, orders = [0.0] * len(scores), list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0 / len(orders)
        for place in order:
            found[place] += left * coins[place]
            left *= 1 - coins[place]
    return found


def mechanism_for(spread: int = 1, choice: Fraction = Fraction(1)) -> ChosenCap:
    return ChosenCap(
        caps=CAPS[:4], choice=choice, epsilon=Fraction(1), spread=spread, doubling=1, moves=(1, 2, 3, 4), numbers=1
    )


@pytest.mark.claim("S0-08")
def test_the_choice_tells_neighbours_apart_by_no_more_than_its_epsilon() -> None:
    held, mechanism = worlds(5), mechanism_for()
    found = of_degrees(held.degrees(held.bits), lambda row: in_the_way(row, mechanism.caps))
    law = np.log(of_degrees(held.degrees(held.bits), lambda row: chances(mechanism, in_the_way(row, mechanism.caps))))  # type: ignore[arg-type,return-value]
    assert found.shape == law.shape
    largest = np.abs(changes(5, law)).max()
    assert 0.5 < largest <= 1 + 1e-9


def test_twin_a_spread_of_1_for_scores_that_move_both_ways_is_broken() -> None:
    one, two = chances(mechanism_for(), [0, 1, 1, 0]), chances(mechanism_for(), [1, 0, 0, 1])
    assert max(abs(log(p / q)) for p, q in zip(one, two, strict=True)) > 1
    one, two = chances(mechanism_for(2), [0, 1, 1, 0]), chances(mechanism_for(2), [1, 0, 0, 1])
    assert max(abs(log(p / q)) for p, q in zip(one, two, strict=True)) <= 1


@pytest.mark.alpha(1e-8)
def test_caps_are_drawn_with_their_chances() -> None:
    """2,000 draws, each share within 6.5 standard errors; α below 1e-8 for the four of them. The twin: 15 off."""
    mechanism, nodes, draws = mechanism_for(), [3, 1, 1, 0], 2000
    words = SystemWords()
    drawn = [mechanism.add_noise((nodes, lambda cap: [0]), words)[0] for _ in range(draws)]
    law = chances(mechanism, nodes)

    def off(chance: float, cap: int) -> float:
        return abs(drawn.count(cap) / draws - chance) / (chance * (1 - chance) / draws) ** 0.5

    assert max(off(chance, cap) for chance, cap in zip(law, mechanism.caps, strict=True)) < 6.5
    twin = chances(mechanism_for(2), nodes)
    assert max(off(chance, cap) for chance, cap in zip(twin, mechanism.caps, strict=True)) > 6.5


def questions(unit: Any) -> list[Any]:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10000), name="contacts")
    rows = [(0, node) for node in range(1, 15)] + [(1, 2), (2, 3), (3, 1)]
    graph = vault.graph(rows, name="wards", version="1")
    return [
        graph.edges(choose_cap=True, least_cap=4),
        graph.degree_histogram(choose_cap=True, least_cap=4),
        graph.triangles(choose_cap=True, least_cap=4),
        graph.triangles(),
    ]


@pytest.mark.claim("S0-08", "S0-10")
@pytest.mark.parametrize("unit", [ADD, SWAP], ids=str)
def test_releases_cost_what_was_asked_and_verify_and_forged_ones_do_not(unit: Any, tmp_path: Path) -> None:
    for question in questions(unit):
        release = question.release(epsilon=1)
        assert release.statement.spend.epsilon == 1
        assert "wards" in release.explain("en", "public")
        assert release.explain("zh", "board")
        assert "<table" in release._repr_html_()
        release.certificate.save(tmp_path / "release.json")
        document = json.loads((tmp_path / "release.json").read_text())
        assert verify(document).consistent
        assert sf.load(tmp_path / "release.json").values == release.values
        for change in forgeries(document["statement"]):
            forged = json.loads(json.dumps(document))
            change(forged["statement"])
            signed_anew(forged)
            assert not verify(forged).consistent


def forgeries(said: dict[str, Any]) -> list[Callable[[dict[str, Any]], None]]:
    """Ways to make the promise look stronger, or the answer be about something else."""
    found: list[Callable[[dict[str, Any]], None]] = [lambda said: said["query"].update(most=said["query"]["most"] - 1)]
    if said["mechanism"]["kind"] == "mechanism.chosen_cap":
        found += [
            lambda said: said["query"].update(doubling=1),
            lambda said: said["values"].__setitem__(0, 5),
            lambda said: said["mechanism"].update(spread=3 - said["mechanism"]["spread"]),
            lambda said: said["mechanism"].update(moves=[1, *said["mechanism"]["moves"][1:]]),
        ]
    return found


def test_a_large_epsilon_gives_the_numbers_of_the_chosen_cap() -> None:
    """One node is in the way of 4 and none in that of 16, which is two steps up: 4 is chosen."""
    edges, counts, triangles, _ = (question.release(epsilon=2000) for question in questions(ADD))
    assert edges.values == (4, 7)
    assert edges.statement.query.columns(edges)["edges"].interval() == [(7, 7)]
    nodes = counts.statement.query.columns(counts)["nodes"].values
    assert counts.values[0] == 4
    assert sum(degree * many for degree, many in enumerate(nodes, start=1)) == 14
    assert len(nodes) == 20
    assert triangles.values == (4, 4)


def test_what_cannot_be_chosen_is_refused() -> None:
    vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
    graph = vault.graph([(0, 1)], name="wards", version="1", nodes=3)
    for ask in (graph.edges, graph.degree_histogram, graph.triangles):
        with pytest.raises(Refused, match="only a node unit"):
            ask(choose_cap=True)
    query = ChosenEdges(dataset=DATA, shape=Shape(nodes=None), most=10, least=2)
    with pytest.raises(Refused, match="the unit's cap is 20"):
        query.sensitivity(ADD, None)
    with pytest.raises(InvalidInput, match="share"):
        ChosenEdges(dataset=DATA, shape=Shape(nodes=None), most=10, least=2, share=Fraction(1))
    with pytest.raises(InvalidInput):
        ChosenEdges(dataset=DATA, shape=Shape(nodes=None), most=10, least=11)
    with pytest.raises(Refused, match="at the largest cap"):
        mechanism_for().loss(Sensitivity.of(l1=3))
    with pytest.raises(InvalidInput, match="rise"):
        ChosenCap(caps=(2, 1), choice=Fraction(1), epsilon=Fraction(1), spread=1, doubling=1, moves=(1, 2), numbers=1)
    with pytest.raises(InvalidInput, match="every cap needs the move"):
        ChosenCap(caps=(1, 2), choice=Fraction(1), epsilon=Fraction(1), spread=1, doubling=1, moves=(2, 1), numbers=1)
    with pytest.raises(InvalidInput, match="its number of nodes"):
        mechanism_for().scores([1])


def test_caps() -> None:
    assert caps_up_to(7, 7) == (7,)
    assert caps_up_to(64, 8) == (8, 16, 32, 64)


def test_counts_lie_on_lines_between_the_level_stretches() -> None:
    exact = [Fraction(value) for value in (9, 7, 7, 7, 6, 2)]
    assert counts_from(exact) == [2, 0, 0, 1, 4, 2]  # what never rises stays as it is
    noisy = [Fraction(value) for value in (8, 4, 6, 1, -3)]
    fitted = counts_from(noisy)  # 8, 5, 5, 1, 0: a line from 8 at 0 to 5 at 1½, on to 1 at 3
    assert fitted == [2, Fraction(7, 3), Fraction(8, 3), 1, 0]
    assert sum(fitted) == 8
    assert min(counts_from([Fraction(value) for value in (-4, 3, -9)])) >= 0
    assert counts_from([Fraction(5)]) == [5]


@pytest.mark.claim("S0-08")
@pytest.mark.parametrize("name", ["ego-Facebook", "ca-GrQc"])
def test_edges_of_public_networks_are_off_by_less_than_twice_the_largest_degree(name: str) -> None:
    """ε = 1, the cap chosen privately and charged; from the exact laws of the choice and the noise."""
    graph = node_level.read(dataset(node_level.NETWORKS[name]))
    unit, keys = sf.node(max_degree=8192, relation="add/remove"), mixed(np.arange(graph.n, dtype=np.uint64))
    query = ChosenEdges(dataset=DATA, shape=Shape(nodes=None), most=8192)
    mechanism = query.mechanism(query.sensitivity(unit, None), unit, sf.Budget(epsilon=1))
    assert isinstance(mechanism, ChosenCap)
    law = node_level.chances(mechanism.scores(query.in_the_way(graph)), float(mechanism.choice))
    assert sum(law) == pytest.approx(1)
    lost = [graph.edges - projected(graph, keys, cap).edges for cap in query.caps]
    errors = [node_level.off(gone, float(mechanism.scale(cap))) for gone, cap in zip(lost, query.caps, strict=True)]
    mean = sum(chance * error for chance, error in zip(law, errors, strict=True))
    assert mean <= 2 * graph.degrees.max()
    without = node_level.chances(mechanism.scores([0] * len(query.caps)), float(mechanism.choice))
    assert sum(chance * error for chance, error in zip(without, errors, strict=True)) > 2 * mean  # blind to the graph


def test_chances_are_those_of_the_definition() -> None:
    mechanism = mechanism_for()
    for nodes in ([3, 1, 1, 0], [0, 0, 0, 0], [9, 9, 1, 0]):
        found = node_level.chances(mechanism.scores(nodes), float(mechanism.choice))
        assert found == pytest.approx(chances(mechanism, nodes))
