"""What is chosen on the way: filters and odometers hold, a privacy loss distribution does not."""

from fractions import Fraction

import pytest

from sfumato import accounting
from sfumato.accounting import filters, pld
from sfumato.core.budget import Budget
from sfumato.core.events import (
    BoundedRange,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import RDP, ZCDP, Approximate, Pure
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused, Unsupported
from tests.core.truth import four_points, hockey_stick, mp, number, randomised_response

pytestmark = pytest.mark.kills


@pytest.mark.claim("X-09")
def test_a_second_release_that_depends_on_the_first_reaches_more_than_every_list_of_events():
    """After a 'yes' randomised response, after a 'no' a release that tells with probability δ."""
    epsilon, first, second = Fraction(1), Fraction(1, 2), Fraction(9, 10)
    (yes, no), (yes_other, no_other) = randomised_response(mp.exp(number(first)))
    p, q = randomised_response(mp.exp(number(second)))
    factor = mp.exp(number(epsilon))
    pure = hockey_stick(
        [yes * x for x in p] + [no * x for x in p], [yes_other * x for x in q] + [no_other * x for x in q], factor
    )
    tells = Fraction(float(pure))
    a, b = four_points(mp.mpf(1), number(tells))
    adaptive = hockey_stick(
        [yes * x for x in p] + [no * x for x in a], [yes_other * x for x in q] + [no_other * x for x in b], factor
    )
    start = Stated(guarantee=Pure(epsilon=first))
    lists = [
        [start, Stated(guarantee=Pure(epsilon=second))],
        [start, Stated(guarantee=Approximate(epsilon=Fraction(0), delta=tells))],
    ]
    by_outcome = max(accounting.delta(events, epsilon=epsilon) for events in lists)
    assert number(by_outcome) * mp.mpf("1.3") < adaptive
    joint = Budget(epsilon=first + second, delta=tells)
    inside = [yes * x for x in p] + [no * x for x in a], [yes_other * x for x in q] + [no_other * x for x in b]
    assert hockey_stick(*inside, mp.exp(number(joint.epsilon))) <= number(joint.delta)


@pytest.mark.claim("X-09")
@pytest.mark.parametrize("method", ["pld", "advanced", "optimal"])
def test_accountants_for_fixed_plans_make_no_filter(method):
    with pytest.raises(Refused, match="fixed beforehand"):
        accounting.open_filter(Budget(epsilon=1, delta=1e-6), method=method)
    assert not [
        name for name in (*filters.__all__, *pld.__all__) if "filter" in name.lower() and method in name.lower()
    ]


def test_filters_are_opened_by_name():
    budget = Budget(epsilon=1, delta=1e-6)
    assert accounting.open_filter(budget, method="basic") == accounting.BasicFilter(budget=budget)
    assert accounting.open_filter(budget, method="zcdp") == accounting.ZCDPFilter.within(budget)
    assert accounting.open_filter(budget, method="rdp", order=8) == accounting.RDPFilter.within(budget, order=8)
    with pytest.raises(NotDeclared, match="one order"):
        accounting.open_filter(budget, method="rdp")
    with pytest.raises(InvalidInput, match="makes no filter"):
        accounting.open_filter(budget, method="moments")


def gauss(sigma: int) -> Gaussian:
    return Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(sigma) ** 2)


def test_the_zcdp_filter_admits_up_to_rho_and_a_refusal_changes_nothing():
    account = accounting.ZCDPFilter(rho=Fraction(1, 8))
    for _ in range(4):
        account = account.after(gauss(4), "ward")
    assert account.spent == account.rho == Fraction(1, 8)
    assert account.left == 0
    assert not account.admits(gauss(4))
    assert account.admits(DiscreteLaplace(l1=Fraction(0), scale=Fraction(1)))
    with pytest.raises(BudgetExceeded, match=r"'ward' has ρ = 0 left; this release asks for 1/32"):
        account.after(gauss(4), "ward")
    with pytest.raises(Refused, match="holds no δ"):
        account.admits(Stated(guarantee=Approximate(epsilon=Fraction(0), delta=Fraction(1, 10**6))))
    with pytest.raises(Unsupported, match="not concentrated"):
        account.admits(PoissonSampled(rate=Fraction(1, 2), event=gauss(4)))


