"""Accuracy first: the least ε whose noise keeps a margin."""

from collections.abc import Callable
from fractions import Fraction

from sfumato.core.exact import Exact, natural
from sfumato.core.query import Mechanism
from sfumato.errors import Refused

__all__ = ["least_epsilon"]

DIGITS = 4


def least_epsilon(
    mechanism: Callable[[Fraction], Mechanism], *, margin: int, confidence: Exact, numbers: int
) -> Fraction:
    """Find the least ε, to four significant digits and rounded up, for which ``numbers`` errors stay within ±margin.

    Guarantee: the mechanism at the ε returned covers the margin by its own exact law. Assumes: a larger ε never
    brings a larger error. Public: everything; no data is opened.

    >>> from sfumato.mechanisms import Laplace
    >>> least_epsilon(lambda e: Laplace.calibrated(l1=1, epsilon=e), margin=6, confidence=0.95, numbers=1)
    Fraction(457, 1000)
    """
    natural(margin, "margin", least=0)

    def reaches(epsilon: Fraction) -> bool:
        return mechanism(epsilon).law.covers(margin, confidence, numbers=numbers)

    power = -12
    while not reaches(Fraction(10) ** power):
        power += 1
        if power > 6:
            raise Refused(f"no ε up to 10^6 keeps {numbers} number(s) within ±{margin}; nothing was done.")
    step = Fraction(10) ** (power - DIGITS)
    low, high = 10 ** (DIGITS - 1), 10**DIGITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle * step) else (middle, high)
    return Fraction(high * step)
