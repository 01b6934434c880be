"""Accuracy first: the least ε whose noise keeps a margin."""

from collections.abc import Callable
from fractions import Fraction

from sfumato.core.exact import Exact, natural
from sfumato.core.query import Mechanism
from sfumato.core.search import least_decimal
from sfumato.errors import Refused

__all__ = ["least_epsilon"]

DIGITS = 4
LEAST, LARGEST = Fraction(1, 10**12), 10**6


def least_epsilon(
    mechanism: Callable[[Fraction], Mechanism], *, margin: int, confidence: Exact, numbers: int
) -> Fraction:
    """Find the least ε from 10^-12 on, to four digits and rounded up, for which ``numbers`` errors stay within ±margin.

    Guarantee: the mechanism at the ε returned covers the margin by its own exact law. Assumes: a larger ε never
    brings a larger error. Public: everything; no data is opened.

    >>> from sfumato.mechanisms import Laplace
    >>> least_epsilon(lambda e: Laplace.calibrated(l1=1, epsilon=e), margin=6, confidence=0.95, numbers=1)
    Fraction(457, 1000)
    """
    natural(margin, "margin", least=0)

    def reaches(epsilon: Fraction) -> bool:
        if epsilon > LARGEST:
            raise Refused(f"no ε up to 10^6 keeps {numbers} number(s) within ±{margin}; nothing was done.")
        return mechanism(epsilon).law.covers(margin, confidence, numbers=numbers)

    if reaches(LEAST):  # with a δ the noise stays finite however small ε is
        return LEAST
    return least_decimal(lambda epsilon: 0.5 - reaches(epsilon), digits=DIGITS, near=Fraction(1, 1000))
