"""Local stars: the same counts as :mod:`sfumato.graphs.queries.stars`, with noise that fits the graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import DrawnMechanism, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import network
from sfumato.graphs.queries.by_ladder import ByLadder
from sfumato.graphs.queries.stars import MOST_LEAVES, check_count
from sfumato.inference.derived import Derived

__all__ = ["LocalStars", "star_count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStars(ByLadder):
    """How many stars of ``leaves`` edges an undirected graph has, with noise that fits it; for two leaves, the wedges.

    Guarantee: :meth:`sensitivity` bounds the move of the count for one unit in any graph; the mechanism's own proof
    covers its draws. Assumes: the nodes are public. Public: every field. Proofs: docs/proofs/ladder.md,
    docs/proofs/noisy-local-sensitivity.md

    >>> from sfumato.core.query import Dataset, DrawnMechanism
    >>> from sfumato.core.units import edge
    >>> from sfumato.graphs.shape import Shape
    >>> asked = LocalStars(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9), leaves=2)
    >>> asked.sensitivity(edge(relation="add/remove"), None).l1
    L1(value=Fraction(14, 1))
    """

    KIND: ClassVar[str] = "query.local_stars"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = (
        "mechanism.ladder",
        "mechanism.noisy_scale",
        "mechanism.laplace",
        "mechanism.gaussian",
    )
    leaves: int

    def __post_init__(self) -> None:
        natural(self.leaves, "leaves", least=2, most=MOST_LEAVES)
        self.check(self.leaves)
        if self.shape.nodes is not None:
            check_count(self.shape.nodes, self.shape.nodes - 1, self.leaves)

    @property
    def measure(self) -> str | None:
        """The name of the number, where it has noise of a public law."""
        return None if self.fits else "stars"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("stars",)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The count with its interval."""
        return self.column(release, "stars")

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin for the worst graph; the release itself says less where it has a guide."""
        return {"stars": self.margin(law, confidence)}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said, leaves=self.leaves)

    def cap(self, unit: Unit) -> None:
        """None: the graph is read as it is."""
        return

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """2·C(n − 2, leaves − 1): at both ends of an edge."""
        return self.moved(unit, self.leaves)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The ladder, the noisy scale, or noise for all graphs."""
        return self.noise(moved, unit, spend, self.leaves)

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with a mechanism or an answer that is said to be for this."""
        return self.unfit(mechanism, values, self.leaves)

    def exact(self, graph: Adjacency) -> object:
        """The count, its guide and its rungs. Sensitive."""
        from sfumato.graphs.kernels import ranked
        from sfumato.graphs.local_sensitivity import star_rungs

        if not self.fits:
            return [star_count(graph, self.leaves)]
        return star_count(graph, self.leaves), *star_rungs(ranked(graph), self.leaves)


def star_count(graph: Adjacency, leaves: int) -> int:
    """Σ C(dᵢ, leaves), exactly. Sensitive."""
    import numpy as np

    counts = np.bincount(graph.degrees).tolist()
    return sum(nodes * comb(degree, leaves) for degree, nodes in enumerate(counts))
