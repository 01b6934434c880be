"""Two entries of every textbook, held against what runs here: the count, and Laplace noise on a fine lattice."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.laws import DiscreteLaplace
from sfumato.noise import discrete_laplace
from sfumato.tables import Count

FINE = 2**20  # lattice steps to 1: the law is then the continuous one to six digits
DRAWS = 2_000_000


@pytest.mark.claim("S2-10")
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_a_count_of_units_that_meet_a_condition_moves_by_one(relation: str) -> None:
    moved = 0
    for size in range(7):
        for data in product((0, 1), repeat=size):
            if relation == "add/remove":
                others = [data[:place] + data[place + 1 :] for place in range(size)]
            else:
                others = [(*data[:place], 1 - data[place], *data[place + 1 :]) for place in range(size)]
            moved = max([moved, *(abs(sum(data) - sum(other)) for other in others)])
    query = Count(dataset=Dataset(name="units", edition="1"), where=sf.col("meets") == 1)
    assert moved == 1
    claimed = query.sensitivity(sf.record(relation=relation), None)
    assert claimed.l1 is not None
    assert claimed.l1.value == moved


@pytest.mark.claim("S2-12")
@pytest.mark.parametrize("epsilon", ["1/2", "1", "3"])
@pytest.mark.alpha(1e-9)
def test_laplace_noise_of_scale_sensitivity_over_epsilon(epsilon: str) -> None:
    """Ratios on a grid; moments and tail of 2,000,000 fresh draws at ±6.5 standard errors (α below 1e-9 for the three);
    a scale 5% off, which is 15 of them for the tail and more for the moments, fails."""
    scale = 1 / Fraction(epsilon)
    b = float(scale)
    law = DiscreteLaplace(scale=scale * FINE)
    grid = np.arange(-40, 41) * FINE // 4
    density = np.exp(-np.abs(grid) / (b * FINE))
    moved = np.exp(-np.abs(grid - FINE) / (b * FINE))  # the answer moved by 1 = FINE steps
    assert np.abs(np.log(density / moved)).max() <= float(Fraction(epsilon)) * (1 + 1e-12)
    assert np.abs(np.log(density / moved)).max() == pytest.approx(float(Fraction(epsilon)))
    assert float(law.mean_absolute_error) / FINE == pytest.approx(b, rel=1e-6)
    assert float(law.variance) / FINE**2 == pytest.approx(2 * b**2, rel=1e-6)
    for beta in (0.5, 0.05, 1e-6):
        assert float(law.tail(int(b * FINE * math.log(1 / beta))).high) == pytest.approx(beta, rel=1e-4)

    def misses(draws: np.ndarray) -> int:
        size = np.abs(draws) / FINE
        off = [
            (size.mean() - b) / (b / math.sqrt(DRAWS)),
            ((size**2).mean() - 2 * b**2) / (math.sqrt(20) * b**2 / math.sqrt(DRAWS)),
            ((size > b * math.log(20)).mean() - 0.05) / math.sqrt(0.05 * 0.95 / DRAWS),
        ]
        return sum(abs(z) > 6.5 for z in off)

    assert misses(discrete_laplace(scale=scale * FINE, size=DRAWS)) == 0
    assert misses(discrete_laplace(scale=scale * FINE * Fraction(95, 100), size=DRAWS)) == 3
