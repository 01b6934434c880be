"""The discrete Laplace distribution, sampled exactly with whole numbers alone.

P(z) = (1 − q)/(1 + q) · q^|z| with q = exp(−1/scale), for any rational scale above 0. No floating-point number is
touched: coins of probability exp(−γ) are made from coins of rational probability.
Proof: docs/proofs/discrete_laplace.md
"""

from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.noise.bits import Bits, SystemBits

if TYPE_CHECKING:
    import numpy as np

__all__ = ["discrete_laplace", "draw_discrete_laplace"]


def discrete_laplace(*, scale: Exact, size: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Draw ``size`` independent samples with P(z) ∝ exp(−|z|/scale), from the operating system's randomness.

    Assumes: nothing about the machine's arithmetic; a draw beyond 64 bits is refused instead of wrapped.

    >>> len(discrete_laplace(scale=2, size=5))
    5
    """
    import numpy as np

    exact = positive(scale, "scale")
    bits = SystemBits()
    draws = [draw_discrete_laplace(exact, bits) for _ in range(natural(size, "size", least=0))]
    try:
        return np.array(draws, dtype=np.int64)
    except OverflowError:
        raise InvalidInput(f"scale = {exact} gave a draw beyond 64 bits; nothing was returned.") from None


def draw_discrete_laplace(scale: Fraction, bits: Bits) -> int:
    """Draw one sample with P(z) ∝ exp(−|z|/scale).

    With scale = t/s: X = U + tV has P(X) ∝ exp(−X/t), for U below t accepted with probability exp(−U/t) and V a count
    of successes of probability 1/e; ⌊X/s⌋ then has P(y) ∝ exp(−y·s/t). A sign is drawn, and −0 is drawn again.

    >>> isinstance(draw_discrete_laplace(Fraction(10), SystemBits()), int)
    True
    """
    t, s = scale.numerator, scale.denominator
    while True:
        remainder = bits.below(t)
        if not _accept(remainder, t, bits):
            continue
        wholes = 0
        while _accept(1, 1, bits):
            wholes += 1
        size = (remainder + t * wholes) // s
        negative = bits.below(2) == 1
        if negative and size == 0:
            continue
        return -size if negative else size


def _accept(numerator: int, denominator: int, bits: Bits) -> bool:
    """Toss a coin of probability exp(−γ), γ = numerator/denominator from 0 to 1.

    The first k at which a coin of probability γ/k fails is odd with probability 1 − γ + γ²/2! − γ³/3! … = exp(−γ).
    """
    k = 1
    while bits.below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
