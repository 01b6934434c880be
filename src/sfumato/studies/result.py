"""Results of studies: what a method makes of releases, as tables, a summary, a picture and words."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.description import Phrase, Word, plain
from sfumato.core.exact import Exact, confidence_level
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, Frame
from sfumato.core.picture import Picture
from sfumato.core.presenting import default_presenter
from sfumato.core.release import Presenter, Release, presenter_of
from sfumato.core.spreadsheet import write_csv
from sfumato.core.suggestion import did_you_mean
from sfumato.core.terminal import harmless_text
from sfumato.core.units import Family
from sfumato.errors import InvalidInput
from sfumato.studies.exporting import html_page, latex_page, word_page, workbook_page, written_text
from sfumato.studies.printing import ResultPage, TextTable, printed_page
from sfumato.studies.result_table import (
    TABLES,
    Cell,
    ResultTable,
    TextColumn,
    column_key,
    column_word,
    finding,
    has_interval,
    text_columns,
    value_word,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Cell", "ResultTable", "StudyResult", "percent_of"]


class StudyResult(ABC):
    """What a method of statistics makes of releases.

    Guarantee: costs nothing, for it is a function of releases alone; sampling and noise are both in its standard
    errors, intervals and p-values, unless a note says otherwise. Assumes: what its notes state.
    """

    __slots__ = ()

    members_apart: ClassVar[bool] = True
    """Whether members of one family are taken for independent of each other, which a note then says."""

    if TYPE_CHECKING:

        @property
        def sources(self) -> tuple[Release, ...]:
            """The releases that it was computed from; none for what is planned before any."""
            ...

    @property
    def presenter(self) -> Presenter:
        """Whoever turns it into words and pictures: that of its first release, or the one for results without any."""
        return presenter_of(self.sources[0]) if self.sources else default_presenter()

    @property
    @abstractmethod
    def title(self) -> Word:
        """What was done, in a few words."""

    @abstractmethod
    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The tables of the result, the main one first; intervals at this confidence."""

    @property
    @abstractmethod
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        """What stands above the tables of a summary: names and values, such as the method and the number of rows."""

    @property
    @abstractmethod
    def notes(self) -> tuple[Word, ...]:
        """What a reader must know: what the intervals cover, what is conservative, where there is no verdict."""

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """What is drawn of it; None where there is nothing to draw."""
        del confidence
        return None

    def table(self, name: str | None = None, confidence: Exact = Fraction(19, 20)) -> ResultTable:
        """One of the tables by its name, or the main one."""
        found = {each.name: each for each in self.tables(confidence)}
        if name is None:
            return next(iter(found.values()))
        if name not in found:
            raise InvalidInput(
                f"this result has no table {name!r}; it has {', '.join(found)}.{did_you_mean(name, found)}"
            )
        return found[name]

    def to_arrow(self, table: str | None = None, confidence: Exact = Fraction(19, 20)) -> "pa.Table":
        """One of its tables, or the main one, as an Arrow table."""
        import pyarrow as pa

        return pa.table({name: list(column) for name, column in self.table(table, confidence).columns.items()})

    def to_pandas(self, table: str | None = None, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for pandas, which must be installed."""
        need("pandas", "pip install pandas")
        return self.to_arrow(table, confidence).to_pandas()

    def to_polars(self, table: str | None = None, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for Polars, which must be installed."""
        return need("polars", "pip install polars").from_arrow(self.to_arrow(table, confidence))

    def to_csv(self, path: str | Path, table: str | None = None, confidence: Exact = Fraction(19, 20)) -> Path:
        """Write one table as CSV; texts that a spreadsheet would take for a formula are made harmless."""
        return write_csv(self.to_arrow(table, confidence), path)

    def plot(self, confidence: Exact = Fraction(19, 20), *, language: str = "en", theme: str = "light") -> Chart:
        """Draw it as an Altair chart; needs the ``plots`` extra."""
        picture = self.picture(confidence)
        if picture is None:
            raise InvalidInput("there is nothing to draw of this result; its tables say all.")
        return self.presenter.draw(self._in_words(picture, language), language, theme)

    @property
    def drawn_names(self) -> Mapping[str, Word]:
        """Names in its picture that are words of the field, not labels of anybody's data, and their words."""
        return {}

    def _in_words(self, picture: Picture, language: str) -> Picture:
        """The picture with its names in the words of a language."""
        said = {name: self.word(word, language) for name, word in self.drawn_names.items()}
        if not said:
            return picture
        rows = [
            replace(
                row,
                at=said.get(row.at, row.at) if isinstance(row.at, str) else row.at,
                group=said.get(row.group, row.group),
            )
            for row in picture.rows
        ]
        return replace(picture, rows=rows)

    def summary(self, language: str = "en", confidence: Exact = Fraction(19, 20)) -> str:
        """Everything on one page of text: the facts, the tables with rounded numbers, the notes, who is protected."""
        return printed_page(self.page(language, confidence))

    def explain(self, language: str = "en", confidence: Exact = Fraction(19, 20)) -> str:
        """Say in words what was found, what a reader must know, who is protected and what it cost.

        ``language`` is ``en`` or ``zh``.
        """
        page = self.page(language, confidence)
        found = [self.word(each, language) for each in self.findings(confidence)]
        free = self.word(Phrase("study.free" if self.sources else "study.no_release"), language)
        protection = [*page.protection, free]
        return "\n\n".join(
            ["\n".join(map(harmless_text, part)) for part in ([page.title], found, page.notes, protection) if part]
        )

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """What was found, in words: the first rows of the main table, each estimate with its interval."""
        return finding(self.table(None, confidence), percent_of(confidence))

    def to_excel(
        self, path: str | Path, confidence: Exact = Fraction(19, 20), *, languages: Sequence[str] = ("en", "zh")
    ) -> Path:
        """Write a workbook for Excel (.xlsx): each table on a sheet, unrounded, and facts and notes in each language.

        Numbers are numbers and no text is a formula. An end that is open is ∞, a number that does not exist is empty.
        """
        if isinstance(languages, str) or not languages:
            raise InvalidInput("a workbook needs its languages, such as ['en', 'zh']; nothing was written.")
        about = {self.word(Phrase("study.about"), each): self._about(each, confidence) for each in languages}
        return workbook_page(self.tables(confidence), about, Path(path))

    def to_latex(
        self, path: str | Path | None = None, confidence: Exact = Fraction(19, 20), *, language: str = "en"
    ) -> str:
        """The tables for LaTeX with the package booktabs, notes under them; written to a path where one is given."""
        text = latex_page(self.page(language, confidence))
        if path is not None:
            written_text(text, path)
        return text

    def to_word(self, path: str | Path, confidence: Exact = Fraction(19, 20), *, language: str = "en") -> Path:
        """Write a document for Word (.docx): tables with captions and notes; needs the ``studies`` extra."""
        return word_page(self.page(language, confidence), path)

    def page(
        self, language: str = "en", confidence: Exact = Fraction(19, 20), *, names: Sequence[str] | None = None
    ) -> ResultPage:
        """All that is said of it in the words of one language, as texts; ``names`` are the tables, else all of them."""
        level = percent_of(confidence)
        tables = self.tables(confidence) if names is None else tuple(self.table(each, confidence) for each in names)
        said: tuple[tuple[Word, Word], ...] = self.facts
        if any(has_interval(table) for table in tables):
            said = (*said, (Phrase("study.confidence"), Phrase("study.percent", {"percent": level})))
        return ResultPage(
            title=self.word(self.title, language),
            facts=tuple((self.word(name, language), self.word(value, language)) for name, value in said),
            tables=tuple(self._texts(table, language) for table in tables),
            notes=tuple(self.word(note, language) for note in (*self.notes, *self._of_families)),
            protection=tuple(self._protection(language)),
            colon=self.word(Phrase("study.colon"), language),
            more=self.word(Phrase("study.more", {"rows": "{rows}"}), language),
        )

    def word(self, word: Word, language: str = "en") -> str:
        """A word of the result in a language."""
        return self.presenter.words(word, language)

    @property
    def _of_families(self) -> tuple[Word, ...]:
        """Said where families are protected: rows of one family are no more independent than rows of one person."""
        protected = any(isinstance(release.statement.unit, Family) for release in self.sources)
        return (Phrase("study.family"),) if protected and self.members_apart else ()

    def _texts(self, table: ResultTable, language: str) -> TextTable:
        yes, no = (self.word(Phrase(f"study.{each}"), language) for each in ("yes", "no"))
        known = column_key(table.name) in TABLES
        return TextTable(
            name=self.word(Phrase(f"study_table.{column_key(table.name)}"), language) if known else table.name,
            columns=tuple(
                TextColumn(
                    name=self.word(column_word(each.name), language),
                    texts=tuple(self.word(value_word(each.name, text), language) for text in each.texts),
                    number=each.number,
                )
                for each in text_columns(table, yes=yes, no=no)
            ),
        )

    def _protection(self, language: str) -> list[str]:
        """What was spent and who is protected, once for each release."""
        each = {release.statement.identifier: release for release in self.sources}
        lines = (presenter_of(release).protection(release, language) for release in each.values())
        return list(dict.fromkeys(line for some in lines for line in some))

    def _about(self, language: str, confidence: Exact) -> list[tuple[str, str]]:
        page = self.page(language, confidence)
        words = self.explain(language, confidence).split("\n")
        return [("", page.title), *page.facts, *(("", line) for line in words[1:] if line)]

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_page(self.page("en", Fraction(19, 20)))


def percent_of(confidence: Exact) -> str:
    """A confidence in percent, as it is written.

    >>> percent_of(0.95)
    '95'
    """
    level = confidence_level(confidence)
    return plain(100 * level)
