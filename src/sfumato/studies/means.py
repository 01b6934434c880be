"""Means of two groups from noisy moments: the difference with Welch's unequal variances, all of it private.

Values are on a scale from 0 to 1, which their declared bounds become. A group is three noisy numbers, the sums over its
rows of (1 − x)², 2x(1 − x) and x²: together the rows, half the second and the third the sum of x, the third the sum of
x². Arrays have groups and then these parts on their last axes. Proof: docs/proofs/comparisons.md
"""

from dataclasses import dataclass

import numpy as np

from sfumato.inference.moments import Moments
from sfumato.studies.draws import REPLICATES, CellNoise, Numbers, multiplier
from sfumato.studies.proportions import TIE

__all__ = [
    "GroupMeans",
    "bounded_means",
    "bounded_p_values",
    "group_means",
    "mean_difference_ends",
    "mean_difference_p_values",
    "parts_of",
]

CAUTION = 1.2816  # standard deviations that a noisy variance is raised by: it is too small in one of ten runs
PARTS = np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 1.0]])  # what each part brings into the sums of x and of x²


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMeans:
    """Estimates of each group: rows, mean, a cautious variance of the values, the noise in the mean and its fourth."""

    rows: Numbers
    mean: Numbers
    variance: Numbers
    noise: Numbers
    fourth: Numbers


def group_means(parts: Numbers, noise: CellNoise) -> GroupMeans:
    """Read rows, mean and variance off the parts; the variance is raised for its own noise, to a quarter at most."""
    rows = np.maximum(parts.sum(axis=-1), 2.0)
    sums = parts @ PARTS
    mean = np.clip(sums[..., 0] / rows, 0.0, 1.0)
    found = sums[..., 1] / rows - 2 * mean * sums[..., 0] / rows + mean**2 * parts.sum(axis=-1) / rows
    found = np.clip(found, 0.0, 0.25)
    around = np.stack([mean**2, mean**2 - mean, (1 - mean) ** 2], axis=-1) - found[..., None]
    deviation = np.sqrt(noise.variance * (around**2).sum(axis=-1)) / rows
    raised = np.minimum((found + CAUTION * deviation) * rows / (rows - 1), 0.25 * rows / (rows - 1))
    weights = _weights(mean)
    return GroupMeans(
        rows=rows,
        mean=mean,
        variance=raised,
        noise=noise.variance * (weights**2).sum(axis=-1) / rows**2,
        fourth=noise.fourth * (weights**4).sum(axis=-1) / rows**4,
    )


def parts_of(moments: Moments) -> tuple[Numbers, CellNoise]:
    """The three noisy parts of a group from its released moments, in rows, and the noise that each of them holds."""
    third = moments.product.value
    second = 2 * (moments.first.value - third)
    ((noise, weight),) = moments.product.noises.items()
    parts = [float(moments.number.value - second - third), float(second), float(third)]
    return np.array(parts), CellNoise(((float(weight), noise.law),))


def _weights(mean: Numbers) -> Numbers:
    """What each part brings into the sum of x − mean."""
    return np.stack([-mean, 0.5 - mean, 1 - mean], axis=-1)


def mean_difference_ends(groups: GroupMeans, level: float) -> tuple[Numbers, Numbers]:
    """Low and high of the difference of means, first group less second, on the scale from 0 to 1."""
    from scipy.special import ndtri, stdtrit  # scipy.stats alone takes most of a second to import

    sampling = groups.variance / groups.rows
    whole = (sampling + groups.noise).sum(axis=-1)
    freedom = _freedom(groups)
    wider = stdtrit(freedom, (1 + level) / 2) / ndtri((1 + level) / 2)
    half = wider * multiplier(groups.fourth.sum(axis=-1) / whole**2, level) * np.sqrt(whole)
    centre = groups.mean[..., 0] - groups.mean[..., 1]
    return np.maximum(centre - half, -1.0), np.minimum(centre + half, 1.0)


def _freedom(groups: GroupMeans) -> Numbers:
    """Degrees of freedom by Welch and Satterthwaite, at least 1."""
    sampling = groups.variance / groups.rows
    found: Numbers = sampling.sum(axis=-1) ** 2 / (sampling**2 / (groups.rows - 1)).sum(axis=-1)
    return np.maximum(found, 1.0)


def mean_difference_p_values(
    parts: Numbers, noise: CellNoise, generator: np.random.Generator, replicates: int = REPLICATES
) -> Numbers:
    """The p-value of equal means: how often sampling with Student's t, and noise drawn anew, are as far apart."""
    groups = group_means(parts, noise)
    seen = np.abs(groups.mean[..., 0] - groups.mean[..., 1])
    share = groups.rows / groups.rows.sum(axis=-1, keepdims=True)
    common = (share * groups.mean).sum(axis=-1)[..., None]
    shape = (replicates, *groups.rows.shape)
    sampled = np.sqrt(groups.variance * groups.rows) * generator.standard_normal(shape)
    sampled /= np.sqrt(generator.chisquare(_freedom(groups), shape[:-1]) / _freedom(groups))[..., None]
    drawn = noise.draw(generator, (*shape, 3))
    rows = np.maximum(groups.rows + drawn.sum(axis=-1), 2.0)
    means = (sampled + (drawn * _weights(common)[..., :]).sum(axis=-1)) / rows
    found: Numbers = (1 + (np.abs(means[..., 0] - means[..., 1]) >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found


def bounded_means(rows: Numbers, mean: Numbers, noise: Numbers, fourth: Numbers) -> GroupMeans:
    """The same where no variance was released: the largest that values between 0 and 1 with this mean can have.

    It is mean·(1 − mean), by Bhatia and Davis; the mean is moved towards a half for its own noise first. ``noise`` and
    ``fourth`` are those of the sum of x − mean.
    """
    moved = CAUTION * np.sqrt(noise) / rows
    inner = np.where(mean < 0.5, np.minimum(mean + moved, 0.5), np.maximum(mean - moved, 0.5))
    largest = inner * (1 - inner) * rows / (rows - 1)
    return GroupMeans(rows=rows, mean=mean, variance=largest, noise=noise / rows**2, fourth=fourth / rows**4)


def bounded_p_values(
    groups: GroupMeans,
    noises: tuple[CellNoise, CellNoise],
    weights: Numbers,
    generator: np.random.Generator,
    replicates: int = REPLICATES,
) -> Numbers:
    """The p-value of equal means: ``noises`` are in the parts of each group, which enter the sum of x − mean so often.

    ``weights`` has the groups and then the parts on its last axes, at the mean of both groups.
    """
    seen = np.abs(groups.mean[..., 0] - groups.mean[..., 1])
    shape = (replicates, *groups.rows.shape)
    sampled = np.sqrt(groups.variance * groups.rows) * generator.standard_normal(shape)
    parts = weights.shape[-1]
    drawn = np.stack([noise.draw(generator, (*shape[:-1], parts)) for noise in noises], axis=-2)
    means = (sampled + (drawn * weights).sum(axis=-1)) / groups.rows
    found: Numbers = (1 + (np.abs(means[..., 0] - means[..., 1]) >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found
