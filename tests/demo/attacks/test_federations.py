"""S1-15: what a coordinator has of federated training gives people away, unless rounds are private; then within ε."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from tests.demo.attacks.federations import (
    LARGE,
    Patients,
    epsilon_shown,
    members_named,
    product_weights,
    records_read,
    unprotected_weights,
    victims_named,
)
from tests.federated.hospitals import without_noise

ALPHA = 1e-10
EPSILON, DELTA, LR = 1.0, 1e-6, 1e-4


@pytest.fixture(scope="module")
def patients() -> Patients:
    return Patients.invented(suspects=110, victims=20)


def check_within(patients: Patients, weights: list[np.ndarray]) -> None:
    """Both attacks stay within what (ε, δ) allows, with a chance below α for each that sound rounds are refuted.

    The update of a member is cut to 1, and half of its square lies in the weight of the first class.
    """
    suspects, victims = len(patients.present), len(patients.true)
    one = (len(weights) - 1) / (math.sqrt(2) * patients.declared)
    assert epsilon_shown(members_named(patients, weights, one=one), suspects, delta=DELTA, alpha=ALPHA) <= EPSILON
    allowed = math.exp(EPSILON) / len(patients.candidates) + DELTA
    assert binom.sf(victims_named(patients, weights) - 1, victims, allowed) > ALPHA


@pytest.mark.claim("S1-15")
@pytest.mark.parametrize("steps", [1, 3])
def test_plain_federated_averaging_gives_every_member_and_every_record_away(patients: Patients, steps: int) -> None:
    weights = unprotected_weights(patients, local_steps=steps, lr=LR)
    one = steps * LR * LARGE / 2 / len(patients.inputs)
    assert members_named(patients, weights, one=one) == len(patients.present)
    assert epsilon_shown(len(patients.present), len(patients.present), delta=DELTA, alpha=ALPHA) > EPSILON
    np.testing.assert_allclose(records_read(patients, weights), patients.candidates[patients.true], atol=1e-4 * LARGE)
    assert victims_named(patients, weights) == len(patients.true)


@pytest.mark.claim("S1-15")
@pytest.mark.alpha(2e-10)
def test_the_same_attacks_on_rounds_of_a_consortium_stay_within_epsilon(patients: Patients) -> None:
    """Guesses at different people are made from different numbers and are independent: counts are below a binomial."""
    check_within(patients, product_weights(patients, epsilon=EPSILON, delta=DELTA))


def test_without_noise_sums_of_clipped_updates_give_everybody_away(
    patients: Patients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken copy: masks and a clip alone protect nobody, and the test above sees that."""
    without_noise(monkeypatch)
    weights = product_weights(patients, epsilon=EPSILON, delta=DELTA)
    assert victims_named(patients, weights) == len(patients.true)
    with pytest.raises(AssertionError):
        check_within(patients, weights)


@pytest.mark.long
@pytest.mark.claim("S1-15")
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("said", [{}, {"local_steps": 3, "local_lr": 1e-4}])
def test_more_people_and_more_rounds_stay_within_epsilon(said: dict[str, float]) -> None:
    many = Patients.invented(suspects=1000, victims=150, candidates=30)
    weights = unprotected_weights(many, rounds=3, local_steps=3, lr=LR)
    assert members_named(many, weights, one=9 * LR * LARGE / 2 / len(many.inputs)) == 1000
    assert victims_named(many, weights) == 150
    check_within(many, product_weights(many, epsilon=EPSILON, delta=DELTA, rounds=3, **said))
