"""The hidden number of runs, enumerated: every number has the chance that its weight says."""

from fractions import Fraction

import pytest

from sfumato.core.hidden_runs import run_weights
from sfumato.noise import SystemWords
from sfumato.noise.hidden_runs import sample_run_number
from tests.noise.replayed import enumerated


@pytest.mark.parametrize(
    ("eta", "gamma", "most"),
    [(Fraction(1), Fraction(1, 2), 3), (Fraction(0), Fraction(1, 2), 3), (Fraction(1, 2), Fraction(1, 3), 2)],
)
def test_every_number_of_runs_has_its_chance_exactly(eta, gamma, most):
    masses, unresolved = enumerated(lambda words: sample_run_number(eta, gamma, most, words), width=5, depth=3)
    weights = run_weights(eta, gamma, most)
    assert set(masses) == set(range(1, most + 1))
    for k, weight in enumerate(weights, 1):  # draws that were cut off are repeated, and have the same law
        assert Fraction(masses[k]) / (1 - Fraction(unresolved)) == Fraction(weight, sum(weights))


@pytest.mark.alpha(1e-9)
def test_numbers_from_the_system_follow_the_law():
    """About 4,000 draws of a logarithmic number; a twin without the 1/k is far away."""
    eta, gamma, most = Fraction(0), Fraction(1, 10), 20
    drawn = [sample_run_number(eta, gamma, most, SystemWords()) for _ in range(4000)]
    weights = run_weights(eta, gamma, most)
    first = weights[0] / sum(weights)
    spread = (first * (1 - first) / 4000) ** 0.5
    assert abs(drawn.count(1) / 4000 - first) < 6.2 * spread
    twin = run_weights(Fraction(1), gamma, most)
    assert abs(twin[0] / sum(twin) - first) > 12.4 * spread
    assert max(drawn) <= most
