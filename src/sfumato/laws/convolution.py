"""Convolution of symmetric errors in whole numbers, rounded outward: what a sum of errors is worked out with.

All parts but the widest are laid on one lattice and convolved, once rounded down and once up. The widest keeps its own
tail, which is looked up at the distance that the others leave. Proof: docs/proofs/laws.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, gcd, lcm
from operator import mul

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.laws.discrete_gaussian import DiscreteGaussian
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.laws.gaussian import Gaussian
from sfumato.laws.laplace import Laplace
from sfumato.laws.margins import WholeNumberLaw
from sfumato.laws.rounded_gaussian import RoundedGaussian

__all__ = ["Convolution", "Part", "convolved"]

Part = DiscreteGaussian | DiscreteLaplace | Gaussian | Laplace | RoundedGaussian
Scaled = tuple[Fraction, Part]  # a positive coefficient and a law

BITS = 128  # probabilities are counted in units of 2^-BITS
ONE = 1 << BITS
FAR, NEAR = 64, 40  # up to 2^-FAR of each part is left out at its ends, 2^-NEAR where cells are short; it is counted
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Convolution:
    """The tail of Σ c_i·z_i, ready to be asked."""

    parts: tuple[Scaled, ...]
    lattice: "_Lattice"
    widest: Fraction  # its coefficient
    table: "_Table"
    step: Fraction  # of margins
    gap: Fraction  # the least distance between two values of the sum, or 0
    variance: Fraction

    @property
    def exact(self) -> bool:
        """Whether nothing was rounded but probabilities."""
        return not self.lattice.hidden and self.table.exact

    def least_outside(self, size: Fraction) -> Fraction:
        """P(|Σ c_i·z_i| > size), rounded down."""
        return Fraction(2 * self._beyond(size + self.lattice.hidden, self.lattice.lows, self.table.lows) >> BITS, ONE)

    def most_outside(self, size: Fraction) -> Fraction:
        """P(|Σ c_i·z_i| > size), rounded up; far out by the union bound."""
        left = size - self.lattice.hidden
        if left < 0:
            return Fraction(1)
        summed = -(-2 * self._beyond(left, self.lattice.highs, self.table.highs) >> BITS)
        missing = self.lattice.dropped + 2 * self.table.highs[-1]
        most = Fraction(min(summed + self.lattice.dropped, ONE), ONE)
        return min(most, self._union(size)) if summed < 4 * missing else most

    def _beyond(self, size: Fraction, masses: list[int], values: list[int]) -> int:
        """Σ_j P(j)·P(c·z > size − j·step) in units of 2^(−2·BITS), from the masses and the table that are given."""
        unit = self.widest * self.table.step
        scale = lcm(size.denominator, self.lattice.step.denominator, unit.denominator)
        start, move, width = int(size * scale), int(self.lattice.step * scale), int(unit * scale)
        middle, nodes = len(masses) // 2, len(values) // 2
        first = max(-middle, min(middle + 1, (start - (nodes + 1) * width) // move + 1))
        last = max(first - 1, min(middle, (start + nodes * width) // move))
        near = [values[(start - place * move) // width + nodes] for place in range(first, last + 1)]
        least, most = (values[-1], ONE) if values is self.table.highs else (0, values[0])
        beside: int = sum(map(mul, masses[first + middle : last + 1 + middle], near))
        return least * sum(masses[: first + middle]) + beside + most * sum(masses[last + 1 + middle :])

    def _union(self, size: Fraction) -> Fraction:
        """Σ P(|c_i·z_i| > size_i), where the sizes add up to the whole, in proportion to the reach of each part."""
        total = sum((factor * _reach(law, NEAR) for factor, law in self.parts), Fraction(0))
        shares = (_tail(law, size * _reach(law, NEAR) / total).high for _, law in self.parts)
        return min(Fraction(1), sum(shares, Fraction(0)))


@dataclass(frozen=True, slots=True)
class _Lattice:
    """P(Σ c_i·z_i = j·step) for j from −n to n, of all parts but the widest, in units of 2^-BITS."""

    step: Fraction
    lows: list[int]
    highs: list[int]
    dropped: int  # the mass that may have been left out, in the same units
    hidden: Fraction  # how far rounding to the lattice can have moved the sum


@dataclass(frozen=True, slots=True)
class _Table:
    """P(z > x) for i·step ≤ x < (i + 1)·step and i from −n to n, in units of 2^-BITS; exact if that is one value."""

    step: Fraction
    lows: list[int]
    highs: list[int]
    exact: bool


@lru_cache(maxsize=64)
def convolved(parts: tuple[Scaled, ...], cells: int) -> Convolution:
    """Make the convolution ready, with at most ``cells`` points of the lattice and as many values in the table."""
    place = max(range(len(parts)), key=lambda i: parts[i][0] * _reach(parts[i][1], NEAR))
    others, (widest, law) = parts[:place] + parts[place + 1 :], parts[place]
    lattice, table = _lattice(others, cells), _table(law, cells)
    variance = sum((factor**2 * _variance(law) for factor, law in parts), Fraction(0))
    fine = (2 * lattice.hidden + (Fraction(0) if table.exact else widest * table.step)) / 16
    if not all(isinstance(law, WholeNumberLaw) for _, law in parts):
        return Convolution(parts, lattice, widest, table, _power(10, fine), Fraction(0), variance)
    gap = _common([factor for factor, _ in parts])
    step = gap * _power(2, max(fine / gap, Fraction(1)))
    return Convolution(parts, lattice, widest, table, step, gap, variance)


def _lattice(parts: tuple[Scaled, ...], cells: int) -> _Lattice:
    """Lay all parts on one lattice: their own where it has few enough points that count, else a coarser one."""
    if not parts:
        return _Lattice(Fraction(1), [ONE], [ONE], 0, Fraction(0))
    if all(isinstance(law, WholeNumberLaw) for _, law in parts):
        step = _common([factor for factor, _ in parts])
        for ends in (FAR, NEAR):
            far = _extent(parts, ends)
            if 2 * ceil(far / step) + 1 <= cells:
                return _laid(parts, step, far, ends, Fraction(0))
    far = _extent(parts, NEAR)
    step = 2 * far / (cells - 2)
    return _laid(parts, step, far, NEAR, len(parts) * step / 2)


def _laid(parts: tuple[Scaled, ...], step: Fraction, far: Fraction, ends: int, hidden: Fraction) -> _Lattice:
    """Round each part to the lattice, convolve, and cut off what lies beyond ``far``."""
    keep, dropped = ceil(far / step), len(parts) << (BITS - ends)
    lows, highs = [ONE], [ONE]
    for factor, law in parts:
        low, high = _masses(law, step / factor, ends)
        lows, highs = _multiplied(lows, low, up=False), _multiplied(highs, high, up=True)
        spare = len(highs) // 2 - keep
        if spare > 0:
            dropped += 2 * sum(highs[:spare])
            lows, highs = lows[spare:-spare], highs[spare:-spare]
    return _Lattice(step, lows, highs, dropped, hidden)


@lru_cache(maxsize=256)
def _masses(law: Part, width: Fraction, ends: int) -> tuple[list[int], list[int]]:
    """P(y = k) for z rounded to the nearest multiple y·width, half-way towards 0, rounded down and up.

    |y| > k exactly if |z| > (k + ½)·width, so differences of the tail of z give the masses of y.
    """
    count = ceil(_reach(law, ends) / width) + 1
    tails = [Enclosure(Fraction(1), Fraction(1)), *(_tail(law, (k + HALF) * width) for k in range(count))]
    pairs = [(max(Fraction(0), a.low - b.high), a.high - b.low) for a, b in pairwise(tails)]
    low = [floor(value[0] * ONE / (2 if k else 1)) for k, value in enumerate(pairs)]
    high = [ceil(value[1] * ONE / (2 if k else 1)) for k, value in enumerate(pairs)]
    return low[:0:-1] + low, high[:0:-1] + high


@lru_cache(maxsize=64)
def _table(law: Part, cells: int) -> _Table:
    """P(z > x) at every whole number where they are few enough, else between the nearest of ``cells`` nodes."""
    reach = next((far for far in (_reach(law, FAR), _reach(law, NEAR)) if far <= cells), _reach(law, NEAR))
    exact = isinstance(law, WholeNumberLaw) and reach <= cells
    step = Fraction(1) if exact else Fraction(ceil(reach / cells)) if isinstance(law, WholeNumberLaw) else reach / cells
    nodes = ceil(reach / step)
    tails = [_tail(law, k * step) for k in range(nodes + 1)]
    down = [floor(tail.low * ONE / 2) for tail in tails]
    up = [ceil(tail.high * ONE / 2) for tail in tails]
    behind = [ONE - mass for mass in up[nodes - 1 :: -1]]  # P(z ≥ −k·step) = 1 − P(z > k·step), for k = nodes − 1, …, 0
    if exact:  # and for whole numbers P(z > −k − 1) is the same
        return _Table(step, behind + down, [ONE - mass for mass in down[nodes - 1 :: -1]] + up, exact)
    return _Table(step, [*behind, *down[1:], 0], [ONE - mass for mass in down[:0:-1]] + up, exact)


def _multiplied(one: list[int], other: list[int], *, up: bool) -> list[int]:
    """Convolve by one multiplication of whole numbers: each entry gets a slot that no sum can overflow."""
    if len(one) == 1 and one[0] == ONE:
        return other
    slot = 2 * (BITS + 1) + min(len(one), len(other)).bit_length()
    slot += -slot % 8
    product = _packed(one, slot) * _packed(other, slot)
    size, step = len(one) + len(other) - 1, slot // 8
    data = product.to_bytes(size * step, "little")
    entries = (int.from_bytes(data[place * step : (place + 1) * step], "little") for place in range(size))
    return [-(-entry >> BITS) if up else entry >> BITS for entry in entries]


def _packed(values: list[int], slot: int) -> int:
    return int.from_bytes(b"".join(value.to_bytes(slot // 8, "little") for value in values), "little")


def _tail(law: Part, size: Fraction) -> Enclosure:
    """P(|z| > size) at any rational size."""
    return _whole_tail(law, floor(size)) if isinstance(law, WholeNumberLaw) else law.tail(size)


@lru_cache(maxsize=2**15)
def _whole_tail(law: DiscreteGaussian | DiscreteLaplace | RoundedGaussian, size: int) -> Enclosure:
    return law.tail(size)


@lru_cache(maxsize=256)
def _reach(law: Part, bits: int) -> Fraction:
    """A size beyond which a part has less than 2^-bits of its mass; at least 1 on whole numbers."""
    size = law.margin(1 - Fraction(1, 1 << bits))
    return Fraction(max(size, 1) if isinstance(law, WholeNumberLaw) else size)


@lru_cache(maxsize=256)
def _variance(law: Part) -> Fraction:
    return law.variance


def _extent(parts: tuple[Scaled, ...], bits: int) -> Fraction:
    """Where a sum is cut off: the root of the sum of squares of the parts' reaches. What is cut off is counted."""
    return enclosures.sqrt(sum(((factor * _reach(law, bits)) ** 2 for factor, law in parts), Fraction(0))).high


def _common(factors: Sequence[Fraction]) -> Fraction:
    """The greatest rational of which all are multiples."""
    below = lcm(*(factor.denominator for factor in factors))
    return Fraction(gcd(*(int(factor * below) for factor in factors)), below)


def _power(base: int, most: Fraction) -> Fraction:
    """The largest power of the base that is not above ``most``."""
    power = Fraction(1)
    while power > most:
        power /= base
    while power * base <= most:
        power *= base
    return power
