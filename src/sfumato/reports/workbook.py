"""An answer as a workbook for Excel: the numbers on one sheet, and in each language a sheet that explains them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.core.columns import ResultColumn
from sfumato.core.exact import Exact, fraction_text, probability
from sfumato.core.release import Release, only_release
from sfumato.core.workbook import WorkbookSheet, write_workbook
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports.amounts import written
from sfumato.reports.catalogue import message
from sfumato.reports.particulars import particulars, protected
from sfumato.reports.words.rendering import one_line

__all__ = ["write"]


def write(shown: Release | ResultColumn, path: Path, confidence: Exact, languages: Sequence[str]) -> Path:
    """Write the table of a release, or of figures computed from releases, and what a reader must know of it.

    Public: all of it, since releases are.
    """
    if isinstance(languages, str) or not languages:
        raise InvalidInput("a workbook needs its languages, such as ['en', 'zh']; nothing was written.")
    table = shown.to_arrow(confidence)
    sheets = [WorkbookSheet.of(table, message(languages[0], "workbook.answer"))]
    for language in dict.fromkeys(languages):
        rows = [(message(language, "workbook.confidence"), _percent(confidence)), *_about(shown, language)]
        left, right = zip(*rows, strict=True)
        sheets.append(WorkbookSheet(name=message(language, "workbook.about"), columns=[left, right], wide=True))
    return write_workbook(sheets, path)


def _about(shown: Release | ResultColumn, language: str) -> Iterator[tuple[str, str]]:
    """What stands beside the numbers: facts under their names, then the explanation, a paragraph in each row."""
    try:
        facts = [*(_facts(shown, language) if isinstance(shown, Release) else _origin(shown, language))]
        words = shown.explain(language)
    except Unsupported:  # a kind of data without words, or a ratio without a margin: the numbers are still there
        facts, words = [*(_least(shown, language) if isinstance(shown, Release) else _origin(shown, language))], ""
    yield from facts
    yield from (("", paragraph) for paragraph in words.split("\n\n") if paragraph)


def _facts(release: Release, language: str) -> Iterator[tuple[str, str]]:
    counted = release.limit_words(language)
    if counted:
        yield message(language, "workbook.counted"), counted
    for name, fact in particulars(only_release(release), language):
        yield message(language, f"fact.{name}"), one_line(fact)


def _origin(figure: ResultColumn, language: str) -> Iterator[tuple[str, str]]:
    """Of figures that were computed: what of one person counts, and the releases that they come from."""
    counted = getattr(figure, "limit_words", lambda language: "")(language)
    if counted:
        yield message(language, "workbook.counted"), counted
    for release in figure.sources:
        yield message(language, "workbook.source"), release.statement.identifier


def _least(release: Release, language: str) -> Iterator[tuple[str, str]]:
    """What is known of any release: who is protected, its loss, its identifier."""
    said = release.statement
    yield message(language, "fact.unit"), protected(said.unit, language, told_by=True)
    yield message(language, "workbook.loss"), written(said.spend, language)
    yield message(language, "fact.identifier"), said.identifier


def _percent(confidence: Exact) -> str:
    level = 100 * probability(confidence, "confidence")
    return f"{fraction_text(level)}%"
