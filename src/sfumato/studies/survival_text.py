"""Results of survival studies as text: facts above, a table, notes below."""

import math
from collections.abc import Sequence

from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = ["text_of"]

MOST_ROWS = 13


def text_of(result: StudyResult, *, period: int | None = None, language: str = "en") -> str:
    """A result as people print it; of a long table of curves, each of ``period`` rows, some rows of each curve."""
    facts = [(result.word(name, language), result.word(value, language)) for name, value in result.facts]
    wide = max((len(name) for name, _ in facts), default=0)
    lines = [result.word(result.title, language), *(f"  {name:<{wide}}  {value}" for name, value in facts), ""]
    lines += _table(result.table(), period)
    return "\n".join([*lines, "", *(result.word(note, language) for note in result.notes)])


def _table(table: ResultTable, period: int | None) -> list[str]:
    rows = list(zip(*table.columns.values(), strict=True))
    long = len(rows) if period is None else period
    step = max(1, math.ceil(long / MOST_ROWS))
    kept = [row for place, row in enumerate(rows) if (long - 1 - place % long) % step == 0]
    texts = [list(table.columns), *([_short(cell) for cell in row] for row in kept)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(texts[0]))]
    return [_line(row, widths) for row in texts]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _short(cell: Cell) -> str:
    if not isinstance(cell, float):
        return str(cell)
    if math.isnan(cell):
        return "–"
    return f"{cell:.4g}" if math.isfinite(cell) else ("∞" if cell > 0 else "-∞")
