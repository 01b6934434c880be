"""The laws of noise on the whole numbers, sampled exactly: discrete Laplace, discrete Gaussian and geometric.

Proof: docs/proofs/exact_samplers.md. Slow references for the same laws: reference.py.
"""

from fractions import Fraction
from functools import lru_cache

from sfumato.core.exact import Exact, natural, positive
from sfumato.noise.columns import ColumnLaw
from sfumato.noise.reference import draw_discrete_gaussian, draw_discrete_laplace, draw_geometric
from sfumato.noise.sampler import KEPT, AnyIntArray, IntArray, Sampler, draw, in_64_bits
from sfumato.noise.words import SystemWords, Words

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "sample_geometric",
]


def discrete_laplace(*, scale: Exact, size: int) -> IntArray:
    """Draw ``size`` independent samples with P(z) = (1 − q)/(1 + q) · q^|z|, q = exp(−1/scale).

    Guarantee: exact for every rational scale; a draw beyond 64 bits is refused instead of wrapped.
    Assumes: what SystemWords assumes.

    >>> len(discrete_laplace(scale=2, size=5))
    5
    """
    exact, many = positive(scale, "scale"), natural(size, "size", least=0)
    return in_64_bits(sample_discrete_laplace(exact, many, SystemWords()))


def discrete_gaussian(*, sigma_squared: Exact, size: int) -> IntArray:
    """Draw ``size`` independent samples with P(z) ∝ exp(−z²/(2·sigma_squared)).

    Guarantee: exact for every rational sigma_squared; a draw beyond 64 bits is refused instead of wrapped.
    Assumes: what SystemWords assumes.

    >>> len(discrete_gaussian(sigma_squared=100, size=5))
    5
    """
    exact, many = positive(sigma_squared, "sigma_squared"), natural(size, "size", least=0)
    return in_64_bits(sample_discrete_gaussian(exact, many, SystemWords()))


def geometric(*, scale: Exact, size: int) -> IntArray:
    """Draw ``size`` independent samples with P(k) = (1 − q)·q^k, k = 0, 1, …, q = exp(−1/scale).

    Guarantee: exact for every rational scale; a draw beyond 64 bits is refused instead of wrapped.
    Assumes: what SystemWords assumes.

    >>> bool((geometric(scale=2, size=5) >= 0).all())
    True
    """
    exact, many = positive(scale, "scale"), natural(size, "size", least=0)
    return in_64_bits(sample_geometric(exact, many, SystemWords()))


def sample_discrete_laplace(scale: Fraction, size: int, words: Words) -> AnyIntArray:
    """Draw from a given source; Python's own whole numbers where the scale is beyond 64 bits."""
    return draw(_laplace(scale), size, words, lambda bits: draw_discrete_laplace(scale, bits))


def sample_discrete_gaussian(sigma_squared: Fraction, size: int, words: Words) -> AnyIntArray:
    """Draw from a given source; Python's own whole numbers where σ is beyond 64 bits."""
    return draw(_gaussian(sigma_squared), size, words, lambda bits: draw_discrete_gaussian(sigma_squared, bits))


def sample_geometric(scale: Fraction, size: int, words: Words) -> AnyIntArray:
    """Draw from a given source; Python's own whole numbers where the scale is beyond 64 bits."""
    return draw(_geometric(scale), size, words, lambda bits: draw_geometric(scale, bits))


@lru_cache(maxsize=KEPT)
def _laplace(scale: Fraction) -> Sampler:
    return Sampler(ColumnLaw(linear=1 / scale, quadratic=Fraction(0), two_sided=True))


@lru_cache(maxsize=KEPT)
def _gaussian(sigma_squared: Fraction) -> Sampler:
    return Sampler(ColumnLaw(linear=Fraction(0), quadratic=1 / (2 * sigma_squared), two_sided=True))


@lru_cache(maxsize=KEPT)
def _geometric(scale: Fraction) -> Sampler:
    return Sampler(ColumnLaw(linear=1 / scale, quadratic=Fraction(0), two_sided=False))
