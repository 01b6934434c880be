"""How far one unit moves the degrees of a graph: one place for every query that is computed from them.

For a node the degrees are those of the projected graph (:mod:`sfumato.graphs.projection`), and the bounds hold for the
query *after* the projection. Proof: docs/proofs/projection.md
"""

from dataclasses import dataclass

from sfumato.core.exact import natural
from sfumato.core.units import Edge, Node, Relation, Unit, Weight, describe
from sfumato.errors import NotDeclared, Refused, Unsupported
from sfumato.graphs.shape import Direction, Shape

__all__ = ["DegreeMoves", "cap_of", "check_unit", "degree_moves", "edge_moves"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeMoves:
    """What one unit does to degrees.

    ``own`` is how far the degree of the node itself moves (0 for an edge), ``steps`` how far all other degrees move
    together, ``ends`` how many degrees one edge counts in (0 for a node). ``apart`` says that no other degree moves by
    more than one, ``exchanged`` that the unit leaves one place and enters another, ``comes`` that a node is there in
    one of the two graphs and not in the other.
    """

    own: int
    steps: int
    apart: bool
    exchanged: bool
    comes: bool
    ends: int = 0


def check_unit(unit: Unit, shape: Shape) -> None:
    """Refuse a unit that no graph has, or that the public facts of this graph contradict.

    >>> from sfumato.core.units import user
    >>> check_unit(user("id", relation="replace"), Shape(nodes=3))
    Traceback (most recent call last):
    sfumato.errors.Refused: a graph is not protected under user (id), replace; nothing was done...
    """
    match unit:
        case Edge() | Weight():
            if shape.nodes is None:
                raise NotDeclared(
                    "under the edge unit the nodes of a graph are public and must be declared; nothing was done. "
                    "Say nodes=4039, or list their names."
                )
        case Node(relation=Relation.ADD_REMOVE):
            if shape.nodes is not None:
                raise Refused(
                    "the number of nodes is secret where a node may come or go, and saying it would undo that. Nothing "
                    "was done. Leave nodes out, or protect nodes under replace."
                )
        case Node():
            pass
        case _:
            raise Refused(
                f"a graph is not protected under {describe(unit)}; nothing was done. "
                "Choose sf.edge, sf.node or sf.weight as the unit."
            )


def cap_of(unit: Unit, asked: int | None = None) -> int | None:
    """The degree cap that the graph is projected to before a query reads it; never one that was read off the data."""
    if isinstance(unit, Node):
        if asked is not None:
            raise Refused("the cap under a node unit is the unit's own max_degree; nothing was done. Leave it out.")
        return unit.max_degree
    return None if asked is None else natural(asked, "max_degree")


def degree_moves(
    unit: Unit, shape: Shape, direction: Direction = Direction.TOTAL, cap: int | None = None
) -> DegreeMoves:
    """How far one unit moves the degrees; with ``cap``, those of the graph that was projected to it.

    Guarantee: for all pairs of neighbours, after the projection; enumerated over all small graphs. Under replace an
    edge that does not count (a loop, a pair outside the node set) may be exchanged for one that does. The weight of
    one pair is one edge that comes or goes, whatever the relation. Proof: docs/proofs/projection.md

    >>> from sfumato.core.units import edge, node
    >>> degree_moves(edge(relation="add/remove"), Shape(nodes=9)).steps
    2
    >>> moves = degree_moves(node(max_degree=5, relation="replace"), Shape(nodes=9))
    >>> moves.own, moves.steps
    (5, 10)
    """
    check_unit(unit, shape)
    shape.check_direction(direction)
    if cap_of(unit, cap) is not None and direction is not Direction.TOTAL:
        raise Unsupported(
            "the projection holds the total degree, and nothing is proven of degrees in or out after it; nothing was "
            "done. Ask for total degrees, or protect edges."
        )
    exchanged = isinstance(unit, Edge | Node) and unit.relation is Relation.REPLACE
    if isinstance(unit, Node):
        steps = unit.max_degree * (2 if exchanged else 1)
        return DegreeMoves(
            own=unit.max_degree,
            steps=steps,
            apart=False,
            exchanged=exchanged,
            comes=unit.relation is Relation.ADD_REMOVE,
        )
    ends = 2 if direction is Direction.TOTAL else 1
    steps = 2 * ends if exchanged else ends
    return DegreeMoves(own=0, steps=steps, apart=cap is None, exchanged=exchanged, comes=False, ends=ends)


def edge_moves(unit: Unit, shape: Shape) -> int:
    """How far one unit moves the number of edges: an edge by 1, a node by its cap, whatever the relation.

    A node that comes never lowers the number, so one that is replaced lowers it once and raises it once at the most.

    >>> from sfumato.core.units import node
    >>> edge_moves(node(max_degree=5, relation="replace"), Shape(nodes=9))
    5
    """
    check_unit(unit, shape)
    return unit.max_degree if isinstance(unit, Node) else 1
