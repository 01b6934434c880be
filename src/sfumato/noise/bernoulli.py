"""Coins of probability exp(−γ), tossed exactly.

Proof: docs/proofs/exact_samplers.md
"""

from fractions import Fraction

import numpy as np

from sfumato.core.exact import Exact, natural, non_negative
from sfumato.noise.uniform import SPARE, Uniform, fixed_exp
from sfumato.noise.words import SystemWords, Words

__all__ = ["bernoulli_exp", "sample_bernoulli_exp"]

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]


def bernoulli_exp(*, gamma: Exact, size: int) -> BoolArray:
    """Toss ``size`` independent coins that are True with probability exp(−gamma), gamma ≥ 0.

    Guarantee: exact for every rational gamma.
    Assumes: what SystemWords assumes.

    >>> bernoulli_exp(gamma=0, size=2).tolist()
    [True, True]
    """
    return sample_bernoulli_exp(non_negative(gamma, "gamma"), natural(size, "size", least=0), SystemWords())


def sample_bernoulli_exp(gamma: Fraction, size: int, words: Words) -> BoolArray:
    """Toss from a given source: a word is the beginning of a uniform number, and the coin asks if it is below exp(−γ).

    Only a word that the threshold itself begins with leaves that open; then more words are drawn.
    """
    if not gamma:
        return np.ones(size, dtype=np.bool_)
    place = np.empty(size, dtype=np.uint64)
    words.fill(place)
    ends = fixed_exp(gamma, words.width + SPARE)
    low, high = (np.uint64(min(end >> SPARE, (1 << words.width) - 1)) for end in ends)
    heads: BoolArray = place < low
    for i in ((place >= low) & (place <= high)).nonzero()[0]:
        heads[i] = Uniform(words, prefix=int(place[i]), bits=words.width).below_exp(gamma)
    place.fill(0)
    return heads
