"""Degree noise: its norm is the hull of what an edge can do, its law is exact, and its coordinates are correlated."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chi2

from sfumato.core.documents import canonical, encode, parse
from sfumato.core.guarantees import Pure
from sfumato.core.query import Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import edge, node, record
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.laws import DegreeNoiseLaw, DiscreteLaplace
from sfumato.mechanisms import DegreeNoise
from sfumato.mechanisms.k_norm import edge_norm, excess
from sfumato.mechanisms.matrix import degrees
from sfumato.noise import SystemWords, sample_discrete_laplace
from sfumato.reports.declarations import DECLARATIONS

DRAWS = 100_000
ALPHA = 1e-9
NOISE = DegreeNoise(nodes=3, epsilon=Fraction(1))


def box(nodes: int, reach: int) -> np.ndarray:
    """All vectors of a box with an even sum."""
    grid = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * nodes, indexing="ij"), axis=-1).reshape(-1, nodes)
    return grid[grid.sum(axis=1) % 2 == 0]


def norms(vectors: np.ndarray) -> np.ndarray:
    """The formula of :func:`edge_norm`, for many vectors."""
    sums = np.abs(vectors).sum(axis=1)
    return np.maximum(sums, np.abs(4 * vectors - vectors.sum(axis=1)[:, None]).max(axis=1)) / 2


def law(reach: int, epsilon: float = 1.0, nodes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and their probabilities, up to what lies outside a box (below e^−reach/2 times a polynomial)."""
    vectors = box(nodes, reach)
    weights = np.exp(-epsilon * norms(vectors))
    return vectors, weights / weights.sum()


def surprise(draws: np.ndarray, expected: tuple[np.ndarray, np.ndarray], cells: int = 60) -> float:
    """The p-value of a chi-square test on the likeliest vectors, the rest taken together."""
    vectors, masses = expected
    likeliest = np.argsort(-masses)[:cells]
    found, counts = np.unique(draws, axis=0, return_counts=True)
    counted = dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
    seen = np.array([counted.get(tuple(cell), 0) for cell in vectors[likeliest].tolist()])
    wanted = len(draws) * masses[likeliest]
    rest = (seen.sum() - wanted.sum()) ** 2 / (len(draws) - wanted.sum())
    return float(chi2.sf(((seen - wanted) ** 2 / wanted).sum() + rest, cells))


@pytest.mark.claim("S0-03")
@pytest.mark.parametrize("nodes", [3, 4, 5, 6])
def test_the_norm_is_the_least_number_of_edges_that_make_a_vector(nodes: int) -> None:
    """‖z‖_K = min Σ|c_e| over Σ c_e·e = z, by linear programming."""
    edges = degrees(nodes).matrix.astype(float)
    chance = np.random.default_rng()
    corners = [np.eye(nodes, dtype=int)[0], np.ones(nodes, dtype=int), np.eye(nodes, dtype=int)[0] * 3 - 1]
    for z in (*corners, *chance.integers(-4, 5, (25, nodes))):
        found = linprog(np.ones(2 * edges.shape[1]), A_eq=np.hstack([edges, -edges]), b_eq=z)
        assert np.isclose(found.fun, float(edge_norm([int(one) for one in z])))


@pytest.mark.claim("S0-03")
def test_proposal_times_coin_is_the_law() -> None:
    """½‖z‖₁ + excess = ‖z‖_K with excess ≥ 0: Laplace noise of scale 2/ε times the coin is exp(−ε‖z‖_K) exactly."""
    for nodes, reach in ((3, 5), (4, 3), (5, 2)):
        vectors = [z for z in product(range(-reach, reach + 1), repeat=nodes) if sum(z) % 2 == 0]
        for z, more in zip(vectors, excess(np.array(vectors)).tolist(), strict=True):
            assert more >= 0
            assert Fraction(sum(map(abs, z)), 2) + more == edge_norm(z) == norms(np.array([z]))[0]


@pytest.mark.few(1)
@pytest.mark.claim("S0-03")
@pytest.mark.parametrize("nodes", [3, 4])
@pytest.mark.alpha(2 * ALPHA)
def test_fresh_noise_has_the_law_and_noise_without_the_coin_has_not(nodes: int) -> None:
    """α = 1e-9; a cell of probability p that is wrong by 15·√(p/100,000) shows. The twin leaves out the coin."""
    mechanism, expected = DegreeNoise(nodes=nodes, epsilon=Fraction(1)), law({3: 30, 4: 16}[nodes], nodes=nodes)
    drawn = mechanism.sample(DRAWS, SystemWords())
    assert drawn.shape == (DRAWS, nodes)
    assert surprise(drawn, expected) > ALPHA
    proposed = sample_discrete_laplace(Fraction(2), DRAWS * nodes, SystemWords()).reshape(DRAWS, nodes)
    assert surprise(proposed[proposed.sum(axis=1) % 2 == 0], expected) < ALPHA
    assert surprise(DegreeNoise(nodes=nodes, epsilon=Fraction(21, 20)).sample(DRAWS, SystemWords()), expected) < ALPHA


@pytest.mark.claim("S0-03")
def test_a_density_of_the_l1_norm_is_independent_and_that_of_the_k_norm_is_not() -> None:
    q = exp(-0.5)
    one = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-60, 61)}
    total = sum(exp(-0.5 * (abs(a) + abs(b))) for a in one for b in one)
    for a, b in product(range(-5, 6), repeat=2):
        assert np.isclose(exp(-0.5 * (abs(a) + abs(b))) / total, one[a] * one[b], rtol=1e-9)
    vectors, masses = law(30)
    assert (masses * vectors[:, 0] * vectors[:, 1]).sum() / (masses * vectors[:, 0] ** 2).sum() > 0.2


