"""Each conversion against the truth: never below it, hardly above it; groups by exact hockey-stick divergences."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.core.enclosures import log
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Guarantee, Pure
from sfumato.errors import InvalidInput, Refused
from tests.core.truth import (
    exactly,
    excess,
    four_points,
    gaussian_delta,
    hockey_stick,
    least_delta,
    mp,
    normal_cdf,
    number,
    randomised_response,
    renyi_delta,
    renyi_epsilon,
    rounded_up,
    side_by_side,
)

pytestmark = pytest.mark.kills
quick = settings(max_examples=20, deadline=None)

epsilons = st.one_of(
    st.fractions(0, 50, max_denominator=1000), st.sampled_from([Fraction(0), Fraction(50), Fraction(1, 10**12)])
)
deltas = st.one_of(
    st.builds(lambda d, n: Fraction(d, 10 ** (n + 1)), st.integers(1, 9), st.integers(0, 30)),
    st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000),
    st.just(Fraction(1, 10**30)),
)
sizes = st.builds(lambda d, n: Fraction(d) * Fraction(10) ** n, st.integers(1, 9), st.integers(-6, 3))
FIVE = (
    Pure(epsilon=Fraction(1)),
    Approximate(epsilon=Fraction(1), delta=Fraction(1, 1000)),
    RDP(curve=((Fraction(8), Fraction(1)),)),
    ZCDP(rho=Fraction(1, 2)),
    GDP(mu=Fraction(1)),
)


# ---------------------------------------------------------------------------------------------- pure and (ε, δ)


@pytest.mark.claim("S2-01")
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(50)])
def test_randomised_response_has_exactly_the_divergence_of_the_pure_guarantee(epsilon):
    p, q = randomised_response(mp.exp(number(epsilon)))
    at_epsilon = least_delta(p, q, mp.exp(number(epsilon)))
    below = least_delta(p, q, mp.exp(number(9 * epsilon / 10)))
    assert at_epsilon < mp.mpf(10) ** -50
    assert below > 0
    assert Pure(epsilon=epsilon).delta_at(epsilon) == 0
    assert Pure(epsilon=epsilon).delta_at(2 * epsilon) == 0
    assert rounded_up(Pure(epsilon=epsilon).delta_at(9 * epsilon / 10), below, 1e-30)
    assert rounded_up(Pure(epsilon=epsilon).delta_at(0), least_delta(p, q, mp.mpf(1)), 1e-30)


@quick
@given(epsilon=epsilons, delta=deltas, asked=epsilons)
@example(epsilon=Fraction(50), delta=Fraction(1, 10**30), asked=Fraction(0))
@example(epsilon=Fraction(1), delta=Fraction(1, 1000), asked=Fraction(1))
@example(epsilon=Fraction(1), delta=Fraction(1, 1000), asked=Fraction(1, 2))
def test_a_smaller_epsilon_gets_the_delta_of_the_worst_mechanism_allowed(epsilon, delta, asked):
    p, q = four_points(mp.exp(number(epsilon)), number(delta))
    truth = number(delta) if asked >= epsilon else least_delta(p, q, mp.exp(number(asked)))
    assert rounded_up(Approximate(epsilon=epsilon, delta=delta).delta_at(asked), truth, 1e-20)


@quick
@given(epsilon=epsilons, delta=st.one_of(deltas, st.just(Fraction(0))), share=st.fractions(0, 1, max_denominator=100))
@example(epsilon=Fraction(2), delta=Fraction(1, 10), share=Fraction(1, 10))
@example(epsilon=Fraction(2), delta=Fraction(0), share=Fraction(1, 10))
@example(epsilon=Fraction(2), delta=Fraction(1, 10), share=Fraction(1))
@example(epsilon=Fraction(2), delta=Fraction(1, 10), share=Fraction(0))
@example(epsilon=Fraction(1), delta=Fraction(0), share=Fraction(1, 5))
def test_a_larger_delta_gets_the_least_epsilon_of_the_worst_mechanism(epsilon, delta, share):
    asked = delta + (1 - delta) * share
    found = Approximate(epsilon=epsilon, delta=delta).epsilon_at(asked)
    p, q = four_points(mp.exp(number(epsilon)), number(delta))
    assert 0 <= found <= epsilon
    assert least_delta(p, q, mp.exp(number(found))) <= number(asked) + mp.mpf(10) ** -50
    if found > 0:
        slightly_less = found * (1 - Fraction(1, 10**20)) - Fraction(1, 10**30)
        assert least_delta(p, q, mp.exp(number(max(Fraction(0), slightly_less)))) > number(asked) - mp.mpf(10) ** -50


@quick
@given(epsilon=epsilons, delta=deltas)
def test_pure_answers_as_delta_zero_does(epsilon, delta):
    pure = Pure(epsilon=epsilon)
    assert pure.approximate() == Approximate(epsilon=epsilon, delta=Fraction(0))
    assert pure.epsilon_at(0) == epsilon
    assert pure.epsilon_at(delta) == pure.approximate().epsilon_at(delta)
    assert pure.zcdp() == ZCDP(rho=epsilon * epsilon / 2)


def test_delta_one_needs_no_epsilon_and_a_smaller_delta_has_none():
    assert Approximate(epsilon=Fraction(3), delta=Fraction(1)).epsilon_at(1) == 0
    assert Approximate(epsilon=Fraction(3), delta=Fraction(1, 2)).epsilon_at(1) == 0
    with pytest.raises(Refused, match=r"no ε goes with δ = 1/1000: the guarantee itself has δ = 1/100"):
        Approximate(epsilon=Fraction(3), delta=Fraction(1, 100)).epsilon_at("1/1000")


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(10)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(4)])
def test_the_zcdp_of_a_pure_guarantee_bounds_its_renyi_divergence(order, epsilon):
    p, q = randomised_response(mp.exp(number(epsilon)))
    a = number(order)
    divergence = mp.log(sum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True))) / (a - 1)
    assert divergence <= number(Pure(epsilon=epsilon).zcdp().rho * order)


# --------------------------------------------------------------------------------------------------------- RDP


@quick
@given(
    order=st.fractions(Fraction(101, 100), 200, max_denominator=100),
    loss=st.fractions(0, 20, max_denominator=100),
    epsilon=epsilons,
    delta=deltas,
)
@example(order=Fraction(2), loss=Fraction(1), epsilon=Fraction(0), delta=Fraction(1, 10**30))
@example(order=Fraction(33), loss=Fraction(3), epsilon=Fraction(1), delta=Fraction(1, 2))
@example(order=Fraction(33), loss=Fraction(4), epsilon=Fraction(1), delta=Fraction(1, 2))
def test_one_order_gives_what_its_formula_says(order, loss, epsilon, delta):
    curve = RDP(curve=((order, loss),))
    if (order - 1) * (epsilon - loss) < 4000:
        assert rounded_up(curve.delta_at(epsilon), min(mp.mpf(1), renyi_delta(order, loss, epsilon)), 1e-20)
    truth = max(mp.mpf(0), renyi_epsilon(order, loss, delta))
    assert -Fraction(1, 10**50) <= curve.epsilon_at(delta) - exactly(truth) <= Fraction(1, 10**20)


def test_the_best_order_counts():
    two = RDP(curve=((Fraction(2), Fraction(1)), (Fraction(16), Fraction(2))))
    alone = [RDP(curve=(point,)) for point in two.curve]
    assert two.delta_at(3) == min(one.delta_at(3) for one in alone) < max(one.delta_at(3) for one in alone)
    assert two.epsilon_at("1e-6") == min(one.epsilon_at("1e-6") for one in alone)
    assert two.epsilon_at("1e-6") < max(one.epsilon_at("1e-6") for one in alone)


def test_a_delta_too_small_to_matter_is_stated_at_a_floor_and_not_refused():
    for guarantee in (
        RDP(curve=((Fraction(10**6), Fraction(0)),)),
        ZCDP(rho=Fraction(1, 10**6)),
        GDP(mu=Fraction(1, 1000)),
    ):
        assert 0 < guarantee.delta_at(50) < Fraction(1, 10**1700)
    assert rounded_up(
        RDP(curve=((Fraction(2), Fraction(0)),)).delta_at(4049),
        renyi_delta(Fraction(2), Fraction(0), Fraction(4049)),
        1e-20,
    )


def test_the_floor_under_the_delta_of_one_order():
    floor = mp.exp(mp.mpf(-4050)) / 2
    assert rounded_up(RDP(curve=((Fraction(2), Fraction(0)),)).delta_at(10000), floor, 1e-20)


@pytest.mark.parametrize(("exponent", "told"), [("127/2", True), ("64", False), ("129/2", False)])
def test_from_a_factor_of_e_to_the_64_on_nothing_is_promised_even_at_an_absurd_order(exponent, told):
    order = Fraction(10**30)
    loss = Fraction(exponent) / (order - 1) - log(1 - 1 / order).high
    assert (RDP(curve=((order, loss),)).delta_at(0) < 1) is told


@pytest.mark.parametrize(
    ("size", "kept"),
    [
        (1, ((Fraction(3), Fraction(1)), (Fraction(4), Fraction(2)), (Fraction(8), Fraction(5)))),
        (2, ((Fraction(2), Fraction(6)), (Fraction(4), Fraction(15)))),
        (3, ((Fraction(2), Fraction(45)),)),
        (4, ((Fraction(2), Fraction(45)),)),
    ],
)
def test_each_doubling_of_a_group_halves_the_order_and_triples_the_loss(size, kept):
    assert RDP(curve=((Fraction(3), Fraction(1)), (Fraction(4), Fraction(2)), (Fraction(8), Fraction(5)))).group(
        size
    ) == RDP(curve=kept)


def test_a_group_of_one_is_the_unit_itself_and_three_doublings_take_an_eighth():
    low = RDP(curve=((Fraction(3, 2), Fraction(1)),))
    assert low.group(1) == low
    for size in (5, 8):
        assert RDP(curve=((Fraction(32), Fraction(1)),)).group(size) == RDP(curve=((Fraction(4), Fraction(27)),))


def test_a_group_too_large_for_every_order_is_refused():
    with pytest.raises(Refused, match="no order of this curve is large enough for a group of 5"):
        RDP(curve=((Fraction(8), Fraction(5)), (Fraction(15), Fraction(5)))).group(5)


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_the_group_curve_holds_for_gaussian_noise(size):
    grouped = RDP(curve=tuple((Fraction(order), Fraction(order, 2)) for order in (16, 64))).group(size)
    assert all(loss >= order * size**2 / 2 for order, loss in grouped.curve)


# ---------------------------------------------------------------------------------------------- zCDP and GDP


@pytest.mark.claim("S4-07")
@pytest.mark.parametrize(
    ("steps", "sigma", "delta", "classical", "improved", "exact"),
    [
        (1, 1, "1e-5", "5.2985", "4.7284", "4.3772"),
        (1000, 40, "1e-6", "4.4682", "4.0103", "3.7472"),
        (10000, 50, "1e-5", "11.5971", "10.7248", "9.9973"),
    ],
)
def test_three_conversions_of_gaussian_noise_and_their_order(steps, sigma, delta, classical, improved, exact):
    rho = Fraction(steps, 2 * sigma**2)
    root = mp.sqrt(number(rho) * -mp.log(mp.mpf(delta)))
    loose = number(rho) + 2 * root
    order = 1 + root / number(rho)
    at_order = number(rho) * order - mp.log(mp.mpf(delta)) / (order - 1)
    mu = mp.sqrt(2 * number(rho))
    analytic = mp.findroot(
        lambda e: normal_cdf(mu / 2 - e / mu) - mp.exp(e) * normal_cdf(-mu / 2 - e / mu) - mp.mpf(delta),
        (mp.mpf(exact), mp.mpf(exact) + 1e-3),
    )
    tighter = ZCDP(rho=rho).epsilon_at(delta)
    tightest = GDP(mu=exactly(mu).limit_denominator(10**15)).epsilon_at(delta)
    assert abs(loose - at_order) < mp.mpf(10) ** -50
    assert abs(loose - mp.mpf(classical)) < mp.mpf("1e-4")
    assert f"{float(tighter):.4f}" == improved
    assert f"{float(tightest):.4f}" == f"{float(analytic):.4f}" == exact
    assert tightest < tighter < exactly(loose)


@quick
@given(rho=sizes, delta=deltas, order=st.fractions(Fraction(-9), Fraction(15), max_denominator=16))
@example(rho=Fraction(1, 2), delta=Fraction(1, 10**5), order=Fraction(2))
def test_no_order_beats_the_order_that_the_search_found(rho, delta, order):
    found = ZCDP(rho=rho).epsilon_at(delta)
    alpha = exactly(1 + mp.exp(number(order))).limit_denominator(10**12)
    other = max(mp.mpf(0), renyi_epsilon(alpha, rho * alpha, delta))
    assert found <= exactly(other) * (1 + Fraction(1, 10**6))


@quick
@given(rho=sizes, epsilon=epsilons, order=st.fractions(Fraction(-9), Fraction(15), max_denominator=16))
@example(rho=Fraction(1, 2), epsilon=Fraction(4), order=Fraction(1))
def test_no_order_beats_the_order_that_the_search_found_for_delta(rho, epsilon, order):
    found = ZCDP(rho=rho).delta_at(epsilon)
    alpha = exactly(1 + mp.exp(number(order))).limit_denominator(10**12)
    other = min(mp.mpf(1), renyi_delta(alpha, rho * alpha, epsilon))
    assert number(found) <= max(other * (1 + mp.mpf(10) ** -6), mp.mpf(10) ** -1700)


def best_order(value):
    """Minimise over ln(α − 1) by ternary search, at 80 digits."""
    low, high = mp.mpf(-11), mp.mpf(17)
    for _ in range(110):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, right) if value(1 + mp.exp(left)) <= value(1 + mp.exp(right)) else (left, high)
    return value(1 + mp.exp(low))


@pytest.mark.parametrize("rho", [Fraction(1, 10**8), Fraction(1, 1000), Fraction(1, 2), Fraction(8), Fraction(10**6)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 10**5), Fraction(1, 3)])
def test_the_search_finds_the_least_epsilon_to_six_digits(rho, delta):
    r, log_delta = number(rho), mp.log(number(delta))
    truth = best_order(lambda a: r * a + mp.log(1 - 1 / a) - (log_delta + mp.log(a)) / (a - 1))
    assert -Fraction(1, 10**20) <= excess(ZCDP(rho=rho).epsilon_at(delta), max(mp.mpf(0), truth)) <= Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [
        (Fraction(1, 10**8), Fraction(1, 1000)),
        (Fraction(1, 100), Fraction(1)),
        (Fraction(1, 2), Fraction(0)),
        (Fraction(1, 2), Fraction(4)),
        (Fraction(3), Fraction(50)),
        (Fraction(30), Fraction(50)),
    ],
)
def test_the_search_finds_the_least_delta_to_six_digits(rho, epsilon):
    r, e = number(rho), number(epsilon)
    truth = mp.exp(best_order(lambda a: (a - 1) * (r * a - e + mp.log(1 - 1 / a)) - mp.log(a)))
    assert -Fraction(1, 10**20) <= excess(ZCDP(rho=rho).delta_at(epsilon), truth) <= Fraction(1, 10**6)


@quick
@given(mu=sizes.filter(lambda mu: mu <= 60), delta=deltas, epsilon=epsilons)
def test_zcdp_bounds_the_gaussian_that_meets_it(mu, delta, epsilon):
    zcdp = ZCDP(rho=mu**2 / 2)
    assert number(zcdp.delta_at(epsilon)) >= gaussian_delta(mu, epsilon)
    assert gaussian_delta(mu, zcdp.epsilon_at(delta)) <= number(delta)


@quick
@given(mu=sizes, epsilon=epsilons)
@example(mu=Fraction(1), epsilon=Fraction(1))
@example(mu=Fraction(1), epsilon=Fraction(0))
@example(mu=Fraction(1, 10**9), epsilon=Fraction(1, 10**9))
@example(mu=Fraction(90), epsilon=Fraction(50))
@example(mu=Fraction(9000), epsilon=Fraction(50))
@example(mu=Fraction(1, 2), epsilon=Fraction(45))
def test_gdp_gives_the_delta_of_the_gaussian(mu, epsilon):
    if mu / 2 - epsilon / mu < -90:
        assert gaussian_delta(mu, epsilon) < number(GDP(mu=mu).delta_at(epsilon)) < mp.mpf(10) ** -1700
    else:
        assert rounded_up(GDP(mu=mu).delta_at(epsilon), gaussian_delta(mu, epsilon), 1e-8)


@quick
@given(mu=sizes.filter(lambda mu: mu <= 60), delta=deltas)
@example(mu=Fraction(1), delta=Fraction(1, 10**5))
@example(mu=Fraction(1, 10**6), delta=Fraction(1, 10**30))
@example(mu=Fraction(1, 100), delta=Fraction(1, 2))
@example(mu=Fraction(60), delta=Fraction(1, 10**30))
def test_gdp_finds_the_least_epsilon_to_nine_digits(mu, delta):
    found = GDP(mu=mu).epsilon_at(delta)
    assert gaussian_delta(mu, found) <= number(delta)
    if found:
        assert gaussian_delta(mu, found * (1 - Fraction(2, 10**9))) > number(delta)


def test_the_search_for_epsilon_is_the_same_on_every_machine():
    """A certificate is checked by computing it again, so the digits are part of what is promised."""
    assert GDP(mu=Fraction(1)).epsilon_at("1e-5") == Fraction(1174989799, 2**28)
    assert GDP(mu=Fraction(1, 10)).epsilon_at("1e-5") == Fraction(1463163781, 2**32)
    assert GDP(mu=Fraction(4)).epsilon_at("1e-5") == Fraction(1636222209, 2**26)
    one = GDP(mu=Fraction(1))
    assert one.epsilon_at(one.delta_at(Fraction(3, 2))) == Fraction(3, 2)
    assert one.epsilon_at(one.delta_at(2 - Fraction(1, 2**30))) == 2


def test_gdp_answers_for_no_delta_below_its_floor():
    floor = GDP(mu=Fraction(1, 1000)).delta_at(50)
    with pytest.raises(Refused, match=r"a δ below .* is not supported; nothing was done"):
        GDP(mu=Fraction(1)).epsilon_at(floor)
    assert GDP(mu=Fraction(1)).epsilon_at(2 * floor) > 80


def test_the_floor_begins_exactly_ninety_deviations_out():
    """Here δ is one in fifty of the floor, and stated as it is; a hair further out the floor is stated."""
    assert rounded_up(GDP(mu=Fraction(2)).delta_at(182), gaussian_delta(Fraction(2), Fraction(182)), 1e-8)
    assert GDP(mu=Fraction(2)).delta_at(183) == GDP(mu=Fraction(1, 1000)).delta_at(50)
    assert GDP(mu=Fraction(200)).delta_at(1800) == 1
    assert GDP(mu=Fraction(200)).delta_at(2000) < 1


def test_gdp_needs_no_epsilon_exactly_from_its_total_variation_on():
    whole = GDP(mu=Fraction(1)).delta_at(0)
    assert GDP(mu=Fraction(1)).epsilon_at(whole) == 0
    assert GDP(mu=Fraction(1)).epsilon_at(whole * (1 - Fraction(1, 10**9))) > 0


def test_nothing_lost_stays_nothing():
    for nothing in (
        Pure(epsilon=Fraction(0)),
        ZCDP(rho=Fraction(0)),
        GDP(mu=Fraction(0)),
        Approximate(epsilon=Fraction(0), delta=Fraction(0)),
    ):
        assert nothing.delta_at(0) == 0
        assert nothing.epsilon_at("1e-30") == 0
    tiny = Fraction(1, 10**4)
    assert ZCDP(rho=tiny).delta_at(0) > 0
    assert ZCDP(rho=tiny).epsilon_at("1e-30") > 0


# ------------------------------------------------------------------------------------------------------ groups


@pytest.mark.claim("X-05")
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(2)])
def test_a_pure_group_is_attained_by_randomised_response_on_every_member(epsilon, size):
    p, q = randomised_response(mp.exp(number(epsilon)))
    here, there = side_by_side(*[p] * size), side_by_side(*[q] * size)
    grouped = Pure(epsilon=epsilon).group(size)
    assert grouped == Pure(epsilon=size * epsilon)
    assert least_delta(here, there, mp.exp(number(grouped.epsilon))) < mp.mpf(10) ** -50
    assert least_delta(here, there, mp.exp(number(grouped.epsilon) * 99 / 100)) > 0


@pytest.mark.claim("X-05")
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(Fraction(0), Fraction(1, 100)), (Fraction(1, 2), Fraction(1, 10**4)), (Fraction(1), Fraction(1, 10**6))],
)
def test_an_approximate_group_is_attained_by_a_chain_of_neighbours(epsilon, delta, size):
    step, small = mp.exp(number(epsilon)), number(delta)
    chances = [mp.mpf(0)]
    for _ in range(size):
        chances.append(step * chances[-1] + small)
    laws = [(chance, 1 - chance) for chance in chances]
    for here, there in pairwise(laws):
        assert least_delta(here, there, step) <= small * (1 + mp.mpf(10) ** -50)
    grouped = Approximate(epsilon=epsilon, delta=delta).group(size)
    assert grouped.epsilon == size * epsilon
    assert rounded_up(grouped.delta, hockey_stick(laws[-1], laws[0], mp.exp(number(grouped.epsilon))), 1e-30)


@pytest.mark.claim("X-05")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_group_under_zcdp_and_gdp_bounds_finite_mechanisms(size):
    mu = Fraction(1, 2)
    keep = normal_cdf(number(mu) / 2)  # randomised response that is exactly as hard to tell as μ-GDP at its corner
    odds = keep / (1 - keep)
    p, q = randomised_response(odds)
    here, there = side_by_side(*[p] * size), side_by_side(*[q] * size)
    epsilon = exactly(mp.log(odds)).limit_denominator(10**20) + Fraction(1, 10**19)
    zcdp, gdp = Pure(epsilon=epsilon).zcdp().group(size), GDP(mu=mu).group(size)
    assert zcdp == ZCDP(rho=size**2 * epsilon**2 / 2)
    assert gdp == GDP(mu=size * mu)
    for asked in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)):
        truth = least_delta(here, there, mp.exp(number(asked)))
        assert truth <= number(zcdp.delta_at(asked))
        assert truth <= number(gdp.delta_at(asked))


def test_the_delta_of_a_group_is_never_above_one_and_large_groups_are_quick():
    assert Approximate(epsilon=Fraction(1), delta=Fraction(1, 10)).group(5) == Approximate(
        epsilon=Fraction(5), delta=Fraction(1)
    )
    factor = (mp.exp(mp.mpf(10)) - 1) / (mp.exp(mp.mpf(1) / 100) - 1)
    large = Approximate(epsilon=Fraction(1, 100), delta=Fraction(1, 10**12)).group(1000)
    assert rounded_up(large.delta, factor / 10**12, 1e-20)


def test_a_group_of_one_is_unchanged_and_one_without_delta_keeps_none():
    held = Approximate(epsilon=Fraction(1), delta=Fraction(1, 1000))
    assert held.group(1) == held
    assert Approximate(epsilon=Fraction(60), delta=Fraction(0)).group(2) == Approximate(
        epsilon=Fraction(120), delta=Fraction(0)
    )
    assert Approximate(epsilon=Fraction(0), delta=Fraction(1, 10)).group(7) == Approximate(
        epsilon=Fraction(0), delta=Fraction(7, 10)
    )
    assert Approximate(epsilon=Fraction(0), delta=Fraction(1, 10)).group(11) == Approximate(
        epsilon=Fraction(0), delta=Fraction(1)
    )


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**100), Fraction(1, 10**30), Fraction(1, 3), Fraction(33), Fraction(100, 3)]
)
def test_the_delta_of_a_group_is_tight_for_any_epsilon(epsilon):
    e = number(epsilon)
    truth = sum((mp.exp(place * e) for place in range(3)), mp.mpf(0)) / 10**60
    assert rounded_up(Approximate(epsilon=epsilon, delta=Fraction(1, 10**60)).group(3).delta, truth, 1e-20)


def test_beyond_a_factor_of_e_to_the_hundred_nothing_is_promised():
    tiny = Fraction(1, 10**60)
    assert Approximate(epsilon=Fraction(50), delta=tiny).group(2).delta < Fraction(1, 10**30)
    assert Approximate(epsilon=Fraction(201, 4), delta=tiny).group(2) == Approximate(
        epsilon=Fraction(201, 2), delta=Fraction(1)
    )


@pytest.mark.parametrize("guarantee", FIVE)
@pytest.mark.parametrize("size", [0, -1, True, 2.0, "2", None])
def test_a_group_is_a_whole_number_of_at_least_one(guarantee, size):
    with pytest.raises(InvalidInput, match=r"group size = .* must be a whole number of at least 1"):
        guarantee.group(size)


# --------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("guarantee", FIVE)
def test_all_five_speak_one_language(guarantee):
    assert isinstance(guarantee, Guarantee)
    assert guarantee.group(1) == guarantee
    assert guarantee.delta_at(2) <= guarantee.delta_at(1) <= guarantee.delta_at(0) <= 1
    assert guarantee.epsilon_at("1/2") <= guarantee.epsilon_at("1/1000")


@pytest.mark.parametrize("guarantee", FIVE)
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (-1, "epsilon = -1 must not be below 0"),
        (float("nan"), "epsilon = nan is not a finite number"),
        (float("inf"), "epsilon = inf is not a finite number"),
        (True, "epsilon is bool"),
        ("one", "epsilon = 'one' is not a number"),
        (None, "epsilon is NoneType"),
    ],
)
def test_an_epsilon_that_is_none_is_refused(guarantee, bad, says):
    with pytest.raises(InvalidInput, match=says):
        guarantee.delta_at(bad)


@pytest.mark.parametrize("guarantee", FIVE)
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (-1, "delta = -1 is outside 0 to 1"),
        (2, "delta = 2 is outside 0 to 1"),
        (float("nan"), "delta = nan is not a finite number"),
        (False, "delta is bool"),
        ("tiny", "delta = 'tiny' is not a number"),
    ],
)
def test_a_delta_that_is_none_is_refused(guarantee, bad, says):
    with pytest.raises(InvalidInput, match=says):
        guarantee.epsilon_at(bad)


@pytest.mark.parametrize("guarantee", FIVE[2:])
def test_delta_zero_has_no_epsilon_where_the_loss_is_unbounded(guarantee):
    with pytest.raises(InvalidInput, match="delta = 0 must be above 0"):
        guarantee.epsilon_at(0)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Pure(epsilon=Fraction(-1)), "epsilon = -1 must not be below 0"),
        (lambda: Pure(epsilon=True), "epsilon is bool"),
        (lambda: Approximate(epsilon=Fraction(-1, 2), delta=Fraction(0)), "epsilon = -1/2 must not be below 0"),
        (lambda: Approximate(epsilon=Fraction(1), delta=Fraction(-1)), "delta = -1 is outside 0 to 1"),
        (lambda: Approximate(epsilon=Fraction(1), delta=Fraction(3, 2)), "delta = 3/2 is outside 0 to 1"),
        (lambda: ZCDP(rho=Fraction(-1)), "rho = -1 must not be below 0"),
        (lambda: GDP(mu=Fraction(-1)), "mu = -1 must not be below 0"),
        (lambda: RDP(curve=()), "at least one order"),
        (lambda: RDP(curve=((Fraction(1), Fraction(1)),)), "each above 1"),
        (lambda: RDP(curve=((Fraction(2), Fraction(-1)),)), "RDP ε = -1 must not be below 0"),
    ],
)
def test_a_guarantee_out_of_range_cannot_be_stated(build, says):
    with pytest.raises(InvalidInput, match=says):
        build()
