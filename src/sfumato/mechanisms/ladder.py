"""The ladder mechanism: the noise fits the graph at hand, and the guarantee holds for all graphs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.core.ladder_widths import Rungs, WidthSteps
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Edge, Relation, Unit, Weight, describe
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.laws.ladder import LadderBound, bounded_margin
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["Ladder", "Ladders", "edges_of", "level_of_count", "star_width"]

EDGES = 2  # of one unit, at the most: an edge that is replaced leaves one place and enters another
LARGEST = 2**63 - 1
FINE = 24  # places of growth that are distinguished, before bounds of stars become coarse
PART = 16  # the parts of a guide are a sixteenth of it wide, or sixteen
GUIDE_DOUBT = Fraction(1, 3)  # what part of the doubt about an error is doubt about the guide


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Draw a whole number z around an exact count with P(z) ∝ exp(−ε·t/2), where t is the rung on which z lies.

    Rung t holds as many numbers on each side as one edge can move the count in a graph that t − 1 edges away from the
    one at hand: the count is of triangles, or of stars with ``leaves`` edges, in a graph of ``nodes`` public nodes.
    ``epsilon`` and ``guide`` are for one edge more or less, and a unit is ``edges`` of them. With ``guide`` above 0 a
    second number is released with Laplace noise of that ε: the largest number of common neighbours for triangles, the
    largest sum of two degrees for wedges, the largest degree for other stars. From it the error is bounded.

    Guarantee: edges·ε-bounded range, hence edges·ε-DP, whatever the graph; the guide adds edges·guide. Assumes: the
    rungs are those of :mod:`sfumato.graphs.local_sensitivity`. Public: all fields. Sensitive: the count, the rungs and
    so the error distribution. Proof: docs/proofs/ladder.md

    >>> ladder = Ladder.calibrated(nodes=4039, epsilon=1)
    >>> ladder.widest, ladder.law.margin(0.95)
    (4037, 24222)
    """

    KIND: ClassVar[str] = "mechanism.ladder"
    VERSION: ClassVar[int] = 1
    nodes: int
    leaves: int | None
    edges: int
    epsilon: Fraction
    guide: Fraction

    def __post_init__(self) -> None:
        natural(self.nodes, "nodes", least=3)
        if self.leaves is not None:
            natural(self.leaves, "leaves", least=2, most=self.nodes - 1)
        natural(self.edges, "edges", most=EDGES)
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "guide", non_negative(self.guide, "guide"))

    @classmethod
    def calibrated(
        cls, *, nodes: int, epsilon: Exact, leaves: int | None = None, edges: int = 1, share: Exact = 0
    ) -> "Ladder":
        """From the whole ε of a unit of a number of edges; ``share`` is the part of it that the guide gets."""
        whole, part = positive(epsilon, "epsilon") / natural(edges, "edges", most=EDGES), non_negative(share, "share")
        if part >= 1:
            raise InvalidInput("the guide cannot have all of ε; nothing was done. Give a share below 1.")
        return cls(nodes=nodes, leaves=leaves, edges=edges, epsilon=whole * (1 - part), guide=whole * part)

    @property
    def widest(self) -> int:
        """How far one edge can move the count in any graph; a public fact."""
        return self.nodes - 2 if self.leaves is None else 2 * comb(self.nodes - 2, self.leaves - 1)

    @property
    def law(self) -> LadderBound:
        """A bound of the error for every graph; that of the graph at hand is not public."""
        return LadderBound(epsilon=self.epsilon, widest=self.widest)

    @property
    def numbers(self) -> int:
        """How many numbers are released."""
        return 2 if self.guide else 1

    def loss(self, moved: Sensitivity) -> events.PrivacyEvent:
        """The event for a unit of ``edges`` edges; ``moved`` must be what one edge can do to this very count."""
        if known(moved.l1, "l1").value != self.widest:
            raise Refused(
                f"this ladder is for a count that an edge moves by up to {self.widest}; nothing was done. "
                "Make one for the nodes of this graph."
            )
        count = events.BoundedRange(epsilon=self.edges * self.epsilon)
        if not self.guide:
            return count
        return events.Composed(events=(count, events.DiscreteLaplace(l1=Fraction(self.edges), scale=1 / self.guide)))

    def draw(self, exact: tuple[int, int, Rungs], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: tuple[int, int, Rungs], words: "Words") -> tuple[int, ...]:
        """Draw from the exact count, its guide and its rungs; beyond 64 bits the largest number that fits is given."""
        from sfumato.noise import sample_discrete_laplace
        from sfumato.noise.ladder import sample_ladder

        count, guide, rungs = exact
        (error,) = sample_ladder(rungs, self.epsilon, 1, words)
        numbers = [count + error]
        if self.guide:
            numbers.append(guide + int(sample_discrete_laplace(1 / self.guide, 1, words)[0]))
        return tuple(max(-LARGEST, min(LARGEST, number)) for number in numbers)

    def margin(self, values: Sequence[int], confidence: Fraction) -> int:
        """How far from the truth the released count lies at most, with this confidence; from released numbers alone.

        With a guide: its Laplace noise bounds the true guide from both sides, and that bounds the rungs.

        >>> ladder = Ladder.calibrated(nodes=4039, epsilon=1, share=0.04)
        >>> ladder.margin([1_612_010, 293], Fraction(19, 20)), ladder.law.margin(0.95)
        (2901, 28259)
        """
        if not self.guide:
            return self.law.margin(confidence)
        left = level_of_count(confidence, guided=True)
        aside = DiscreteLaplace(scale=1 / self.guide).margin(1 - GUIDE_DOUBT * (1 - confidence))
        parts = _parts(max(0, values[1] - aside), max(0, values[1] + aside))
        margin = bounded_margin((self.bounds(low, high) for low, high in parts), self.epsilon, left)
        return min(margin, self.law.margin(left))

    def bounds(self, low: int, high: int) -> tuple[Rungs, Rungs]:
        """Rungs that are never wider, and never narrower, than those of a graph whose guide lies from low to high."""
        top = self.nodes - 2
        if self.leaves is None:
            least, most = min(max(low, 0), top), min(max(high, 0), top)
            return (
                Rungs.of([WidthSteps(0, 1, 1, least), WidthSteps(2, 2, top - least, 1)]),
                Rungs.of([WidthSteps(0, 1, 1, most), WidthSteps(1, 1, top - most, 1)]),
            )
        if self.leaves == 2:
            least, most = (min(max(end, 0), 2 * top) for end in (low, high))
            below, above = (
                Rungs.of([WidthSteps(0, 1, 1, end), WidthSteps(1, 1, 2 * top - end, 1)]) for end in (least, most)
            )
            return below, above
        leaves, least, most = self.leaves, min(max(low - 1, 0), top), min(max(high, 0), top)
        return (
            _coarse(lambda t: star_width(least, 0, t, top, leaves), 2 * top - least, upward=False),
            _coarse(lambda t: star_width(most, most, t, top, leaves), 2 * (top - most), upward=True),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladders:
    """Several ladders on one graph, one after the other: their losses add up.

    >>> parts = tuple(Ladder.calibrated(nodes=9, leaves=leaves, epsilon=1) for leaves in (None, 2))
    >>> Ladders(parts=parts).numbers
    2
    """

    KIND: ClassVar[str] = "mechanism.ladders"
    VERSION: ClassVar[int] = 1
    parts: tuple[Ladder, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("there is no ladder; nothing was done.")

    @property
    def law(self) -> LadderBound:
        """The bound of the widest."""
        return max((part.law for part in self.parts), key=lambda law: law.widest / law.epsilon)

    @property
    def numbers(self) -> int:
        """How many numbers are released."""
        return sum(part.numbers for part in self.parts)

    def loss(self, moved: Sensitivity) -> events.Composed:
        """The events of all parts; ``moved`` is what one edge can do to all counts together."""
        if known(moved.l1, "l1").value != sum(part.widest for part in self.parts):
            raise Refused("these ladders are for counts of other graphs; nothing was done.")
        alone = [part.loss(Sensitivity.of(l1=part.widest)) for part in self.parts]
        return events.Composed(events=tuple(alone))

    def draw(self, exact: Sequence[tuple[int, int, Rungs]], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: Sequence[tuple[int, int, Rungs]], words: "Words") -> tuple[int, ...]:
        """Draw each part."""
        drawn = [part.add_noise(each, words) for part, each in zip(self.parts, exact, strict=True)]
        return tuple(number for numbers in drawn for number in numbers)


def edges_of(unit: Unit) -> int:
    """How many edges one unit adds or removes: two where an edge is replaced, else one; a weight is one pair.

    >>> from sfumato.core.units import edge
    >>> edges_of(edge(relation="add/remove")), edges_of(edge(relation="replace"))
    (1, 2)
    """
    if not isinstance(unit, Edge | Weight):
        raise Refused(f"ladders protect edges and weights, not {describe(unit)}; nothing was done.")
    return 2 if isinstance(unit, Edge) and unit.relation is Relation.REPLACE else 1


def level_of_count(confidence: Fraction, *, guided: bool) -> Fraction:
    """The confidence that is left for the error of the count, once a guide has had its part of the doubt.

    >>> level_of_count(Fraction(19, 20), guided=True)
    Fraction(29, 30)
    """
    return 1 - (1 - GUIDE_DOUBT) * (1 - confidence) if guided else confidence


def star_width(x: int, y: int, t: int, top: int, leaves: int) -> int:
    """How many stars an edge between two nodes of x ≥ y other neighbours makes, after t more edges at their ends.

    A star count is convex in the degrees, so all t go to the larger until it has all ``top`` other nodes.

    >>> star_width(3, 1, 2, 4, 2)
    6
    """
    more = min(t, top - x)
    return comb(x + more, leaves - 1) + comb(min(y + t - more, top), leaves - 1)


def _parts(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Cut what a guide may be into few parts, the largest first: one of them holds the true guide."""
    while high - low > PART:
        cut = max(low, high - max(PART, high // PART))
        yield cut, high
        high = cut
    yield low, high


def _coarse(width: Callable[[int], int], last: int, *, upward: bool) -> Rungs:
    """Few runs that bound rising widths from above or below: place by place at first, then in growing stretches."""
    at, runs, before = 0, [], 0
    while at <= last:
        end = min(last, at + max(0, at // FINE - 1))
        grown = width(end) - before
        runs.append(WidthSteps(at if upward else end, 1, 1, grown))
        before, at = before + grown, end + 1
    return Rungs.of(runs)