@pytest.mark.alpha(1e-12)
def test_many_nodes_and_scales_beyond_64_bits_are_drawn() -> None:
    for nodes, epsilon, size in ((5000, Fraction(1, 3), 3), (3, Fraction(1, 2**70), 4), (4, Fraction(1, 2**58), 50)):
        drawn = DegreeNoise(nodes=nodes, epsilon=epsilon).sample(size, SystemWords())
        assert drawn.shape == (size, nodes)
        assert all(total % 2 == 0 for total in drawn.astype(object).sum(axis=1))
        assert np.abs(drawn).max() > 1 / (8 * epsilon)  # fails by chance below once in 2^40 runs
    assert DegreeNoise(nodes=3, epsilon=Fraction(1)).sample(0, SystemWords()).shape == (0, 3)


def test_noise_is_added_to_whole_degrees_of_the_right_number() -> None:
    noisy = NOISE.add_noise([2, 1, 1], SystemWords())
    assert sum(noisy) % 2 == 0
    assert {type(one) for one in noisy} == {int}
    for wrong in ([1, 1], [1.0, 1, 0], [True, True, False]):
        with pytest.raises(InvalidInput, match="3 whole numbers"):
            NOISE.add_noise(wrong, SystemWords())
    with pytest.raises(InvalidInput, match="nodes = 2"):
        DegreeNoise(nodes=2, epsilon=Fraction(1))
    with pytest.raises(InvalidInput, match="epsilon = 0"):
        DegreeNoise(nodes=3, epsilon=Fraction(0))


def test_the_loss_is_that_of_the_edges_that_move() -> None:
    noise = DegreeNoise(nodes=4, epsilon=Fraction(2, 3))
    assert noise.loss(Sensitivity.of(l1=1)) == noise.event(edge(relation="add/remove"))
    assert noise.loss(Sensitivity.of(l1=2)) == noise.event(edge(relation="replace"))
    assert noise.loss(Sensitivity.of(l1=6)).guarantee == Pure(epsilon=Fraction(4))
    assert noise.loss(Sensitivity.of(l1=0)).guarantee == Pure(epsilon=Fraction(0))
    with pytest.raises(WrongNorm, match="l1 bound is needed"):
        noise.loss(Sensitivity.of(l2_squared=2, linf=1))
    for unit in (record(relation="add/remove"), node(max_degree=3, relation="add/remove")):
        with pytest.raises(Refused, match="shaped for one edge"):
            noise.event(unit)


def test_it_is_a_document_and_a_mechanism() -> None:
    again = DECLARATIONS.decode(parse(canonical(encode(NOISE))))
    assert again == NOISE
    assert isinstance(again, Mechanism)
    assert (
        DECLARATIONS.decode(parse(canonical(encode(NOISE.law))))
        == NOISE.law
        == DegreeNoiseLaw(nodes=3, epsilon=Fraction(1))
    )


# ------------------------------------------------------------------------------------------------ the law of an error


@pytest.mark.few(1)
@pytest.mark.parametrize(("nodes", "epsilon", "reach"), [(3, 1.0, 30), (3, 2.5, 14), (4, 1.0, 14)])
def test_no_tail_or_moment_is_larger_than_the_law_says(nodes: int, epsilon: float, reach: int) -> None:
    stated, (vectors, masses) = DegreeNoiseLaw(nodes=nodes, epsilon=Fraction(str(epsilon))), law(reach, epsilon, nodes)
    sizes = np.abs(vectors)
    for size in range(reach - 4):
        assert masses[sizes[:, 0] > size].sum() <= stated.tail(size).high
        assert stated.tail(size).low == 0
        if stated.covers(size, 0.9, numbers=nodes):
            assert masses[sizes.max(axis=1) > size].sum() <= 0.1
    assert (masses * sizes[:, 0] ** 2).sum() <= stated.variance
    assert (masses * sizes[:, 0]).sum() <= stated.mean_absolute_error


@pytest.mark.parametrize(("nodes", "epsilon", "reach"), [(3, 1.0, 30), (3, 2.5, 14), (4, 2.0, 10), (5, 3.0, 6)])
def test_the_chance_of_being_kept_is_exact(nodes: int, epsilon: float, reach: int) -> None:
    """Σ exp(−ε‖z‖_K) over even sums, by Σ exp(−ε‖z‖₁/2) over all vectors; what a box leaves out is below 1e-3."""
    x = exp(-epsilon / 2)
    kept = float(np.exp(-epsilon * norms(box(nodes, reach))).sum()) / ((1 + x) / (1 - x)) ** nodes
    stated = DegreeNoiseLaw(nodes=nodes, epsilon=Fraction(str(epsilon))).kept()
    assert kept == pytest.approx(float(stated.low), rel=1e-3)
    assert kept <= stated.high * (1 + Fraction(1, 10**9))
    assert stated.width < Fraction(1, 2**100)


def test_for_many_nodes_the_law_is_that_of_laplace_noise() -> None:
    """At 4,039 nodes the coin never matters and parity hardly: the margins are those of scale 2/ε."""
    stated, laplace = DegreeNoiseLaw(nodes=4039, epsilon=Fraction(1, 2)), DiscreteLaplace(scale=Fraction(4))
    assert stated.margin(0.95) == laplace.margin(0.95)
    assert abs(stated.variance / laplace.variance - 1) < Fraction(1, 10**9)
    assert stated.margin(0.95, numbers=4039) == laplace.margin(1 - Fraction(1, 20 * 4039))
    assert stated.quantile(0.95) == laplace.quantile(0.95)
