"""Any one parameter from the others, and always on the safe side."""

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from scipy.stats import norm

from sfumato import accounting
from sfumato.accounting.calibrate import _power_search
from sfumato.errors import InvalidInput, Refused


@pytest.mark.parametrize(("sigma", "epsilon", "steps"), [("1.2", 2, 500), ("4", 1, 100), ("0.8", 8, 50)])
def test_the_largest_rate_is_safe_and_no_larger_one_is(sigma, epsilon, steps):
    rate = accounting.calibrate_rate(sigma=sigma, epsilon=epsilon, delta=1e-5, steps=steps)
    assert accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=rate), delta=1e-5) <= epsilon
    more = min(Fraction(1), rate * Fraction("1.002"))
    assert accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=more), delta=1e-5) > epsilon


def test_a_rate_of_one_where_nothing_need_be_sampled():
    assert accounting.calibrate_rate(sigma=100, epsilon=1, delta=1e-5, steps=10) == 1


@pytest.mark.parametrize(("sigma", "rate"), [("1", "0.01"), ("20", 1)])
def test_the_largest_number_of_steps_is_safe_and_one_more_is_not(sigma, rate):
    steps = accounting.calibrate_steps(sigma=sigma, epsilon=1, delta=1e-6, sampling=rate)
    assert steps > 1
    assert accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=rate), delta=1e-6) <= 1
    assert accounting.epsilon(accounting.plan(sigma=sigma, steps=steps + 1, sampling=rate), delta=1e-6) > 1


def test_where_a_single_step_is_too_much():
    with pytest.raises(Refused, match="single step"):
        accounting.calibrate_steps(sigma="0.1", epsilon=1, delta=1e-6)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "rate"),
    [(8, 1e-6, 1000, "0.05"), ("0.1", 1e-8, 10, "0.001"), (50, 1e-3, 20, "0.9")]
    + [(epsilon, 1e-5, 1, "0.25") for epsilon in (50, 200, 400)]
    + [(900, 1e-5, 4, "0.5")],
)
def test_the_least_sigma_is_safe_and_no_smaller_one_is(epsilon, delta, steps, rate):
    sigma = accounting.calibrate_sigma(epsilon=epsilon, delta=delta, steps=steps, sampling=rate)
    target = Fraction(epsilon)
    assert accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=rate), delta=delta) <= target
    less = accounting.plan(sigma=sigma * Fraction("0.998"), steps=steps, sampling=rate)
    assert accounting.epsilon(less, delta=delta) > target * Fraction("0.9999")


@pytest.mark.long
def test_a_search_that_comes_by_noise_too_small_to_account_for_goes_on_to_what_can_be_accounted_for():
    steps = accounting.calibrate_steps(sigma="0.05", epsilon=700, delta=1e-5, sampling="0.25")
    assert accounting.epsilon(accounting.plan(sigma="0.05", steps=steps, sampling="0.25"), delta=1e-5) <= 700
    assert accounting.epsilon(accounting.plan(sigma="0.05", steps=steps + 1, sampling="0.25"), delta=1e-5) > 700
    rate = accounting.calibrate_rate(sigma="0.03", epsilon=400, delta=1e-5, steps=1)
    assert accounting.epsilon(accounting.plan(sigma="0.03", steps=1, sampling=rate), delta=1e-5) <= 400


@pytest.mark.parametrize("start", [1e-3, 0.03, 0.3, 30.0])
def test_beyond_what_can_be_accounted_for_the_least_that_can_be_is_found(start):
    def spent(sigma: float) -> float:
        return math.inf if sigma < 0.036 else 18 / sigma

    assert 0.036 <= _power_search(spent, start, 10_000.0, 1e-4, 0.0) <= 0.036001


@pytest.mark.parametrize("epsilon", [50, 200, 400])
def test_the_noise_of_one_step_for_a_large_epsilon_keeps_delta_by_the_closed_formula(epsilon):
    rate, delta = 0.25, 1e-5
    mu = 1 / float(accounting.calibrate_sigma(epsilon=epsilon, delta=delta, steps=1, sampling="0.25"))
    odds = epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)  # of 1 against 0, at a loss of ε
    far = odds / mu
    first, second = norm.logsf(far - mu / 2), norm.logsf(far + mu / 2) + odds
    assert delta * 0.98 <= rate * math.exp(first) * -math.expm1(second - first) <= delta


def test_a_delta_below_the_floor_is_refused_and_not_taken_for_too_little_noise():
    with pytest.raises(Refused, match="floor"):
        accounting.calibrate_sigma(epsilon=1, delta=1e-25, steps=10, sampling="0.1")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidInput, match="guarantees nothing"):
        accounting.calibrate_sigma(epsilon=1, delta=1, steps=10, sampling=0.1)
    with pytest.raises(InvalidInput, match="sampling"):
        accounting.plan(sigma=1, steps=1, sampling=0)
    with pytest.raises(InvalidInput, match="steps"):
        accounting.plan(sigma=1, steps=0)


def test_importing_and_basic_accounting_load_neither_numpy_nor_scipy():
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['scipy'] = None\n"
        "from sfumato import accounting\n"
        "from sfumato.core.events import BoundedRange\n"
        "from fractions import Fraction\n"
        "steps = [BoundedRange(epsilon=Fraction(1, 10))] * 50\n"
        "print([float(round(accounting.epsilon(steps, delta=1e-6, method=m), 3)) "
        "for m in ('basic', 'advanced', 'zcdp', 'optimal')])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.count(",") == 3
