"""The nodes with the largest degrees: which they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Node, Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.degrees import degrees_of
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, degree_moves
from sfumato.graphs.shape import Direction, Shape
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms.top import TopChoice
from sfumato.mechanisms.top_set import TopSet

__all__ = ["JOINT_WORK", "TopNodes", "Way"]

JOINT_WORK = 10**7
"""Up to this many nodes times choices a set is chosen at once; beyond it, by default, one by one."""


class Way(Enum):
    """How several nodes are chosen: as one set, or one after the other."""

    JOINT = "joint"
    PEELING = "peeling"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNodes:
    """The ``choices`` nodes with the largest degrees: their names, not their degrees.

    ``way`` joint chooses the set as a whole, at a cost that does not grow with its size; peeling chooses one after the
    other, which also gives an order, and splits ε among the choices.

    Guarantee: :meth:`sensitivity` is that of the degrees; the names are covered. Assumes: the nodes are public.
    Public: every field. Proof: docs/proofs/top_set.md
    """

    KIND: ClassVar[str] = "query.top_nodes"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.top_set", "mechanism.top")
    dataset: Dataset
    shape: Shape
    choices: int
    way: Way = Way.JOINT
    direction: Direction = Direction.TOTAL
    called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if self.shape.nodes is None:
            raise Refused("the top nodes are named, and the nodes are secret here; nothing was done.")
        natural(self.choices, "choices")
        if self.choices >= self.shape.nodes:
            raise InvalidInput(
                f"all {self.shape.nodes} nodes are known already: the top {self.choices} say nothing. Nothing was "
                "done. Ask for fewer."
            )
        self.shape.check_direction(self.direction)
        if self.called and len(self.called) != self.shape.nodes:
            raise InvalidInput(f"{self.shape.nodes} nodes need as many names; nothing was done.")

    @property
    def size(self) -> int:
        """One node for each choice."""
        return self.choices

    @property
    def measure(self) -> None:
        """The column is names."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("node",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """First, second, and so on; a set has members and no order."""
        return {"member" if self.way is Way.JOINT else "place": range(1, self.choices + 1)}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The names of the chosen."""
        called = self.called or range(self.shape.nodes or 0)
        labels = {name: tuple(column) for name, column in self.labels().items()}
        chosen = tuple(called[place] for place in release.statement.values)
        return {"node": SelectedValues(chosen=chosen, labels=labels, measure="node", sources=(release,))}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A choice has no margin."""
        return {}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        words = "top_nodes_in_order" if self.way is Way.PEELING else None
        return network(self, said, cap=self.cap(said.unit), words=words, sentence=True, by=False)

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the degrees that are compared.

        >>> from sfumato.core.units import edge
        >>> top = TopNodes(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9), choices=3)
        >>> top.sensitivity(edge(relation="add/remove"), None).l1
        L1(value=Fraction(2, 1))
        """
        if isinstance(unit, Node):
            raise Refused(
                "the top nodes are named, and a node is what is protected; nothing was done. "
                "Ask for degree_sequence(...), which names none, or protect edges."
            )
        moved = degree_moves(unit, self.shape, self.direction)
        return Sensitivity.of(l0=min(moved.steps, self.shape.nodes or 0), l1=moved.steps, linf=1)

    @staticmethod
    def monotone(unit: Unit) -> bool:
        """Whether a unit moves all degrees in one direction: an edge that is not exchanged for another does."""
        return not (isinstance(unit, Edge) and unit.relation is Relation.REPLACE)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """One choice of a set, or one of each node after the other."""
        if self.way is Way.JOINT:
            steps = int(moved.l1.value) if moved.l1 is not None else 0
            return TopSet.calibrated(
                candidates=self.shape.nodes or 0,
                choices=self.choices,
                moved=steps,
                epsilon=spend.epsilon,
                monotone=self.monotone(unit),
            )
        return TopChoice.calibrated(
            choices=self.choices,
            sensitivity=1,
            epsilon=spend.epsilon,
            delta=spend.delta,
            monotone=unit.relation is Relation.ADD_REMOVE,
        )

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with a mechanism, or with numbers, that are said to answer this."""
        wanted = TopSet if self.way is Way.JOINT else TopChoice
        if type(mechanism) is not wanted:
            return f"the mechanism must be {wanted.KIND} for this query"
        if isinstance(mechanism, TopSet) and (
            (mechanism.candidates, mechanism.choices) != (self.shape.nodes, self.choices)
            or (mechanism.monotone and not self.monotone(unit))
        ):
            return "the mechanism must choose as many of as many nodes, and know which way the unit moves degrees"
        if len(set(values)) != len(values) or not all(0 <= place < (self.shape.nodes or 0) for place in values):
            return "the values must be different nodes"
        if self.way is Way.JOINT and list(values) != sorted(values):
            return "the values are a set, and must stand in the order of the nodes"
        return None

    def exact(self, graph: Adjacency) -> list[int]:
        """The degrees that are compared. Sensitive."""
        found: list[int] = degrees_of(graph, self.direction).tolist()
        return found
