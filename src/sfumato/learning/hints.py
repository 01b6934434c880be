"""First guesses for a batch, its parts and a learning rate, from public facts alone."""

import math
from fractions import Fraction

from sfumato.core.exact import natural

__all__ = ["LANES", "suggested_batch", "suggested_part", "suggested_rate"]

STRIDE = 0.004
LARGEST = 4096
LANES, USUAL = 16, 64  # a part of a step has a multiple of this many units: see docs/proofs/clipped_sums.md


def suggested_batch(number: int) -> int:
    """How many of the units to expect in a step: about 8·√number, as a power of two.

    Private training wants larger batches than plain training: the noise of a step is the same however many units it
    has.

    >>> suggested_batch(60_000), suggested_batch(5)
    (2048, 5)
    """
    return min(number, 1 << max(0, round(math.log2(8 * math.sqrt(natural(number, "number"))))))


def suggested_part(batch: int, number: int, *, device: str) -> int:
    """How many units to compute at a time: two and a half standard deviations more than are expected, or 4096 and more.

    Few samples need a part more then, and little is filled up. On a processor it is a multiple of 64, which leaves no
    vector of a kernel a rest; the blocks of other devices are larger than that, and 16 do as well.

    >>> suggested_part(256, 50_000, device="cpu"), suggested_part(256, 50_000, device="cuda")
    (320, 304)
    """
    usual = min(batch, LARGEST)
    usual = min(number, usual + 5 * int(usual**0.5) // 2)
    multiple = USUAL if device == "cpu" else LANES
    return -(-usual // multiple) * multiple


def suggested_rate(*, clip: Fraction, multiplier: Fraction, expected: Fraction, steps: int) -> float:
    """A learning rate for SGD with momentum 0.9: noise alone moves each weight by a few hundredths over the whole run.

    >>> suggested_rate(clip=Fraction(1), multiplier=Fraction(3, 2), expected=Fraction(2048), steps=1200)
    0.158
    """
    rate = STRIDE * float(expected) / (float(multiplier) * float(clip) * math.sqrt(steps))
    return float(f"{min(rate, 1 / float(clip)):.3g}")
