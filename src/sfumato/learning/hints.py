"""First guesses for a batch and a learning rate, from public facts alone."""

import math
from fractions import Fraction

from sfumato.core.exact import natural

__all__ = ["suggested_batch", "suggested_rate"]

STRIDE = 0.004


def suggested_batch(number: int) -> int:
    """How many of the units to expect in a step: about 8·√number, as a power of two.

    Private training wants larger batches than plain training: the noise of a step is the same however many units it
    has.

    >>> suggested_batch(60_000), suggested_batch(5)
    (2048, 5)
    """
    return min(number, 1 << max(0, round(math.log2(8 * math.sqrt(natural(number, "number"))))))


def suggested_rate(*, clip: Fraction, multiplier: Fraction, expected: Fraction, steps: int) -> float:
    """A learning rate for SGD with momentum 0.9: noise alone moves each weight by a few hundredths over the whole run.

    >>> suggested_rate(clip=Fraction(1), multiplier=Fraction(3, 2), expected=Fraction(2048), steps=1200)
    0.158
    """
    rate = STRIDE * float(expected) / (float(multiplier) * float(clip) * math.sqrt(steps))
    return float(f"{min(rate, 1 / float(clip)):.3g}")
