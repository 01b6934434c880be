"""The adversary who knows how a series moves: x_t = a·x_(t−1) + w_t, and filters what was released.

A filter is post-processing: it turns releases into a better guess and cannot pass what the releases allow. Against
Gaussian noise the best guess whether somebody's mark s is in the series is the matched filter, and it is right by
2Φ(d/2) − 1 more often than a blind one, d the length of s in units of the noise. Where the rest of the series is not
known but follows the model, a Kalman filter whitens it first, and d is smaller.

The ε to compare with is that of a person over the whole series. At event level each step has an ε of its own, and the
bound for a person is that of all steps together. Claim: S4-18.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.streams.noise import SeriesNoise

__all__ = ["Filtering", "advantage", "allowed", "delta_of", "distance", "mark", "whitened"]


def advantage(apart: float) -> float:
    """By how much the best guess between two Gaussians so far apart beats a blind one: 2Φ(d/2) − 1, their distance in
    total variation.

    >>> round(advantage(50**0.5 / 30), 4)
    0.0938
    """
    return math.erf(apart / (2 * math.sqrt(2)))


def allowed(epsilon: float, delta: float) -> float:
    """The most that (ε, δ) allows: (e^ε − 1 + 2δ)/(e^ε + 1).

    >>> round(allowed(0.1, 0.0549), 3)
    0.102
    """
    factor = math.exp(epsilon)
    return min(1.0, (factor - 1 + 2 * delta) / (factor + 1))


def delta_of(apart: float, epsilon: float) -> float:
    """The δ at an ε of two Gaussians so far apart, in floats.

    >>> round(delta_of(50**0.5 / 30, 0.1), 4)
    0.0549
    """
    if apart <= 0:
        return 0.0
    below = _normal(apart / 2 - epsilon / apart)
    return max(0.0, below - math.exp(epsilon) * _normal(-apart / 2 - epsilon / apart))


def mark(decay: float, steps: int) -> list[float]:
    """What one push at the start leaves in a series that follows the model: 1, a, a², …

    >>> mark(0.5, 3)
    [1.0, 0.5, 0.25]
    """
    if not -1 < decay < 1:
        raise InvalidInput(f"decay = {decay} must lie between −1 and 1; nothing was computed.")
    return [decay**step for step in range(natural(steps, "steps"))]


def whitened(marked: Sequence[float], *, decay: float, push: float, deviation: float) -> float:
    """How far apart a series with a mark and one without are for an adversary who filters, in standard deviations.

    The rest of the series moves by the model with pushes of standard deviation ``push``, 0 where the adversary knows it
    all; each step was released with noise of standard deviation ``deviation``. A Kalman filter: its innovations are
    independent, and what the mark adds to them is added up.

    >>> round(whitened([1.0] * 50, decay=0.9, push=0, deviation=30), 4), round(50**0.5 / 30, 4)
    (0.2357, 0.2357)
    """
    expected, spread, squares = 0.0, push**2 / (1 - decay**2), 0.0
    for added in marked:
        surprise = spread + deviation**2
        seen = added - expected
        squares += seen**2 / surprise
        gain = spread / surprise
        expected, spread = decay * (expected + gain * seen), decay**2 * (1 - gain) * spread + push**2
    return math.sqrt(squares)


def distance(mechanism: SeriesNoise, moved: Sequence[float]) -> float:
    """How far apart a stream puts two inputs that differ by ``moved``, step by step, in deviations of its noise.

    For the Gaussian noise of a stream as it runs: the length of C·moved over σ.
    """
    import numpy as np

    from sfumato.streams.post.measurements import design

    if mechanism.norm != "l2":
        raise InvalidInput("distances in standard deviations are for Gaussian noise; nothing was computed.")
    unit = 2.0**mechanism.strategy.bits
    shift = design(mechanism.strategy, len(moved)) @ np.asarray(moved, dtype=np.float64)
    return float(np.sqrt((shift**2).sum()) * unit / float(mechanism.noise))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtering:
    """Three advantages over one series that was released with noise of ``deviation`` in each of ``steps`` steps.

    ``filtered`` is that of the adversary who knows the model and looks for a push at the start, ``worst`` that of one
    who knows all others and looks for somebody who is there in every step, ``bound`` what (ε, δ) allows at an ε and
    the δ that this noise has at it for a person.

    >>> found = Filtering(steps=50, decay=0.9, deviation=30, epsilon=0.1)
    >>> round(found.filtered, 4), round(found.worst, 4), round(found.bound, 3), round(found.delta, 4)
    (0.0305, 0.0938, 0.102, 0.0549)
    """

    steps: int
    decay: float
    deviation: float
    epsilon: float

    @property
    def filtered(self) -> float:
        """The matched filter for the mark of one push."""
        marked = mark(self.decay, self.steps)
        return advantage(whitened(marked, decay=self.decay, push=0.0, deviation=self.deviation))

    @property
    def worst(self) -> float:
        """Somebody who is there in every step."""
        return advantage(math.sqrt(self.steps) / self.deviation)

    @property
    def delta(self) -> float:
        """The δ of the whole series for a person, at ε."""
        return delta_of(math.sqrt(self.steps) / self.deviation, self.epsilon)

    @property
    def bound(self) -> float:
        """What (ε, δ) allows."""
        return allowed(self.epsilon, self.delta)

    def event_epsilon(self, delta: float) -> float:
        """The ε of one step at a δ, rounded up: what a statement about events names, though a person is in all steps.

        >>> round(Filtering(steps=50, decay=0.9, deviation=30, epsilon=0.1).event_epsilon(1e-6), 3)
        0.123
        """
        low, high = 0.0, 50.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if delta_of(1 / self.deviation, middle) > delta else (low, middle)
        return high


def _normal(at: float) -> float:
    return math.erfc(-at / math.sqrt(2)) / 2
