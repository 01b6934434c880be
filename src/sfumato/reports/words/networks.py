"""What was asked of a network and what was left out of it: the public facts that its words are made of."""

from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.graphs.node_level.by_chosen_cap import ByChosenCap
from sfumato.graphs.node_level.triangles import ChosenTriangles, NodeTriangles
from sfumato.graphs.queries.degrees import SortedDegrees
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.pagerank import PageRank
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.queries.top import TopNodes, Way
from sfumato.graphs.queries.weights import PairWeights
from sfumato.graphs.query import GraphQuery
from sfumato.graphs.shape import Direction

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["asked", "bound_of", "cap_of", "corners_of", "flow_of", "leaves_of", "pointing_of"]


def asked(query: GraphQuery) -> str:
    """The name of the words for what was asked: that of the query, or of the form in which it was asked."""
    match query:
        case SortedDegrees() if query.length != query.shape.nodes:
            return "largest_degrees"
        case TopNodes(way=Way.PEELING):
            return "top_nodes_in_order"
    return query.KIND.removeprefix("query.")


def cap_of(said: "Statement") -> int | None:
    """How many links of each node count; None where all do, or where triangles are limited and not links."""
    query = said.query
    assert isinstance(query, GraphQuery)  # noqa: S101 - for the reader of types
    if isinstance(query, ByChosenCap):
        return said.values[0] if query.projects else None
    return query.cap(said.unit)


def corners_of(said: "Statement") -> int | None:
    """In how many triangles a node counts at the most, where that is limited."""
    match said.query:
        case NodeTriangles(most=cap):
            return cap * (cap - 1) // 2
        case ChosenTriangles():
            return said.values[0] * (said.values[0] - 1) // 2
    return None


def leaves_of(query: GraphQuery) -> int | None:
    """How many leaves the stars have that were counted."""
    return query.leaves if isinstance(query, Stars | LocalStars) else None


def bound_of(query: GraphQuery) -> Fraction | None:
    """The largest weight that counts, where weights are told."""
    return query.bound if isinstance(query, PairWeights) else None


def flow_of(query: GraphQuery) -> Fraction | None:
    """Which part of all rank a link passes on at the most, where that is limited."""
    return query.edge_flow if isinstance(query, PageRank) else None


def pointing_of(query: GraphQuery) -> str | None:
    """Whether only links out of a node, or in to it, count."""
    way = getattr(query, "direction", Direction.TOTAL)
    return None if way is Direction.TOTAL else str(way.value)
