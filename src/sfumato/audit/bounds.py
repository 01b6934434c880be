"""From samples of neighbouring outputs to a lower bound on ε that holds with stated confidence."""

import math
from typing import TYPE_CHECKING

from sfumato.core.foreign import Array

if TYPE_CHECKING:
    pass

__all__ = ["epsilon_lower_bound", "exact_epsilon", "gaussian_epsilon", "gaussian_lower_bound"]


def epsilon_lower_bound(
    here: Array, there: Array, *, delta: float, alpha: float, chosen_on: float = 0.5, normal: bool = False
) -> float:
    """Bound ε from below: no (ε, δ) mechanism with a smaller ε gives such samples, but with probability α.

    The event S (a half-line or a single value, and which neighbour is the numerator) is chosen on the first of the
    samples, a part ``chosen_on`` of them; on the rest, Clopper–Pearson bounds at α/2 each give
    ε ≥ ln((P_low(S) − δ)/Q_high(S)). With ``normal`` the half-line is the one that would do best if the scores were
    normal with the means and the width of the first of them: no luck is chosen then. The bound assumes neither.

    >>> import numpy as np
    >>> epsilon_lower_bound(np.array([0] * 500 + [1] * 500), np.array([0] * 500 + [1] * 500), delta=0, alpha=0.01)
    0.0
    """
    import numpy as np

    halves = [_parted(side, chosen_on) for side in (here, there)]
    (here_first, here_second), (there_first, there_second) = ((side[0], side[1]) for side in halves)
    if normal and (fitted := _fitted(here_first, there_first, len(here_second), delta, alpha)) is not None:
        swap, mark = fitted
        top, bottom = (there_second, here_second) if swap else (here_second, there_second)
        return _judged(top, bottom, mark, ">=", delta, alpha)
    # As if they were more, since more will judge; not as if they were as many: then the luckiest tail would be chosen.
    grown = (len(here_second) / max(1, len(here_first))) ** 0.5
    best, event = 0.0, None
    pooled = np.concatenate([here_first, there_first])
    marks = np.unique(pooled)
    if len(marks) > 400:
        marks = np.unique(np.quantile(pooled, _levels(), method="nearest"))
    for swap in (False, True):
        top, bottom = (there_first, here_first) if swap else (here_first, there_first)
        for side in ("<=", ">=", "=="):
            found = _log_ratios(
                grown * _counts(top, marks, side),
                grown * len(top),
                grown * _counts(bottom, marks, side),
                grown * len(bottom),
                delta,
                alpha,
            )
            place = int(np.argmax(found))
            if found[place] > best:
                best, event = float(found[place]), (swap, side, marks[place : place + 1])
    if event is None:
        return 0.0
    swap, side, mark = event
    top, bottom = (there_second, here_second) if swap else (here_second, there_second)
    return _judged(top, bottom, mark, side, delta, alpha)


def _judged(top: Array, bottom: Array, mark: Array, side: str, delta: float, alpha: float) -> float:
    """The bound of one event, on samples that it was not chosen on."""
    bound = _log_ratios(_counts(top, mark, side), len(top), _counts(bottom, mark, side), len(bottom), delta, alpha)
    return max(0.0, float(bound[0]))


def _fitted(here: Array, there: Array, size: int, delta: float, alpha: float) -> tuple[bool, Array] | None:
    """Which neighbour is the numerator, and from which mark on, if scores are normal and this many are to judge."""
    import numpy as np
    from scipy.special import ndtr

    if min(len(here), len(there)) < 2:
        return None
    means = float(here.mean()), float(there.mean())
    width = float(((here.var() + there.var()) / 2) ** 0.5)
    if means[0] == means[1] or width == 0:
        return None
    swap, (bottom, top) = means[1] > means[0], sorted(means)
    marks = np.linspace(bottom - 5 * width, top + 5 * width, 400)
    above = [size * ndtr((mean - marks) / width) for mean in (top, bottom)]
    found = _log_ratios(above[0], size, above[1], size, delta, alpha)
    place = int(np.argmax(found))
    return (swap, marks[place : place + 1]) if found[place] > 0 else None


