"""Nodes by their number of links, as a release states them: degree by degree, or added up over spans of degrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.release import Release, only_release
from sfumato.core.units import Node
from sfumato.errors import Unsupported
from sfumato.graphs.node_level.by_chosen_cap import ChosenHistogram
from sfumato.graphs.queries.histogram import DegreeHistogram, EdgesAndDegrees
from sfumato.inference.consistency import Adjusted
from sfumato.inference.figure import Figure
from sfumato.inference.figure import figure as figure_of
from sfumato.inference.linear_combination import LinearCombination
from sfumato.reports.columns import CONFIDENCE

__all__ = ["Class", "DegreeCounts", "Span", "counts_of", "widening"]

Number = int | float | Fraction
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Degrees ``first`` to ``last``, how many nodes have them, and the interval of that: for it alone, and at once.

    ``last`` is None where the class holds every larger degree too.
    """

    first: int
    last: int | None
    value: Number
    each: tuple[Number, Number]
    joint: tuple[Number, Number]

    @property
    def width(self) -> int:
        """How many degrees it holds; 1 where it is open."""
        return 1 if self.last is None else self.last + 1 - self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeCounts:
    """The counts of a release, degree by degree: ``figure`` from degree ``first`` on, up to the cap that was chosen."""

    figure: Figure | Adjusted
    first: int
    open: bool
    """Whether the last count holds every larger degree too."""
    cap: int | None
    chosen: bool

    @property
    def most(self) -> int:
        """The last degree."""
        return self.first + len(self.figure.values) - 1

    def classes(self, spans: Sequence[Span] | None = None) -> list[Class]:
        """The counts with their intervals; added up over spans of degrees, from the first to the last, where given.

        The intervals are those of the release, or of sums of its numbers; they see nothing else.
        """
        asked = [(degree, degree) for degree in range(self.first, self.most + 1)] if spans is None else list(spans)
        added = self._added(asked)
        joint = added.interval(CONFIDENCE, joint=True)
        return [
            Class(first=start, last=None if self.open and end == self.most else end, value=value, each=each, joint=both)
            for (start, end), value, each, both in zip(
                asked, added.values, added.interval(CONFIDENCE), joint, strict=True
            )
        ]

    def _added(self, spans: Sequence[Span]) -> Figure | Adjusted:
        raw = self.figure.raw if isinstance(self.figure, Adjusted) else self.figure
        places = [slice(start - self.first, end + 1 - self.first) for start, end in spans]
        forms = tuple(_sum(raw.forms[place]) for place in places)
        figure = Figure(forms=forms, labels={}, measure=raw.measure, sources=raw.sources)
        if not isinstance(self.figure, Adjusted):
            return figure
        values = (sum(self.figure.values[place], Fraction(0)) for place in places)
        plain = tuple(int(value) if value.denominator == 1 else value for value in values)
        return Adjusted(raw=figure, adjusted=plain, least=0, most=None)


def counts_of(release: Release) -> DegreeCounts:
    """The counts by degree in a release; another release is refused.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")
    >>> wards = vault.graph([(0, 1), (1, 2)], name="wards", version="1", nodes=9)
    >>> counts = counts_of(wards.degree_histogram(most=4).release(epsilon=1))
    >>> [(each.first, each.last) for each in counts.classes()]
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, None)]
    """
    said = only_release(release).statement
    query, cap = said.query, said.unit.max_degree if isinstance(said.unit, Node) else None
    match query:
        case DegreeHistogram():
            figure, first = figure_of(release), query.most + 1 - query.size
            return DegreeCounts(figure=figure, first=first, open=not query.closed, cap=cap, chosen=False)
        case EdgesAndDegrees():
            count = _cut(release["count"], 1, query.size)
            return DegreeCounts(figure=count, first=query.most + 2 - query.size, open=False, cap=cap, chosen=False)
        case ChosenHistogram():
            chosen = said.values[0]
            nodes = _cut(release["nodes"], 0, chosen + 1 - query.first)  # beyond the cap nothing was drawn
            return DegreeCounts(figure=nodes, first=query.first, open=False, cap=chosen, chosen=True)
    raise Unsupported(
        "this release does not count nodes by their number of links; nothing was drawn. Release degree_histogram()."
    )


def widening(first: int, most: int) -> list[Span]:
    """Spans that widen with the degree, about eight for each tenfold; ``first`` is at least 1.

    >>> widening(1, 20)
    [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 8), (9, 11), (12, 15), (16, 20)]
    """
    spans, start = [], first
    while start <= most:
        end = max(start, round(start * 4 / 3) - 1)
        if most - end < (end + 1 - start) // 2:  # what would be left is too narrow for a span of its own
            end = most
        spans.append((start, min(end, most)))
        start = end + 1
    return spans


def _cut(given: Adjusted, start: int, end: int) -> Adjusted:
    raw = Figure(forms=given.raw.forms[start:end], labels={}, measure=given.measure, sources=given.sources)
    return Adjusted(raw=raw, adjusted=given.adjusted[start:end], least=given.least, most=given.most)


def _sum(forms: Sequence[LinearCombination]) -> LinearCombination:
    total = forms[0]
    for form in forms[1:]:
        total = total.plus(form, Fraction(1))
    return total
