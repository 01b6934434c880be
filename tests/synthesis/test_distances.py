"""Distances from noisy counts: intervals that hold whatever the table is, and estimates without what noise adds."""

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.synthesis.agreement import jensen_shannon, total_variation
from sfumato.synthesis.distances import Distance, distances_of

ROWS, SIGMA, OF_TOTAL = 5_000, 20.0, 30.0


def played(
    cells: int, far: float, *, gaussian: bool, runs: int
) -> tuple[float, float, list[tuple[Distance, Distance]]]:
    random = np.random.default_rng()
    shares = random.dirichlet(np.ones(cells))
    truth = (1 - far) * shares + far * random.dirichlet(np.full(cells, 0.3))
    found = []
    for _ in range(runs):
        noise = random.normal(0, SIGMA, cells) if gaussian else random.laplace(0, SIGMA / 2**0.5, cells)
        total = ROWS + random.normal(0, OF_TOTAL)
        found.append(
            distances_of(
                ROWS * truth + noise,
                SIGMA,
                total,
                OF_TOTAL,
                shares,
                gaussian=gaussian,
                confidence=0.95,
                random=random,
            )
        )
    return float(total_variation(truth, shares)), float(jensen_shannon(truth, shares)), found


@pytest.mark.parametrize("gaussian", [True, False], ids=["gaussian", "laplace"])
@pytest.mark.parametrize(("cells", "far"), [(2, 0.0), (2, 0.3), (16, 0.1), (120, 0.0), (120, 0.4)])
@pytest.mark.alpha(1e-9)
def test_intervals_hold_and_what_is_counted_without_a_correction_does_not(
    cells: int, far: float, gaussian: bool
) -> None:
    """60 runs each, limit by the binomial law at 1e-10; the plain distance of the noisy counts is far above."""
    variation, divergence, found = played(cells, far, gaussian=gaussian, runs=60)
    least = binom.ppf(1e-10, 60, 0.95)
    assert sum(one.low <= variation <= one.high for one, _ in found) >= least
    assert sum(two.low - 1e-12 <= divergence <= two.high + 1e-12 for _, two in found) >= least
    for one, two in found:
        assert 0 <= one.low <= one.value <= one.high <= 1
        assert 0 <= two.low <= two.value <= two.high <= 1
    if cells == 120:
        of_noise = 0.4 * SIGMA * cells / ROWS  # what a plain distance would have added, about 0.19 where nothing is
        mean = float(np.mean([one.value for one, _ in found]))
        assert abs(mean - variation) < 0.35 * of_noise


def test_more_rows_make_intervals_narrow() -> None:
    shares = np.array([0.25, 0.25, 0.5])
    random = np.random.default_rng(1)
    widths = []
    for rows in (1e3, 1e5, 1e7):
        one, two = distances_of(
            rows * np.array([0.35, 0.25, 0.4]), 10.0, rows, 10.0, shares, gaussian=True, confidence=0.95, random=random
        )
        assert one.low <= 0.1 <= one.high
        widths.append((one.high - one.low, two.high - two.low))
    assert widths[0] > widths[1] > widths[2]
    assert widths[2][0] < 1e-4
