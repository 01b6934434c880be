"""Trials that are simulated from scratch: rows are drawn, cells are counted, noise is added, and a test is made."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.error_sum import ErrorSum, NoiseShape, drawn
from sfumato.studies.power import Means, PowerResult, Proportions
from sfumato.studies.survival_plan import Survival

Array = NDArray[np.float64]
Verdicts = NDArray[np.bool_]


def verdicts(planned: PowerResult, runs: int, seed: int) -> Verdicts:
    """Whether each of many simulated trials finds a difference, at the first size and ε of a plan."""
    random = np.random.default_rng(seed)
    design, n, noise = planned.design, planned.n[0], planned.noises[0]
    null = design.error(n, noise, null=True)
    critical = null.quantile(1 - planned.alpha / 2) / np.sqrt(null.total)
    ways: dict[type, Callable[..., Array]] = {Proportions: proportions, Means: means, Survival: log_rank}
    return np.abs(ways[type(design)](design, n, noise, runs, random)) > critical


def proportions(design: Proportions, n: int, noise: NoiseShape, runs: int, random: np.random.Generator) -> Array:
    """The difference of two noisy shares over its estimated error under equal arms."""
    shares, rows = [], []
    for p in (design.first, design.second):
        met = random.binomial(n, p, runs)
        cells = np.stack([met, n - met]) + drawn(noise, (2, runs), random)
        rows.append(np.maximum(cells.sum(axis=0), 1))
        shares.append(cells[0] / rows[-1])
    pooled = np.clip(sum(s * r for s, r in zip(shares, rows, strict=True)) / sum(rows), 1e-6, 1 - 1e-6)
    parts = [pooled * (1 - pooled) / r + noise.variance * ((1 - pooled) ** 2 + pooled**2) / r**2 for r in rows]
    return (shares[0] - shares[1]) / np.sqrt(sum(parts))


def means(design: Means, n: int, noise: NoiseShape, runs: int, random: np.random.Generator) -> Array:
    """The difference of two noisy means over its estimated error; values are scaled betas with the planned spread."""
    spread = (design.sd / design.width) ** 2
    found, errors = [], []
    for shift in (design.change / design.width / 2, -design.change / design.width / 2):
        centre = design.place + shift
        size = centre * (1 - centre) / spread - 1
        x = random.beta(centre * size, (1 - centre) * size, (runs, n))
        parts = np.stack([((1 - x) ** 2).sum(axis=1), (2 * x * (1 - x)).sum(axis=1), (x**2).sum(axis=1)])
        parts = parts + drawn(noise, (3, runs), random)
        rows = np.maximum(parts.sum(axis=0), 1)
        mean = (parts[1] / 2 + parts[2]) / rows
        inside = np.maximum(parts[2] / rows - mean**2, 1e-4)
        added = noise.variance * (mean**2 + (0.5 - mean) ** 2 + (1 - mean) ** 2) / rows**2
        found.append(mean)
        errors.append(inside / rows + added)
    return (found[0] - found[1]) / np.sqrt(errors[0] + errors[1])


def log_rank(design: Survival, n: int, noise: NoiseShape, runs: int, random: np.random.Generator) -> Array:
    """The log-rank statistic of noisy cells by arm, bin and event, over the error of sampling and noise."""
    bins = design.bins
    died, risk = [], []
    for chance in design.hazards():
        law = chance * (1 - chance) ** np.arange(bins)
        counts = random.multinomial(n, [*law, 1 - law.sum()], size=runs).astype(float)
        left = np.zeros((runs, bins))
        left[:, -1] = counts[:, -1]
        events = counts[:, :-1] + drawn(noise, (runs, bins), random)
        cells = events + left + drawn(noise, (runs, bins), random)
        died.append(events)
        risk.append(np.cumsum(cells[:, ::-1], axis=1)[:, ::-1])
    deviation = np.sqrt(2 * (bins - np.arange(bins)) * noise.variance)
    lives = np.logical_and.accumulate((risk[0] >= 2 * deviation) & (risk[1] >= 2 * deviation), axis=1)
    events, total = died[0] + died[1], np.where(lives, risk[0] + risk[1], 2.0)
    share = np.where(lives, risk[0] / total, 0.5)
    score = np.where(lives, died[0] - share * events, 0).sum(axis=1)
    variance = np.where(lives, events * share * (1 - share) * (total - events) / (total - 1), 0).sum(axis=1)
    linear = np.zeros(runs)
    for own in (1 - share, share):
        slope = np.cumsum(np.where(lives, events * own / total, 0), axis=1)
        linear += noise.variance * (np.where(lives, own - slope, -slope) ** 2 + slope**2).sum(axis=1)
    products = 2 * noise.variance * deviation**2 * (share**2 + (1 - share) ** 2) / total**2
    return score / np.sqrt(np.maximum(variance + linear + np.where(lives, products, 0).sum(axis=1), 1e-9))


def off(share: float, expected: float, runs: int) -> float:
    """How many SE a simulated share is away from what was foreseen."""
    return abs(share - expected) / np.sqrt(max(expected * (1 - expected), 1e-9) / runs)


def quantile_by_draws(error: ErrorSum, draws: int, seed: int) -> Array:
    """Draws of an error, to compare its distribution with."""
    random = np.random.default_rng(seed)
    total = random.standard_normal(draws) * np.sqrt(error.variance)
    for scale in error.scales:
        total = total + random.laplace(0, scale, draws)
    return total
