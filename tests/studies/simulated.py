"""Studies of groups that are equal, drawn again and again through the functions that the product uses."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.laws import DiscreteLaplace, RoundedGaussian
from sfumato.studies import blocks, contingency, counts, means, proportions, ranks
from sfumato.studies.draws import CellNoise
from sfumato.studies.proportions import TwoByTwo

Numbers = NDArray[np.float64]
DRAWS = 199
LOT = 500
LEVEL = 0.05
CLASSES = 10
FINE = 2**30


def laplace(epsilon: float) -> CellNoise:
    """The noise in a count at this ε, one row added or removed."""
    return CellNoise.of(DiscreteLaplace(scale=1 / Fraction(str(epsilon))))


def gaussian(sigma: float) -> CellNoise:
    """Gaussian noise, rounded."""
    return CellNoise.of(RoundedGaussian(sigma=Fraction(str(sigma))))


def fine(epsilon: float) -> CellNoise:
    """The noise in a sum of values, which is drawn in 2^30 steps to a row."""
    return CellNoise.of(DiscreteLaplace(scale=FINE / Fraction(str(epsilon))), FINE)


def two_by_two(n: int, p: object, noise: CellNoise, generator: np.random.Generator, runs: int) -> TwoByTwo:
    """Noisy tables of two groups of n with these shares."""
    yes = generator.binomial(n, np.broadcast_to(np.asarray(p, float), (2,)), size=(runs, 2))
    return TwoByTwo(
        yes=yes + noise.draw(generator, yes.shape),
        no=n - yes + noise.draw(generator, yes.shape),
        yes_noise=(noise, noise),
        no_noise=(noise, noise),
    )


def values(shape: str, generator: np.random.Generator, size: tuple[int, ...]) -> Numbers:
    """Values between 0 and 1."""
    match shape:
        case "beta":
            return generator.beta(2, 5, size)
        case "uniform":
            return generator.random(size)
        case "lognormal":
            return np.clip(generator.lognormal(0, 1, size) / 20, 0, 1)
    return np.clip(generator.normal(0.5, 0.1, size), 0, 1)


POINTS = (np.arange(100) + 0.5) / 100


def counted(shape: str, generator: np.random.Generator, size: tuple[int, ...], n: int) -> NDArray[np.int64]:
    """How often each of a hundred values occurs among n: a population of the same shape, drawn at once."""
    edges = np.linspace(0, 1, 101)
    chances = {
        "beta": lambda: np.diff(stats.beta.cdf(edges, 2, 5)),
        "uniform": lambda: np.full(100, 0.01),
        "normal": lambda: np.diff(stats.norm.cdf(edges, 0.5, 0.1)),
    }[shape]()
    return generator.multinomial(n, chances / chances.sum(), size=size)


def moments_of(counts: NDArray[np.int64], noise: CellNoise, generator: np.random.Generator) -> Numbers:
    """The three noisy parts of each group, from how often each value occurs."""
    parts = counts @ np.stack([(1 - POINTS) ** 2, 2 * POINTS * (1 - POINTS), POINTS**2], axis=-1)
    return parts + noise.draw(generator, parts.shape)


def histograms_of(counts: NDArray[np.int64], noise: CellNoise, generator: np.random.Generator) -> Numbers:
    """Noisy histograms of each group, likewise."""
    cells = counts.reshape(*counts.shape[:-1], CLASSES, -1).sum(axis=-1)
    return cells + noise.draw(generator, cells.shape)


def moments(x: Numbers, noise: CellNoise, generator: np.random.Generator) -> Numbers:
    """The three noisy parts of each group."""
    parts = np.stack([((1 - x) ** 2).sum(-1), (2 * x * (1 - x)).sum(-1), (x * x).sum(-1)], axis=-1)
    return parts + noise.draw(generator, parts.shape)


def histograms(x: Numbers, noise: CellNoise, generator: np.random.Generator) -> Numbers:
    """Noisy histograms of each group."""
    place = np.minimum((x * CLASSES).astype(int), CLASSES - 1)
    cells = np.stack([(place == each).sum(-1) for each in range(CLASSES)], axis=-1)
    return cells + noise.draw(generator, cells.shape)


def score(n: int, epsilon: float, p: float, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the χ² test of two proportions."""
    return proportions.p_values(two_by_two(n, p, laplace(epsilon), g, runs), g, DRAWS)


