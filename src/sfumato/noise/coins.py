"""Coins of dyadic probability, tossed exactly.

Proof: docs/proofs/optimal_selection.md
"""

from collections.abc import Sequence

import numpy as np

from sfumato.noise.bernoulli import BoolArray
from sfumato.noise.words import Words

__all__ = ["sample_coins"]


def sample_coins(chances: Sequence[int], bits: int, words: Words) -> BoolArray:
    """Toss one coin for each chance, which is in units of 2^−bits: True if that many uniform bits are below it.

    Guarantee: exact. As many words are drawn for a coin of chance 0 or 1 as for any other: nothing but the number of
    coins decides how many.

    >>> from sfumato.noise import SystemWords
    >>> sample_coins([0, 256], 8, SystemWords()).tolist()
    [False, True]
    """
    parts = -(-bits // words.width)
    drawn = np.empty(parts * len(chances), dtype=np.uint64)
    words.fill(drawn)
    rows = drawn.reshape(parts, len(chances))
    surplus, mask = parts * words.width - bits, (1 << words.width) - 1
    heads = np.array([chance >> bits > 0 for chance in chances], dtype=np.bool_)
    open_still = ~heads
    for part in range(parts):
        shift = (parts - 1 - part) * words.width
        limits = np.array([(chance << surplus) >> shift & mask for chance in chances], dtype=np.uint64)
        heads |= open_still & (rows[part] < limits)
        open_still &= rows[part] == limits
    drawn.fill(0)
    return heads
