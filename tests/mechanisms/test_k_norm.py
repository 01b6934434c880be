"""Degree noise: its norm is the hull of what an edge can do, its law is exact, and its coordinates are correlated."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chi2

from sfumato.errors import InvalidInput
from sfumato.mechanisms import DegreeNoise
from sfumato.mechanisms.k_norm import edge_norm, excess
from sfumato.mechanisms.matrix import degrees
from sfumato.noise import SystemBits, draw_discrete_laplace

DRAWS = 2_000
ALPHA = 1e-7
NOISE = DegreeNoise(nodes=3, epsilon=Fraction(1))


def law(reach: int, epsilon: float = 1.0) -> dict[tuple[int, ...], float]:
    """The law of the noise on three nodes, up to what lies outside a box (below e^−reach/2 times a polynomial)."""
    weights = {
        z: exp(-epsilon * float(edge_norm(z))) for z in product(range(-reach, reach + 1), repeat=3) if sum(z) % 2 == 0
    }
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def surprise(draws: list[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """The p-value of a chi-square test on the likeliest 20 vectors, the rest taken together."""
    cells = sorted(expected, key=lambda z: -expected[z])[:20]
    counted = Counter(draws)
    seen = [counted[cell] for cell in cells]
    wanted = [len(draws) * expected[cell] for cell in cells]
    seen, wanted = [*seen, len(draws) - sum(seen)], [*wanted, len(draws) - sum(wanted)]
    return float(chi2.sf(sum((s - w) ** 2 / w for s, w in zip(seen, wanted, strict=True)), len(cells)))


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
        for z in product(range(-reach, reach + 1), repeat=nodes):
            assert excess(z) >= 0
            assert Fraction(sum(map(abs, z)), 2) + excess(z) == edge_norm(z)
            assert sum(z) % 2 or edge_norm(z).denominator == 1


@pytest.mark.claim("S0-03")
def test_fresh_noise_has_the_law_and_noise_without_the_coin_has_not() -> None:
    """α = 1e-7. The twin leaves out the coin, and so draws from the l1 ball of independent noise."""
    bits, expected = SystemBits(), law(30)
    assert surprise([NOISE.draw(bits) for _ in range(DRAWS)], expected) > ALPHA
    twin = []
    while len(twin) < DRAWS:
        z = tuple(draw_discrete_laplace(Fraction(2), bits) for _ in range(3))
        twin += [z] if sum(z) % 2 == 0 else []
    assert surprise(twin, expected) < ALPHA


@pytest.mark.claim("S0-03")
def test_a_density_of_the_l1_norm_is_independent_and_that_of_the_k_norm_is_not() -> None:
    q = exp(-0.5)
    one = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-60, 61)}
    total = sum(exp(-0.5 * (abs(a) + abs(b))) for a in one for b in one)
    for a, b in product(range(-5, 6), repeat=2):
        assert np.isclose(exp(-0.5 * (abs(a) + abs(b))) / total, one[a] * one[b], rtol=1e-9)
    expected = law(30)
    together = sum(p * z[0] * z[1] for z, p in expected.items())
    alone = sum(p * z[0] ** 2 for z, p in expected.items())
    assert together / alone > 0.2


def test_noise_is_added_to_whole_degrees_of_the_right_number() -> None:
    noisy = NOISE.add_noise([2, 1, 1], SystemBits())
    assert sum(noisy) % 2 == 0
    for wrong in ([1, 1], [1.0, 1, 0], [True, True, False]):
        with pytest.raises(InvalidInput, match="3 whole numbers"):
            NOISE.add_noise(wrong, SystemBits())
    with pytest.raises(InvalidInput, match="nodes = 2"):
        DegreeNoise(nodes=2, epsilon=Fraction(1))
    with pytest.raises(InvalidInput, match="epsilon = 0"):
        DegreeNoise(nodes=3, epsilon=Fraction(0))
