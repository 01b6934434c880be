"""Products of the coded values of a row, as whole numbers: what a matrix of products is added up from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.engines.expressions import columns_of
from sfumato.engines.lattice import Lattice
from sfumato.engines.operands import double, whole
from sfumato.engines.sufficient_statistics import ROOM, Columns, Places
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["BITS", "RowProduct", "RowProducts"]

BITS = 15
ROOT = 1 << BITS
"""What 1 is on the lattice of a number; a product of two of them is 2^30."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProduct:
    """A product of the values of a row, each named by its place: powers of numbers, signs, and levels to be met."""

    powers: tuple[tuple[int, int], ...] = ()
    signs: tuple[int, ...] = ()
    levels: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProducts:
    """Products of coded values: numbers from −1 to 1, signs, and indicators of levels; the first is 1.

    A number has a lattice of 2^15 steps, a factor one with a point for each level. Rows in which any value is missing
    count as nothing. A person with more complete rows than the limit counts as that many times the mean of them.

    Guarantee: each product is a whole number within ±2^30, one of squares and indicators is not negative, and where a
    level is not met it is 0: whatever the row holds, and whichever way an engine rounds doubles.
    """

    lattices: tuple[Lattice, ...]
    products: tuple[RowProduct, ...]

    def __post_init__(self) -> None:
        if not self.products or self.products[0] != RowProduct():
            raise InvalidInput("the first product is that of no value, which is 1; nothing was done.")
        for each in self.products:
            for place, power in each.powers:
                natural(power, "power", most=6)
                if self.lattices[place].steps != ROOT:
                    raise InvalidInput("a number has a lattice of 2^15 steps; nothing was done.")

    @property
    def height(self) -> int:
        """What 1 is."""
        return ROOT * ROOT

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table that it needs."""
        return frozenset[str]().union(*(columns_of(lattice.value) for lattice in self.lattices))

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """One whole number for each product."""
        import ibis

        held = [places[lattice] for lattice in self.lattices]
        together = held[0]
        for place in held[1:]:
            together = together + place
        missing = together.isnull()
        return [ibis.ifelse(missing, whole(0), _product(each, held)) for each in self.products]

    def of_record(self, row: Columns) -> Columns:
        """As it is."""
        return row

    def of_person(self, sums: Columns, rows: int) -> Columns:
        """Scaled down to ``rows`` rows' worth where a person has more complete rows, and rounded toward 0."""
        import ibis

        most = rows * self.height
        share = double(most * (1 - ROOM)) / ibis.greatest(sums[0], whole(1)).cast("float64")
        scaled = [part.cast("float64") * share for part in sums]
        held = [ibis.ifelse(part < double(0.0), part.ceil(), part.floor()).cast("int64") for part in scaled]
        return [ibis.ifelse(sums[0] > whole(most), less, part) for part, less in zip(sums, held, strict=True)]


def _product(each: RowProduct, held: Columns) -> ir.Value:
    import ibis

    centred = [held[place] * 2 - whole(ROOT) for place, power in each.powers for _ in range(power)]
    found = whole(ROOT**2)
    if centred:
        found = centred[0] * (centred[1] if len(centred) > 1 else whole(ROOT))
    for factor in centred[2:]:  # lifted above 0 before digits are dropped: engines differ in how they shift below it
        found = ((found * factor + whole(ROOT**3)) >> BITS) - whole(ROOT**2)
    for place in each.signs:
        found = found * (held[place] * 2 - whole(1))
    for place, level in each.levels:
        found = ibis.ifelse(held[place] == whole(level), found, whole(0))
    return found
