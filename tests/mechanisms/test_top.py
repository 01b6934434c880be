"""Top choice: exact losses over all neighbours of small counts, and draws that follow the exact law."""

from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.accounting import compose, epsilon
from sfumato.audit.keys import peeled
from sfumato.core import enclosures
from sfumato.core.events import BoundedRange, Repeated
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Exponential, TopChoice
from sfumato.noise import SystemWords
from tests.noise.replayed import enumerated

pytestmark = pytest.mark.kills

UP = list(product((0, 1), repeat=4))
ANY = list(product((-1, 0, 1), repeat=4))
COUNTS = [(0, 0, 0, 0), (0, 1, 2, 3), (300, 0, 0, 300), (300, 0, 300, 300), (5, 5, 0, 0)]


def law(counts: tuple[int, ...], scale: Fraction, choices: int) -> dict[tuple[int, ...], mpmath.mpf]:
    """P(first, second, …) by the definition: each of those left in proportion to exp(count/scale)."""
    weights = [mpmath.exp(mpmath.mpf(count) * scale.denominator / scale.numerator) for count in counts]
    found = {}
    for order in permutations(range(len(counts)), choices):
        left, chance = set(range(len(counts))), mpmath.mpf(1)
        for candidate in order:
            chance *= weights[candidate] / sum(weights[other] for other in left)
            left.remove(candidate)
        found[order] = chance
    return found


def worst_loss(scale: Fraction, choices: int, moves: list[tuple[int, ...]]) -> float:
    worst = mpmath.mpf(0)
    for here in COUNTS:
        before = law(here, scale, choices)
        for move in moves:
            after = law(tuple(a + b for a, b in zip(here, move, strict=True)), scale, choices)
            worst = max(worst, *(abs(mpmath.log(before[order] / after[order])) for order in before))
    return float(worst)


@pytest.mark.few(2)
@pytest.mark.parametrize("choices", [1, 2])
@pytest.mark.parametrize(("monotone", "moves"), [(False, ANY), (True, UP)])
def test_the_loss_reaches_epsilon_and_never_passes_it(monotone: bool, moves: list, choices: int) -> None:
    rule = TopChoice.calibrated(choices=choices, sensitivity=1, epsilon=1, monotone=monotone)
    assert rule.scale == choices * (1 if monotone else 2)
    loss = worst_loss(rule.scale, choices, moves)
    assert 0.99 < loss <= 1 + 1e-12
    assert worst_loss(rule.scale / 2, choices, moves) > 1.9


def test_counts_move_in_one_direction_under_add_remove_and_in_two_under_replace() -> None:
    """The calibration of add/remove is twice too weak where one count falls while another rises."""
    careless = TopChoice.calibrated(choices=2, sensitivity=1, epsilon=1, monotone=True)
    assert worst_loss(careless.scale, 2, UP) <= 1 + 1e-12
    assert worst_loss(careless.scale, 2, ANY) > 1.9


def test_each_choice_is_one_event_of_bounded_range() -> None:
    rule = TopChoice.calibrated(choices=4, sensitivity=3, epsilon="1/2")
    assert rule.scale == 4 * 6 * 2
    assert rule.loss(3) == Repeated(event=BoundedRange(epsilon=Fraction(1, 8)), times=4)
    assert rule.loss(Sensitivity.of(linf=3)) == rule.loss(3)
    assert rule.loss(1).event.epsilon == Fraction(1, 24)
    assert compose([rule.loss(3)]).epsilon == Fraction(1, 2)
    monotone = TopChoice.calibrated(choices=4, sensitivity=3, epsilon="1/2", monotone=True)
    assert monotone.scale == rule.scale / 2
    assert monotone.loss(3) == rule.loss(3)
    assert monotone.loss(1).event.epsilon == Fraction(1, 24)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("choices", [1, 10, 100, 1000])
