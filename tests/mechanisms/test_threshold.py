"""Noisy threshold: the δ of keys that one person brings, worked out exactly."""

from fractions import Fraction

import mpmath
import pytest
from scipy.stats import binom

from sfumato.accounting import compose
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.events import from_json
from sfumato.core.sensitivity import Sensitivity
from sfumato.mechanisms import NoisyThreshold
from sfumato.noise import SystemWords

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


@pytest.mark.claim("X-03")
@pytest.mark.alpha(2e-9)
def test_opendp_2922_the_delta_of_a_threshold_is_not_that_of_one_key_alone() -> None:
    """There δ = 0.0049 was reported for a person with several keys, and 0.0132 to 0.0137 was measured.

    Here persons with three keys of their own are put through what really draws: 200,000 of them, exact binomial test at
    α = 1e-9. The δ that we state is kept, and the δ of one key is refuted by the same persons.
    """
    persons, keys, alpha = 200_000, 3, 1e-9
    rule = NoisyThreshold.calibrated(keys=1, most=1, epsilon="1/3", delta="49/10000")
    told = rule.show({(person, key): 1 for person in range(persons) for key in range(keys)}, SystemWords())
    exposed = len({person for person, _ in told})
    of_one, of_three = (float(rule.loss(some).events[1].guarantee.delta) for some in (1, keys))  # type: ignore[union-attr]
    assert of_one <= 0.0049
    assert 2.9 * of_one < of_three < 3 * of_one
    assert binom.sf(exposed - 1, persons, of_three) > alpha  # what is stated is kept,
    assert binom.cdf(exposed, persons, of_three) > alpha  # and is no more than what happens,
    assert binom.sf(exposed - 1, persons, of_one) < alpha  # where the δ of one key is not


def test_a_threshold_calibrated_for_several_keys_keeps_its_delta_where_counts_are_of_rows() -> None:
    """m is what one person adds to one key: a threshold for m = 1 is passed far more often by a person with 4 rows."""
    for most in (1, 4):
        rule = NoisyThreshold.calibrated(keys=2, most=most, epsilon=1, delta="1/1000")
        with mpmath.workdps(40):
            assert shown(2, most, float(rule.scale), rule.threshold) <= 0.001
            assert shown(2, most + 3, float(rule.scale), rule.threshold) > 0.001
    assert compose([rule.loss(Sensitivity.of(l0=4, linf=4))]).epsilon == 2  # twice as many keys under replace


@pytest.mark.parametrize("keys", [1, 60, 1000, 10_000])
def test_the_delta_of_many_keys_is_short_enough_to_be_written_down_and_read_again(keys: int) -> None:
    """Once it had as many digits as the power has; then the document could not be read."""
    event = NoisyThreshold.calibrated(keys=keys, most=1, epsilon=1, delta=1e-6).event
    text = canonical(encode(event))
    assert len(text) < 4_000
    assert canonical(parse(text)) == text
    assert from_json(text) == event
    assert event.events[1].guarantee.delta <= Fraction(1, 10**6)  # type: ignore[union-attr]
