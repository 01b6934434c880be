"""S3-05: the ε that keeps the top key of noisy attention logits."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms.attention_logits import (
    LogitRelease,
    TopKey,
    classical_epsilon,
    least_epsilon,
    widest_noise,
)
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.noise import SystemWords, sample_discrete_laplace, sample_rounded_gaussian
from tests.alpha import likely

ASKED = {"margin": 2, "error": 0.05, "l2": 0.1, "delta": 1e-5}


def kept(sigma: float, keys: int, margin: float = 2.0) -> float:
    """The chance that a key which leads keys − 1 tied ones keeps the largest noisy logit, by quadrature."""
    value, _ = integrate.quad(lambda x: stats.norm.pdf(x) * stats.norm.cdf(x + margin / sigma) ** (keys - 1), -9, 9)
    return float(value)


@pytest.mark.claim("S3-05")
def test_the_stated_figures() -> None:
    two, ten = classical_epsilon(**ASKED), classical_epsilon(**ASKED, keys=10)
    assert float(two) == pytest.approx(0.5635, abs=5e-5)
    assert float(ten) == pytest.approx(0.870, abs=5e-4)
    assert float(two) == pytest.approx(0.2 * stats.norm.isf(0.05) * math.sqrt(math.log(1.25e5)) / 2, rel=1e-8)
    assert float(least_epsilon(**ASKED)) == pytest.approx(0.4016, abs=5e-5)
    sigma = float(Gaussian.classical(l2=0.1, epsilon=two, delta=1e-5).sigma)
    assert kept(sigma, 2) == pytest.approx(0.95, abs=1e-6)
    assert kept(sigma, 10) == pytest.approx(0.768, rel=0.02), "a simulated figure"
    assert kept(sigma, 10) == pytest.approx(0.76656, abs=5e-6), "and the exact one"
    assert kept(float(Gaussian.classical(l2=0.1, epsilon=ten, delta=1e-5).sigma), 10) >= 0.95


@pytest.mark.claim("S3-05")
def test_figures_are_rounded_outward() -> None:
    sigma = widest_noise(margin=2, error=0.05)
    exact = Fraction(2 / (math.sqrt(2) * stats.norm.isf(0.05)))
    assert Fraction(1, 10**12) < 1 - sigma / exact < Fraction(1, 10**7)
    for keys in (2, 10):
        epsilon = classical_epsilon(**ASKED, keys=keys)
        assert Gaussian.classical(l2=0.1, epsilon=epsilon, delta=1e-5).sigma <= widest_noise(
            margin=2, error=0.05, keys=keys
        )


def test_the_classical_formula_is_refused_where_it_is_no_theorem() -> None:
    with pytest.raises(Refused, match="proven for ε < 1 only"):
        classical_epsilon(margin=1, error=0.05, l2=0.1, delta=1e-5)
    assert least_epsilon(margin=1, error=0.05, l2=0.1, delta=1e-5) < 1


@pytest.mark.parametrize("wrong", [{"error": 0.5}, {"error": 0}, {"margin": 0}, {"l2": 0}, {"keys": 1}])
def test_impossible_wishes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        least_epsilon(**{**ASKED, **wrong})  # type: ignore[arg-type]


@pytest.mark.claim("S3-05")
@pytest.mark.parametrize(("keys", "share"), [(2, 0.95), (10, 0.76656)])
@pytest.mark.alpha(2e-9)
def test_simulated_rates_of_the_top_key(keys: int, share: float) -> None:
    """200,000 noisy vectors for the ε of two keys, by the binomial law; the lattice is so fine that the chance by
    quadrature is as good as exact. Twin: for ten keys 95% is far away."""
    release = LogitRelease.for_margin(margin=2, error=0.05, l2=0.1, keys=2)
    wide = release.sigma / release.pitch
    trials = 200_000
    noise = np.asarray(sample_rounded_gaussian(wide, keys * trials, SystemWords()), dtype=np.int64).reshape(
        trials, keys
    )
    noise[:, 0] += round(2 / release.pitch)
    kept_in = int((noise.argmax(1) == 0).sum())
    exact = kept(float(release.sigma), keys)
    assert exact == pytest.approx(share, abs=5e-4)
    assert likely(kept_in, trials, exact, alpha=1e-9)
    if keys == 10:
        assert not likely(kept_in, trials, 0.95, alpha=1e-9)
        assert LogitRelease(keys=10, l2=release.l2, sigma=release.sigma, pitch=release.pitch).error(2) > Fraction(1, 4)
        assert kept(float(LogitRelease.for_margin(margin=2, error=0.05, l2=0.1, keys=10).sigma), 10) >= 0.95


@pytest.mark.claim("S3-05")
def test_a_release_costs_what_it_says_and_rounding_is_in_it() -> None:
    release = LogitRelease.for_margin(margin=2, error=0.05, l2=0.1, keys=10)
    ideal = least_epsilon(**ASKED, keys=10)
    assert ideal < release.epsilon(1e-5) < ideal * (1 + Fraction(1, 1000))
    bounded = LogitRelease.for_budget(epsilon=1, delta=1e-5, l2=0.1, keys=10)
    assert 1 - Fraction(1, 1000) < bounded.epsilon(1e-5) <= 1
    noise = bounded.noise
    assert noise.event.l2_squared / noise.event.sigma_squared == noise.l2_squared / noise.sigma**2


def test_rounding_may_drive_neighbours_apart_by_a_step_in_every_key() -> None:
    release = LogitRelease(keys=10, l2=Fraction(1, 100), sigma=Fraction(1), pitch=Fraction(1))
    here, there = [0.501] * 10, [0.499] * 10  # √10 · 0.002 apart, and ten steps of 1 once they are rounded
    steps = [math.floor(x + 0.5) for x in here], [math.floor(x + 0.5) for x in there]
    moved = release.sensitivity().l2
    assert moved is not None
    assert sum((a - b) ** 2 for a, b in zip(*steps, strict=True)) == 10 <= moved.squared
    assert moved.squared < Fraction(102, 10)


@pytest.mark.claim("S3-05")
@pytest.mark.parametrize("keys", [2, 10])
@pytest.mark.alpha(1e-9)
def test_the_top_key_alone_costs_less(keys: int) -> None:
    """Report noisy max, pure: less ε than all logits with a δ, and the key is kept as promised.

    20,000 draws; the rate is at least 95% by the binomial law, and a fourth of the ε does not do (the twin).
    """
    top = TopKey.for_margin(margin=2, error=0.05, linf=0.1, keys=keys)
    assert top.epsilon < least_epsilon(**ASKED, keys=keys)
    assert top.error(2) <= Fraction(1, 20)
    trials = 20_000

    def kept_in(scale: Fraction) -> int:
        noise = np.asarray(sample_discrete_laplace(scale, keys * trials, SystemWords()), dtype=np.int64)
        noise = noise.reshape(trials, keys)
        noise[:, -1] += math.floor(2 / top.pitch)
        return int((noise.argmax(1) == keys - 1).sum())

    least = stats.binom.ppf(1e-9, trials, 0.95)
    assert kept_in(top.noise.scale) >= least
    assert kept_in(4 * top.noise.scale) < least
    assert top.noise.loss(int(top.sensitivity().linf.value)).guarantee.epsilon == top.epsilon  # type: ignore[union-attr]


def test_the_error_of_the_top_key_is_exact_for_two_keys() -> None:
    """Against a direct sum over the two noises."""
    top = TopKey(keys=2, linf=Fraction(1), epsilon=Fraction(4), pitch=Fraction(1, 2))
    q = math.exp(-1 / float(top.noise.scale))
    law = {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-200, 201)}
    difference: Counter[int] = Counter()
    for a, chance in law.items():
        for b, other in law.items():
            difference[a - b] += chance * other  # type: ignore[assignment]
    for margin in (1, 2, 5):
        direct = sum(chance for value, chance in difference.items() if value >= 2 * margin)
        assert float(top.error(margin)) == pytest.approx(direct, rel=1e-9)
    assert top.error(Fraction(1, 4)) == 1
    assert 0 < top.error(10**9) < Fraction(1, 2**900)
    release = LogitRelease(keys=3, l2=Fraction(1), sigma=Fraction(1), pitch=Fraction(1))
    assert release.error(2) == 1
    assert 0 < release.error(10**9) < Fraction(1, 2**1000)
    assert float(release.error(4)) == pytest.approx(2 * stats.norm.sf(2 / math.sqrt(2)), rel=1e-9)
