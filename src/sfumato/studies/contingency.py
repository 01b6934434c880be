"""Tables of groups by categories from noisy counts: χ² for any number of both, and a trend over ordered groups.

Both are parametric bootstraps: rows and noise are drawn anew under the hypothesis, and the statistic with them. Arrays
have groups and categories on their last axes. Proof: docs/proofs/comparisons.md
"""

import numpy as np

from sfumato.studies.draws import REPLICATES, CellNoise, Numbers, multiplier
from sfumato.studies.proportions import TIE, pooled

__all__ = ["chi_square_p_values", "chi_square_statistic", "slope", "trend_p_values", "trend_statistic"]


def chi_square_statistic(cells: Numbers, variance: float) -> Numbers:
    """Σ (cell − n·p)² over its variance, sampling and noise, where p are the shares of the categories in all groups."""
    p, rows = _common(cells)[..., None, :], cells.sum(axis=-1)[..., None]
    noise = variance * ((1 - p) ** 2 + (cells.shape[-1] - 1) * p**2)
    found: Numbers = ((cells - rows * p) ** 2 / (np.maximum(rows, 1.0) * p * (1 - p) + noise)).sum(axis=(-2, -1))
    return found


def chi_square_p_values(
    cells: Numbers, noise: CellNoise, generator: np.random.Generator, replicates: int = REPLICATES
) -> Numbers:
    """The p-value of independence: how often a table whose groups have the same shares is as far off."""
    seen = chi_square_statistic(cells, noise.variance)
    rows = np.maximum(np.rint(cells.sum(axis=-1)), 1.0).astype(np.int64)
    shape = (replicates, *rows.shape)
    drawn = generator.multinomial(rows, _common(cells)[..., None, :], size=shape)
    others = chi_square_statistic(drawn + noise.draw(generator, drawn.shape), noise.variance)
    found: Numbers = (1 + (others >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found


def _common(cells: Numbers) -> Numbers:
    """The shares of the categories in all groups together: (x + ½)/(n + ½·categories), of counts of at least 0."""
    held = np.maximum(cells.sum(axis=-2), 0.0) + 0.5
    found: Numbers = held / held.sum(axis=-1, keepdims=True)
    return found


def trend_statistic(yes: Numbers, no: Numbers, scores: Numbers, variance: float) -> Numbers:
    """Cochran and Armitage: Σ (score − mean score)·(yes − n·p), over its standard deviation with noise; signed."""
    rows = np.maximum(yes + no, 1.0)
    p = pooled(yes, no)[..., None]
    weights = scores - (rows * scores).sum(axis=-1, keepdims=True) / rows.sum(axis=-1, keepdims=True)
    left = (weights * ((1 - p) * yes - p * no)).sum(axis=-1)
    each = p * (1 - p) * rows + variance * ((1 - p) ** 2 + p**2)
    found: Numbers = left / np.sqrt((weights**2 * each).sum(axis=-1))
    return found


def trend_p_values(
    yes: Numbers,
    no: Numbers,
    scores: Numbers,
    noise: CellNoise,
    generator: np.random.Generator,
    replicates: int = REPLICATES,
) -> Numbers:
    """The p-value of no trend, on both sides: how often groups with one share, and noise anew, show as much."""
    seen = np.abs(trend_statistic(yes, no, scores, noise.variance))
    rows = np.maximum(np.rint(yes + no), 1.0).astype(np.int64)
    drawn = generator.binomial(rows, pooled(yes, no)[..., None], size=(replicates, *rows.shape))
    again = drawn + noise.draw(generator, drawn.shape), rows - drawn + noise.draw(generator, drawn.shape)
    others = np.abs(trend_statistic(*again, scores, noise.variance))
    found: Numbers = (1 + (others >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found


def slope(
    yes: Numbers, no: Numbers, scores: Numbers, noise: CellNoise, level: float
) -> tuple[Numbers, Numbers, Numbers]:
    """By how much the share rises with each unit of the score, by weighted least squares; and its interval."""
    rows = np.maximum(yes + no, 1.0)
    p = pooled(yes, no)[..., None]
    weights = scores - (rows * scores).sum(axis=-1, keepdims=True) / rows.sum(axis=-1, keepdims=True)
    spread = (rows * weights**2).sum(axis=-1)
    found = (weights * ((1 - p) * yes - p * no)).sum(axis=-1) / spread
    line = np.clip(p + found[..., None] * weights, 0.0, 1.0)
    each = (np.maximum(yes, 0.0) + 2) / (np.maximum(yes, 0.0) + np.maximum(no, 0.0) + 4)
    sampling = np.maximum(each * (1 - each), line * (1 - line)) * rows
    whole = (weights**2 * (sampling + noise.variance * ((1 - line) ** 2 + line**2))).sum(axis=-1)
    fourth = noise.fourth * (weights**4 * ((1 - line) ** 4 + line**4)).sum(axis=-1)
    half = multiplier(fourth / whole**2, level) * np.sqrt(whole) / spread
    return found, found - half, found + half