def exact(n: int, epsilon: float, p: float, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the conditional test."""
    return proportions.p_values(two_by_two(n, p, laplace(epsilon), g, runs), g, DRAWS, conditional=True)


def score_gaussian(n: int, epsilon: float, p: float, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the χ² test of two proportions under Gaussian noise."""
    return proportions.p_values(two_by_two(n, p, gaussian(3 / epsilon), g, runs), g, DRAWS)


def welch(n: int, epsilon: float, shape: str, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of Welch's test."""
    noise = fine(epsilon)
    return means.mean_difference_p_values(moments(values(shape, g, (runs, 2, n)), noise, g), noise, g, DRAWS)


def rank(n: int, epsilon: float, shape: str, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the Mann–Whitney test."""
    noise = laplace(epsilon)
    return ranks.rank_p_values(histograms(values(shape, g, (runs, 2, n)), noise, g), noise.variance)


def bounded(n: int, epsilon: float, shape: str, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of two means whose variances were not released; "two" values are 0 or 1, and have the largest."""
    x = (g.random((runs, 2, n)) < 0.3).astype(float) if shape == "two" else values(shape, g, (runs, 2, n))
    noise = fine(epsilon)
    parts = np.stack([(1 - x).sum(-1), x.sum(-1)], axis=-1)
    parts = parts + noise.draw(g, parts.shape)
    rows = np.maximum(parts.sum(-1), 2.0)
    mean = np.clip(parts[..., 1] / rows, 0.0, 1.0)
    own, common = np.stack([-mean, 1 - mean], -1), ((rows * mean).sum(-1) / rows.sum(-1))[..., None]
    spread = noise.variance * (own**2).sum(-1), noise.fourth * (own**4).sum(-1)
    weights = np.broadcast_to(np.stack([-common, 1 - common], -1), own.shape)
    return means.bounded_p_values(means.bounded_means(rows, mean, *spread), (noise, noise), weights, g, DRAWS)


def chi_square(n: int, epsilon: float, shape: str, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the χ² test of independence."""
    groups, shares = {"2x3": (2, [0.5, 0.3, 0.2]), "3x3": (3, [0.9, 0.08, 0.02]), "4x4": (4, [0.25] * 4)}[shape]
    noise = laplace(epsilon)
    cells = g.multinomial(n, shares, size=(runs, groups))
    return contingency.chi_square_p_values(cells + noise.draw(g, cells.shape), noise, g, DRAWS)


def trend(n: int, epsilon: float, p: float, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the test for a trend over four groups."""
    noise = laplace(epsilon)
    yes = g.binomial(n, p, size=(runs, 4))
    noisy = yes + noise.draw(g, yes.shape), n - yes + noise.draw(g, yes.shape)
    return contingency.trend_p_values(*noisy, np.arange(4.0), noise, g, DRAWS)


def within_blocks(n: int, epsilon: float, p: float, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of the test within five blocks whose shares differ."""
    noise, size = laplace(epsilon), n // 5
    yes = g.binomial(size, np.linspace(p, p + 0.3, 5)[:, None] * np.ones(2), size=(runs, 5, 2))
    noisy = yes + noise.draw(g, yes.shape), size - yes + noise.draw(g, yes.shape)
    return blocks.block_p_values(*noisy, noise, g, DRAWS)


def poisson(n: int, epsilon: float, p: float, g: np.random.Generator, runs: int) -> Numbers:
    """p-values of two counts of n·p events."""
    noise = laplace(epsilon)
    seen = g.poisson(n * p, size=(runs, 2))
    return counts.count_p_values(seen + noise.draw(g, seen.shape), (noise, noise), g, DRAWS)


def rejected(
    test: Callable[..., Numbers], n: int, epsilon: float, about: float | str, *, runs: int, seed: int = 1
) -> float:
    """How often a test rejects groups that are equal, at the 5% level."""
    g = np.random.default_rng(seed)
    found = [np.mean(test(n, epsilon, about, g, LOT) <= LEVEL) for _ in range(runs // LOT)]
    return float(np.mean(found))


def most(runs: int) -> float:
    """5%, and 4.75 standard errors of a share of that size."""
    return LEVEL + 4.75 * (LEVEL * (1 - LEVEL) / runs) ** 0.5
