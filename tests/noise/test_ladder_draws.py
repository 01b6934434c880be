"""Draws from a ladder: each part of the law exactly, and the whole on fresh randomness."""

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest

from sfumato.core import enclosures
from sfumato.core.ladder_widths import Rungs, WidthSteps
from sfumato.errors import InvalidInput
from sfumato.noise import SystemWords
from sfumato.noise.ladder import _ends, sample_ladder

LADDERS = [
    Rungs.of([WidthSteps(0, 1, 1, 3), WidthSteps(1, 1, 2, 1), WidthSteps(4, 2, 2, 1)]),
    Rungs.of([WidthSteps(2, 2, 3, 1)]),
    Rungs.of([WidthSteps(0, 1, 1, 1), WidthSteps(1, 1, 1, 4), WidthSteps(3, 1, 1, 7)]),
]


@pytest.mark.parametrize("rungs", LADDERS, ids=["triangles", "empty graph", "stars"])
def test_every_number_is_drawn_in_one_way_and_lies_on_its_rung(rungs: Rungs) -> None:
    """A place u of growth, one of its δ_u and a rung t > u stand for one number on rung t, and every number has one."""
    far = 12
    seen = []
    for run in rungs.runs:
        for u in range(run.first, run.last + 1, run.step):
            for t in range(u + 1, far + 1):
                for within in range(run.amount):
                    distance = rungs.reach(t - 1) + rungs.width(u - 1) + within + 1
                    assert rungs.rung(distance) == t
                    seen.append(distance)
    assert sorted(seen) == list(range(1, rungs.reach(far) + 1))


@pytest.mark.parametrize("rungs", LADDERS, ids=["triangles", "empty graph", "stars"])
@pytest.mark.parametrize("epsilon", ["1/100", "1", "30"])
def test_centre_and_runs_have_their_weights(rungs: Rungs, epsilon: str) -> None:
    rate, bits = Fraction(epsilon) / 2, 200
    ratio = enclosures.exp(-rate, bits=400)
    weights = [1 - ratio]
    for run in rungs.runs:
        places = range(run.first, run.last + 1, run.step)
        powers = [enclosures.exp(-rate * (u + 1), bits=400) for u in places]
        weights.append(2 * run.amount * sum(powers[1:], powers[0]))
    whole = sum(weights[1:], weights[0])
    low, high = _ends(rungs.runs, rate, bits)
    end = weights[0]
    for level, weight in enumerate(weights[1:]):
        share = end / whole * (1 << bits)
        assert low[level] <= share.low
        assert share.high <= high[level] + 1
        assert high[level] - low[level] <= 2
        end = end + weight
    assert low[-1] == high[-1] == 1 << bits


@pytest.mark.long
@pytest.mark.alpha(9e-9)
def test_fresh_draws_follow_the_law_and_one_with_another_rate_fails() -> None:
    """By Hoeffding's inequality a frequency of n = 120,000 strays by more than 0.0095 with probability below 1e-9."""
    rungs, many = LADDERS[0], 120_000
    drawn = np.array(sample_ladder(rungs, Fraction(1), many, SystemWords()))
    band = sqrt(log(2e9) / (2 * many))

    def chances(epsilon: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        weights = np.array([exp(-epsilon / 2 * rungs.rung(abs(z))) for z in range(-400, 401)])
        return weights / weights.sum()

    bins = [(-400, -20), (-20, -8), (-8, -2), (-2, 0), (0, 1), (1, 3), (3, 9), (9, 21), (21, 401)]
    found = np.array([((drawn >= low) & (drawn < high)).mean() for low, high in bins])

    def law(epsilon: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return np.array([chances(epsilon)[low + 400 : high + 400].sum() for low, high in bins])

    assert abs(found - law(1)).max() <= band
    assert abs(found - law(1.2)).max() > band


def test_a_ladder_without_rungs_is_its_centre_and_falling_widths_are_refused() -> None:
    assert sample_ladder(Rungs.of([WidthSteps(0, 1, 0, 1)]), Fraction(1), 3, SystemWords()) == [0, 0, 0]
    with pytest.raises(InvalidInput, match="do not fall"):
        Rungs.of([WidthSteps(0, 1, 1, -1)])
    with pytest.raises(InvalidInput, match="overlap"):
        Rungs.of([WidthSteps(0, 2, 3, 1), WidthSteps(4, 1, 1, 1)])


@pytest.mark.alpha(1e-100)
def test_very_small_and_very_large_rates_are_drawn() -> None:
    rungs = LADDERS[0]
    assert all(isinstance(z, int) for z in sample_ladder(rungs, Fraction(1, 10**30), 3, SystemWords()))
    assert sample_ladder(rungs, Fraction(10**6), 3, SystemWords()) == [0, 0, 0]
