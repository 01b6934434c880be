"""Fresh draws follow the law that is claimed, and a scale 5% off is caught.

By the Dvoretzky–Kiefer–Wolfowitz inequality the empirical distribution of n = 480,000 draws strays from the true one by
more than 0.00473 with probability at most α = 1e-9. A scale 5% off moves it by at least 0.0092 (Laplace), 0.012
(Gaussian) and 0.018 (geometric), and so is missed with probability at most β = 1e-9 too.
"""

from collections.abc import Callable
from fractions import Fraction
from math import erf, exp, expm1, log, sqrt

import numpy as np
import pytest

from sfumato import noise
from sfumato.errors import InvalidInput
from sfumato.noise import SystemBits, SystemWords, draw_discrete_gaussian, draw_geometric
from sfumato.noise.sums import LARGEST, saturating_sum
from tests.noise.replayed import ReplayedWordsForTests, fresh

N = 480_000
ALPHA = 1e-9
BAND = sqrt(log(2 / ALPHA) / (2 * N))
WIDE = 10 << 40

Cdf = Callable[[float], float]


def laplace(scale: float) -> Cdf:
    """P(z ≤ k) for the law's definition summed by hand: 1 − q^(k+1)/(1 + q) for k ≥ 0."""
    q = exp(-1 / scale)
    return lambda k: 1 - exp(-(k + 1) / scale) / (1 + q) if k >= 0 else exp(k / scale) / (1 + q)


def geometric(scale: float) -> Cdf:
    return lambda k: -expm1(-(k + 1) / scale) if k >= 0 else 0.0


def gaussian(sigma: float) -> Cdf:
    if sigma > 1e6:  # the continuous law is as good as the discrete one here: they differ by less than 1e-6
        return lambda k: (1 + erf((k + 0.5) / (sigma * sqrt(2)))) / 2
    reach = int(40 * sigma) + 1
    steps = np.cumsum(np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2)))
    return lambda k: float(steps[int(k) + reach] / steps[-1])


def strays(draws: "np.ndarray[tuple[int], np.dtype[np.int64]]", cdf: Cdf) -> float:
    """The largest distance between the empirical and the claimed distribution, on at most 1,000 of the values drawn."""
    values, counts = np.unique(draws, return_counts=True)
    below = np.cumsum(counts) / draws.size
    chosen = range(0, len(values), max(1, len(values) // 1_000))
    return max(abs(below[i] - cdf(float(values[i]))) for i in chosen)


def draws_of(name: str, parameter: Fraction) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    match name:
        case "laplace":
            return noise.discrete_laplace(scale=parameter, size=N)
        case "geometric":
            return noise.geometric(scale=parameter, size=N)
        case _:
            return noise.discrete_gaussian(sigma_squared=parameter**2, size=N)


CDFS = {"laplace": laplace, "geometric": geometric, "gaussian": gaussian}
CASES = [(name, Fraction(scale)) for name in CDFS for scale in ("1/2", "10", "1000/3", WIDE)]


@pytest.mark.parametrize(("name", "scale"), CASES, ids=str)
@pytest.mark.alpha(ALPHA)
def test_fresh_draws_follow_the_law(name: str, scale: Fraction) -> None:
    assert strays(draws_of(name, scale), CDFS[name](float(scale))) <= BAND, f"false alarm with probability {ALPHA}"


@pytest.mark.parametrize(("name", "scale"), [case for case in CASES if case[1] >= 10], ids=str)
@pytest.mark.parametrize("factor", [Fraction(95, 100), Fraction(105, 100)], ids=["5% less", "5% more"])
@pytest.mark.alpha(ALPHA)
def test_a_scale_five_percent_off_fails(name: str, scale: Fraction, factor: Fraction) -> None:
    assert strays(draws_of(name, scale * factor), CDFS[name](float(scale))) > BAND


@pytest.mark.alpha(2 * ALPHA)
def test_coins_fall_as_often_as_claimed_and_five_percent_off_fails() -> None:
    heads = noise.bernoulli_exp(gamma="1/3", size=N)
    assert heads.dtype == np.bool_
    assert abs(heads.mean() - exp(-1 / 3)) <= BAND
    assert abs(heads.mean() - exp(-1 / 3) * 0.95) > BAND
    assert not noise.bernoulli_exp(gamma=10**9, size=1_000).any()
    assert noise.bernoulli_exp(gamma=Fraction(1, 10**40), size=1_000).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_geometric(Fraction(10, 3), SystemBits()),
        lambda: draw_discrete_gaussian(Fraction(100, 9), SystemBits()),
    ],
    ids=["geometric", "gaussian"],
)
@pytest.mark.alpha(ALPHA)
def test_the_slow_references_have_the_same_law(draw: Callable[[], int], request: pytest.FixtureRequest) -> None:
    """With 20,000 draws the band at α = 1e-9 is 0.0232; it catches a scale that is 20% off."""
    draws = np.array([draw() for _ in range(20_000)], dtype=np.int64)
    cdf = geometric(10 / 3) if "geometric" in request.node.name else gaussian(10 / 3)
    assert strays(draws, cdf) <= sqrt(log(2 / ALPHA) / 40_000)


