"""What an attacker can gain: bounds that finite mechanisms attain, never undercut, and the words around them."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.core.adversary import accuracy, auc, belief, total_variation, tradeoff
from sfumato.core.enclosures import log
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Refused
from tests.core.truth import (
    exactly,
    four_points,
    hockey_stick,
    least_missed,
    mp,
    normal_cdf,
    number,
    randomised_response,
    rounded_up,
)

pytestmark = pytest.mark.kills
quick = settings(max_examples=25, deadline=None)
epsilons = st.fractions(0, 20, max_denominator=100)
chances = st.fractions(0, 1, max_denominator=200)
deltas = st.builds(lambda d, n: Fraction(d, 10 ** (n + 1)), st.integers(0, 9), st.integers(0, 30))


@pytest.mark.claim("S4-17")
def test_the_four_point_mechanism_attains_the_total_variation():
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    p, q = four_points(mp.exp(number(epsilon)), number(delta))
    assert abs(sum(p) - 1) < mp.mpf(10) ** -50
    assert abs(hockey_stick(p, q, mp.exp(number(epsilon))) - number(delta)) < mp.mpf(10) ** -50
    attained = sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    assert f"{float(attained):.5f}" == "0.46266"
    guarantee = Approximate(epsilon=epsilon, delta=delta)
    assert rounded_up(total_variation(guarantee), attained, 1e-30)
    assert rounded_up(accuracy(guarantee), (mp.exp(1) + number(delta)) / (1 + mp.exp(1)), 1e-30)


@quick
@given(epsilon=epsilons, delta=deltas)
@example(epsilon=Fraction(0), delta=Fraction(0))
def test_the_best_accuracy_is_that_of_the_likelihood_ratio_test(epsilon, delta):
    p, q = four_points(mp.exp(number(epsilon)), number(delta))
    best = sum(max(a, b) for a, b in zip(p, q, strict=True)) / 2
    assert rounded_up(accuracy(Approximate(epsilon=epsilon, delta=delta)), best, 1e-20)


@pytest.mark.claim("S1-30")
def test_a_belief_of_nine_in_ten_that_someone_is_absent_moves_no_further_than_stated():
    present = belief(Pure(epsilon=Fraction(1, 2)), 0.1)
    assert present.prior == Fraction(1, 10)
    assert f"{100 * float(1 - present.high):.2f}%" == "84.52%"  # belief in absence, at the lowest
    assert f"{100 * float(1 - present.low):.2f}%" == "93.69%"  # belief in absence, at the highest
    assert f"{100 * float(present.high):.2f}%" == "15.48%"  # belief in presence, at the highest
    absent = belief(Pure(epsilon=Fraction(1, 2)), 0.9)
    assert (absent.low, absent.high) == (1 - present.high, 1 - present.low)


@pytest.mark.claim("S1-30")
@pytest.mark.parametrize(
    "guarantee",
    [
        Approximate(epsilon=Fraction(1), delta=Fraction(1, 10**5)),
        ZCDP(rho=Fraction(1)),
        GDP(mu=Fraction(1)),
        RDP(curve=((Fraction(2), Fraction(1)),)),
    ],
)
def test_no_belief_is_stated_where_delta_is_above_zero(guarantee):
    with pytest.raises(Refused, match=r"with δ > 0 .* no figure was given.*accuracy"):
        belief(guarantee, 0.1)


@quick
@given(epsilon=epsilons, prior=chances)
@example(epsilon=Fraction(0), prior=Fraction(1, 10))
@example(epsilon=Fraction(1), prior=Fraction(0))
@example(epsilon=Fraction(1), prior=Fraction(1))
def test_the_belief_bound_is_what_randomised_response_does_to_a_prior(epsilon, prior):
    (told, hidden), _ = randomised_response(mp.exp(number(epsilon)))
    p = number(prior)
    moved = belief(Pure(epsilon=epsilon), prior)
    up, down = p * told / (p * told + (1 - p) * hidden), p * hidden / (p * hidden + (1 - p) * told)
    assert rounded_up(moved.high, up, 1e-30)
    assert rounded_up(-moved.low, -down, 1e-30)
    assert moved.low <= prior <= moved.high


@pytest.mark.claim("S4-02")
@pytest.mark.parametrize("prior", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
def test_losses_turn_prior_into_posterior_odds_and_add_along_an_adaptive_sequence(prior):
    """Two coins; the odds of the second depend on what the first one showed. All probabilities are rational."""
    first = randomised_response(Fraction(3))
    then = {0: randomised_response(Fraction(2)), 1: randomised_response(Fraction(5))}
    seen = {}
    for a, b in product(range(2), repeat=2):
        inside, outside = (first[side][a] * then[a][side][b] for side in (0, 1))
        posterior = prior * inside / (prior * inside + (1 - prior) * outside)
        odds = posterior / (1 - posterior) / (prior / (1 - prior))
        assert odds == inside / outside  # Bayes' identity: the factor is e^L
        assert odds == first[0][a] / first[1][a] * (then[a][0][b] / then[a][1][b])  # losses add: factors multiply
        seen[a, b] = posterior
    at_most = Pure(epsilon=log(Fraction(3)).high + log(Fraction(5)).high)
    bound = belief(at_most, prior)
    assert all(bound.low <= posterior <= bound.high for posterior in seen.values())
    assert bound.low <= seen[1, 1] <= bound.low * (1 + Fraction(1, 10**30))  # the largest loss is attained
    assert seen[0, 0] < bound.high


@quick
@given(epsilon=epsilons, delta=deltas, alarms=chances)
@example(epsilon=Fraction(1), delta=Fraction(0), alarms=Fraction(0))
@example(epsilon=Fraction(1), delta=Fraction(1, 10), alarms=Fraction(1))
@example(epsilon=Fraction(0), delta=Fraction(0), alarms=Fraction(1, 2))
def test_the_trade_off_is_exactly_that_of_the_worst_mechanism(epsilon, delta, alarms):
    truth = least_missed(*four_points(mp.exp(number(epsilon)), number(delta)), alarms)
    found = tradeoff(Approximate(epsilon=epsilon, delta=delta), alarms)
    assert -Fraction(1, 10**20) <= found - exactly(truth) <= Fraction(1, 10**50)
    if delta == 0:
        assert tradeoff(Pure(epsilon=epsilon), alarms) == found


@pytest.mark.parametrize("mu", [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("alarms", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_trade_off_of_gdp_is_a_close_lower_bound(mu, alarms):
    quantile = mp.findroot(lambda x: normal_cdf(x) - number(1 - alarms), mp.mpf(0.1))
    truth = normal_cdf(quantile - number(mu))
    assert 0 <= truth - number(tradeoff(GDP(mu=mu), alarms)) < mp.mpf("0.02")
    zcdp = tradeoff(ZCDP(rho=mu**2 / 2), alarms)
    assert 0 <= zcdp <= exactly(truth)


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [(Fraction(1, 10), "0.525"), (Fraction(1, 2), "0.622"), (Fraction(1), "0.731"), (Fraction(2), "0.881")],
)
def test_the_area_under_the_curve_of_a_pure_guarantee(epsilon, shown):
    truth = mp.exp(number(epsilon)) / (1 + mp.exp(number(epsilon)))
    assert f"{float(auc(Pure(epsilon=epsilon))):.3f}" == shown
    assert rounded_up(auc(Pure(epsilon=epsilon)), truth, 1e-30)


@quick
@given(epsilon=epsilons, delta=deltas)
def test_the_area_bound_holds_for_the_worst_mechanism(epsilon, delta):
    """AUC by its definition: a draw of q outranks a draw of p, ties count half."""
    p, q = four_points(mp.exp(number(epsilon)), number(delta))
    rank = [a / b if b else mp.inf for a, b in zip(q, p, strict=True)]
    truth = sum(
        p[x] * q[y] * (1 if rank[y] > rank[x] else 0.5 if rank[y] == rank[x] else 0)
        for x, y in product(range(4), repeat=2)
    )
    stated = auc(Approximate(epsilon=epsilon, delta=delta))
    assert truth <= number(stated) + mp.mpf(10) ** -50
    assert rounded_up(stated, 1 - (1 - number(delta)) ** 2 / (1 + mp.exp(number(epsilon))), 1e-20)


@pytest.mark.parametrize("mu", [Fraction(0), Fraction(1, 1000), Fraction(1), Fraction(20)])
def test_the_area_under_the_curve_of_gdp(mu):
    assert rounded_up(auc(GDP(mu=mu)), normal_cdf(number(mu) / mp.sqrt(2)), 1e-30)
    if mu:
        assert auc(GDP(mu=mu)) <= auc(ZCDP(rho=mu**2 / 2)) <= 1


@pytest.mark.parametrize(
    "guarantee",
    [ZCDP(rho=Fraction(1, 1000)), GDP(mu=Fraction(1, 1000)), RDP(curve=((Fraction(100), Fraction(1, 100)),))],
)
def test_a_strong_guarantee_of_any_language_has_an_area_and_a_trade_off(guarantee):
    assert Fraction(1, 2) <= auc(guarantee) < Fraction(7, 10)
    assert Fraction(7, 10) < tradeoff(guarantee, "1/10") <= Fraction(9, 10)
    assert total_variation(guarantee) == guarantee.delta_at(0)


@pytest.mark.parametrize("bad", [-1, 2, float("nan"), True, "often", None])
def test_a_chance_lies_between_zero_and_one(bad):
    with pytest.raises(InvalidInput, match="false_alarms"):
        tradeoff(Pure(epsilon=Fraction(1)), bad)
    with pytest.raises(InvalidInput, match="prior"):
        belief(Pure(epsilon=Fraction(1)), bad)
