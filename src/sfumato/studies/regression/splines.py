"""Spreading numbers over splines: soft cells that add up to one row, off which any smooth function can be read.

A number t of the way from its low to its high bound is spread over cubic B-splines. They are not negative and add up to
1, so a row that is spread over all products of the splines of several numbers still counts as one row. What a function
of the numbers adds up to over all rows is, nearly, a linear combination of the spread counts: that of its projection
onto the splines. Proof: docs/proofs/regression.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CUBIC", "OUTCOME", "PARTS", "STEPS", "UNIT", "SplineBasis", "SplineTable", "to_cells", "to_nodes"]

STEPS = 1 << 15
"""Of the lattice that a number is rounded to."""
UNIT = 1 << 30
"""What the weights of one number add up to."""
CUBIC = 3
OUTCOME = 2
"""The degree over which an outcome is spread: counts, sums and squares can be read off it exactly."""
PARTS = OUTCOME + 1
MOST_PIECES = 64
POINTS = 4  # of a Gauss rule in each piece: a product of two splines has degree 6, and one with 4 points is exact to 7


@dataclass(frozen=True, slots=True, eq=False)
class SplineTable:
    """Whole weights of every lattice point: of the spline ``first`` and those after it."""

    first: "NDArray[np.int64]"
    weights: "NDArray[np.int64]"
    """One row for each lattice point; not negative, and each row adds up to 2^30."""


@dataclass(frozen=True, slots=True)
class SplineBasis:
    """B-splines of a degree over equal pieces of [0, 1], with all knots at the ends: the first is 1 at 0.

    >>> SplineBasis(pieces=4).size
    7
    >>> SplineBasis(pieces=1, degree=2).table.weights[2**14].tolist()
    [268435456, 536870912, 268435456]
    """

    pieces: int
    degree: int = CUBIC

    def __post_init__(self) -> None:
        natural(self.pieces, "pieces", most=MOST_PIECES)
        natural(self.degree, "degree", most=CUBIC)

    @property
    def size(self) -> int:
        """How many splines there are."""
        return self.pieces + self.degree

    @property
    def table(self) -> SplineTable:
        """The weights of all lattice points, as whole numbers."""
        return _table(self.pieces, self.degree)

    @property
    def nodes(self) -> "NDArray[np.float64]":
        """Where functions are looked at, on [0, 1]."""
        return _rule(self.pieces)[0]

    @property
    def projection(self) -> "NDArray[np.float64]":
        """From values at the nodes to the coefficients of splines: least squares over [0, 1]."""
        return _projection(self.pieces, self.degree)

    def at(self, places: "NDArray[np.int64]") -> "NDArray[np.float64]":
        """What each lattice point brings to each spline, as it is counted."""
        import numpy as np

        table = self.table
        found = np.zeros((len(places), self.size))
        columns = table.first[places][:, None] + np.arange(self.degree + 1)
        np.put_along_axis(found, columns, table.weights[places] / UNIT, axis=1)
        return found


def _values(at: "NDArray[np.float64]", piece: "NDArray[np.int64]", pieces: int, degree: int) -> "NDArray[np.float64]":
    """The splines that are not 0 in a piece, by the recursion of Cox and de Boor; ``at`` is counted in pieces."""
    import numpy as np

    knots = np.clip(np.arange(pieces + 2 * degree + 1) - degree, 0, pieces).astype(float)
    found = np.zeros((len(at), degree + 1))
    found[:, 0] = 1.0
    for order in range(1, degree + 1):
        carried = np.zeros(len(at))
        for place in range(order):
            right = knots[piece + degree + place + 1] - at
            left = at - knots[piece + degree + 1 - (order - place)]
            share = found[:, place] / (right + left)
            found[:, place] = carried + right * share
            carried = left * share
        found[:, order] = carried
    return found


@lru_cache(maxsize=32)
def _table(pieces: int, degree: int) -> SplineTable:
    import numpy as np

    places = np.arange(STEPS + 1, dtype=np.int64)
    first = np.minimum(places * pieces // STEPS, pieces - 1)
    exact = _values(places * pieces / STEPS, first, pieces, degree)
    weights = np.floor(np.maximum(exact, 0.0) * UNIT + 0.5).astype(np.int64)
    # Rounding leaves or takes a little: the largest, which is at least a fourth, has it.
    largest = np.argmax(weights, axis=1)
    weights[np.arange(len(weights)), largest] += UNIT - weights.sum(axis=1)
    if weights.min() < 0 or not (weights.sum(axis=1) == UNIT).all():
        raise InvalidInput("the weights of splines do not add up; nothing was done.")
    weights.setflags(write=False)
    first.setflags(write=False)
    return SplineTable(first, weights)


@lru_cache(maxsize=32)
def _rule(pieces: int) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Points of [0, 1] and their weights."""
    import numpy as np

    points, weights = np.polynomial.legendre.leggauss(POINTS)
    at = (np.arange(pieces)[:, None] + (points + 1) / 2) / pieces
    return at.ravel(), np.tile(weights / (2 * pieces), pieces)


@lru_cache(maxsize=32)
def _projection(pieces: int, degree: int) -> "NDArray[np.float64]":
    import numpy as np

    at, weights = _rule(pieces)
    piece = np.repeat(np.arange(pieces), POINTS)
    design = np.zeros((len(at), pieces + degree))
    columns = piece[:, None] + np.arange(degree + 1)
    np.put_along_axis(design, columns, _values(at * pieces, piece, pieces, degree), axis=1)
    weighted = design.T * weights
    return np.asarray(np.linalg.solve(weighted @ design, weighted))


def to_nodes(cells: "NDArray[np.float64]", bases: Sequence[SplineBasis]) -> "NDArray[np.float64]":
    """Counts of the products of splines as counts at the products of nodes, some of them negative.

    The sum of any function over the nodes, with these as weights, is that of its projection over the rows.
    """
    return _contracted(cells, [basis.projection for basis in bases])


def to_cells(values: "NDArray[np.float64]", bases: Sequence[SplineBasis]) -> "NDArray[np.float64]":
    """Values of a function at the products of nodes as coefficients of the products of splines."""
    return _contracted(values, [basis.projection.T for basis in bases])


def _contracted(given: "NDArray[np.float64]", matrices: "Sequence[NDArray[np.float64]]") -> "NDArray[np.float64]":
    """The last axis, which runs over a product, multiplied by one matrix for each of its parts."""
    import numpy as np

    ahead = given.shape[:-1]
    found = given.reshape(*ahead, *(len(matrix) for matrix in matrices))
    for matrix in matrices:
        found = np.tensordot(found, matrix, axes=([len(ahead)], [0]))
    return np.asarray(found.reshape(*ahead, -1))
