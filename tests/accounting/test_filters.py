"""The filter admits exactly what fits, and a refusal changes nothing."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import BasicFilter
from sfumato.core.budget import Budget
from sfumato.errors import BudgetExceeded

pytestmark = pytest.mark.kills

costs = st.builds(
    Budget, epsilon=st.fractions("1/20", 2, max_denominator=20), delta=st.fractions(0, "1/20", max_denominator=100)
)


def charges_that_fit(share: Budget, cap: Budget) -> int:
    account, fitted = BasicFilter(budget=cap), 0
    while account.admits(share):
        account, fitted = account.after(share, "demo"), fitted + 1
    assert account.spent.epsilon == fitted * share.epsilon
    return fitted


@pytest.mark.claim("S4-03")
@pytest.mark.parametrize("tenth", [0.1, "0.1", "1/10", Fraction(1, 10)])
def test_a_tenth_fits_ten_times_into_one_and_the_eleventh_is_refused(tenth):
    account = BasicFilter(budget=Budget(epsilon=1))
    for _ in range(10):
        account = account.after(Budget.asked(epsilon=tenth), "demo")
    assert account.spent == account.budget == Budget(epsilon=1)
    assert account.left == Budget.none()
    with pytest.raises(BudgetExceeded, match="'demo' has ε = 0 left; this release asks for ε = 1/10"):
        account.after(Budget.asked(epsilon=tenth), "demo")
    assert account.spent == Budget(epsilon=1)


@pytest.mark.claim("S4-03")
def test_the_twin_that_adds_floats_counts_wrong():
    assert sum([0.1] * 3) > 0.3
    assert 0.3 // 0.1 == 2
    spent = fitted = 0
    while spent + 0.1 <= 0.3:
        spent, fitted = spent + 0.1, fitted + 1
    assert fitted == 2
    assert charges_that_fit(Budget(epsilon=0.1), Budget(epsilon=0.3)) == 3


@pytest.mark.claim("S4-03")
@pytest.mark.parametrize("share", ["1/10", "1/3", "0.3", "1", "3/2", "7/50"])
def test_as_many_equal_shares_fit_as_the_whole_part_of_the_quotient(share):
    assert charges_that_fit(Budget(epsilon=share), Budget(epsilon=1)) == 1 // Fraction(share)


@settings(max_examples=30, deadline=None)
@given(asked=st.lists(costs, max_size=12))
def test_what_was_admitted_never_exceeds_the_budget_and_what_was_refused_did_not_fit(asked):
    cap = Budget(epsilon=4, delta="1/10")
    account, epsilon, delta = BasicFilter(budget=cap), Fraction(0), Fraction(0)
    for cost in asked:
        fits = epsilon + cost.epsilon <= 4 and delta + cost.delta <= Fraction(1, 10)
        assert account.admits(cost) is fits
        if fits:
            account, epsilon, delta = account.after(cost, "demo"), epsilon + cost.epsilon, delta + cost.delta
        else:
            with pytest.raises(BudgetExceeded):
                account.after(cost, "demo")
        assert (account.spent.epsilon, account.spent.delta) == (epsilon, delta)
        assert account.spent + account.left == cap
        assert account.budget == cap


def test_delta_runs_out_on_its_own():
    account = BasicFilter(budget=Budget(epsilon=10, delta="1/1000")).after(Budget(epsilon=1, delta="1/1000"), "demo")
    assert account.admits(Budget(epsilon=9))
    assert not account.admits(Budget(epsilon=1, delta=1e-9))


def test_a_refusal_says_what_is_left_what_was_asked_and_what_to_do():
    account = BasicFilter(budget=Budget(epsilon=1, delta="1/100"), spent=Budget(epsilon="1/2", delta="1/200"))
    with pytest.raises(BudgetExceeded) as refusal:
        account.after(Budget(epsilon="3/4", delta="1/1000"), "oncology/readmissions")
    assert str(refusal.value).splitlines() == [
        "'oncology/readmissions' has ε = 1/2, δ = 1/200 left; this release asks for ε = 3/4, δ = 1/1000.",
        "Nothing was read and nothing was spent.",
        "Ask for at most ε = 1/2, δ = 1/200, or have whoever answers for the budget raise it.",
    ]
