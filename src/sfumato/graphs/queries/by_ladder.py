"""What counts with noise that fits the graph at hand share: triangles and stars, by a ladder or by a noisy scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import comb

from sfumato.core.budget import Budget
from sfumato.core.exact import non_negative
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Node, Unit
from sfumato.errors import InvalidInput, Unsupported
from sfumato.graphs.moves import check_unit
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure, figure
from sfumato.inference.ladder_intervals import LadderCount
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.laws.ladder import LadderBound
from sfumato.mechanisms.advisor import least_noise
from sfumato.mechanisms.ladder import Ladder, edges_of, level_of_count
from sfumato.mechanisms.noisy_local_sensitivity import NoisyLocalSensitivity

__all__ = ["SHARE", "ByLadder", "CountWay", "check_local"]

SHARE = Fraction(1, 25)
"""The part of ε that the guide of a ladder gets, unless another is asked for: 4% more error, and a bound of it."""


class CountWay(Enum):
    """How a count gets its noise: a ladder, a scale that follows a noisy guide, or noise for the worst graph.

    ``BY_DELTA`` leaves it to the spend: a ladder where it has no δ, a noisy scale where it has one.
    """

    BY_DELTA = "by delta"
    LADDER = "ladder"
    NOISY_SCALE = "noisy scale"
    WORST = "worst graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLadder:
    """One count, with noise that is shaped in one of several ways; the guide gets ``share`` of ε, or the usual part."""

    dataset: Dataset
    shape: Shape
    way: CountWay = CountWay.BY_DELTA
    share: Fraction | None = None

    def check(self, leaves: int | None) -> None:
        """Refuse what no ladder and no noisy scale is for."""
        if self.shape.directed:
            raise InvalidInput("triangles and local stars are of undirected graphs; nothing was done.")
        if self.shape.nodes is not None and self.shape.nodes < max(3, (leaves or 0) + 1):
            raise InvalidInput(
                f"{self.shape.nodes} nodes are too few for this count: it is always 0. Nothing was done."
            )
        if self.share is None:
            return
        object.__setattr__(self, "share", non_negative(self.share, "share"))
        if self.share >= 1 or (self.share and self.way is CountWay.WORST):
            raise InvalidInput("share is the part of ε that a guide gets: from 0 to below 1, and none without a guide.")
        if not self.share and self.way in (CountWay.BY_DELTA, CountWay.NOISY_SCALE):
            raise InvalidInput(
                "a scale that follows a noisy guide needs a share of ε for it; nothing was done. Give a share above 0, "
                "or say way='ladder'."
            )

    @property
    def fits(self) -> bool:
        """Whether the noise fits the graph at hand."""
        return self.way is not CountWay.WORST

    @property
    def guided(self) -> bool:
        """Whether a guide is released beside the count."""
        return self.fits and self.share != 0

    @property
    def size(self) -> int:
        """The count and its guide."""
        return 2 if self.guided else 1

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one number."""
        return {}

    def column(self, release: Release, name: str) -> Mapping[str, Derived]:
        """The count as a figure; from a noisy scale with the distribution that the released guide gives."""
        said = release.statement
        match said.mechanism:
            case Ladder():
                made: Derived = LadderCount(
                    drawn=said.values, ladder=said.mechanism, labels={}, measure=name, sources=(release,)
                )
            case NoisyLocalSensitivity():
                noise = Noise(said.identifier, 0, said.mechanism.law_at(said.values[1]))
                form = LinearCombination(Fraction(said.values[0]), {noise: Fraction(1)})
                made = Figure(forms=(form,), labels={}, measure=name, sources=(release,))
            case _:
                made = figure(release)
        return {name: made}

    def margin(self, law: Law, confidence: Fraction) -> Fraction:
        """The margin for every graph; that of a release with a guide is smaller or equal."""
        guided = self.guided and isinstance(law, LadderBound)
        return Fraction(law.margin(level_of_count(confidence, guided=guided)))

    def moved(self, unit: Unit, leaves: int | None) -> Sensitivity:
        """How far one edge moves the count in any graph; one that is replaced takes some away and brings some."""
        nodes = check_local(unit, self.shape)
        most = nodes - 2 if leaves is None else 2 * comb(nodes - 2, leaves - 1)
        return Sensitivity.of(l0=1, l1=most, l2_squared=most**2, linf=most)

    def noise(self, moved: Sensitivity, unit: Unit, spend: Budget, leaves: int | None) -> DrawnMechanism:
        """The ladder, the noisy scale, or Laplace or Gaussian noise."""
        if not self.fits:
            return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)
        nodes = check_local(unit, self.shape)
        if self.way is CountWay.NOISY_SCALE or (self.way is CountWay.BY_DELTA and spend.delta):
            return NoisyLocalSensitivity.calibrated(
                nodes=nodes, leaves=leaves, epsilon=spend.epsilon, delta=spend.delta, share=self.share
            )
        share = SHARE if self.share is None else self.share
        return Ladder.calibrated(nodes=nodes, leaves=leaves, edges=edges_of(unit), epsilon=spend.epsilon, share=share)

    def unfit(self, mechanism: Mechanism, values: Sequence[int], leaves: int | None) -> str | None:
        """What is wrong with a mechanism or an answer that claims to be for this query; None if nothing is."""
        scaled, laddered = isinstance(mechanism, NoisyLocalSensitivity), isinstance(mechanism, Ladder)
        fitting = {
            CountWay.BY_DELTA: scaled or laddered,
            CountWay.LADDER: laddered,
            CountWay.NOISY_SCALE: scaled,
            CountWay.WORST: not scaled and not laddered,
        }
        if not fitting[self.way]:
            return f"must be noise of the way that the query says, {self.way.value}"
        if not isinstance(mechanism, NoisyLocalSensitivity):
            return None
        whole = mechanism.epsilon + mechanism.guide
        if self.shape.nodes is None or mechanism != NoisyLocalSensitivity.calibrated(
            nodes=self.shape.nodes, leaves=leaves, epsilon=whole, delta=mechanism.delta, share=self.share
        ):
            return "must be for the nodes and the count that are asked, and give the guide the share of ε that is said"
        least, most = mechanism.guides
        if len(values) != mechanism.numbers or not least <= values[1] <= most:
            return f"must have released a guide from {least} to {most}"
        return None


def check_local(unit: Unit, shape: Shape) -> int:
    """How many nodes there are; a unit for which the rungs are not proven is refused."""
    check_unit(unit, shape)
    if isinstance(unit, Node) or shape.nodes is None:
        raise Unsupported(
            "the rungs of a ladder are for edges, and a node moves many; nothing was done. Protect edges or weights, "
            "or ask for stars under the node unit's degree cap."
        )
    return shape.nodes
