"""Results of survival studies as text: facts above, a table, notes below."""

import math
from collections.abc import Sequence

from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = ["text_of"]

MOST_ROWS = 24


def text_of(result: StudyResult, language: str = "en") -> str:
    """A result as people print it: of a long table some rows, spread over it."""
    facts = [(result.word(name, language), result.word(value, language)) for name, value in result.facts]
    wide = max((len(name) for name, _ in facts), default=0)
    lines = [result.word(result.title, language), *(f"  {name:<{wide}}  {value}" for name, value in facts), ""]
    lines += _table(result.table())
    return "\n".join([*lines, "", *(result.word(note, language) for note in result.notes)])


def _table(table: ResultTable) -> list[str]:
    rows = list(zip(*table.columns.values(), strict=True))
    step = max(1, math.ceil(len(rows) / MOST_ROWS))
    kept = [row for place, row in enumerate(rows) if place % step == step - 1 or place == len(rows) - 1]
    texts = [list(table.columns), *([_short(cell) for cell in row] for row in kept)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(texts[0]))]
    return [_line(row, widths) for row in texts]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _short(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}" if math.isfinite(cell) else {True: "–"}.get(math.isnan(cell), "∞" if cell > 0 else "-∞")
    return str(cell)
