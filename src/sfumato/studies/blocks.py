"""A randomisation test over blocks from noisy counts: within each block the groups were assigned at random.

As in Mantel and Haenszel's test, differences of shares are taken within blocks and added up with weights n₁n₂/n, so
that a difference between blocks is none between groups. Arrays have blocks and then the two groups on their last axes.
Proof: docs/proofs/comparisons.md
"""

import numpy as np

from sfumato.studies.draws import REPLICATES, CellNoise, Numbers, multiplier
from sfumato.studies.proportions import TIE, half_added, pooled

__all__ = ["block_difference", "block_p_values", "block_statistic"]


def _parts(yes: Numbers, no: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The rows of each group held to at least 1, the weights of blocks, and what each group's rows bring."""
    rows = np.maximum(yes + no, 1.0)
    weights = rows.prod(axis=-1) / rows.sum(axis=-1)
    return rows, weights, weights[..., None] / rows


def block_statistic(yes: Numbers, no: Numbers, variance: float) -> Numbers:
    """The weighted sum of differences over its standard deviation where groups are equal within blocks; signed."""
    _, weights, each = _parts(yes, no)
    p = pooled(yes, no)[..., None]
    left = each * ((1 - p) * yes - p * no)
    spread = (p[..., 0] * (1 - p[..., 0]) * weights).sum(axis=-1)
    noise = variance * (((1 - p) ** 2 + p**2) * each**2).sum(axis=(-2, -1))
    found: Numbers = (left[..., 0] - left[..., 1]).sum(axis=-1) / np.sqrt(spread + noise)
    return found


def block_p_values(
    yes: Numbers, no: Numbers, noise: CellNoise, generator: np.random.Generator, replicates: int = REPLICATES
) -> Numbers:
    """The p-value of no effect in any block: groups are assigned anew within blocks, and noise is drawn anew."""
    seen = np.abs(block_statistic(yes, no, noise.variance))
    rows = np.maximum(np.rint(yes + no), 1.0).astype(np.int64)
    most = rows.sum(axis=-1)
    have = np.clip(np.rint(yes.sum(axis=-1)), 0, most).astype(np.int64)
    first = generator.hypergeometric(have, most - have, rows[..., 0], size=(replicates, *have.shape))
    drawn = np.stack([first, have - first], axis=-1)
    again = drawn + noise.draw(generator, drawn.shape), rows - drawn + noise.draw(generator, drawn.shape)
    others = np.abs(block_statistic(*again, noise.variance))
    found: Numbers = (1 + (others >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found


def block_difference(yes: Numbers, no: Numbers, noise: CellNoise, level: float) -> tuple[Numbers, Numbers, Numbers]:
    """The common difference of shares within blocks, weighted, and its interval."""
    rows, weights, each = _parts(yes, no)
    whole = weights.sum(axis=-1)
    share = half_added(yes, no)
    centre = pooled(yes, no)[..., None]
    left = each * ((1 - centre) * yes - centre * no)
    found = (left[..., 0] - left[..., 1]).sum(axis=-1) / whole
    inner = (np.maximum(yes, 0.0) + 1) / (np.maximum(yes, 0.0) + np.maximum(no, 0.0) + 2)
    sampling = (each**2 * rows * inner * (1 - inner)).sum(axis=(-2, -1))
    both = ((1 - share) ** 2 + share**2, (1 - share) ** 4 + share**4)
    total = sampling + noise.variance * (both[0] * each**2).sum(axis=(-2, -1))
    fourth = noise.fourth * (both[1] * each**4).sum(axis=(-2, -1))
    half = multiplier(fourth / total**2, level) * np.sqrt(total) / whole
    return found, np.maximum(found - half, -1.0), np.minimum(found + half, 1.0)