def test_the_same_words_give_the_same_draws_and_every_draw_has_words_of_its_own() -> None:
    words = fresh(3_000)
    words[7] = 2**63 + 2**31  # neither it nor the other is one of the few that need a proposal
    first, second = (noise.sample_discrete_laplace(Fraction(10), 1_000, ReplayedWordsForTests(words)) for _ in range(2))
    assert (first == second).all()
    one_changed = words.copy()
    one_changed[7] = 2**64 - 1
    third = noise.sample_discrete_laplace(Fraction(10), 1_000, ReplayedWordsForTests(one_changed))
    assert set((first != third).nonzero()[0].tolist()) == {14, 15}  # half a word is enough for a draw


@pytest.mark.parametrize("size", [0, 1, 256, 257, 32_768, 32_769, 70_000])
@pytest.mark.parametrize("scale", ["1/2", "10", WIDE])
def test_arrays_have_the_size_asked_for(size: int, scale: str) -> None:
    for draws in (
        noise.discrete_laplace(scale=scale, size=size),
        noise.discrete_gaussian(sigma_squared=scale, size=size),
    ):
        assert (draws.dtype, draws.shape) == (np.dtype(np.int64), (size,))


@pytest.mark.alpha(1e-40)
def test_beyond_64_bits_the_references_draw_and_nothing_wraps() -> None:
    words = SystemWords()
    for draws in (
        noise.sample_discrete_laplace(Fraction(10**30), 5, words),
        noise.sample_geometric(Fraction(10**30), 5, words),
        noise.sample_discrete_gaussian(Fraction(10**60), 5, words),
    ):
        assert draws.dtype == object
        assert max(abs(draws)) > 2**64  # fails by chance with probability below 1e-40
    for refused in (
        lambda: noise.discrete_laplace(scale=10**30, size=5),
        lambda: noise.geometric(scale=10**30, size=5),
        lambda: noise.discrete_gaussian(sigma_squared=10**60, size=5),
    ):
        with pytest.raises(InvalidInput, match="beyond 64 bits"):
            refused()
    assert abs(noise.discrete_laplace(scale=2**54, size=1_000)).max() > 2**53


def test_sums_are_held_at_64_bits_for_every_kind_of_number() -> None:
    small = np.array([5, -5, 0, -1], dtype=np.int64)
    assert saturating_sum([LARGEST, -LARGEST, 7, 0], small) == (LARGEST, -LARGEST, 7, -1)
    assert saturating_sum([2**70, -(2**70), 7, 0], small) == (LARGEST, -LARGEST, 7, -1)
    large = np.array([2**70, -(2**70), 1, 0], dtype=object)
    assert saturating_sum([0, 0, 1, 2], large) == (LARGEST, -LARGEST, 2, 2)
    lowest = np.array([-(2**63)], dtype=np.int64)
    assert saturating_sum([0], lowest) == (-LARGEST,)
    assert saturating_sum([], np.empty(0, dtype=np.int64)) == ()


@pytest.mark.parametrize("bad", [0, -1, "x", float("inf")])
def test_wrong_parameters_are_refused(bad: object) -> None:
    with pytest.raises(InvalidInput):
        noise.geometric(scale=bad, size=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        noise.discrete_gaussian(sigma_squared=bad, size=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        noise.bernoulli_exp(gamma=-1 if bad == 0 else bad, size=1)  # type: ignore[arg-type]
