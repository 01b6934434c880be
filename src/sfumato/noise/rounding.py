"""The Gaussian distribution rounded to whole numbers, sampled exactly: the noise of the Gaussian mechanism.

Proof: docs/proofs/gaussian.md
"""

from fractions import Fraction
from functools import lru_cache

from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.noise.columns import ColumnLaw
from sfumato.noise.sampler import KEPT, IntArray, Sampler
from sfumato.noise.words import SystemWords, Words

__all__ = ["rounded_gaussian", "sample_rounded_gaussian"]

LARGEST = 2**50


def rounded_gaussian(*, sigma: Exact, size: int) -> IntArray:
    """Draw ``size`` independent samples of the nearest whole number to N(0, σ²).

    Guarantee: exact for every rational σ below 2^50. Assumes: what SystemWords assumes.

    >>> len(rounded_gaussian(sigma=10, size=5))
    5
    """
    return sample_rounded_gaussian(positive(sigma, "sigma"), natural(size, "size", least=0), SystemWords())


def sample_rounded_gaussian(sigma: Fraction, size: int, words: Words) -> IntArray:
    """Draw from a given source."""
    return _rounded(sigma).draw(size, words)


@lru_cache(maxsize=KEPT)
def _rounded(sigma: Fraction) -> Sampler:
    if sigma >= LARGEST:
        raise InvalidInput("sigma must be below 2^50 lattice steps; nothing was drawn. Use a coarser lattice.")
    law = ColumnLaw(linear=Fraction(0), quadratic=1 / (2 * Fraction(sigma) ** 2), two_sided=True, rounded=True)
    return Sampler(law)
