"""Amounts of privacy loss add and compare without rounding."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput

pytestmark = pytest.mark.kills

budgets = st.builds(
    Budget, epsilon=st.fractions(0, 5, max_denominator=50), delta=st.fractions(0, "1/3", max_denominator=50)
)


@pytest.mark.parametrize(
    ("epsilon", "delta", "fits"),
    [
        ("1", "1/100", True),
        ("99/100", "1/1000", True),
        ("1", "0", True),
        ("0", "0", True),
        ("101/100", "1/100", False),
        ("1", "11/1000", False),
        ("2", "1/10", False),
    ],
)
def test_both_parts_must_fit_and_equality_fits(epsilon, delta, fits):
    assert Budget(epsilon=1, delta="1/100").covers(Budget(epsilon=epsilon, delta=delta)) is fits


@given(a=budgets, b=budgets)
def test_sums_are_exact_and_undone_exactly(a, b):
    total = a + b
    assert (total.epsilon, total.delta) == (a.epsilon + b.epsilon, a.delta + b.delta)
    assert total - b == a
    assert total.covers(a)
    assert a.covers(total) is (b == Budget.none())
    assert a + Budget.none() == a


def test_delta_is_a_probability_even_in_a_sum():
    assert Budget(epsilon=1, delta="2/3") + Budget(epsilon=1, delta="2/3") == Budget(epsilon=2, delta=1)


def test_more_cannot_be_taken_than_is_there():
    with pytest.raises(InvalidInput, match="epsilon = -1/2 must not be below 0"):
        Budget(epsilon="1/2") - Budget(epsilon=1)
    with pytest.raises(InvalidInput, match="delta = -1/10 is outside 0 to 1"):
        Budget(epsilon=1) - Budget(epsilon=1, delta="1/10")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (-1, "epsilon = -1 must be above 0"),
        (0, "epsilon = 0 must be above 0"),
        (float("nan"), "epsilon = nan is not a finite number"),
        (float("inf"), "epsilon = inf is not a finite number"),
        (True, "epsilon is bool"),
        ("plenty", "epsilon = 'plenty' is not a number"),
        (None, "epsilon is NoneType"),
        ([1], "epsilon is list"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(bad, says):
    with pytest.raises(InvalidInput, match=f"{says}.*nothing was done|{says}; nothing was done"):
        Budget.asked(epsilon=bad)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (-1, "delta = -1 is outside 0 to 1"),
        (1, "delta = 1 guarantees nothing"),
        (2, "delta = 2 is outside 0 to 1"),
        (float("nan"), "delta = nan is not a finite number"),
        (True, "delta is bool"),
    ],
)
def test_a_delta_that_promises_nothing_is_refused(bad, says):
    with pytest.raises(InvalidInput, match=says):
        Budget.asked(epsilon=1, delta=bad)


def test_floats_mean_the_decimal_that_they_print_as():
    assert Budget.asked(epsilon=0.1, delta=1e-5) == Budget(epsilon=Fraction(1, 10), delta=Fraction(1, 10**5))


def test_a_budget_reads_as_people_write_it_and_never_as_zero():
    assert str(Budget(epsilon="1/2")) == "ε = 1/2"
    assert str(Budget(epsilon=3, delta=1e-9)) == "ε = 3, δ = 1/1000000000"
