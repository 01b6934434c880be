"""Local sensitivity at distance t: how far one edge moves a count in a graph that is t edges away, for every t.

Everything here is read off the graph and sensitive: it shapes noise and is never shown. Proof: docs/proofs/ladder.md
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sfumato.core.ladder_widths import Rungs, WidthSteps
from sfumato.graphs.kernels import Ranked, hub_pairs, top_pairs
from sfumato.mechanisms.ladder import star_width

__all__ = ["Front", "front_of", "star_rungs", "triangle_rungs"]

FIRST = 256  # ranks that are looked at together at first; twice as many each time


@dataclass(frozen=True, slots=True, repr=False)
class Front:
    """The pairs of nodes that decide LS(t) = max min(t + a, ⌊(t + S)/2⌋): by falling a and rising S.

    a is how many neighbours a pair shares, S = d_i + d_j − 2·[adjacent]; S − 2a of the others are adjacent to one of
    the two. Pairs without common neighbours are covered by a = 0 and the largest S of all pairs.

    >>> hubs = Front.of([(0, 40)])  # two hubs of 20 leaves
    >>> hubs.rungs(60).width(10)
    10
    """

    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> "Front":
        """Keep the pairs (a, S) that no other one reaches in both."""
        kept: list[tuple[int, int]] = []
        for shared, total in sorted(pairs, reverse=True):
            if not kept or total > kept[-1][1]:
                kept.append((shared, total))
        return cls(tuple(kept))

    def at(self, t: int) -> int:
        """LS(t) without its cap n − 2."""
        return max(min(t + shared, (t + total) // 2) for shared, total in self.pairs)

    def covers(self, shared: int, total: int) -> bool:
        """Whether a pair with at most this many could not raise LS(t) for any t: it would first do so at S − 2a."""
        return self.at(total - 2 * shared) >= total - shared

    def rungs(self, nodes: int) -> Rungs:
        """LS(0) and the places at which LS grows, until it is n − 2: by 1 each time, or by 1 every second time."""
        left = nodes - 2 - self.pairs[0][0]
        runs = [WidthSteps(0, 1, 1, self.pairs[0][0])]
        start = 0
        below = [shared for shared, _ in self.pairs[1:]]
        for (shared, total), following in zip(self.pairs, (*below, None), strict=True):
            end = total - 2 * shared
            steep = min(end - start, left)
            runs.append(WidthSteps(start + 1, 1, steep, 1))
            left -= steep
            flat = left if following is None else min(shared - following, left)
            runs.append(WidthSteps(end + 2, 2, flat, 1))
            left -= flat
            start = end + 2 * flat
        return Rungs.of(runs)


def front_of(graph: Ranked) -> Front:
    """The front of a graph: ranks by falling degree, until no pair further down could matter.

    A pair whose larger rank is r shares at most d_r neighbours, and its S is at most d_0 + d_r. The time is the number
    of wedges between the ranks looked at, and all wedges at the most.

    >>> from sfumato.graphs.adjacency import Adjacency
    >>> from sfumato.graphs.kernels import ranked
    >>> front_of(ranked(Adjacency.of_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3]))).pairs
    ((1, 3),)
    """
    best: dict[int, int] = {0: max(x + y for x, y in top_pairs(graph))}
    degrees, low, high = graph.degrees, 1, 1
    front = Front.of(best.items())
    while high < len(degrees):
        if front.covers(int(degrees[high]), int(degrees[0] + degrees[high])):
            break
        low, high = high, min(len(degrees), max(FIRST, 2 * high))
        found = hub_pairs(graph, low, high)
        for shared in (found >= 0).nonzero()[0].tolist():
            best[shared] = max(best.get(shared, 0), int(found[shared]))
        front = Front.of(best.items())
    return front


def triangle_rungs(graph: Ranked) -> tuple[int, Rungs]:
    """The largest number of common neighbours, and the rungs of the triangle count. Sensitive."""
    front = front_of(graph)
    return front.pairs[0][0], front.rungs(len(graph.degrees))


def star_rungs(graph: Ranked, leaves: int) -> tuple[int, Rungs]:
    """The largest sum of degrees (wedges) or degree (other stars), and the rungs of the star count. Sensitive.

    >>> from sfumato.graphs.adjacency import Adjacency
    >>> from sfumato.graphs.kernels import ranked
    >>> star_rungs(ranked(Adjacency.of_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3])), 2)[0]
    3
    """
    top, pairs = len(graph.degrees) - 2, top_pairs(graph)
    if leaves == 2:
        total = max(x + y for x, y in pairs)
        return total, Rungs.of([WidthSteps(0, 1, 1, total), WidthSteps(1, 1, 2 * top - total, 1)])
    last = max(2 * top - x - y for x, y in pairs)
    widths = [max(star_width(x, y, t, top, leaves) for x, y in pairs) for t in range(last + 1)]
    runs = [
        WidthSteps(0, 1, 1, widths[0]),
        *(WidthSteps(t + 1, 1, 1, b - a) for t, (a, b) in enumerate(pairwise(widths))),
    ]
    return int(graph.degrees[0]), Rungs.of(runs)
