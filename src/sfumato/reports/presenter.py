"""The presenter that the vault hands to each release."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast  # what a map is asked for, by name

from sfumato.core.columns import ResultColumn
from sfumato.core.description import Word
from sfumato.core.document_page import DocumentPage
from sfumato.core.exact import Exact
from sfumato.core.foreign import Chart
from sfumato.core.picture import Picture
from sfumato.core.release import Release
from sfumato.inference import Figure, figure
from sfumato.inference.derived import Derived
from sfumato.reports import page, plots, workbook
from sfumato.reports.document import write_document
from sfumato.reports.explain import explain, explain_figure
from sfumato.reports.plots.worked_out import drawn
from sfumato.reports.printed import printed, protection
from sfumato.reports.publication import Grounds
from sfumato.reports.words.rendering import render

__all__ = ["Reports"]


class Reports:
    """Words by :mod:`~sfumato.reports.explain`, pictures by :mod:`~sfumato.reports.plots`, pages by both."""

    __slots__ = ()

    def explain(self, release: Release, language: str, audience: str) -> str:
        """Put the release into plain language."""
        return explain(release, language, audience)

    def plot(self, release: Release, kind: str, language: str, theme: str, column: str | None) -> Chart:
        """Draw the release."""
        return plots.draw(release, kind, language, theme, column)

    def map(self, release: Release, areas: str | Path | Mapping[str, object], **asked: Any) -> Chart:
        """Draw the release by area."""
        return plots.choropleth(release, areas, **asked)

    def draw(self, picture: Picture, language: str, theme: str) -> Chart:
        """Draw what was worked out of releases."""
        return drawn(picture, language, theme)

    def report(self, release: Release, path: Path, languages: Sequence[str], reason: str, legal_basis: str) -> Path:
        """Write the release as one page, which needs nothing else."""
        return page.write(release, path, languages, grounds=Grounds(reason=reason, legal_basis=legal_basis))

    def document(self, page: DocumentPage, path: Path, languages: Sequence[str], reason: str, legal_basis: str) -> Path:
        """Write a page about what was made of a release."""
        return write_document(page, path, languages, grounds=Grounds(reason=reason, legal_basis=legal_basis))

    def workbook(self, shown: Release | ResultColumn, path: Path, confidence: Exact, languages: Sequence[str]) -> Path:
        """Write the release, or figures computed from releases, as a workbook for Excel."""
        return workbook.write(shown, path, confidence, languages)

    def html(self, release: Release) -> str:
        """A small table for notebooks."""
        return page.snippet(release)

    def words(self, word: Word, language: str) -> str:
        """A word of a description in a language."""
        return render(word, language)

    def text(self, release: Release) -> str:
        """A few lines for whoever prints it."""
        return printed(release)

    def protection(self, release: Release, language: str) -> tuple[str, ...]:
        """What was spent, and who is protected."""
        return protection(release, language)

    def figure(self, release: Release) -> Figure:
        """The release as a figure that can be computed with."""
        return figure(release)

    def explain_figure(self, figure: ResultColumn, language: str, audience: str) -> str:
        """Put figures that were computed from releases into plain language."""
        return explain_figure(cast("Derived", figure), language, audience)
