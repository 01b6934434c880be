"""Questions whose exact numbers the engine counts where the edges lie: these alone are brought here, and no edge is.

The graph is the same as in memory, row by row (:mod:`sfumato.engines.edge_counts`), so sensitivities, noise and
certificates are the same too. Which way is taken depends on the declaration and the question alone.
"""

from collections.abc import Mapping
from itertools import chain, islice, repeat, starmap
from math import comb

from sfumato.core.units import Unit
from sfumato.engines.edge_counts import ListedEdges, degree_counts, degrees, edge_count, triangle_count
from sfumato.errors import InvalidInput
from sfumato.graphs.ergm.statistics import NetworkStatistics
from sfumato.graphs.nodes import Nodes
from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.queries.top import TopNodes
from sfumato.graphs.queries.triangles import Triangles
from sfumato.graphs.query import GraphQuery
from sfumato.graphs.shape import Direction
from sfumato.graphs.source import Edges, EdgeTable

__all__ = ["counted", "engine_counts", "is_counted"]

SERVERS = ("PostgreSQL", "Spark")
MOST_NAMES = 100_000
"""Names travel to a server inside the query; where more are declared, the edges are read instead."""
COUNTED = (EdgeCount, Degrees, SortedDegrees, DegreeHistogram, EdgesAndDegrees, Stars, TopNodes, NetworkStatistics)


def engine_counts(edges: Edges, nodes: Nodes | None, asked: str | None) -> EdgeTable | None:
    """The table whose engine counts, where a question allows it; None where edges are read into memory.

    The engine counts if it was asked to, and unasked where the table lies on a server. The rule depends on public facts
    alone, and no row is read for it.

    >>> from sfumato.graphs.nodes import nodes_of
    >>> from sfumato.graphs.source import edges_of
    >>> server = "postgresql://reader@db.example/clinic?table=contacts"
    >>> table = edges_of(server, source="a", target="b", weight=None, directed=False, kind=None)
    >>> engine_counts(table, nodes_of(9), None) is table, engine_counts(table, nodes_of(9), "memory")
    (True, None)
    """
    if asked not in (None, "engine", "memory"):
        raise InvalidInput(f"counts = {asked!r} is unknown; nothing was done. Say 'engine' or 'memory'.")
    table = edges if isinstance(edges, EdgeTable) else None
    server = table is not None and table.rows.engine in SERVERS
    long = server and nodes is not None and nodes.names is not None and nodes.count > MOST_NAMES
    if asked == "engine" and table is None:
        raise InvalidInput(
            "no engine holds these edges; nothing was done. Leave counts out, or give a Parquet or CSV file, a data "
            "frame or a table of a database."
        )
    if asked == "engine" and long:
        raise InvalidInput(
            f"more than {MOST_NAMES:,} names of nodes are too many to send to a server inside a query; nothing was "
            "done. Call the nodes 0, 1, …, or leave counts out: the edges are then read into memory."
        )
    counts = asked == "engine" or (asked is None and server and not long)
    return table if counts else None


def is_counted(query: GraphQuery, unit: Unit, edges: EdgeTable) -> bool:
    """Whether the exact numbers of a question can be counted by the engine that holds the edges.

    A graph that is projected to a cap is worked out in memory. What shapes the noise of triangles takes several queries
    about one state of the edges, and Spark knows none.

    >>> from sfumato.core.query import Dataset
    >>> from sfumato.core.units import edge
    >>> from sfumato.graphs.shape import Shape
    >>> from sfumato.graphs.source import edges_of
    >>> table = edges_of("contacts.parquet", source="a", target="b", weight=None, directed=False, kind=None)
    >>> facts = {"dataset": Dataset(name="wards", edition="1"), "shape": Shape(nodes=9)}
    >>> unit = edge(relation="add/remove")
    >>> is_counted(EdgeCount(**facts), unit, table), is_counted(Stars(leaves=2, max_degree=5, **facts), unit, table)
    (True, False)
    """
    if query.shape.nodes is None or query.cap(unit) is not None:
        return False
    match query:
        case Triangles():
            return not query.fits or edges.rows.engine != "Spark"
        case LocalStars():
            return not query.fits
    return isinstance(query, COUNTED)


def counted(query: GraphQuery, edges: EdgeTable, nodes: Nodes) -> object:
    """What ``query.exact`` would say of the graph in memory, counted by the engine. Sensitive."""
    with edges.rows.opened() as rows:
        listed = ListedEdges(
            rows=rows,
            source=edges.source,
            target=edges.target,
            weight=edges.weight,
            nodes=nodes.count,
            names=nodes.names,
            directed=query.shape.directed,
        )
        return _numbers(query, listed)


def _numbers(query: GraphQuery, edges: ListedEdges) -> object:
    def by_degree(direction: Direction) -> dict[int, int]:
        return degree_counts(edges, **_asked(direction))

    match query:
        case EdgeCount():
            return [edge_count(edges)]
        case Degrees() | TopNodes():
            return degrees(edges, **_asked(query.direction)).tolist()
        case SortedDegrees():
            falling = sorted(by_degree(query.direction).items(), reverse=True)
            return [*islice(chain.from_iterable(starmap(repeat, falling)), query.length)][::-1]
        case DegreeHistogram():
            return _histogram(by_degree(query.direction), query.most)
        case EdgesAndDegrees():
            counts = by_degree(Direction.TOTAL)
            return [_edges(counts), *_histogram(counts, query.most)]
        case Stars():
            return [_stars(by_degree(query.direction), query.leaves)]
        case LocalStars():
            return [_stars(by_degree(Direction.TOTAL), query.leaves)]
        case Triangles():
            if not query.fits:
                return [triangle_count(edges)]
            from sfumato.graphs.pushdown_sensitivity import triangle_rungs

            return triangle_count(edges), *triangle_rungs(edges)
        case NetworkStatistics():
            counts = by_degree(Direction.TOTAL)
            three = _edges(counts), _stars(counts, 2), triangle_count(edges)
            return [weight * count for weight, count in zip(query.weights, three, strict=True)]
    raise InvalidInput(f"no engine counts for a {type(query).__name__}; nothing was counted.")


def _asked(direction: Direction) -> dict[str, bool]:
    """Which ends of an edge a degree counts."""
    return {"leaving": direction is not Direction.IN, "reaching": direction is not Direction.OUT}


def _edges(counts: Mapping[int, int]) -> int:
    """Half the sum of all degrees."""
    return sum(degree * many for degree, many in counts.items()) // 2


def _stars(counts: Mapping[int, int], leaves: int) -> int:
    return sum(many * comb(degree, leaves) for degree, many in counts.items())


def _histogram(counts: Mapping[int, int], most: int) -> list[int]:
    """How many nodes have degree 0, 1, …, ``most``, the last with all that are larger."""
    held = [0] * (most + 1)
    for degree, many in counts.items():
        held[min(degree, most)] += many
    return held
