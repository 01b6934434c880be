"""What the PLD accountant decides before and after its transform: what is merged, what counts, what is refused.

The transform itself is looked at by test_pld_never_below_the_truth.py. These tests kill mutants.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import lattice, pld, pld_truncation, profiles
from sfumato.accounting.calibrate import _shortened, plan
from sfumato.core.events import (
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Refused, Unsupported
from tests.core.truth import four_points, gaussian_delta, hockey_stick, mp, number

pytestmark = pytest.mark.kills


def gauss(sigma: Fraction | int | str, l2_squared: int = 1) -> Gaussian:
    return Gaussian(l2_squared=Fraction(l2_squared), sigma_squared=Fraction(sigma) ** 2)


def pure(epsilon: Fraction | int | str) -> Stated:
    return Stated(guarantee=Pure(epsilon=Fraction(epsilon)))


def told(epsilon: Fraction | int | str, delta: Fraction | str) -> Stated:
    return Stated(guarantee=Approximate(epsilon=Fraction(epsilon), delta=Fraction(delta)))


# ------------------------------------------------------------------------------------------------ Gaussians alone


def test_gaussians_alone_are_one_gaussian_and_exact():
    """μ² = 3·(3/4) + 7·(1/4) = 4."""
    one, other, together = gauss(2, l2_squared=3), Stated(guarantee=GDP(mu=Fraction(1, 2))), GDP(mu=Fraction(2))
    assert pld._merged(Counter({one: 3, other: 7})) == together
    for epsilon in (0, 1, 9):
        assert pld.delta([one] * 3 + [other] * 7, epsilon=epsilon) == together.delta_at(epsilon)
    assert pld.epsilon([one] * 3 + [other] * 7, delta="1e-6") == together.epsilon_at("1e-6")
    still = DiscreteLaplace(l1=Fraction(9, 10), scale=Fraction(1, 9))
    assert pld._merged(Counter({gauss("1/2"): 1, still: 4})) == together
    assert pld._merged(Counter()) == GDP(mu=Fraction(0))
    assert pld.epsilon([], delta="1e-6") == pld.delta([], epsilon=0) == 0


def merged(events: dict[PrivacyEvent, int]) -> list[tuple[profiles.DominatingPair, int]]:
    found = pld._merged(Counter(events))
    assert isinstance(found, list)
    return found


def values(pair: profiles.DominatingPair) -> tuple[list[float], list[float]]:
    """Both profiles at a few places."""
    places = np.array([-1.0, 0.0, 0.3, 1.0, 4.0])
    return pair.remove(places).tolist(), pair.add(places).tolist()


def test_gaussians_beside_others_are_one_law_and_stated_rhos_another():
    events = {gauss(2): 8, pure(1): 3, Stated(guarantee=ZCDP(rho=Fraction(1, 4))): 2}
    (one, first), (rhos, second), (normal, third) = merged(events)
    assert (first, second, third) == (3, 1, 1)
    assert values(one) == values(profiles.pair_of(pure(1)))
    assert values(rhos) == values(profiles.pair_of(Stated(guarantee=ZCDP(rho=Fraction(1, 2)))))
    assert values(normal) == values(profiles.pair_of(gauss(1, l2_squared=2)))


def test_a_laplace_shift_of_one_counts():
    ((pair, times),) = merged({DiscreteLaplace(l1=Fraction(1), scale=Fraction(2)): 2})
    assert times == 2
    assert pair.remove(np.array([0.0]))[0] > 0.1


def test_discrete_gaussians_are_covered_where_their_patterns_are_too_many(monkeypatch):
    wide, narrow = (
        DiscreteGaussian(l2_squared=Fraction(100), sigma_squared=Fraction(10_000)),
        DiscreteGaussian(l2_squared=Fraction(3), sigma_squared=Fraction(4)),
    )
    cover = lattice.smoothed(100, Fraction(10_000))
    assert pld._cover(wide) == cover
    assert pld._cover(narrow) is None
    assert pld._cover(DiscreteGaussian(l2_squared=Fraction(9, 10), sigma_squared=Fraction(10**9))) is None
    assert [times for _, times in merged({narrow: 3})] == [3]
    alone = pld.epsilon(wide, delta="1e-6")
    assert GDP(mu=Fraction(1, 10)).epsilon_at("1e-6") < alone < GDP(mu=Fraction(101, 1000)).epsilon_at("1e-6")
    monkeypatch.setattr(pld, "_covering", lambda *given: given)
    covered = (3 * cover.mu_squared + 10, 3 * cover.shift, 3 * cover.excess)
    assert pld._merged(Counter({wide: 3, gauss(1, l2_squared=2): 5})) == [(covered, 1)]


# ------------------------------------------------------------------------------------------- readings and bounds


def test_bounded_ranges_are_read_both_ways_and_the_smaller_figure_counts():
    many, other = BoundedRange(epsilon=Fraction(1, 10)), BoundedRange(epsilon=Fraction(1, 5))
    found = Counter({many: 100, other: 25, pure(1): 2})
    as_they_are, read = pld._readings(found)
    rho = Stated(guarantee=ZCDP(rho=Fraction(100, 800) + Fraction(25, 200)))
    assert as_they_are == found
    assert read == {rho: 1, pure(1): 2}
    assert pld._readings(Counter({pure(1): 2})) == [{pure(1): 2}]
    assert pld.epsilon([many] * 100, delta="1e-6") == pld.epsilon(
        Stated(guarantee=ZCDP(rho=Fraction(1, 8))), delta="1e-6"
    )
    assert pld.delta([many] * 100, epsilon=2) == pld.delta(Stated(guarantee=ZCDP(rho=Fraction(1, 8))), epsilon=2)
    assert (
        pld.epsilon(many, delta="1e-6")
        <= Fraction(1, 10)
        < pld.epsilon(Stated(guarantee=ZCDP(rho=Fraction(1, 800))), delta="1e-6")
    )


def test_without_delta_the_plain_sum_of_pure_events_is_all_there_is():
    assert pld.epsilon([pure("1/3")] * 3 + [BoundedRange(epsilon=Fraction(1, 2))], delta=0) == Fraction(3, 2)
    for event in (told(1, "1e-9"), gauss(1)):
        with pytest.raises(Refused, match="at δ = 0 only pure events have an ε"):
            pld.epsilon([pure(1), event], delta=0)


def test_the_plain_sum_counts_where_its_delta_fits_and_it_is_smaller():
    step = told("1/2", "1/1000")
    assert pld._plain(Counter({step: 2, pure(1): 3})) == Approximate(epsilon=Fraction(4), delta=Fraction(1, 500))
    assert pld._plain(Counter({step: 2, gauss(1): 1})) is None
    assert pld._plain(Counter({pure(1): 3})) == Approximate(epsilon=Fraction(3), delta=Fraction(0))
    assert pld.epsilon(step, delta="1/1000") == Fraction(1, 2)
    assert pld.epsilon(step, delta="2/1000") < Fraction(1, 2)
    assert pld.delta(step, epsilon="1/2") == pld.delta(step, epsilon=1) == Fraction(1, 1000)
    assert pld.delta(step, epsilon="499/1000") > Fraction(1, 1000)
    with pytest.raises(Refused, match="no ε up to 512"):
        pld.epsilon(step, delta="999/1000000")


@pytest.mark.parametrize("times", [1, 3])
def test_beyond_the_reach_of_the_grid_only_the_plain_sum_is_left(times):
    for event in (pure(600), BoundedRange(epsilon=Fraction(600)), told(600, "1e-8")):
        assert pld.epsilon([event] * times, delta="1e-6") == 600 * times
        assert pld.delta([event] * times, epsilon=5) == 1
    certain = Stated(guarantee=ZCDP(rho=Fraction(5000)))
    likely = PoissonSampled(rate=Fraction(1, 2), event=gauss("1/100"))
    for event in (certain, likely):
        with pytest.raises(Refused, match=r"no ε up to 512 for each event goes with δ = 1e-06; nothing was accounted"):
            pld.epsilon([event] * times, delta="1e-6")
    assert pld.delta([certain] * times, epsilon=5) == 1
    assert Fraction(1, 2) <= pld.delta([likely] * times, epsilon=5) <= 1


def test_the_floor_under_delta():
    sampled = PoissonSampled(rate=Fraction(1, 2), event=gauss(1))
    assert pld.epsilon(sampled, delta="1e-20") > pld.epsilon(sampled, delta="1e-19")
    with pytest.raises(Refused, match="below the floor of 1e-20"):
        pld.epsilon(sampled, delta="0.99e-20")
    assert pld.delta(sampled, epsilon=400) == pld.LEAST_DELTA == Fraction(1, 10**20)
    assert pld.delta(pure(1), epsilon=1) == 0


# ---------------------------------------------------------------------------------------------------- directions


def lopsided(one: str, other: str) -> list[tuple[profiles.DominatingPair, int]]:
    response = [profiles.pair_of(pure(epsilon)).remove for epsilon in (one, other)]
    return [(profiles.DominatingPair(remove=response[0], add=response[1]), 1)]


@pytest.mark.parametrize("pair", [("1/2", "1"), ("1", "1/2"), ("1/1000", "1")])
def test_the_worse_of_both_directions_counts(monkeypatch, pair):
    monkeypatch.setattr(pld, "_merged", lambda found: lopsided(*pair))
    monkeypatch.setattr(pld, "_plain", lambda found: None)
    worse = Pure(epsilon=Fraction(1))
    for delta in ("1/10", "1/1000"):
        least = worse.epsilon_at(delta)
        assert least <= pld.epsilon(pure(1), delta=delta) <= least * Fraction("1.001")
    truth = worse.delta_at("1/2")
    assert truth <= pld.delta(pure(1), epsilon="1/2") <= truth * Fraction("1.001")


def test_one_direction_is_enough_where_both_are_the_same():
    same, other = profiles.pair_of(pure(1)), lopsided("1/2", "1")[0][0]
    assert pld._directions([(same, 3)]) == [[(same.remove, same.add, 3)]]
    ahead, back = pld._directions([(same, 3), (other, 2)])
    assert ahead == [(same.remove, same.remove, 3), (other.remove, other.add, 2)]
    assert back == [(same.remove, same.remove, 3), (other.add, other.remove, 2)]


def test_a_direction_that_surely_matters_less_is_not_computed(monkeypatch):
    computed = []
    compose = pld_truncation.compose

    def counting(*given, **named):
        computed.append(given)
        return compose(*given, **named)

    monkeypatch.setattr(pld_truncation, "compose", counting)
    event = PoissonSampled(rate=Fraction(1, 100), event=gauss(1))
    assert pld.epsilon([event] * 100, delta="1e-6") > 0
    assert len(computed) == 1


def test_an_epsilon_of_nothing_in_one_direction_leaves_the_other_to_be_computed(monkeypatch):
    monkeypatch.setattr(pld, "_merged", lambda found: lopsided("1/1000", "1"))
    monkeypatch.setattr(pld, "_plain", lambda found: None)
    monkeypatch.setattr(pld_truncation, "within", lambda *given: True)
    assert pld.epsilon(pure(1), delta="1/10") > Fraction(1, 2)


# ------------------------------------------------------------------------------------------ inside of samples


def test_gaussians_inside_a_sample_become_one():
    many = Composed(events=(Repeated(event=gauss(2, l2_squared=3), times=4), gauss(1)))
    assert values(profiles._inner(many)) == values(profiles.pair_of(gauss(1, l2_squared=4)))
    assert profiles._inner(pure(1)) is profiles.pair_of(pure(1))
    for mixed in (Repeated(event=pure(1), times=2), Composed(events=(gauss(1), pure(1)))):
        with pytest.raises(Unsupported, match="only where its parts are Gaussian"):
            profiles._inner(mixed)


@pytest.mark.parametrize("epsilon", ["0", "1/3", "1", "5/2"])
def test_stated_guarantees_have_the_profile_of_the_worst_they_allow(epsilon):
    asked = number(Fraction(epsilon))
    place = np.array([float(Fraction(epsilon))])

    def found(guarantee: Pure | Approximate | GDP | RDP) -> object:
        return mp.mpf(float(profiles.pair_of(Stated(guarantee=guarantee)).remove(place)[0]))

    for own in (Fraction(0), Fraction(1, 7)):
        truth = hockey_stick(*four_points(mp.exp(1), number(own)), mp.exp(asked))
        assert truth <= found(Approximate(epsilon=Fraction(1), delta=own)) <= truth + mp.mpf("1e-11")
    assert found(Pure(epsilon=Fraction(1))) <= found(Approximate(epsilon=Fraction(1), delta=Fraction(0)))
    truth = gaussian_delta(Fraction(3), Fraction(epsilon))
    assert truth <= found(GDP(mu=Fraction(3))) <= truth + mp.mpf("1e-11")
    curve = RDP(curve=((Fraction(3), Fraction(1, 4)),))
    truth = number(curve.delta_at(epsilon))
    assert truth * (1 - mp.mpf("1e-20")) <= found(curve) <= truth + mp.mpf("1e-11")


# ------------------------------------------------------------------------------------------------ plans


def test_a_plan_is_its_steps_each_over_a_sample():
    step = Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(9))
    assert plan(sigma=3, steps=7) == plan(sigma=3, steps=7, sampling=1) == Repeated(event=step, times=7)
    sampled = PoissonSampled(rate=Fraction(1, 4), event=step)
    assert plan(sigma=3, steps=1, sampling="1/4") == Repeated(event=sampled, times=1)
    for wrong in ({"sigma": 0, "steps": 1}, {"sigma": 1, "steps": 0}, {"sigma": 1, "steps": 1, "sampling": 0}):
        with pytest.raises(InvalidInput):
            plan(**wrong)


def test_six_digits_are_kept():
    assert (_shortened(3.14159265, up=True), _shortened(3.14159265, up=False)) == (
        Fraction("3.14160"),
        Fraction("3.14159"),
    )
    assert (_shortened(99999.95, up=True), _shortened(99999.95, up=False)) == (100_000, Fraction("99999.9"))
    assert (_shortened(1234567.5, up=True), _shortened(1234567.5, up=False)) == (1_234_570, 1_234_560)
    assert _shortened(1.0, up=True) == _shortened(1.0, up=False) == 1


@pytest.mark.parametrize("value", [1.0, 0.1, 3.14159265, 99999.95, 1234567.5, 9.99999999e-5, 0.00123456789])
def test_numbers_are_shortened_to_the_side_that_is_named(value):
    up, down = _shortened(value, up=True), _shortened(value, up=False)
    exact = Fraction(value)
    assert down <= exact <= up
    for found in (up, down):
        digits = found
        while digits < 10**5:
            digits *= 10
        while digits > 10**6:
            digits /= 10
        assert digits.denominator == 1
    assert up - down <= exact / 10**5
