"""The error of a sum of many releases: exact for Laplace noise, bounded closely for Gaussian noise.

A discrete Laplace error is the difference of two geometric ones, so the sum of k of them is G − G′ with two independent
negative binomials of k. Their probabilities follow from one another by a factor, from the most likely one on; every
step is rounded down, so that what is left out, and every rounding, only lowers the coverage that is stated.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.search import least_whole
from sfumato.laws import DiscreteLaplace, Gaussian, RoundedGaussian
from sfumato.laws.margins import room
from sfumato.laws.tails import exponential

__all__ = ["GaussianSum", "LaplaceSum"]

BITS = 128
FAR = 12  # deviations, and as many scales on top: what lies beyond is left out, and so counts as a miss
MOST_POINTS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceSum:
    """The sum of ``parts`` independent discrete Laplace errors of one scale.

    Guarantee: :meth:`covers` never says yes to a margin that is not kept.

    >>> LaplaceSum(scale=Fraction(2), parts=2).margin(0.95), LaplaceSum(scale=Fraction(2), parts=7).margin(0.95)
    (8, 15)
    """

    scale: Fraction
    parts: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        natural(self.parts, "parts", most=10_000)

    @property
    def variance(self) -> Fraction:
        """The sum of the variances, rounded up."""
        return self.parts * DiscreteLaplace(scale=self.scale).variance

    @property
    def mean_absolute_error(self) -> Fraction:
        """At most the root of the variance (Jensen), and at most the sum of the parts' own."""
        apart = self.parts * DiscreteLaplace(scale=self.scale).mean_absolute_error
        return min(apart, enclosures.sqrt(self.variance).high)

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        size, allowed = natural(margin, "margin", least=0), room(confidence, numbers)
        if not self.variance:
            return True
        deviations = size / math.sqrt(self.variance)
        if allowed < Fraction(1, 2) and deviations < 0.6:
            return False  # saying no costs accuracy only; this far inside it is also right
        if 2 * self._chernoff(size) <= allowed:
            return True
        chances = self._chances()
        if chances is None:
            return False
        sums = [0, *accumulate(chances)]
        last = len(chances)
        inside = sum(
            chance * (sums[min(last, place + size + 1)] - sums[max(0, place - size)])
            for place, chance in enumerate(chances)
        )
        return inside >= (1 - allowed) * (1 << 2 * BITS)

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        near = math.isqrt(int(2 * self.variance)) + 1
        return least_whole(lambda size: 0.5 - self.covers(size, confidence, numbers=numbers), near=near)

    def _chernoff(self, size: int) -> Fraction:
        """P(z > size) ≤ e^(−t(size + 1))·E[e^(tz)] for a t about the best, rounded up.

        E[e^(tz)] = ((1 − q)²/((1 − qe^t)(1 − qe^−t)))^parts with q = e^(−1/scale).
        """
        rate = 1 / self.scale
        ratio = float(size + 1) / float(2 * self.parts * self.scale)
        share = Fraction(round(10**6 * ratio / (1 + math.sqrt(1 + ratio * ratio))), 10**6)
        if not 0 < share < 1:
            return Fraction(1)
        tilt = share * rate
        bits = BITS + self.scale.numerator.bit_length()
        q, above = exponential(rate, bits=bits), exponential(rate - tilt, bits=bits)
        below = exponential(rate + tilt, bits=bits)
        moment = ((1 - q.low) ** 2 / ((1 - above.high) * (1 - below.high))).limit_denominator(1 << 64)
        moment += Fraction(1, 1 << 63)
        grown = enclosures.log(moment).high * self.parts - tilt * (size + 1)
        return enclosures.exp(min(grown, Fraction(0))).high

    def _chances(self) -> list[int] | None:
        """P(G = j)·2^BITS from j = 0 on, each rounded down; None where there would be too many."""
        mean = self.parts * float(self.scale)
        spread = math.sqrt(self.parts) * (float(self.scale) + 1)
        count = math.ceil(mean + FAR * spread + 40 * float(self.scale)) + 64
        if count > MOST_POINTS:
            return None
        q = exponential(1 / self.scale, bits=BITS + self.scale.numerator.bit_length())
        top = min(int((self.parts - 1) * q.low / (1 - q.low)), count - 1)  # the most likely place, or next to it
        working = 2 * BITS
        low = (q.low.numerator << working) // q.low.denominator
        high = -((-q.high.numerator << working) // q.high.denominator)
        value = self._chance(top, q)
        chances = [0] * count
        chances[top] = value >> (working - BITS)
        rising = value
        for place in range(top, count - 1):  # P(j + 1) = P(j)·q·(j + parts)/(j + 1)
            rising = (rising * low * (place + self.parts)) // ((place + 1) << working)
            chances[place + 1] = rising >> (working - BITS)
        for place in range(top, 0, -1):
            value = ((value * place) << working) // (high * (place + self.parts - 1))
            chances[place - 1] = value >> (working - BITS)
        return chances

    def _chance(self, place: int, q: enclosures.Enclosure) -> int:
        """P(G = place)·2^(2·BITS), rounded down: the binomial coefficient times q^place times (1 − q)^parts."""
        ways, fail = math.comb(place + self.parts - 1, place), 1 - q.high
        digits = 4 * BITS + ways.bit_length()  # of fixed point, in which the powers are rounded down

        def power(base: Fraction, exponent: int) -> int:
            result, square = 1 << digits, (base.numerator << digits) // base.denominator
            while exponent:
                if exponent & 1:
                    result = result * square >> digits
                square, exponent = square * square >> digits, exponent >> 1
            return result

        return ways * power(q.low, place) * power(fail, self.parts) >> (2 * digits - 2 * BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSum:
    """The sum of ``parts`` independent Gaussian errors, each rounded to a whole number.

    Guarantee: :meth:`covers` never says yes to a margin that is not kept. The sum is N(0, parts·σ²) plus the roundings,
    which are independent, symmetric and at most 1/2 each, so together beyond t with at most 2e^(−2t²/parts)
    (Hoeffding). Margins are too wide by a few times √parts at most, which matters only where σ is small.

    >>> GaussianSum(sigma=Fraction(20), parts=7).margin(0.95)  # 1.96·20·√7 = 103.7
    107
    """

    sigma: Fraction
    parts: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        natural(self.parts, "parts", most=10_000)

    @property
    def variance(self) -> Fraction:
        """The sum of the variances, rounded up."""
        return self.parts * RoundedGaussian(sigma=self.sigma).variance

    @property
    def mean_absolute_error(self) -> Fraction:
        """At most the root of the variance (Jensen)."""
        return enclosures.sqrt(self.variance).high

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        size, allowed = natural(margin, "margin", least=0) + 1, room(confidence, numbers)
        alone = RoundedGaussian(sigma=self.sigma).tail(margin // self.parts)  # every part within its share
        if self.parts * alone.high <= allowed:
            return True
        whole = Gaussian(sigma=self.sigma * enclosures.sqrt(self.parts, bits=64).high)
        choices = [(Fraction(self.parts, 2), Fraction(0))]
        for share in (2, 8, 64):
            miss = allowed / share
            beyond = self.parts * enclosures.log(2 / miss, bits=64).high / 2
            choices.append((enclosures.sqrt(beyond, bits=64).high, miss))
        return any(size > moved and whole.tail(size - moved).high + miss <= allowed for moved, miss in choices)

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        near = math.isqrt(int(2 * self.variance)) + 1
        return least_whole(lambda size: 0.5 - self.covers(size, confidence, numbers=numbers), near=near)
