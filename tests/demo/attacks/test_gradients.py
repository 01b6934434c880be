"""Gradient inversion: exact updates hold the row; clipped and noisy ones stay within what (ε, δ) allows."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.guarantees import Approximate
from sfumato.demo.attacks import gradients
from sfumato.demo.attacks.gradients import demonstrate_gradient_inversion, features, invert, private_updates, updates
from sfumato.demo.attacks.hospital import Register
from sfumato.errors import InvalidInput

ALPHA = 1e-10


@pytest.fixture(scope="module")
def found(hospital: Register):
    return demonstrate_gradient_inversion(hospital, candidates=40, times=10)


def test_an_exact_update_holds_the_row_of_the_patient(found):
    assert found.worst < 1e-12
    assert found.inverted == pytest.approx(found.true, abs=1e-12)
    assert found.right_without == found.candidates == 40


@pytest.mark.claim("S1-15")
@pytest.mark.alpha(1e-10)
def test_a_federated_update_without_noise_names_everybody_and_with_dp_stays_within_the_bound(found):
    """Tries are independent, each right with a mean chance of at most e^ε/40 + δ: the binomial bounds their sum."""
    assert found.right_without / found.candidates == 1.0
    assert found.allowed == pytest.approx(np.e / 40 + 1e-6)
    assert binom.sf(found.right - 1, found.tries, found.allowed) > ALPHA


@pytest.mark.alpha(1e-9)
def test_a_noisy_update_does_not_hold_it(found):
    """That 15 numbers of noise all come within 0.01 of the row has a probability below 1e-15."""
    assert np.abs(np.array(found.noisy) - np.array(found.true)).max() > 0.01


def test_the_noise_is_calibrated_for_a_clipped_update(hospital):
    rows = features(hospital.some(np.arange(3)))
    sent = 50 * updates(rows, np.array([0, 1, 2]), weights=np.zeros((8, rows.shape[1] + 1)))
    noisy, mechanism = private_updates(sent, epsilon=1, delta=Fraction(1, 10**6))
    assert noisy.shape == sent.shape
    assert mechanism.l2_squared == gradients.GRID**2
    bound = Approximate(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    from sfumato.accounting import epsilon

    assert epsilon(mechanism.event, delta=bound.delta) <= bound.epsilon


def test_what_noise_is_added_to_has_length_1_at_most(hospital, monkeypatch):
    held = []
    monkeypatch.setattr(gradients.Gaussian, "add_noise", lambda self, exact, words: held.append(exact) or exact)
    rows = features(hospital.some(np.arange(20)))
    sent = updates(rows, np.zeros(20, dtype=np.int64), weights=np.zeros((8, rows.shape[1] + 1)))
    private_updates(np.concatenate([sent, 1000 * sent]), epsilon=1, delta=Fraction(1, 10**6))
    lengths = [sum(number**2 for number in part) for part in np.array(held[0], dtype=object).reshape(40, -1)]
    assert max(lengths) <= gradients.GRID**2
    assert min(lengths[20:]) > 0.99 * gradients.GRID**2


def test_the_gradient_is_that_of_the_loss(hospital):
    rows = features(hospital.some(np.arange(2)))
    weights = np.random.default_rng(0).normal(size=(8, rows.shape[1] + 1))
    sent = updates(rows, np.array([3, 5]), weights=weights)

    def loss(at: np.ndarray, place: int, label: int) -> float:
        scores = at @ np.append(rows[place], 1.0)
        return float(np.log(np.exp(scores).sum()) - scores[label])

    for place, label in ((0, 3), (1, 5)):
        for spot in ((0, 0), (label, 2), (7, rows.shape[1])):
            moved = weights.copy()
            moved[spot] += 1e-6
            slope = (loss(moved, place, label) - loss(weights, place, label)) / 1e-6
            assert sent[place][spot] == pytest.approx(slope, abs=1e-4)


def test_nonsense_is_refused(hospital):
    with pytest.raises(InvalidInput, match="nothing to divide by"):
        invert(np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="fewer patients than candidates"):
        demonstrate_gradient_inversion(hospital.some(np.arange(5)), candidates=9)
