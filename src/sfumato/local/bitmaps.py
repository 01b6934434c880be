"""Loops over the bits of many bitmaps: tables looked up, sets brought to their size, columns counted.

The functions whose names begin with an underscore are plain Python on arrays. Where there is much to do and numba is
installed it compiles them on first use and keeps what it compiled; elsewhere array code does the same. Run as they are,
they are the slow reference that both are tested with.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.core.extras import need
from sfumato.errors import MissingExtra

__all__ = ["BLOCK", "Loops", "loops"]

BLOCK = 255 * 8  # rows whose columns are counted at a time, so that no byte overflows
_MUCH = 1 << 20  # bytes of bitmaps from which on compiling pays


@dataclass(frozen=True, slots=True)
class Loops:
    """The compiled loops."""

    look_up: Any
    place: Any
    resize: Any
    columns: Any


def loops(size: int) -> Loops | None:
    """The compiled loops for bitmaps of so many bytes in all, or None where array code does as well."""
    return _compiled() if size >= _MUCH else None


@lru_cache(maxsize=1)
def _compiled() -> Loops | None:
    try:
        plain = need("numba", "pip install 'sfumato[graphs]'").njit(cache=True)
    except MissingExtra:
        return None
    return Loops(look_up=plain(_look_up), place=plain(_place), resize=plain(_resize), columns=plain(_columns))


def _look_up(table: Any, left_over: int, words: Any, out: Any, again: Any) -> int:
    """Each word of ``out``: the bytes that the table has for eight double bytes, the lowest first.

    Gives how many double bytes there are from ``left_over`` on; ``again`` begins with their places.
    """
    found, limit = 0, np.uint64(left_over)
    for i in range(out.size):
        joined, open_still = np.uint64(0), False
        for half in range(2):
            word = words[2 * i + half]
            for j in range(4):
                pair = (word >> np.uint64(16 * j)) & np.uint64(0xFFFF)
                open_still |= pair >= limit
                joined |= np.uint64(table[pair]) << np.uint64(32 * half + 8 * j)
        out[i] = joined
        if open_still:
            for j in range(8):
                pair = (words[2 * i + j // 4] >> np.uint64(16 * (j % 4))) & np.uint64(0xFFFF)
                if pair >= limit:
                    again[found] = 8 * i + j
                    found += 1
    return found


def _place(bitmaps: Any, places: Any, heads: Any) -> None:
    """Set the bit at one place of each row to what a coin shows; both ways take the same steps."""
    for row in range(len(bitmaps)):
        byte, bit = places[row] >> 3, np.uint8(places[row] & 7)
        bitmaps[row, byte] = (bitmaps[row, byte] & ~(np.uint8(1) << bit)) | (np.uint8(heads[row]) << bit)


def _resize(bitmaps: Any, truths: Any, missing: Any, row: int, places: Any) -> int:
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


def _columns(rows: Any, total: Any) -> None:
    """Add the set bits of each column of at most BLOCK rows, a multiple of eight, to ``total``: [bit, byte].

    Eight words are added without carries into ones, twos, fours and one word of eights; only the eights are spread
    over bytes each time.
    """
    mask = np.uint64(0x0101010101010101)
    width = rows.shape[1]
    planes = np.zeros((3, width), np.uint64)
    lanes = np.zeros((8, width), np.uint64)
    for start in range(0, len(rows), 8):
        for j in range(width):
            ones, twos, fours = planes[0, j], planes[1, j], planes[2, j]
            four = np.uint64(0)
            for half in range(2):
                two = np.uint64(0)
                for quarter in range(2):
                    a, b = rows[start + 4 * half + 2 * quarter, j], rows[start + 4 * half + 2 * quarter + 1, j]
                    odd = ones ^ a
                    carry, ones = (ones & a) | (odd & b), odd ^ b
                    if quarter == 0:
                        two = carry
                    else:
                        odd = twos ^ two
                        two, twos = (twos & two) | (odd & carry), odd ^ carry
                if half == 0:
                    four = two
                else:
                    odd = fours ^ four
                    four, fours = (fours & four) | (odd & two), odd ^ two
            planes[0, j], planes[1, j], planes[2, j] = ones, twos, fours
            for bit in range(8):
                lanes[bit, j] += (four >> np.uint64(bit)) & mask
    for bit in range(8):
        for j in range(width):
            for byte in range(8):
                down = np.uint64(8 * byte)
                found = ((lanes[bit, j] >> down) & np.uint64(0xFF)) << np.uint64(3)
                for plane in range(3):
                    here = (planes[plane, j] >> (down + np.uint64(bit))) & np.uint64(1)
                    found += here << np.uint64(plane)
                total[bit, 8 * j + byte] += np.int64(found)
