"""Rows spread over splines, by cell: each row is one row in all, in whole numbers that no rounding carries above that.

The engine counts rows by cell and lattice points, a person's share limited first; the spreading is a table of public
whole numbers, so it is the same wherever it is worked out. Proof: docs/proofs/regression.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from sfumato.engines.contribution_limits import KeyColumn, Share
from sfumato.engines.expressions import Expression
from sfumato.engines.lattice import Lattice
from sfumato.engines.quantile_counts import rows_by_values
from sfumato.engines.totals import whole_numbers
from sfumato.studies.regression.splines import UNIT, SplineBasis

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np

    Wholes = np.ndarray[tuple[int], np.dtype[np.int64]]

__all__ = ["HEIGHT", "lattice_names", "spline_totals", "spread_over_splines"]

HEIGHT = UNIT
"""What one row is in all."""
BITS = UNIT.bit_length() - 1
CHUNK = 1 << 20  # rows that are spread at once


def spline_totals(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    lattices: Sequence[Lattice],
    bases: Sequence[SplineBasis],
) -> list[int]:
    """Rows by cell of the product of ``keys`` and product of splines, the last spline running fastest, times 2^30.

    Rows in which a value is missing do not count. Sensitive: all of it is exact.
    """
    named = dict(zip(lattice_names(len(lattices)), lattices, strict=True))
    found = whole_numbers(rows_by_values(table, where=where, keys=keys, share=share, lattices=named))
    spread: list[int] = spread_over_splines(found, bases, cells=prod(key.size for key in keys)).tolist()
    return spread


def lattice_names(many: int) -> list[str]:
    """What the columns of lattice points are called."""
    return [f"value{place}" for place in range(many)]


def spread_over_splines(found: Mapping[str, Wholes], bases: Sequence[SplineBasis], *, cells: int) -> Wholes:
    """Counts of rows by ``cell`` and lattice points, each row spread over the splines of its points.

    Guarantee: a row brings whole numbers that are not negative and add up to at most 2^30, in one of them all of it
    where its points are ends of their ranges; what it brings depends on that row alone.
    """
    import numpy as np

    sizes = [basis.size for basis in bases]
    totals = np.zeros(cells * prod(sizes), dtype=np.int64)
    for start in range(0, len(found["cell"]), CHUNK):
        some = slice(start, start + CHUNK)
        points = [found[name][some] for name in lattice_names(len(bases))]
        firsts = [basis.table.first[point] for basis, point in zip(bases, points, strict=True)]
        weights = [basis.table.weights[point] for basis, point in zip(bases, points, strict=True)]
        rows = found["total"][some]
        for choice in product(*(range(basis.degree + 1) for basis in bases)):
            index, amount = found["cell"][some], np.full(len(rows), HEIGHT, dtype=np.int64)
            for place, local in enumerate(choice):
                index = index * sizes[place] + firsts[place] + local
                amount = (amount * weights[place][:, local]) >> BITS  # digits beyond 2^30 are dropped, never rounded up
            np.add.at(totals, index, amount * rows)
    return totals
