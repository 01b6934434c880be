"""Pictures of networks: degrees, statistics, weights, and two levels of protection side by side."""

from sfumato.graphs.plots.degree_distribution import degrees
from sfumato.graphs.plots.edge_and_node import edge_and_node
from sfumato.graphs.plots.graph_statistics import statistics
from sfumato.graphs.plots.weight_matrix import matrix

__all__ = ["degrees", "edge_and_node", "matrix", "statistics"]
