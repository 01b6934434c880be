"""Degrees: of each node by its name, or sorted and without names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.degrees import degrees_of
from sfumato.graphs.describe import by_sentence, network
from sfumato.graphs.moves import cap_of, degree_moves
from sfumato.graphs.query import check_size, raw_figure
from sfumato.graphs.shape import Direction, Shape
from sfumato.inference.consistency import rising_medians
from sfumato.inference.derived import Derived
from sfumato.inference.figure import figure
from sfumato.mechanisms.advisor import least_noise

__all__ = ["Degrees", "SortedDegrees"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """The degree of each node, in the public order of the nodes; for edge and weight units alone.

    ``called`` are the public names of the nodes, none where they are 0, 1, ….

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector for one edge; enumerated and attained.
    Assumes: the node set is public. Public: every field. Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.degrees"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    direction: Direction = Direction.TOTAL
    called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if self.shape.nodes is None:
            raise Refused(
                "degrees by node name their nodes, which are secret here; nothing was done. "
                "Ask for degree_sequence(...) or degree_histogram(), which name none."
            )
        self.shape.check_direction(self.direction)
        check_size(self.size)
        if self.called and (len(self.called) != self.size or len(set(self.called)) != self.size):
            raise InvalidInput(f"{self.size} nodes need as many different names; nothing was done.")
        if len({type(name) for name in self.called}) > 1:
            raise InvalidInput("names of nodes are all whole numbers or all texts; nothing was done.")

    @property
    def size(self) -> int:
        """One number for each node."""
        return self.shape.nodes or 0

    @property
    def measure(self) -> str:
        """The name of the numbers."""
        return "degree"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The nodes."""
        return {"node": self.called or range(self.size)}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The degrees as a figure."""
        return {self.measure: figure(release)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin, which depends on the noise alone."""
        return {self.measure: Fraction(law.margin(confidence, numbers=self.size if joint else 1))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return by_sentence(self, said)

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """An edge moves the degrees of its two ends by 1 each (of one end, where degrees in or out are asked for).

        >>> from sfumato.core.units import edge
        >>> degrees = Degrees(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9))
        >>> degrees.sensitivity(edge(relation="add/remove"), None).l2
        L2(squared=Fraction(2, 1))
        """
        if isinstance(unit, Node):
            raise Refused(
                "degrees by node name the node that is protected; nothing was done. "
                "Ask for degree_sequence(...) or degree_histogram(), which name none."
            )
        moved = degree_moves(unit, self.shape, self.direction)
        return Sensitivity.of(l0=min(moved.steps, self.size), l1=moved.steps, l2_squared=moved.steps, linf=1)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The degrees themselves. Sensitive."""
        found: list[int] = degrees_of(graph, self.direction).tolist()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedDegrees:
    """The ``length`` largest degrees, from the smallest to the largest of them; nodes that are not there count as 0.

    The answer is made to rise again after the noise (isotonic regression in l1, post-processing), to the rising numbers
    that are most likely under Laplace noise. That takes most of the noise away where many degrees are alike; the
    numbers as drawn stay in ``release.values`` and ``column.raw``.

    Guarantee: sorting brings no two vectors further apart, so one unit moves the sorted degrees no further than the
    degrees; after the projection under a node unit. Enumerated over all small graphs. Public: every field.
    Proof: docs/proofs/projection.md
    """

    KIND: ClassVar[str] = "query.sorted_degrees"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    length: int
    direction: Direction = Direction.TOTAL

    def __post_init__(self) -> None:
        natural(self.length, "length")
        self.shape.check_direction(self.direction)
        check_size(self.length)
        if self.shape.nodes is not None and self.length > self.shape.nodes:
            raise InvalidInput(
                f"{self.length} degrees were asked for, and there are {self.shape.nodes} nodes; nothing was done."
            )

    @property
    def size(self) -> int:
        """As many numbers as were asked for."""
        return self.length

    @property
    def measure(self) -> None:
        """None: the column is computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("degree",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The rank of each degree, 1 for the smallest that is shown."""
        return {"rank": range(1, self.length + 1)}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The degrees, which rise and are held to what is possible, beside the raw ones."""
        fitted, top = rising_medians(raw_figure(release, "degree")), self.shape.top(self.direction)
        if isinstance(release.statement.unit, Node):
            cap = release.statement.unit.max_degree
            top = cap if top is None else min(cap, top)
        held = tuple(max(value, 0) if top is None else min(max(value, 0), top) for value in fitted.adjusted)
        return {"degree": replace(fitted, adjusted=held, least=0, most=top)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the raw numbers; those that rise are nearer in most places."""
        return {"degree": Fraction(law.margin(confidence, numbers=self.size if joint else 1))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        words = None if self.length == self.shape.nodes else "largest_degrees"
        return network(self, said, cap=self.cap(said.unit), words=words, sentence=True)

    def cap(self, unit: Unit) -> int | None:
        """That of a node unit."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """An edge moves two degrees by 1 each; a node moves its own by the cap D, and the others by D in all.

        >>> from sfumato.core.units import node
        >>> degrees = SortedDegrees(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=None), length=100)
        >>> degrees.sensitivity(node(max_degree=20, relation="add/remove"), None).l1
        L1(value=Fraction(40, 1))
        """
        moved = degree_moves(unit, self.shape, self.direction)
        if moved.apart:
            return Sensitivity.of(l0=self.length, l1=moved.steps, l2_squared=moved.steps, linf=1)
        return Sensitivity.of(
            l0=self.length,
            l1=moved.own + moved.steps,
            l2_squared=moved.own**2 + moved.steps**2,
            linf=max(moved.own, moved.steps),
        )

    def one_edge(self, cap: int) -> Sensitivity:
        """How far one edge alone moves the degrees of the graph projected to ``cap``; both steps can meet in one."""
        return Sensitivity.of(l0=self.length, l1=2, l2_squared=4, linf=2)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The sorted degrees themselves. Sensitive."""
        import numpy as np

        found: list[int] = np.sort(degrees_of(graph, self.direction)).tolist()[-self.length :]
        return [0] * (self.length - len(found)) + found
