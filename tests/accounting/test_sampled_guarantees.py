"""What a run of noise on samples promises: what the accountant finds it to keep, and no more."""

from fractions import Fraction

import pytest

from sfumato.accounting import calibrate_sigma, plan
from sfumato.accounting.basic import guarantee_of
from sfumato.core.budget import Budget
from sfumato.core.guarantees import Approximate
from sfumato.errors import Refused

CASES = [
    (Fraction(1, 100), 1000, 1, Fraction(1, 10**5)),
    (Fraction(176, 60000), 1, 24, Fraction(1, 10**12)),  # whose δ on its own grid lies a hair above
    (Fraction(147, 60000), 1, Fraction(3, 5), Fraction(1, 10**12)),
    (Fraction(1, 2), 30, 8, Fraction(1, 10**7)),
    (Fraction(1), 50, 2, Fraction(1, 10**6)),
]


@pytest.mark.parametrize(("rate", "steps", "epsilon", "delta"), CASES)
def test_calibrated_noise_keeps_what_it_was_calibrated_for(
    rate: Fraction, steps: int, epsilon: Fraction, delta: Fraction
) -> None:
    asked = Budget(epsilon=epsilon, delta=delta)
    sigma = calibrate_sigma(epsilon=epsilon, delta=delta, steps=steps, sampling=rate)
    assert guarantee_of(plan(sigma=sigma, steps=steps, sampling=rate), asked) == Approximate(
        epsilon=epsilon, delta=delta
    )
    with pytest.raises(Refused, match="does not keep"):
        guarantee_of(plan(sigma=sigma * Fraction(99, 100), steps=steps, sampling=rate), asked)
    with pytest.raises(Refused, match="does not keep"):
        guarantee_of(plan(sigma=sigma, steps=steps + max(1, steps // 50), sampling=rate), asked)


def test_gaussian_noise_on_samples_promises_nothing_without_a_delta() -> None:
    with pytest.raises(Refused, match="does not keep"):
        guarantee_of(plan(sigma=100, steps=1, sampling=Fraction(1, 2)), Budget(epsilon=9))
