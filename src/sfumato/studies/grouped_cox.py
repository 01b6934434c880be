"""Proportional hazards of two groups on grouped time: a hazard ratio from noisy exit cells.

In a step with cumulative baseline hazard θ a person has an event with probability 1 − exp(−θ·e^{βx}): the grouped form
of Cox's model, with a complementary log-log link. β solves Σ(d₁ − ρ·D) = 0, where ρ is the share of a step's events
that the model expects in the first group; noise and sampling are in the variance of that score.
Proof: docs/proofs/survival.md
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from sfumato.studies.exit_cells import ExitNoise, Floats, StudySteps
from sfumato.studies.log_rank import clear_of_noise

__all__ = ["HazardRatios", "hazard_ratios"]

GRID = np.linspace(-5.0, 5.0, 201)
"""Of the logarithm of the ratio: an interval that reaches an end is open there."""
SAME = len(GRID) // 2  # where the ratio is 1
PIECES = 8


@dataclass(frozen=True, kw_only=True)
class HazardRatios:
    """The logarithm of the ratio, its standard error, and limits, which may be infinite; nan where there is none.

    ``p`` is the p-value of the score test that the ratio is 1, by which the limits are found as well.
    """

    log: Floats
    error: Floats
    low: Floats
    high: Floats
    p: Floats


def hazard_ratios(cells: Floats, noise: ExitNoise, factor: float) -> HazardRatios:
    """Estimate the hazard of the first of two groups over that of the second: cells (…, 2 groups, 2, m).

    Limits are all β whose score is within ``factor`` of its standard errors of 0: with few events they may be open.
    """
    cells = np.asarray(cells, dtype=np.float64)
    found = _ratios(cells, StudySteps(noise=noise), factor)
    if noise.widths == (1,):
        return found
    clear, single = clear_of_noise(cells, noise), _ratios(cells, StudySteps(noise=noise, single=True), factor)
    return HazardRatios(
        log=np.where(clear, single.log, found.log),
        error=np.where(clear, single.error, found.error),
        low=np.where(clear, single.low, found.low),
        high=np.where(clear, single.high, found.high),
        p=np.where(clear, single.p, found.p),
    )


def scores_at(cells: Floats, steps: StudySteps, betas: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """The score (…, betas) at each logarithm of a ratio, its variance, and whether any step could be used."""
    risk, events = steps.at_risk(cells), steps.events(cells)
    used = steps.used(risk)
    usable = np.arange(steps.number) < used[..., None]
    one, two = (np.where(usable, risk[..., group, :], 1.0) for group in (0, 1))
    deaths = np.where(usable, events.sum(axis=-2), 0.0)
    first = np.where(usable, events[..., 0, :], 0.0).sum(axis=-1)
    pooled = _pooled(deaths, np.where(usable, one + two, 0.0)) / steps.sizes  # of a single step in each block
    found = [_score(beta, one, two, deaths, first, usable, pooled, steps) for beta in betas]
    score, variance = (np.stack([each[part] for each in found], axis=-1) for part in (0, 1))
    return score, np.maximum(variance, 1e-12), used > 0


def _ratios(cells: Floats, steps: StudySteps, factor: float) -> HazardRatios:
    score, variance, sound = scores_at(cells, steps, GRID)
    ratio = score / np.sqrt(variance)
    log = _crossing(score, 0.0)
    slope = np.gradient(score, GRID, axis=-1)
    place = np.clip(np.searchsorted(GRID, np.nan_to_num(log)), 0, len(GRID) - 1)[..., None]
    width = np.sqrt(np.take_along_axis(variance, place, axis=-1))[..., 0]
    error = width / np.maximum(-np.take_along_axis(slope, place, axis=-1)[..., 0], 1e-9)
    bounded = sound & np.isfinite(log)
    low, high = _crossing(ratio, factor), _crossing(ratio, -factor)
    return HazardRatios(
        log=np.where(bounded, log, np.nan),
        error=np.where(bounded, error, np.nan),
        low=np.where(sound, low, -np.inf),
        high=np.where(sound, high, np.inf),
        p=np.where(bounded, 2 * ndtr(-np.abs(ratio[..., SAME])), np.nan),
    )


def _pooled(deaths: Floats, risk: Floats) -> Floats:
    """The hazard of a step in both groups together, of pieces of time, for single steps are lost in noise."""
    steps = risk.shape[-1]
    width = -(-steps // PIECES)
    starts = np.arange(0, steps, width)
    share = np.add.reduceat(deaths, starts, axis=-1) / np.maximum(np.add.reduceat(risk, starts, axis=-1), 1.0)
    return np.repeat(np.clip(share, 0.0, 0.9), width, axis=-1)[..., :steps]


def _score(
    beta: float,
    one: Floats,
    two: Floats,
    deaths: Floats,
    first: Floats,
    usable: npt.NDArray[np.bool_],
    pooled: Floats,
    steps: StudySteps,
) -> tuple[Floats, Floats]:
    """The score at β, less what noise adds to it on average, and its variance."""
    share, times = one / (one + two), np.exp(beta)
    base = -np.log1p(-pooled) / (share * times + 1 - share)
    for _ in range(3):  # the baseline under which both groups together have the pooled hazard
        reached = share * -np.expm1(-base * times) - (1 - share) * np.expm1(-base)
        slope = share * times * np.exp(-base * times) + (1 - share) * np.exp(-base)
        base = np.maximum(base - (reached - pooled) / np.maximum(slope, 1e-9), 0.0)
    small = base < 1e-9
    safe = np.where(small, 1.0, base)
    ours, theirs = -np.expm1(-safe * times), -np.expm1(-safe)
    odds = np.where(small, times, ours / theirs) * one
    part = np.where(usable, odds / (odds + two), 0.0)
    free = part * (1 - part)
    score = first - (part * deaths).sum(axis=-1)
    average = steps.shared * (1 / one - 1 / two) + deaths * steps.risk_variance * ((1 - part) / two**2 - part / one**2)
    score = score + (free * average).sum(axis=-1)
    survive = (1 - part) * np.where(small, 1.0, 1 - ours) + part * np.where(small, 1.0, 1 - theirs)
    sampling = (deaths * free * survive).sum(axis=-1)
    step = np.stack([deaths * free / one, -deaths * free / two], axis=-2)
    direct = np.stack([np.where(usable, 1 - part, 0.0), -part], axis=-2)
    linear = (steps.through(direct, step) ** 2).sum(axis=(-1, -2, -3))
    product = (2 * steps.event_variance * steps.risk_variance * free**2 * (1 / one**2 + 1 / two**2)).sum(axis=-1)
    return score, np.maximum(sampling, 0.0) + linear + product


def _crossing(values: Floats, level: float) -> Floats:
    """Where a falling curve over the grid first comes down to a level; infinite where it begins below or never does."""
    below = values <= level
    place = np.where(below.any(axis=-1), below.argmax(axis=-1), len(GRID) - 1)
    if level < 0:  # the upper limit: where it is below for good
        above = values[..., ::-1] > level
        place = np.clip(len(GRID) - above.argmax(axis=-1), 0, len(GRID) - 1)
    left = np.maximum(place - 1, 0)[..., None]
    y0, y1 = (np.take_along_axis(values, at, axis=-1)[..., 0] for at in (left, place[..., None]))
    step = np.clip((y0 - level) / np.where(y0 == y1, 1.0, y0 - y1), 0.0, 1.0)
    found = GRID[left[..., 0]] + step * (GRID[1] - GRID[0])
    found = np.where(place == 0, -np.inf, found)
    return np.where(values[..., -1] > level, np.inf, found)
