"""Two numbers of events with noise, as independent Poisson numbers: difference, ratio and a test.

Arrays have the two groups on their last axis. Proof: docs/proofs/comparisons.md
"""

import numpy as np

from sfumato.studies.draws import REPLICATES, CellNoise, Numbers, multiplier, stacked
from sfumato.studies.proportions import TIE, recovered_ratio

__all__ = ["count_ends", "count_p_values", "count_statistic"]

Ends = tuple[Numbers, Numbers]


def count_statistic(values: Numbers, variances: Numbers) -> Numbers:
    """|a − b| over its standard deviation where both expect the same number of events."""
    common = np.maximum(values.sum(axis=-1), 0.0) + 0.5
    found: Numbers = np.abs(values[..., 0] - values[..., 1]) / np.sqrt(common + variances.sum(axis=-1))
    return found


def count_p_values(
    values: Numbers,
    noises: tuple[CellNoise, CellNoise],
    generator: np.random.Generator,
    replicates: int = REPLICATES,
) -> Numbers:
    """The p-value of equal expected numbers: how often two such numbers, with noise anew, are as far apart."""
    variances = np.array([noise.variance for noise in noises])
    seen = count_statistic(values, variances)
    expected = (np.maximum(values.sum(axis=-1), 0.0) + 0.5) / 2
    shape = (replicates, *values.shape)
    drawn = generator.poisson(expected[..., None], size=shape) + stacked(noises, generator, shape[:-1])
    found: Numbers = (1 + (count_statistic(drawn, variances) >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found


def count_ends(values: Numbers, noises: tuple[CellNoise, CellNoise], level: float) -> tuple[Ends, Ends]:
    """Ends of the difference and of the ratio of expected numbers, from the score limits of each."""
    variances = np.array([noise.variance for noise in noises])
    fourths = np.array([noise.fourth for noise in noises])
    held = np.maximum(values, 0.0)
    k = multiplier(fourths / np.maximum(held + variances, 1e-9) ** 2, level)
    half = k * np.sqrt(held + variances + k**2 / 4)
    low, high = np.maximum(held + k**2 / 2 - half, 0.0), held + k**2 / 2 + half
    low = np.minimum(low, held)
    centre = held[..., 0] - held[..., 1]
    down = np.hypot(held[..., 0] - low[..., 0], high[..., 1] - held[..., 1])
    up = np.hypot(high[..., 0] - held[..., 0], held[..., 1] - low[..., 1])
    return (centre - down, centre + up), recovered_ratio(held, low, high)
