"""Which of several public partitions of the nodes explains the edges best, by its name or its place in the list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism, check_name
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.block_models import STEPS, likelihood_steps
from sfumato.graphs.describe import network
from sfumato.graphs.queries.communities import CommunityCount
from sfumato.graphs.shape import Shape
from sfumato.inference.selected_values import SelectedValues

__all__ = ["PartitionChoice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChoice:
    """The candidate whose blocks explain the edges best: which of them, and how many blocks it has.

    The score of a candidate is the largest log-likelihood of a stochastic block model with its blocks, with block
    probabilities in [``eta``, 1 − ``eta``], less a public penalty for their number. ``titles`` names the candidates;
    without names they are 0, 1, … in their order.

    Guarantee: one edge moves each score by at most ln((1 − η)/η), as in :class:`CommunityCount`. Assumes: the
    partitions were not read off the edges. Public: every field. Proof: docs/proofs/communities.md
    """

    KIND: ClassVar[str] = "query.partition_choice"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.exponential",)
    dataset: Dataset
    shape: Shape
    eta: Fraction
    most: int
    partitions: tuple[tuple[int, ...], ...]
    titles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.partitions:
            raise InvalidInput(
                "there is no partition to choose; nothing was done. Hand in public ones: partitions=[…]."
            )
        object.__setattr__(self, "eta", self._likelihood.eta)
        if self.titles and len(set(self.titles)) != len(self.partitions):
            raise InvalidInput(f"{len(self.partitions)} partitions need as many different names; nothing was done.")
        for name in self.titles:
            check_name(name, "the name of a partition")

    @property
    def _likelihood(self) -> CommunityCount:
        """The question about their numbers of blocks, which has the same scores."""
        return CommunityCount(
            dataset=self.dataset, shape=self.shape, eta=self.eta, most=self.most, partitions=self.partitions
        )

    @property
    def size(self) -> int:
        """One choice."""
        return 1

    @property
    def measure(self) -> None:
        """The columns are what was chosen."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """Which partition, and how many blocks it has."""
        return ("partition", "communities")

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one choice."""
        return {}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The partition that was chosen, and its number of blocks."""
        (place,) = release.statement.values
        said = {
            "partition": self.titles[place] if self.titles else place,
            "communities": max(self.partitions[place]) + 1,
        }
        return {
            name: SelectedValues(chosen=(value,), labels={}, measure=name, sources=(release,))
            for name, value in said.items()
        }

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A choice has no margin."""
        return {}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, cap=self.cap(said.unit), sentence=True)

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return self._likelihood.cap(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """ln((1 − η)/η) for one edge, rounded up; twice that for one that is replaced.

        >>> from sfumato.core.units import edge
        >>> asked = PartitionChoice(
        ...     dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=3), eta=Fraction(1, 10), most=2,
        ...     partitions=((0, 0, 1), (0, 1, 1)),
        ... )
        >>> round(float(asked.sensitivity(edge(relation="add/remove"), None).linf.value), 3)
        2.197
        """
        return self._likelihood.sensitivity(unit, limit)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The exponential mechanism over the candidates."""
        return self._likelihood.mechanism(moved, unit, spend)

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with numbers that are said to answer this."""
        if len(values) != 1 or not 0 <= values[0] < len(self.partitions):
            return "the value must be the place of a candidate"
        return None

    def exact(self, graph: Adjacency) -> list[Fraction]:
        """The score of each candidate. Sensitive."""
        penalty = self._likelihood.penalty
        return [
            Fraction(likelihood_steps(graph, partition, self.eta) - penalty(max(partition) + 1), STEPS)
            for partition in self.partitions
        ]
