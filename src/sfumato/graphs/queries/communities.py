"""The number of communities: how many blocks of nodes explain the edges best."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.block_models import (
    STEPS,
    all_partitions,
    canonical,
    edge_move,
    icl_penalty,
    likelihood_steps,
    share_of,
)
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, check_unit
from sfumato.graphs.pairs import pair_count
from sfumato.graphs.shape import Shape
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms.exponential import Exponential

__all__ = ["MOST_NODES_LISTED", "CommunityCount"]

MOST_NODES_LISTED = 9
"""Up to this many nodes all partitions are tried (21,147 of nine nodes); for more, they are handed in."""
MOST_CANDIDATES = 10**5


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityCount:
    """The number of blocks k, from 1 to ``most``, whose best partition explains the edges best.

    The score of k is the largest log-likelihood of a stochastic block model over the ``partitions`` with k blocks, with
    block probabilities in [``eta``, 1 − ``eta``], less a public penalty. Without ``partitions`` all are tried, which
    few nodes allow. They must be public: groups known from elsewhere, or found in a graph that was released.

    Guarantee: one edge moves each score by at most ln((1 − η)/η): the maximum is exact and global over a set that does
    not depend on the graph. A search that may stop at a local maximum moves further and is not offered. Assumes: the
    partitions were not read off the edges. Public: every field. Proof: docs/proofs/communities.md
    """

    KIND: ClassVar[str] = "query.community_count"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.exponential",)
    dataset: Dataset
    shape: Shape
    eta: Fraction
    most: int
    partitions: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", share_of(self.eta))
        nodes = self.shape.nodes
        if nodes is None:
            raise Refused("communities are blocks of public nodes, which are secret here; nothing was done.")
        natural(self.most, "most", most=nodes)
        if not self.partitions and nodes > MOST_NODES_LISTED:
            raise NotDeclared(
                f"{nodes} nodes have too many partitions to try all, and a search that may miss the best one breaks "
                "the guarantee. Nothing was done. Hand in public ones: partitions=[…], each a block for every node."
            )
        if len(self.partitions) > MOST_CANDIDATES:
            raise InvalidInput(
                f"{len(self.partitions):,} partitions are more than {MOST_CANDIDATES:,}; nothing was done."
            )
        for partition in self.partitions:
            if len(partition) != nodes or canonical(partition) != partition:
                raise InvalidInput(
                    f"a partition gives each of {nodes} nodes a block, 0, 1, … as they first appear; nothing was done."
                )
            if max(partition) >= self.most:
                raise InvalidInput(f"a partition has more than {self.most} blocks; nothing was done. Raise most=….")

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of blocks to choose from."""
        if not self.partitions:
            return tuple(range(1, self.most + 1))
        return tuple(sorted({max(partition) + 1 for partition in self.partitions}))

    @property
    def size(self) -> int:
        """One choice."""
        return 1

    @property
    def measure(self) -> None:
        """The column is what was chosen."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("communities",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one number."""
        return {}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The number of blocks that was chosen."""
        chosen = tuple(self.numbers[place] for place in release.statement.values)
        return {"communities": SelectedValues(chosen=chosen, labels={}, measure="communities", sources=(release,))}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A choice has no margin."""
        return {}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit))

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """ln((1 − η)/η) for one edge, rounded up; an edge that is replaced is one less and one more.

        >>> from sfumato.core.units import edge
        >>> asked = CommunityCount(
        ...     dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=5), eta=Fraction(1, 10), most=3
        ... )
        >>> round(float(asked.sensitivity(edge(relation="add/remove"), None).linf.value), 3)
        2.197
        """
        check_unit(unit, self.shape)
        if isinstance(unit, Node):
            raise Refused("one node moves likelihoods without bound here; nothing was done. Protect edges.")
        many = 2 if isinstance(unit, Edge) and unit.relation is Relation.REPLACE else 1
        return Sensitivity.of(linf=Fraction(many * edge_move(self.eta), STEPS))

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The exponential mechanism over the numbers of blocks."""
        reach = moved.linf.value if moved.linf is not None else Fraction(0)
        return Exponential.calibrated(sensitivity=reach, epsilon=spend.epsilon)

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with numbers that are said to answer this."""
        if not all(0 <= place < len(self.numbers) for place in values):
            return "the value must be a place among the numbers of blocks to choose from"
        return None

    def candidates(self) -> Iterator[tuple[int, ...]]:
        """All partitions that are compared."""
        return iter(self.partitions) if self.partitions else all_partitions(self.shape.nodes or 0, self.most)

    def exact(self, graph: Adjacency) -> list[Fraction]:
        """The score of each number of blocks. Sensitive."""
        best: dict[int, int] = {}
        for partition in self.candidates():
            blocks, found = max(partition) + 1, likelihood_steps(graph, partition, self.eta)
            best[blocks] = max(best.get(blocks, found), found)
        return [Fraction(best[blocks] - self.penalty(blocks), STEPS) for blocks in self.numbers]

    def penalty(self, blocks: int) -> int:
        """What this number of blocks costs, in steps; the same for every graph."""
        return icl_penalty(
            blocks, nodes=self.shape.nodes or 0, pairs=pair_count(self.shape), directed=self.shape.directed
        )
