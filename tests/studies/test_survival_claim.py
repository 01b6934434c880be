"""S1-10: a curve from a histogram of exits, beside noise on each point of it."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import user
from sfumato.mechanisms.matrix.toeplitz import coefficients, lower
from sfumato.studies.exit_cells import ExitNoise
from sfumato.studies.survival_curve import falling
from sfumato.tables.keys import Keys
from sfumato.tables.queries.count import Count

Pair = tuple[float, float]


def both(variances: np.ndarray) -> Pair:  # type: ignore[type-arg]  # of floats
    """The largest standard deviation and the root of the mean square."""
    return float(np.sqrt(variances.max())), float(np.sqrt(variances.mean()))


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The noise of the analytic Gaussian mechanism at sensitivity 1."""

    def excess(sigma: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return float(norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b) - delta)

    return float(brentq(excess, 0.1, 100))


def histogram(steps: int) -> Pair:
    """Sums of event cells with the noise of a count in which a replaced person moves two cells by 1, at ε = 1."""
    cells = Count(
        dataset=Dataset(name="trial", edition="1"),
        by=(
            Keys(column="exit", values=("event", "censored")),
            Keys(column="day", values=tuple(range(steps))),
        ),
    )
    one = Limit(groups=1, rows_per_group=1)
    moved = cells.sensitivity(user("id", relation="replace"), one).l1
    alone = cells.sensitivity(user("id", relation="add/remove"), one).l1
    assert moved is not None
    assert alone is not None
    assert (moved.value, alone.value) == (2, 1)
    noise = ExitNoise(variance=2 * float(moved.value) ** 2, steps=steps)
    return both(noise.at_risk / 2)  # of one kind of exit: as many cells as from a step to the last


def known_total(steps: int) -> Pair:
    """The same where all cells, the one of those without an event among them, add up to a public number."""
    part = np.arange(1, steps + 1)
    return both(8 * part * (1 - part / (steps + 1)))


def tree(steps: int) -> Pair:
    """The binary tree: a replaced person moves two blocks in each level."""
    levels = steps.bit_length()
    blocks = np.array([part.bit_count() for part in range(1, steps + 1)])
    return both(2 * (2.0 * levels) ** 2 * blocks)


def square_root(steps: int) -> Pair:
    """Gaussian noise through the square root of the prefix sums; a replaced person is the difference of two columns."""
    strategy = lower(np.array([float(each) for each in coefficients(steps)]))
    gram = strategy.T @ strategy
    norms = np.diag(gram)
    apart = max(float((norms[:, None] + norms - 2 * gram).max()), float(norms.max()))
    return both(gaussian_sigma(1, 1e-6) ** 2 * apart * np.cumsum(strategy[:, 0] ** 2))


@pytest.mark.claim("S1-10")
def test_noise_of_curves_by_each_method() -> None:
    sigma = gaussian_sigma(1, 1e-6)
    naive = {steps: math.sqrt(2) * steps for steps in (30, 365, 1000)}
    assert [round(naive[steps], 1) for steps in (30, 365)] == [42.4, 516.2]
    assert round(naive[1000]) == 1414
    assert [tuple(round(each, 1) for each in histogram(steps)) for steps in (30, 365)] == [(15.5, 11.1), (54.0, 38.3)]
    assert round(histogram(1000)[0], 1) == 89.4
    assert tuple(round(each, 2) for each in known_total(30)) == (7.87, 6.53)
    assert tuple(round(each, 1) for each in known_total(365)) == (27.1, 22.1)
    assert round(known_total(1000)[0], 1) == 44.7
    assert [*tree(30), *tree(365)] == pytest.approx([28.3, 22.4, 72.0, 51.5], abs=0.06)
    assert round(tree(1000)[0], 1) == 84.9
    assert [round(sigma * math.sqrt(steps), 1) for steps in (30, 365)] == [23.1, 80.7]
    assert round(sigma * math.sqrt(1000)) == 134
    assert square_root(30) == pytest.approx((11.0, 10.2), abs=0.06)
    assert square_root(365) == pytest.approx((15.8, 15.0), abs=0.06)
    assert square_root(1000)[0] == pytest.approx(17.8, abs=0.06)
    assert all(histogram(steps)[0] < math.sqrt(2) * steps for steps in range(10, 200, 10))


@pytest.mark.claim("S1-10")
def test_a_curve_that_never_rises_is_nearer_than_the_points() -> None:
    generator = np.random.default_rng(1)
    truth = 1 - 0.3 * np.arange(1, 31) / 30  # 30% are readmitted
    noisy = truth + generator.laplace(0, 30 / 1000, (1000, 30))  # naive noise, n = 1,000
    shown = np.array([np.clip(falling(each), 0, 1) for each in noisy])
    assert (np.diff(shown, axis=1) <= 1e-12).all()
    assert shown.min() >= 0
    assert shown.max() <= 1
    raw, better = (float(np.sqrt(((each - truth) ** 2).mean())) for each in (noisy, shown))
    assert raw * 1000 == pytest.approx(42.4, rel=0.02)
    assert better * 1000 == pytest.approx(22.2, rel=0.1)


@pytest.mark.claim("S1-10")
def test_a_year_of_days_is_measured_in_two_levels() -> None:
    plain = ExitNoise(variance=2.0, steps=365)
    levels = ExitNoise(variance=8.0, steps=365, widths=(1, 31))  # a person is in a cell of each level
    ratio = np.array(both(levels.at_risk)) / both(plain.at_risk)
    assert ratio == pytest.approx((0.452, 0.487), abs=0.002)
