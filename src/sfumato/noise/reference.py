"""The slow references: one draw at a time with whole numbers alone, from coins of rational probability.

No floating-point number and no array is touched. The fast samplers have the same laws; where numbers beyond 64 bits
are likely, these draw instead of them.
Proof: docs/proofs/discrete_laplace.md
"""

from fractions import Fraction
from math import isqrt

from sfumato.noise.bits import Bits

__all__ = ["draw_discrete_gaussian", "draw_discrete_laplace", "draw_geometric", "toss_exp"]


def draw_discrete_laplace(scale: Fraction, bits: Bits) -> int:
    """Draw one sample with P(z) ∝ exp(−|z|/scale): a geometric size and a sign, where −0 is drawn again.

    >>> from sfumato.noise.bits import SystemBits
    >>> isinstance(draw_discrete_laplace(Fraction(10), SystemBits()), int)
    True
    """
    while True:
        size = draw_geometric(scale, bits)
        negative = bits.below(2) == 1
        if negative and size == 0:
            continue
        return -size if negative else size


def draw_geometric(scale: Fraction, bits: Bits) -> int:
    """Draw one sample with P(k) ∝ exp(−k/scale), k = 0, 1, …

    With scale = t/s: X = U + tV has P(X) ∝ exp(−X/t), for U below t accepted with probability exp(−U/t) and V a count
    of successes of probability 1/e; ⌊X/s⌋ then has P(k) ∝ exp(−k·s/t).

    >>> from sfumato.noise.bits import SystemBits
    >>> draw_geometric(Fraction(10), SystemBits()) >= 0
    True
    """
    t, s = scale.numerator, scale.denominator
    remainder = bits.below(t)
    while not toss_exp(Fraction(remainder, t), bits):
        remainder = bits.below(t)
    wholes = 0
    while toss_exp(Fraction(1), bits):
        wholes += 1
    return (remainder + t * wholes) // s


def draw_discrete_gaussian(sigma_squared: Fraction, bits: Bits) -> int:
    """Draw one sample with P(z) ∝ exp(−z²/(2σ²)).

    A discrete Laplace z of scale t = ⌊σ⌋ + 1 is accepted with probability exp(−(|z| − σ²/t)²/(2σ²)); the product of
    the two is exp(−z²/(2σ²)) times a constant (Canonne, Kamath and Steinke 2020, algorithm 3).

    >>> from sfumato.noise.bits import SystemBits
    >>> isinstance(draw_discrete_gaussian(Fraction(100), SystemBits()), int)
    True
    """
    t = isqrt(sigma_squared.numerator // sigma_squared.denominator) + 1
    while True:
        z = draw_discrete_laplace(Fraction(t), bits)
        if toss_exp((abs(z) - sigma_squared / t) ** 2 / (2 * sigma_squared), bits):
            return z


def toss_exp(gamma: Fraction, bits: Bits) -> bool:
    """Toss a coin of probability exp(−γ), γ ≥ 0: one of probability 1/e for each whole of γ, and one for the rest.

    >>> from sfumato.noise.bits import SystemBits
    >>> toss_exp(Fraction(0), SystemBits())
    True
    """
    while gamma > 1:
        if not _accept(1, 1, bits):
            return False
        gamma -= 1
    return _accept(gamma.numerator, gamma.denominator, bits)


def _accept(numerator: int, denominator: int, bits: Bits) -> bool:
    """Toss a coin of probability exp(−γ), γ = numerator/denominator from 0 to 1.

    The first k at which a coin of probability γ/k fails is odd with probability 1 − γ + γ²/2! − γ³/3! … = exp(−γ).
    """
    k = 1
    while bits.below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
