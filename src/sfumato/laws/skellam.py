"""The Skellam error distribution: the difference of two Poisson numbers, which sites add in shares.

Its probabilities come from the ratios of neighbouring ones, enclosed from the far end inward: a step inward makes the
enclosure narrower. Proof: docs/proofs/skellam.md
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import natural, positive
from sfumato.laws.margins import WholeNumberLaw

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["SkellamNoise"]

BITS = 160
ONE = 1 << BITS
REACH = 16  # standard deviations that are followed; less than 2^−160 lies beyond
SPARE = 64  # numbers that are followed besides, where the variance is small


@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamNoise(WholeNumberLaw):
    """P(z) = e^(−v)·I_z(v) on the whole numbers, v = ``spread``: the difference of two Poisson numbers of mean v/2.

    >>> law = SkellamNoise(spread=Fraction(100))
    >>> law.margin(0.95), law.variance, round(float(law.mean_absolute_error), 3)
    (20, Fraction(100, 1), 7.969)
    """

    KIND: ClassVar[str] = "law.skellam"
    VERSION: ClassVar[int] = 1
    spread: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", positive(self.spread, "spread"))

    @property
    def variance(self) -> Fraction:
        """The variance itself."""
        return self.spread

    @property
    def mean_absolute_error(self) -> Fraction:
        """E|z| = v·(P(0) + P(1)), since k·P(k) = (v/2)·(P(k − 1) − P(k + 1)); rounded up."""
        tails = _tails(self.spread)
        return self.spread * (Fraction(ONE - tails[0][0], ONE) + Fraction(tails[0][1] - tails[1][0], 2 * ONE))

    def tail(self, size: int) -> Enclosure:
        """P(|z| > size), to about 30 digits; beyond 16 standard deviations an upper bound."""
        within, tails = natural(size, "size", least=0), _tails(self.spread)
        if within >= len(tails):
            return Enclosure(Fraction(0), Fraction(tails[-1][1], ONE))
        low, high = tails[within]
        return Enclosure(Fraction(low, ONE), Fraction(high, ONE))

    @property
    def fastest(self) -> float:
        """The rate below which :meth:`log_moment` is finite."""
        return math.inf

    def wave(self, t: "Floats") -> "Floats":
        """E cos(tz) = e^(−v·(1 − cos t))."""
        import numpy as np

        return np.asarray(np.exp(-2 * float(self.spread) * np.sin(t / 2) ** 2))

    def log_moment(self, s: float) -> float:
        """log E e^(sz) = v·(cosh s − 1)."""
        return 2 * float(self.spread) * math.sinh(s / 2) ** 2


@lru_cache(maxsize=16)
def _tails(spread: Fraction) -> tuple[tuple[int, int], ...]:
    """P(|z| > n) for n = 0, 1, …, enclosed, in units of 2^−BITS.

    With r_k = P(k)/P(k − 1): r_k = 1/(2k/v + r_(k + 1)), and r falls with k. So 0 < r_(K + 1) < 1 encloses all ratios
    before it, ever more closely, and what lies beyond K is at most a geometric series.
    """
    last = SPARE + REACH * (math.isqrt(math.ceil(spread)) + 1)
    ratios = _ratios(spread, last)
    lows = list(accumulate((low for low, _ in ratios), lambda whole, one: whole * one >> BITS, initial=ONE))
    highs = list(accumulate((high for _, high in ratios), lambda whole, one: -(-whole * one >> BITS), initial=ONE))
    beyond = -(-highs[-1] * ratios[-1][1] // (ONE - ratios[-1][1])) + 1
    above_low = list(accumulate(reversed(lows), initial=0))[::-1]
    above_high = list(accumulate(reversed(highs), initial=beyond))[::-1]
    whole = (2 * above_low[1] + ONE, 2 * above_high[1] + ONE)
    return tuple(
        ((2 * low << BITS) // whole[1], min(ONE, -((-2 * high << BITS) // whole[0])))
        for low, high in zip(above_low[1:], above_high[1:], strict=True)
    )


def _ratios(spread: Fraction, last: int) -> list[tuple[int, int]]:
    """r_1, …, r_last, enclosed in units of 2^−BITS."""
    top, bottom, double = spread.numerator, 2 * spread.denominator, 2 * BITS
    low, high = 0, ONE
    found = []
    for k in range(last + last // 4, 0, -1):
        step = (k * bottom << BITS) // top
        low, high = (1 << double) // (step + 1 + high), -(-(1 << double) // (step + low))
        if k <= last:
            found.append((low, high))
    return found[::-1]
