"""Loops over the bits of many bitmaps: tables looked up, sets brought to their size, columns counted.

The functions whose names begin with an underscore are plain Python on arrays. Where there is much to do and numba is
installed it compiles them on first use and keeps what it compiled; elsewhere array code does the same. Run as they are,
they are the slow reference that both are tested with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.core.extras import need
from sfumato.errors import MissingExtra

__all__ = ["BLOCK", "Loops", "loops"]

Bits = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Whole = NDArray[np.int64]

BLOCK = 255 * 8  # rows whose columns are counted at a time, so that no byte overflows
_MUCH = 1 << 20  # bytes of bitmaps from which on compiling pays


@dataclass(frozen=True, slots=True)
class Loops:
    """The compiled loops."""

    look_up: Callable[..., int]
    place: Callable[..., None]
    resize: Callable[..., int]
    columns: Callable[..., None]


def loops(size: int) -> Loops | None:
    """The compiled loops for bitmaps of that many bytes in all, or None where array code does as well."""
    return _compiled() if size >= _MUCH else None


@lru_cache(maxsize=1)
def _compiled() -> Loops | None:
    try:
        plain = need("numba", "pip install 'sfumato[graphs]'").njit(cache=True)
    except MissingExtra:
        return None
    return Loops(look_up=plain(_look_up), place=plain(_place), resize=plain(_resize), columns=plain(_columns))


def _look_up(table: Bytes, left_over: int, words: Bits, out: Bits, again: Whole) -> int:
    """Each word of ``out``: the bytes that the table has for eight double bytes, the lowest first.

    Gives how many double bytes there are from ``left_over`` on, which is above 0xFF00; ``again`` begins with their
    places. Whether any of four has a high byte of 0xFF is seen at once: the complement of that byte is 0, and only then
    255 more does not reach 256.
    """
    found, limit = 0, np.uint64(left_over)
    low, reached = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0100010001000100)
    for i in range(out.size):
        joined, near = np.uint64(0), np.uint64(0)
        for half in range(2):
            word = words[2 * i + half]
            near |= ~(((~word >> np.uint64(8)) & low) + low) & reached
            for j in range(4):
                pair = (word >> np.uint64(16 * j)) & np.uint64(0xFFFF)
                joined |= np.uint64(table[pair]) << np.uint64(32 * half + 8 * j)
        out[i] = joined
        if near:
            for j in range(8):
                pair = (words[2 * i + j // 4] >> np.uint64(16 * (j % 4))) & np.uint64(0xFFFF)
                if pair >= limit:
                    again[found] = 8 * i + j
                    found += 1
    return found


def _place(bitmaps: Bytes, places: Whole, heads: Bytes) -> None:
    """Set the bit at one place of each row to what a coin shows; both ways take the same steps."""
    for row in range(len(bitmaps)):
        byte, bit = places[row] >> 3, np.uint8(places[row] & 7)
        bitmaps[row, byte] = (bitmaps[row, byte] & ~(np.uint8(1) << bit)) | (np.uint8(heads[row]) << bit)


def _resize(bitmaps: Bytes, truths: Whole, missing: Whole, row: int, places: Whole) -> int:
    """Put bits in, or take them out, at uniform places other than the truth; gives the row that was not finished."""
    for i in range(places.size):
        while row < len(missing) and missing[row] == 0:
            row += 1
        if row == len(missing):
            return row
        place = places[i]
        byte, bit = place >> 3, np.uint8(place & 7)
        there = (bitmaps[row, byte] >> bit) & 1
        if place != truths[row] and there == (missing[row] < 0):
            bitmaps[row, byte] ^= np.uint8(1) << bit
            missing[row] += 1 if missing[row] < 0 else -1
    return row


def _columns(rows: Bits, total: Whole) -> None:
    """Add the set bits of each column of at most BLOCK rows, a multiple of eight, to ``total``: [bit, byte].

    Eight words are added without carries into ones, twos, fours and one word of eights; only the eights are spread
    over bytes each time.
    """
    mask = np.uint64(0x0101010101010101)
    width = rows.shape[1]
    ones, twos = np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    fours, eights = np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    lanes = np.zeros((8, width), np.uint64)
    for i in range(0, len(rows), 8):
        for j in range(width):
            # A full adder of x, y and z: the sum is x ^ y ^ z, and the carry (x & y) | ((x ^ y) & z).
            one, y, z = ones[j], rows[i, j], rows[i + 1, j]
            a, one = (one & y) | ((one ^ y) & z), one ^ y ^ z
            y, z = rows[i + 2, j], rows[i + 3, j]
            b, one = (one & y) | ((one ^ y) & z), one ^ y ^ z
            y, z = rows[i + 4, j], rows[i + 5, j]
            c, one = (one & y) | ((one ^ y) & z), one ^ y ^ z
            y, z = rows[i + 6, j], rows[i + 7, j]
            d, one = (one & y) | ((one ^ y) & z), one ^ y ^ z
            two = twos[j]
            a, two = (two & a) | ((two ^ a) & b), two ^ a ^ b
            c, two = (two & c) | ((two ^ c) & d), two ^ c ^ d
            four = fours[j]
            eights[j] = (four & a) | ((four ^ a) & c)
            ones[j], twos[j], fours[j] = one, two, four ^ a ^ c
        for bit in range(8):
            down = np.uint64(bit)
            for j in range(width):
                lanes[bit, j] += (eights[j] >> down) & mask
    for bit in range(8):
        for j in range(width):
            for byte in range(8):
                here = np.uint64(8 * byte + bit)
                found = ((lanes[bit, j] >> np.uint64(8 * byte)) & np.uint64(0xFF)) << np.uint64(3)
                found += ((fours[j] >> here) & np.uint64(1)) << np.uint64(2)
                found += ((twos[j] >> here) & np.uint64(1)) << np.uint64(1)
                found += (ones[j] >> here) & np.uint64(1)
                total[bit, 8 * j + byte] += np.int64(found)
