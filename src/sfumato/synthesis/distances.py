"""How far a distribution that is known is from one of which noisy counts are known, with intervals that hold always.

``x = counts/total − shares`` has noise of known size in every cell. The sum of |x| has the mean Σf(|d|), where d are
the true differences and f(d) = E|d + noise| is convex, at least d, and at most d + f(0); its deviation from that mean
is bounded. So Σ|d| is between that sum less a deviation less f(0) for each cell, and the value at which all |d| are
alike. The root of the Jensen–Shannon divergence is a metric, and at most the root of half the sum of |noise|.
Proof: docs/proofs/synthesis.md
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.agreement import jensen_shannon

__all__ = ["Distance", "distances_of"]

Shares = NDArray[np.float64]
OF_TOTAL = 0.2
"""The part of α that is for the number of rows; the rest is for the cells, half of it on each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """A distance between two distributions, what noise adds taken off, and its limits."""

    value: float
    low: float
    high: float


def distances_of(
    counts: Shares,
    sigma: float,
    total: float,
    total_error: float,
    shares: Shares,
    *,
    gaussian: bool,
    confidence: float,
    random: np.random.Generator,
) -> tuple[Distance, Distance]:
    """Total variation and Jensen–Shannon divergence (in bits) between ``shares`` and the table of the noisy counts.

    ``sigma`` is the standard deviation of the noise on a count, ``total`` the noisy number of rows and ``total_error``
    the standard deviation of that. Both intervals hold with this confidence each, whatever the true table is.
    """
    from scipy.stats import norm

    alpha, cells = 1 - confidence, counts.size
    each = alpha * (1 - OF_TOTAL) / 2
    rows = max(total, 1.0)
    size = sigma / rows
    scale = float(norm.isf(alpha * OF_TOTAL / 2)) * total_error / rows
    reach = size * math.sqrt(2 * cells * math.log(1 / each)) if gaussian else size * math.sqrt(cells / each)
    mean = _folded(size, gaussian=gaussian)
    met = float(np.abs(counts / rows - shares).sum())
    low = max(0.0, met - reach - cells * mean(0.0) - scale)
    high = cells * _inverse(mean, (met + reach) / cells) + scale
    inner = max(0.0, met - cells * mean(0.0)), cells * _inverse(mean, met / cells)
    ends = min(1.0, low / 2), min(1.0, high / 2)
    variation = Distance(value=_within(sum(inner) / 4, ends), low=ends[0], high=ends[1])
    clipped = np.maximum(counts, 0.0) / rows
    root = math.sqrt(min(1.0, float(jensen_shannon(clipped, shares))))
    noise = _noise_sum(size, cells, alpha * (1 - OF_TOTAL), gaussian=gaussian) + scale
    away = math.sqrt(noise / 2)
    least = max(1 - _entropy((1 + ends[0]) / 2), max(0.0, root - away) ** 2)
    most = max(least, min(ends[1], (root + away) ** 2))
    drawn = random.normal(0, size, (50, cells)) if gaussian else random.laplace(0, size / math.sqrt(2), (50, cells))
    of_noise = float(jensen_shannon(np.maximum(clipped + drawn, 0.0), clipped).mean())
    return variation, Distance(value=_within(root**2 - of_noise, (least, most)), low=least, high=most)


def _folded(size: float, *, gaussian: bool) -> Callable[[float], float]:
    """E|d + noise| as a function of |d|, for noise of this standard deviation."""

    def normal(apart: float) -> float:
        z = apart / size
        return apart * math.erf(z / math.sqrt(2)) + size * math.sqrt(2 / math.pi) * math.exp(-(z**2) / 2)

    def laplace(apart: float) -> float:
        return apart + size / math.sqrt(2) * math.exp(-apart * math.sqrt(2) / size)

    return normal if gaussian else laplace


def _inverse(mean: Callable[[float], float], value: float) -> float:
    """The |d| at which the mean has a value; 0 where it is larger everywhere."""
    low, high = 0.0, value
    if mean(0.0) >= value:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < value else (low, middle)
    return high


def _noise_sum(size: float, cells: int, alpha: float, *, gaussian: bool) -> float:
    """What the sum of |noise| over all cells exceeds with probability α at most."""
    if gaussian:
        return size * (cells * math.sqrt(2 / math.pi) + math.sqrt(2 * cells * math.log(1 / alpha)))
    from scipy.stats import gamma

    return float(gamma.isf(alpha, cells)) * size / math.sqrt(2)


def _entropy(p: float) -> float:
    """Of a coin, in bits."""
    return -sum(q * math.log2(q) for q in (p, 1 - p) if q > 0)


def _within(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])
