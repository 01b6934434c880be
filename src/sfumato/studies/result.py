"""Results of studies: what a method makes of releases, as tables, a summary, a picture and words."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.description import Word
from sfumato.core.exact import Exact
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, Frame
from sfumato.core.picture import Picture
from sfumato.core.presenting import default_presenter
from sfumato.core.release import Presenter, Release, presenter_of
from sfumato.core.spreadsheet import write_csv
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Cell", "ResultTable", "StudyResult"]

Cell = str | int | float | bool | None
"""What stands in a table of a result; a number that does not exist is ``nan``, an open end of an interval ``inf``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """One table of a result: columns of equal length by their names, which are words of the field in English."""

    name: str
    columns: Mapping[str, Sequence[Cell]]


class StudyResult(ABC):
    """What a method of statistics makes of releases.

    Guarantee: costs nothing, for it is a function of releases alone; sampling and noise are both in its standard
    errors, intervals and p-values, unless a note says otherwise. Assumes: what its notes state.
    """

    __slots__ = ()

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
        return self.presenter.draw(picture, language, theme)

    def word(self, word: Word, language: str = "en") -> str:
        """A word of the result in a language."""
        return self.presenter.words(word, language)
