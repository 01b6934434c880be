"""Where randomness comes from: the operating system's generator, and nothing with a seed.

Single draws ask for it directly; words.py has it in bulk.
"""

import secrets
from typing import Protocol

__all__ = ["Bits", "SystemBits"]


class Bits(Protocol):
    """A source of uniform whole numbers; an argument of every sampler, so that tests can enumerate it."""

    def below(self, bound: int) -> int:
        """Draw uniformly from 0, 1, …, bound − 1."""
        ...


class SystemBits:
    """The operating system's generator.

    >>> SystemBits().below(1)
    0
    """

    __slots__ = ()

    def below(self, bound: int) -> int:
        """Draw uniformly from 0, 1, …, bound − 1, without bias."""
        return secrets.randbelow(bound)
