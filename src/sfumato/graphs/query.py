"""What the area needs of a question about a graph, besides what every query has."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol, runtime_checkable

from sfumato.core.query import ReleasedQuery
from sfumato.core.release import Release
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.shape import Shape
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise

__all__ = ["MOST_NUMBERS", "GraphQuery", "check_size", "raw_figure"]

MOST_NUMBERS = 10**7


@runtime_checkable
class GraphQuery(ReleasedQuery, Protocol):
    """A question about one graph: its sensitivity is that of :meth:`exact` after the projection to :meth:`cap`.

    Its mechanism draws from what :meth:`exact` gives.
    """

    @property
    def shape(self) -> Shape:
        """The public facts that the sensitivity depends on; the area checks that they are the declared ones."""
        ...

    def cap(self, unit: Unit) -> int | None:
        """The degree cap that the graph is projected to before :meth:`exact` sees it."""
        ...

    def exact(self, graph: Adjacency) -> object:
        """What is asked, of the graph itself. Sensitive: it must meet noise before anyone sees it."""
        ...


def check_size(size: int) -> None:
    """Refuse an answer of more numbers than anyone reads."""
    if size > MOST_NUMBERS:
        raise InvalidInput(
            f"the answer would have {size:,} numbers, more than {MOST_NUMBERS:,}; nothing was done. "
            "Ask for a histogram with most=…, or for less."
        )


def raw_figure(release: Release, measure: str) -> Figure:
    """The numbers as they were drawn, each with its own noise."""
    said = release.statement
    labels: Mapping[str, Sequence[str | int | bool]] = said.query.labels()
    return Figure(
        forms=tuple(
            LinearCombination(Fraction(value), {Noise(said.identifier, place, said.law): Fraction(1)})
            for place, value in enumerate(said.values)
        ),
        labels={name: tuple(column) for name, column in labels.items()},
        measure=measure,
        sources=(release,),
    )
