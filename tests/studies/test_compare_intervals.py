"""Intervals of comparisons cover what they say, for sampling and noise together; seeds are fixed."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.studies import blocks, contingency, counts, means, proportions, ranks
from sfumato.studies.draws import CellNoise, multiplier
from tests.studies import simulated
from tests.studies.simulated import fine, laplace, two_by_two

pytestmark = pytest.mark.claim("S1-09")

FULL, SMALL, ALPHA = 120_000, 6_000, 1e-9
PAIRS = ((0.02, 0.02), (0.3, 0.3), (0.5, 0.5), (0.1, 0.2), (0.5, 0.3), (0.05, 0.02))
CELLS = list(product((30, 200, 1000), (0.3, 1, 3)))
Covered = dict[str, float]


def covering(n: int, epsilon: float, p: float, q: float, runs: int, level: float = 0.95) -> Covered:
    """How often the intervals of a difference, a ratio and an odds ratio hold the truth."""
    table = two_by_two(n, [p, q], laplace(epsilon), np.random.default_rng(1), runs)
    truths = {
        proportions.difference_ends: p - q,
        proportions.ratio_ends: p / q,
        proportions.odds_ratio_ends: p * (1 - q) / (q * (1 - p)),
    }
    found = {}
    for ends, truth in truths.items():
        low, high = ends(table, level)
        found[ends.__name__] = float(np.mean((low <= truth) & (truth <= high)))
    return found


def least(n: int, epsilon: float, runs: int) -> float:
    """The share of runs below which what is promised is refuted at α: 94.5% where n is large for the noise, or 93%."""
    promised = 0.945 if n >= 200 and n >= 12 * 2**0.5 / epsilon else 0.93
    return float(binom.ppf(ALPHA, runs, promised)) / runs


@pytest.mark.parametrize(("n", "epsilon"), [(30, 1), (200, 0.3), (1000, 3)])
@pytest.mark.parametrize(("p", "q"), PAIRS[2:5])
def test_shares(n: int, epsilon: float, p: float, q: float) -> None:
    assert min(covering(n, epsilon, p, q, SMALL).values()) >= least(n, epsilon, SMALL)


@pytest.mark.long
@pytest.mark.parametrize(("n", "epsilon"), CELLS)
@pytest.mark.parametrize(("p", "q"), PAIRS)
@pytest.mark.alpha(2e-8)
def test_shares_in_many_runs(n: int, epsilon: float, p: float, q: float) -> None:
    found = covering(n, epsilon, p, q, FULL)
    assert min(found.values()) >= least(n, epsilon, FULL), found


def test_multipliers_of_normal_and_laplace_together() -> None:
    found = [float(multiplier(3 * share**2, 0.95)) for share in (0, 0.5, 0.9, 1)]
    assert found == pytest.approx([1.960, 1.989, 2.084, 2.118], abs=0.0006)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
def test_other_levels(level: float) -> None:
    found = covering(200, 1, 0.3, 0.2, SMALL, level)
    assert min(found.values()) >= level - 4 * (level * (1 - level) / SMALL) ** 0.5


def test_a_copy_without_the_noise_does_not_cover() -> None:
    noisy = two_by_two(200, [0.02, 0.02], laplace(0.3), np.random.default_rng(1), SMALL)
    none = CellNoise(())
    broken = type(noisy)(yes=noisy.yes, no=noisy.no, yes_noise=(none, none), no_noise=(none, none))
    low, high = proportions.difference_ends(broken, 0.95)
    assert np.mean((low <= 0) & (high >= 0)) < 0.9


def test_what_is_far_out_has_ends_all_the_same() -> None:
    """Noise can make anything of a small group: negative counts, nobody at all."""
    noise = laplace(0.1)
    cells = np.array([[-30.0, 5.0], [0.0, 0.0], [1e9, -4.0], [12.0, 0.0]])
    table = proportions.TwoByTwo(yes=cells, no=cells[::-1], yes_noise=(noise,) * 2, no_noise=(noise,) * 2)
    for ends in (proportions.difference_ends, proportions.ratio_ends, proportions.odds_ratio_ends):
        low, high = ends(table, 0.95)
        assert not np.isnan(low).any()
        assert not np.isnan(high).any()
        assert (low <= high).all()
    p_values = proportions.p_values(table, np.random.default_rng(1), 99)
    assert ((p_values > 0) & (p_values <= 1)).all()


def others(n: int, epsilon: float, runs: int) -> Covered:
    """Coverage of the other intervals: means, ranks, trends, blocks and counts."""
    g, whole = np.random.default_rng(1), laplace(epsilon)
    found: dict[str, list[float]] = {}

    def note(name: str, low: simulated.Numbers, high: simulated.Numbers, truth: float) -> None:
        found.setdefault(name, []).append(float(np.mean((low <= truth) & (truth <= high))))

    lot = 5_000
    for _ in range(max(1, runs // lot)):
        for shape in ("beta", "uniform", "normal"):
            x = simulated.counted(shape, g, (lot, 2), n)
            parts = simulated.moments_of(x, fine(epsilon), g)
            note(f"mean {shape}", *means.mean_difference_ends(means.group_means(parts, fine(epsilon)), 0.95), 0.0)
            cells = simulated.histograms_of(x, whole, g)
            note(f"rank {shape}", *ranks.superiority_ends(cells, whole.variance, 0.95), 0.5)
        yes = g.binomial(n, 0.3 + 0.05 * np.arange(4), size=(lot, 4))
        noisy = yes + whole.draw(g, yes.shape), n - yes + whole.draw(g, yes.shape)
        note("slope", *contingency.slope(*noisy, np.arange(4.0), whole, 0.95)[1:], 0.05)
        if n >= 200:
            yes = g.binomial(n // 5, np.linspace(0.1, 0.4, 5)[:, None] + np.array([0.1, 0]), size=(lot, 5, 2))
            noisy = yes + whole.draw(g, yes.shape), n // 5 - yes + whole.draw(g, yes.shape)
            note("blocks", *blocks.block_difference(*noisy, whole, 0.95)[1:], 0.1)
        seen = g.poisson([n, n / 2], size=(lot, 2)) + whole.draw(g, (lot, 2))
        difference, ratio = counts.count_ends(seen, (whole, whole), 0.95)
        note("count difference", *difference, n / 2)
        note("count ratio", *ratio, 2.0)
    return {name: float(np.mean(some)) for name, some in found.items()}


@pytest.mark.parametrize(("n", "epsilon"), [(30, 1), (200, 1)])
def test_other_intervals(n: int, epsilon: float) -> None:
    found = others(n, epsilon, SMALL)
    assert min(found.values()) >= least(n, epsilon, SMALL), found


@pytest.mark.long
@pytest.mark.parametrize(("n", "epsilon"), CELLS)
@pytest.mark.alpha(2e-8)
def test_other_intervals_in_many_runs(n: int, epsilon: float) -> None:
    found = others(n, epsilon, FULL)
    assert min(found.values()) >= least(n, epsilon, FULL), found


def test_superiority_covers_where_groups_differ() -> None:
    g, noise = np.random.default_rng(1), laplace(1)
    x = np.stack([g.beta(3, 5, (4000, 200)), g.beta(2, 5, (4000, 200))], axis=1)
    sure = np.random.default_rng(2)
    one, two = sure.beta(3, 5, 200_000), sure.beta(2, 5, 200_000)
    ranked = [np.minimum((each * simulated.CLASSES).astype(int), simulated.CLASSES - 1) for each in (one, two)]
    truth = np.mean(ranked[0] > ranked[1]) + 0.5 * np.mean(ranked[0] == ranked[1])
    low, high = ranks.superiority_ends(simulated.histograms(x, noise, g), noise.variance, 0.95)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.94
