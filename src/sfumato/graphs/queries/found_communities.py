"""Communities that nobody knew of: their number and their nodes, found in pairs that were answered at random."""

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
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Relation, Unit
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.moves import cap_of, check_unit
from sfumato.graphs.pairs import check_pairs, pair_count, places
from sfumato.graphs.shape import Shape
from sfumato.graphs.spectral import communities_of
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.norms import known

__all__ = ["FoundCommunities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCommunities:
    """The community of each node, with no candidates: their number and the nodes of each are found.

    Every pair of nodes, with an edge or without, gets discrete Laplace noise with all of ε, and counts as an edge from
    1 on: that is randomised response on each pair, which is right with probability e^ε/(1 + e^ε). Number and members of
    the communities are computed from these pairs alone (:mod:`sfumato.graphs.spectral`), so they cost nothing more.
    They may mean nothing where ε is small: with 600 nodes in three communities, densities 0.2 inside and 0.05 between,
    ε = 2 finds nearly all and ε = 1 none.

    Guarantee: one edge moves one pair by 1; one that is replaced moves two. Assumes: the nodes are public.
    Public: every field. Proof: docs/proofs/communities.md
    """

    KIND: ClassVar[str] = "query.found_communities"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace",)
    dataset: Dataset
    shape: Shape
    most: int | None = None
    called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        nodes = self.shape.nodes
        if nodes is None:
            raise Refused("communities are groups of public nodes, which are secret here; nothing was done.")
        if nodes < 2:
            raise InvalidInput("a graph of one node has no pair; nothing was done.")
        if self.shape.directed:
            raise Unsupported(
                "communities are not found where edges point; nothing was done. Instead: declare the graph undirected, "
                "or hand in public candidates: partitions=[…]."
            )
        check_pairs(self.shape)
        if self.most is not None:
            natural(self.most, "most", most=nodes)
        if self.called and len(self.called) != nodes:
            raise InvalidInput(f"{nodes} nodes need as many names; nothing was done.")

    @property
    def size(self) -> int:
        """One number for each pair."""
        return pair_count(self.shape)

    @property
    def measure(self) -> None:
        """None: the columns are computed from the pairs."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The community of a node, and how many there are."""
        return ("community", "communities")

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The nodes."""
        return {"node": list(self.called or range(self.shape.nodes or 0))}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The community of each node, and their number beside each."""
        nodes = self.shape.nodes or 0
        found = communities_of(release.statement.values, nodes, self.most)
        labels = {name: tuple(column) for name, column in self.labels().items()}
        chosen = {"community": found, "communities": (max(found) + 1,) * nodes}
        return {
            name: SelectedValues(chosen=values, labels=labels, measure=name, sources=(release,))
            for name, values in chosen.items()
        }

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """Communities have no margin."""
        return {}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit), sentence=True, named="accuracy.found_communities")

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """One pair, by 1; an edge that is replaced leaves a pair and enters another.

        >>> from sfumato.core.units import edge
        >>> asked = FoundCommunities(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=20))
        >>> [asked.sensitivity(edge(relation=how), None).l1.value for how in ("add/remove", "replace")]
        [Fraction(1, 1), Fraction(2, 1)]
        """
        check_unit(unit, self.shape)
        if not isinstance(unit, Edge):
            raise Refused(
                "communities are found where edges are protected: one node moves all its pairs. Nothing was done. "
                "Protect edges, or ask for counts."
            )
        many = min(2 if unit.relation is Relation.REPLACE else 1, self.size)
        return Sensitivity.of(l0=many, l1=many, l2_squared=many, linf=1)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace noise; a δ is not used."""
        return Laplace.calibrated(l1=known(moved.l1, "l1").value, epsilon=spend.epsilon)

    def exact(self, graph: Adjacency) -> list[int]:
        """1 for each pair with an edge, 0 for each without. Sensitive."""
        import numpy as np

        found = np.zeros(self.size, dtype=np.int64)
        found[places(graph)] = 1
        exact: list[int] = found.tolist()
        return exact
