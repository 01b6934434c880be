"""Triangles under a node unit, with the unit's cap or one that is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Node, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.moves import check_unit
from sfumato.graphs.node_level.by_chosen_cap import ByChosenCap, counted
from sfumato.graphs.queries.one_number import OneNumber
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived

__all__ = ["ChosenTriangles", "NodeTriangles", "triangle_moves"]


def triangle_moves(cap: int) -> int:
    """How far one node moves the extension that is released: D(D − 1)/2, and 1 for its rounding.

    >>> triangle_moves(10)
    46
    """
    return cap * (cap - 1) // 2 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTriangles(OneNumber):
    """How many triangles an undirected graph has, when no node counts in more than D(D − 1)/2 of them.

    In a graph whose degrees do not exceed D this is the number of triangles; in others it is less. It is *not* the
    number of triangles after the projection to D, which one node can move further.

    Guarantee: one node with all its edges moves the number by at most D(D − 1)/2 + 1, whatever the graph; enumerated
    over all small graphs. Public: every field. Proof: docs/proofs/node_level.md

    >>> from sfumato.core.units import node
    >>> asked = NodeTriangles(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=None), most=10)
    >>> asked.sensitivity(node(max_degree=10, relation="add/remove"), None).l1
    L1(value=Fraction(46, 1))
    """

    KIND: ClassVar[str] = "query.node_triangles"
    VERSION: ClassVar[int] = 1
    MEASURE: ClassVar[str] = "triangles"
    dataset: Dataset
    shape: Shape
    most: int

    def __post_init__(self) -> None:
        natural(self.most, "most")
        _check(self.shape)

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, corners=self.most * (self.most - 1) // 2)

    def cap(self, unit: Unit) -> None:
        """None: the extension sees the graph as it is."""
        return

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """D(D − 1)/2 + 1."""
        check_unit(unit, self.shape)
        if not isinstance(unit, Node) or unit.max_degree != self.most:
            raise Refused("this extension is for a node unit with the same cap; nothing was done.")
        moved = triangle_moves(self.most)
        return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)

    def exact(self, graph: Adjacency) -> list[int]:
        """The number itself. Sensitive."""
        from sfumato.graphs.node_level.extension import held_triangles, most_at_a_node

        return [held_triangles(graph, most_at_a_node(self.most))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTriangles(ByChosenCap):
    """As :class:`NodeTriangles`, under a cap that is chosen privately and released with the number.

    Guarantee: the number at cap D is moved by at most D(D − 1)/2 + 1; the choice is private by itself, and both are
    charged. Public: every field. Proof: docs/proofs/node_level.md
    """

    KIND: ClassVar[str] = "query.chosen_triangles"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.chosen_cap",)

    def __post_init__(self) -> None:
        ByChosenCap.__post_init__(self)
        _check(self.shape)

    @property
    def numbers(self) -> int:
        """One."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """The number, and the cap that it was counted under."""
        return ("triangles", "cap")

    @property
    def projects(self) -> bool:
        """No: the extension sees the graph as it is."""
        return False

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one graph."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The number with its interval, and the cap, which is exact."""
        return counted(release, "triangles")

    def moves(self, unit: Unit, cap: int) -> int:
        """D(D − 1)/2 + 1."""
        return triangle_moves(cap)

    def exact_at(self, graph: Adjacency, cap: int) -> list[int]:
        """The number itself. Sensitive."""
        from sfumato.graphs.node_level.extension import held_triangles, most_at_a_node

        return [held_triangles(graph, most_at_a_node(cap))]


def _check(shape: Shape) -> None:
    if shape.directed:
        raise InvalidInput("triangles are of undirected graphs; nothing was done.")
