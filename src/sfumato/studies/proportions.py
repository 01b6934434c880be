"""Proportions of two groups from noisy counts: difference, ratio and odds ratio with intervals, and tests.

Each group is two counts, of those who have the outcome and of those who have not, each with its own noise; how many
there are in all is not known. Every function takes arrays whose last axis goes through the groups, so that what is
simulated in the tests is what is computed for a release. Proof: docs/proofs/comparisons.md
"""

from dataclasses import dataclass

import numpy as np

from sfumato.inference.proportion import proportion_limits
from sfumato.studies.draws import REPLICATES, CellNoise, Numbers, multiplier, stacked

__all__ = [
    "TwoByTwo",
    "difference_ends",
    "odds_ratio_ends",
    "p_values",
    "ratio_ends",
    "recovered_ratio",
    "score_limits",
    "shares",
]

TIE = 1e-9  # statistics this near are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoByTwo:
    """Noisy counts with and without the outcome, by group on the last axis, and the noise in each."""

    yes: Numbers
    no: Numbers
    yes_noise: tuple[CellNoise, ...]
    no_noise: tuple[CellNoise, ...]

    @property
    def variances(self) -> tuple[Numbers, Numbers]:
        """Of the noise in the counts with the outcome, and in those without it."""
        return (
            np.array([each.variance for each in self.yes_noise]),
            np.array([each.variance for each in self.no_noise]),
        )

    @property
    def fourths(self) -> tuple[Numbers, Numbers]:
        """The fourth cumulants of the same."""
        return np.array([each.fourth for each in self.yes_noise]), np.array([each.fourth for each in self.no_noise])


def shares(yes: Numbers, no: Numbers) -> Numbers:
    """The share with the outcome, held to what a share can be; a half where there is nobody."""
    total = yes + no
    known = np.divide(yes, total, out=np.full(np.shape(yes), 0.5), where=total > 0)
    found: Numbers = np.clip(known, 0.0, 1.0)
    return found


def score_limits(table: TwoByTwo, level: float, half: float = 0.0) -> tuple[Numbers, Numbers]:
    """Every share p for which (1 − p)·yes − p·no is not too far from 0, for sampling and noise: its ends.

    |(1 − p)·yes − p·no| ≤ k·√(n·p(1 − p) + (1 − p)²·v₁ + p²·v₀), where k holds ``level`` of a normal number and this
    noise. ``half`` a row is taken off the distance where one share is shown by itself.
    """
    above, below = table.variances
    total = table.yes + table.no
    noise = (above, above, above + below)
    return proportion_limits(table.yes, total, noise, lambda p: _spread(table, p, level), half=half)


def _spread(table: TwoByTwo, p: Numbers, level: float) -> Numbers:
    """k for the noise share at p."""
    (above, below), (above4, below4) = table.variances, table.fourths
    noise = (1 - p) ** 2 * above + p**2 * below
    whole = np.maximum(table.yes + table.no, 1.0) * p * (1 - p) + noise
    fourth = (1 - p) ** 4 * above4 + p**4 * below4
    kurtosis = np.divide(fourth, whole**2, out=np.zeros_like(whole), where=whole > 0)
    return multiplier(kurtosis, level)


def difference_ends(table: TwoByTwo, level: float) -> tuple[Numbers, Numbers]:
    """Low and high of the difference of shares, first group less second: variances recovered from the score limits."""
    p, (low, high) = shares(table.yes, table.no), score_limits(table, level)
    centre = p[..., 0] - p[..., 1]
    down = np.hypot(p[..., 0] - low[..., 0], high[..., 1] - p[..., 1])
    up = np.hypot(high[..., 0] - p[..., 0], p[..., 1] - low[..., 1])
    return np.maximum(centre - down, -1.0), np.minimum(centre + up, 1.0)


def ratio_ends(table: TwoByTwo, level: float) -> tuple[Numbers, Numbers]:
    """Low and high of the ratio of shares: every θ for which p₁ − θ·p₂ is not too far from 0; high may be infinite."""
    return recovered_ratio(shares(table.yes, table.no), *score_limits(table, level))


