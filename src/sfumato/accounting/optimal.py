"""Optimal composition of equal steps: exactly what T-fold (ε, δ)-DP implies and no more."""

import math
from fractions import Fraction
from functools import partial

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, non_negative, probability
from sfumato.core.guarantees import Approximate, Pure
from sfumato.errors import Refused, Unsupported

__all__ = ["delta", "epsilon"]

SPARE = 192
MOST_BITS = 1 << 16


def delta(step: Pure | Approximate, times: int, *, epsilon: Exact) -> Fraction:
    """1 − (1 − δ₀)^T (1 − Σ_i C(T, i) (e^((T−i)ε₀) − e^(ε+iε₀))⁺/(1 + e^ε₀)^T), rounded up.

    Guarantee: all T steps together are (ε, δ)-DP, and for the worst mechanism no smaller δ is true (Kairouz, Oh and
    Viswanath 2015). Assumes: T, ε₀ and δ₀ were fixed beforehand.

    >>> float(round(delta(Pure(epsilon=Fraction(1)), 1, epsilon=0), 4))
    0.4621
    """
    asked, count = non_negative(epsilon, "epsilon"), natural(times, "times", least=0)
    own = step.delta if isinstance(step, Approximate) else Fraction(0)
    inner = _pure_delta(step.epsilon, count, asked)
    total = 1 - (1 - own) ** count * (1 - inner)
    return enclosures.Enclosure(total, total).outward(bits=SPARE).high


def epsilon(step: Pure | Approximate, times: int, *, delta: Exact) -> Fraction:
    """The least ε at δ, to nine digits and rounded up.

    >>> step = Approximate(epsilon=Fraction("0.05"), delta=Fraction("1e-8"))
    >>> float(round(epsilon(step, 1440, delta=1.45e-5), 3))
    11.16
    """
    asked, at = probability(delta, "delta"), partial(_delta, step, times)
    low = Fraction(0)
    if at(low) <= asked:
        return low
    high = times * step.epsilon
    if at(high) > asked:
        raise Refused(f"no ε goes with δ = {asked}: the steps' own δ already exceed it. Ask for a larger δ.")
    while high - low > high / 2**30:
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle) <= asked else (middle, high)
    return high


def _delta(step: Pure | Approximate, times: int, epsilon: Fraction) -> Fraction:
    return delta(step, times, epsilon=epsilon)


def _pure_delta(each: Fraction, count: int, asked: Fraction) -> Fraction:
    """Σ_i C(T, i) r^i (1 − e^(ε − (T−2i)ε₀))⁺/(1 + r)^T with r = e^(−ε₀), in fixed point, rounded up at each step."""
    bits = SPARE + count + math.ceil(count * each * Fraction(3, 2))  # C(T, i) < 2^T, and e^(ε − Tε₀) is resolved too
    if bits > MOST_BITS:
        raise Unsupported(f'{count} steps of ε = {each} are too many for the exact sum. Use method="pld".')
    unit = 1 << bits
    shrink = math.ceil(enclosures.exp(-each, bits=bits).high * unit)
    growth = math.floor(enclosures.exp(2 * each, bits=bits).low * unit)
    ratio = math.floor(enclosures.exp(asked - count * each, bits=bits).low * unit)
    total, choose, falling = 0, 1, unit
    for place in range(count + 1):
        if (count - 2 * place) * each <= asked:
            break
        total += choose * -(-falling * (unit - ratio) >> bits)
        choose = choose * (count - place) // (place + 1)
        falling = -(-falling * shrink >> bits)
        ratio = ratio * growth >> bits
    base = enclosures.log(1 + enclosures.exp(-each, bits=SPARE).low, bits=SPARE).low
    return min(Fraction(1), Fraction(total, unit) * enclosures.exp(-count * base).high)
