"""The caps that a private choice is made from, and how many nodes stand in the way of each.

Proof: docs/proofs/node_level.md
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.core.exact import natural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LOST", "caps_up_to", "in_the_way"]

LOST = 4
"""A cap D suits a graph whose degrees exceed it by no more than D/4 in all."""


def caps_up_to(largest: int, least: int) -> tuple[int, ...]:
    """Doubling from ``least`` up to the declared cap, which is the last one.

    >>> caps_up_to(100, 16)
    (16, 32, 64, 100)
    """
    caps, cap = [], natural(least, "least")
    while cap < natural(largest, "largest"):
        caps.append(cap)
        cap *= 2
    return (*caps, largest)


def in_the_way(degrees: "NDArray[np.int64]", caps: Sequence[int], *, ends: int = 1) -> list[int]:
    """For each cap D the least t such that D suits the graph once t nodes may be left out. Sensitive.

    The t nodes of largest degree are left out, and each of them may have been a neighbour of every other node: of the
    rest, what their degrees exceed D + t·``ends`` by adds up to at most D/4. ``ends`` is how many edges two nodes
    share at the most: 2 in directed graphs.

    Guarantee: a node more, whatever its edges, raises each of these numbers by 0 or 1. Enumerated over all small
    graphs. Proof: docs/proofs/node_level.md

    >>> import numpy as np
    >>> in_the_way(np.array([9, 7, 1, 1, 1]), [2, 4, 8, 16])
    [2, 2, 0, 0]
    """
    import numpy as np

    falling = np.sort(np.asarray(degrees, dtype=np.int64))[::-1]
    sums = np.concatenate([[0], np.cumsum(falling)])
    rising = falling[::-1]

    def suits(cap: int, left_out: int) -> bool:
        most = cap + left_out * ends
        above = len(rising) - int(np.searchsorted(rising, most, side="right"))
        if above <= left_out:
            return True
        return LOST * (int(sums[above] - sums[left_out]) - (above - left_out) * most) <= cap

    found = []
    for cap in caps:
        low, high = 0, len(falling)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if suits(cap, middle) else (middle + 1, high)
        found.append(low)
    return found
