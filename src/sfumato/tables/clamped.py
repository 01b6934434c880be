"""Values held to a public range: what every sum over rows is made of."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.engines.expressions import Bounds, Term, Value, bounds_of, col, term, written
from sfumato.engines.lattice import check_range
from sfumato.errors import NotDeclared

__all__ = ["Bounds", "Clamped", "clamped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamped:
    """A value of each row, held to a public range."""

    KIND: ClassVar[str] = "measure.value"
    VERSION: ClassVar[int] = 1
    value: Value
    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def width(self) -> Fraction:
        """From low to high."""
        return self.high - self.low


def clamped(value: str | Term, bounds: Bounds) -> Clamped:
    """A value with the range that follows from the declared bounds of its columns.

    >>> found = clamped("age", {"age": (Fraction(0), Fraction(120))})
    >>> found.low, found.high
    (Fraction(0, 1), Fraction(120, 1))
    """
    node: Value = term(col(value) if isinstance(value, str) else value).node
    found = bounds_of(node, bounds)
    if found is None:
        declared = ", ".join(sorted(bounds)) or "none"
        raise NotDeclared(
            f"the range of {written(node)} does not follow from declared bounds, and reading it off the data would "
            f"reveal something about people in it. Nothing was done. Declare bounds={{column: (low, high)}} for the "
            f"table (declared: {declared}), of dates and times their first and last day, or clip the value: "
            "sf.col('x').clip(0, 100)."
        )
    return Clamped(value=node, low=found[0], high=found[1])
