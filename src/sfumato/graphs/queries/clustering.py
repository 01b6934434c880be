"""The global clustering coefficient: which part of all wedges is closed to a triangle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import non_negative
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import by_sentence
from sfumato.graphs.queries.by_ladder import SHARE, check_local
from sfumato.graphs.queries.local_stars import star_count
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived
from sfumato.inference.ladder_intervals import LadderCount, LadderRatio
from sfumato.mechanisms.ladder import Ladder, Ladders, edges_of

__all__ = ["Clustering"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """3·triangles/wedges, with both counts: each is drawn from a ladder with half of ε.

    Guarantee: :meth:`sensitivity` bounds the move of both counts together for one unit in any graph. Assumes: the nodes
    are public. Public: every field. Proof: docs/proofs/ladder.md

    >>> from sfumato.core.units import edge
    >>> asked = Clustering(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9))
    >>> asked.sensitivity(edge(relation="add/remove"), None).l1
    L1(value=Fraction(21, 1))
    """

    KIND: ClassVar[str] = "query.clustering"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.ladders",)
    dataset: Dataset
    shape: Shape
    share: Fraction = SHARE

    def __post_init__(self) -> None:
        if self.shape.directed:
            raise InvalidInput("clustering is of undirected graphs; nothing was done.")
        if self.shape.nodes is not None and self.shape.nodes < 3:
            raise InvalidInput(f"{self.shape.nodes} nodes make no wedge; nothing was done.")
        object.__setattr__(self, "share", non_negative(self.share, "share"))
        if self.share >= 1:
            raise InvalidInput("share is the part of ε that bounds the error of a ladder: from 0 to below 1.")

    @property
    def size(self) -> int:
        """Both counts, each with its guide."""
        return 4 if self.share else 2

    @property
    def measure(self) -> None:
        """The columns are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficient, and what it is made of."""
        return ("clustering", "triangles", "wedges")

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one graph."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The coefficient and both counts, with their intervals."""
        said = release.statement
        assert isinstance(said.mechanism, Ladders)  # noqa: S101 - for the reader of types
        many = self.size // 2
        over, under = (
            LadderCount(
                drawn=said.values[place * many : (place + 1) * many],
                ladder=part,
                labels={},
                measure=name,
                sources=(release,),
            )
            for place, (part, name) in enumerate(zip(said.mechanism.parts, self.names[1:], strict=True))
        )
        ratio = LadderRatio(over=over, under=under, times=3, labels={}, measure="clustering", sources=(release,))
        return {"clustering": ratio, "triangles": over, "wedges": under}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The error depends on how many wedges there are."""
        return {}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return by_sentence(self, said)

    def cap(self, unit: Unit) -> None:
        """None: the graph is read as it is."""
        return

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """n − 2 triangles and 2·(n − 2) wedges."""
        most = check_local(unit, self.shape) - 2
        return Sensitivity.of(l0=2, l1=3 * most, l2_squared=5 * most**2, linf=2 * most)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Two ladders with half of ε each."""
        nodes = check_local(unit, self.shape)
        return Ladders(
            parts=tuple(
                Ladder.calibrated(
                    nodes=nodes, leaves=leaves, edges=edges_of(unit), epsilon=spend.epsilon / 2, share=self.share
                )
                for leaves in (None, 2)
            )
        )

    def exact(self, graph: Adjacency) -> object:
        """Both counts with their guides and rungs. Sensitive."""
        from sfumato.graphs.kernels import ranked, triangles
        from sfumato.graphs.local_sensitivity import star_rungs, triangle_rungs

        known = ranked(graph)
        return (triangles(known), *triangle_rungs(known)), (star_count(graph, 2), *star_rungs(known, 2))
