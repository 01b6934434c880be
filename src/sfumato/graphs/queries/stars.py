"""Stars: how many nodes there are with k of their neighbours, Σ C(dᵢ, k); for k = 2, the wedges."""

from dataclasses import dataclass
from math import comb
from typing import ClassVar

from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Node, Unit
from sfumato.errors import Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.degrees import degrees_of
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, degree_moves
from sfumato.graphs.queries.one_number import OneNumber
from sfumato.graphs.shape import Direction, Shape

__all__ = ["Stars", "check_count"]

MOST_LEAVES = 64


def check_count(nodes: int | None, degree: int | None, leaves: int) -> None:
    """Refuse stars of which a graph can have more than fit 64 bits: no interval would hold them.

    Where how many nodes there are is secret, the check is for the degree alone.

    >>> check_count(100, 99, 30)
    Traceback (most recent call last):
    sfumato.errors.Refused: a graph can have more than 2^62 stars of 30 edges; nothing was done. ...
    """
    if degree is not None and (nodes or 1) * comb(degree, leaves) > 2**62:
        raise Refused(
            f"a graph can have more than 2^62 stars of {leaves} edges; nothing was done. Ask for fewer edges, or under "
            "a smaller cap of degrees."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stars(OneNumber):
    """How many stars of ``leaves`` edges the graph has, with noise for the worst graph.

    With ``max_degree`` the stars are those of the graph that was projected to this public cap: fewer, with far less
    noise. Under a node unit the cap is the unit's own.

    Guarantee: :meth:`sensitivity` bounds the move for one unit, after the projection; enumerated over all small
    graphs and attained for the edge unit. Public: every field. Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.stars"
    VERSION: ClassVar[int] = 1
    MEASURE: ClassVar[str] = "stars"
    dataset: Dataset
    shape: Shape
    leaves: int
    max_degree: int | None = None
    direction: Direction = Direction.TOTAL

    def __post_init__(self) -> None:
        natural(self.leaves, "leaves", least=2, most=MOST_LEAVES)
        if self.max_degree is not None:
            natural(self.max_degree, "max_degree")
        self.shape.check_direction(self.direction)
        top = self.shape.top(self.direction)
        caps = [cap for cap in (top, self.max_degree) if cap is not None]
        check_count(self.shape.nodes, min(caps, default=None), self.leaves)

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit), leaves=self.leaves)

    def cap(self, unit: Unit) -> int | None:
        """That of a node unit, or the one asked for."""
        return cap_of(unit, self.max_degree)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """2n − 4 wedges for an edge, 2(D − 1) with a cap, 3D(D − 1)/2 for a node; at least 1, so that there is noise.

        >>> from sfumato.core.units import edge, node
        >>> stars = Stars(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9), leaves=2)
        >>> stars.sensitivity(edge(relation="replace"), None).l1
        L1(value=Fraction(14, 1))
        """
        moved = max(1, self._moved(unit))
        return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)

    def one_edge(self, cap: int) -> Sensitivity:
        """How far one edge alone moves the stars of the graph projected to ``cap``."""
        moved = max(1, 2 * comb(cap - 1, self.leaves - 1))
        return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)

    def _moved(self, unit: Unit) -> int:
        moves = degree_moves(unit, self.shape, self.direction, self.max_degree)
        if isinstance(unit, Node):
            check_count(self.shape.nodes, unit.max_degree, self.leaves)
            own = comb(unit.max_degree, self.leaves)
            return own + moves.steps * comb(unit.max_degree - 1, self.leaves - 1)
        top = self.shape.largest(self.direction)
        if self.max_degree is not None and self.max_degree < top:
            return moves.steps * comb(self.max_degree - 1, self.leaves - 1)
        # More edges never make fewer stars: an edge that is replaced takes some away and brings some.
        return moves.ends * comb(max(top - 1, 0), self.leaves - 1)

    def exact(self, graph: Adjacency) -> list[int]:
        """The number itself. Sensitive."""
        import numpy as np

        counts = np.bincount(degrees_of(graph, self.direction)).tolist()
        return [sum(nodes * comb(degree, self.leaves) for degree, nodes in enumerate(counts))]
