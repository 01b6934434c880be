"""The secret number of runs of a search, drawn exactly."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

from sfumato.core.hidden_runs import run_weights
from sfumato.noise.words import WordBits, Words

__all__ = ["sample_run_number"]


def sample_run_number(eta: Fraction, gamma: Fraction, most: int, words: Words) -> int:
    """How many runs count, from 1 to ``most``: a truncated negative binomial number, given that it is not above that.

    Guarantee: exact for every rational η and γ; the weights are whole numbers, and one of them is drawn without bias.
    Sensitive: the result.

    >>> from sfumato.noise import SystemWords
    >>> sample_run_number(Fraction(1), Fraction(1, 2), 1, SystemWords())
    1
    """
    ends = list(accumulate(run_weights(eta, gamma, most)))
    return bisect_right(ends, WordBits(words).below(ends[-1])) + 1
