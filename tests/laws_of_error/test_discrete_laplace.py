"""The law of the discrete Laplace error, against its sums and against what the exact sampler draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato import noise
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace
from sfumato.mechanisms import Laplace
from sfumato.noise import discrete_laplace
from tests.core.truth import mp, number, rounded_up

quick = settings(max_examples=25, deadline=None)
scales = st.one_of(
    st.fractions("1/50", 100, max_denominator=50), st.sampled_from([Fraction(1, 1000), Fraction(10**12)])
)
levels = st.one_of(st.fractions("1/100", "99/100", max_denominator=1000), st.just(1 - Fraction(1, 10**12)))

HALF = DiscreteLaplace(scale=Fraction(2))  # ε = 0.5


def chance(scale: Fraction, z: int) -> mp.mpf:
    q = mp.exp(-1 / number(scale))
    return (1 - q) / (1 + q) * q ** abs(z)


def tail(scale: Fraction, size: int) -> mp.mpf:
    q = mp.exp(-1 / number(scale))
    return 2 * q ** (size + 1) / (1 + q)


@pytest.mark.claim("X-01")
def test_the_numbers_at_a_half():
    assert f"{float(HALF.variance):.3f}" == "7.835"
    assert f"{float(HALF.mean_absolute_error):.3f}" == "1.919"
    by_summing = [sum(chance(Fraction(2), z) * abs(z) ** power for z in range(-600, 601)) for power in (0, 1, 2)]
    assert abs(by_summing[0] - 1) < mp.mpf(10) ** -50
    assert rounded_up(HALF.mean_absolute_error, by_summing[1], 1e-30)
    assert rounded_up(HALF.variance, by_summing[2], 1e-30)


@pytest.mark.claim("X-01")
def test_the_chance_of_each_size_is_that_of_the_sum():
    for size in range(30):
        inside = sum(chance(Fraction(2), z) for z in range(-size, size + 1))
        assert number(HALF.tail(size).low) <= 1 - inside <= number(HALF.tail(size).high) + mp.mpf(10) ** -60
        assert HALF.tail(size).width < Fraction(1, 10**30)


DRAWS = 120_000


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return discrete_laplace(scale=2, size=DRAWS)


def distance(drawn: np.ndarray, scale: Fraction) -> float:
    """The largest gap between the empirical and the stated distribution function."""
    reach = 400
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)
    q = math.exp(-1 / scale)
    stated = np.cumsum([(1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)])
    return float(np.max(np.abs(np.cumsum(counts) / len(drawn) - stated)))


# α = 1e-9 by the DKW inequality; a scale that is off by 10% moves the distribution function by 0.0184, which is
# found with as small a chance of missing it. Fresh randomness in every run.
ALLOWED = math.sqrt(math.log(2 / 1e-9) / (2 * DRAWS))


@pytest.mark.claim("X-01")
@pytest.mark.alpha(1e-9)
def test_the_exact_sampler_draws_from_the_law(drawn):
    assert drawn.dtype == np.int64
    assert distance(drawn, Fraction(2)) <= ALLOWED


@pytest.mark.parametrize("wrong", [Fraction(22, 10), Fraction(18, 10)])
@pytest.mark.alpha(1e-9)
def test_the_twin_with_a_scale_off_by_a_tenth_is_caught(drawn, wrong):
    assert distance(drawn, wrong) > ALLOWED


@pytest.mark.claim("X-01")
@pytest.mark.alpha(1e-10)
def test_the_moments_of_the_exact_sampler(drawn):
    """Seven standard errors (α about 3e-12 by the central limit): a variance off by 6% or an MAE off by 3% fails."""
    moments = [float(sum(chance(Fraction(2), z) * abs(z) ** power for z in range(-200, 201))) for power in range(5)]
    for power, stated in ((1, HALF.mean_absolute_error), (2, HALF.variance)):
        allowed = 7 * math.sqrt((moments[2 * power] - moments[power] ** 2) / DRAWS)
        found = float(np.mean(np.abs(drawn).astype(float) ** power))
        assert abs(found - float(stated)) <= allowed
        assert abs(found - 1.06**power * float(stated)) > allowed  # the wrong one would be seen
    assert abs(float(np.mean(drawn))) <= 7 * math.sqrt(moments[2] / DRAWS)


@pytest.mark.claim("X-01")
@pytest.mark.alpha(1e-40)
def test_counts_meet_whole_numbers_and_no_others():
    """Wherever a count is made noisy, what comes out is exact: numbers beyond 2^53 would show a float in between."""
    odd = 2**62 + 1
    noisy = Laplace(l1=Fraction(1), scale=Fraction(1, 100)).add_noise([odd] * 50, noise.SystemWords())
    assert noisy == (odd,) * 50  # noise other than 0 has a chance of e^(−100)
    assert all(type(value) is int for value in noisy)


@quick
@given(scale=scales)
@example(scale=Fraction(10**30))
def test_moments_are_rounded_up(scale):
    q = mp.exp(-1 / number(scale))
    law = DiscreteLaplace(scale=scale)
    assert rounded_up(law.variance, 2 * q / (1 - q) ** 2, 1e-6)
    assert rounded_up(law.mean_absolute_error, 2 * q / (1 - q**2), 1e-6)


@quick
@given(scale=scales, size=st.integers(0, 1000))
def test_a_tail_is_enclosed(scale, size):
    found, truth = DiscreteLaplace(scale=scale).tail(size), tail(scale, size)
    if (size + 1) / scale > 20_000:  # so far out an upper bound is enough
        assert found.low == 0
        assert truth <= number(found.high) < mp.mpf(2) ** -28_000
    else:
        assert rounded_up(found.high, truth, 1e-30)
        assert rounded_up(-found.low, -truth, 1e-30)


@quick
@given(scale=scales, level=levels, numbers=st.integers(1, 10**6))
@example(scale=Fraction(2), level=Fraction(19, 20), numbers=1)
@example(scale=Fraction(2), level=Fraction(19, 20), numbers=2)
def test_a_margin_is_the_least_that_covers(scale, level, numbers):
    law = DiscreteLaplace(scale=scale)
    found = law.margin(level, numbers=numbers)
    assert (1 - tail(scale, found)) ** numbers >= number(level)
    assert law.covers(found, level, numbers=numbers)
    if found:
        assert (1 - tail(scale, found - 1)) ** numbers < number(level)
        assert not law.covers(found - 1, level, numbers=numbers)


@quick
@given(scale=scales, level=levels)
@example(scale=Fraction(2), level=Fraction(1, 20))
@example(scale=Fraction(2), level=Fraction(1, 2))
@example(scale=Fraction(1, 1000), level=Fraction(1, 100))
def test_a_quantile_is_the_least_number_that_reaches_its_level(scale, level):
    found = DiscreteLaplace(scale=scale).quantile(level)

    def below(value):
        return 1 - tail(scale, value) / 2 if value >= 0 else tail(scale, -value - 1) / 2

    assert below(found) >= number(level)
    assert below(found - 1) < number(level)


@pytest.mark.parametrize("level", [0, 1])
def test_certainty_has_no_margin(level):
    for ask in (HALF.margin, HALF.quantile, lambda level: HALF.covers(3, level)):
        with pytest.raises(InvalidInput, match=f"confidence = {level} has no finite margin"):
            ask(level)


@pytest.mark.parametrize("level", [-1, 2, float("nan"), True, "surely", None])
def test_a_level_is_a_probability(level):
    with pytest.raises(InvalidInput, match="confidence"):
        HALF.margin(level)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_how_many_numbers_is_a_whole_number(bad):
    with pytest.raises(InvalidInput, match=r"numbers = .* must be a whole number of at least 1"):
        HALF.margin(0.95, numbers=bad)
    with pytest.raises(InvalidInput, match=r"numbers = .* must be a whole number of at least 1"):
        HALF.covers(3, 0.95, numbers=bad)


@pytest.mark.parametrize("bad", [-1, 0.5, True, None])
def test_a_size_is_a_whole_number(bad):
    with pytest.raises(InvalidInput, match=r"size = .* must be a whole number of at least 0"):
        HALF.tail(bad)


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1), True, "wide"])
def test_a_scale_is_above_zero(bad):
    with pytest.raises(InvalidInput, match="scale"):
        DiscreteLaplace(scale=bad)