def gaussian_lower_bound(here: Array, there: Array, *, delta: float, alpha: float, chosen_on: float = 0.5) -> float:
    """Bound from below, by its ε at δ, the least Gaussian curve that such samples allow, but with probability α.

    A mechanism with the curve of Gaussians μ apart has Φ⁻¹(P(S)) − Φ⁻¹(Q(S)) ≤ μ for every event S. The half-line is
    chosen on the first of the samples, a part ``chosen_on`` of them; on the rest, Clopper–Pearson bounds at α/2 each
    bound μ. This refutes a curve, and says nothing of a claim at one point (ε, δ) alone.

    >>> import numpy as np
    >>> gaussian_lower_bound(np.zeros(1000), np.ones(1000), delta=1e-5, alpha=0.01) > 10
    True
    """
    import numpy as np
    from scipy.special import ndtri

    halves = [_parted(side, chosen_on) for side in (here, there)]
    marks = np.unique(np.quantile(np.concatenate([side[0] for side in halves]), np.linspace(0, 1, 201)))

    def apart(part: int, at: Array, *, swap: bool, side: str) -> Array:
        top, bottom = (halves[1][part], halves[0][part]) if swap else (halves[0][part], halves[1][part])
        low, high = _clopper_pearson(
            _counts(top, at, side), len(top), _counts(bottom, at, side), len(bottom), alpha=alpha
        )
        return ndtri(low) - ndtri(high)

    best, event = 0.0, None
    for swap in (False, True):
        for side in ("<=", ">="):
            found = apart(0, marks, swap=swap, side=side)
            place = int(np.argmax(found))
            if found[place] > best:
                best, event = float(found[place]), (swap, side, marks[place : place + 1])
    if event is None:
        return 0.0
    swap, side, mark = event
    return gaussian_epsilon(float(apart(1, mark, swap=swap, side=side)[0]), delta)


def gaussian_epsilon(apart: float, delta: float) -> float:
    """The ε at a δ of two Gaussians so far apart, in standard deviations; in floats.

    >>> round(gaussian_epsilon(1 / 3.730632, 1e-5), 4)
    1.0
    """
    from scipy.special import log_ndtr, ndtr

    def over(epsilon: float) -> bool:
        lost = math.exp(min(700.0, epsilon + float(log_ndtr(-apart / 2 - epsilon / apart))))
        return float(ndtr(apart / 2 - epsilon / apart)) - lost > delta

    if apart <= 0 or not over(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while over(high):
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) else (low, middle)
    return low


def exact_epsilon(here: Array, there: Array, *, delta: float = 0.0) -> float:
    """The least ε for which two finite laws are (ε, δ)-close in both directions; infinite if their supports differ.

    >>> round(exact_epsilon([0.75, 0.25], [0.25, 0.75]), 4)
    1.0986
    """
    import numpy as np

    p, q = np.asarray(here, dtype=float), np.asarray(there, dtype=float)

    def gap(epsilon: float) -> float:
        factor = math.exp(epsilon)
        return max(float(np.maximum(0, p - factor * q).sum()), float(np.maximum(0, q - factor * p).sum()))

    if delta == 0:
        both = (p > 0) & (q > 0)
        return math.inf if ((p > 0) != (q > 0)).any() else float(np.abs(np.log(p[both] / q[both])).max())
    low, high = 0.0, 700.0
    if gap(high) > delta:
        return math.inf
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if gap(middle) <= delta else (middle, high)
    return high


def _parted(sample: Array, first: float) -> tuple[Array, Array]:
    """What an event is chosen on, and what it is then judged by."""
    import numpy as np

    held = np.asarray(sample)
    cut = -(-len(held) * int(1000 * first) // 1000)
    return held[:cut], held[cut:]


def _levels() -> Array:
    """Of the events that are tried: evenly, and more of them in the tails."""
    import numpy as np

    tail = np.geomspace(1e-5, 2.5e-3, 24)
    return np.sort(np.concatenate([np.linspace(0, 1, 401), tail, 1 - tail]))


def _counts(sample: Array, marks: Array, side: str) -> Array:
    import numpy as np

    ordered = np.sort(sample)
    upto, under = np.searchsorted(ordered, marks, side="right"), np.searchsorted(ordered, marks, side="left")
    return {"<=": upto, ">=": len(ordered) - under, "==": upto - under}[side]


def _log_ratios(hits: Array, tries: float, other_hits: Array, other_tries: float, delta: float, alpha: float) -> Array:
    """ln((P_low − δ)/Q_high) for each event, −∞ where nothing is proven."""
    import numpy as np

    low, high = _clopper_pearson(hits, tries, other_hits, other_tries, alpha=alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)


def _clopper_pearson(
    hits: Array, tries: float, other_hits: Array, other_tries: float, *, alpha: float
) -> tuple[Array, Array]:
    """P_low and Q_high of each event, each wrong with probability α/2 at most."""
    import numpy as np
    from scipy.stats import beta

    low = np.where(hits > 0, beta.ppf(alpha / 2, np.maximum(hits, 1), tries - hits + 1), 0.0)
    high = np.where(
        other_hits < other_tries,
        beta.ppf(1 - alpha / 2, other_hits + 1, np.maximum(other_tries - other_hits, 1)),
        1.0,
    )
    return low, high
