"""A page about what was made of a release: words, tables and small pictures, in the style of the page of a release.

It has no script and loads nothing. What stands on it comes as numbers and words (:mod:`sfumato.core.document_page`);
what the release cost, who is protected and the certificate are added here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.description import Phrase
from sfumato.core.document_page import BarPanel, DocumentPage, HeatMap, PageFigure, PageGrid, PageSection
from sfumato.core.release import only_release
from sfumato.errors import InvalidInput
from sfumato.reports import page as release_page
from sfumato.reports.amounts import amount
from sfumato.reports.browser import find, print_pdf
from sfumato.reports.catalogue import LANGUAGES, message, messages
from sfumato.reports.page import Card, Face
from sfumato.reports.panels import bars, heat, top_of
from sfumato.reports.particulars import particulars
from sfumato.reports.publication import Grounds, Publication, standing
from sfumato.reports.rendering import Markup, render
from sfumato.reports.words.rendering import one_line
from sfumato.reports.words.rendering import render as say

__all__ = ["DrawnFigure", "WrittenGrid", "WrittenSection", "document", "write_document", "written_section"]

LONG = 16
"""Rows of a table from which on it scrolls by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnFigure:
    """Panels as SVG, with their titles."""

    title: str
    label: str
    lines: tuple[str, ...]
    shape: str
    panels: tuple[tuple[str, Markup], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGrid:
    """A table in the words of one language."""

    heads: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[tuple[str, bool], ...], ...]
    folded: str
    label: str

    @property
    def long(self) -> bool:
        """Whether it scrolls by itself."""
        return len(self.rows) > LONG


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSection:
    """A section in the words of one language."""

    name: str
    heading: str
    blocks: tuple[tuple[str, str | WrittenGrid | DrawnFigure], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
    """What the page says in one language, as plain text; the template has the order and escapes it."""

    language: str
    kind: str
    title: str
    asked: str
    lead: tuple[str, ...]
    unit: str
    draft: Face | None
    recorded: str
    cards: tuple[Card, ...]
    sections: tuple[WrittenSection, ...]
    facts: tuple[tuple[str, str], ...]

    def say(self, identifier: str, **facts: object) -> str:
        """A message in the language of this part."""
        return message(self.language, identifier, **facts)


def document(
    page: DocumentPage,
    languages: Sequence[str] = ("en", "zh"),
    *,
    grounds: Grounds | None = None,
    unfolded: bool = False,
) -> str:
    """Lay out the page, a part for each language and the certificate at the end; parameters as for a release's page."""
    if isinstance(languages, str) or not languages:
        raise InvalidInput("a page needs a list of languages: 'en', 'zh' or both; nothing was written.")
    only_release(page.release)
    languages = tuple(dict.fromkeys(LANGUAGES[known] for known in languages if messages(known)))
    shown = standing(page.release, Grounds() if grounds is None else grounds, languages)
    parts = []
    for language in languages:
        draft, recorded = None, ""
        if isinstance(shown, Publication):
            recorded = shown.recorded(language)
        else:
            head, rest = shown.grounds.words(language)
            draft = Face(head=head, rest=rest)
        parts.append(_part(page, language, draft, recorded))
    return render(
        "document.html",
        parts=parts,
        certificate=release_page.saved_certificate(page.release, languages),
        style=release_page.page_style(),
        switch=release_page.language_switch(languages),
        switched=len(languages) > 1 and not unfolded,
        unfolded=unfolded,
    )


def write_document(
    page: DocumentPage, path: Path, languages: Sequence[str] = ("en", "zh"), *, grounds: Grounds | None = None
) -> Path:
    """Write the page as ``.html`` or ``.pdf``, by the ending of the path, and return the path."""
    match path.suffix.lower():
        case ".pdf":
            find()  # so that a missing browser is reported at once
            return print_pdf(document(page, languages, grounds=grounds, unfolded=True), path)
        case ".html" | ".htm":
            return release_page.write_text(document(page, languages, grounds=grounds), path)
        case ending:
            raise release_page.wrong_ending(path, ending)


def _part(page: DocumentPage, language: str, draft: Face | None, recorded: str) -> DocumentPart:
    said = page.release.statement
    facts = tuple((name, one_line(fact)) for name, fact in particulars(page.release, language))
    spent, total = amount(said.account.spent, language), amount(said.account.budget, language)
    return DocumentPart(
        language=language,
        kind=say(page.kind, language),
        title=one_line(say(page.title, language)),
        asked=say(page.asked, language),
        lead=tuple(say(words, language) for words in page.lead),
        unit=dict(facts)["unit"],
        draft=draft,
        recorded=recorded,
        cards=(
            *(Card(figure=say(figure, language), words=say(words, language)) for figure, words in page.glance),
            Card(figure=amount(page.spend, language), words=message(language, "page.card_loss")),
            Card(figure=spent, words=message(language, "page.card_budget", total=total)),
        ),
        sections=tuple(written_section(each, language) for each in page.sections),
        facts=facts,
    )


def written_section(section: PageSection, language: str) -> WrittenSection:
    """A section in the words of one language, its figures drawn. Public: all of it, as the page is."""
    blocks: list[tuple[str, str | WrittenGrid | DrawnFigure]] = []
    heading = say(section.heading, language)
    for block in section.blocks:
        match block:
            case PageGrid():
                blocks.append(("grid", _grid(block, heading, language)))
            case PageFigure():
                blocks.append(("figure", _figure(block, language)))
            case _:
                blocks.append(("text", say(block, language)))
    return WrittenSection(name=section.name, heading=heading, blocks=tuple(blocks))


def _grid(table: PageGrid, heading: str, language: str) -> WrittenGrid:
    numbers = [number for _, number in table.heads]
    return WrittenGrid(
        heads=tuple((say(words, language), number) for words, number in table.heads),
        rows=tuple(
            tuple((one_line(say(word, language)), number) for word, number in zip(row, numbers, strict=True))
            for row in table.rows
        ),
        folded="" if table.folded is None else say(table.folded, language),
        label=heading,
    )


def _figure(figure: PageFigure, language: str) -> DrawnFigure:
    maps = tuple(panel for panel in figure.panels if isinstance(panel, HeatMap))
    top = top_of(maps)
    drawn = [(panel.title, bars(panel, language)) for panel in figure.panels if isinstance(panel, BarPanel)]
    drawn += [(each.title, heat(each, top)) for each in maps]
    lines = [say(line, language) for line in figure.lines]
    if maps:
        lines.append(say(Phrase("page.shades", {"top": f"{top:.1f}"}), language))
    crowded = any(len(each.names) > 11 for each in maps)
    return DrawnFigure(
        title=say(figure.title, language),
        label=say(figure.label, language),
        lines=tuple(lines),
        shape="stacked" if crowded else "beside",
        panels=tuple((one_line(say(title, language)), svg) for title, svg in drawn),
    )
