"""Shuffling: what becomes of ε when nobody can tell whose report is whose.

The reports of n persons go through a shuffler, which hands them on in random order without names. A report of a
person then hides among those of the others. What is stated is the hockey-stick divergence of the pair of laws to which
Feldman, McMillan and Talwar (2021, "Hiding among the clones") reduce every ε-DP report, in whole numbers and rounded
outward. Proof: docs/proofs/local_oracles.md
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import floor

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, non_negative, positive, probability
from sfumato.core.guarantees import Approximate
from sfumato.errors import InvalidInput
from sfumato.local.odds import local_epsilon

__all__ = ["Shuffled"]

_FINE = 256  # bits of a fixed-point number
_MOST = 10**8  # reports beyond these are left out of account, which is sound: they could as well be published
_CUTS = 24  # numbers of clones at which the divergence is worked out


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """n reports, each ε-DP for its sender, handed on in random order.

    Guarantee: (ε', δ)-DP for the value of one person, replaced by any other, against whoever sees only what the
    shuffler hands on. ``binary`` may be set where the reports are binary randomised response: more is then known.
    Assumes: the shuffler is honest, n reports really come in, and reports do not depend on each other; the senders of
    the n − 1 others are honest about their randomness (with c of them against us, take n − c). Against the shuffler
    itself only ε holds.

    >>> crowd = Shuffled(epsilon=1, reports=10_000)
    >>> round(float(crowd.epsilon_at("1e-6")), 3)
    0.053
    """

    epsilon: Fraction
    reports: int
    binary: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        natural(self.reports, "reports")

    def delta_at(self, epsilon: Exact) -> Fraction:
        """The δ that goes with ε', rounded up."""
        asked = non_negative(epsilon, "epsilon")
        if asked >= self.epsilon:
            return Fraction(0)
        others = min(self.reports, _MOST) - 1
        ends = _clones(others, _share(self.epsilon, binary=self.binary))
        top, mild = enclosures.exp(self.epsilon).high, enclosures.exp(asked).low
        # Fewer clones hide less, so each cut stands for all numbers of clones from it to the next one.
        losses = [_divergence(clones, top, mild) for clones, _ in ends]
        total = losses[-1]
        for (_, before), worse, better in zip(ends[1:], losses, losses[1:], strict=False):
            total += before * max(worse - better, Fraction(0))
        return min(Fraction(1), total)

    def epsilon_at(self, delta: Exact) -> Fraction:
        """An ε' that goes with δ: within a thousandth of the least one that is stated, and never above ε."""
        asked = positive(probability(delta, "delta"), "delta")
        low, high = Fraction(0), self.epsilon
        if self.delta_at(0) <= asked:
            return low
        while high - low > high / 1000:
            middle = Fraction(floor((low + high) / 2 * 2**40) + 1, 2**40)
            low, high = (low, middle) if self.delta_at(middle) <= asked else (middle, high)
        return high

    def guarantee(self, delta: Exact) -> Approximate:
        """The guarantee at a δ."""
        return Approximate(epsilon=self.epsilon_at(delta), delta=probability(delta, "delta"))

    def closed_form(self, delta: Exact) -> Fraction:
        """The closed form of Feldman, McMillan and Talwar (2021, Theorem 3.1), rounded up; for comparison.

        It holds where ε ≤ ln(n/(16·ln(2/δ))), and is refused elsewhere.
        """
        asked = positive(probability(delta, "delta"), "delta")
        top = enclosures.exp(self.epsilon)
        if top.high * 16 * enclosures.log(2 / asked).high > self.reports:
            raise InvalidInput("there are too few reports for the closed form at this ε and δ; nothing was done.")
        log = enclosures.log(4 / asked).high
        spread = 8 * enclosures.sqrt(top.high * log / self.reports).high + 8 * top.high / self.reports
        return enclosures.log(1 + (top.high - 1) / (top.high + 1) * spread).high


def _share(epsilon: Fraction, *, binary: bool) -> Fraction:
    """The probability that a report is a clone, rounded down: e^−ε, and 2/(e^ε + 1) for binary randomised response."""
    if binary:
        return Fraction(floor(2 / (enclosures.exp(epsilon).high + 1) * 2**64), 2**64)
    return Fraction(floor(enclosures.exp(-epsilon).low * 2**64), 2**64)


@lru_cache(maxsize=32)
def _clones(others: int, share: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """Cuts 0 = c₀ < c₁ < …, each with an upper bound of the probability that there are fewer clones than that."""
    if not others or not share:
        return ((0, Fraction(0)),)
    low, below, above = _binomial(others, share)
    size = len(above)
    cuts = sorted({0, *(low + size * step // _CUTS for step in range(_CUTS + 1) if size * step // _CUTS < size)})
    heads = [0, *accumulate(above)]
    least = sum(below)
    rest = Fraction(1 + others, 1 << (_FINE - 8))  # what lies outside the terms that were added up
    return tuple(
        (cut, min(Fraction(1), Fraction(heads[max(0, cut - low)], least) + rest) if cut else Fraction(0))
        for cut in cuts
    )


def _binomial(n: int, share: Fraction) -> tuple[int, list[int], list[int]]:
    """Terms of a binomial law up to a factor, rounded down and up, from a lowest place on; those left out are tiny.

    From the mode to either side each term is its neighbour times a rational number below 1. The terms stop where they
    fall below 2^(8 − 256) of the largest one; all those left out together are fewer than n + 1 times that.
    """
    mode, one, least = min(n, floor((n + 1) * share)), 1 << _FINE, 1 << 8
    top, rest = share.numerator, share.denominator - share.numerator
    sides: list[list[tuple[int, int]]] = []
    for step in (1, -1):
        place, term, side = mode, (one, one), []
        while term[1] > least and 0 <= place + step <= n:
            up, down = ((n - place) * top, (place + 1) * rest) if step > 0 else (place * rest, (n - place + 1) * top)
            term = (term[0] * up // down, -(-term[1] * up // down))
            place += step
            side.append(term)
        sides.append(side)
    terms = [*reversed(sides[1]), (one, one), *sides[0]]
    return mode - len(sides[1]), [down for down, _ in terms], [up for _, up in terms]


@lru_cache(maxsize=256)
def _fair(coins: int) -> tuple[int, int, list[int], list[int]]:
    """For fair coins: the lowest place, the sum of all terms rounded down, the tails from each place down and up."""
    low, below, above = _binomial(coins, Fraction(1, 2))
    downs = list(accumulate(reversed(below)))[::-1]
    ups = [tail + (1 + coins << 8) for tail in list(accumulate(reversed(above)))[::-1]]
    return low, downs[0], [*downs, 0], [*ups, 1 + coins << 8]


def _divergence(clones: int, top: Fraction, mild: Fraction) -> Fraction:
    """The hockey-stick divergence of A + B and A + 1 − B at ε', rounded up; A fair coins, B with odds ``top`` : 1.

    The likelihood ratio rises with the outcome, so the best event is a tail: outcomes from ``first`` on.
    """
    # b(a−1)·(top − mild) > b(a)·(mild·top − 1), and b(a−1)/b(a) = a/(clones − a + 1).
    gain, cost = top - mild, mild * top - 1
    if gain <= 0:
        return Fraction(0)
    first = floor(cost * (clones + 1) / (gain + cost)) + 1
    low, whole, downs, ups = _fair(clones)

    def tail(place: int, rows: list[int]) -> int:
        return rows[min(max(place - low, 0), len(rows) - 1)]

    excess = gain * tail(first - 1, ups) - cost * tail(first, downs)
    return min(Fraction(1), max(Fraction(0), Fraction(floor(excess / ((top + 1) * whole) * 2**200) + 1, 2**200)))
