"""The two loops of the fine Gaussian: look a word up in the table, and judge a proposal with floats that cannot err.

Each is written twice: for numba (the functions whose names begin with an underscore are plain Python on arrays), and
for NumPy where numba is absent, or not worth loading yet. Both give the same from the same words.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.core.extras import need
from sfumato.errors import MissingExtra
from sfumato.noise.fine_table import FineTable
from sfumato.noise.words import WordArray

__all__ = ["ACCEPTED", "OPEN", "REFUSED", "judge", "judge_arrays", "look_up", "look_up_arrays", "many_drawn"]

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]
Verdicts = np.ndarray[tuple[int], np.dtype[np.int8]]

REFUSED, ACCEPTED, OPEN = 0, 1, 2
LARGEST_Q = 1 / 7  # up to it the polynomial is within 2^−49 of exp(−q)
MANY = 1 << 24  # numbers a process has drawn from which on numba is loaded: that takes as long as 2^25 take longer
_C2, _C3, _C4, _C5 = 1 / 2, -1 / 6, 1 / 24, -1 / 120
_C6, _C7, _C8, _C9 = 1 / 720, -1 / 5040, 1 / 40320, -1 / 362880


def look_up(table: FineTable, words: WordArray, out: IntArray, again: IntArray) -> int:
    """Write a number for each lane of the words to ``out``, and the places where a proposal is needed to ``again``.

    Gives how many those are; ``again`` is longer than ``out``.
    """
    loops = _compiled() if table.cut.width == 64 and table.cut.lanes == 2 and many_drawn(out.size) else None
    if loops is None:
        return look_up_arrays(table, words, out, again)
    cut = table.cut
    return int(loops[0](words, table.starts, np.uint64(32 - cut.index), np.uint64(cut.place + 1), out, again))


def judge(table: FineTable, first: WordArray, second: WordArray, values: IntArray, verdicts: Verdicts) -> None:
    """Write the number that each proposal of two words is for, and whether it is accepted, refused, or open."""
    loops = _compiled() if table.cut.width == 64 and many_drawn() else None
    if loops is None:
        judge_arrays(table, first, second, values, verdicts)
        return
    cut, choice = table.cut, table.choice
    sizes = np.array([64 - cut.choice, choice.shift, cut.place], dtype=np.uint64)
    loops[1](
        first, second, sizes, choice.steps, table.outcomes, table.floats, 2.0 ** -(2 * cut.sigma + 1), values, verdicts
    )


def many_drawn(more: int = 0) -> bool:
    """Whether this process has drawn enough numbers, with ``more``, for compiled loops to be worth loading. Public."""
    global _drawn
    _drawn += more  # two threads can miss some: this decides about time alone
    return _drawn >= MANY


_drawn = 0


@lru_cache(maxsize=1)
def _compiled() -> tuple[Callable[..., int], Callable[..., None]] | None:
    try:
        plain = need("numba", "pip install 'sfumato[learning]'").njit(cache=True, nogil=True)
    except MissingExtra:
        return None
    return plain(_look_up), plain(_judge)


def _look_up(
    words: WordArray, starts: IntArray, unused: np.uint64, low: np.uint64, out: IntArray, again: IntArray
) -> int:
    """A lane's top bits choose a column; its lowest ``low`` are a number with a sign, and flip the start to the draw.

    Two lanes a word, the upper first; ``out`` may end with the upper one. The sign bit flips all bits: −1 − y for y.
    """
    found = 0
    mask = np.uint64(0xFFFFFFFF)
    upper, lower = np.uint64(32) - low, np.uint64(64) - low
    signed = np.int64(64) - np.int64(low)
    whole = out.size // 2
    for i in range(whole):
        word = words[i]
        a = np.int64(starts[word >> (np.uint64(32) + unused)])
        b = np.int64(starts[(word & mask) >> unused])
        out[2 * i] = a ^ (np.int64(word << upper) >> signed)
        out[2 * i + 1] = b ^ (np.int64(word << lower) >> signed)
        if (a | b) < 0:
            if a < 0:
                again[found] = 2 * i
                found += 1
            if b < 0:
                again[found] = 2 * i + 1
                found += 1
    if out.size % 2:
        word = words[whole]
        a = np.int64(starts[word >> (np.uint64(32) + unused)])
        out[2 * whole] = a ^ (np.int64(word << upper) >> signed)
        if a < 0:
            again[found] = 2 * whole
            found += 1
    return found


def _judge(
    first: WordArray,
    second: WordArray,
    sizes: WordArray,
    steps: WordArray,
    outcomes: IntArray,
    floats: NDArray[np.float64],
    rate: float,
    values: IntArray,
    verdicts: Verdicts,
) -> None:
    blind, shift, place = sizes[0], sizes[1], sizes[2]
    one = np.uint64(1)
    rest = np.uint64(63) - place
    seen = (one << blind) - one
    within = (one << place) - one
    inside = (one << rest) - one
    unit, fine = 0.5 ** np.float64(blind), 0.5 ** np.float64(rest)
    beyond = floats.shape[0] - 1
    for i in range(first.size):
        a, b = first[i], second[i]
        top = a >> blind
        c = outcomes[(top + steps[top >> shift]) >> shift]
        z = ((c << np.int64(place)) | np.int64((b >> rest) & within)) ^ -np.int64(b >> np.uint64(63))
        values[i] = z
        far = abs(np.float64(z) + np.float64(b & inside) * fine - 0.5)
        near = floats[c, 0]
        q = (far - near) * (far + near) * rate
        e = (
            (((((((_C9 * q + _C8) * q + _C7) * q + _C6) * q + _C5) * q + _C4) * q + _C3) * q + _C2) * q - 1.0
        ) * q + 1.0
        level = floats[c, 1] * e - floats[c, 2]
        u, height, slack = np.float64(a & seen) * unit, floats[c, 3], floats[c, 4]
        small = q <= LARGEST_Q
        no = ((u * height >= level + slack) & small) | (c == beyond)
        yes = ((u + unit) * height <= level - slack) & small
        verdicts[i] = OPEN - 2 * no - yes  # no branch: which it is cannot be foreseen


def look_up_arrays(table: FineTable, words: WordArray, out: IntArray, again: IntArray) -> int:
    """What ``look_up`` gives, by NumPy, for words and lanes of any width."""
    cut = table.cut
    lane = cut.width // cut.lanes
    index = np.uint64(lane - cut.index)
    mask = np.uint64((1 << lane) - 1)
    signed = 64 - cut.place - 1
    found = []
    for j in range(cut.lanes):
        some = out[j :: cut.lanes]
        lanes = words[: some.size] >> np.uint64((cut.lanes - 1 - j) * lane) & mask
        start = table.starts[(lanes >> index).view(np.int64)]
        np.bitwise_xor(start, (lanes << np.uint64(signed)).view(np.int64) >> np.int64(signed), out=some)
        found.append((start < 0).nonzero()[0] * cut.lanes + j)
    places = np.sort(np.concatenate(found))
    again[: places.size] = places
    return int(places.size)


def judge_arrays(table: FineTable, first: WordArray, second: WordArray, values: IntArray, verdicts: Verdicts) -> None:
    """What ``judge`` gives, by NumPy, for words of any width."""
    cut, choice = table.cut, table.choice
    blind, rest = cut.width - cut.choice, cut.width - 1 - cut.place
    top = first >> np.uint64(blind)
    slots = (top + choice.steps[(top >> np.uint64(choice.shift)).view(np.int64)]) >> np.uint64(choice.shift)
    column = table.outcomes[slots.view(np.int64)]
    within = (second >> np.uint64(rest) & np.uint64((1 << cut.place) - 1)).view(np.int64)
    sign = (second >> np.uint64(cut.width - 1)).view(np.int64)
    values[:] = (column << cut.place | within) ^ -sign
    inside = (second & np.uint64((1 << rest) - 1)).astype(np.float64) * 0.5**rest
    far = np.abs(values.astype(np.float64) + inside - 0.5)
    near, share, given, height, slack = table.floats[column].T
    q = (far - near) * (far + near) * 2.0 ** -(2 * cut.sigma + 1)
    small = q <= LARGEST_Q
    q = np.where(small, q, 0.0)
    e = ((((((((_C9 * q + _C8) * q + _C7) * q + _C6) * q + _C5) * q + _C4) * q + _C3) * q + _C2) * q - 1.0) * q + 1.0
    level = share * e - given
    unit = 0.5**blind
    u = (first & np.uint64((1 << blind) - 1)).astype(np.float64) * unit
    verdicts[:] = OPEN
    verdicts[((u + unit) * height <= level - slack) & small] = ACCEPTED
    verdicts[(u * height >= level + slack) & small] = REFUSED
    verdicts[column > cut.columns] = REFUSED
