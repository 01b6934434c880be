"""Brackets: an ε that is enough and an ε that is not, never crossed, close, and certain on both sides."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import accounting
from sfumato.accounting import brackets, connect_the_dots, dots_below, pld, pld_truncation, profiles, tilted_fft
from sfumato.accounting.profiles_below import pair_below
from sfumato.core.events import (
    BoundedRange,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import GDP, ZCDP, Approximate, Pure
from tests.core.truth import mp, normal_cdf, number


def sampled(rate: str, sigma: str, times: int) -> PrivacyEvent:
    return accounting.plan(sigma=sigma, steps=times, sampling=rate)


# ---------------------------------------------------------------------------------------------- how wide

NARROW = [
    ("1e-6", "0.6", 10**5, "1e-10"),
    ("1e-5", "0.7", 10**5, "1e-10"),
    ("3e-6", "0.55", 3 * 10**5, "1e-9"),
    ("1e-7", "0.5", 10**6, "1e-12"),
]


@pytest.mark.parametrize(("rate", "sigma", "times", "delta"), NARROW)
def test_rare_samples_are_bracketed_within_three_hundredths(rate, sigma, times, delta):
    found = accounting.bracket(sampled(rate, sigma, times), delta=delta)
    assert 0 < found.lower <= found.upper <= found.lower * Fraction("1.03")
    assert found.upper == accounting.epsilon(sampled(rate, sigma, times), delta=delta)


@pytest.mark.parametrize(
    ("rate", "sigma", "times", "delta"), [NARROW[3], ("1e-5", "1", 10**5, "1e-8"), ("0.01", "1", 10**4, "1e-5")]
)
def test_delta_at_the_epsilon_that_was_found_is_the_delta_it_was_found_for(rate, sigma, times, delta):
    event = sampled(rate, sigma, times)
    assert pld.delta(event, epsilon=pld.epsilon(event, delta=delta)) <= Fraction(delta) * Fraction("1.01")


def test_the_set_of_one_large_loss_is_a_lower_bound_by_itself():
    """0.0561 at q = 1e-6, σ = 0.6, T = 1e5, δ = 1e-10, where the upper end had been 0.114."""
    law = profiles.pair_of(PoissonSampled(rate=Fraction("1e-6"), event=gauss("0.6")))
    below = pair_below(PoissonSampled(rate=Fraction("1e-6"), event=gauss("0.6")))
    bound = brackets.one_event([(law.remove, law.add, 10**5)], [(below.remove, below.add)])
    assert bound(0.0560) > 1e-10 > bound(0.0562)


# (q, σ, T, δ, ε of dp-accounting 0.6.0 on a grid about twice as wide as ours): random, from two fixed seeds
PEERS = [
    ("0.017", "2.62", 8000, "3e-10", 3.720739893243259),
    ("0.0017", "3.93", 210, "4e-10", 0.03322714311496567),
    ("0.26", "2.87", 12, "2e-7", 1.7790510329268039),
    ("3.1e-6", "1.15", 180000, "5e-9", 0.00585437902476428),
    ("9.1e-5", "2.8", 260, "1e-10", 0.0027387901405876193),
    ("5.5e-6", "2.15", 15000, "1e-7", 0.001022643626704493),
    ("7.6e-5", "1.17", 21000, "9e-10", 0.05782641627176046),
    ("0.0071", "2.24", 1100, "8e-9", 0.5741643740866019),
    ("2.3e-6", "1.09", 3400, "2e-9", 0.0006353737218954666),
    ("0.00077", "1.91", 32000, "2e-9", 0.4036727328118737),
    ("0.0017", "0.54", 3600, "7e-6", 4.342115781302218),
    ("0.0056", "0.77", 1800, "4e-9", 4.242730699995587),
    ("0.15", "0.56", 1, "3e-10", 9.763931956439592),
    ("1.9e-5", "3.59", 1300, "2e-7", 0.0005338973229867326),
    ("0.011", "2.51", 34, "8e-10", 0.1674167835169869),
    ("6.7e-5", "1.4", 15000, "3e-6", 0.020068357860228824),
    ("0.0041", "2.74", 2000, "4e-6", 0.248622902752703),
    ("9.5e-6", "3.54", 110000, "7e-7", 0.00254376497171149),
    ("0.0067", "0.54", 33, "1e-6", 4.554319791441917),
    ("0.01", "1.75", 2, "8e-10", 0.17319724154020313),
    ("0.00064", "2.15", 6000, "6e-9", 0.11694078483987017),
    ("0.00099", "1.81", 17000, "1e-10", 0.44564529165706884),
    ("0.00088", "2.56", 2, "7e-7", 0.0020642717300798988),
    ("0.0018", "3.83", 11, "1e-8", 0.00764239998141275),
    ("0.062", "3.8", 5900, "6e-9", 7.763380716043461),
    ("0.0096", "2.09", 870, "2e-7", 0.6621149232338821),
    ("3.2e-5", "1.33", 1400, "1e-10", 0.005536681048346051),
    ("0.025", "2.21", 4500, "8e-7", 3.8897525755577202),
    ("2.9e-5", "1.47", 1, "1e-8", 0.00022849278756209278),
    ("0.32", "3.32", 15, "7e-6", 1.65869209779615),
    ("2.8e-5", "1.2", 2, "2e-7", 0.0002186863576012402),
    ("0.00012", "3.96", 3800, "2e-6", 0.005164185971642972),
    ("0.00016", "1.65", 8, "1e-6", 0.0010191141747627494),
    ("6.6e-5", "0.86", 35, "4e-6", 0.0026290181689601093),
    ("4.1e-5", "1.16", 1, "4e-8", 0.0005241544291541142),
    ("0.003", "1.94", 3700, "4e-8", 0.4804365766022228),
    ("0.022", "2.48", 300, "1e-8", 0.861279936915825),
    ("6.5e-5", "0.8", 6, "6e-8", 0.008027512276637783),
]


@pytest.mark.few(6)
@pytest.mark.parametrize(("rate", "sigma", "times", "delta", "peer"), PEERS)
def test_random_settings_beside_a_lower_bound_and_dp_accounting(rate, sigma, times, delta, peer):
    found = accounting.bracket(sampled(rate, sigma, times), delta=delta)
    assert 0 < found.lower <= found.upper <= found.lower * Fraction("1.01")
    assert found.lower <= peer * (1 + 1e-9)  # an upper bound, on another grid and by other code
    assert peer == pytest.approx(float(found.upper), rel=4e-3)


# ------------------------------------------------------------------------------------------- it never crosses


def gauss(sigma: Fraction | int | str, l2_squared: int = 1) -> Gaussian:
    return Gaussian(l2_squared=Fraction(l2_squared), sigma_squared=Fraction(sigma) ** 2)


SIGMAS = st.integers(min_value=30, max_value=800).map(lambda size: Fraction(size, 100))
RATES = st.tuples(st.integers(1, 99), st.integers(2, 8)).map(lambda pair: Fraction(pair[0], 10 ** pair[1]))
PLAIN = st.one_of(
    SIGMAS.map(gauss),
    st.integers(1, 300).map(lambda size: Stated(guarantee=Pure(epsilon=Fraction(size, 100)))),
    st.integers(1, 300).map(lambda size: RandomizedResponse(epsilon=Fraction(size, 100), categories=3)),
    st.integers(1, 300).map(lambda size: Stated(guarantee=GDP(mu=Fraction(size, 200)))),
    st.integers(1, 99).map(
        lambda size: Stated(guarantee=Approximate(epsilon=Fraction(size, 100), delta=Fraction(size, 10**9)))
    ),
)
EVENTS = st.one_of(
    PLAIN,
    st.builds(lambda rate, event: PoissonSampled(rate=rate, event=event), RATES, PLAIN),
    st.just(DiscreteLaplace(l1=Fraction(1), scale=Fraction(3))),
    st.just(BoundedRange(epsilon=Fraction(1, 5))),
    st.just(Stated(guarantee=ZCDP(rho=Fraction(1, 50)))),
)
LISTS = st.lists(
    st.builds(lambda event, power: Repeated(event=event, times=3**power), EVENTS, st.integers(0, 7)),
    min_size=1,
    max_size=3,
)


def never_crosses(events: list[PrivacyEvent], power: int) -> None:
    delta = Fraction(1, 10**power)
    try:
        upper = pld.epsilon(events, delta=delta, precision=1e-3)
    except pld.Refused:
        return
    lower = brackets.lower_epsilon(events, delta=delta, below=2 * upper, precision=1e-3)  # looked for beyond it too
    assert lower <= upper


@settings(max_examples=10, deadline=None)
@given(LISTS, st.integers(4, 12))
def test_the_lower_end_is_never_above_the_upper(events, power):
    never_crosses(events, power)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(LISTS, st.integers(3, 15))
def test_the_lower_end_is_never_above_the_upper_in_many_lists(events, power):
    never_crosses(events, power)


def test_a_curve_that_turns_inside_one_cell_gives_no_lower_bound_above_the_truth():
    """Nearly all of the loss is ln(1 − q) here: found by the property above, where a slope had come out above 1."""
    both = [gauss("3/10"), PoissonSampled(rate=Fraction(1, 100), event=gauss("3/10"))]
    assert brackets.lower_epsilon(both, delta="1e-3", below=31) <= 15.3704 < pld.epsilon(both, delta="1e-3") < 15.373


# ------------------------------------------------------------------------------------------- exact values


def one_way(rate: object, sigma: object, epsilon: object, *, add: bool) -> object:
    """δ(ε) of one sampled Gaussian at ε ≥ 0, with the unit against without it, or the other way round."""
    e = mp.exp(epsilon)
    if not add:
        at = sigma**2 * mp.log((e - 1 + rate) / rate) + mp.mpf(1) / 2
        return rate * normal_cdf(-(at - 1) / sigma) - (e - 1 + rate) * normal_cdf(-at / sigma)
    weight = 1 - (1 - rate) * e
    if weight <= 0:
        return mp.mpf(0)
    at = sigma**2 * mp.log(weight / (rate * e)) + mp.mpf(1) / 2
    return weight * normal_cdf(at / sigma) - rate * e * normal_cdf((at - 1) / sigma)


@pytest.mark.parametrize(("rate", "sigma"), [("0.01", "1"), ("1e-6", "0.6"), ("0.5", "3")])
def test_lower_and_upper_profiles_hold_the_exact_one_between_them_both_ways(rate, sigma):
    event = PoissonSampled(rate=Fraction(rate), event=gauss(sigma))
    above, below = profiles.pair_of(event), pair_below(event)
    for epsilon in (0.0, float(Fraction(rate)) / 3, 1e-3, 0.05, 1.0):
        at = np.array([epsilon])
        for way in ("remove", "add"):
            truth = one_way(mp.mpf(rate), mp.mpf(sigma), mp.mpf(epsilon), add=way == "add")
            high, low = float(getattr(above, way)(at)[0]), float(getattr(below, way)(at)[0])
            assert low <= truth <= high
            assert high - low <= 1e-9 * float(truth) + 1e-14 * float(Fraction(rate))


def cells(rate: object, sigma: object, count: int) -> list[tuple[object, object]]:
    """A sampled Gaussian's outputs merged into cells: exact masses of a pair that it dominates, near to it."""
    edges = [-mp.inf, *(mp.mpf(k) * sigma / 4 for k in range(-16, 4 * count)), mp.inf]
    masses = []
    for left, right in pairwise(edges):
        base = normal_cdf(right / sigma) - normal_cdf(left / sigma)
        moved = normal_cdf((right - 1) / sigma) - normal_cdf((left - 1) / sigma)
        masses.append(((1 - rate) * base + rate * moved, base))
    return masses


