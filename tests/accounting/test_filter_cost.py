"""What filters charge, and how their losses are read: never too little, and the same on every machine."""

from fractions import Fraction

import pytest

from sfumato.accounting import rdp, zcdp
from sfumato.accounting.filter_cost import DIGITS, SHORT, SPARE, filter_cost, reading
from sfumato.core.budget import Budget
from sfumato.core.events import (
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    PrivacyEvent,
    RandomizedResponse,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import RDP, ZCDP, Approximate, _renyi_epsilon, _settled
from sfumato.errors import Refused, Unsupported

pytestmark = pytest.mark.kills

LAPLACE = DiscreteLaplace(l1=Fraction(1), scale=Fraction(20))
GAUSSIAN = DiscreteGaussian(l2_squared=Fraction(3), sigma_squared=Fraction(987654321987, 1000))
EVENTS: list[PrivacyEvent] = [
    LAPLACE,
    GAUSSIAN,
    BoundedRange(epsilon=Fraction(3, 10)),
    RandomizedResponse(epsilon=Fraction(1, 7), categories=4),
    Composed(events=(LAPLACE, Repeated(event=GAUSSIAN, times=3))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.KIND)
@pytest.mark.parametrize("order", [None, Fraction(2), Fraction(41, 2)])
def test_what_is_charged_is_the_loss_exactly_or_rounded_up(event: PrivacyEvent, order: Fraction | None) -> None:
    loss = zcdp.compose(event).rho if order is None else rdp.compose(event, orders=[order])[0].curve[0][1]
    found = filter_cost(event, order)
    if loss.denominator <= SHORT:
        assert found == loss
    else:
        assert loss * SPARE <= found <= loss * (1 + Fraction(1, 10 ** (DIGITS - 2)))
        assert len(str(found.numerator)) <= DIGITS + 2  # so that sums stay short


def test_short_losses_are_exact_up_to_the_limit_and_not_beyond() -> None:
    short, long = Fraction(1, SHORT), Fraction(1, SHORT + 1)
    assert filter_cost(Stated(guarantee=ZCDP(rho=short)), None) == short
    assert filter_cost(Stated(guarantee=ZCDP(rho=long)), None) > long


@pytest.mark.parametrize("order", [None, Fraction(20)])
def test_a_delta_of_its_own_and_an_event_without_a_loss_are_refused(order: Fraction | None) -> None:
    own = Stated(guarantee=Approximate(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7)))
    with pytest.raises(Refused, match="brings δ = 1e-7, and a filter"):
        filter_cost(own, order)
    with pytest.raises(Unsupported):
        filter_cost(Stated(guarantee=RDP(curve=((Fraction(2), Fraction(1)),))), order)


def test_a_loss_is_read_at_a_delta() -> None:
    delta = Fraction(1, 10**6)
    assert reading(Fraction(0), None, delta) == reading(Fraction(0), Fraction(20), delta) == Budget.none()
    assert reading(Fraction(1, 2), None, delta) == Budget(
        epsilon=ZCDP(rho=Fraction(1, 2)).epsilon_at(delta), delta=delta
    )
    twenty = RDP(curve=((Fraction(20), Fraction(1, 2)),))
    assert reading(Fraction(1, 2), Fraction(20), delta) == Budget(epsilon=twenty.epsilon_at(delta), delta=delta)


@pytest.mark.parametrize("rho", ["1/1000000000000", "1/800", "1/2", "100"])
@pytest.mark.parametrize("delta", ["1/1000000000000", "1/1000000", "1/10"])
def test_wherever_the_search_for_an_order_begins_it_ends_at_the_same_number(rho: str, delta: str) -> None:
    """Floats only say where to begin, and they may say it differently on another machine."""
    loss, room = Fraction(rho), Fraction(delta)

    def value(order: Fraction) -> Fraction:
        return _renyi_epsilon(order, loss * order, room)

    found = ZCDP(rho=loss).epsilon_at(room)
    for near in ("1/100000", "1/3", "2", "30", "5000", "1000000"):
        assert _settled(1 + Fraction(near), value) == found
    grid = [1 + Fraction(2) ** power for power in range(-17, 27)]
    assert all(found <= value(order) for order in grid)
