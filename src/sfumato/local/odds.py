"""Rational odds just below e^ε, so that the loss that runs is a rational number and never above the one stated."""

from fractions import Fraction
from functools import lru_cache
from math import floor

from sfumato.core import enclosures
from sfumato.core.exact import Exact, positive
from sfumato.errors import InvalidInput

__all__ = ["MOST_EPSILON", "local_epsilon", "odds"]

MOST_EPSILON = 32
LEAST_EPSILON = Fraction(1, 1 << 20)
_BITS = 32


def local_epsilon(value: Exact) -> Fraction:
    """Read the ε of one report; what is too small to measure or too large to protect is refused.

    >>> local_epsilon(0.5)
    Fraction(1, 2)
    """
    epsilon = positive(value, "epsilon")
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InvalidInput(
            f"the ε of a report must lie between 2^−20 and {MOST_EPSILON}; nothing was done. Give an ε from 1/10 to 8."
        )
    return epsilon


@lru_cache(maxsize=256)
def odds(epsilon: Fraction) -> Fraction:
    """The rational R ≤ e^ε by which a report may favour the truth; R − 1 is short of e^ε − 1 by less than 2^−31 of it.

    Guarantee: R ≤ e^ε, by the enclosure of e^ε (docs/proofs/enclosures.md). It is a function of ε alone, the same
    wherever it is computed: client and server need no other agreement.

    >>> odds(Fraction(1)), float(odds(Fraction(1)))
    (Fraction(5837465777, 2147483648), 2.71828182...)
    """
    fine = _BITS + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    below = enclosures.exp(epsilon, bits=2 * fine + 64).low
    return Fraction(floor(below * (1 << fine)), 1 << fine)