@pytest.mark.parametrize("add", [False, True])
def test_two_steps_multiplied_out_at_many_digits_lie_below_the_upper_end(add):
    """Cells of outputs are post-processing: their δ is below the truth, hence below every upper bound."""
    rate, sigma = mp.mpf("0.001"), mp.mpf("0.7")
    event = Repeated(event=PoissonSampled(rate=Fraction("0.001"), event=gauss("0.7")), times=2)
    pairs = [(q, p) if add else (p, q) for p, q in cells(rate, sigma, 12)]
    for epsilon in (Fraction(1, 2000), Fraction(1, 100), Fraction(1, 2)):
        e = mp.exp(number(epsilon))
        least = mp.fsum(max(p * r - e * q * s, 0) for p, q in pairs for r, s in pairs)
        assert least <= number(pld.delta(event, epsilon=epsilon))


def composed_below(rate: str, sigma: str, times: int, epsilon: float, way: str) -> tilted_fft.Composition | None:
    event = PoissonSampled(rate=Fraction(rate), event=gauss(sigma))
    above, below, back = profiles.pair_of(event), pair_below(event), {"remove": "add", "add": "remove"}[way]
    return pld_truncation.compose(
        [(getattr(above, way), getattr(above, back), times)],
        1e-3,
        epsilon=epsilon,
        floors=[(getattr(below, way), getattr(below, back))],
    )


