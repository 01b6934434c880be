"""Graphs: private statistics of networks, for the edge unit and the node unit.

``QUERIES`` are all declarations that a certificate of a graph can hold; reading them needs no data and no NumPy.
"""

from sfumato.graphs.queries.degrees import Degrees, SortedDegrees
from sfumato.graphs.queries.edges import EdgeCount
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.graphs.queries.stars import Stars
from sfumato.graphs.shape import Shape

__all__ = ["QUERIES", "DegreeHistogram", "Degrees", "EdgeCount", "EdgesAndDegrees", "Shape", "SortedDegrees", "Stars"]

QUERIES = (EdgeCount, Degrees, SortedDegrees, DegreeHistogram, EdgesAndDegrees, Stars, Shape)
