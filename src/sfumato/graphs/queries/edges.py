"""The number of edges."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.description import Description
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, edge_moves
from sfumato.graphs.queries.one_number import OneNumber
from sfumato.graphs.shape import Shape

__all__ = ["EdgeCount"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCount(OneNumber):
    """How many edges the graph has; under a node unit, the graph that was projected to the unit's cap.

    Guarantee: :meth:`sensitivity` bounds the move for one unit, after the projection; enumerated over all small graphs
    and attained. Assumes: the cap is public and was not read off the graph. Public: every field.
    Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.edge_count"
    VERSION: ClassVar[int] = 1
    MEASURE: ClassVar[str] = "edges"
    dataset: Dataset
    shape: Shape

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit))

    def cap(self, unit: Unit) -> int | None:
        """That of a node unit."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """1 for an edge, the cap D for a node.

        >>> from sfumato.core.units import node
        >>> count = EdgeCount(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=None))
        >>> count.sensitivity(node(max_degree=20, relation="add/remove"), None).l1
        L1(value=Fraction(20, 1))
        """
        moved = edge_moves(unit, self.shape)
        return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)

    def one_edge(self, cap: int) -> Sensitivity:
        """How far one edge alone moves the number of edges of the graph projected to ``cap``."""
        return Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)

    def exact(self, graph: Adjacency) -> list[int]:
        """The number itself. Sensitive."""
        return [graph.edges]
