"""Counts of an edge list by the engine that holds it: edges, degrees, nodes by degree, triangles.

The graph is the one that :meth:`sfumato.graphs.adjacency.Adjacency.of_pairs` would make of the same rows: one without
both ends, with an end that is no node, or with a weight that is no number above 0 does not count; a loop is no edge,
and a pair that is listed twice is one edge (in either order, where edges have no direction). Sensitive: every count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Type
from sfumato.engines.operands import column, double, whole
from sfumato.engines.public_rows import public_rows
from sfumato.engines.totals import brought_out

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ListedEdges",
    "degree_counts",
    "degrees",
    "edge_count",
    "edges_by_degree_sum",
    "shared_by_hubs",
    "triangle_count",
]

ENDS = ("start", "end")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedEdges:
    """The rows of an edge list, and the public facts that tell which of them count.

    The nodes are called 0, …, ``nodes`` − 1, or by ``names``. Assumes: fewer than 2³¹ nodes, so that the product of two
    of them fits 64 bits; names that are all whole numbers of 64 bits or all texts, as the columns are, and each once.

    >>> import pyarrow as pa
    >>> from sfumato.engines.sources import Source
    >>> facts = {"source": "a", "target": "b", "weight": None, "nodes": 3, "names": None, "directed": False}
    >>> with Source(pa.table({"a": [0, 1, 2, 2], "b": [1, 0, 2, 7]})).opened() as rows:
    ...     edge_count(ListedEdges(rows=rows, **facts))
    1
    """

    rows: ir.Table
    source: str
    target: str
    weight: str | None
    nodes: int
    names: Sequence[int] | Sequence[str] | None
    directed: bool

    def pairs(self) -> ir.Table:
        """The plan of the edges, each once: columns ``start`` and ``end`` hold the places of its ends among the nodes.

        The smaller end comes first, where edges have no direction.
        """
        import ibis

        rows = self._placed(self._weighty())
        rows = rows.filter(rows.start != rows.end)
        if not self.directed:
            rows = rows.select(start=ibis.least(rows.start, rows.end), end=ibis.greatest(rows.start, rows.end))
        return _each_once(rows)

    def _weighty(self) -> ir.Table:
        """The columns of both ends, as ``start`` and ``end``, of the rows whose weight counts."""
        rows = self.rows
        if self.weight is not None:
            heavy = column(
                rows, self.weight, dialect_of(rows)
            )  # NaN is missing here: engines hold it to be above every number
            above = heavy.value.cast("float64") > double(0.0)
            rows = rows.filter(above if heavy.missing is None else ~heavy.missing & above)
        return rows.select(start=rows[self.source], end=rows[self.target])

    def _placed(self, rows: ir.Table) -> ir.Table:
        """The rows with two nodes at their ends, and the places of these."""
        if self.names is None:
            rows = rows.select(start=rows.start.cast("int64"), end=rows.end.cast("int64"))  # null is in no range
            return rows.filter(*(rows[side].between(whole(0), whole(self.nodes - 1)) for side in ENDS))
        kind = Type.TEXT if isinstance(self.names[0], str) else Type.WHOLE
        known = public_rows(rows, {"name": (kind, self.names), "place": (Type.WHOLE, range(self.nodes))})
        for side in ENDS:
            other = ENDS[1 - ENDS.index(side)]
            called = rows[side] if kind is Type.TEXT else rows[side].cast("int64")
            met = rows.select(other, called=called).inner_join(known, [("called", "name")])
            rows = met.select(other, **{side: met.place})
        return rows


def edge_count(edges: ListedEdges) -> int:
    """How many edges there are. Sensitive."""
    return _number(edges.pairs())


def degrees(edges: ListedEdges, *, leaving: bool, reaching: bool) -> NDArray[np.int64]:
    """For each node, how many edges leave it, reach it, or both together; without direction, take both. Sensitive."""
    import numpy as np

    found = brought_out(_by_node(edges.pairs(), leaving=leaving, reaching=reaching))
    counted = np.zeros(edges.nodes, dtype=np.int64)
    counted[np.array(found["node"], dtype=np.int64)] = np.array(found["degree"], dtype=np.int64)
    return counted


def degree_counts(edges: ListedEdges, *, leaving: bool, reaching: bool) -> dict[int, int]:
    """How many nodes have each degree that occurs: 0 too, where a node has no edge. Sensitive."""
    nodes = _by_node(edges.pairs(), leaving=leaving, reaching=reaching)
    found = brought_out(nodes.group_by("degree").aggregate(many=nodes.count()))
    counted = dict(zip(found["degree"], found["many"], strict=True))
    alone = edges.nodes - sum(found["many"])
    return {0: alone, **counted} if alone else counted


def triangle_count(edges: ListedEdges) -> int:
    """How many triangles there are in a graph without direction; the engine goes through edges^1.5 wedges at the most.

    Each edge points from its end of the smaller degree to the other (of equal ones, to the later node), so that at most
    √(2·edges) leave a node. A triangle is then two edges that leave one node, and a third from the end of the one to
    the end of the other. Sensitive.
    """
    first = _pointed(edges)
    second, third, nodes = first.view(), first.view(), whole(edges.nodes)
    wedges = first.inner_join(second, (first.low == second.low) & (first.rank < second.rank), rname="{name}_second")
    # One number of both ends: joined to one of the edges alone, a third would make wedges with a hub in the middle.
    closing = first.high * nodes + second.high
    if dialect_of(edges.rows).closes_by_membership:
        marked = wedges.select(closed=closing.isin(third.both))
        return _number(marked, marked.closed)
    return _number(wedges.inner_join(third, closing == third.both, rname="{name}_third"))


def edges_by_degree_sum(edges: ListedEdges, least: int) -> dict[int, int]:
    """How many edges of a graph without direction have ends whose degrees add up to each sum from ``least`` on.

    Sensitive.
    """
    met = _with_degrees(edges)
    sums = met.select(total=met.start_degree + met.end_degree)
    sums = sums.filter(sums.total >= whole(least))
    found = brought_out(sums.group_by("total").aggregate(many=sums.count()))
    return dict(zip(found["total"], found["many"], strict=True))


def shared_by_hubs(edges: ListedEdges, least: int, below: int) -> dict[int, int]:
    """For each number a of common neighbours, the largest S of a pair of nodes that has exactly a, from a = 1 on.

    S is the sum of both degrees, less 2 where the two are adjacent. Looked at are pairs whose smaller degree is from
    ``least`` to ``below`` − 1, in a graph without direction; the engine goes through the wedges between nodes of at
    least ``least`` edges. Sensitive.
    """
    import ibis

    met = _with_degrees(edges)
    one, two = (
        met.select(middle=met[middle], hub=met[hub], degree=met[f"{hub}_degree"]) for middle, hub in (ENDS, ENDS[::-1])
    )
    arms = one.union(two, distinct=False)
    arms = arms.filter(arms.degree >= whole(least))
    first, second = arms, arms.view()
    wedge = (first.middle == second.middle) & (first.hub < second.hub)
    wedges = first.inner_join(second, wedge, rname="{name}_second")
    wedges = wedges.filter(ibis.least(wedges.degree, wedges.degree_second) < whole(below))
    shared = wedges.group_by("hub", "hub_second").aggregate(
        shared=wedges.count(), total=(wedges.degree + wedges.degree_second).max()
    )
    pairs = edges.pairs()
    beside = shared.left_join(pairs, (shared.hub == pairs.start) & (shared.hub_second == pairs.end))
    totals = beside.select("shared", total=beside.total - ibis.ifelse(beside.start.isnull(), whole(0), whole(2)))
    found = brought_out(totals.group_by("shared").aggregate(total=totals.total.max()))
    return dict(zip(found["shared"], found["total"], strict=True))


def _with_degrees(edges: ListedEdges) -> ir.Table:
    """The edges, each once, with the degrees of both ends."""
    pairs = edges.pairs()
    one = _by_node(pairs, leaving=True, reaching=True)
    two = one.view()
    met = pairs.inner_join(one, pairs.start == one.node).inner_join(two, pairs.end == two.node)
    return met.select("start", "end", start_degree=one.degree, end_degree=two.degree)


def _pointed(edges: ListedEdges) -> ir.Table:
    """The edges from ``low`` to ``high``, with the rank of the latter, and ``both`` as one number."""
    import ibis

    met, nodes = _with_degrees(edges), whole(edges.nodes)
    start, end = (met[f"{side}_degree"] * nodes + met[side] for side in ENDS)  # below 2^62
    low, high = ibis.ifelse(start < end, met.start, met.end), ibis.ifelse(start < end, met.end, met.start)
    return met.select(low=low, high=high, rank=ibis.greatest(start, end), both=low * nodes + high)


def _by_node(pairs: ir.Table, *, leaving: bool, reaching: bool) -> ir.Table:
    """The degree of each node that has one."""
    ends = [pairs.select(node=pairs[side]) for side, asked in zip(ENDS, (leaving, reaching), strict=True) if asked]
    nodes = ends[0] if len(ends) == 1 else ends[0].union(ends[1], distinct=False)
    return nodes.group_by("node").aggregate(degree=nodes.count())


def _each_once(pairs: ir.Table) -> ir.Table:
    return pairs.distinct()


def _number(rows: ir.Table, where: ir.Value = None) -> int:
    counted: ir.Value = brought_out(rows.aggregate(many=rows.count(where=where)))["many"][0]
    return int(counted)
