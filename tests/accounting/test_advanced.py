"""Advanced composition beside what it bounds: products of randomised responses, written out output by output."""

from fractions import Fraction
from itertools import pairwise

import pytest

from sfumato.accounting import advanced
from sfumato.core.events import RandomizedResponse, Repeated, Stated
from sfumato.core.guarantees import Approximate, Pure
from sfumato.errors import InvalidInput, Refused
from tests.core.truth import (
    four_points,
    least_delta,
    mp,
    number,
    randomised_response,
    rounded_up,
    side_by_side,
)

pytestmark = pytest.mark.kills

LISTS = [
    [Fraction(1, 2)] * 8,
    [Fraction(1, 5)] * 9,
    [Fraction(1), Fraction(1, 2), Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), Fraction(1, 8)],
]


def steps(epsilons):
    return [Stated(guarantee=Pure(epsilon=epsilon)) for epsilon in epsilons]


def product(epsilons):
    laws = [randomised_response(mp.exp(number(epsilon))) for epsilon in epsilons]
    return [side_by_side(*(law[side] for law in laws)) for side in (0, 1)]


@pytest.mark.parametrize("epsilons", LISTS)
@pytest.mark.parametrize("slack", ["1/10", "1/100", "1/1000"])
def test_the_bound_covers_a_product_of_randomised_responses(epsilons, slack):
    found = advanced.compose(steps(epsilons), slack=slack)
    p, q = product(epsilons)
    truth = least_delta(p, q, mp.exp(number(found.epsilon)))
    assert truth <= number(Fraction(slack))
    assert found.delta == Fraction(slack)
    assert found.epsilon <= sum(epsilons)


@pytest.mark.parametrize("epsilons", LISTS)
def test_delta_falls_with_epsilon_from_one_to_nothing_and_covers_the_truth(epsilons):
    p, q = product(epsilons)
    most = sum(epsilons)
    places = [most * share / 10 for share in range(11)]
    found = [advanced.delta(steps(epsilons), epsilon=place) for place in places]
    assert (found[0], found[-1]) == (1, 0)
    assert all(more >= less for more, less in pairwise(found))
    for place, value in zip(places, found, strict=True):
        assert least_delta(p, q, mp.exp(number(place))) <= number(value)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_the_drift_is_the_mean_loss_of_randomised_response(epsilon):
    """With no room for doubt, δ̃ = 1, what is left is the mean."""
    p, q = randomised_response(mp.exp(number(epsilon)))
    mean = mp.fsum(a * mp.log(a / b) for a, b in zip(p, q, strict=True))
    assert rounded_up(advanced.compose(steps([epsilon]), slack=1).epsilon, mean, 1e-30)
    assert advanced.delta(steps([epsilon]), epsilon=number_below(mean)) == 1
    assert advanced.delta(steps([epsilon]), epsilon=(epsilon + number_above(mean)) / 2) < 1


def number_below(value: object) -> Fraction:
    return Fraction(float(value)) * Fraction(999, 1000)


def number_above(value: object) -> Fraction:
    return Fraction(float(value)) * Fraction(1001, 1000)


@pytest.mark.parametrize("count", [1, 40, 1440])
@pytest.mark.parametrize("epsilon", ["1/20", "1"])
def test_the_textbook_is_never_tighter(count, epsilon):
    step = Stated(guarantee=Approximate(epsilon=Fraction(epsilon), delta=Fraction("1e-8")))
    ours = advanced.compose(Repeated(event=step, times=count), slack="1e-7")
    book = advanced.textbook(epsilon=epsilon, delta="1e-8", times=count, slack="1e-7")
    assert ours.epsilon <= book.epsilon
    assert ours.delta == book.delta


def test_the_own_delta_of_steps_is_set_aside():
    """The worst steps of their kind: with probability δ they tell, else they are randomised response."""
    epsilon, own = Fraction(1, 2), Fraction(1, 100)
    told = [Stated(guarantee=Approximate(epsilon=epsilon, delta=own))] * 4
    total = advanced.compose(told, slack="1/20")
    laws = [four_points(mp.exp(number(epsilon)), number(own))] * 4
    p, q = (side_by_side(*(law[side] for law in laws)) for side in (0, 1))
    assert least_delta(p, q, mp.exp(number(total.epsilon))) <= number(total.delta)
    assert total.delta == Fraction(4, 100) + Fraction(1, 20)


def test_at_the_own_delta_only_the_plain_sum_is_left_and_below_it_nothing():
    told = [Stated(guarantee=Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 100)))] * 40
    assert advanced.epsilon(told, delta="4/10") == 20
    assert advanced.epsilon(told, delta="41/100") < 20
    with pytest.raises(Refused, match="add up to 2/5"):
        advanced.epsilon(told, delta="399/1000")
    assert advanced.delta(told, epsilon=20) == Fraction(2, 5)
    assert advanced.delta(told, epsilon="1999/100") > Fraction(2, 5)


def test_few_steps_cost_their_sum_whatever_the_slack():
    two = [RandomizedResponse(epsilon=Fraction(1, 3), categories=2)] * 2
    assert advanced.compose(two, slack="1e-9").epsilon == advanced.epsilon(two, delta="1e-9") == Fraction(2, 3)


@pytest.mark.parametrize("slack", [0, "-1/2", "3/2"])
def test_a_slack_is_a_probability_above_zero(slack):
    for compose in (
        lambda: advanced.compose(steps([Fraction(1)]), slack=slack),
        lambda: advanced.textbook(epsilon=1, delta=0, times=1, slack=slack),
    ):
        with pytest.raises(InvalidInput, match="slack"):
            compose()


def test_a_billion_steps_take_no_longer_than_one():
    step = Stated(guarantee=Pure(epsilon=Fraction(1, 10**6)))
    many = Repeated(event=step, times=10**9)
    assert advanced.compose(many, slack="1e-6").epsilon < advanced.epsilon(many, delta="1e-7") < 1000
