"""Survival curves from noisy exit cells: estimates, and standard errors with sampling and noise in them.

All functions take arrays with any number of leading axes, so that what is simulated is what ships. Noisy cells are
never clamped: at-risk numbers are sums of them, and clamping would make each sum too large.
Proof: docs/proofs/survival.md
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import strmm
from scipy.optimize import isotonic_regression
from scipy.special import erf

from sfumato.studies.draws import multiplier
from sfumato.studies.exit_cells import ExitNoise, Floats, at_risk, first_lost

__all__ = [
    "SurvivalCurve",
    "difference_limits",
    "falling",
    "hazard_limits",
    "limits",
    "restricted_mean",
    "rising",
    "survival_curve",
    "uniform_factor",
]

LUMP = 0.25
"""Half an event, squared: events are whole numbers, which a normal law does not know where few are expected."""


@dataclass(frozen=True, kw_only=True)
class SurvivalCurve:
    """A curve at m steps of time: arrays of the shape (…, m), or with some of the steps only in ``noise``."""

    at_risk: Floats
    events: Floats
    survival: Floats
    hazard: Floats
    """The cumulative hazard of Nelson and Aalen."""
    stop: npt.NDArray[np.int_]
    """The first step whose number at risk is lost in noise; m where there is none."""
    number: Floats
    """The noisy number of all, at risk in the first step."""
    noise: Floats
    """The variance of the noise in the cumulative hazard, at the asked steps."""
    tails: Floats
    """The excess kurtosis of that noise."""
    effective: Floats
    """How many followed persons the curve is worth at the asked steps: fewer than all where some were censored."""
    points: npt.NDArray[np.int_]
    """The asked steps."""

    @property
    def estimable(self) -> npt.NDArray[np.bool_]:
        """Whether an asked step comes before the stop."""
        return self.points < self.stop[..., None]


def survival_curve(cells: Floats, noise: ExitNoise, points: Sequence[int] | None = None) -> SurvivalCurve:
    """Kaplan–Meier and Nelson–Aalen of noisy cells (…, 2, m); errors at the asked steps, or at all."""
    cells = np.asarray(cells, dtype=np.float64)
    risk, events = at_risk(cells), cells[..., 0, :]
    steps = risk.shape[-1]
    asked = np.arange(steps) if points is None else np.asarray(points)
    stop = first_lost(risk, noise.at_risk)
    usable = np.arange(steps) < stop[..., None]
    safe = np.where(usable, risk, 1.0)
    inverse = np.where(usable, 1 / safe, 0.0)
    share = _share(events, inverse, noise)
    survival = np.asarray(np.cumprod(1 - share, axis=-1) * _alike(inverse, noise), dtype=np.float64)
    hazard = np.cumsum(share, axis=-1)
    through = noise.through(hazard_weights(inverse, events * inverse**2, asked))
    squares = through**2
    variance = squares.sum(axis=(-1, -2))
    number = np.maximum(risk[..., 0], 1.0)
    before = np.concatenate([np.ones((*survival.shape[:-1], 1)), survival[..., :-1]], axis=-1)
    worth = np.maximum(np.minimum(number[..., None], (risk / np.clip(before, 1e-9, 1.0))[..., asked]), 1.0)
    return SurvivalCurve(
        at_risk=risk,
        events=events,
        survival=survival,
        hazard=hazard,
        stop=stop,
        number=number,
        noise=variance + LUMP / number[..., None] ** 2,
        tails=noise.tails * (squares**2).sum(axis=(-1, -2)) / np.maximum(variance**2, 1e-300),
        effective=worth,
        points=asked,
    )


def _share(events: Floats, inverse: Floats, noise: ExitNoise) -> Floats:
    """The share of those at risk with an event in each step, less what noise adds to d/Y on average."""
    return events * inverse + noise.shared * inverse**2 - events * noise.at_risk * inverse**3


def _alike(inverse: Floats, noise: ExitNoise) -> Floats | float:
    """What a product of steps gains where their noises are correlated, taken back: noise of a histogram is not."""
    if noise.widths == (1,):
        return 1.0
    pairs = noise.variance * np.tril(noise.covariance, -1)
    return np.exp(-np.cumsum(inverse * (inverse @ pairs.T), axis=-1))


def hazard_weights(inverse: Floats, slope: Floats, points: npt.NDArray[np.int_]) -> Floats:
    """How the noise of each cell moves the cumulative hazard at some steps: an array (…, points, 2, m).

    ``inverse`` is 1/Y, and ``slope`` d/Y²: an event in step s adds 1/Y there, and everyone who leaves at s was at risk
    in all steps until then.
    """
    steps = inverse.shape[-1]
    passed = np.arange(steps) <= points[:, None]
    before = np.cumsum(slope, axis=-1)
    until = np.minimum(np.arange(steps), points[:, None])
    drag = before[..., until]
    return np.stack([np.where(passed, inverse[..., None, :], 0.0) - drag, -drag], axis=-2)


def limits(curve: SurvivalCurve, factor: float | Floats) -> tuple[Floats, Floats]:
    """Pointwise limits of the survival: all S with |Ŝ − S| ≤ factor·√(S(1 − S)/n + S²·N), within 0 and 1.

    Behind the stop the lower limit is 0 and the upper one that of the last step before it: survival never rises.
    """
    found, size = curve.survival[..., curve.points], curve.effective
    square = (factor * _longer(curve, (1 - found) / np.maximum(found * size, 1e-9), factor)) ** 2
    a = 1 + square / size - square * curve.noise
    b = 2 * found + square / size
    root = np.sqrt(np.maximum(b**2 - 4 * a * found**2, 0.0))
    bounded = a > 1e-12
    twice = np.where(bounded, 2 * a, 1.0)
    # with more noise than signal any survival above the lower limit is possible
    low = np.where(bounded, (b - root) / twice, found**2 / np.maximum(b, 1e-12))
    high = np.where(bounded, (b + root) / twice, 1.0)
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    low, high = np.where(found <= 0, 0.0, low), np.where(found >= 1, 1.0, high)
    kept = curve.estimable
    last = np.minimum.accumulate(np.where(kept, high, 1.0), axis=-1)
    return np.where(kept, low, 0.0), np.where(kept, high, last)


def _longer(curve: SurvivalCurve, sampling: Floats, factor: float | Floats) -> Floats:
    """By how much an interval is longer than a normal one, where few Laplace noises are most of the error.

    At 95% a Laplace error has 2.118 standard deviations for the 1.960 of a normal one; between the two the excess
    kurtosis of the whole error decides. ``factor`` says the level, to a tenth of a standard deviation.
    """
    part = curve.noise / np.maximum(curve.noise + np.maximum(sampling, 0.0), 1e-300)
    kurtosis = curve.tails * part**2
    near = np.broadcast_to(np.maximum(np.round(factor, 1), 0.1), kurtosis.shape)
    found = np.ones(kurtosis.shape)
    for value in np.unique(near):
        here = near == value
        found[here] = multiplier(kurtosis[here], float(erf(value / math.sqrt(2)))) / value
    return found


def hazard_limits(curve: SurvivalCurve, factor: float) -> tuple[Floats, Floats]:
    """Pointwise limits of the cumulative hazard: |Â − A| ≤ factor·√(A·κ/n + N), where κ = (e^Â − 1)/Â.

    Behind the stop there is no upper limit, and the lower one is the highest before it.
    """
    found = curve.hazard[..., curve.points]
    near = np.maximum(found, 1e-6)
    square = (factor * _longer(curve, np.expm1(near) / curve.effective, factor)) ** 2
    spread = square * np.expm1(near) / near / curve.effective
    half = np.sqrt(np.maximum((found + spread / 2) ** 2 - found**2 + square * curve.noise, 0.0))
    low, high = found + spread / 2 - half, found + spread / 2 + half
    kept = curve.estimable
    floor = np.maximum.accumulate(np.where(kept, np.maximum(low, 0.0), 0.0), axis=-1)
    return np.where(kept, np.maximum(low, 0.0), floor), np.where(kept, np.maximum(high, 0.0), np.inf)


def restricted_mean(
    cells: Floats, noise: ExitNoise, lengths: Floats, before: float, factor: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """The mean time until a horizon, its standard error and its limits.

    ``lengths`` is how long the curve stays at each step before the horizon, ``before`` how long at 1 at first. Where
    the curve stops before the horizon there is no estimate, and the time behind the stop is between none and what the
    upper limit of the last survival allows.
    """
    cells = np.asarray(cells, dtype=np.float64)
    curve = survival_curve(cells, noise, points=[0])
    usable = np.arange(noise.steps) < curve.stop[..., None]
    inverse = np.where(usable, 1 / np.where(usable, curve.at_risk, 1.0), 0.0)
    held = np.where(usable, lengths, 0.0) * curve.survival
    ahead = np.cumsum(held[..., ::-1], axis=-1)[..., ::-1]
    mean = before + held.sum(axis=-1)
    share = curve.events * inverse
    sampling = (ahead**2 * share * inverse / np.clip(1 - share, 0.5, None)).sum(axis=-1)
    # an event at s takes what is ahead of it; whoever leaves at s was in every risk set until then
    drag = np.cumsum(ahead * share * inverse, axis=-1)
    squares = noise.through(np.stack([drag - ahead * inverse, drag], axis=-2)) ** 2
    error = np.sqrt(np.maximum(sampling, 0.0) + squares.sum(axis=(-1, -2)))
    rest = np.where(usable, 0.0, lengths).sum(axis=-1)
    most = _highest_at_stop(cells, noise, curve.stop, factor)
    low, high = mean - factor * error, mean + factor * error + rest * most
    end = before + float(lengths.sum())
    estimate = np.where(rest > 0, np.nan, mean)
    return estimate, np.where(rest > 0, np.nan, error), np.clip(low, before, end), np.clip(high, before, end)


def _highest_at_stop(cells: Floats, noise: ExitNoise, stop: npt.NDArray[np.int_], factor: float) -> Floats:
    """The upper limit of the survival at the last step before a curve stops: no more can be left behind it."""
    ends, flat = np.ravel(stop), cells.reshape(-1, *cells.shape[-2:])
    found = np.ones(len(ends))
    for end in np.unique(ends[(ends > 0) & (ends < noise.steps)]):
        rows = ends == end
        found[rows] = limits(survival_curve(flat[rows], noise, points=[int(end) - 1]), factor)[1][:, 0]
    return found.reshape(np.shape(stop))


def difference_limits(
    ours: Sequence[Floats | float], theirs: Sequence[Floats | float]
) -> tuple[Floats, Floats, Floats]:
    """The difference of two independent figures (estimate, low, high) with its limits.

    Each end is as far from the difference as the ends of both say together; without an estimate the ends themselves
    are subtracted.
    """
    (value, low, high), (other, least, most) = (np.asarray(each, dtype=np.float64) for each in (ours, theirs))
    gap = value - other
    lower = np.where(np.isnan(gap), low - most, gap - np.hypot(value - low, most - other))
    upper = np.where(np.isnan(gap), high - least, gap + np.hypot(high - value, other - least))
    return gap, lower, upper


def uniform_factor(curve: SurvivalCurve, noise: ExitNoise, confidence: float, generator: np.random.Generator) -> float:
    """How many standard errors a band needs to hold at all steps at once: a quantile of the simulated supremum.

    Sampling is a Brownian motion in the time of Greenwood's variance, noise is that of the cells by their weights; both
    are drawn together, from their covariance.
    """
    stop = int(curve.stop)
    if stop == 0:
        return float("inf")
    number = curve.number
    shrunk = (number * np.clip(falling(curve.survival), 0.0, 1.0) + 0.5) / (number + 1)
    clock = np.maximum.accumulate((1 - shrunk) / (shrunk * curve.effective))[:stop]
    safe = np.where(np.arange(noise.steps) < stop, curve.at_risk, np.inf)
    weights = noise.through(hazard_weights(1 / safe, curve.events / safe**2, np.arange(stop))).reshape(stop, -1)
    runs = 2000
    together = weights @ weights.T + np.minimum(clock[:, None], clock)
    root = np.linalg.cholesky(together + 1e-10 * np.diag(np.maximum(np.diag(together), 1e-300)))
    scaled = (root / np.sqrt(clock + curve.noise[:stop])[:, None]).astype(np.float32, order="F")
    drawn = generator.standard_normal((runs, stop)).astype(np.float32)
    # In single precision, and with half of a triangle: 7 digits of what 2000 runs tell to two, in a third of the time.
    process = strmm(1.0, scaled, drawn.T, lower=1, overwrite_b=1)
    return float(np.quantile(np.maximum(process.max(axis=0), -process.min(axis=0)), confidence))


def falling(values: Floats) -> Floats:
    """The nearest curve that never rises, by least squares."""
    return np.asarray(isotonic_regression(values, increasing=False).x)


def rising(values: Floats) -> Floats:
    """The nearest curve that never falls, by least squares; where it is infinite it stays so.

    >>> rising(np.array([0.1, 0.4, 0.2, np.inf])).round(1).tolist()
    [0.1, 0.3, 0.3, inf]
    """
    known = np.isfinite(values)
    found = np.array(values, dtype=np.float64)
    found[known] = -falling(-found[known])
    return found
