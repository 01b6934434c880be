"""The local sensitivity of the triangle count from an engine's counts: the same as of the graph in memory.

Everything here is read off the graph and sensitive: it shapes noise and is never shown. Proof: docs/proofs/ladder.md
"""

from collections.abc import Mapping
from itertools import accumulate
from math import comb

from sfumato.core.ladder_widths import Rungs
from sfumato.engines.edge_counts import ListedEdges, degree_counts, edges_by_degree_sum, shared_by_hubs
from sfumato.graphs.local_sensitivity import FIRST, Front

__all__ = ["triangle_rungs"]


def triangle_rungs(edges: ListedEdges) -> tuple[int, Rungs]:
    """The largest number of common neighbours, and the rungs of the triangle count. Sensitive.

    As :func:`sfumato.graphs.local_sensitivity.triangle_rungs`, with nodes looked at by degree and not by rank.
    Assumes: one state of the edges, in which all of the engine's queries are answered.
    """
    counts = degree_counts(edges, leaving=True, reaching=True)
    falling = sorted(counts, reverse=True)
    reached = dict(zip(falling, accumulate(counts[degree] for degree in falling), strict=True))
    largest, second = falling[0], next(degree for degree in falling if reached[degree] > 1)
    best = {0: _largest_sum(edges, counts, largest + second)}
    front, below, looked = Front.of(best.items()), largest + 1, 1
    # A pair whose smaller degree is d shares at most d neighbours, and its S is at most the largest degree and d.
    left = [degree for degree in falling if 0 < degree <= second]
    while left and not front.covers(left[0], largest + left[0]):
        looked = max(FIRST, 2 * looked)
        least = next((degree for degree in left if reached[degree] >= looked), left[-1])
        for shared, total in shared_by_hubs(edges, least, below).items():
            best[shared] = max(best.get(shared, 0), total)
        front, below = Front.of(best.items()), least
        left = [degree for degree in left if degree < below]
    return front.pairs[0][0], front.rungs(edges.nodes)


def _largest_sum(edges: ListedEdges, counts: Mapping[int, int], top: int) -> int:
    """The largest S of all pairs, where ``top`` is the sum of the two largest degrees.

    A pair that is not adjacent reaches a sum, if more pairs than edges have it. If none reaches ``top`` or one less,
    the two largest are adjacent, and S is 2 less.
    """
    found = edges_by_degree_sum(edges, top - 1)
    apart = (total for total in (top, top - 1) if _pairs(counts, total) > found.get(total, 0))
    return next(apart, top - 2)


def _pairs(counts: Mapping[int, int], total: int) -> int:
    """How many pairs of nodes have degrees that add up to this.

    >>> _pairs({0: 1, 1: 3, 2: 2}, 2)
    5
    """
    apart = sum(many * counts.get(total - degree, 0) for degree, many in counts.items() if 2 * degree < total)
    return apart + (comb(counts.get(total // 2, 0), 2) if total % 2 == 0 else 0)