@pytest.mark.parametrize("way", ["remove", "add"])
def test_one_step_from_below_is_below_the_exact_value_and_close(way):
    for rate, sigma in (("0.01", "1"), ("0.3", "2")):
        for epsilon in (0.001, 0.004, 0.2):
            found = composed_below(rate, sigma, 1, epsilon, way)
            assert found is not None
            truth = one_way(mp.mpf(rate), mp.mpf(sigma), mp.mpf(epsilon), add=way == "add")
            assert found.delta_below(epsilon) <= truth
            if truth > mp.mpf("1e-6"):
                assert found.delta_below(epsilon) >= truth * mp.mpf("0.98")


def test_gaussians_alone_and_pure_events_have_ends_that_meet():
    found = accounting.bracket([gauss(3)] * 7, delta="1e-7")
    assert found.lower <= found.upper <= found.lower * (1 + Fraction(1, 10**6))
    two = [Stated(guarantee=Pure(epsilon=Fraction(1, 3)))] * 2
    assert accounting.bracket(two, delta=0) == brackets.Bracket(lower=Fraction(2, 3), upper=Fraction(2, 3))
    assert accounting.bracket([], delta="1e-6") == brackets.Bracket(lower=Fraction(0), upper=Fraction(0))


def test_what_has_no_attained_loss_counts_as_nothing_from_below():
    rho = Stated(guarantee=ZCDP(rho=Fraction(1, 10)))
    alone = accounting.bracket(rho, delta="1e-6")
    assert alone.lower == 0 < alone.upper
    assert alone.width is None
    both = accounting.bracket([rho, gauss(1)], delta="1e-6")
    assert both.lower == pytest.approx(float(accounting.epsilon(gauss(1), delta="1e-6")), rel=1e-5)


