"""What counts by a ladder share: triangles and stars, with noise that fits the graph at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from sfumato.core.budget import Budget
from sfumato.core.exact import non_negative
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Node, Unit
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.moves import check_unit
from sfumato.graphs.shape import Shape
from sfumato.inference.figure import Derived, figure
from sfumato.inference.laddered import LadderCount
from sfumato.mechanisms.advisor import least_noise
from sfumato.mechanisms.ladder import Ladder, edges_of, level_of_count

__all__ = ["SHARE", "ByLadder", "check_local"]

SHARE = Fraction(1, 25)
"""The part of ε that the guide gets, unless another is asked for: it costs 4% of the error and bounds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLadder:
    """One count; with ``ladder`` from a ladder whose guide gets ``share`` of ε, else with noise for all graphs."""

    dataset: Dataset
    shape: Shape
    ladder: bool = True
    share: Fraction = SHARE

    def check(self, leaves: int | None) -> None:
        """Refuse what no ladder is for."""
        if self.shape.directed:
            raise InvalidInput("triangles and local stars are of undirected graphs; nothing was done.")
        if self.shape.nodes is not None and self.shape.nodes < max(3, (leaves or 0) + 1):
            raise InvalidInput(
                f"{self.shape.nodes} nodes are too few for this count: it is always 0. Nothing was done."
            )
        object.__setattr__(self, "share", non_negative(self.share, "share"))
        if self.share >= 1 or (self.share and not self.ladder):
            raise InvalidInput("share is the part of ε that bounds the error of a ladder: from 0 to below 1.")

    @property
    def size(self) -> int:
        """The count and its guide."""
        return 2 if self.share else 1

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one number."""
        return {}

    def column(self, release: Release, name: str) -> Mapping[str, Derived]:
        """The count as a figure."""
        said = release.statement
        if not isinstance(said.mechanism, Ladder):
            return {name: figure(release)}
        count = LadderCount(drawn=said.values, ladder=said.mechanism, labels={}, measure=name, sources=(release,))
        return {name: count}

    def margin(self, law: Law, confidence: Fraction) -> Fraction:
        """The margin for every graph; that of a release with a guide is smaller or equal."""
        return Fraction(law.margin(level_of_count(confidence, guided=bool(self.share))))

    def moved(self, unit: Unit, leaves: int | None) -> Sensitivity:
        """How far one edge moves the count in any graph; one that is replaced takes some away and brings some."""
        nodes = check_local(unit, self.shape)
        most = nodes - 2 if leaves is None else 2 * comb(nodes - 2, leaves - 1)
        return Sensitivity.of(l0=1, l1=most, l2_squared=most**2, linf=most)

    def noise(self, moved: Sensitivity, unit: Unit, spend: Budget, leaves: int | None) -> Mechanism:
        """The ladder, or Laplace or Gaussian noise."""
        if not self.ladder:
            return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)
        nodes = check_local(unit, self.shape)
        return Ladder.calibrated(
            nodes=nodes, leaves=leaves, edges=edges_of(unit), epsilon=spend.epsilon, share=self.share
        )


def check_local(unit: Unit, shape: Shape) -> int:
    """How many nodes there are; a unit for which the rungs are not proven is refused."""
    check_unit(unit, shape)
    if isinstance(unit, Node) or shape.nodes is None:
        raise Unsupported(
            "the rungs of a ladder are for edges, and a node moves many; nothing was done. Protect edges or weights, "
            "or ask for stars under the node unit's degree cap."
        )
    return shape.nodes
