"""PageRank in whole numbers, and how far one edge can move it.

r = α·Pᵀr + (1 − α)·v, where P walks from a node to one of its neighbours and v restarts. Ranks are whole multiples of
2⁻⁶²; every rounding is downward, and the sum of all of them is bounded for every graph at once, so that it can be added
to the sensitivity. Proof: docs/proofs/pagerank.md
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, decimal_down, natural, positive, rational
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "RANK_BITS",
    "WORK_BITS",
    "damping_of",
    "half_moves",
    "leftover",
    "ranks",
    "rounding_error",
    "steps_for",
    "textbook_bound",
]

WORK_BITS = 62
RANK_BITS = 48
MOST_STEPS = 2500
MOST_LEFT = Fraction(1, 2**20)
FINE = Fraction(1, 2**50)
LARGEST_DENOMINATOR = 2**20


def damping_of(alpha: Exact) -> Fraction:
    """α, between 0 and 1, with few digits, so that whole numbers of 64 bits can be multiplied by it."""
    share = positive(alpha, "damping")
    if share >= 1 or share.denominator > LARGEST_DENOMINATOR:
        raise InvalidInput("damping lies between 0 and 1 and has at most six digits, such as 0.85; nothing was done.")
    if leftover(share) > MOST_LEFT:
        raise InvalidInput(
            f"with damping {decimal_down(share, 6)} a walk is not near its end after {MOST_STEPS} steps, and its ranks "
            "would be too small; nothing was done. Take at most 0.99."
        )
    return share


def half_moves(
    alpha: Exact, *, nodes: int, directed: bool, uniform: bool, loops: bool, minimum: int
) -> Mapping[str, Fraction]:
    """Every proven bound, by name, on how far one edge moves an entry, and on half of the l1 move of all of them.

    ``minimum`` is a number of ways out (loops counted) that every node is publicly known to have; 0 where a node may
    have none, and then restarts. ``loops`` says that nodes may step to themselves, ``uniform`` that v is the same for
    all. Degrees that were observed are private, and none of these bounds looks at them.

    Guarantee: each holds for all pairs of graphs that differ by one edge and meet the facts; enumerated for all
    directed graphs of 4 nodes and all undirected ones of 5. Proof: docs/proofs/pagerank.md

    >>> facts = half_moves(0.85, nodes=100, directed=False, uniform=True, loops=True, minimum=1)
    >>> {name: round(float(bound), 3) for name, bound in facts.items()}
    {'any': 0.85, 'coupling': 0.739, 'uniform': 0.113}
    """
    a, least = damping_of(alpha), natural(minimum, "minimum", least=0)
    found = {"any": a}
    if least:
        t = Fraction(1, 1 + least)
        found["coupling"] = a * t / (1 - a + a * t)
        if not loops:
            found["no loops"] = a * t / (1 - a**2 * (1 - t))
        if uniform and not directed:
            found["uniform"] = 2 * a / ((1 - a) * nodes * least)
    return found


def textbook_bound(alpha: Exact) -> Fraction:
    """α/(1 − α), which textbooks give for an entry: true, and from α = 1/2 on more than any entry can move.

    >>> textbook_bound(0.85)
    Traceback (most recent call last):
    sfumato.errors.Refused: α/(1 − α) is 5.66 at α = 17/20, and an entry of PageRank lies between 0 and 1...
    """
    a = damping_of(alpha)
    if a >= Fraction(1, 2):
        raise Refused(
            f"α/(1 − α) is {decimal_down(a / (1 - a), 3)} at α = {a}, and an entry of PageRank lies between 0 and 1: "
            "as a bound it says nothing, and noise of that size hides everything. Nothing was done. Leave it out: the "
            "least of the proven bounds is used."
        )
    return a / (1 - a)


@lru_cache(maxsize=64)
def steps_for(alpha: Fraction) -> int:
    """After how many steps what is left of the walk is below 2⁻⁵⁰, but at most 2,500.

    >>> steps_for(Fraction(17, 20))
    213
    """
    left, steps = alpha, 0
    while left > FINE and steps < MOST_STEPS:
        left, steps = left * alpha, steps + 1
        if left.denominator.bit_length() > 256:
            left = Fraction((left.numerator << 128) // left.denominator + 1, 1 << 128)
    return steps


def rounding_error(nodes: int, loops: int, alpha: Fraction) -> Fraction:
    """How far roundings can carry all ranks together, whatever the graph, in units of 2⁻⁶².

    A step rounds once for each node, once for each way out and once for each share of a restart: fewer than n(n + 1 +
    loops) units. What one step loses the next ones damp by α each.
    """
    return nodes * (nodes + 1 + loops) / (1 - alpha)


def leftover(alpha: Fraction) -> Fraction:
    """How far from the limit the last step is at most, as a share of 1."""
    return alpha ** (steps_for(alpha) + 1)


def ranks(
    graph: Adjacency, alpha: Fraction, *, restart: Sequence[int] = (), loops: int = 0, edge_flow: int | None = None
) -> "NDArray[np.int64]":
    """The rank of every node, in units of 2⁻⁶², by :func:`steps_for` steps. Sensitive.

    ``restart`` are the nodes that v restarts at, all alike; none means all nodes. ``loops`` is the weight of a loop
    that every node is given. A node without a way out restarts. With ``edge_flow`` no edge passes on more than that,
    and what does not fit, or has no way out, is lost.

    >>> [round(rank / 2**62, 6) for rank in ranks(Adjacency.of_pairs(2, [0], [1]), Fraction(1, 2)).tolist()]
    [0.5, 0.5]
    """
    import numpy as np

    n, p, q = graph.n, alpha.numerator, alpha.denominator
    where = np.arange(n) if not restart else np.array(restart, dtype=np.int64)
    start = np.zeros(n, dtype=np.int64)
    start[where] = int((1 - alpha) * 2**WORK_BITS / len(where))
    ways = graph.degrees + loops
    heads, first = graph.indices.astype(np.int64), graph.indptr
    if graph.directed:
        order = np.argsort(graph.indices, kind="stable")
        heads = np.repeat(np.arange(n, dtype=np.int64), graph.degrees)[order]
        first = np.concatenate(([0], np.cumsum(graph.in_degrees)))
    held, stuck = start.copy(), ways == 0
    divisor = np.maximum(ways, 1)
    for _ in range(steps_for(alpha)):
        passed = held // q * p + held % q * p // q
        flow = passed // divisor
        if edge_flow is not None:
            flow = np.minimum(flow, edge_flow)
        flow[stuck] = 0
        sums = np.concatenate(([0], np.cumsum(flow[heads])))
        arrived = sums[first[1:]] - sums[first[:-1]] + loops * flow
        if edge_flow is None:
            arrived[where] += int(passed[stuck].sum()) // len(where)
        held = start + arrived
    return np.asarray(held)


def flow_units(edge_flow: Exact) -> int:
    """The most that one edge passes on, in units of 2⁻⁶², rounded down."""
    share = rational(edge_flow, "edge_flow")
    units = int(share * 2**WORK_BITS)
    if not 0 < share <= 1 or units < 1:
        raise InvalidInput("edge_flow is a share of all rank, above 0 and at most 1; nothing was done.")
    return units
