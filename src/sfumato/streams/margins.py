"""How far a total of a stream can be off: from the distribution of its noise, with what rounding adds."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato import laws
from sfumato.core.exact import Exact, natural
from sfumato.laws.margins import level_of
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.streams.noise import SeriesNoise

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats

__all__ = ["StreamMargins"]

EXACT_TERMS = 24  # errors whose sum is worked out by its own law
ROOM = 1 + 1e-9  # for the floats on the way


class StreamMargins:
    """The margins of the totals Σ b·z of one mechanism, from Σ b² and Σ |b|; rounded up. Public.

    Gaussian: Σ b·z is within Σ |b|/2 lattice units of a Gaussian of σ²·Σ b²; what the strategy itself rounds is added.
    Laplace: the exact law of a sum where it has few terms with factor 1, else Bernstein's bound.
    """

    def __init__(self, mechanism: SeriesNoise) -> None:
        self._mechanism, self._unit = mechanism, 2.0**mechanism.strategy.bits
        self._extra = mechanism.strategy.slack / 2 if isinstance(mechanism.strategy, Buffers) else 0.0
        self._factors: dict[Exact, float] = {}

    def at(self, squares: "Floats", sizes: "Floats", confidence: Exact) -> "Floats":
        """By how much each of some totals errs at most with a confidence."""
        import numpy as np

        if self._mechanism.norm == "l2":
            factor = self._factor(confidence)
            return np.asarray((factor * np.sqrt(squares) + (0.5 + self._extra) * sizes) * (ROOM / self._unit))
        pairs, places = np.unique(np.stack([squares, sizes]), axis=1, return_inverse=True)
        level, scale, whole = level_of(confidence), self._mechanism.noise, np.array_equal(squares, sizes)
        found = [
            float(_laplace(scale, round(size), level)) if whole else _bernstein(scale, square, size, level)
            for square, size in pairs.T.tolist()
        ]
        return np.asarray((np.array(found)[places.ravel()] + self._extra * sizes) * (ROOM / self._unit))

    def _factor(self, confidence: Exact) -> float:
        found = self._factors.get(confidence)
        if found is None:
            found = float(_normal(level_of(confidence))) * float(self._mechanism.noise)
            self._factors[confidence] = found
        return found


@lru_cache(maxsize=256)
def _normal(level: Fraction) -> Fraction:
    return laws.Gaussian(sigma=Fraction(1)).margin(level)


@lru_cache(maxsize=1024)
def _laplace(scale: Fraction, terms: int, level: Fraction) -> Fraction:
    """The margin of a sum of independent errors of one scale."""
    if natural(terms, "terms") > EXACT_TERMS:
        return Fraction(_bernstein(scale, float(terms), 1.0, level))
    law = laws.DiscreteLaplace(scale=scale)
    return (
        Fraction(laws.Sum(parts=(law,) * terms, cells=512).margin(level)) if terms > 1 else Fraction(law.margin(level))
    )


def _bernstein(scale: Fraction, squares: float, largest: float, level: Fraction) -> float:
    """m with 2·exp(h(λ) − λ·m) ≤ 1 − level for the best λ: E exp(λ·b·z) ≤ 1/(1 − λ²·b²·s²) for Laplace of scale s.

    Σ −ln(1 − λ²b²s²) ≤ λ²s²Σb²/(1 − λ²s²·max b²); the discrete law of scale s has no larger moments than the
    continuous one. ``largest`` bounds |b|.
    """
    s, room = float(scale), math.log(2 / float(1 - level))
    best = math.inf
    for share in (k / 64 for k in range(1, 64)):
        rate = share / (s * largest)
        best = min(best, (rate**2 * s**2 * squares / (1 - share**2) + room) / rate)
    return best * ROOM
