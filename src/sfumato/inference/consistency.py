"""Figures made to look like what they measure: counts that are not negative, tables with a total, curves that rise.

The truth obeys these rules, the noisy figures need not. Adjusting them costs nothing and sees no data. It biases single
numbers (a count near 0 can only be moved up), so the raw figures stay at hand, and so do their intervals, cut to
what is possible and widened where an adjusted number lies outside. Proof: docs/proofs/adjusting.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from sfumato.core.columns import Value
from sfumato.core.exact import Exact, natural
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived, Label
from sfumato.inference.figure import Figure, figure

__all__ = ["Adjusted", "nearest_table", "non_negative", "rising", "rising_medians", "whole_table"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Adjusted(Derived):
    """Adjusted numbers beside the raw figure that they come from.

    Guarantee: costs nothing. The interval is that of the raw figure, cut to [``least``, ``most``], between which the
    truth is known to lie, and widened to hold the adjusted number: it covers the truth as often as the raw one.
    """

    raw: Figure
    adjusted: tuple[int | Fraction, ...]
    least: int | Fraction | None
    most: int | Fraction | None

    @property
    def values(self) -> tuple[int | Fraction, ...]:
        """The adjusted numbers."""
        return self.adjusted

    @property
    def labels(self) -> Mapping[str, tuple[Label, ...]]:
        """What each number is about."""
        return self.raw.labels

    @property
    def sources(self) -> tuple[Release, ...]:
        """The releases that it was computed from."""
        return self.raw.sources

    @property
    def measure(self) -> str:
        """What the numbers are called."""
        return self.raw.measure

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[Value, Value]]:
        """The interval of the raw figure, cut to what is possible and widened to the adjusted number."""

        def possible(value: int | Fraction) -> int | Fraction:
            if self.least is not None:
                value = max(value, self.least)
            return value if self.most is None else min(value, self.most)

        ends = zip(self.adjusted, self.raw.interval(confidence, joint=joint, of="data"), strict=True)
        return [(min(possible(low), value), max(possible(high), value)) for value, (low, high) in ends]


def non_negative(given: Release | Figure) -> Adjusted:
    """Hold each number to 0 at the least."""
    raw = figure(given)
    return Adjusted(raw=raw, adjusted=tuple(max(value, 0) for value in raw.values), least=0, most=None)


def whole_table(given: Release | Figure, *, total: int) -> Adjusted:
    """The nearest table of whole, non-negative numbers that add up to ``total``.

    Assumes: the total is a public fact (under replace), or was released or estimated itself: under add/remove an exact
    total is not public, and fixing it would release it.
    """
    raw = figure(given)
    count = natural(total, "total", least=0)
    return Adjusted(raw=raw, adjusted=tuple(nearest_table(raw.values, count)), least=0, most=count)


def rising(given: Release | Figure) -> Adjusted:
    """The nearest numbers that never fall, in the order of the labels (isotonic regression, equal weights).

    Adjacent numbers that fall are averaged until none do.
    """
    raw = figure(given)
    blocks: list[tuple[int | Fraction, int]] = []  # the sum and the length of each stretch of equal numbers
    for value in raw.values:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            (last, width), (before, length) = blocks.pop(), blocks.pop()
            blocks.append((before + last, length + width))
    level = [(Fraction(total) / length, length) for total, length in blocks]
    plain = tuple(
        whole for value, length in level for whole in [int(value) if value.denominator == 1 else value] * length
    )
    return Adjusted(raw=raw, adjusted=plain, least=None, most=None)


def rising_medians(given: Release | Figure) -> Adjusted:
    """The numbers that never fall and are nearest in l1: under Laplace noise the most likely ones.

    Each stretch of equal numbers is at a median, which a single far value does not move. Where several answers are
    equally near, the middle between the smallest and the largest is taken, which is as near. Assumes: whole numbers.
    """
    raw = figure(given)
    values = [int(value) for value in raw.values]
    if any(whole != value for whole, value in zip(values, raw.values, strict=True)):
        raise InvalidInput("medians that rise are found for whole numbers; nothing was adjusted. Use rising(...).")
    ends = zip(_nearest_rising(values, largest=False), _nearest_rising(values, largest=True), strict=True)
    middle = (Fraction(low + high, 2) for low, high in ends)
    plain = tuple(int(value) if value.denominator == 1 else value for value in middle)
    return Adjusted(raw=raw, adjusted=plain, least=None, most=None)


def _nearest_rising(values: Sequence[int], *, largest: bool) -> list[int]:
    """The smallest or the ``largest`` of the rising whole numbers with the least Σ|x − value|.

    For every level m, how many first numbers are at most m is found by itself: those that disagree must be fewest. The
    levels are halved until each stretch has one.

    >>> _nearest_rising([3, 1, 2], largest=False), _nearest_rising([2, 1], largest=True)
    ([1, 1, 2], [2, 2])
    """
    found = [0] * len(values)
    stretches = [(0, len(values), min(values, default=0), max(values, default=0))]
    while stretches:
        start, end, low, high = stretches.pop()
        if low == high or start == end:
            found[start:end] = [low] * (end - start)
            continue
        level, total, least, split = (low + high) // 2, 0, 0, start
        for place in range(start, end):
            total += 1 if values[place] > level else -1
            if total < least or (total == least and not largest):
                least, split = total, place + 1
        stretches += [(start, split, low, level), (split, end, level + 1, high)]
    return found


def nearest_table(values: Sequence[int | Fraction], total: int) -> list[int]:
    """The whole, non-negative numbers with sum ``total`` that are nearest to ``values`` in Euclidean distance.

    First the nearest real table: all values lowered or raised by one amount, and held to 0. Then the floors, and the
    units that are left go to the largest fractions, the first of equal ones first.

    >>> nearest_table([3, -2, 10], 12)
    [3, 0, 9]
    """
    if total == 0:
        return [0] * len(values)
    if not values:
        raise InvalidInput(f"a table without cells cannot add up to {total}; nothing was adjusted.")
    exact = [Fraction(value) for value in values]
    ordered = sorted(exact, reverse=True)
    # The amount: with k cells above 0 it is (their sum − total)/k, for the largest k that leaves the k-th above it.
    amounts = [(running - total) / (place + 1) for place, running in enumerate(accumulate(ordered))]
    amount = next(amount for value, amount in zip(reversed(ordered), reversed(amounts), strict=True) if value > amount)
    real = [max(value - amount, Fraction(0)) for value in exact]
    table = [value.__floor__() for value in real]
    left = total - sum(table)
    for place in sorted(range(len(real)), key=lambda place: table[place] - real[place])[:left]:
        table[place] += 1
    return table
