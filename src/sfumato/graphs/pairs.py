"""Pairs of public nodes in one order: (0, 1), (0, 2), …; those of a directed graph in both directions.

Every query that answers pair by pair reads and names them here, so that each pair stands in one place alone.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.shape import Shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MOST_PAIRS", "check_pairs", "pair_count", "pairs", "places"]

MOST_PAIRS = 10**6


def pair_count(shape: Shape) -> int:
    """How many pairs of nodes there are: n(n − 1)/2, or twice as many where edges point.

    >>> pair_count(Shape(nodes=4)), pair_count(Shape(nodes=4, directed=True))
    (6, 12)
    """
    nodes = shape.nodes or 0
    return nodes * (nodes - 1) // (1 if shape.directed else 2)


def check_pairs(shape: Shape) -> None:
    """Refuse more pairs than an answer can hold.

    >>> check_pairs(Shape(nodes=4039))
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: 4,039 nodes have 8,154,741 pairs, and each would be a number, with noise on it...
    """
    if pair_count(shape) > MOST_PAIRS:
        raise InvalidInput(
            f"{shape.nodes:,} nodes have {pair_count(shape):,} pairs, and each would be a number, with noise on it, "
            f"whether it has an edge or not; at most {MOST_PAIRS:,} are released. Nothing was done. Ask for sums over "
            "public blocks of nodes (block_edges), or for a smaller part of the graph."
        )


def pairs(shape: Shape) -> Iterator[tuple[int, int]]:
    """All pairs, in their order.

    >>> list(pairs(Shape(nodes=3)))
    [(0, 1), (0, 2), (1, 2)]
    """
    nodes = range(shape.nodes or 0)
    return ((one, other) for one in nodes for other in nodes if one < other or (shape.directed and one != other))


def places(graph: Adjacency) -> "NDArray[np.int64]":
    """Where in that order each edge stands, edge by edge as :meth:`Adjacency.pairs` lists them. Sensitive.

    >>> places(Adjacency.of_pairs(3, [1, 0], [2, 2])).tolist()
    [1, 2]
    """
    head, tail = graph.pairs()
    if graph.directed:
        return head * (graph.n - 1) + tail - (tail > head)
    return head * (2 * graph.n - head - 1) // 2 + tail - head - 1
