"""The sufficient statistics of an exponential random graph: edges, 2-stars and triangles, released together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Node, Unit
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import by_sentence
from sfumato.graphs.moves import check_unit
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.advisor import least_noise

__all__ = ["STATISTICS", "NetworkStatistics", "usual_weights"]

STATISTICS = ("edges", "2-stars", "triangles")
MOST_WEIGHT = 2**31


def usual_weights(nodes: int) -> tuple[int, int, int]:
    """The weights that give edges 1/11 of ε, 2-stars 4/11 and triangles 6/11, since edges need the least.

    With equal weights all three have noise for 3n − 5, and the edges drown in it.

    >>> usual_weights(50)
    (96, 4, 12)
    """
    return max(1, 2 * (nodes - 2)), 4, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStatistics:
    """How many edges, 2-stars and triangles the graph has: one vector with one noise, for one charge.

    Each statistic is multiplied by its public weight before the noise and divided by it after, so that the weights
    divide the noise between the three; the released numbers are the weighted ones.

    Guarantee: one edge moves the weighted vector by l1 = w₁ + (n − 2)(2w₂ + w₃) and l2² = w₁² + (n − 2)²(4w₂² + w₃²)
    at most, attained by an edge of the complete graph; with weights 1 that is 3n − 5 and 1 + 5(n − 2)². An edge that is
    replaced moves no further. Assumes: the nodes are public. Public: every field. There is no degree cap: the value
    3D − 2 of graphs whose degrees are at most D does not hold after a projection. Proof: docs/proofs/ergm_statistics.md
    """

    KIND: ClassVar[str] = "query.network_statistics"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    weights: tuple[int, int, int] = (1, 1, 1)

    def __post_init__(self) -> None:
        if self.shape.directed:
            raise InvalidInput("these statistics are of undirected graphs; nothing was done.")
        if self.shape.nodes is None:
            raise NotDeclared("these statistics need the public number of nodes; nothing was done. Say nodes=….")
        natural(self.shape.nodes, "nodes", least=2)
        if not isinstance(self.weights, tuple) or len(self.weights) != 3:
            raise InvalidInput("there are three weights: of edges, 2-stars and triangles; nothing was done.")
        for weight in self.weights:
            natural(weight, "weight", most=MOST_WEIGHT)

    @property
    def size(self) -> int:
        """Three numbers."""
        return len(STATISTICS)

    @property
    def measure(self) -> None:
        """None: the statistics are the numbers, each divided by its weight."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("count",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """What each number counts."""
        return {"statistic": list(STATISTICS)}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The statistics as a figure."""
        said = release.statement
        forms = tuple(
            LinearCombination(Fraction(value, weight), {Noise(said.identifier, place, said.law): Fraction(1, weight)})
            for place, (value, weight) in enumerate(zip(said.values, self.weights, strict=True))
        )
        return {"count": Figure(forms=forms, labels={"statistic": STATISTICS}, measure="count", sources=(release,))}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The largest of the three margins, which depend on the noise alone."""
        return {"count": Fraction(law.margin(confidence, numbers=3 if joint else 1), min(self.weights))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return by_sentence(self, said)

    def cap(self, unit: Unit) -> None:
        """None: the whole graph is read."""
        return

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """3n − 5 and l2² = 1 + 5(n − 2)² with weights 1; under edge and weight units alone.

        >>> from sfumato.core.units import edge
        >>> asked = NetworkStatistics(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=6))
        >>> moved = asked.sensitivity(edge(relation="add/remove"), None)
        >>> moved.l1.value, moved.l2.squared
        (Fraction(13, 1), Fraction(81, 1))
        """
        check_unit(unit, self.shape)
        if isinstance(unit, Node):
            raise Refused(
                "what one node does to the triangles of a projected graph is not bounded here; nothing was done. "
                "Protect edges, or ask for edges and stars alone."
            )
        others = (self.shape.nodes or 0) - 2
        edges, stars, triangles = self.weights
        moves = [edges, stars * 2 * others, triangles * others]
        return Sensitivity.of(
            l0=sum(move > 0 for move in moves),
            l1=sum(moves),
            l2_squared=sum(move**2 for move in moves),
            linf=max(moves),
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The weighted statistics themselves. Sensitive."""
        from sfumato.graphs.kernels import triangles

        degrees = graph.degrees
        stars = int((degrees * (degrees - 1) // 2).sum())
        counts = graph.edges, stars, triangles(graph)
        return [weight * count for weight, count in zip(self.weights, counts, strict=True)]
