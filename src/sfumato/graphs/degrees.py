"""Degrees of an adjacency, counted as a question asks for them. Sensitive."""

from typing import TYPE_CHECKING

from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.shape import Direction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["degrees_of"]


def degrees_of(graph: Adjacency, direction: Direction) -> "NDArray[np.int64]":
    """The degree of each node: all its edges, or those in or out.

    >>> degrees_of(Adjacency.of_pairs(3, [0, 1], [1, 2], directed=True), Direction.TOTAL).tolist()
    [1, 2, 1]
    """
    if not graph.directed or direction is Direction.OUT:
        return graph.degrees
    return graph.in_degrees if direction is Direction.IN else graph.degrees + graph.in_degrees
