"""Values on a lattice: rounded to whole numbers by the engine, row by row, before anything is added up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.engines.expressions import Value
from sfumato.engines.operands import double, whole
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["MOST_STEPS", "Lattice", "check_range", "on_lattice"]

MOST_STEPS = 2**40
TINY = 2.0**-60  # of the range: far below half a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """A value held to [low, high] and rounded to the nearest of ``steps`` + 1 points, low at 0, high at ``steps``."""

    value: Value
    low: Fraction
    high: Fraction
    steps: int

    def __post_init__(self) -> None:
        natural(self.steps, "steps", most=MOST_STEPS)
        check_range(self.low, self.high)


def check_range(low: Fraction, high: Fraction) -> None:
    """Refuse a range that is empty, or that double precision cannot tell apart.

    >>> check_range(Fraction(3), Fraction(3))
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: the bounds 3 and 3 leave no range to measure in; nothing was done. Give a low below ...
    """
    if low >= high:
        raise InvalidInput(
            f"the bounds {low} and {high} leave no range to measure in; nothing was done. Give a low below the high."
        )
    furthest = max(abs(low), abs(high))
    if high - low < Fraction(1, 2**900) or furthest > 2**1000 or furthest > (high - low) * 2**50:
        raise InvalidInput(
            "the bounds are too close together, or too far apart, for double precision; nothing was done."
        )


def on_lattice(lattice: Lattice, given: ir.Value) -> ir.IntegerValue:
    """The number of the lattice point that is nearest to a value, as 64 bits; null where that is missing.

    Guarantee: a whole number from 0 to ``steps``, whatever the row holds; a function of that row alone. Doubles are
    rounded the same way by every engine, and the bound does not rest on that.
    """

    low, high = float(lattice.low), float(lattice.high)
    scale = float(lattice.steps / (lattice.high - lattice.low))
    number = given.cast("float64")
    # A product too small for a double raises on PostgreSQL, and then a failure would reveal what a row holds: what is
    # a speck above the low end is put on it, where it would be rounded to anyway.
    held = _held(number, double(low + (high - low) * TINY), double(low), double(high))
    place = ((held - double(low)) * double(scale) + double(0.5)).floor()
    return _held(place, whole(0), whole(0), whole(lattice.steps))


def _held(number: ir.Value, least: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """To at most ``high``, and to ``low`` where it is below ``least``; null stays null: no comparison with it holds."""
    import ibis

    return ibis.cases((number < least, low), (number > high, high), else_=number)