def recovered_ratio(p: Numbers, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Low and high of the ratio of two estimates, with variances recovered from the limits of each."""
    return _ratio_end(p, low, high, upper=False), _ratio_end(p, low, high, upper=True)


def _ratio_end(p: Numbers, low: Numbers, high: Numbers, *, upper: bool) -> Numbers:
    """A root of (p₁ − θp₂)² = (p₁ − one)² + θ²(p₂ − two)², with the limits on the sides that θ is moved to."""
    one, two = (high[..., 0], low[..., 1]) if upper else (low[..., 0], high[..., 1])
    a = two * (2 * p[..., 1] - two)
    b = p[..., 0] * p[..., 1]
    c = one * (2 * p[..., 0] - one)
    inside = np.maximum(b * b - a * c, 0.0)
    if upper:
        end: Numbers = np.divide(b + np.sqrt(inside), a, out=np.full(np.shape(a), np.inf), where=a > 0)
        return end
    under = b + np.sqrt(inside)  # the smaller root is c over this, and no digits are lost
    return np.maximum(np.divide(c, under, out=np.zeros(np.shape(c)), where=under > 0), 0.0)


def odds_ratio_ends(table: TwoByTwo, level: float) -> tuple[Numbers, Numbers]:
    """Low and high of the odds ratio, by variances recovered on the logarithm of the odds; ends may be open."""
    centre = _log_odds(half_added(table.yes, table.no))
    low, high = (_log_odds(end) for end in score_limits(table, level))
    low, high = np.minimum(low, centre), np.maximum(high, centre)
    with np.errstate(over="ignore", invalid="ignore"):
        down = np.hypot(centre[..., 0] - low[..., 0], high[..., 1] - centre[..., 1])
        up = np.hypot(high[..., 0] - centre[..., 0], centre[..., 1] - low[..., 1])
        between = centre[..., 0] - centre[..., 1]
        return np.exp(between - down), np.exp(between + up)


def half_added(yes: Numbers, no: Numbers) -> Numbers:
    """(yes + ½)/(n + 1) of counts held to at least 0: a share strictly between 0 and 1."""
    above, below = np.maximum(yes, 0.0), np.maximum(no, 0.0)
    return (above + 0.5) / (above + below + 1.0)


def _log_odds(p: Numbers) -> Numbers:
    with np.errstate(divide="ignore"):
        found: Numbers = np.log(p) - np.log1p(-p)
        return found


def score_statistic(yes: Numbers, no: Numbers, above: Numbers, below: Numbers) -> Numbers:
    """The difference of shares over its standard deviation where both are equal: sampling and noise are in it."""
    n = np.maximum(yes + no, 1.0)
    p = pooled(yes, no)[..., None]
    left = ((1 - p) * yes - p * no) / n
    variance = p * (1 - p) / n + ((1 - p) ** 2 * above + p**2 * below) / n**2
    found: Numbers = np.abs(left[..., 0] - left[..., 1]) / np.sqrt(variance.sum(axis=-1))
    return found


def pooled(yes: Numbers, no: Numbers) -> Numbers:
    """The common share of both groups: (x + ½)/(n + 1)."""
    return half_added(yes.sum(axis=-1), no.sum(axis=-1))


def p_values(
    table: TwoByTwo, generator: np.random.Generator, replicates: int = REPLICATES, *, conditional: bool = False
) -> Numbers:
    """The p-value of equal shares: how often a table without a difference, with noise drawn anew, is as far off.

    Tables are drawn with the pooled share and as many rows in each group as the noisy counts say. With ``conditional``
    also the number with the outcome is held fixed, as in Fisher's exact test.
    """
    above, below = table.variances
    seen = score_statistic(table.yes, table.no, above, below)
    rows = np.maximum(np.rint(table.yes + table.no), 1.0).astype(np.int64)
    p = pooled(table.yes, table.no)
    shape = (replicates, *rows.shape)
    if conditional:
        most = rows.sum(axis=-1)
        have = np.clip(np.rint(table.yes.sum(axis=-1)), 0, most).astype(np.int64)
        first = generator.hypergeometric(have, most - have, rows[..., 0], size=shape[:-1])
        drawn = np.stack([first, have - first], axis=-1)
    else:
        drawn = generator.binomial(rows, p[..., None], size=shape)
    yes = drawn + stacked(table.yes_noise, generator, shape[:-1])
    no = (rows - drawn) + stacked(table.no_noise, generator, shape[:-1])
    others = score_statistic(yes, no, above, below)
    found: Numbers = (1 + (others >= seen - TIE).sum(axis=0)) / (replicates + 1)
    return found