def test_the_zcdp_filter_of_a_budget_is_the_largest_within_it():
    budget = Budget(epsilon=1, delta=1e-6)
    account = accounting.ZCDPFilter.within(budget)
    assert (
        ZCDP(rho=account.rho).epsilon_at(1e-6) <= 1 < ZCDP(rho=account.rho * (1 + Fraction(1, 10**8))).epsilon_at(1e-6)
    )
    assert account.guarantee(1e-6).epsilon <= 1
    assert accounting.ZCDPFilter.within(Budget(epsilon=1000, delta=1e-6)).rho > 500
    assert 0 < accounting.ZCDPFilter.within(Budget(epsilon=0, delta=1e-6)).rho < Fraction(1, 10**6)
    assert accounting.ZCDPFilter.within(Budget(epsilon=0, delta=1e-30)).rho == 0
    with pytest.raises(InvalidInput, match="delta"):
        accounting.ZCDPFilter.within(Budget(epsilon=1))


def test_the_rdp_filter_keeps_to_its_order():
    account = accounting.RDPFilter(order=Fraction(8), loss=Fraction(1))
    account = account.after(gauss(2), "ward")
    assert (account.spent, account.left) == (Fraction(1), Fraction(0))
    with pytest.raises(BudgetExceeded, match=r"Rényi loss of order 8 = 0 left; this release asks for 1/100"):
        account.after(gauss(20), "ward")
    filled = accounting.RDPFilter.within(Budget(epsilon=2, delta=1e-6), order="15")
    assert (
        RDP(curve=((Fraction(15), filled.loss),)).epsilon_at(1e-6)
        <= 2
        < filled.guarantee(1e-6).epsilon + Fraction(1, 10**6)
    )
    assert filled.admits(PoissonSampled(rate=Fraction(1, 100), event=gauss(4)))
    with pytest.raises(Refused, match="holds no δ"):
        filled.admits(Stated(guarantee=Approximate(epsilon=Fraction(0), delta=Fraction(1, 10**6))))
    for wrong in (1, "1/2"):
        with pytest.raises(InvalidInput, match="above 1"):
            accounting.RDPFilter.within(Budget(epsilon=2, delta=1e-6), order=wrong)
        with pytest.raises(InvalidInput, match="above 1"):
            accounting.RDPFilter(order=Fraction(wrong), loss=Fraction(1))


def test_the_basic_odometer_shows_sums():
    meter = accounting.BasicOdometer()
    assert meter.shown == Budget.none()
    meter = meter.after(BoundedRange(epsilon=Fraction(1, 4))).after(
        Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(1, 9)))
    )
    assert meter.shown == Budget(epsilon=Fraction(5, 4), delta=Fraction(1, 9))


def test_the_zcdp_odometer_climbs_through_doubling_filters():
    meter = accounting.ZCDPOdometer.start(first="1/32", delta=1e-6)
    assert (meter.level, meter.shown) == (0, Budget.none())
    shown = []
    for spent, level in ((1, 0), (2, 1), (3, 2), (4, 2), (5, 3)):
        meter = meter.after(gauss(4))
        assert (meter.spent, meter.level) == (Fraction(spent, 32), level)
        share = Fraction(1, 10**6) / 2 ** (level + 1)
        assert meter.shown == Budget(epsilon=ZCDP(rho=Fraction(2**level, 32)).epsilon_at(share), delta=share)
        shown.append(meter.shown.epsilon)
    assert shown == sorted(shown)
    between = accounting.ZCDPOdometer.start(first="1/32", delta=1e-6).after(Stated(guarantee=ZCDP(rho=Fraction(3, 64))))
    assert between.level == 1
    with pytest.raises(Refused, match="holds no δ"):
        meter.after(Stated(guarantee=Approximate(epsilon=Fraction(0), delta=Fraction(1, 10**6))))


def test_repetitions_are_charged_in_full():
    account = accounting.ZCDPFilter(rho=Fraction(1)).after(Repeated(event=gauss(4), times=32), "ward")
    assert account.left == 0
