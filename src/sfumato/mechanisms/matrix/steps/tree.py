"""The tree: totals of blocks of a, a², a³, … steps, each released when it is full."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.mechanisms.matrix.steps.pattern import Pattern

__all__ = ["Tree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Measure every full block of arity^level steps, level 0, 1, …; the total after t steps adds up few of them.

    With ``arity`` 2 it is the binary tree of the textbooks. Each step lies in one block a level.

    >>> tree = Tree(arity=2, horizon=4, bits=0)
    >>> tree.levels, tree.numbers, tree.squared(Pattern(times=1, separation=1, change="added"))
    (3, 7, 3)
    """

    KIND: ClassVar[str] = "strategy.tree"
    VERSION: ClassVar[int] = 1
    arity: int
    horizon: int
    bits: int

    def __post_init__(self) -> None:
        natural(self.arity, "arity", least=2, most=2**16)
        natural(self.horizon, "horizon", most=2**40)
        natural(self.bits, "bits", least=0, most=40)

    @property
    def levels(self) -> int:
        """How many sizes of blocks there are: those that fit into the horizon."""
        count, size = 1, self.arity
        while size <= self.horizon:
            count, size = count + 1, size * self.arity
        return count

    @property
    def numbers(self) -> int:
        """How many numbers are released in all."""
        return self.numbers_after(self.horizon)

    def numbers_after(self, steps: int) -> int:
        """How many blocks are full after a number of steps."""
        return sum(steps // self.arity**level for level in range(self.levels))

    def blocks(self, steps: int) -> int:
        """How many blocks make up the total after a number of steps: the sum of its digits, the first one unbounded.

        >>> Tree(arity=2, horizon=7, bits=0).blocks(7)
        3
        """
        found = 0
        for _ in range(self.levels - 1):
            steps, digit = divmod(steps, self.arity)
            found += digit
        return found + steps

    def squared(self, pattern: Pattern) -> int:
        """A bound on Σ D²: on each level, as many of a unit's steps in one block as fit; exact for one step.

        Proof: docs/proofs/streams.md
        """
        found = 0
        for level in range(self.levels):
            size: int = self.arity**level
            fit = min(pattern.times, -(-size // pattern.separation))
            full, rest = divmod(min(pattern.times, -(-self.horizon // pattern.separation)), fit)
            found += full * fit**2 + rest**2
        return pattern.squares * found << 2 * self.bits

    def absolute(self, pattern: Pattern) -> int:
        """Σ |D|: each step of a unit lies in one block a level."""
        times = min(pattern.times, -(-self.horizon // pattern.separation))
        return pattern.sums * times * self.levels << self.bits
