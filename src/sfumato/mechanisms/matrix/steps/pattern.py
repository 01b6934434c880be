"""Patterns: at which steps of a stream one protected unit can count."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput

__all__ = ["ADDED", "SWAPPED", "Pattern"]

ADDED, SWAPPED = "added", "swapped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One unit counts in at most ``times`` steps, any two of them at least ``separation`` steps apart.

    ``change`` says what neighbours are: a unit ``added`` or removed, or ``swapped`` for another, where units only count
    upwards. Public: all of it.

    >>> Pattern(times=1, separation=1, change="added").places(horizon=4)
    [0]
    """

    KIND: ClassVar[str] = "stream.pattern"
    VERSION: ClassVar[int] = 1
    times: int
    separation: int
    change: str

    def __post_init__(self) -> None:
        natural(self.times, "times")
        natural(self.separation, "separation")
        if self.change not in (ADDED, SWAPPED):
            raise InvalidInput(f"the change of a pattern is {ADDED} or {SWAPPED}; nothing was done.")

    @classmethod
    def of(cls, relation: Relation, *, times: int, separation: int) -> "Pattern":
        """The pattern of a relation."""
        change = ADDED if relation is Relation.ADD_REMOVE else SWAPPED
        return cls(times=times, separation=separation, change=change)

    def places(self, horizon: int) -> list[int]:
        """The earliest places that the pattern allows: 0, separation, 2·separation, …"""
        return list(range(0, horizon, self.separation))[: self.times]

    @property
    def squares(self) -> int:
        """By what the square of a unit's l2 move is multiplied for a swap: see docs/proofs/streams.md.

        Two moves without a negative number in them differ by at most √2 times the longer one.
        """
        return 1 if self.change == ADDED else 2

    @property
    def sums(self) -> int:
        """By what a unit's l1 move is multiplied for a swap."""
        return 1 if self.change == ADDED else 2
