"""The number of triangles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
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
from sfumato.inference.derived import Derived

__all__ = ["Triangles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triangles(ByLadder):
    """How many triangles an undirected graph has.

    By ``way`` the noise fits the graph: a ladder has the size of the local sensitivity, which stays private, and the
    noisy scale follows a noisy bound of it, which is released and needs a δ. ``share`` of ε goes to that bound; a
    ladder may have none, and its interval is then that of the worst graph. Noise for the worst graph is less where
    ε·n is below about 10.

    Guarantee: :meth:`sensitivity` bounds the move of the count for one unit in any graph; the mechanism's own proof
    covers its draws. Assumes: the nodes are public. Public: every field. Proofs: docs/proofs/ladder.md,
    docs/proofs/noisy-local-sensitivity.md

    >>> from sfumato.core.query import Dataset, DrawnMechanism
    >>> from sfumato.core.units import edge
    >>> from sfumato.graphs.shape import Shape
    >>> asked = Triangles(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=9))
    >>> asked.sensitivity(edge(relation="add/remove"), None).l1
    L1(value=Fraction(7, 1))
    """

    KIND: ClassVar[str] = "query.triangles"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = (
        "mechanism.ladder",
        "mechanism.noisy_scale",
        "mechanism.laplace",
        "mechanism.gaussian",
    )

    def __post_init__(self) -> None:
        self.check(None)

    @property
    def leaves(self) -> None:
        """None: these are no stars."""
        return

    @property
    def measure(self) -> str | None:
        """The name of the number, where it has noise of a public law."""
        return None if self.fits else "triangles"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("triangles",)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The count with its interval."""
        return self.column(release, "triangles")

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin for the worst graph; the release itself says less where it has a guide."""
        return {"triangles": self.margin(law, confidence)}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return network(self, said)

    def cap(self, unit: Unit) -> None:
        """None: the graph is read as it is."""
        return

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """n − 2: the other nodes."""
        return self.moved(unit, None)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The ladder, the noisy scale, or noise for all graphs."""
        return self.noise(moved, unit, spend, None)

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with a mechanism or an answer that is said to be for this."""
        return self.unfit(mechanism, values, None)

    def exact(self, graph: Adjacency) -> object:
        """The count, its guide and its rungs. Sensitive."""
        from sfumato.graphs.kernels import ranked, triangles
        from sfumato.graphs.local_sensitivity import triangle_rungs

        known = ranked(graph)
        if not self.fits:
            return [triangles(known)]
        return triangles(known), *triangle_rungs(known)
