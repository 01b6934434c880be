"""Mann and Whitney's test from noisy histograms of two groups, and the chance that one value exceeds the other.

With h₁ and h₂ as histograms over the same ordered classes, S = Σ h₁ᵢ·h₂ⱼ·sign(i − j). Noise enters S twice: through
each count times the other group's signed sums, and as products of two noises; both are in its variance, and what the
noise adds to the squares of those sums is taken off. Arrays have groups and then classes on their last axes. Proof:
docs/proofs/comparisons.md
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.draws import Numbers, multiplier

__all__ = ["rank_p_values", "rank_statistic", "superiority", "superiority_ends"]

HALVINGS = 40


def rank_statistic(cells: Numbers, variance: float) -> Numbers:
    """S over its standard deviation where both groups have one distribution: sampling with ties, and noise."""
    first, second = cells[..., 0, :], cells[..., 1, :]
    signed = _signed_sums(second)
    total = (first * signed).sum(axis=-1)
    left, right = np.maximum(first.sum(axis=-1), 1.0), np.maximum(second.sum(axis=-1), 1.0)
    both = left + right
    together = first + second
    cubes = (together**3 - 3 * together * 2 * variance).sum(axis=-1)  # without what noise adds to them
    ties = np.clip(1 - cubes / both**3, 0.0, 1.0)
    sampling = left * right * (both + 1) * ties / 3
    spread = np.sqrt(np.maximum(sampling + _noise(cells, variance), 1e-12))
    found: Numbers = total / spread
    return found


def _signed_sums(counts: Numbers) -> Numbers:
    """For each class, how many lie in lower classes less how many in higher ones."""
    rising = np.cumsum(counts, axis=-1)
    found: Numbers = rising - counts - (rising[..., -1:] - rising)
    return found


def _noise(cells: Numbers, variance: float, centre: Numbers | float = 0.0) -> Numbers:
    """The variance that noise brings into Σ h₁ᵢ·h₂ⱼ·(sign(i − j) − centre)."""
    classes = cells.shape[-1]
    first, second = cells[..., 0, :], cells[..., 1, :]
    off = np.asarray(centre)[..., None]
    one = _signed_sums(second) - off * second.sum(axis=-1, keepdims=True)
    two = -_signed_sums(first) - off * first.sum(axis=-1, keepdims=True)
    pairs = classes * (classes - 1) + classes**2 * np.asarray(centre) ** 2  # Σ (sign − centre)² over all pairs
    squares = (one**2).sum(axis=-1) + (two**2).sum(axis=-1) - 2 * variance * pairs
    found: Numbers = variance * np.maximum(squares, 0.0) + variance**2 * pairs
    return found


def rank_p_values(cells: Numbers, variance: float) -> Numbers:
    """The p-value of one distribution, on both sides, by the normal law of the statistic."""
    from scipy.special import ndtr

    found: Numbers = 2 * ndtr(-np.abs(rank_statistic(cells, variance)))
    return found


def superiority(cells: Numbers) -> Numbers:
    """The chance that a value of the first group exceeds one of the second, equal ones counted half."""
    first, second = cells[..., 0, :], cells[..., 1, :]
    pairs = np.maximum(first.sum(axis=-1), 1.0) * np.maximum(second.sum(axis=-1), 1.0)
    found: Numbers = np.clip(0.5 + (first * _signed_sums(second)).sum(axis=-1) / (2 * pairs), 0.0, 1.0)
    return found


def superiority_ends(cells: Numbers, variance: float, level: float) -> tuple[Numbers, Numbers]:
    """Low and high of that chance: every θ that is not too far for the sampling variance at θ and the noise.

    The sampling variance is that of Hanley and McNeil at θ, which values without ties have at the most for most shapes.
    """
    first, second = cells[..., 0, :].sum(axis=-1), cells[..., 1, :].sum(axis=-1)
    left, right = np.maximum(first, 2.0), np.maximum(second, 2.0)
    centre = superiority(cells)
    noise = _noise(cells, variance, 2 * centre - 1) / (2 * left * right) ** 2
    k = multiplier(0.0, level)

    def outside(theta: Numbers) -> NDArray[np.bool_]:
        more = (left + right) / 2 - 1
        sampling = theta * (1 - theta) * (1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta)))
        far: NDArray[np.bool_] = (centre - theta) ** 2 > k**2 * (sampling / (left * right) + noise)
        return far

    ends = []
    for edge in (0.0, 1.0):
        inner, outer = centre, np.full(np.shape(centre), edge)
        reached = ~outside(outer)
        for _ in range(HALVINGS):
            middle = (inner + outer) / 2
            far = outside(middle)
            inner, outer = np.where(far, inner, middle), np.where(far, middle, outer)
        ends.append(np.where(reached, edge, outer))
    return ends[0], ends[1]
