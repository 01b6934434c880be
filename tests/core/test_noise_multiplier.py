"""The one search for Gaussian noise: enough, not by waste, and the same for both callers."""

from fractions import Fraction

import pytest

from sfumato import accounting
from sfumato.core.exact import decimal_up
from sfumato.core.noise_multiplier import classical_multiplier, exact_multiplier
from sfumato.core.sensitivity import L2
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms import Gaussian
from tests.core.truth import gaussian_delta, mp, number, rounded_up

POINTS = [("1/1000", "1e-9"), ("1/2", "1e-5"), (1, "1e-5"), (3, "1e-6"), (10, "1e-5"), (1000, "1e-12"), (1, "1/2")]


@pytest.mark.parametrize(("epsilon", "delta"), POINTS)
def test_it_is_enough_and_the_decimal_before_is_not(epsilon: int | str, delta: str) -> None:
    found, asked, room = exact_multiplier(epsilon=epsilon, delta=delta), Fraction(epsilon), number(Fraction(delta))
    assert Fraction(decimal_up(found, 10)) == found
    assert gaussian_delta(1 / found, asked) <= room
    assert gaussian_delta(1 / (found * (1 - Fraction(2, 10**9))), asked) > room


def test_both_callers_use_it() -> None:
    times = exact_multiplier(epsilon=1, delta="1e-5")
    assert accounting.gaussian_sigma(l2=7, epsilon=1, delta="1e-5") == 7 * times
    assert Gaussian.calibrated(l2=7, epsilon=1, delta="1e-5").sigma == Fraction(decimal_up(7 * times, 7))
    root = Gaussian.calibrated(l2=L2(Fraction(2)), epsilon=1, delta="1e-5").sigma
    assert rounded_up(root, mp.sqrt(2) * number(times), 1e-6)
    textbook = classical_multiplier(epsilon="1/2", delta="1e-5")
    assert accounting.classical_sigma(l2=7, epsilon="1/2", delta="1e-5") == 7 * textbook
    assert Gaussian.classical(l2=7, epsilon="1/2", delta="1e-5").sigma == 7 * textbook


def test_the_classical_formula() -> None:
    truth = mp.sqrt(2 * mp.log(mp.mpf("1.25") / mp.mpf("1e-5"))) * 2
    assert rounded_up(classical_multiplier(epsilon="1/2", delta="1e-5"), truth, 1e-25)
    assert classical_multiplier(epsilon="999/1000", delta="1e-5") > exact_multiplier(epsilon="999/1000", delta="1e-5")
    with pytest.raises(Refused, match="proven for ε < 1 only, and ε = 1 was asked for; no σ was given"):
        classical_multiplier(epsilon=1, delta="1e-5")


@pytest.mark.parametrize("multiplier", [exact_multiplier, classical_multiplier])
def test_what_makes_no_sense_is_refused(multiplier: object) -> None:
    for epsilon, delta in ((0, 0.1), (0.5, 0), (0.5, 2), (0.5, 1)):
        with pytest.raises(InvalidInput, match=r"no σ was given|nothing was done"):
            multiplier(epsilon=epsilon, delta=delta)  # type: ignore[operator]


def test_a_delta_that_nobody_can_tell_from_0_is_refused_instead_of_searched_for() -> None:
    with pytest.raises(Refused, match="not supported"):
        exact_multiplier(epsilon="1/1000", delta=Fraction(1, 10**2000))
    assert exact_multiplier(epsilon=1, delta=Fraction(1, 10**300)) > 30
