"""How many nodes have each degree; alone, and together with the number of edges."""

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
from sfumato.core.sensitivity import L0, Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Node, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.degrees import degrees_of
from sfumato.graphs.describe import by_sentence
from sfumato.graphs.moves import cap_of, degree_moves, edge_moves
from sfumato.graphs.query import check_size, raw_figure
from sfumato.graphs.shape import Direction, Shape
from sfumato.inference.consistency import Adjusted
from sfumato.inference.derived import Derived
from sfumato.inference.figure import figure
from sfumato.mechanisms.advisor import least_noise

__all__ = ["DegreeHistogram", "EdgesAndDegrees", "histogram_moves"]


def histogram_moves(unit: Unit, shape: Shape, direction: Direction, *, size: int) -> Sensitivity:
    """How far one unit moves the counts of nodes by degree.

    Every degree that changes takes its node from one count to another. An edge does that to its k ends: l1 = 2k, and
    l2² = 2k² where both leave one count for one other; replaced, l1 = 4k and l2² = 6k². A node does it to at most D
    others, and comes or goes itself. Proof: docs/proofs/projection.md

    >>> from sfumato.core.units import edge
    >>> moved = histogram_moves(edge(relation="add/remove"), Shape(nodes=9), Direction.TOTAL, size=9)
    >>> moved.l1.value, moved.l2.squared
    (Fraction(4, 1), Fraction(8, 1))
    """
    moved = degree_moves(unit, shape, direction)
    others = moved.steps
    if moved.apart:
        squared = 6 * moved.ends**2 if moved.exchanged else 2 * moved.ends**2
        return Sensitivity.of(l0=min(2 * others, size), l1=2 * others, l2_squared=squared, linf=others)
    if moved.comes:
        total, squared, most = 2 * others + 1, (others + 1) ** 2 + others**2, others + 1
    else:
        total, squared, most = 2 * others + 2, 2 * (others + 1) ** 2, others + 1
    return Sensitivity.of(l0=min(total, size), l1=total, l2_squared=squared, linf=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeHistogram:
    """How many nodes have degree 0, 1, …, ``most``; with ``closed`` no node has more, else the last count holds them.

    Where the nodes are secret and no private list names them, nodes without an edge are not known, and the counts
    begin at degree 1. Under a node unit the degrees are those of the graph that was projected to the unit's cap.

    Guarantee: :meth:`sensitivity` bounds the move of all counts for one unit, after the projection; enumerated over
    all small graphs, and attained for add/remove. Public: every field. Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.degree_histogram"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    most: int
    closed: bool
    direction: Direction = Direction.TOTAL

    def __post_init__(self) -> None:
        natural(self.most, "most", least=0 if _least(self.shape) == 0 else 1)
        self.shape.check_direction(self.direction)
        check_size(self.size)

    @property
    def size(self) -> int:
        """One number for each degree."""
        return self.most + 1 - _least(self.shape)

    @property
    def measure(self) -> str:
        """The name of the numbers."""
        return "nodes"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The degrees; as text, where the last one holds all that are larger."""
        degrees = range(_least(self.shape), self.most + 1)
        return {"degree": degrees if self.closed else [*map(str, degrees[:-1]), f"{self.most} or more"]}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts as a figure."""
        return {self.measure: figure(release)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin, which depends on the noise alone."""
        return {self.measure: Fraction(law.margin(confidence, numbers=self.size if joint else 1))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return by_sentence(self, said)

    def cap(self, unit: Unit) -> int | None:
        """That of a node unit."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """4 for an edge, 2D + 1 for a node that comes or goes."""
        if self.closed:
            _check_closed(self.most, unit, self.shape, self.direction)
        return histogram_moves(unit, self.shape, self.direction, size=self.size)

    def one_edge(self, cap: int) -> Sensitivity:
        """How far one edge alone moves the counts of the graph projected to ``cap``: two nodes change theirs."""
        return Sensitivity.of(l0=min(4, self.size), l1=4, l2_squared=8, linf=2)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The counts themselves. Sensitive."""
        return _counts(graph, self.direction, self.most)[_least(self.shape) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgesAndDegrees:
    """The number of edges and the degree histogram for one charge, made to agree by least squares.

    Edges are half the sum of all degrees, and where the number of nodes is public the counts add up to it: the
    answer is the nearest one to the noisy numbers for which both hold. These stay in ``release.values``.

    Guarantee: one unit moves all numbers together by no more than :meth:`sensitivity`; enumerated over all small
    graphs. Public: every field. Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.edges_and_degrees"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    most: int

    def __post_init__(self) -> None:
        natural(self.most, "most", least=0 if _least(self.shape) == 0 else 1)
        check_size(self.size)

    @property
    def size(self) -> int:
        """The edges, and one number for each degree."""
        return self.most + 2 - _least(self.shape)

    @property
    def measure(self) -> None:
        """None: the column is computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("count",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """What each number counts."""
        degrees = range(_least(self.shape), self.most + 1)
        return {"statistic": ["edges", *(f"nodes of degree {degree}" for degree in degrees)]}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The nearest numbers that agree, beside the raw ones."""
        raw, least = raw_figure(release, "count"), _least(self.shape)
        halves = [Fraction(-degree, 2) for degree in range(least, self.most + 1)]
        rules = [([Fraction(1), *halves], Fraction(0))]
        if self.shape.nodes is not None:
            rules.append(([Fraction(0), *(Fraction(1) for _ in halves)], Fraction(self.shape.nodes)))
        fitted = _nearest([Fraction(value) for value in release.values], rules)
        plain = tuple(int(value) if value.denominator == 1 else value for value in fitted)
        return {"count": Adjusted(raw=raw, adjusted=plain, least=0, most=None)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the raw numbers; those that agree are a little nearer."""
        return {"count": Fraction(law.margin(confidence, numbers=self.size if joint else 1))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return by_sentence(self, said)

    def cap(self, unit: Unit) -> int | None:
        """That of a node unit."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """5 for an edge (l2² = 9): where an edge is replaced, the number of edges stays or the histogram moves half.

        >>> from sfumato.core.units import edge
        >>> both = EdgesAndDegrees(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9), most=8)
        >>> both.sensitivity(edge(relation="replace"), None).l1
        L1(value=Fraction(8, 1))
        """
        _check_closed(self.most, unit, self.shape, Direction.TOTAL)
        edges, size = edge_moves(unit, self.shape), self.size - 1
        both = histogram_moves(unit, self.shape, Direction.TOTAL, size=size)
        one = Sensitivity.of(l0=1, l1=edges, l2_squared=edges**2, linf=edges)
        if not isinstance(unit, Node) and degree_moves(unit, self.shape).exchanged:
            touched = 1 + (size if both.l0 is None else both.l0.count)
            return Sensitivity(l0=L0(touched), l1=both.l1, l2=both.l2, linf=both.linf)
        return Sensitivity.joint([one, both])

    def one_edge(self, cap: int) -> Sensitivity:
        """How far one edge alone moves all numbers of the graph projected to ``cap``."""
        return Sensitivity.of(l0=min(5, self.size), l1=5, l2_squared=9, linf=2)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The numbers themselves. Sensitive."""
        return [graph.edges, *_counts(graph, Direction.TOTAL, self.most)[_least(self.shape) :]]


def _least(shape: Shape) -> int:
    """The smallest degree that is counted: nodes without an edge are known where nodes are public, or listed."""
    return 0 if shape.nodes is not None or shape.listed else 1


def _counts(graph: Adjacency, direction: Direction, most: int) -> list[int]:
    import numpy as np

    held = np.minimum(degrees_of(graph, direction), most)
    counts: list[int] = np.bincount(held, minlength=most + 1).tolist()
    return counts


def _check_closed(most: int, unit: Unit, shape: Shape, direction: Direction) -> None:
    """Refuse counts that are said to hold all degrees and do not: the labels, and sums of degrees, would be wrong."""
    largest = unit.max_degree if isinstance(unit, Node) else shape.top(direction)
    if largest is None or most < largest:
        raise Refused("a node can have a degree beyond the last count; nothing was done. Ask with a larger most=….")


def _nearest(values: Sequence[Fraction], rules: Sequence[tuple[Sequence[Fraction], Fraction]]) -> list[Fraction]:
    """The point nearest to ``values`` on which each rule Σ a·x = b holds: one rule, or two that differ.

    >>> _nearest([Fraction(3), Fraction(5)], [([Fraction(1), Fraction(1)], Fraction(10))])
    [Fraction(4, 1), Fraction(6, 1)]
    """
    if len(rules) > 2:
        raise InvalidInput("more than two rules cannot be met here; nothing was computed.")
    excess = [sum((a * x for a, x in zip(row, values, strict=True)), Fraction(0)) - b for row, b in rules]
    gram = [[sum((a * b for a, b in zip(one, two, strict=True)), Fraction(0)) for two, _ in rules] for one, _ in rules]
    if len(rules) == 1:
        shares = [excess[0] / gram[0][0]]
    else:
        determinant = gram[0][0] * gram[1][1] - gram[0][1] ** 2
        shares = [
            (gram[1][1] * excess[0] - gram[0][1] * excess[1]) / determinant,
            (gram[0][0] * excess[1] - gram[0][1] * excess[0]) / determinant,
        ]
    return [
        value - sum((share * row[place] for share, (row, _) in zip(shares, rules, strict=True)), Fraction(0))
        for place, value in enumerate(values)
    ]
