"""Choosing a set of k of finitely many with probability in proportion to the product of its members' weights exp(x).

No set is listed. Those with one x are a level; how many of a level are chosen is drawn level by level, each time in
proportion to C(c, j)·e^(j·x)·e_(r−j), where e_m is the elementary symmetric polynomial of degree m of the weights of
all levels below: O(n·k) products for all of them. Weights are tilted by a common factor, which changes no probability
and makes each e_m, up to a constant, the probability that independent coins show m heads: numbers of ordinary size.
Everything is whole numbers rounded outward, and where they leave a draw open they are computed again with more bits.
Proof: docs/proofs/top_set.md
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import comb, exp

from sfumato.noise.selection import sample_intervals
from sfumato.noise.uniform import SPARE, fixed_exp
from sfumato.noise.words import WordBits, Words

__all__ = ["sample_subset"]

Row = list[tuple[int, int]]
"""Lower and upper ends, in units of 2^−bits."""

TILT = 2**20  # the factor's logarithm is a whole multiple of 1/TILT


def sample_subset(exponents: Sequence[Fraction], size: int, words: Words) -> tuple[int, ...]:
    """Draw ``size`` different places, in rising order: a set S with probability in proportion to exp(Σ x_i over S).

    Guarantee: exact for rational exponents; no floating-point number decides. Assumes: 0 ≤ size ≤ len(exponents).
    The time depends on the exponents. Sensitive: the exponents.

    >>> from sfumato.noise.words import SystemWords
    >>> sample_subset([Fraction(0), Fraction(10**6), Fraction(10**6)], 2, SystemWords())
    (1, 2)
    """
    owners: dict[Fraction, list[int]] = {}
    for place, exponent in enumerate(exponents):
        owners.setdefault(exponent, []).append(place)
    levels = sorted(owners, reverse=True)
    counts = [len(owners[level]) for level in levels]
    tilt = _tilt(levels, counts, size)
    heights = [level - tilt for level in levels]
    tables: dict[int, list[Row]] = {}
    bits, left, chosen = WordBits(words), size, []
    for place, level in enumerate(levels):
        if not left:
            break
        few = min(left, counts[place])
        least = max(0, left - sum(counts[place + 1 :]))
        taken = few
        if least < few:
            taken = least + _drawn(heights, counts, size, tables, place, left, least, few, words)
        members = owners[level]
        chosen += [members.pop(bits.below(len(members))) for _ in range(taken)]
        left -= taken
    return tuple(sorted(chosen))


def _drawn(
    heights: list[Fraction],
    counts: list[int],
    size: int,
    tables: dict[int, list[Row]],
    place: int,
    left: int,
    least: int,
    most: int,
    words: Words,
) -> int:
    """How many more than ``least`` of one level are chosen, when ``left`` are still to be."""

    def ends(bits: int) -> tuple[list[int], list[int]]:
        fine = bits + 2 * SPARE
        while True:
            if fine not in tables:
                tables[fine] = _table(heights, counts, size, fine)
            below = tables[fine][place + 1]
            own = _heads(heights[place], counts[place], most, fine)
            shares = [(own[j][0] * below[left - j][0], own[j][1] * below[left - j][1]) for j in range(least, most + 1)]
            low, high = (list(accumulate(side)) for side in zip(*shares, strict=True))
            if low[-1] and (high[-1] - low[-1]) << bits <= low[-1]:
                break
            fine *= 2
        last = 1 << bits
        downs = [(down << bits) // high[-1] for down in low[:-1]]
        ups = [min((up << bits) // low[-1], last - 1) for up in high[:-1]]
        return [*downs, last], [*ups, last]

    return int(sample_intervals(ends, 1, words)[0])


def _table(heights: list[Fraction], counts: list[int], size: int, bits: int) -> list[Row]:
    """For each level, and none: the probabilities that the coins of it and all levels below show 0, …, size heads."""
    rows: list[Row] = [[(1 << bits, 1 << bits)] + [(0, 0)] * size]
    for height, count in zip(reversed(heights), reversed(counts), strict=True):
        own = _heads(height, count, min(count, size), bits)
        low, high = (_product([pair[end] for pair in own], [pair[end] for pair in rows[-1]], bits) for end in (0, 1))
        rows.append([(down >> bits, min(-(-up >> bits), 1 << bits)) for down, up in zip(low, high, strict=True)])
    return rows[::-1]


def _product(one: list[int], other: list[int], bits: int) -> list[int]:
    """The product of two polynomials with coefficients from 0 to 2^(bits + 1), as far as the second one goes.

    Both are written as one whole number each, with room between the coefficients for every sum of products; whole
    numbers are multiplied faster than polynomials.

    >>> _product([1, 2], [3, 4, 0], 8)
    [3, 10, 8]
    """
    room = (2 * bits + 2 + len(other).bit_length()) // 8 + 1
    first, second = (
        int.from_bytes(b"".join(entry.to_bytes(room, "little") for entry in row), "little") for row in (one, other)
    )
    written = (first * second).to_bytes(room * (len(one) + len(other)), "little")
    return [int.from_bytes(written[place * room : (place + 1) * room], "little") for place in range(len(other))]


def _heads(height: Fraction, count: int, most: int, bits: int) -> Row:
    """The probabilities that ``count`` coins of odds exp(height) show 0, …, most heads.

    Powers are computed with as many bits more as the largest number of ways to show that many heads has.
    """
    ways = [comb(count, j) for j in range(most + 1)]
    fine, one = bits + max(ways).bit_length(), 1 << bits
    down, up = fixed_exp(abs(height), fine)
    whole = (1 << fine, (1 << fine) + down, (1 << fine) + up)
    small = ((down << fine) // whole[2], -((-up << fine) // whole[1]))
    large = ((whole[0] << fine) // whole[2], -((-whole[0] << fine) // whole[1]))
    head, tail = (large, small) if height > 0 else (small, large)
    heads, tails = _powers(head, most, fine), _tail_powers(tail, count, most, fine)
    drop = 2 * fine - bits
    return [
        (many * won[0] * lost[0] >> drop, min(-(-many * won[1] * lost[1] >> drop), one))
        for many, won, lost in zip(ways, heads, tails, strict=True)
    ]


def _powers(base: tuple[int, int], most: int, bits: int) -> Row:
    """base⁰, …, base^most."""
    row: Row = [(1 << bits, 1 << bits)]
    for _ in range(most):
        row.append(_times(row[-1], base, bits))
    return row


def _tail_powers(base: tuple[int, int], count: int, most: int, bits: int) -> Row:
    """base^count, base^(count − 1), …, base^(count − most)."""
    power, square, exponent = (1 << bits, 1 << bits), base, count - most
    while exponent:
        if exponent & 1:
            power = _times(power, square, bits)
        square, exponent = _times(square, square, bits), exponent >> 1
    row = [power]
    for _ in range(most):
        row.append(_times(row[-1], base, bits))
    return row[::-1]


def _times(one: tuple[int, int], other: tuple[int, int], bits: int) -> tuple[int, int]:
    return one[0] * other[0] >> bits, -(-one[1] * other[1] >> bits)


def _tilt(levels: list[Fraction], counts: list[int], size: int) -> Fraction:
    """A tilt at which about ``size`` heads are expected; any number would do, this one keeps the numbers large."""
    gaps = [float(level - levels[0]) for level in levels]

    def expected(tilt: float) -> float:
        return sum(count / (1 + exp(min(tilt - gap, 700.0))) for gap, count in zip(gaps, counts, strict=True))

    low, high = gaps[-1] - 60.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) > size else (low, middle)
    return levels[0] + Fraction(round(low * TILT), TILT)
