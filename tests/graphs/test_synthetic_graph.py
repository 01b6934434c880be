"""The synthetic graph: exact chances of every output for all neighbours on 3 and 4 nodes, draws, and broken twins.

The chances are computed here from the definition (Laplace noise on the count and on every pair), and the shipped
sampler is compared with them, by the exact law of a count.
"""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core import enclosures
from sfumato.core.query import Dataset
from sfumato.core.units import Unit, edge, node, weight
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.pairs import pairs, places
from sfumato.graphs.shape import Shape
from sfumato.graphs.synthetic import COUNT_STEP, PAIR_STEP, SyntheticGraph, ends_of, from_degrees, graph_of
from sfumato.mechanisms.noisy_cells import NoisyCells
from sfumato.noise import SystemWords, exceedances
from sfumato.noise.exceedances import chance_of_reaching, sample_exceedances
from sfumato.reports.verify import parsed, verify
from tests.alpha import likely
from tests.reports.forgeries import signed_anew

DATA = Dataset(name="tiny", edition="1")
ADD, SWAP = edge(relation="add/remove"), edge(relation="replace")
REACH, GAP = 3 * COUNT_STEP, 61  # which noisy counts are looked at; the bound is the same at every one of them

Both = tuple[tuple[float, float], tuple[float, float]]
Chances = Callable[[NoisyCells, int, int], Both]
"""What a mechanism does at a threshold to a pair without an edge, and to one with an edge: it is hidden, or shown."""


def mechanism(n: int, unit: Unit, epsilon: Fraction) -> NoisyCells:
    asked = SyntheticGraph(dataset=DATA, shape=Shape(nodes=n))
    made = asked.mechanism(asked.sensitivity(unit, None), unit, sf.Budget(epsilon=epsilon))
    assert isinstance(made, NoisyCells)
    return made


def reached(scale: Fraction, threshold: int) -> float:
    return float(chance_of_reaching(scale, threshold).low)


def by_definition(noise: NoisyCells, threshold: int, edges: int) -> Both:
    """Noise below t is as likely as noise that reaches 1 − t: so small chances keep their digits on both sides."""
    ends = threshold, threshold - noise.cell_step
    zero, one = ((reached(noise.scale, 1 - end), reached(noise.scale, end)) for end in ends)
    return zero, one


def noisy_threshold(noise: NoisyCells, noisy: int, edges: int) -> int:
    return noise.threshold(noisy)


def neighbours(n: int, unit: Unit) -> Iterator[tuple[int, int]]:
    """Pairs of graphs as bits: one edge more; under replace, also one edge in another place."""
    cells = n * (n - 1) // 2
    for world in range(1 << cells):
        for cell in range(cells):
            if not world >> cell & 1:
                yield world, world | 1 << cell
                if unit == SWAP:
                    for other in range(cells):
                        if world >> other & 1:
                            yield world, world ^ (1 << cell) ^ (1 << other)


