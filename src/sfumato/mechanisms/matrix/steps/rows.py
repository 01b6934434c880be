"""A strategy that is written out: the optimum of a short horizon."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.pattern import Pattern

__all__ = ["MOST", "Rows", "optimal"]

MOST = 1024
BITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Measure y_t = Σ_s rows[t][s]·x_s for s ≤ t, in units of 2^−bits; row t has t + 1 numbers.

    >>> Rows(rows=((4,), (2, 3)), bits=2).squared(Pattern(times=1, separation=1, change="added"))
    20
    """

    KIND: ClassVar[str] = "strategy.rows"
    VERSION: ClassVar[int] = 1
    rows: tuple[tuple[int, ...], ...]
    bits: int

    def __post_init__(self) -> None:
        natural(self.bits, "bits", least=0, most=40)
        natural(len(self.rows), "the number of rows", most=MOST)
        if any(len(row) != place + 1 or not row[place] for place, row in enumerate(self.rows)):
            raise InvalidInput("row t of a strategy has t + 1 numbers, the last of them not 0; nothing was done.")
        if any(max(row) >= 2**62 or min(row) <= -(2**62) for row in self.rows):
            raise InvalidInput("the numbers of a strategy fit 64 bits, with room; nothing was done.")

    @property
    def horizon(self) -> int:
        """How many steps it is for."""
        return len(self.rows)

    @property
    def numbers(self) -> int:
        """How many numbers are released in all."""
        return len(self.rows)

    def squared(self, pattern: Pattern) -> int:
        """A bound on Σ D²: the longest column, times the square of how many steps change; exact for one added step."""
        longest = max(sum(row[place] ** 2 for row in self.rows[place:]) for place in range(self.horizon))
        return self._steps(pattern) ** 2 * longest

    def absolute(self, pattern: Pattern) -> int:
        """A bound on Σ |D|."""
        longest = max(sum(abs(row[place]) for row in self.rows[place:]) for place in range(self.horizon))
        return self._steps(pattern) * longest

    def _steps(self, pattern: Pattern) -> int:
        return pattern.sums * min(pattern.times, self.horizon)


@lru_cache(maxsize=4)
def optimal(horizon: int) -> Rows:
    """The strategy of least mean squared error for one added step, to the lattice; up to ``MOST`` steps."""
    from sfumato.mechanisms.matrix import Matrix, prefix

    if horizon == 1:
        return Rows(rows=((1 << BITS,),), bits=BITS)
    found = Matrix.optimal(prefix(natural(horizon, "horizon", most=MOST)), bits=BITS)
    whole = found.strategy.tolist()
    if found.bits != BITS or any(any(row[place + 1 :]) for place, row in enumerate(whole)):
        raise InvalidInput("the optimum of this horizon cannot be released step by step; nothing was done.")
    return Rows(rows=tuple(tuple(row[: place + 1]) for place, row in enumerate(whole)), bits=found.bits)
