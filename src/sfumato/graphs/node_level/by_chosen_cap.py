"""Numbers of a graph under a degree cap that is itself chosen privately; one release for both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural, positive
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Node, Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.degrees import degrees_of
from sfumato.graphs.describe import network
from sfumato.graphs.moves import check_unit
from sfumato.graphs.node_level.caps import caps_up_to, in_the_way
from sfumato.graphs.query import check_size
from sfumato.graphs.shape import Direction, Shape
from sfumato.inference.consistency import Adjusted
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.chosen_cap import ChosenCap

__all__ = ["DOUBLING", "LEAST", "SHARE", "ByChosenCap", "ChosenEdges", "ChosenHistogram", "counted", "counts_from"]

SHARE = Fraction(17, 50)
"""The part of ε that the choice of the cap gets, unless another is asked for."""
LEAST = 32
"""The smallest cap to choose from, unless another is asked for; half of it for histograms."""
DOUBLING = 5
"""How many nodes the next larger cap has to save; twice as many for histograms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByChosenCap:
    """What all queries share whose cap is chosen: the first number of the answer is the cap.

    ``most`` is the degree cap of the node unit, the largest cap to choose from; ``least`` the smallest one.
    """

    dataset: Dataset
    shape: Shape
    most: int
    least: int = LEAST
    share: Fraction = SHARE
    doubling: int = DOUBLING

    def __post_init__(self) -> None:
        natural(self.most, "most")
        natural(self.least, "least", most=self.most)
        natural(self.doubling, "doubling", least=0)
        object.__setattr__(self, "share", positive(self.share, "share"))
        if self.share >= 1:
            raise InvalidInput("share is the part of ε that the choice of the cap gets: above 0 and below 1.")
        check_size(self.size)

    @property
    def caps(self) -> tuple[int, ...]:
        """The caps to choose from."""
        return caps_up_to(self.most, self.least)

    @property
    def numbers(self) -> int:
        """How many numbers stand behind the cap."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The cap, and the numbers."""
        return 1 + self.numbers

    @property
    def measure(self) -> None:
        """None: the noise is that of the cap which came out."""
        return

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """Nothing: the error depends on the cap that comes out."""
        return {}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        cap = said.values[0]
        return network(
            self,  # type: ignore[arg-type]  # only its subclasses are whole queries
            said,
            cap=cap if self.projects else None,
            corners=None if self.projects else cap * (cap - 1) // 2,
            sentence=True,
            aside=("cap",),
        )

    def cap(self, unit: Unit) -> int | None:
        """The largest one; which one it is, the mechanism chooses."""
        return self._node(unit).max_degree

    @property
    def projects(self) -> bool:
        """Whether the numbers are those of the graph projected to the cap; else they are computed from all of it."""
        return True

    def moves(self, unit: Unit, cap: int) -> int:
        """How far one unit moves the numbers at a cap, in l1."""
        raise NotImplementedError

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the numbers at the largest cap."""
        self._node(unit)
        most = self.moves(unit, self.most)
        return Sensitivity.of(l0=self.numbers, l1=most, l2_squared=most**2, linf=most)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The choice with its share of ε, and noise with the rest."""
        choice = spend.epsilon * self.share
        return self.noise(unit, choice, spend.epsilon - choice)

    def noise(self, unit: Unit, choice: Fraction, epsilon: Fraction) -> ChosenCap:
        """The mechanism for this query, from the two parts of ε."""
        return ChosenCap(
            caps=self.caps,
            choice=choice,
            epsilon=epsilon,
            spread=2 if unit.relation is Relation.REPLACE else 1,
            doubling=self.doubling,
            moves=tuple(self.moves(unit, cap) for cap in self.caps),
            numbers=self.numbers,
        )

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with a mechanism or an answer that claims to be for this query; None if nothing is."""
        if not isinstance(mechanism, ChosenCap):
            return "must be a choice of the cap"
        if mechanism.choice != self.share * (mechanism.choice + mechanism.epsilon):
            return "must give the choice the share of ε that the query says"
        if mechanism != self.noise(unit, mechanism.choice, mechanism.epsilon):
            return "must be the choice and the noise for this query and this unit"
        if not values or values[0] not in self.caps:
            return "must have chosen one of the query's caps"
        return None

    def in_the_way(self, graph: Adjacency) -> list[int]:
        """How many nodes are in the way of each cap, in the whole graph. Sensitive."""
        return in_the_way(degrees_of(graph, Direction.TOTAL), self.caps, ends=2 if graph.directed else 1)

    def exact_at(self, graph: Adjacency, cap: int) -> list[int]:
        """The numbers in a graph that was projected to a cap; how many there are, the cap alone says. Sensitive."""
        raise NotImplementedError

    def exact(self, graph: Adjacency) -> list[int]:
        """The numbers at the largest cap. Sensitive."""
        return self.exact_at(graph, self.most)

    def _node(self, unit: Unit) -> Node:
        check_unit(unit, self.shape)
        if not isinstance(unit, Node):
            raise Refused("only a node unit has a degree cap to choose; nothing was done. Leave choose_cap out.")
        if unit.max_degree != self.most:
            raise Refused(f"the unit's cap is {unit.max_degree}, not {self.most}; nothing was done.")
        return unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEdges(ByChosenCap):
    """How many edges the graph has under a cap that is chosen privately and released with the number.

    Guarantee: at cap D one node moves the number by at most D, after the projection to D; the choice is private by
    itself, and both are charged. The interval is for the projected graph, which has no more edges than the graph.
    Public: every field. Proof: docs/proofs/node_level.md

    >>> from sfumato.core.units import node
    >>> asked = ChosenEdges(dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=None), most=1000)
    >>> asked.caps, asked.sensitivity(node(max_degree=1000, relation="add/remove"), None).l1
    ((32, 64, 128, 256, 512, 1000), L1(value=Fraction(1000, 1)))
    """

    KIND: ClassVar[str] = "query.chosen_edges"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.chosen_cap",)

    @property
    def numbers(self) -> int:
        """One."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """The number, and the cap that it was counted under."""
        return ("edges", "cap")

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one graph."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The number with its interval, and the cap, which is exact."""
        return counted(release, "edges")

    def moves(self, unit: Unit, cap: int) -> int:
        """D, whatever the relation."""
        return cap

    def exact_at(self, graph: Adjacency, cap: int) -> list[int]:
        """The number in a projected graph. Sensitive."""
        return [graph.edges]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenHistogram(ByChosenCap):
    """How many nodes have each degree, under a cap that is chosen privately and released with the counts.

    What gets noise are the numbers of nodes of degree 0 *or more*, 1 or more, …, up to the cap: one unit moves these no
    further than the counts themselves, and they never rise. The nearest numbers that never rise are taken, joined by
    straight lines, and their differences are the counts (:func:`counts_from`): most of the noise is gone. The noisy
    numbers stay in ``release.values``. A larger cap is more noise on more numbers, so it has to save more nodes.

    Guarantee: at cap D a node that comes or goes moves all these numbers by at most 2D + 1 in l1, one that is replaced
    by 3D, after the projection; the choice is private by itself, and both are charged. Public: every field.
    Proof: docs/proofs/node_level.md
    """

    KIND: ClassVar[str] = "query.chosen_histogram"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.chosen_cap",)
    least: int = LEAST // 2
    doubling: int = 2 * DOUBLING

    @property
    def first(self) -> int:
        """The smallest degree that is counted: nodes without an edge are known where nodes are public, or listed."""
        return 0 if self.shape.nodes is not None or self.shape.listed else 1

    @property
    def numbers(self) -> int:
        """One for each degree."""
        return self.most + 1 - self.first

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("nodes",)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """The degrees, up to the largest cap."""
        return {"degree": range(self.first, self.most + 1)}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts from the nearest numbers that never rise, beside the differences of the raw ones."""
        cap, law = _law(release)
        said, many = release.statement, cap + 1 - self.first
        drawn = [Fraction(value) for value in said.values[1 : many + 1]]
        noise = [Noise(said.identifier, place + 1, law) for place in range(many)]
        one = Fraction(1)
        forms = [
            LinearCombination(drawn[place] - drawn[place + 1], {noise[place]: one, noise[place + 1]: -one})
            for place in range(many - 1)
        ]
        forms.append(LinearCombination(drawn[-1], {noise[-1]: one}))
        beyond = self.numbers - many
        raw = Figure(
            forms=(*forms, *([LinearCombination(Fraction(0), {})] * beyond)),
            labels={name: tuple(column) for name, column in self.labels().items()},
            measure="nodes",
            sources=(release,),
        )
        counts = [*counts_from(drawn), *([Fraction(0)] * beyond)]
        plain = (int(value) if value.denominator == 1 else value for value in counts)
        return {"nodes": Adjusted(raw=raw, adjusted=tuple(plain), least=0, most=None)}

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """As for every chosen cap; and beyond it no node is counted."""
        problem = ByChosenCap.misfit(self, mechanism, unit, values)
        if problem is None and any(values[values[0] + 2 - self.first :]):
            return "must count no node beyond the cap that was chosen"
        return problem

    def moves(self, unit: Unit, cap: int) -> int:
        """2D + 1 for a node that comes or goes (2D where those without an edge are not counted), else 3D."""
        return 3 * cap if unit.relation is Relation.REPLACE else 2 * cap + 1 - self.first

    def exact_at(self, graph: Adjacency, cap: int) -> list[int]:
        """How many nodes have each degree or more, up to the cap. Sensitive."""
        import numpy as np

        counts = np.bincount(degrees_of(graph, Direction.TOTAL), minlength=cap + 1)
        found: list[int] = np.cumsum(counts[::-1])[::-1][self.first :].tolist()
        return found


def counted(release: Release, name: str) -> Mapping[str, Derived]:
    """One number with its interval, and the cap that it was counted under, which is exact."""
    cap, law = _law(release)
    noise = Noise(release.statement.identifier, 1, law)
    forms = {
        name: LinearCombination(Fraction(release.values[1]), {noise: Fraction(1)}),
        "cap": LinearCombination(Fraction(cap), {}),
    }
    return {each: Figure(forms=(form,), labels={}, measure=each, sources=(release,)) for each, form in forms.items()}


def _law(release: Release) -> tuple[int, Law]:
    """The cap that came out, and the noise distribution for it."""
    said = release.statement
    assert isinstance(said.mechanism, ChosenCap)  # noqa: S101 - for the reader of types
    return said.values[0], said.mechanism.law_at(said.values[0])


def counts_from(at_least: Sequence[Fraction]) -> list[Fraction]:
    """How many nodes have each degree, from noisy numbers of nodes that have at least it. Post-processing.

    Numbers that rise are averaged until none do (isotonic regression), which leaves level stretches. Between their
    middles, and down to 0 behind the last, straight lines are drawn: a level stretch would say that no node has its
    degrees and very many the next one, which noise makes and networks do not. Numbers that never rise stay as they are.

    >>> [str(count) for count in counts_from([Fraction(9), Fraction(2), Fraction(4), Fraction(1)])]
    ['4', '8/3', '4/3', '1']
    """
    stretches: list[tuple[Fraction, int]] = []
    for value in at_least:
        total, length = value, 1
        while stretches and stretches[-1][0] * length < total * stretches[-1][1]:
            before, many = stretches.pop()
            total, length = total + before, length + many
        stretches.append((total, length))
    knots, start = [], Fraction(0)
    for total, length in stretches:
        knots.append((start + Fraction(length - 1, 2), max(total / length, Fraction(0))))
        start += length
    knots.append((start, Fraction(0)))
    levels, left = [], 0
    for place in range(len(at_least) + 1):
        while left + 1 < len(knots) - 1 and knots[left + 1][0] <= place:
            left += 1
        (x, y), (later, lower) = knots[left], knots[left + 1]
        levels.append(y if place <= x else y + (lower - y) * (place - x) / (later - x))
    return [here - after for here, after in pairwise(levels)]
