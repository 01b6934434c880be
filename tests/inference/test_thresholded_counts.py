"""Given that a count is shown, its interval covers the truth: worked out from the law, for every true count."""

import math
from fractions import Fraction

import pytest

from sfumato.inference.thresholded_counts import ThresholdedCounts
from sfumato.laws import DiscreteLaplace

THRESHOLD = 15


def chance_of_cover(count: int, scale: Fraction, confidence: Fraction, *, knowing: bool = True) -> float:
    """P(the interval covers | shown), summed over the law of the noise."""
    ratio = math.exp(-1 / float(scale))
    margin = DiscreteLaplace(scale=scale).margin(confidence)
    shown = covered = 0.0
    for value in range(THRESHOLD, count + THRESHOLD + 200):
        mass = (1 - ratio) / (1 + ratio) * ratio ** abs(value - count)
        column = ThresholdedCounts(
            counts=(value,), scale=scale, threshold=THRESHOLD, labels={}, measure="persons", sources=()
        )
        low, high = column.interval(confidence)[0] if knowing else (value - margin, value + margin)
        shown += mass
        covered += mass * (low <= count <= high)
    return covered / shown


@pytest.mark.long
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(3)])
@pytest.mark.parametrize("confidence", [Fraction(4, 5), Fraction(19, 20), Fraction(99, 100)])
def test_every_count_is_covered_given_that_it_is_shown(scale: Fraction, confidence: Fraction) -> None:
    assert min(chance_of_cover(count, scale, confidence) for count in range(1, 45)) >= confidence - Fraction(1, 10**9)


def test_twin_an_interval_that_forgets_the_threshold_never_covers_small_counts() -> None:
    assert chance_of_cover(2, Fraction(2), Fraction(19, 20), knowing=False) == 0


def test_all_counts_at_once_are_covered_with_a_wider_margin() -> None:
    column = ThresholdedCounts(
        counts=(100, 200), scale=Fraction(2), threshold=THRESHOLD, labels={}, measure="persons", sources=()
    )
    assert column.interval(Fraction(19, 20)) == [(92, 108), (192, 208)]
    assert column.interval(Fraction(19, 20), joint=True) == [(91, 109), (191, 209)]
