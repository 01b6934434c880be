"""The rows of an adjacency matrix, compressed: what every query on a graph reads.

Sensitive: an adjacency is the private graph itself. It has no text of its own that would show an edge.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Adjacency"]

MOST_NODES = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Adjacency:
    """A graph on the nodes 0, …, n−1: row i holds the neighbours of i, sorted, without i and each once.

    An undirected graph holds every edge in both rows; a directed one holds i → j in row i. ``weights`` belong to the
    ``indices`` one by one. Assumes: made by :meth:`of_pairs`, or from parts that meet the same conditions.

    >>> graph = Adjacency.of_pairs(3, [0, 1, 0], [1, 0, 0])
    >>> graph.edges, graph.degrees.tolist()
    (1, [1, 1, 0])
    """

    n: int
    indptr: "NDArray[np.int64]"
    indices: "NDArray[np.int32]"
    directed: bool = False
    weights: "NDArray[np.int64] | None" = None

    @classmethod
    def of_pairs(
        cls,
        n: int,
        source: "ArrayLike",
        target: "ArrayLike",
        *,
        directed: bool = False,
        weights: "ArrayLike | None" = None,
    ) -> "Adjacency":
        """Sort pairs of nodes into rows: a loop is no edge, a pair that is listed twice is one edge.

        Where both listings have a weight the greater one stands, so that the order of the list means nothing.

        >>> Adjacency.of_pairs(3, [0, 1], [1, 0], weights=[2, 5]).weights.tolist()
        [5, 5]
        """
        import numpy as np

        if not 0 <= n <= MOST_NODES:
            raise InvalidInput(f"a graph has 0 to {MOST_NODES} nodes, not {n}; nothing was done.")
        head, tail = (np.asarray(ends, dtype=np.int64).reshape(-1) for ends in (source, target))
        heavy = None if weights is None else np.asarray(weights, dtype=np.int64).reshape(-1)
        if len(head) != len(tail) or (heavy is not None and len(heavy) != len(head)):
            raise InvalidInput("sources, targets and weights are not equally many; nothing was done.")
        if len(head) and not (min(head.min(), tail.min()) >= 0 and max(head.max(), tail.max()) < n):
            raise InvalidInput("a pair names a node that is not there; nothing was done.")
        real = head != tail
        head, tail, heavy = head[real], tail[real], None if heavy is None else heavy[real]
        if not directed:
            head, tail = np.minimum(head, tail), np.maximum(head, tail)
        key = head * n + tail
        if heavy is None:
            key = _once(np.sort(key))
        else:
            order = np.lexsort((heavy, key))
            key, heavy = key[order], heavy[order]
            last = np.append(key[1:] != key[:-1], True) if len(key) else np.zeros(0, dtype=bool)
            key, heavy = key[last], heavy[last]
        if not directed:
            both = np.concatenate((key, key % max(n, 1) * n + key // max(n, 1)))
            if heavy is None:
                key = np.sort(both)
            else:
                order = np.argsort(both, kind="stable")
                key, heavy = both[order], np.concatenate((heavy, heavy))[order]
        rows = np.searchsorted(key, np.arange(n + 1, dtype=np.int64) * n).astype(np.int64)
        return cls(n=n, indptr=rows, indices=(key % max(n, 1)).astype(np.int32), directed=bool(directed), weights=heavy)

    @property
    def edges(self) -> int:
        """How many edges there are; an undirected one counts once. Sensitive."""
        return len(self.indices) if self.directed else len(self.indices) // 2

    @property
    def degrees(self) -> "NDArray[np.int64]":
        """How many neighbours each node has; in a directed graph, how many it points to. Sensitive."""
        import numpy as np

        return np.diff(self.indptr)

    @property
    def in_degrees(self) -> "NDArray[np.int64]":
        """How many nodes point to each node; the degrees, if the graph is undirected. Sensitive."""
        import numpy as np

        return np.bincount(self.indices, minlength=self.n).astype(np.int64)

    def pairs(self) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """All edges as (source, target), in the order of the rows; an undirected one once, smaller end first.

        Sensitive.
        """
        import numpy as np

        head = np.repeat(np.arange(self.n, dtype=np.int64), self.degrees)
        tail = self.indices.astype(np.int64)
        if self.directed:
            return head, tail
        once = head < tail
        return head[once], tail[once]

    def __repr__(self) -> str:
        return "Adjacency(…)"


def _once(ordered: "NDArray[np.int64]") -> "NDArray[np.int64]":
    import numpy as np

    if not len(ordered):
        return ordered
    first = np.append(True, ordered[1:] != ordered[:-1])
    return np.asarray(ordered[first])
