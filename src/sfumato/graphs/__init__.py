"""Graphs: private statistics of networks, for the edge unit and the node unit.

``GRAPH_QUERIES`` are the questions, ``QUERIES`` all declarations that a certificate of a graph can hold besides its
mechanism; reading them needs no data and no NumPy.
"""

from sfumato.graphs.ergm.statistics import NetworkStatistics
from sfumato.graphs.queries.clustering import Clustering
from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.queries.triangles import Triangles
from sfumato.graphs.shape import Shape
from sfumato.graphs.synthetic import SyntheticGraph

__all__ = [
    "GRAPH_QUERIES",
    "QUERIES",
    "Clustering",
    "DegreeHistogram",
    "Degrees",
    "EdgeCount",
    "EdgesAndDegrees",
    "LocalStars",
    "NetworkStatistics",
    "Shape",
    "SortedDegrees",
    "Stars",
    "SyntheticGraph",
    "Triangles",
]

GRAPH_QUERIES = (
    EdgeCount,
    Degrees,
    SortedDegrees,
    DegreeHistogram,
    EdgesAndDegrees,
    Stars,
    Triangles,
    LocalStars,
    Clustering,
    NetworkStatistics,
    SyntheticGraph,
)
QUERIES = (*GRAPH_QUERIES, Shape)
