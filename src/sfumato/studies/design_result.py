"""Results of planning and of comparing results: tables, words in two languages and a picture; no release is needed."""

import math
from fractions import Fraction

from sfumato.core.description import Word, phrase
from sfumato.core.exact import Exact
from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = ["DesignResult", "Facts", "printed_table", "shown_number"]

Facts = tuple[tuple[Word, Word], ...]


def shown_number(value: Cell) -> str:
    """A number as it stands in a printed table.

    >>> shown_number(0.123456), shown_number(2000), shown_number(None), shown_number(float("inf"))
    ('0.1235', '2,000', '', '∞')
    """
    if isinstance(value, bool) or value is None:
        return "" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return f"{value:,.0f}" if abs(value) >= 10**4 else f"{value:.4g}"
    return value


def printed_table(table: ResultTable) -> str:
    """A table as lines of text, numbers to the right.

    >>> print(printed_table(ResultTable(name="power", columns={"n": [20, 100], "power": [0.5, 0.912345]})))
      n   power
     20     0.5
    100  0.9123
    """
    columns = []
    for name, cells in table.columns.items():
        texts = [name, *map(shown_number, cells)]
        width = max(map(len, texts))
        words = all(isinstance(cell, str) for cell in cells) and bool(cells)
        columns.append([each.ljust(width) if words else each.rjust(width) for each in texts])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


class DesignResult(StudyResult):
    """A result that prints itself: title, facts, tables and notes.

    Guarantee: computed from figures that were given and from releases alone; nothing is read and nothing is spent.
    """

    __slots__ = ()

    def text(self, language: str = "en", confidence: Exact = Fraction(19, 20)) -> str:
        """All of it in a language; names of columns are in English, as in frames."""
        facts = [self.word(phrase("design.fact", name=name, value=value), language) for name, value in self.facts]
        tables = [printed_table(table) for table in self.tables(confidence)]
        notes = [self.word(note, language) for note in self.notes]
        return "\n\n".join(
            part for part in (self.word(self.title, language), "\n".join(facts), *tables, "\n".join(notes)) if part
        )

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()
