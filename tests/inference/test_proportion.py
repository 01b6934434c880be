"""The interval of a proportion is the set of all shares that the score test keeps, by search on a fine grid."""

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.inference.normal_laplace import multiplier
from sfumato.inference.proportion import proportion_limits

Floats = npt.NDArray[np.float64]

GRID = np.linspace(0.0, 1.0, 20_001)


def cases() -> tuple[Floats, Floats]:
    generator = np.random.default_rng(2)
    total = np.concatenate([generator.integers(1, 60, 150), generator.integers(60, 3000, 150)]).astype(float)
    yes = generator.binomial(total.astype(int), generator.random(300)).astype(float)
    return yes + generator.laplace(0, 1.5, 300), total + generator.laplace(0, 2.0, 300)


def kept(yes: float, total: float, variance: float, half: float, rows: int, *, laplace: bool) -> Floats:
    sampling = rows * max(total, 1.0) * GRID * (1 - GRID)
    noise = variance * ((1 - GRID) ** 2 + GRID**2)
    k = multiplier(noise / (sampling + noise), 0.95) if laplace else 1.96
    away = np.maximum(np.abs(yes - GRID * total) - half, 0.0)
    return np.asarray(away <= k * np.sqrt(sampling + noise))


@pytest.mark.parametrize("half", [0.0, 0.5])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("laplace", [False, True])
def test_the_ends_are_those_of_all_shares_that_are_kept(half: float, rows: int, *, laplace: bool) -> None:
    variance = 4.0
    yes, total = cases()

    def reach(p: Floats) -> Floats:
        sampling = rows * np.maximum(total, 1.0) * p * (1 - p)
        noise = variance * ((1 - p) ** 2 + p**2)
        return multiplier(noise / (sampling + noise), 0.95) if laplace else np.full(p.shape, 1.96)

    low, high = proportion_limits(yes, total, (variance, variance, 2 * variance), reach, half=half, rows=rows)
    step, alike = GRID[1], 0
    for one, whole, least, most in zip(yes, total, low, high, strict=True):
        found = kept(one, whole, variance, half, rows, laplace=laplace)
        if whole <= 6 * np.sqrt(2 * variance):  # lost in noise: anything may be said, if it is no narrower
            assert not found.any() or (least <= GRID[found][0] + step and most >= GRID[found][-1] - step)
            continue
        if found.any():
            assert least == pytest.approx(GRID[found][0], abs=1.5 * step)
            assert most == pytest.approx(GRID[found][-1], abs=1.5 * step)
            alike += 1
    assert alike > 200


def test_a_share_of_nobody_is_anything() -> None:
    ends = proportion_limits(np.array([0.0, -3.0]), np.array([0.0, -5.0]), (1.0, 1.0, 2.0), lambda p: 0 * p + 1.96)
    assert [end.tolist() for end in ends] == [[0.0, 0.0], [1.0, 1.0]]
