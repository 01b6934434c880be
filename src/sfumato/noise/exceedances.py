"""Where noise reaches a threshold, among very many numbers: found without drawing the noise of each.

Proof: docs/proofs/synthetic_graph.md
"""

from fractions import Fraction

import numpy as np

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.noise.lattice import sample_geometric
from sfumato.noise.sampler import IntArray
from sfumato.noise.selection import sample_intervals
from sfumato.noise.uniform import SPARE
from sfumato.noise.words import Words

__all__ = ["MOST_PLACES", "chance_of_reaching", "sample_exceedances"]

MOST_PLACES = 2**46
BATCH = 2**15  # this many skips, none above MOST_PLACES, add up to less than 2^63
FINE = 40  # significant bits of the rate of the skips


def chance_of_reaching(scale: Fraction, threshold: int, *, bits: int = 128) -> Enclosure:
    """P[Z ≥ threshold] for discrete Laplace noise Z: q^t/(1 + q) for t ≥ 0, and 1 − q^(1 − t)/(1 + q) below.

    >>> float(chance_of_reaching(Fraction(1), 1).low)
    0.2689414213699951
    """
    beyond = threshold if threshold >= 0 else 1 - threshold
    tail = enclosures.exp(-beyond / scale, bits=bits) / (1 + enclosures.exp(-1 / scale, bits=bits))
    return tail if threshold >= 0 else 1 - tail


def sample_exceedances(scale: Fraction, threshold: int, places: int, words: Words) -> IntArray:
    """Which of ``places`` independent discrete Laplace draws reach a threshold, in rising order.

    Guarantee: exact: each place is given with probability P[Z ≥ threshold], independently. A geometric skip finds the
    next place with a rational rate that is a little too high, and an exact coin takes the surplus away: time and
    memory go with the number of places that are found. Assumes: ``places`` is at most 2^46.

    >>> from sfumato.noise import SystemWords
    >>> bool((sample_exceedances(Fraction(1), -60, 3, SystemWords()) == [0, 1, 2]).all())  # fails once in e^60
    True
    """
    rate = _rate(scale, threshold)
    found, last = [], -1
    while last < places:
        skips = np.minimum(sample_geometric(1 / rate, _batch(rate, places), words), MOST_PLACES)
        reached = last + np.cumsum(skips.astype(np.int64) + 1)
        last = int(reached[-1])
        found.append(reached[reached < places])
    candidates = np.concatenate(found)
    kept = sample_intervals(lambda bits: _kept(scale, threshold, rate, bits), len(candidates), words) == 0
    taken: IntArray = candidates[kept]
    return taken


def _rate(scale: Fraction, threshold: int) -> Fraction:
    """The least x on a grid of FINE significant bits for which 1 − exp(−x) is surely at least the chance."""
    bits = 128
    while True:
        rest = 1 - chance_of_reaching(scale, threshold, bits=bits)
        if rest.low > 0:
            least = -enclosures.log(rest.low, bits=bits).low
            if least > 0:
                break
        bits *= 2
    size = FINE - (least.numerator.bit_length() - least.denominator.bit_length())
    unit = Fraction(1, 1 << size) if size >= 0 else Fraction(1 << -size)
    return (least // unit + 1) * unit


def _batch(rate: Fraction, places: int) -> int:
    """About as many skips as lead past all places."""
    expected = int(places * rate) if rate < 1 else places
    return min(expected + 16, BATCH)


def _kept(scale: Fraction, threshold: int, rate: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Enclose the ends of two intervals of [0, 1): candidates that stay, and candidates that go."""
    fine = bits + 2 * SPARE - (rate.numerator.bit_length() - rate.denominator.bit_length())
    fine = max(fine, bits + 2 * SPARE)
    share = chance_of_reaching(scale, threshold, bits=fine) / (1 - enclosures.exp(-rate, bits=fine))
    last = 1 << bits
    low, high = (int(end * last // 1) for end in (share.low, share.high))
    return [min(low, last - 1), last], [min(high, last - 1), last]
