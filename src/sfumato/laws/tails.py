"""The two tails that all laws here are made of, enclosed however far out one asks.

Beyond 200 standard deviations (e^−20000, below 2^−28000) the value there is the upper end and 0 the lower, so that
no question makes numbers of a million digits. Proof: docs/proofs/laws.md
"""

from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure

__all__ = ["exponential", "normal"]

REACH = 200
DEEPEST = REACH**2 // 2


def exponential(x: Fraction, *, bits: int = 128) -> Enclosure:
    """e^(−x) for x ≥ 0.

    >>> exponential(Fraction(1)), exponential(Fraction(10**30)).low
    (Enclosure(about 0.367879441171442, width < 2**-139), Fraction(0, 1))
    """
    if x > DEEPEST:
        return Enclosure(Fraction(0), enclosures.exp(-DEEPEST, bits=bits).high)
    return enclosures.exp(-x, bits=bits)


def normal(x: Fraction, *, bits: int = 128) -> Enclosure:
    """P(|X| > x) = 2Φ(−x) for x ≥ 0 and X ~ N(0, 1).

    >>> normal(Fraction(196, 100))
    Enclosure(about 0.0499957902964409, width < 2**-173)
    """
    if x > REACH:
        return Enclosure(Fraction(0), 2 * enclosures.normal_cdf(-REACH, bits=bits).high)
    return 2 * enclosures.normal_cdf(-x, bits=bits)