# ------------------------------------------------------------------------------------------- broken twins


def grid_of_dots(rate: str, sigma: str) -> tuple[connect_the_dots.Dots, connect_the_dots.Dots, profiles.DominatingPair]:
    event = PoissonSampled(rate=Fraction(rate), event=gauss(sigma))
    above, below = profiles.pair_of(event), pair_below(event)
    step = connect_the_dots.rounded_step(float(Fraction(rate)) / 9)
    size = math.ceil(3 / step)
    high = connect_the_dots.connect(above.remove, above.add, low=-40, high=size, step=step)
    low = dots_below.connect_below((above.remove, above.add), (below.remove, below.add), low=-40, high=size, step=step)
    return low, high, below


def curve(dots: connect_the_dots.Dots, epsilon: float) -> float:
    losses = dots.losses
    above = losses > epsilon
    return float((dots.masses[above] * -np.expm1(epsilon - losses[above])).sum()) + dots.infinite


def off_the_grid(dots: connect_the_dots.Dots) -> list[float]:
    return [dots.step * place for place in (-20.4, -8.5, -3.3, -0.5, 0.4, 1.5, 7.2, 33.6, 400.5, 2000.3)]


def exact(epsilon: float, rate: str, sigma: str) -> float:
    if epsilon >= 0:
        return float(one_way(mp.mpf(rate), mp.mpf(sigma), mp.mpf(epsilon), add=False))
    back = one_way(mp.mpf(rate), mp.mpf(sigma), mp.mpf(-epsilon), add=True)
    return float(1 - mp.exp(epsilon) + mp.exp(epsilon) * back)


