"""The weights of a network, pair by pair; a pair without an edge has weight 0 and gets noise like every other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import positive
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release, only_release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Node, Relation, Unit, Weight
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, check_unit
from sfumato.graphs.pairs import check_pairs, pair_count, pairs, places
from sfumato.graphs.shape import Shape
from sfumato.graphs.source import WEIGHT_STEPS
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.advisor import least_noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PairWeights", "mirrored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairWeights:
    """The weight of every pair of nodes, from 0 to ``bound``, each pair once; absent edges too.

    The numbers are drawn in steps of ``bound``/2²⁰. :func:`mirrored` makes the symmetric matrix of them, which costs
    nothing. Were both halves of that matrix drawn by themselves, one weight would move two numbers: l1 = 2·bound.

    Guarantee: one weight moves one number by at most ``bound``, so l1 = l2 = bound; attained. An edge that is replaced
    moves two. Assumes: the nodes are public. Public: every field. Proof: docs/proofs/pairs.md
    """

    KIND: ClassVar[str] = "query.pair_weights"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    bound: Fraction
    called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive(self.bound, "bound"))
        if self.shape.nodes is None:
            raise Refused("pairs are named by their nodes, which are secret here; nothing was done. Ask for counts.")
        if self.shape.nodes < 2:
            raise InvalidInput("a graph of one node has no pair; nothing was done.")
        check_pairs(self.shape)
        if self.called and len(self.called) != self.shape.nodes:
            raise InvalidInput(f"{self.shape.nodes} nodes need as many names; nothing was done.")

    @property
    def size(self) -> int:
        """One number for each pair."""
        return pair_count(self.shape)

    @property
    def step(self) -> Fraction:
        """What a number of the answer counts."""
        return self.bound / WEIGHT_STEPS

    @property
    def measure(self) -> None:
        """None: the weights are the numbers times the step."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("weight",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The two nodes of each pair."""
        called = self.called or range(self.shape.nodes or 0)
        ends = list(pairs(self.shape))
        return {"source": [called[one] for one, _ in ends], "target": [called[other] for _, other in ends]}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The weights as a figure."""
        said = release.statement
        forms = tuple(
            LinearCombination(value * self.step, {Noise(said.identifier, place, said.law): self.step})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"weight": Figure(forms=forms, labels=labels, measure="weight", sources=(release,))}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin, which depends on the noise alone."""
        return {"weight": self.step * law.margin(confidence, numbers=self.size if joint else 1)}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit), bound=self.bound, sentence=True)

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """The bound, in steps, for one weight or one edge; an edge that is replaced leaves a pair and enters another.

        >>> from sfumato.core.units import weight
        >>> asked = PairWeights(dataset=Dataset(name="proteins", edition="1"), shape=Shape(nodes=9), bound=Fraction(5))
        >>> moved = asked.sensitivity(weight(bound=5, relation="replace"), None)
        >>> moved.l1.value * asked.step, moved.l2.squared * asked.step**2
        (Fraction(5, 1), Fraction(25, 1))
        """
        check_unit(unit, self.shape)
        if isinstance(unit, Node):
            raise Refused(
                "pairs name the node that is protected; nothing was done. Ask for counts, or protect edges or weights."
            )
        if isinstance(unit, Weight) and unit.bound != self.bound:
            raise Refused(f"the unit's weights go up to {unit.bound}, not {self.bound}; nothing was done.")
        many = 2 if isinstance(unit, Edge) and unit.relation is Relation.REPLACE else 1
        return Sensitivity.of(
            l0=min(many, self.size), l1=many * WEIGHT_STEPS, l2_squared=many * WEIGHT_STEPS**2, linf=WEIGHT_STEPS
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The weights themselves, in steps. Sensitive."""
        import numpy as np

        if graph.weights is None:
            raise NotDeclared("the edges have no weights; nothing was done. Say weight=… when declaring the graph.")
        head = np.repeat(np.arange(graph.n), graph.degrees)
        held = graph.weights if graph.directed else graph.weights[head < graph.indices]
        found = np.zeros(self.size, dtype=np.int64)
        found[places(graph)] = held
        exact: list[int] = found.tolist()
        return exact


def mirrored(release: Release) -> "NDArray[np.float64]":
    """The released weights as a matrix: symmetric where edges have no direction, and 0 on its diagonal.

    Post-processing: both halves show the same numbers with the same noise, and nothing more is charged.
    """
    import numpy as np

    query = only_release(release).statement.query
    if not isinstance(query, PairWeights):
        raise InvalidInput("only weights that were released pair by pair make a matrix; nothing was done.")
    found = np.zeros((query.shape.nodes or 0,) * 2)
    ends = np.array(list(pairs(query.shape)))
    found[ends[:, 0], ends[:, 1]] = [float(value * query.step) for value in release.values]
    return found if query.shape.directed else found + found.T
