"""Graphs: private statistics of networks, for the edge unit and the node unit.

``GRAPH_QUERIES`` are the questions, ``QUERIES`` all declarations that a certificate of a graph can hold besides its
mechanism; reading them needs no data and no NumPy.
"""

from sfumato.core.data_kind import DataKind
from sfumato.graphs.ergm.statistics import NetworkStatistics
from sfumato.graphs.node_level.by_chosen_cap import ChosenEdges, ChosenHistogram
from sfumato.graphs.node_level.triangles import ChosenTriangles, NodeTriangles
from sfumato.graphs.queries.blocks import BlockEdges
from sfumato.graphs.queries.clustering import Clustering
from sfumato.graphs.queries.communities import CommunityCount
from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.found_communities import FoundCommunities
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.local_stars import LocalStars
from sfumato.graphs.queries.pagerank import PageRank
from sfumato.graphs.queries.partition_choice import PartitionChoice
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.queries.top import TopNodes
from sfumato.graphs.queries.triangles import Triangles
from sfumato.graphs.queries.weights import PairWeights
from sfumato.graphs.shape import Shape
from sfumato.graphs.synthetic import SyntheticGraph

__all__ = [
    "GRAPH_QUERIES",
    "KIND",
    "QUERIES",
    "BlockEdges",
    "ChosenEdges",
    "ChosenHistogram",
    "ChosenTriangles",
    "Clustering",
    "CommunityCount",
    "DegreeHistogram",
    "Degrees",
    "EdgeCount",
    "EdgesAndDegrees",
    "FoundCommunities",
    "LocalStars",
    "NetworkStatistics",
    "NodeTriangles",
    "PageRank",
    "PairWeights",
    "PartitionChoice",
    "Shape",
    "SortedDegrees",
    "Stars",
    "SyntheticGraph",
    "TopNodes",
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
    TopNodes,
    PageRank,
    CommunityCount,
    PartitionChoice,
    FoundCommunities,
    PairWeights,
    BlockEdges,
    ChosenEdges,
    ChosenHistogram,
    ChosenTriangles,
    NodeTriangles,
)
QUERIES = (*GRAPH_QUERIES, Shape)

KIND = DataKind(
    name="graphs",
    declarations=QUERIES,
    messages="sfumato.graphs",
    plots={
        "degrees": "sfumato.graphs.plots.degree_distribution:degrees",
        "matrix": "sfumato.graphs.plots.weight_matrix:matrix",
    },
    store="sfumato.graphs.store:GraphStore",
)
