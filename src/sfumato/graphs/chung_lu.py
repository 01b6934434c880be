"""A compiled sampler of graphs with given expected degrees. Nothing private is read here."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.extras import need

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["chung_lu"]

GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)


def chung_lu(degrees: "NDArray[np.float64]", seed: int) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """The edges of a graph on nodes in order of falling degree; each pair independently with min(1, dᵢdⱼ/Σd).

    From node i on, the chances only fall: skips at the chance of the last pair are thinned to that of the next one.

    >>> head, tail = chung_lu(np.array([3.0, 3.0, 3.0, 3.0]), 7)
    >>> bool((head < tail).all())
    True
    """
    room = int(degrees.sum()) + 64
    while True:
        head, tail = np.empty(room, np.int64), np.empty(room, np.int64)
        found = int(_loop()(degrees, np.array([seed], np.uint64), head, tail))
        if found <= room:
            return head[:found], tail[:found]
        room = found


@lru_cache(maxsize=1)
def _loop() -> Callable[..., int]:
    compiled: Callable[..., int] = need("numba", "pip install 'sfumato[graphs]'").njit(cache=True)(_pairs)
    return compiled


def _pairs(
    degrees: "NDArray[np.float64]", counter: "NDArray[np.uint64]", head: "NDArray[np.int64]", tail: "NDArray[np.int64]"
) -> int:
    """Fill in the edges as far as there is room, and give how many there are."""
    n, total, found = len(degrees), degrees.sum(), 0
    for i in range(n - 1):
        j = i + 1
        chance = min(1.0, degrees[i] * degrees[j] / total) if total > 0 else 0.0
        while j < n and chance > 0.0:
            for purpose in range(2):
                counter[0] += GOLDEN
                z = counter[0]
                z = (z ^ (z >> S30)) * MIX_1
                z = (z ^ (z >> S27)) * MIX_2
                z = z ^ (z >> S31)
                uniform = np.float64(z >> S11) * 2.0**-53
                if purpose == 0:
                    if chance < 1.0:
                        j += int(min(math.log(1.0 - uniform) / math.log(1.0 - chance), float(n)))
                    if j >= n:
                        break
                else:
                    here = min(1.0, degrees[i] * degrees[j] / total)
                    if uniform * chance < here:
                        if found < len(head):
                            head[found] = i
                            tail[found] = j
                        found += 1
                    chance = here
                    j += 1
    return found
