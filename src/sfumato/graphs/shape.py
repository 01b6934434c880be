"""The public facts about a graph that a question depends on: how many nodes it has, and whether its edges point."""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.graphs.adjacency import MOST_NODES

__all__ = ["Direction", "Shape"]


class Direction(Enum):
    """Which edges of a node its degree counts: all, those that leave it, or those that reach it."""

    TOTAL = "total"
    OUT = "out"
    IN = "in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many nodes there are (None where that is secret), and whether edges are directed.

    ``listed`` says that a private list names the nodes, so that those without an edge are known too.

    >>> Shape(nodes=5).top(Direction.TOTAL), Shape(nodes=5, directed=True).top(Direction.TOTAL)
    (4, 8)
    """

    KIND: ClassVar[str] = "graph.shape"
    VERSION: ClassVar[int] = 1
    nodes: int | None
    directed: bool = False
    listed: bool = False

    def __post_init__(self) -> None:
        if self.nodes is not None:
            natural(self.nodes, "nodes", most=MOST_NODES)
        if self.nodes is not None and self.listed:
            raise InvalidInput("a public number of nodes needs no private list of them; nothing was done.")

    def top(self, direction: Direction) -> int | None:
        """The largest degree that any node can have; None where the number of nodes is secret."""
        if self.nodes is None:
            return None
        return (self.nodes - 1) * (2 if self.directed and direction is Direction.TOTAL else 1)

    def largest(self, direction: Direction) -> int:
        """The same, where it must be known."""
        top = self.top(direction)
        if top is None:
            raise NotDeclared("the number of nodes is not declared; nothing was done. Say nodes=….")
        return top

    def check_direction(self, direction: Direction) -> None:
        """Refuse anything but a direction, and degrees in or out of an undirected graph."""
        if type(direction) is not Direction:
            raise InvalidInput("a direction is one of Direction; nothing was done. Ask with the methods of a graph.")
        if not self.directed and direction is not Direction.TOTAL:
            raise InvalidInput("the edges of this graph have no direction; nothing was done. Ask for all degrees.")
