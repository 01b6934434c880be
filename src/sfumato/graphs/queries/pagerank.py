"""PageRank of each node: how often a walk that restarts now and then is there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import Exact, natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release, only_release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Node, Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, check_unit
from sfumato.graphs.pagerank import (
    RANK_BITS,
    WORK_BITS,
    damping_of,
    flow_units,
    half_moves,
    leftover,
    ranks,
    rounding_error,
)
from sfumato.graphs.queries.degrees import Degrees
from sfumato.graphs.query import check_size
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.advisor import least_noise

__all__ = ["PageRank", "pagerank_of_degrees"]

MOST_LOOPS = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRank:
    """The rank of every node, in units of 2⁻⁴⁸.

    ``restart`` are the places of the nodes that the walk restarts at, all of them if empty. ``loops`` gives every node
    a public loop of that weight: the walk waits, every node has a way out, and the bounds shrink. With ``edge_flow`` no
    edge passes on more than that share of all rank in a step: where no edge carries more, ranks are those of PageRank,
    and the noise is in proportion to it, whatever the degrees.

    Guarantee: :meth:`sensitivity` is the least of the proven bounds for these facts, and all roundings and the steps
    that are not taken are in it. Assumes: the nodes are public; nothing was read off the edges. Weights are not looked
    at. Public: every field. Proof: docs/proofs/pagerank.md
    """

    KIND: ClassVar[str] = "query.pagerank"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    shape: Shape
    damping: Fraction
    restart: tuple[int, ...] = ()
    loops: int = 0
    edge_flow: Fraction | None = None
    called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "damping", damping_of(self.damping))
        if self.shape.nodes is None:
            raise Refused("ranks are of named nodes, which are secret here; nothing was done.")
        check_size(self.shape.nodes)
        natural(self.loops, "loops", least=0, most=MOST_LOOPS)
        if self.edge_flow is not None:
            flow_units(self.edge_flow)
        if list(self.restart) != sorted(set(self.restart)) or not all(0 <= v < self.size for v in self.restart):
            raise InvalidInput("restart lists different nodes in their order; nothing was done.")
        if self.called and len(self.called) != self.shape.nodes:
            raise InvalidInput(f"{self.shape.nodes} nodes need as many names; nothing was done.")

    @property
    def size(self) -> int:
        """One number for each node."""
        return self.shape.nodes or 0

    @property
    def measure(self) -> None:
        """None: ranks are the numbers times 2⁻⁴⁸."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("rank",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The nodes."""
        return {"node": self.called or range(self.size)}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The ranks as a figure."""
        said, unit = release.statement, Fraction(1, 2**RANK_BITS)
        forms = tuple(
            LinearCombination(value * unit, {Noise(said.identifier, place, said.law): unit})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"rank": Figure(forms=forms, labels=labels, measure="rank", sources=(release,))}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin, which depends on the noise alone."""
        margin = law.margin(confidence, numbers=self.size if joint else 1)
        return {"rank": Fraction(margin, 2**RANK_BITS)}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit), flow=self.edge_flow, sentence=True)

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """The least of the proven bounds, and what roundings can add, in units of 2⁻⁴⁸.

        >>> from sfumato.core.units import edge
        >>> asked = PageRank(dataset=Dataset(name="web", edition="1"), shape=Shape(nodes=100), damping=Fraction(17, 20))
        >>> moved = asked.sensitivity(edge(relation="add/remove"), None)
        >>> round(float(moved.l1.value / 2**48), 6), round(float(moved.linf.value / 2**48), 6)
        (1.7, 0.85)
        """
        check_unit(unit, self.shape)
        if isinstance(unit, Node):
            raise Refused("ranks are of named nodes, and a node is what is protected; nothing was done. Protect edges.")
        many = 2 if isinstance(unit, Edge) and unit.relation is Relation.REPLACE else 1
        coarse = 2 ** (WORK_BITS - RANK_BITS)
        spare = 2 * rounding_error(self.size, self.loops, self.damping) / coarse
        if self.edge_flow is None:
            spare += 2 * leftover(self.damping) * 2**RANK_BITS
            half = min(Fraction(1), many * min(self.half_moves().values())) * 2**RANK_BITS
            total, each = 2 * half, half
        else:
            ends = 2 if self.shape.directed else 4
            flow = many * ends * Fraction(flow_units(self.edge_flow), coarse) / (1 - self.damping)
            total, each = min(flow, 2 * self.damping * 2**RANK_BITS), min(flow, self.damping * 2**RANK_BITS)
        l1, linf = ceil(total + spare) + self.size, ceil(each + spare) + 1
        return Sensitivity.of(l0=self.size, l1=l1, l2_squared=l1 * linf, linf=linf)

    def half_moves(self) -> Mapping[str, Fraction]:
        """The proven bounds for the facts that this query itself makes sure of: loops are ways out."""
        return half_moves(
            self.damping,
            nodes=self.size,
            directed=self.shape.directed,
            uniform=len(self.restart) in (0, self.size),
            loops=True,
            minimum=self.loops,
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def exact(self, graph: Adjacency) -> list[int]:
        """The ranks themselves. Sensitive."""
        most = None if self.edge_flow is None else flow_units(self.edge_flow)
        found = ranks(graph, self.damping, restart=self.restart, loops=self.loops, edge_flow=most)
        exact: list[int] = (found >> (WORK_BITS - RANK_BITS)).tolist()
        return exact


def pagerank_of_degrees(release: Release, damping: Exact = "17/20") -> Mapping[str | int, Fraction]:
    """The PageRank of a network that has the released degrees and is random otherwise, by node.

    The walk then goes to each node in proportion to its degree: r = (1 − α)/n + α·d/Σd, degrees below 0 taken as 0.
    Post-processing of a release of ``degrees()``: it costs nothing more. How far a real network is from a random one is
    not covered by any interval; what the noise adds is small, since degrees move by 1.
    """
    query, alpha = only_release(release).statement.query, damping_of(damping)
    if not isinstance(query, Degrees):
        raise InvalidInput("only degrees by node make a PageRank; nothing was done. Release degrees() first.")
    held = [max(value, 0) for value in release.values]
    total, even = sum(held), Fraction(1, query.size)
    shares = [Fraction(value, total) if total else even for value in held]
    nodes = query.labels()["node"]
    return {node: (1 - alpha) * even + alpha * share for node, share in zip(nodes, shares, strict=True)}
