"""Bounds of one run: exact on small mechanisms, and wrong where coins are not independent."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from sfumato.audit.bounds import gaussian_epsilon
from sfumato.audit.one_run_bounds import (
    GaussianCurve,
    PointCurve,
    counted_guesses_bound,
    curve_bound,
    curve_p_value,
    gap_bound,
    gap_p_value,
)
from sfumato.errors import InvalidInput

GRID = np.linspace(0, 4, 60)


def _coins(number: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=number)))


def _curve(laws: np.ndarray, coins: np.ndarray) -> PointCurve:
    """The exact hockey-stick curve of a finite mechanism over all its neighbours, at the points of a grid."""
    deltas = np.zeros(len(GRID))
    for here, there in itertools.permutations(range(len(coins)), 2):
        if np.abs(coins[here] - coins[there]).sum() == 1:
            gaps = np.maximum(0, laws[here] - np.exp(GRID)[:, None] * laws[there])
            deltas = np.maximum(deltas, gaps.sum(axis=1))
    return PointCurve(points=tuple(zip(GRID.tolist(), np.minimum(deltas, 1).tolist(), strict=True)))


def _tails(laws: np.ndarray, coins: np.ndarray, prior: np.ndarray, guesses: int) -> np.ndarray:
    """P[at least v right] where the surest coins of each output are guessed, by the exact posterior."""
    joint = prior[:, None] * laws
    ones = coins.T @ joint
    sure = np.abs(2 * ones - joint.sum(axis=0))
    chosen = np.argsort(-sure, axis=0, kind="stable")[:guesses]
    guess = (2 * ones > joint.sum(axis=0)).astype(int)
    right = np.zeros(guesses + 1)
    for output in range(laws.shape[1]):
        among = chosen[:, output]
        hits = (coins[:, among] == guess[among, output]).sum(axis=1)
        right += np.bincount(hits, weights=joint[:, output], minlength=guesses + 1)
    return np.cumsum(right[::-1])[::-1]


def test_no_small_mechanism_has_more_right_guesses_than_its_curve_allows() -> None:
    """Random mechanisms on three and four coins, guessed by their exact posteriors: all tails lie below the p-value."""
    random = np.random.default_rng(16)
    closest = 1.0
    for number, guesses in ((3, 1), (3, 3), (4, 2), (4, 4)) * 3:
        coins = _coins(number)
        laws = random.dirichlet(np.full(6, random.choice([0.3, 2.0])), size=len(coins))
        curve, prior = _curve(laws, coins), np.full(len(coins), 1 / len(coins))
        for right, tail in enumerate(_tails(laws, coins, prior, guesses)):
            allowed = curve_p_value(curve, canaries=number, guesses=guesses, right=right)
            assert tail <= allowed + 1e-9
            closest = min(closest, allowed - tail) if 0 < tail < 1 else closest
    assert closest < 0.2


def _response(number: int, epsilon: float) -> np.ndarray:
    """Each coin told right with the odds e^ε: the loss of one coin is ε."""
    truth, coins = 1 / (1 + math.exp(-epsilon)), _coins(number)
    same = (coins[:, None, :] == coins[None, :, :]).sum(axis=2)
    return truth**same * (1 - truth) ** (number - same)


def test_randomized_response_attains_the_bound_and_pairs_with_one_inside_break_it() -> None:
    """The deliberately broken experiment: where one of each pair is in, two are exchanged, and not one added."""
    coins, laws = _coins(4), _response(4, 1.0)
    curve = PointCurve(points=((1.0, 0.0),))
    fair = np.full(16, 1 / 16)
    paired = ((coins[:, 0] != coins[:, 1]) & (coins[:, 2] != coins[:, 3])) / 4
    allowed = np.array([curve_p_value(curve, canaries=4, guesses=4, right=right) for right in range(5)])
    tails = _tails(laws, coins, fair, 4)
    assert np.allclose(tails, binom.sf(np.arange(5) - 1, 4, 1 / (1 + math.exp(-1))))
    assert (tails <= allowed + 1e-9).all()
    assert abs(tails[4] - allowed[4]) < 1e-9
    surest = [curve_p_value(curve, canaries=4, guesses=2, right=right) for right in range(3)]
    assert (_tails(laws, coins, fair, 2) <= np.array(surest) + 1e-9).all()
    assert _tails(laws, coins, paired, 2)[2] > surest[2] + 0.05


def test_the_p_value_falls_with_right_guesses_and_with_what_is_claimed() -> None:
    p = [curve_p_value(GaussianCurve(apart=1.0), canaries=200, guesses=20, right=right) for right in range(10, 21)]
    assert p == sorted(p, reverse=True)
    q = [curve_p_value(GaussianCurve(apart=apart), canaries=200, guesses=20, right=20) for apart in (0.1, 0.5, 1, 2)]
    assert q == sorted(q)
    assert curve_p_value(GaussianCurve(apart=0.0), canaries=200, guesses=20, right=20) < 2e-5
    assert curve_p_value(GaussianCurve(apart=1.0), canaries=200, guesses=20, right=0) == 1.0


def test_points_of_a_gaussian_say_little_less_than_its_curve() -> None:
    apart, grid = 1.3, np.linspace(0, 6, 40)
    deltas = norm.cdf(apart / 2 - grid / apart) - np.exp(grid) * norm.cdf(-apart / 2 - grid / apart)
    points = PointCurve(points=tuple(zip(grid.tolist(), deltas.tolist(), strict=True)))
    whole = GaussianCurve(apart=apart)
    for reached in (1e-4, 0.01, 0.3, 0.7, 0.99):
        assert 0.97 * whole.least(reached) <= points.least(reached) <= whole.least(reached) * (1 + 1e-9)
    counts = {"canaries": 500, "guesses": 50, "right": 47}
    assert curve_p_value(points, **counts) >= curve_p_value(whole, **counts) > 0


def test_the_bounds_of_an_ideal_run_are_those_that_were_derived() -> None:
    """ε = 4, white box, invented scores: 2.3 to 2.8 by the curve with 5,000 canaries, 1.7 to 1.9 by counted guesses."""
    random = np.random.default_rng(4)
    apart, bounds, counted = 0.9249, [], []
    assert abs(gaussian_epsilon(apart, 1e-5) - 4) < 0.01
    for _ in range(3):
        coins = random.integers(0, 2, 5000).astype(bool)
        order = np.argsort(apart * coins + random.normal(size=5000))
        right = int(coins[order[-250:]].sum() + (~coins[order[:250]]).sum())
        counts = {"canaries": 5000, "guesses": 500, "right": right, "delta": 1e-5, "alpha": 0.05}
        bounds.append(curve_bound(**counts))
        counted.append(counted_guesses_bound(**counts))
    assert 2.2 < np.mean(bounds) < 3.0
    assert 1.6 < np.mean(counted) < 2.0


def test_the_gap_has_the_level_that_it_states() -> None:
    """Its p-value at the true distance, over 400 invented runs, is below 5% as often as that, by and large."""
    random = np.random.default_rng(7)
    low = 0
    for _ in range(400):
        coins = random.integers(0, 2, 100).astype(bool)
        scores = 3 + 0.2 * (0.9 * coins + random.normal(size=100))
        low += gap_p_value(scores[coins].tolist(), scores[~coins].tolist(), apart=0.9) <= 0.05
    assert 8 <= low <= 34
    wide = random.normal(size=500)
    assert gap_bound(wide + 4, wide, delta=1e-5, alpha=0.01) > 15
    assert gap_bound(wide, wide + 1, delta=1e-5, alpha=0.01) == 0.0


def test_what_is_no_count_is_refused() -> None:
    for canaries, guesses, right in ((10, 11, 1), (10, 0, 0), (10, 5, 6), (10, 5, -1)):
        with pytest.raises(InvalidInput, match="nothing was done"):
            curve_p_value(GaussianCurve(apart=1.0), canaries=canaries, guesses=guesses, right=right)
    with pytest.raises(InvalidInput, match="nothing was computed"):
        PointCurve(points=((-1.0, 0.0),))
    with pytest.raises(InvalidInput, match="nothing was computed"):
        gap_p_value([1.0], [0.0, 1.0], apart=1.0)
