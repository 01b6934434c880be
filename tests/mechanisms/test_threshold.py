"""Noisy threshold: the δ of keys that one person brings, worked out exactly."""

from fractions import Fraction

import mpmath
import pytest

from sfumato.accounting import compose
from sfumato.mechanisms import NoisyThreshold

pytestmark = pytest.mark.kills


def shown(keys: int, most: int, scale: float, threshold: int) -> mpmath.mpf:
    """P(some of ``keys`` fresh keys with ``most`` each is shown), from the definition of the law."""
    q = mpmath.exp(-1 / mpmath.mpf(scale))
    one = sum((1 - q) / (1 + q) * q ** abs(z) for z in range(threshold - most, threshold - most + 4000))
    return 1 - (1 - one) ** keys


@pytest.mark.claim("X-03")
@pytest.mark.parametrize(("keys", "most", "epsilon", "delta"), [(1, 1, 1, 1e-6), (3, 1, 1, 1e-6), (3, 4, 0.5, 1e-3)])
def test_the_delta_is_that_of_the_pair_that_differs_by_one_person(
    keys: int, most: int, epsilon: float, delta: float
) -> None:
    rule = NoisyThreshold.calibrated(keys=keys, most=most, epsilon=epsilon, delta=delta)
    guarantee = compose([rule.event])
    assert guarantee.epsilon == Fraction(str(epsilon))
    with mpmath.workdps(40):
        truth = shown(keys, most, float(rule.scale), rule.threshold)
        assert float(truth) <= float(guarantee.delta) <= float(truth) * (1 + 1e-9)  # type: ignore[union-attr]
        assert guarantee.delta <= Fraction(str(delta))  # type: ignore[union-attr]
        assert shown(keys, most, float(rule.scale), rule.threshold - 1) > delta  # and the threshold is the least


@pytest.mark.claim("X-03")
def test_a_delta_for_one_key_is_caught_where_a_person_brings_three() -> None:
    careless = NoisyThreshold.calibrated(keys=1, most=1, epsilon="1/3", delta="1/200")
    with mpmath.workdps(40):
        assert shown(1, 1, float(careless.scale), careless.threshold) <= 0.005
        assert shown(3, 1, float(careless.scale), careless.threshold) > 0.01
    honest = compose([careless.loss(3)])
    assert honest.delta > Fraction(1, 100)  # type: ignore[union-attr]
    assert honest.epsilon == 1


def test_a_threshold_that_one_person_passes_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold"):
        NoisyThreshold(keys=1, most=5, scale=Fraction(1), threshold=5)
