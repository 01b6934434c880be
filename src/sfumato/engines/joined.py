"""Two tables of one engine beside each other, row by row where some columns are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["joined"]


def joined(table: ir.Table, other: ir.Table, *, on: Sequence[tuple[str, str]], named: str) -> ir.Table:
    """All pairs of rows in which the columns ``on`` (here, there) are equal; nothing is equal to what is missing.

    The columns of the other table are called ``named``, a dot and their own name.
    """
    beside = other.view().rename({f"{named}.{column}": column for column in other.columns})
    return table.inner_join(beside, [table[here] == beside[f"{named}.{there}"] for here, there in on])
