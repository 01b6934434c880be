"""Samples of units: each unit is in with the same rational probability, by itself and in secret.

Proof: docs/proofs/training.md
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.noise.selection import sample_permutation
from sfumato.noise.words import WordBits, Words

__all__ = ["poisson_sample", "shuffled_sample"]

PART = 16  # bits of a word that a unit's number begins with; one in 2^16 units takes more


def poisson_sample(number: int, rate: Fraction, words: Words) -> npt.NDArray[np.int64]:
    """The places of the units that were drawn, out of ``number``, in order; each is in with probability ``rate``.

    Guarantee: exact for every rational rate. A quarter of a word is drawn a unit, the beginning of a uniform number,
    which is compared with the rate; only where both begin alike is more drawn. Sensitive: the places, and how many
    there are.

    >>> from sfumato.noise import SystemWords
    >>> poisson_sample(3, Fraction(1), SystemWords()).tolist()
    [0, 1, 2]
    """
    if rate == 1:
        return np.arange(number)
    parts = 64 // PART if words.width == 64 else 1
    place = np.empty(-(-number // parts), dtype=np.uint64)
    words.fill(place)
    begun = place.view(f"u{8 // parts}")[:number]
    scaled = rate * (1 << words.width // parts)
    whole = int(scaled)
    drawn = begun < whole
    rest = scaled - whole
    for at in (begun == whole).nonzero()[0]:
        drawn[at] = WordBits(words).below(rest.denominator) < rest.numerator
    place.fill(0)
    return np.asarray(drawn.nonzero()[0], dtype=np.int64)


def shuffled_sample(number: int, rate: Fraction, words: Words) -> npt.NDArray[np.int64]:
    """A Poisson sample in a uniformly random order.

    Guarantee: with one unit more, samples can be paired so that of all others at most one lies elsewhere: the unit
    takes the place of another, which goes to the end. So floats of two physical batches at most can differ, whatever
    their kernels do with a place. Sensitive: the places, and how many there are.
    """
    drawn = poisson_sample(number, rate, words)
    return np.asarray(drawn[sample_permutation(len(drawn), words)])
