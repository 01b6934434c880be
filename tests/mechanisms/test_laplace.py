"""The Laplace mechanism states the loss of the law that it draws from."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import compose
from sfumato.core.events import DiscreteLaplace
from sfumato.core.guarantees import Pure
from sfumato.core.sensitivity import L1, Sensitivity
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.calibration import least_epsilon
from sfumato.noise import SystemWords
from tests.core.truth import hockey_stick, mp, number

pytestmark = pytest.mark.kills
LARGEST = 2**63 - 1


def law(scale: Fraction, centre: int, reach: int) -> list:
    """P(centre + z = k) for k from −reach to reach, by the formula and not by the library."""
    q = mp.exp(-1 / number(scale))
    return [(1 - q) / (1 + q) * q ** abs(k - centre) for k in range(-reach, reach + 1)]


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(7, 3), Fraction(20)])
@pytest.mark.parametrize("moved", [1, 2, 5])
def test_the_event_states_the_largest_ratio_of_the_law_on_a_grid_and_it_is_attained(scale, moved):
    here, there = law(scale, 0, 40), law(scale, moved, 40)
    event = Laplace(l1=Fraction(moved), scale=scale).loss(Sensitivity.of(l1=moved))
    epsilon = number(compose([event]).epsilon)
    largest = max(abs(mp.log(a / b)) for a, b in zip(here, there, strict=True))
    assert abs(largest - epsilon) < mp.mpf(10) ** -50
    assert hockey_stick(here, there, mp.exp(epsilon)) < mp.mpf(10) ** -50
    assert hockey_stick(here, there, mp.exp(epsilon * 9 / 10)) > 0


@settings(max_examples=50, deadline=None)
@given(
    l1=st.fractions("1/100", 100, max_denominator=100),
    epsilon=st.fractions("1/1000", 50, max_denominator=1000),
    moved=st.fractions(0, 100, max_denominator=100),
)
def test_calibration_gives_exactly_the_epsilon_asked_for_and_loss_follows_the_move(l1, epsilon, moved):
    mechanism = Laplace.calibrated(l1=l1, epsilon=epsilon)
    assert mechanism == Laplace.calibrated(l1=L1(l1), epsilon=epsilon)
    assert mechanism.scale * epsilon == l1
    assert mechanism.event == DiscreteLaplace(l1=l1, scale=mechanism.scale)
    assert compose([mechanism.event]) == Pure(epsilon=epsilon)
    assert compose([mechanism.loss(Sensitivity.of(l1=moved))]) == Pure(epsilon=moved / mechanism.scale)
    assert mechanism.law.scale == mechanism.scale


@pytest.mark.parametrize(
    ("l1", "epsilon", "says"),
    [
        (1, 0, "epsilon = 0 must be above 0"),
        (1, -1, "epsilon = -1 must be above 0"),
        (1, float("nan"), "epsilon = nan is not a finite number"),
        (1, float("inf"), "epsilon = inf is not a finite number"),
        (1, True, "epsilon is bool"),
        (1, "much", "epsilon = 'much' is not a number"),
        (0, 1, "l1 = 0 must be above 0"),
        (-1, 1, "l1 = -1 must be above 0"),
        (True, 1, "l1 is bool"),
        (None, 1, "l1 is NoneType"),
    ],
)
def test_bad_parameters_are_refused(l1, epsilon, says):
    with pytest.raises(InvalidInput, match=says):
        Laplace.calibrated(l1=l1, epsilon=epsilon)


@pytest.mark.parametrize(
    ("l1", "scale", "says"), [(Fraction(-1), Fraction(1), "l1 = -1"), (Fraction(1), Fraction(0), "scale = 0")]
)
def test_a_mechanism_out_of_range_cannot_be_stated(l1, scale, says):
    with pytest.raises(InvalidInput, match=says):
        Laplace(l1=l1, scale=scale)


def test_a_loss_without_l1_is_a_type_error():
    with pytest.raises(WrongNorm, match="this sensitivity has none"):
        Laplace(l1=Fraction(1), scale=Fraction(1)).loss(Sensitivity.of(l0=1))
    assert issubclass(WrongNorm, TypeError)


class Silent:
    """Randomness that must not be asked for."""

    width = 64

    def fill(self, out: object) -> None:
        raise AssertionError("something was drawn")


@pytest.mark.alpha(1e-60)
def test_noise_is_drawn_anew_for_every_number():
    """200 draws of scale 1 are all equal with a chance below 2^−200, and one exceeds 10^6 with less than e^(−10^5)."""
    noisy = Laplace(l1=Fraction(1), scale=Fraction(1)).add_noise([10**7] * 200, SystemWords())
    assert len(noisy) == 200
    assert len(set(noisy)) > 1
    assert all(isinstance(value, int) and abs(value - 10**7) < 10**6 for value in noisy)
    assert Laplace(l1=Fraction(1), scale=Fraction(1)).add_noise([], SystemWords()) == ()


@pytest.mark.alpha(1e-60)
def test_a_sum_beyond_64_bits_is_held_at_the_largest_that_fits():
    """Of 200 draws of scale 1000, half would leave the range on either side."""
    noisy = Laplace(l1=Fraction(1), scale=Fraction(1000)).add_noise([LARGEST, -LARGEST] * 200, SystemWords())
    assert max(noisy) == LARGEST
    assert min(noisy) == -LARGEST
    assert all(abs(abs(value) - LARGEST) < 10**6 for value in noisy)


@pytest.mark.parametrize("exact", [[1.0], [True], ["1"], [1, None], [Fraction(1)]])
def test_only_whole_numbers_meet_whole_noise(exact):
    with pytest.raises(InvalidInput, match="adds noise to whole numbers; nothing was drawn"):
        Laplace(l1=Fraction(1), scale=Fraction(1)).add_noise(exact, Silent())


@pytest.mark.few(5)
@pytest.mark.parametrize("margin", [0, 1, 6, 40, 10**6])
@pytest.mark.parametrize(("confidence", "numbers"), [("19/20", 1), ("19/20", 50), ("999/1000", 3)])
def test_the_least_epsilon_has_four_digits_and_the_decimal_before_is_too_small(margin, confidence, numbers):
    for mechanism in (
        lambda epsilon: Laplace.calibrated(l1=1, epsilon=epsilon),
        lambda epsilon: Gaussian.calibrated(l2=1, epsilon=epsilon, delta="1/1000000"),
    ):
        found = least_epsilon(mechanism, margin=margin, confidence=confidence, numbers=numbers)
        if found == Fraction(1, 10**12):  # the δ alone bounds the noise of the Gaussian
            assert (margin, type(mechanism(found))) == (10**6, Gaussian)
            continue
        step = Fraction(10) ** (len(str(int(found * 10**12))) - 12 - 4)
        assert found % step == 0
        assert mechanism(found).law.covers(margin, Fraction(confidence), numbers=numbers)
        assert not mechanism(found - step).law.covers(margin, Fraction(confidence), numbers=numbers)


def test_a_margin_that_no_epsilon_keeps_is_refused():
    """A law that never covers: noise of a fixed scale, whatever ε is."""
    fixed = Laplace(l1=Fraction(1), scale=Fraction(5))
    with pytest.raises(Refused, match=r"no ε up to 10\^6 keeps 3 number\(s\) within ±1; nothing was done"):
        least_epsilon(lambda _: fixed, margin=1, confidence=0.95, numbers=3)
