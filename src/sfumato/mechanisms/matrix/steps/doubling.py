"""Doubling: a stream whose end nobody knows, as blocks of twice the length of the block before."""

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz

__all__ = ["BLOCKS", "FIRST", "Doubling"]

FIRST, BLOCKS = 64, 11
GUARD = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubling:
    """Measure each block of ``first``, 2·first, 4·first, … steps by the square root for its own length.

    The columns of all blocks are scaled to the same length, so that one noise serves them all; the total adds up the
    last totals of the blocks before. An event lies in one block. There are ``blocks`` of them: the error grows with
    the steps made, not with the steps that might come.

    >>> Doubling(first=2, blocks=3, bits=4).horizon
    14
    """

    KIND: ClassVar[str] = "strategy.doubling"
    VERSION: ClassVar[int] = 1
    first: int
    blocks: int
    bits: int

    def __post_init__(self) -> None:
        natural(self.first, "first")
        natural(self.blocks, "blocks", most=16)
        natural(self.first << (self.blocks - 1), "the last block", most=2**16)
        natural(self.bits, "bits", least=0, most=40)

    @property
    def horizon(self) -> int:
        """How many steps all blocks have together."""
        return self.first * ((1 << self.blocks) - 1)

    @property
    def numbers(self) -> int:
        """How many numbers are released in all."""
        return self.horizon

    def column(self, block: int) -> tuple[int, ...]:
        """The coefficients of a block, of length about 1 in units of 2^−bits."""
        return _scaled(self.first << block, self.bits)

    def squared(self, pattern: Pattern) -> int:
        """A bound on Σ D²: the longest column of all blocks times the square of the steps of a unit; exact for 1.

        >>> one = Pattern(times=1, separation=1, change="added")
        >>> abs(Doubling(first=2, blocks=3, bits=10).squared(one) / 4**10 - 1) < 0.01
        True
        """
        longest = max(sum(one * one for one in self.column(block)) for block in range(self.blocks))
        return pattern.squares * pattern.times**2 * longest

    def absolute(self, pattern: Pattern) -> int:
        """A bound on Σ |D|."""
        return pattern.sums * pattern.times * max(sum(self.column(block)) for block in range(self.blocks))


@lru_cache(maxsize=32)
def _scaled(size: int, bits: int) -> tuple[int, ...]:
    fine = Toeplitz(form="square root", horizon=size, bits=GUARD).column
    length = isqrt(sum(one * one for one in fine))
    return tuple(((one << bits) + length // 2) // length for one in fine)
