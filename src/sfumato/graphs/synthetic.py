"""A private synthetic graph: noisy pairs above a threshold (top-m filter), and graphs with released degrees."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release, only_release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Node, Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.moves import check_unit
from sfumato.graphs.pairs import pair_count, places
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms.noisy_cells import MOST_CELLS, NoisyCells
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["COUNT_STEP", "PAIR_STEP", "SyntheticGraph", "ends_of", "from_degrees", "graph_of"]

COUNT_STEP, PAIR_STEP = 64, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticGraph:
    """A graph on the public nodes that resembles the private one, with noise on each pair: use it like a public one.

    The number of edges is released with noise; then every pair, with an edge or without, gets noise, and those that
    reach a threshold are the edges of the synthetic graph, about as many as there are. Small ε keeps few of the true
    edges: of a sparse graph about e^ε·m/(pairs) of them. It takes ε near log n for shapes such as triangles to survive.

    Guarantee: pure ε; one edge moves the count by 1 and one pair by 1, multiplied by their steps: 64 + 1024; an edge
    that is replaced moves two pairs: 2048. Assumes: the nodes are public. Public: every field.
    Proof: docs/proofs/synthetic_graph.md
    """

    KIND: ClassVar[str] = "query.synthetic_graph"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_cells",)
    dataset: Dataset
    shape: Shape
    called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if self.shape.nodes is None:
            raise Refused("a synthetic graph names nodes, which are secret here; nothing was done. Ask for counts.")
        if not 1 <= self.cells <= MOST_CELLS:
            raise InvalidInput(f"a synthetic graph has from 1 to {MOST_CELLS} pairs of nodes; nothing was done.")
        if self.called and len(self.called) != self.shape.nodes:
            raise InvalidInput(f"{self.shape.nodes} nodes need as many names; nothing was done.")

    @property
    def cells(self) -> int:
        """How many pairs of nodes there are."""
        return pair_count(self.shape)

    @property
    def size(self) -> None:
        """The answer itself tells how many edges there are."""
        return

    @property
    def measure(self) -> None:
        """None: the columns are the two ends of each edge."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The two ends of each edge."""
        return ("source", "target")

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """No edge is public before the answer."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The ends of the edges of the synthetic graph."""
        head, tail = ends_of(self.shape, list(release.values[2:]))
        called = self.called or range(self.shape.nodes or 0)
        return {
            name: SelectedValues(chosen=tuple(called[end] for end in ends), labels={}, measure=name, sources=(release,))
            for name, ends in (("source", head.tolist()), ("target", tail.tolist()))
        }

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A graph has no margin."""
        return {}

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, sentence=True, named="accuracy.synthetic")

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """A count, a threshold, and the pairs that were let through, in order."""
        yield from check_numbers(self, said)
        shown = said.values[2:]
        if len(said.values) < 2 or list(shown) != sorted({cell for cell in shown if 0 <= cell < self.cells}):
            yield Finding(field="statement.values", problem="must be a count, a threshold, and pairs in order")

    @property
    def cell_steps(self) -> tuple[int, int]:
        """By how much one edge moves the count and a pair, in steps of the noise."""
        return COUNT_STEP, PAIR_STEP

    def cap(self, unit: Unit) -> None:
        """None: the whole graph is read."""
        return

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """The count and the pairs together, multiplied by their steps.

        A replaced edge moves two pairs and not the count; or one pair and the count, where one of the two is no pair.

        >>> from sfumato.core.units import edge
        >>> asked = SyntheticGraph(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9))
        >>> [asked.sensitivity(edge(relation=how), None).l1.value for how in ("add/remove", "replace")]
        [Fraction(1088, 1), Fraction(2048, 1)]
        """
        check_unit(unit, self.shape)
        if isinstance(unit, Node):
            raise Refused(
                "a synthetic graph of pairs protects edges, not nodes; nothing was done. "
                "Make one from degrees that were released under the node unit."
            )
        one = COUNT_STEP + PAIR_STEP
        replaced = isinstance(unit, Edge) and unit.relation is Relation.REPLACE and self.cells > 1
        return Sensitivity.of(l0=2, l1=max(one, 2 * PAIR_STEP) if replaced else one, linf=PAIR_STEP)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Noisy cells; a δ is not used."""
        return NoisyCells.calibrated(
            cells=self.cells,
            l1=known(moved.l1, "l1").value,
            epsilon=spend.epsilon,
            count_step=COUNT_STEP,
            cell_step=PAIR_STEP,
        )

    def exact(self, graph: Adjacency) -> tuple[int, "NDArray[np.int64]"]:
        """The number of edges, and the places of their pairs. Sensitive."""
        return graph.edges, places(graph)


def ends_of(shape: Shape, cells: Sequence[int]) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """The two nodes of each pair, by its place in the order of :mod:`sfumato.graphs.pairs`.

    >>> [ends.tolist() for ends in ends_of(Shape(nodes=4), [0, 2, 3, 5])]
    [[0, 0, 1, 2], [1, 3, 2, 3]]
    """
    import numpy as np

    n, at = shape.nodes or 0, np.asarray(cells, dtype=np.int64).reshape(-1)
    if shape.directed:
        head = at // max(n - 1, 1)
        tail = at - head * (n - 1)
        return head, tail + (tail >= head)

    def first(row: "NDArray[np.int64]") -> "NDArray[np.int64]":
        return row * (2 * n - row - 1) // 2

    half = 2 * n - 1
    head = ((half - np.sqrt(np.maximum(float(half) ** 2 - 8.0 * at, 0.0))) / 2).astype(np.int64)
    head -= first(head) > at  # the root was rounded
    head += first(head + 1) <= at
    return head, at - first(head) + head + 1


def graph_of(release: Release) -> Adjacency:
    """The synthetic graph of a release, to compute with; public, and no more is charged for anything done with it."""
    said = only_release(release).statement
    if not isinstance(said.query, SyntheticGraph):
        raise InvalidInput("this release is not a synthetic graph; nothing was done.")
    shape = said.query.shape
    head, tail = ends_of(shape, list(said.values[2:]))
    return Adjacency.of_pairs(shape.nodes or 0, head, tail, directed=shape.directed)


def from_degrees(degrees: "ArrayLike", *, seed: int = 1) -> Adjacency:
    """A random graph whose nodes have about these degrees, which were released before: the degree-corrected kind.

    Each pair has an edge with probability min(1, dᵢdⱼ/Σd), independently (Chung and Lu). Post-processing of released
    degrees: no noise comes from here, so the draws are those of a counter with a public ``seed``. The time goes with
    the edges. Degrees below 0 count as 0. Under a node unit this is how a synthetic graph is made.

    >>> from_degrees([0, 0, 0]).edges
    0
    """
    import numpy as np

    from sfumato.graphs.chung_lu import chung_lu

    natural(seed, "seed", least=0, most=2**63)
    wanted = np.maximum(np.asarray(degrees, dtype=np.float64).reshape(-1), 0.0)
    order = np.argsort(-wanted, kind="stable")
    head, tail = chung_lu(wanted[order], seed)
    return Adjacency.of_pairs(len(wanted), order[head], order[tail])