def test_with_a_delta_the_smaller_of_two_scales_is_taken_and_keeps_what_was_asked_for(
    choices: int, monotone: bool
) -> None:
    pure, mixed = (
        TopChoice.calibrated(choices=choices, sensitivity=2, epsilon=1, delta=delta, monotone=monotone)
        for delta in (0, 1e-6)
    )
    assert mixed.scale <= pure.scale
    assert (mixed.scale < pure.scale / 3) == (choices >= 100)
    cost = min(compose(mixed.loss(2)).epsilon, epsilon(mixed.loss(2), delta=1e-6, method="zcdp"))
    assert Fraction(999, 1000) < cost <= 1


COUNTED = [3, 1, 3, 0]


def test_every_order_has_exactly_its_probability() -> None:
    """All words of 4 bits: masses from below, and the rest is what is still open."""
    rule = TopChoice(choices=2, scale=Fraction(3, 2), monotone=False)
    masses, unresolved = enumerated(lambda words: rule.choose(COUNTED, words), width=4, depth=3)
    assert unresolved < Fraction(1, 2)
    weights = [enclosures.exp(count / rule.scale) for count in COUNTED]
    for order in permutations(range(4), 2):
        first, second = (weights[place] for place in order)
        rest = [weight for place, weight in enumerate(weights) if place != order[0]]
        high = first.high / sum(w.low for w in weights) * second.high / sum(w.low for w in rest)
        low = first.low / sum(w.high for w in weights) * second.low / sum(w.high for w in rest)
        mass = masses.get(order, Fraction(0))
        assert mass <= high
        assert low <= mass + unresolved


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_fresh_choices_follow_the_law_and_a_scale_that_is_a_fifth_off_fails() -> None:
    """χ² with 8,000 draws at 1e-11, which it passes in 1e-10 of the runs: some orders are expected 26 times only."""
    rule, words = TopChoice(choices=3, scale=Fraction(3, 2), monotone=False), SystemWords()
    orders = {order: place for place, order in enumerate(permutations(range(4), 3))}
    drawn = np.bincount([orders[rule.choose(COUNTED, words)] for _ in range(8_000)], minlength=len(orders))

    def surprise(scale: Fraction) -> float:
        expected = peeled(COUNTED, scale, 3) * 8_000
        return float(chi2.sf(((drawn - expected) ** 2 / expected).sum(), len(orders) - 1))

    assert surprise(rule.scale) > 1e-11
    assert surprise(rule.scale * Fraction(5, 6)) < 1e-11


def test_the_attacks_law_is_the_law() -> None:
    exact = law((3, 1, 3, 0), Fraction(3, 2), 3)
    assert np.allclose(peeled(COUNTED, Fraction(3, 2), 3), [float(chance) for chance in exact.values()], rtol=1e-12)
    assert float(sum(exact.values())) == pytest.approx(1)


@pytest.mark.alpha(1e-100)
def test_one_choice_is_the_exponential_mechanism_and_all_choices_are_an_order() -> None:
    rule = TopChoice.calibrated(choices=1, sensitivity=1, epsilon=1)
    assert compose([rule.loss(1)]) == compose([Exponential.calibrated(sensitivity=1, epsilon=1).event])
    everyone = TopChoice(choices=4, scale=Fraction(1), monotone=True)
    assert sorted(everyone.choose([5, 5, 1, 5], SystemWords())) == [0, 1, 2, 3]
    certain = TopChoice(choices=3, scale=Fraction(1, 1000), monotone=True)
    assert certain.choose([1, 4, 2, 3], SystemWords()) == (1, 3, 2)


def test_what_cannot_be_chosen_is_refused() -> None:
    rule = TopChoice.calibrated(choices=3, sensitivity=1, epsilon=1)
    with pytest.raises(InvalidInput, match="2 candidates for 3 choices"):
        rule.choose([1, 2], SystemWords())
    with pytest.raises(InvalidInput, match="whole numbers"):
        rule.choose([1, 2, 0.5], SystemWords())  # type: ignore[list-item]
    for bad in ({"choices": 0, "sensitivity": 1}, {"choices": 1, "sensitivity": 0}):
        with pytest.raises(InvalidInput, match=r"choices|sensitivity"):
            TopChoice.calibrated(epsilon=1, **bad)
    with pytest.raises(InvalidInput, match="scale"):
        TopChoice(choices=1, scale=Fraction(0), monotone=True)
