"""What one training run with invented units refutes: bounds from guesses whose number was fixed beforehand.

Each of m invented units was in by an independent fair coin, and r of the coins were guessed. A claimed curve says how
large P(S) can be where Q(S) = x for neighbours P and Q: at most f̄(x). Proof: docs/proofs/one_run.md
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

from sfumato.audit.bounds import gaussian_epsilon
from sfumato.errors import InvalidInput

__all__ = [
    "GaussianCurve",
    "PointCurve",
    "TradeOff",
    "counted_guesses_bound",
    "curve_bound",
    "curve_p_value",
    "gap_bound",
    "gap_p_value",
]

_NORMAL = NormalDist()
_HALVINGS = 50
_FARTHEST = 40.0  # standard deviations: no curve farther apart is looked for
_LARGEST = 60.0  # ε: no larger one is looked for


class TradeOff(Protocol):
    """A claimed curve, the same in both directions."""

    def least(self, reached: float) -> float:
        """The least Q(S) with which P(S) can be ``reached``: the inverse of f̄."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianCurve:
    """The curve of two Gaussians of the same width, ``apart`` standard deviations from each other.

    >>> round(GaussianCurve(apart=1.0).least(0.5), 4)
    0.1587
    """

    apart: float

    def least(self, reached: float) -> float:
        """Φ(Φ⁻¹(y) − μ)."""
        if not 0 < reached < 1:
            return float(reached >= 1)
        return _NORMAL.cdf(_NORMAL.inv_cdf(reached) - self.apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCurve:
    """What some points (ε, δ) of a guarantee say together, each in both directions.

    Every point that is left out makes the claim weaker and a refutation of it harder, so few points are sound.

    >>> round(PointCurve(points=((0.0, 0.2),)).least(0.5), 4), PointCurve(points=((1.0, 0.0),)).least(1.0)
    (0.3, 1.0)
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points or not all(epsilon >= 0 and 0 <= delta <= 1 for epsilon, delta in self.points):
            raise InvalidInput("a curve needs points (ε, δ) with ε ≥ 0 and δ from 0 to 1; nothing was computed.")

    def least(self, reached: float) -> float:
        """The largest of e^−ε·(y − δ) and 1 − δ − e^ε·(1 − y) over the points, and 0."""
        return max(
            0.0,
            *(math.exp(-epsilon) * (reached - delta) for epsilon, delta in self.points),
            *(1 - delta - math.exp(min(epsilon, 700.0)) * (1 - reached) for epsilon, delta in self.points),
        )


def curve_p_value(curve: TradeOff, *, canaries: int, guesses: int, right: int) -> float:
    """How likely this many right guesses or more are, at most, under a claimed curve.

    Guarantee: under every mechanism with that curve, P[at most α] ≤ α, for guesses whose number was fixed beforehand
    and fair coins that are independent of each other. Nothing is assumed of the scores that guesses were made from.

    >>> curve_p_value(GaussianCurve(apart=0.0), canaries=100, guesses=10, right=10) < 0.01
    True
    """
    _check(canaries, guesses, right)
    low, high = 0.0, 1.0
    if not _refuted(curve, 1.0, canaries, guesses, right):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _refuted(curve, middle, canaries, guesses, right) else (middle, high)
    return high


def curve_bound(*, canaries: int, guesses: int, right: int, delta: float, alpha: float) -> float:
    """The ε at δ of the widest Gaussian curve that is refuted at α; 0 where none is.

    This refutes curves: a mechanism with another shape than a Gaussian's may have a smaller ε at this one δ.

    >>> curve_bound(canaries=1000, guesses=100, right=100, delta=1e-5, alpha=0.05) > 3
    True
    """
    _check(canaries, guesses, right)

    def refuted(apart: float) -> bool:
        return _refuted(GaussianCurve(apart=apart), alpha, canaries, guesses, right)

    return gaussian_epsilon(_last(refuted, _FARTHEST), delta)


def counted_guesses_bound(*, canaries: int, guesses: int, right: int, delta: float, alpha: float) -> float:
    """The largest ε that counted guesses refute at δ (Steinke, Nasr and Jagielski, 2023, theorem 5.2); 0 if none.

    A bound on the one point (ε, δ), and weaker than that of a curve.

    >>> 1 < counted_guesses_bound(canaries=1000, guesses=100, right=95, delta=1e-5, alpha=0.05) < 3
    True
    """
    import numpy as np
    from scipy.stats import binom

    _check(canaries, guesses, right)
    places = np.arange(1, right + 1)

    def refuted(epsilon: float) -> bool:
        chance = 1 / (1 + math.exp(-epsilon))
        sums = np.cumsum(binom.pmf(right - places, guesses, chance))
        extra = float((sums / places).max()) if right else 0.0
        return float(binom.sf(right - 1, guesses, chance)) + 2 * canaries * delta * extra <= alpha

    return _last(refuted, _LARGEST)


def gap_p_value(inside: Sequence[float], outside: Sequence[float], *, apart: float) -> float:
    """How likely so wide a gap between scores is where they lie at most ``apart`` standard deviations from each other.

    Assumes: scores are independent Gaussians of one width, and those inside have one mean, those outside another. Not
    finite-sample valid for others: scores of a model that saturates, or of sampled units, are not Gaussian.

    >>> gap_p_value([1.0, 1.1, 0.9, 1.0], [0.0, 0.1, -0.1, 0.0], apart=1.0) < 0.01
    True
    """
    from scipy.stats import nct

    statistic, degrees, scale = _gap(inside, outside)
    if apart <= 0:
        from scipy.stats import t

        return float(t.sf(statistic, degrees))
    return float(nct.sf(statistic, degrees, apart * scale))


def gap_bound(inside: Sequence[float], outside: Sequence[float], *, delta: float, alpha: float) -> float:
    """The ε at δ of the widest Gaussian curve that the gap between scores refutes at α; as :func:`gap_p_value` assumes.

    >>> gap_bound([1.0, 1.1, 0.9, 1.0], [0.0, 0.1, -0.1, 0.0], delta=1e-5, alpha=0.05) > 4
    True
    """

    def refuted(apart: float) -> bool:
        return gap_p_value(inside, outside, apart=apart) <= alpha

    return gaussian_epsilon(_last(refuted, _FARTHEST), delta)


def _refuted(curve: TradeOff, chance: float, canaries: int, guesses: int, right: int) -> bool:
    """Whether no mechanism of the curve has this many right guesses, or more, with this probability: the recursion."""
    whole = guesses / canaries
    hit, missed = chance * right / canaries, chance * (guesses - right) / canaries
    for place in range(right - 1, -1, -1):
        needed = curve.least(hit)
        if needed > missed:
            hit += (needed - missed) * place / (guesses - place)
            missed = needed
        if hit + missed > whole * (1 + 1e-12):
            return True
    return hit + missed > whole * (1 + 1e-12)


def _last(refuted: Callable[[float], bool], most: float) -> float:
    """The largest number up to which everything is refuted, by halving; 0 where 0 is not."""
    if not refuted(0.0):
        return 0.0
    if refuted(most):
        return most
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _gap(inside: Sequence[float], outside: Sequence[float]) -> tuple[float, int, float]:
    """Student's statistic of two groups, its degrees of freedom, and by how much a distance grows in it."""
    import numpy as np

    held = [np.asarray(some, dtype=np.float64) for some in (inside, outside)]
    if min(map(len, held)) < 2 or not all(np.isfinite(some).all() for some in held):
        raise InvalidInput("a gap needs two finite scores inside and outside or more; nothing was computed.")
    degrees = len(held[0]) + len(held[1]) - 2
    spread = math.sqrt(sum(float(((some - some.mean()) ** 2).sum()) for some in held) / degrees)
    scale = math.sqrt(len(held[0]) * len(held[1]) / (degrees + 2))
    gap = float(held[0].mean() - held[1].mean())
    if spread == 0:
        return (math.inf if gap > 0 else 0.0), degrees, scale
    return gap / spread * scale, degrees, scale


def _check(canaries: int, guesses: int, right: int) -> None:
    if not (0 < guesses <= canaries and 0 <= right <= guesses):
        raise InvalidInput("right guesses are some of the guesses, and these some of the canaries; nothing was done.")
