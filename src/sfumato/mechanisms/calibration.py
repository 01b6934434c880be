"""Accuracy first: the least ε whose noise keeps a margin."""

from collections.abc import Callable
from fractions import Fraction

from sfumato.core.exact import Exact, natural
from sfumato.core.query import Mechanism
from sfumato.core.search import least_decimal
from sfumato.errors import Refused

__all__ = ["least_epsilon", "least_epsilon_where"]

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
    return least_epsilon_where(
        lambda epsilon: mechanism(epsilon).law.covers(margin, confidence, numbers=numbers),
        f"keeps {numbers} number(s) within ±{margin}",
    )


def least_epsilon_where(reaches: Callable[[Fraction], bool], goal: str) -> Fraction:
    """Find the least ε from 10^-12 to 10^6, to four digits and rounded up, that reaches a goal.

    >>> least_epsilon_where(lambda epsilon: epsilon >= Fraction(1, 3), "is a third")
    Fraction(1667, 5000)
    """

    def tried(epsilon: Fraction) -> float:
        if epsilon > LARGEST:
            raise Refused(f"no ε up to 10^6 {goal}; nothing was done.")
        return 0.5 - reaches(epsilon)

    if reaches(LEAST):  # with a δ the noise stays finite however small ε is
        return LEAST
    return least_decimal(tried, digits=DIGITS, near=Fraction(1, 1000))
