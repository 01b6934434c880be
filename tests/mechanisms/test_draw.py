"""One way to draw for all mechanisms that answer at once: it is the mechanism's own way, on the same random words."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from sfumato.core.query import DrawnMechanism
from sfumato.learning.paradigms.voting import ConfidentMax
from sfumato.mechanisms import (
    MECHANISMS,
    DegreeNoise,
    Exponential,
    Gaussian,
    Laplace,
    LimitSearch,
    LInfKNorm,
    NoisyMax,
    NoisyThreshold,
    OptimalSelection,
    PermuteAndFlip,
    QuantileChoice,
    RandomizedResponse,
    TopChoice,
)
from tests.noise.replayed import ReplayedWordsForTests, fresh

STEP_BY_STEP = {"mechanism.sparse_vector", "mechanism.buffered"}
COUNTS, KEYS = [7, 3, 9, 4], {("a",): 90, ("b",): 2, ("c",): 70}
GROUPS = [([1, 5, 9], [2, 3, 4]), ([2], [6])]

CASES: list[tuple[Any, Any, Callable[[Any, Any, Any], Any]]] = [
    (Laplace(scale=Fraction(3), l1=Fraction(1)), COUNTS, lambda m, x, w: (m.add_noise(x, w), ())),
    (Gaussian.calibrated(l2=1, epsilon=1, delta="1e-6"), COUNTS, lambda m, x, w: (m.add_noise(x, w), ())),
    (LInfKNorm.calibrated(dimensions=4, linf=1, epsilon=1), COUNTS, lambda m, x, w: (m.add_noise(x, w), ())),
    (DegreeNoise(nodes=4, epsilon=Fraction(1)), COUNTS, lambda m, x, w: (m.add_noise(x, w), ())),
    (Exponential.calibrated(sensitivity=1, epsilon=1), COUNTS, lambda m, x, w: ((m.choose(x, w),), ())),
    (PermuteAndFlip.calibrated(sensitivity=1, epsilon=1), COUNTS, lambda m, x, w: ((m.choose(x, w),), ())),
    (NoisyMax.calibrated(sensitivity=1, epsilon=1), COUNTS, lambda m, x, w: ((m.choose(x, w),), ())),
    (
        TopChoice.calibrated(choices=2, sensitivity=1, epsilon=1, monotone=True),
        COUNTS,
        lambda m, x, w: (m.choose(x, w), ()),
    ),
    (
        LimitSearch.calibrated(candidates=[(1, 2, 4, 8)], epsilon=1, spend=[1]),
        [[9, 6, 1]],
        lambda m, x, w: (m.search(x, w), ()),
    ),
    (RandomizedResponse.calibrated(epsilon=1, categories=3), 2, lambda m, x, w: ((m.report(x, w),), ())),
    (
        NoisyThreshold.calibrated(keys=1, most=1, epsilon=1, delta="1e-6"),
        KEYS,
        lambda m, x, w: (tuple((shown := m.show(x, w)).values()), tuple(shown)),
    ),
    (OptimalSelection.calibrated(keys=1, epsilon=1, delta="1e-6"), KEYS, lambda m, x, w: ((), m.show(x, w))),
    (
        ConfidentMax(questions=2, classes=2, answers=1, threshold=4, check_sigma=2, sigma=2),
        [[7, 3], [1, 2]],
        lambda m, x, w: (m.choose(x, w), ()),
    ),
]


@pytest.mark.parametrize(("mechanism", "exact", "own"), CASES, ids=lambda case: getattr(case, "KIND", ""))
def test_drawing_is_the_mechanisms_own_way_on_the_same_words(
    mechanism: DrawnMechanism, exact: Any, own: Callable[[Any, Any, Any], Any]
) -> None:
    words = fresh(20_000)
    drawn, told = ReplayedWordsForTests(words), ReplayedWordsForTests(words)
    assert mechanism.draw(exact, drawn) == own(mechanism, exact, told)
    assert drawn.used == told.used


def test_quantiles_are_drawn_group_by_group() -> None:
    mechanism = QuantileChoice(quantiles=(Fraction(1, 2),), steps=10, parts=1, epsilon=Fraction(1))
    words = fresh(20_000)
    drawn, told = ReplayedWordsForTests(words), ReplayedWordsForTests(words)
    expected = tuple(place for values, counts in GROUPS for place in mechanism.choose(values, counts, told))
    assert mechanism.draw(GROUPS, drawn) == (expected, ())
    assert drawn.used == told.used


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_what_does_not_answer_step_by_step_can_be_drawn(kind: type) -> None:
    assert hasattr(kind, "draw") is (kind.KIND not in STEP_BY_STEP)  # type: ignore[attr-defined]
