"""Communities in a noisy graph that is public already: how many there are, and which node belongs to which.

Everything here is post-processing: it takes noisy pairs and no graph.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato.graphs.block_models import canonical

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["communities_of"]

EDGE = 2.1
"""Eigenvalues of noise alone end near 2·√(n·p(1 − p)); what is beyond this many times √(n·p(1 − p)) is structure."""
ROUNDS = 100


@lru_cache(maxsize=4)
def communities_of(noisy: tuple[int, ...], nodes: int, most: int | None) -> tuple[int, ...]:
    """The community of each node, 0, 1, …, from one noisy number for each pair, which counts as an edge from 1 on.

    Their number is one more than that of the eigenvalues of the centred matrix beyond the noise, and at most ``most``;
    the nodes are grouped by the rows of those eigenvectors. The same pairs always give the same communities.

    >>> cliques = [int((one < 20) == (other < 20)) for one in range(40) for other in range(one + 1, 40)]
    >>> communities_of(tuple(cliques), 40, None) == (0,) * 20 + (1,) * 20
    True
    """
    import numpy as np

    edges = np.zeros((nodes, nodes))
    edges[np.triu_indices(nodes, 1)] = np.asarray(noisy) >= 1
    edges += edges.T
    share = float(edges.sum()) / max(1, nodes * (nodes - 1))
    centred = edges - share
    np.fill_diagonal(centred, 0.0)
    values, vectors = np.linalg.eigh(centred)
    beyond = int(np.count_nonzero(values > EDGE * np.sqrt(nodes * share * (1 - share))))
    if most is not None:
        beyond = min(beyond, most - 1)
    if not beyond:
        return (0,) * nodes
    return canonical(_grouped(vectors[:, -beyond:], beyond + 1).tolist())


def _grouped(points: "NDArray[np.float64]", groups: int) -> "NDArray[np.int64]":
    """Points in groups around their means, started at points that are far apart; nothing is drawn at random."""
    import numpy as np

    chosen: Sequence[int] = [int(np.argmax((points**2).sum(axis=1)))]
    for _ in range(groups - 1):
        chosen = [*chosen, int(np.argmax(_distances(points, points[chosen]).min(axis=1)))]
    centres, member = points[chosen], np.full(len(points), -1)
    for _ in range(ROUNDS):
        nearest = _distances(points, centres).argmin(axis=1)
        if (nearest == member).all():
            break
        member = nearest
        held = [group for group in range(groups) if (member == group).any()]
        centres[held] = [points[member == group].mean(axis=0) for group in held]
    return member


def _distances(points: "NDArray[np.float64]", centres: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The squared distance of each point from each centre."""
    found: NDArray[np.float64] = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return found
