"""What a page about a result shows, as plain numbers and words: laid out above (:mod:`sfumato.reports.document`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.budget import Budget
from sfumato.core.description import Word
from sfumato.core.release import Release

__all__ = ["BarPanel", "BarRow", "DocumentPage", "HeatMap", "PageFigure", "PageGrid", "PageSection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarRow:
    """One bar, and beside it what it is compared with and the ends of that one's interval; all between 0 and 1."""

    name: Word
    value: float
    beside: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPanel:
    """One small picture of bars; all panels of a figure look alike, each with a scale of its own."""

    title: Word
    rows: tuple[BarRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A square of shares by the names of its rows and columns; None where there is none."""

    title: Word
    names: tuple[str, ...]
    values: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageGrid:
    """A table: its heads, each with whether numbers stand under it, and rows of words; the first names the row."""

    heads: tuple[tuple[Word, bool], ...]
    rows: tuple[tuple[Word, ...], ...]
    folded: Word | None = None
    """What is said in the place of the table until a reader unfolds it; None where it is shown at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFigure:
    """Panels side by side under one title; ``label`` is what a reader hears who does not see them."""

    title: Word
    label: Word
    panels: tuple[BarPanel, ...] | tuple[HeatMap, ...]
    lines: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A heading, and what stands under it: paragraphs, tables and figures. ``name`` is what links point to."""

    name: str
    heading: Word
    blocks: tuple[Word | PageGrid | PageFigure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """A page about what was made of one release. Public: all of it, as a release is.

    ``glance`` are figures that most readers ask for first, each with the words for it; what the release cost, who is
    protected and the certificate are added by whoever lays it out.
    """

    release: Release
    kind: Word
    title: Word
    asked: Word
    lead: tuple[Word, ...]
    glance: tuple[tuple[Word, Word], ...]
    sections: tuple[PageSection, ...]
    spend: Budget
    """What all releases together cost that the page is about."""
