"""How many runs a search makes: the truncated negative binomial law up to a largest number, in whole numbers.

Proof of what it costs to release the best of a secret number of runs: docs/proofs/tuning.md
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul

from sfumato.core.exact import Exact, non_negative, positive
from sfumato.errors import InvalidInput

__all__ = ["MOST_RUNS", "expected_runs", "gamma_for", "run_weights"]

MOST_RUNS = 1024
FINEST = 10**6  # 1/γ at most: the weights are whole numbers that grow with it
DIGITS, BITS = 4, 64


@lru_cache(maxsize=64)
def run_weights(eta: Fraction, gamma: Fraction, most: int) -> tuple[int, ...]:
    """Whole numbers in the ratio P(K = 1) : P(K = 2) : … : P(K = most).

    >>> run_weights(Fraction(1), Fraction(1, 2), 3), run_weights(Fraction(0), Fraction(1, 2), 3)
    ((4, 2, 1), (12, 3, 1))
    """
    kept = 1 - gamma
    ratios = [kept * (k - 1 + eta) / k for k in range(2, most + 1)]  # of each weight to the one before
    first = accumulate((each.numerator for each in ratios), mul, initial=1)
    last = list(accumulate((each.denominator for each in reversed(ratios)), mul, initial=1))[::-1]
    return tuple(one * other for one, other in zip(first, last, strict=True))


@lru_cache(maxsize=64)
def expected_runs(eta: Fraction, gamma: Fraction, most: int) -> Fraction:
    """How many runs are counted on average, rounded up to a multiple of 2^−64.

    >>> round(float(expected_runs(Fraction(1), Fraction(1, 2), 3)), 6)  # 11/7
    1.571429
    """
    weights = run_weights(eta, gamma, most)
    total = sum(k * each for k, each in enumerate(weights, 1))
    return Fraction(-((-total << BITS) // sum(weights)), 1 << BITS)


def gamma_for(expected: Exact, *, eta: Exact) -> Fraction:
    """The γ, to four digits, at which ``expected`` runs would be made on average if there were no largest number.

    >>> gamma_for(10, eta=1), gamma_for(10, eta=0)
    (Fraction(1, 10), Fraction(673, 25000))
    """
    wanted, power = float(positive(expected, "expected_runs")), float(non_negative(eta, "eta"))
    if wanted <= 1:
        raise InvalidInput("expected_runs must be above 1: a single run is not a search; nothing was done.")
    low, high = 1 / FINEST, 1.0
    if _mean(low, power) < wanted:
        raise InvalidInput(f"expected_runs is at most {math.floor(_mean(low, power)):,} here; nothing was done.")
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _mean(middle, power) > wanted else (low, middle)
    return Fraction(f"{high:.{DIGITS}g}")


def _mean(gamma: float, eta: float) -> float:
    """E[K] without a largest number: η(1 − γ)/(γ(1 − γ^η)), and its limit at η = 0."""
    if gamma == 1:
        return 1.0
    log = -math.log(gamma)
    return (1 / gamma - 1) / (log if eta == 0 else -math.expm1(-eta * log) / eta)
