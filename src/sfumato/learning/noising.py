"""Noise on one sum whose lattice is its own: where the clip moves, the pitch moves with it."""

from fractions import Fraction

from torch import Tensor

from sfumato.learning.lattice import NoisyLattice
from sfumato.noise import SystemWords, Words

__all__ = ["noised"]


def noised(total: Tensor, pitch: Fraction, words: Words) -> Tensor:
    """A flat sum on its lattice with fresh noise. Sensitive: ``total``; public: the result."""
    own = None if isinstance(words, SystemWords) else words
    return NoisyLattice(pitch=pitch, size=total.numel(), words=own).release(total)
