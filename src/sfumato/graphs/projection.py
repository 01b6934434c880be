"""The projection to a degree cap: edges are taken one by one, each if both its ends have room.

The order is by a keyed hash of the two ends' own names: it says nothing of the rest of the graph, and is the same for
neighbours, whose common edges come in the same order. Proof: docs/proofs/projection.md
"""

from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.graphs.adjacency import Adjacency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["order_of", "projected"]


def projected(graph: Adjacency, keys: "NDArray[np.uint64]", cap: int) -> Adjacency:
    """The graph with degrees of at most ``cap``; in a directed graph, in and out together.

    Guarantee: no degree is above the cap; every edge that was left out has an end that is full. One node with all its
    edges moves the degrees of the others by at most ``cap`` in all. Assumes: ``keys`` holds for each node a number
    that depends on its name alone, and the nodes stand in an order of their names. Sensitive: everything here.

    >>> import numpy as np
    >>> star = Adjacency.of_pairs(4, [0, 0, 0], [1, 2, 3])
    >>> projected(star, np.arange(4, dtype=np.uint64), 2).edges
    2
    """
    import numpy as np

    natural(cap, "cap")
    head, tail = graph.pairs()
    ends = np.bincount(head, minlength=graph.n) + np.bincount(tail, minlength=graph.n)
    if not len(ends) or ends.max() <= cap:
        return graph
    taken = _taken(head, tail, order_of(head, tail, keys, directed=graph.directed), graph.n, cap)
    weights = None
    if graph.weights is not None:
        rows = np.repeat(np.arange(graph.n, dtype=np.int64), graph.degrees)
        weights = (graph.weights if graph.directed else graph.weights[rows < graph.indices])[taken]
    return Adjacency.of_pairs(graph.n, head[taken], tail[taken], directed=graph.directed, weights=weights)


def order_of(
    head: "NDArray[np.int64]", tail: "NDArray[np.int64]", keys: "NDArray[np.uint64]", *, directed: bool
) -> "NDArray[np.int64]":
    """The order of the edges: by a hash of both ends, ties by the nodes themselves, so that no other edge matters."""
    import numpy as np

    first, second = keys[head], keys[tail]
    if not directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    return np.lexsort((tail, head, mixed(mixed(first) + second)))


def mixed(numbers: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    """A bijection of 64-bit numbers that leaves no pattern; only the fairness of the order depends on it."""
    import numpy as np

    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _taken(
    head: "NDArray[np.int64]", tail: "NDArray[np.int64]", order: "NDArray[np.int64]", n: int, cap: int
) -> "NDArray[np.bool_]":
    """Which edges are taken when they are gone through in an order, each taken if both its ends have room."""
    import numpy as np

    room, taken = [cap] * n, bytearray(len(order))
    for edge, one, other in zip(order.tolist(), head[order].tolist(), tail[order].tolist(), strict=True):
        if room[one] and room[other]:
            room[one] -= 1
            room[other] -= 1
            taken[edge] = 1
    return np.frombuffer(taken, dtype=bool)
