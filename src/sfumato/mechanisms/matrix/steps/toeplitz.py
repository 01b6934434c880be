"""Toeplitz strategies: what is measured at a step is a fixed mix of the steps before it.

With c = (1, 0, 0, …) each step is measured by itself, with c = (1, 1, 1, …) each total; the square root of the matrix
of totals lies between the two. All of it is whole numbers in units of 2^−bits. Proof: docs/proofs/streams.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.pattern import Pattern

__all__ = ["FORMS", "LONGEST", "Toeplitz", "moves"]

FORMS = ("square root", "increments", "totals")
LONGEST = 2**16
GUARD = 64  # bits below the lattice with which the coefficients are worked out, before they are rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Toeplitz:
    """Measure y_t = Σ_k c_k·x_(t−k) at every step t of ``horizon``.

    ``form`` is ``square root`` (c_k = C(2k, k)/4^k, rounded to the lattice), ``increments`` or ``totals``. The
    coefficients are whole, never negative and never rise: that is what :meth:`squared` rests on.

    >>> Toeplitz(form="square root", horizon=3, bits=3).column
    (8, 4, 3)
    """

    KIND: ClassVar[str] = "strategy.toeplitz"
    VERSION: ClassVar[int] = 1
    form: str
    horizon: int
    bits: int

    def __post_init__(self) -> None:
        natural(self.horizon, "horizon", most=LONGEST)
        natural(self.bits, "bits", least=0, most=40)
        if self.form not in FORMS:
            raise InvalidInput(f"the form of a strategy is one of {', '.join(FORMS)}; nothing was done.")

    @property
    def column(self) -> tuple[int, ...]:
        """c_0, c_1, …, c_(horizon − 1) in units of 2^−bits."""
        return _column(self.form, self.horizon, self.bits)

    def squared(self, pattern: Pattern) -> int:
        """The largest Σ D_t², D = C·Δ, where a unit counts by at most 1 in each step of the pattern; exact.

        Guarantee: attained at the earliest places of the pattern. Proof: docs/proofs/streams.md

        >>> Toeplitz(form="totals", horizon=3, bits=0).squared(Pattern(times=3, separation=1, change="added"))
        14
        """
        return pattern.squares * sum(move * move for move in moves(self.column, pattern))

    def absolute(self, pattern: Pattern) -> int:
        """The largest Σ |D_t|; exact."""
        return pattern.sums * sum(moves(self.column, pattern))

    @property
    def numbers(self) -> int:
        """How many numbers are released in all."""
        return self.horizon


def moves(column: Sequence[int], pattern: Pattern) -> list[int]:
    """How far a unit at the earliest places of a pattern moves each step, counting by 1: Σ_i c_(t − i·separation).

    >>> moves((4, 2, 1), Pattern(times=2, separation=1, change="added"))
    [4, 6, 3]
    """
    gap, reach = pattern.separation, pattern.times * pattern.separation
    found: list[int] = []
    for step, own in enumerate(column):
        before = found[step - gap] if step >= gap else 0
        gone = column[step - reach] if step >= reach else 0
        found.append(before + own - gone)
    return found


@lru_cache(maxsize=32)
def _column(form: str, horizon: int, bits: int) -> tuple[int, ...]:
    one = 1 << bits
    if form == "increments":
        return (one, *(0 for _ in range(horizon - 1)))
    if form == "totals":
        return tuple(one for _ in range(horizon))
    fine, found = one << GUARD, []
    for k in range(horizon):
        fine = fine * (2 * k - 1) // (2 * k) if k else fine
        found.append((fine + (1 << (GUARD - 1))) >> GUARD)
    return tuple(found)
