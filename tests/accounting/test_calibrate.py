"""Any one parameter from the others, and always on the safe side."""

import subprocess
import sys
from fractions import Fraction

import pytest

from sfumato import accounting
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


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "rate"), [(8, 1e-6, 1000, "0.05"), ("0.1", 1e-8, 10, "0.001"), (50, 1e-3, 20, "0.9")]
)
def test_the_least_sigma_is_safe_and_no_smaller_one_is(epsilon, delta, steps, rate):
    sigma = accounting.calibrate_sigma(epsilon=epsilon, delta=delta, steps=steps, sampling=rate)
    target = Fraction(epsilon)
    assert accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=rate), delta=delta) <= target
    less = accounting.plan(sigma=sigma * Fraction("0.998"), steps=steps, sampling=rate)
    assert accounting.epsilon(less, delta=delta) > target * Fraction("0.9999")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidInput, match="promises nothing"):
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