def largest_loss(
    n: int,
    unit: Unit,
    noise: NoisyCells,
    *,
    chances: Chances = by_definition,
    threshold: Callable[[NoisyCells, int, int], int] = noisy_threshold,
) -> float:
    """The largest |log P(output) − log P'(output)| over all neighbours and outputs: count, then every set of pairs."""
    cells = n * (n - 1) // 2
    counts = range(-REACH, COUNT_STEP * cells + REACH + 1, GAP)

    @cache
    def logs(noisy: int, edges: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """By what a pair is (0 or 1): log of the chances that it is hidden, and shown."""
        at = chances(noise, threshold(noise, noisy, edges), edges)
        return tuple((_log(hidden), _log(shown)) for hidden, shown in at)  # type: ignore[return-value]

    worst = 0.0
    for one, other in neighbours(n, unit):
        for noisy in counts:
            before, after = logs(noisy, one.bit_count()), logs(noisy, other.bit_count())
            count = (
                abs(noisy - COUNT_STEP * other.bit_count()) - abs(noisy - COUNT_STEP * one.bit_count())
            ) / noise.scale
            # Pairs are independent, so the worst output takes for each pair whichever of shown and hidden is worse.
            ups = downs = 0.0
            for cell in range(cells):
                apart = [_apart(before[one >> cell & 1][shown], after[other >> cell & 1][shown]) for shown in (0, 1)]
                ups, downs = ups + max(apart), downs + min(apart)
            worst = max(worst, float(count) + ups, -float(count) - downs)
    return worst


def _log(p: float) -> float:
    return log(p) if p > 0 else float("-inf")


def _apart(one: float, other: float) -> float:
    return 0.0 if one == other else one - other


# --------------------------------------------------------------------------------------------------- what is guaranteed


@pytest.mark.few(4)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("unit", [ADD, SWAP], ids=str)
@pytest.mark.parametrize("n", [3, 4])
def test_no_output_tells_neighbours_apart_by_more_than_epsilon(n: int, unit: Unit, epsilon: Fraction) -> None:
    worst = largest_loss(n, unit, mechanism(n, unit, epsilon))
    assert worst <= float(epsilon) * (1 + 1e-9)
    assert worst >= 0.75 * float(epsilon)  # and the noise is not far more than it has to be


def test_the_worst_of_each_pair_is_the_worst_of_all_outputs() -> None:
    """The shortcut above, against every output of three nodes written out."""
    noise, cells = mechanism(3, ADD, Fraction(1)), 3
    worst = 0.0
    for one, other in neighbours(3, ADD):
        for noisy in range(-REACH, COUNT_STEP * cells + REACH + 1, GAP):
            at = by_definition(noise, noise.threshold(noisy), 0)
            for output in range(1 << cells):

                def chance(world: int, output: int = output, noisy: int = noisy, at: Both = at) -> float:
                    told = exp(-abs(noisy - COUNT_STEP * world.bit_count()) / noise.scale)
                    for cell in range(cells):
                        told *= at[world >> cell & 1][output >> cell & 1]
                    return told

                worst = max(worst, abs(log(chance(one) / chance(other))))
    assert worst == pytest.approx(largest_loss(3, ADD, noise), abs=1e-9)


@pytest.mark.parametrize("unit", [ADD, SWAP, weight(bound=1, relation="replace")], ids=str)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_count_and_the_pairs_move_as_far_as_stated(n: int, unit: Unit) -> None:
    cells = n * (n - 1) // 2
    reached = max(
        COUNT_STEP * abs(one.bit_count() - other.bit_count()) + PAIR_STEP * (one ^ other).bit_count()
        for one, other in neighbours(n, unit)
    )
    stated = SyntheticGraph(dataset=DATA, shape=Shape(nodes=n)).sensitivity(unit, None).l1
    assert stated is not None
    assert (cells, stated.value) == (cells, reached)


# -------------------------------------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize(
    ("threshold", "scale"), [(3, Fraction(2)), (-3, Fraction(2)), (0, Fraction(1, 3)), (40, Fraction(9))]
)
@pytest.mark.alpha(2e-9)
def test_places_that_reach_a_threshold_are_as_many_as_the_law_says(threshold: int, scale: Fraction) -> None:
    """200,000 places: how many reach it has a binomial law, and so has their number in the first half; 1e-9 for each.

    A scale 5% off moves the number by more than 9 standard deviations, but for the threshold 0.
    """
    many = 200_000
    chance = reached(scale, threshold)
    found = sample_exceedances(scale, threshold, many, SystemWords())
    assert likely(len(found), many, chance, alpha=1e-9)
    assert likely(int((found < many // 2).sum()), many // 2, chance, alpha=1e-9)  # evenly in both halves
    assert (np.diff(found) > 0).all()
    assert found[0] >= 0
    assert found[-1] < many


@pytest.mark.alpha(2e-9)
def test_far_places_are_found_without_a_list_of_all() -> None:
    """Their number has a binomial law: 1e-9. That all of 470 or more lie in the first half is never seen."""
    scale, places_ = Fraction(1), 2**46
    threshold = 25  # about e^-25 of 2^46 places: 700
    found = sample_exceedances(scale, threshold, places_, SystemWords())
    assert likely(len(found), places_, reached(scale, threshold), alpha=1e-9)
    assert found.max() > places_ // 2


@pytest.mark.long
@pytest.mark.alpha(1e-8)
def test_pairs_are_shown_as_often_as_the_definition_says() -> None:
    """Draws of a path on four nodes, given the threshold that each had: ±6.5 standard deviations of a sum of coins."""
    noise, graph, draws = mechanism(4, ADD, Fraction(2)), [0, 3, 5], 800
    seen, expected, variance = np.zeros(6), np.zeros(6), np.zeros(6)
    words, chances = SystemWords(), cache(lambda threshold: by_definition(noise, threshold, 3))
    for _ in range(draws):
        noisy, threshold, *shown = noise.add_noise((3, graph), words)
        assert threshold == noise.threshold(noisy)
        seen[shown] += 1
        (_, zero), (_, one) = chances(threshold)
        p = np.array([one if cell in graph else zero for cell in range(6)])
        expected += p
        variance += p * (1 - p)
    assert (np.abs(seen - expected) <= 6.5 * np.sqrt(variance)).all()
    swapped = expected[[1, 0, 2, 3, 4, 5]]  # broken twin: an edge in the place of one that is none
    assert (np.abs(seen - swapped) > 6.5 * np.sqrt(variance)).any()


def test_about_as_many_pairs_are_shown_as_there_are_edges() -> None:
    noise = NoisyCells.calibrated(cells=8_154_741, l1=COUNT_STEP + PAIR_STEP, epsilon=1)
    for edges in (1000, 88_234, 1_000_000):
        zero, one = noise.chances(noise.threshold(COUNT_STEP * edges))
        assert 0.998 * edges <= edges * one + (noise.cells - edges) * zero <= edges
    low, high = noise.threshold(COUNT_STEP * 10**9), noise.threshold(-(10**6))
    assert low < noise.threshold(COUNT_STEP * 1000) < high
    everything = NoisyCells.calibrated(cells=6, l1=COUNT_STEP + PAIR_STEP, epsilon=1)
    assert everything.chances(everything.threshold(10**6))[0] > 1 - 1e-12


# --------------------------------------------------------------------------------------------------------- broken twins


def test_twin_threshold_from_the_exact_count_is_caught() -> None:
    noise = mechanism(4, ADD, Fraction(1))
    loss = largest_loss(4, ADD, noise, threshold=lambda noise, _, edges: noise.threshold(COUNT_STEP * edges))
    assert loss > 1 + 1e-6


def test_twin_that_gives_noise_to_edges_alone_is_caught() -> None:
    noise = mechanism(3, ADD, Fraction(1))
    loss = largest_loss(
        3, ADD, noise, chances=lambda noise, at, edges: ((1.0, 0.0), by_definition(noise, at, edges)[1])
    )
    assert loss == float("inf")


def test_twin_that_does_not_charge_the_count_is_caught() -> None:
    noise = NoisyCells.calibrated(cells=6, l1=PAIR_STEP, epsilon=1)
    assert largest_loss(4, ADD, noise) > 1 + 1e-6


def test_twin_that_takes_a_replaced_edge_for_one_pair_is_caught() -> None:
    assert largest_loss(4, SWAP, mechanism(4, ADD, Fraction(1))) > 1 + 1e-6


@pytest.mark.alpha(1e-12)
def test_the_number_of_pairs_shown_is_not_that_of_the_edges() -> None:
    """Filling up to the exact count would tell it; that the same number comes 200 times has probability below 1e-12."""
    noise = mechanism(3, ADD, Fraction(1))
    assert len({len(noise.add_noise((2, [0, 2]), SystemWords())) for _ in range(200)}) > 1


@pytest.mark.parametrize(
    ("part", "value", "field"),
    [
        ("cell_step", 2048, "statement.mechanism.cell_step"),
        ("count_step", 1, "statement.mechanism.cell_step"),
        ("cells", 436, "statement.mechanism.cells"),
    ],
)
def test_a_certificate_of_other_cells_does_not_verify(part: str, value: int, field: str) -> None:
    vault = sf.Vault(unit=ADD, budget=sf.Budget(epsilon=30), name="contacts")
    release = vault.graph([(0, 1)], name="wards", version="1", nodes=30).synthetic().release(epsilon=2)
    document: Any = json.loads(release.certificate.text)
    assert document["statement"]["mechanism"][part] != value
    document["statement"]["mechanism"][part] = value
    signed_anew(document)
    assert field in {finding.field for finding in verify(document).findings}


@pytest.mark.parametrize("values", [[5, 3], [5, 3, 4, 4], [5, 3, 7, 2], [5, 3, 435], [5]])
def test_a_certificate_with_impossible_pairs_does_not_verify(values: list[int]) -> None:
    vault = sf.Vault(unit=ADD, budget=sf.Budget(epsilon=30), name="contacts")
    release = vault.graph([(0, 1)], name="wards", version="1", nodes=30).synthetic().release(epsilon=2)
    document: Any = json.loads(release.certificate.text)
    document["statement"]["values"] = values
    signed_anew(document)
    wrong = "statement.values" in {finding.field for finding in verify(document).findings}
    assert wrong == (values != [5, 3])  # no pair at all is possible


@pytest.mark.parametrize(
    ("threshold", "scale"), [(3, Fraction(2)), (-3, Fraction(2)), (9000, Fraction(500)), (0, Fraction(7))]
)
def test_the_surplus_of_the_skips_is_taken_away_exactly(threshold: int, scale: Fraction) -> None:
    rate = exceedances._rate(scale, threshold)
    proposed = 1 - enclosures.exp(-rate, bits=256)
    chance = chance_of_reaching(scale, threshold, bits=256)
    assert chance.high <= proposed.low <= chance.high * (1 + Fraction(1, 2**36))
    low, high = exceedances._kept(scale, threshold, rate, 128)
    assert low[0] <= chance.high / proposed.low * 2**128
    assert high[0] >= chance.low / proposed.high * 2**128 - 1
    assert high[0] - low[0] <= 1


# ------------------------------------------------------------------------------------------------------ pairs and vault


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n", [2, 3, 7, 20])
def test_places_lead_back_to_their_pairs(n: int, directed: bool) -> None:
    shape = Shape(nodes=n, directed=directed)
    every = list(pairs(shape))
    head, tail = ends_of(shape, range(len(every)))
    assert list(zip(head.tolist(), tail.tolist(), strict=True)) == every


def test_places_of_very_large_graphs_are_exact() -> None:
    n = 10**7
    shape = Shape(nodes=n)
    cells = [0, n - 2, n - 1, n * (n - 1) // 2 - 1, n * (n - 1) // 2 - 2, 3 * 10**13 + 17]
    head, tail = ends_of(shape, cells)
    assert (head < tail).all()
    assert tail.max() < n
    assert (head * (2 * n - head - 1) // 2 + tail - head - 1).tolist() == cells


def test_a_synthetic_graph_is_released_verified_and_read() -> None:
    vault = sf.Vault(unit=ADD, budget=sf.Budget(epsilon=30), name="contacts")
    ring = [(k, (k + 1) % 30) for k in range(30)]
    wards = vault.graph(ring, name="wards", version="1", nodes=30)
    release = wards.synthetic().release(epsilon=20)
    made = graph_of(release)
    assert verify(parsed(release.certificate.text)).consistent
    true = Adjacency.of_pairs(30, [i for i, _ in ring], [j for _, j in ring])
    kept = np.intersect1d(places(true), places(made)).size
    assert kept >= 20  # at ε = 20 each edge stays with a chance of 99%
    columns = release.columns
    assert len(columns["source"].chosen) == made.edges  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="not a synthetic graph"):
        graph_of(wards.edges().release(epsilon=1))


def test_what_is_not_protected_is_refused() -> None:
    asked = SyntheticGraph(dataset=DATA, shape=Shape(nodes=4))
    with pytest.raises(Refused, match="protects edges, not nodes"):
        asked.sensitivity(node(max_degree=3, relation="replace"), None)
    with pytest.raises(Refused, match="secret"):
        SyntheticGraph(dataset=DATA, shape=Shape(nodes=None))
    with pytest.raises(InvalidInput, match="rising order"):
        mechanism(4, ADD, Fraction(1)).add_noise((2, [3, 1]), SystemWords())


# ----------------------------------------------------------------------------------------------------- from the degrees


@pytest.mark.long
def test_a_graph_from_degrees_has_about_these_degrees() -> None:
    degrees = np.array([40.0] * 5 + [8.0] * 100 + [2.0] * 200)
    total = degrees.sum()
    made = from_degrees(degrees[::-1], seed=3)
    chance = np.minimum(1, np.outer(degrees, degrees) / total)[np.triu_indices(len(degrees), 1)]
    expected, spread = chance.sum(), sqrt((chance * (1 - chance)).sum())
    assert abs(made.edges - expected) <= 4.75 * spread
    hubs = made.degrees[::-1][:5].sum()
    assert abs(hubs - 5 * 40) <= 4.75 * sqrt(2 * 5 * 40)
    assert from_degrees(degrees, seed=3).edges == from_degrees(degrees, seed=3).edges
    assert from_degrees([-3, 0.0]).edges == 0
