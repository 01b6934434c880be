"""The law of a sum or difference of independent errors, by exact convolution on the lattice.

All laws here are symmetric, so a difference has the law of the sum. Convolution is of whole numbers, one array rounded
down and one rounded up, so the tail is enclosed; no floating-point number takes part.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural
from sfumato.errors import InvalidInput
from sfumato.laws import margins
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.laws.rounded_gaussian import RoundedGaussian

__all__ = ["Sum"]

BITS = 128  # probabilities are counted in units of 2^-BITS
DROPPED = Fraction(1, 2**100)  # the mass that may be left out at the ends of each part; it is added to the tail
MOST_CELLS = 8_000  # a finer lattice is made coarser, and what rounding to it can hide is added to the size


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """z = ±z₁ ± z₂ … for independent errors z_i, each of a law of its own.

    >>> two = Sum(parts=(DiscreteLaplace(scale=Fraction(2)), DiscreteLaplace(scale=Fraction(2))))
    >>> two.margin(0.95), round(float(two.variance), 2)
    (8, 15.67)
    """

    KIND: ClassVar[str] = "law.sum"
    VERSION: ClassVar[int] = 1
    parts: tuple[DiscreteLaplace | RoundedGaussian, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("a sum of no errors has no law; nothing was done.")

    @property
    def shift(self) -> int:
        """0 where the tail is convolved as it is; else the parts are first rounded to multiples of 2^shift, outward."""
        return max(0, (sum(_reach(part) for part in self.parts) // MOST_CELLS).bit_length())

    @property
    def variance(self) -> Fraction:
        """The sum of the parts' variances."""
        return sum((part.variance for part in self.parts), Fraction(0))

    @property
    def mean_absolute_error(self) -> Fraction:
        """At most the root of the variance (Jensen), rounded up."""
        return enclosures.sqrt(self.variance).high

    def tail(self, size: int) -> enclosures.Enclosure:
        """P(|z| > size); on a coarser lattice an upper bound.

        With z_i = 2^s·y_i + r_i, |r_i| ≤ 2^(s−1), |Σz_i| > size implies |Σy_i| > (size − n·2^(s−1))/2^s.
        """
        shift, count = self.shift, len(self.parts)
        hidden = count << shift >> 1 if shift else 0
        within = (natural(size, "size", least=0) - hidden) >> shift
        if within < 0:
            return enclosures.Enclosure(Fraction(0), Fraction(1))
        lows, highs = _tails(tuple(sorted(self.parts, key=repr)), shift)
        place = min(within, len(lows) - 1)
        low = Fraction(0) if shift else Fraction(lows[place], 1 << BITS)
        return enclosures.Enclosure(low, min(Fraction(1), Fraction(highs[place], 1 << BITS) + count * DROPPED))

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` independent errors all lie within ±margin with at least this confidence."""
        return margins.covers(self, margin, confidence, numbers)

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m for which :meth:`covers` holds."""
        return margins.margin(self, confidence, numbers)

    def quantile(self, level: Exact) -> int:
        """The least whole number m with P(z ≤ m) at least ``level``."""
        return margins.quantile(self, level)


def _reach(part: DiscreteLaplace | RoundedGaussian) -> int:
    """The size beyond which a part has less mass than may be dropped."""
    return margins.margin(part, 1 - DROPPED)


@lru_cache(maxsize=32)
def _tails(parts: tuple[DiscreteLaplace | RoundedGaussian, ...], shift: int) -> tuple[list[int], list[int]]:
    """P(|Σy| > k) for k = 0, 1, …, rounded down and up, in units of 2^-BITS, of what is not dropped."""
    masses = {part: _masses(part, shift) for part in set(parts)}
    lows, highs = masses[parts[0]]
    for part in parts[1:]:
        low, high = masses[part]
        lows, highs = _convolved(lows, low, up=False), _convolved(highs, high, up=True)
    middle = len(lows) // 2
    return _beyond(lows, middle), _beyond(highs, middle)


def _masses(part: DiscreteLaplace | RoundedGaussian, shift: int) -> tuple[list[int], list[int]]:
    """P(y = k) for z rounded to the nearest multiple y·2^shift, half-way away from 0, rounded down and up.

    |y| > k exactly if |z| > k·2^shift + 2^(shift − 1) − 1, so differences of the tail of z give the masses of y.
    """
    one = enclosures.Enclosure(Fraction(1), Fraction(1))
    half = (1 << shift >> 1) - 1 if shift else 0
    tails = [one, *(part.tail((k << shift) + half) for k in range((_reach(part) >> shift) + 2))]
    pairs = [(max(Fraction(0), a.low - b.high), a.high - b.low) for a, b in pairwise(tails)]
    low = [(value[0] / (1 if k == 0 else 2) * 2**BITS).__floor__() for k, value in enumerate(pairs)]
    high = [(value[1] / (1 if k == 0 else 2) * 2**BITS).__ceil__() for k, value in enumerate(pairs)]
    return low[:0:-1] + low, high[:0:-1] + high


def _convolved(one: list[int], other: list[int], *, up: bool) -> list[int]:
    """Convolve by one multiplication of whole numbers: each entry gets a slot that no sum can overflow."""
    slot = 2 * (BITS + 1) + min(len(one), len(other)).bit_length()
    slot += -slot % 8
    product = _packed(one, slot) * _packed(other, slot)
    size, step = len(one) + len(other) - 1, slot // 8
    data = product.to_bytes(size * step, "little")
    entries = (int.from_bytes(data[place * step : (place + 1) * step], "little") for place in range(size))
    return [-(-entry >> BITS) if up else entry >> BITS for entry in entries]


def _packed(values: list[int], slot: int) -> int:
    return int.from_bytes(b"".join(value.to_bytes(slot // 8, "little") for value in values), "little")


def _beyond(masses: list[int], middle: int) -> list[int]:
    """For k = 0, 1, …: the mass at distance above k from the middle."""
    both = [masses[middle + k] + masses[middle - k] for k in range(middle, 0, -1)]
    return [*reversed(list(accumulate(both))), 0]
