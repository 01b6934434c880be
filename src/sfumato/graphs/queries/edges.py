"""The number of edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.moves import cap_of, edge_moves
from sfumato.graphs.shape import Shape
from sfumato.inference.figure import Derived, figure
from sfumato.mechanisms.advisor import least_noise

__all__ = ["EdgeCount"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCount:
    """How many edges the graph has; under a node unit, the graph that was projected to the unit's cap.

    Guarantee: :meth:`sensitivity` bounds the move for one unit, after the projection; enumerated over all small graphs
    and attained. Assumes: the cap is public and was not read off the graph. Public: every field.
    Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.edge_count"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape

    @property
    def size(self) -> int:
        """One number."""
        return 1

    @property
    def measure(self) -> str:
        """The name of the number."""
        return "edges"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one number."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The number as a figure."""
        return {self.measure: figure(release)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin, which hangs on the noise alone."""
        return {self.measure: Fraction(law.margin(confidence))}

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

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> Mechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The number itself. Sensitive."""
        return [graph.edges]
