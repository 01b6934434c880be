"""The PLD accountant beside exact values: never below, and close above."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.special import ndtr

from sfumato import accounting
from sfumato.accounting import lattice, optimal, pld
from sfumato.core.events import (
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Repeated,
    Stated,
)
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import Refused, Unsupported
from tests.core.truth import gaussian_delta, mp, normal_cdf, number

CLOSE = 2e-3


def times(event: PrivacyEvent, count: int) -> Repeated:
    return Repeated(event=event, times=count)


def gauss(sigma: Fraction | int | str, l2_squared: int = 1) -> Gaussian:
    return Gaussian(l2_squared=Fraction(l2_squared), sigma_squared=Fraction(sigma) ** 2)


def by_fft(event: PrivacyEvent) -> PoissonSampled:
    """The same event, but not recognised as one that has an exact formula."""
    return PoissonSampled(rate=Fraction(1), event=event)


def composed_delta(atoms: list[tuple[object, object]], count: int, epsilon: Fraction) -> object:
    """δ(ε) of a finite pair (p, q) composed ``count`` times, by multiplying out at 80 digits."""
    laws = {mp.mpf(0): mp.mpf(1)}
    losses = [(p, mp.log(p / q)) for p, q in atoms]
    for _ in range(count):
        grown: dict[object, object] = {}
        for total, mass in laws.items():
            for p, loss in losses:
                key = mp.nint((total + loss) * mp.mpf(10) ** 40) / mp.mpf(10) ** 40
                grown[key] = grown.get(key, 0) + mass * p
        laws = grown
    e = number(epsilon)
    return mp.fsum(mass * (1 - mp.exp(e - loss)) for loss, mass in laws.items() if loss > e)


@pytest.mark.parametrize(
    ("sigma", "count", "delta"), [(1, 1, 1e-5), (10, 100, 1e-5), (10, 1000, 1e-12), (50, 10_000, 1e-6), (4, 1, 1e-15)]
)
def test_composed_gaussians_by_fft_lie_just_above_the_exact_formula(sigma, count, delta):
    exact = GDP(mu=Fraction(math.isqrt(count * 10**20), 10**10) / sigma).epsilon_at(delta)
    found = pld.epsilon(times(by_fft(gauss(sigma)), count), delta=delta)
    assert exact * (1 - Fraction(1, 10**8)) <= found <= exact * Fraction(1 + CLOSE)
    epsilon = exact / 2
    truth = gaussian_delta(Fraction(math.isqrt(count * 10**40), 10**20) / sigma, epsilon)
    bound = pld.delta(times(by_fft(gauss(sigma)), count), epsilon=epsilon)
    assert number(bound) >= truth * (1 - mp.mpf(10) ** -15)
    assert bound <= Fraction(float(truth)) * Fraction(1.02)


@pytest.mark.few(2)
@pytest.mark.parametrize(("epsilon", "count", "delta"), [("1/10", 100, 1e-6), (1, 20, 1e-9), ("1/20", 1440, 1e-7)])
def test_composed_randomised_response_lies_just_above_optimal_composition(epsilon, count, delta):
    step = Pure(epsilon=Fraction(epsilon))
    exact = optimal.epsilon(step, count, delta=delta)
    for event in (Stated(guarantee=step), RandomizedResponse(epsilon=Fraction(epsilon), categories=2)):
        found = pld.epsilon(times(event, count), delta=delta)
        assert exact * (1 - Fraction(1, 10**8)) <= found <= exact * Fraction(1 + CLOSE)


def test_randomised_response_over_many_categories_is_exact():
    odds, count = mp.exp(mp.mpf(1) / 2), 6
    total = odds + 4
    atoms = [(odds / total, 1 / total), (1 / total, odds / total), *[(1 / total, 1 / total)] * 3]
    event = times(RandomizedResponse(epsilon=Fraction(1, 2), categories=5), count)
    for epsilon in (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2)):
        truth = composed_delta(atoms, count, epsilon)
        assert truth <= number(pld.delta(event, epsilon=epsilon)) <= truth * (1 + 100 * CLOSE)


@lru_cache
def discrete_gaussian(sigma_squared: Fraction, reach: int = 400) -> dict[int, object]:
    weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * number(sigma_squared))) for k in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def lattice_delta(sigma_squared: Fraction, shifts: tuple[int, ...], epsilon: Fraction, reach: int = 40) -> object:
    law = {0: mp.mpf(1)}
    noise = {k: p for k, p in discrete_gaussian(sigma_squared).items() if abs(k) <= reach}
    for shift in shifts:
        grown: dict[int, object] = {}
        for at, mass in law.items():
            for k, p in noise.items():
                grown[at + shift * k] = grown.get(at + shift * k, 0) + mass * p
        law = grown
    n, e = sum(shift * shift for shift in shifts), mp.exp(number(epsilon))
    return mp.fsum(
        max(law.get(w - n, mp.mpf(0)) - e * law.get(w, mp.mpf(0)), 0) for w in range(min(law), max(law) + n + 1)
    )


@pytest.mark.claim("X-08")
@pytest.mark.parametrize(("epsilon", "delta", "excess"), [(1, "1e-5", 1.035), (3, "1e-6", 1.38), (8, "1e-6", 3.0)])
def test_the_discrete_gaussian_exceeds_the_target_of_the_continuous_sigma(epsilon, delta, excess):
    sigma = accounting.gaussian_sigma(l2=1, epsilon=epsilon, delta=delta)
    truth = lattice_delta(Fraction(sigma) ** 2, (1,), Fraction(epsilon))
    assert float(truth / number(Fraction(delta))) == pytest.approx(excess, rel=0.01)
    event = DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=sigma**2)
    found = pld.delta(event, epsilon=epsilon)
    assert truth * (1 - mp.mpf(10) ** -12) <= number(found) <= truth * (1 + mp.mpf(CLOSE))
    assert pld.delta(gauss(sigma), epsilon=epsilon) <= Fraction(delta) < found


@pytest.mark.claim("X-08")
def test_a_sigma_calibrated_by_the_discrete_loss_meets_its_target():
    low, high = Fraction("3.7"), Fraction("3.9")
    while high - low > Fraction(1, 1000):
        middle = (low + high) / 2
        fits = pld.delta(DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=middle**2), epsilon=1) <= Fraction(
            "1e-5"
        )
        low, high = (low, middle) if fits else (middle, high)
    assert lattice_delta(high**2, (1,), Fraction(1)) <= mp.mpf("1e-5")
    assert high > accounting.gaussian_sigma(l2=1, epsilon=1, delta=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0.3", "1.7"])
def test_all_shift_patterns_of_the_discrete_gaussian_are_covered(epsilon):
    sigma_squared = Fraction(4)
    event = DiscreteGaussian(l2_squared=Fraction(5), sigma_squared=sigma_squared)
    patterns = [(1,), (1, 1), (1, 1, 1), (2,), (1, 1, 1, 1), (2, 1), (1, 1, 1, 1, 1)]
    worst = max(lattice_delta(sigma_squared, pattern, Fraction(epsilon)) for pattern in patterns)
    found = number(pld.delta(event, epsilon=epsilon))
    assert worst <= found <= worst * (1 + 20 * mp.mpf(CLOSE))


def test_patterns_are_all_sums_of_squares():
    assert sorted(tail.squared for tail in lattice.tails(5, Fraction(4))) == [1, 2, 3, 4, 4, 5, 5]
    assert lattice.enumerable(64, Fraction(16))
    assert not lattice.enumerable(65, Fraction(1))
    assert not lattice.enumerable(64, Fraction(10_000))


@pytest.mark.parametrize(("squared", "sigma_squared"), [(1, 40), (4, 100), (25, 300)])
def test_the_smooth_cover_is_above_the_exact_loss(squared, sigma_squared):
    cover = lattice.smoothed(squared, Fraction(sigma_squared))
    assert cover is not None
    for epsilon in (Fraction("0.1"), Fraction("0.5"), Fraction(1)):
        exact = pld.delta(
            DiscreteGaussian(l2_squared=Fraction(squared), sigma_squared=Fraction(sigma_squared)), epsilon=epsilon
        )
        covered = (1 + cover.excess) * GDP(mu=Fraction(math.sqrt(cover.mu_squared))).delta_at(epsilon - cover.shift)
        assert exact <= covered * Fraction(1 + CLOSE)
    assert lattice.smoothed(100, Fraction(1)) is None


def test_fine_lattices_cost_nothing_and_hopeless_ones_fall_back_to_concentration():
    fine = DiscreteGaussian(l2_squared=Fraction(2**80), sigma_squared=Fraction(2**80 * 9))
    continuous = accounting.epsilon(gauss(3), delta=1e-6)
    assert continuous <= accounting.epsilon(times(fine, 1), delta=1e-6) <= continuous * Fraction(1 + CLOSE)
    rough = DiscreteGaussian(l2_squared=Fraction(100), sigma_squared=Fraction(3))
    assert accounting.epsilon(rough, delta=1e-6) >= accounting.epsilon(rough, delta=1e-6, method="zcdp") * Fraction(
        99, 100
    )


def laplace_atoms(shift: int, scale: Fraction) -> list[tuple[object, object]]:
    r = mp.exp(-1 / number(scale))
    laws = {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-200, 200 + shift)}
    return [(laws[k - shift], laws[k]) for k in range(-150, 150 + shift)]


@pytest.mark.parametrize(("shift", "scale"), [(1, 2), (3, 4), pytest.param(4, 1, marks=pytest.mark.long)])
def test_the_discrete_laplace_is_exact_and_one_shifted_place_is_the_worst(shift, scale):
    event = DiscreteLaplace(l1=Fraction(shift), scale=Fraction(scale))
    for epsilon in (Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(shift, 2 * scale)):
        factor = mp.exp(number(epsilon))
        truth = mp.fsum(max(p - factor * q, 0) for p, q in laplace_atoms(shift, Fraction(scale)))
        found = number(pld.delta(event, epsilon=epsilon)) + mp.mpf(10) ** -60
        assert truth * (1 - mp.mpf(10) ** -12) <= found <= truth * (1 + 20 * mp.mpf(CLOSE)) + mp.mpf(10) ** -12
        for part in range(1, shift):
            one, other = laplace_atoms(part, Fraction(scale)), laplace_atoms(shift - part, Fraction(scale))
            split = mp.fsum(max(p * s - factor * q * t, 0) for p, q in one[100:-100] for s, t in other[100:-100])
            assert split <= found


def test_a_bounded_range_is_the_best_of_its_two_point_laws():
    top = mp.mpf(1)
    event = BoundedRange(epsilon=Fraction(1))
    for epsilon in (Fraction(0), Fraction(1, 4), Fraction(3, 4)):
        best = mp.mpf(0)
        for place in range(1, 200):
            t = top * place / 200
            low = (mp.exp(-t) - mp.exp(-top)) / (1 - mp.exp(-top))
            best = max(best, low * (mp.exp(t) - mp.exp(number(epsilon))))
        found = number(pld.delta(event, epsilon=epsilon))
        assert best <= found <= best * (1 + 20 * mp.mpf(CLOSE))


def sampled_delta(rate: object, sigma: object, epsilon: Fraction) -> object:
    """Both directions of one sampled Gaussian, in closed form."""
    e = mp.exp(number(epsilon))
    at = sigma**2 * mp.log((e - 1 + rate) / rate) + mp.mpf(1) / 2
    remove = rate * normal_cdf(-(at - 1) / sigma) - (e - 1 + rate) * normal_cdf(-at / sigma)
    back = mp.exp(-number(epsilon))
    if back <= 1 - rate:
        return remove
    at = sigma**2 * mp.log((back - 1 + rate) / rate) + mp.mpf(1) / 2
    return max(remove, normal_cdf(at / sigma) * (1 - e * (1 - rate)) - e * rate * normal_cdf((at - 1) / sigma))


@pytest.mark.parametrize(("rate", "sigma"), [("0.01", "1"), ("0.5", "0.7"), ("0.001", "3"), ("0.9", "2")])
def test_one_sampled_gaussian_is_exact_in_both_directions(rate, sigma):
    event = PoissonSampled(rate=Fraction(rate), event=gauss(sigma))
    for epsilon in (Fraction(0), Fraction(1, 1000), Fraction(1, 10), Fraction(1)):
        truth = sampled_delta(mp.mpf(rate), mp.mpf(sigma), epsilon)
        if truth > mp.mpf(10) ** -15:
            found = number(pld.delta(event, epsilon=epsilon))
            assert truth * (1 - mp.mpf(10) ** -12) <= found <= truth * (1 + 50 * mp.mpf(CLOSE))


def lower_bound(rate: float, sigma: float, count: int, delta: float) -> float:
    """A lower bound of ε: outputs merged into cells (post-processing), losses rounded down, a plain FFT."""
    edges = np.linspace(-9 * sigma, 1 + 9 * sigma, 40_001)
    base, moved = np.diff(ndtr(edges / sigma)), np.diff(ndtr((edges - 1) / sigma))
    mixed = (1 - rate) * base + rate * moved
    kept = (base > 1e-14) & (mixed > 1e-14)
    step, size = 1e-4, 1 << 18
    index = np.floor(np.log(mixed[kept] / base[kept]) / step).astype(int)
    law = np.bincount(index - index.min(), weights=mixed[kept], minlength=size)[:size]
    composed = np.fft.irfft(np.fft.rfft(law) ** count, size)
    losses = step * (np.arange(size) + count * int(index.min()))
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        above = losses > middle
        reached = float((composed[above] * -np.expm1(middle - losses[above])).sum()) - 1e-11
        low, high = (middle, high) if reached > delta else (low, middle)
    return low


@pytest.mark.parametrize(("rate", "sigma", "count", "delta"), [("0.01", "1", 100, 1e-5), ("0.1", "2", 50, 1e-6)])
def test_composed_sampled_gaussians_lie_above_an_independent_lower_bound(rate, sigma, count, delta):
    found = accounting.epsilon(times(PoissonSampled(rate=Fraction(rate), event=gauss(sigma)), count), delta=delta)
    least = lower_bound(float(Fraction(rate)), float(Fraction(sigma)), count, delta)
    assert least <= found <= least * 1.01


SAMPLED = PoissonSampled(rate=Fraction(1, 100), event=gauss(1))


@pytest.mark.claim("S2-16")
def test_at_a_tiny_delta_the_value_is_above_a_proven_lower_bound():
    assert 10.343 <= accounting.epsilon(times(SAMPLED, 10_000), delta=1e-12) <= 10.36


@pytest.mark.parametrize(
    ("event", "delta", "peer"),
    [
        (times(SAMPLED, 10_000), 1e-5, 6.188),
        (times(SAMPLED, 1000), 1e-5, 1.82824),
        (times(PoissonSampled(rate=Fraction(1, 10), event=gauss(2)), 100), 1e-6, 2.67504),
        (times(PoissonSampled(rate=Fraction(1, 1000), event=gauss("0.8")), 10_000), 1e-6, 0.94732),
        (times(PoissonSampled(rate=Fraction(1, 2), event=gauss(5)), 50), 1e-5, 3.04126),
        (times(DiscreteLaplace(l1=Fraction(2**20), scale=Fraction(20 * 2**20)), 1440), 1.45e-5, 9.10059),
        (
            times(
                PoissonSampled(rate=Fraction(1, 10), event=DiscreteLaplace(l1=Fraction(2**20), scale=Fraction(2**20))),
                100,
            ),
            1e-6,
            4.66220,
        ),
        (DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)), 1e-5, 4.43024),
        (times(DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(4)), 10), 1e-6, 8.30328),
        (times(DiscreteLaplace(l1=Fraction(3), scale=Fraction(10)), 50), 1e-6, 10.56435),
    ],
)
def test_the_values_of_dp_accounting_are_met(event, delta, peer):
    """Literals from dp-accounting 0.6.0 with a grid of 1e-4 (PEERS.md)."""
    assert accounting.epsilon(event, delta=delta) == pytest.approx(peer, rel=5e-4)


def test_finer_grids_only_come_closer():
    found = [pld.epsilon(times(SAMPLED, 1000), delta=1e-6, precision=p) for p in (1e-3, 1e-4, 1e-5)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("guarantee", "least"),
    [
        (Approximate(epsilon=Fraction(1, 10), delta=Fraction("1e-9")), None),
        (ZCDP(rho=Fraction(1, 100)), ZCDP(rho=Fraction(1, 100))),
        (
            RDP(curve=((Fraction(8), Fraction(1, 10)), (Fraction(20), Fraction(1, 5)))),
            RDP(curve=((Fraction(8), Fraction(1, 10)), (Fraction(20), Fraction(1, 5)))),
        ),
        (GDP(mu=Fraction(1, 5)), GDP(mu=Fraction(1, 5))),
    ],
)
def test_stated_guarantees_are_covered(guarantee, least):
    once = pld.epsilon(Stated(guarantee=guarantee), delta=1e-6)
    if least is not None:
        assert once <= least.epsilon_at(1e-6) * Fraction(1 + CLOSE) + Fraction(1, 100)
        assert once >= least.epsilon_at(1e-6) * Fraction(1, 2)
    assert once <= pld.epsilon([Stated(guarantee=guarantee), BoundedRange(epsilon=Fraction(1, 50))], delta=1e-6)


@pytest.mark.long
def test_optimal_composition_of_approximate_steps_is_met():
    step = Approximate(epsilon=Fraction("0.05"), delta=Fraction("1e-8"))
    exact = optimal.epsilon(step, 1440, delta=1.45e-5)
    assert exact <= pld.epsilon(times(Stated(guarantee=step), 1440), delta=1.45e-5) <= exact * Fraction(1 + CLOSE)


def test_fixed_size_samples_follow_their_formula():
    inner = gauss(2, 4)
    event = FixedSizeSampled(size=10, population=1000, event=inner)
    share = Fraction(1, 100)
    for epsilon in (Fraction(1, 100), Fraction(1, 2)):
        at = mp.log(1 + (mp.exp(number(epsilon)) - 1) / number(share))
        truth = number(share) * (normal_cdf(mp.mpf(1) / 2 - at) - mp.exp(at) * normal_cdf(-mp.mpf(1) / 2 - at))
        assert truth <= number(pld.delta(event, epsilon=epsilon)) <= truth * (1 + 50 * mp.mpf(CLOSE))


def test_gaussians_inside_a_sample_are_merged_and_other_compositions_refused():
    two = Composed(events=(gauss(2), gauss(2)))
    one = PoissonSampled(rate=Fraction(1, 10), event=gauss(1, 1))
    merged = PoissonSampled(rate=Fraction(1, 10), event=Repeated(event=two, times=2))
    assert pld.epsilon(merged, delta=1e-5) == pld.epsilon(one, delta=1e-5)
    mixed = PoissonSampled(rate=Fraction(1, 10), event=Composed(events=(gauss(2), BoundedRange(epsilon=Fraction(1)))))
    with pytest.raises(Unsupported, match='method="rdp"'):
        pld.epsilon(mixed, delta=1e-5)


def test_nothing_costs_nothing_and_the_floor_holds():
    assert accounting.epsilon([], delta=1e-6) == accounting.epsilon([], delta=0) == 0
    assert accounting.epsilon([BoundedRange(epsilon=Fraction(1))] * 3, delta=0) == 3
    with pytest.raises(Refused, match="only pure events"):
        accounting.epsilon(SAMPLED, delta=0)
    assert accounting.delta([DiscreteLaplace(l1=Fraction(0), scale=Fraction(1))], epsilon=1) == 0
    assert accounting.epsilon(BoundedRange(epsilon=Fraction(0)), delta=1e-6) == 0
    assert accounting.delta(BoundedRange(epsilon=Fraction(1)), epsilon=2) == 0
    assert accounting.delta(SAMPLED, epsilon=30) == pld.LEAST_DELTA
    with pytest.raises(Refused, match="below the floor"):
        accounting.epsilon(SAMPLED, delta=Fraction(1, 10**25))
    with pytest.raises(Refused, match="larger δ"):
        accounting.epsilon(Stated(guarantee=Approximate(epsilon=Fraction(1), delta=Fraction(1, 100))), delta=1e-6)
    with pytest.raises(Refused, match="each under its own relation"):
        accounting.epsilon([SAMPLED, FixedSizeSampled(size=1, population=2, event=gauss(1))], delta=1e-6)


@pytest.mark.parametrize(("squared", "sigma_squared"), [(1, 25), (100, 2500), (2**60, 25 * 2**60)])
def test_sampled_discrete_gaussians_cost_hardly_more_than_continuous_ones(squared, sigma_squared):
    noise = DiscreteGaussian(l2_squared=Fraction(squared), sigma_squared=Fraction(sigma_squared))
    found = pld.epsilon(times(PoissonSampled(rate=Fraction(1, 10), event=noise), 100), delta=1e-6)
    ideal = pld.epsilon(times(PoissonSampled(rate=Fraction(1, 10), event=gauss(5)), 100), delta=1e-6)
    assert ideal * Fraction("0.999") <= found <= ideal * Fraction("1.005")


def test_inner_events_that_move_nothing_cost_nothing():
    for still in (
        Gaussian(l2_squared=Fraction(0), sigma_squared=Fraction(1)),
        DiscreteGaussian(l2_squared=Fraction(1, 2), sigma_squared=Fraction(1)),
        DiscreteLaplace(l1=Fraction(1, 2), scale=Fraction(1)),
        Stated(guarantee=ZCDP(rho=Fraction(0))),
    ):
        assert pld.epsilon(PoissonSampled(rate=Fraction(1, 2), event=still), delta=1e-6) == 0
    rough = DiscreteGaussian(l2_squared=Fraction(100), sigma_squared=Fraction(10))
    assert pld.epsilon(PoissonSampled(rate=Fraction(1, 2), event=rough), delta=1e-6) < pld.epsilon(rough, delta=1e-6)