def test_dots_lie_on_their_side_everywhere_and_those_of_the_other_side_do_not():
    """Rounding the other way is the broken twin: each curve fails the test of the other."""
    low, high, _ = grid_of_dots("0.01", "0.8")
    places = off_the_grid(low)
    truth = [exact(place, "0.01", "0.8") for place in places]
    assert all(curve(low, at) <= t * (1 + 1e-13) for at, t in zip(places, truth, strict=True))
    assert all(curve(high, at) >= t * (1 - 1e-13) for at, t in zip(places, truth, strict=True))
    assert not all(curve(high, at) <= t * (1 + 1e-13) for at, t in zip(places, truth, strict=True))
    assert not all(curve(low, at) >= t * (1 - 1e-13) for at, t in zip(places, truth, strict=True))


def test_without_the_mass_beyond_the_grid_an_upper_curve_is_none():
    low, high, _ = grid_of_dots("0.01", "0.8")
    dropped = connect_the_dots.Dots(low=high.low, step=high.step, masses=high.masses, infinite=0.0)
    at = float(high.losses[-1])
    assert curve(high, at) >= exact(at, "0.01", "0.8") * (1 - 1e-12) > curve(dropped, at)
    assert low.infinite == 0


def test_a_lower_end_made_of_upper_masses_crosses(monkeypatch):
    """The twin rounds outward where it should round inward; the property that never fails then does."""
    event = sampled("0.05", "0.8", 200)
    assert brackets.lower_epsilon(event, delta="1e-6", below=40) <= pld.epsilon(event, delta="1e-6")

    def upper(above, below, *, low, high, step):
        made = connect_the_dots.connect(*above, low=low, high=high, step=step)
        return connect_the_dots.Dots(low=low + 1, step=step, masses=made.masses, infinite=0.0)

    monkeypatch.setattr(pld_truncation, "connect_below", upper)
    assert brackets.lower_epsilon(event, delta="1e-6", below=40) > pld.epsilon(event, delta="1e-6")


def test_what_is_left_out_below_the_cut_is_counted():
    """With a cut that leaves out what matters, the bound on what was left out keeps δ an upper bound."""
    pair = profiles.pair_of(PoissonSampled(rate=Fraction(1, 10), event=gauss(1)))
    law = connect_the_dots.connect(pair.remove, pair.add, low=-12, high=600, step=connect_the_dots.rounded_step(0.01))
    plain = tilted_fft.Window(start=-300, size=1 << 12, tilt=2.0, tail_tilt=4.0)
    cut = tilted_fft.Window(start=-300, size=1 << 12, tilt=2.0, tail_tilt=4.0, cut=1.0, low_tilts=(2.0, 4.0, 8.0))
    whole, apart = (tilted_fft.compose([(law, 20)], window) for window in (plain, cut))
    for epsilon in (0.5, 2.0, 4.0):
        assert apart.delta(epsilon) >= whole.delta(epsilon) * (1 - 1e-9)
        kept = apart.delta(epsilon) - apart.left_out(epsilon) * apart.growth
        assert kept <= whole.delta(epsilon) * (1 + 1e-9)
    assert apart.delta(2.0) - 1.01 * apart.left_out(2.0) < whole.delta(2.0)  # without it the bound is none
    far = tilted_fft.compose([(law, 20)], tilted_fft.Window(**{**_fields(cut), "cut": 0.2}))
    assert far.delta(4.0) == pytest.approx(whole.delta(4.0), rel=0.05)


def _fields(window: tilted_fft.Window) -> dict[str, object]:
    return {name: getattr(window, name) for name in window.__slots__}


def test_what_was_wrapped_around_comes_off_from_below():
    """A window that is too narrow puts large losses where small ones lie: without what comes off it is no bound."""
    event = PoissonSampled(rate=Fraction(1, 10), event=gauss(1))
    above, below = profiles.pair_of(event), pair_below(event)
    law = dots_below.connect_below(
        (above.remove, above.add),
        (below.remove, below.add),
        low=-12,
        high=600,
        step=connect_the_dots.rounded_step(0.01),
    )
    narrow = tilted_fft.Window(start=0, size=1 << 9, tilt=4.0, tail_tilt=4.0, sides=(0.0, 6.0))
    found = tilted_fft.compose([(law, 40)], narrow, outward=False)
    total, slack, _ = found._parts(0.5)
    naive = math.exp(found.log_scale - found.tilt * 0.5) * (total - slack)
    truth = float(pld.delta(Repeated(event=event, times=40), epsilon=0.5))
    assert naive > truth * 1.01
    assert found.delta_below(0.5) <= truth
