"""A result as lines of text: title, facts in two columns, tables with aligned numbers, notes under them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sfumato.core.terminal import harmless_text, padded, text_width, wrapped
from sfumato.studies.result_table import TextColumn

__all__ = ["WIDE", "ResultPage", "TextTable", "fact_line", "kept_rows", "printed_page"]

WIDE = 100
GAP, INDENT, MARK = "  ", "  ", "- "
LONGEST, NAMED, MOST_ROWS, LEAST_OF_EACH = 36, 24, 30, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table in the words of a language."""

    name: str
    columns: tuple[TextColumn, ...]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.columns[0].texts) if self.columns else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """All that is said of a result, in the words of one language. Public: all of it."""

    title: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[TextTable, ...]
    notes: tuple[str, ...]
    protection: tuple[str, ...]
    """Who is protected, and what was spent: a few lines for each release that it was computed from."""
    colon: str
    """What stands between the name of a fact and the fact."""
    more: str
    """What stands where rows were left out, with the number of them as ``{rows}``."""


def fact_line(page: ResultPage) -> str:
    """All facts one after the other, for a line under a table."""
    space = " " if page.colon.isascii() else ""
    return "; ".join(f"{name}{page.colon}{space}{value}" for name, value in page.facts)


def printed_page(page: ResultPage) -> str:
    """The page as lines of at most 100 places, tables apart; whatever could move a cursor is spelled out."""
    tables = [_table(table, page.more) for table in page.tables]
    wide = max([40, *(text_width(line) for lines in tables for line in lines)])
    title = harmless_text(page.title)
    lines = [*wrapped(title, WIDE), "═" * wide, *_facts(page.facts, page.colon)]
    for table, drawn in zip(page.tables, tables, strict=True):
        lines += ["─" * wide]
        if len(tables) > 1:
            lines.append(harmless_text(table.name))
        lines += drawn
    lines.append("═" * wide)
    for note in page.notes:
        lines += wrapped(MARK + harmless_text(note), WIDE, after=INDENT)
    for line in page.protection:
        lines += wrapped(harmless_text(line), WIDE, after=INDENT)
    return "\n".join(lines)


def _facts(facts: Sequence[tuple[str, str]], colon: str) -> Iterator[str]:
    """Names and values in two columns; what is too long for one has a line of its own."""
    half = (WIDE - 4) // 2
    shown = [(harmless_text(name), harmless_text(value)) for name, value in facts]
    named = min(NAMED, max((text_width(name + colon) for name, _ in shown), default=0) + 1)
    waiting = ""
    for name, value in shown:
        start = padded(name + colon, named - 1) + " "
        text = start + value
        if text_width(text) > half:
            if waiting:
                yield waiting
            yield from wrapped(text, WIDE, after=" " * named)
            waiting = ""
        elif waiting:
            yield padded(waiting, half + 4) + text
            waiting = ""
        else:
            waiting = text
    if waiting:
        yield waiting


def _table(table: TextTable, more: str) -> list[str]:
    """Lines with columns side by side; numbers stand under each other by their decimal points."""
    kept = kept_rows(table)
    columns = [_aligned(column, kept) for column in table.columns]
    lines = [GAP.join(across).rstrip() for across in zip(*columns, strict=True)]
    if len(kept) < table.rows:
        lines.append(more.format(rows=f"{table.rows - len(kept):,}"))
    return lines


def kept_rows(table: TextTable) -> list[int]:
    """The rows that are printed: of long curves some of each, at equal steps and with its last; else the first ones."""
    named = [column.texts for column in table.columns if not column.number]
    runs = [list(run) for _, run in groupby(range(table.rows), key=lambda row: [texts[row] for texts in named])]
    if table.rows <= MOST_ROWS or len(runs) > MOST_ROWS // LEAST_OF_EACH:
        return list(range(min(table.rows, MOST_ROWS)))
    step = max(-(-len(run) // (MOST_ROWS // len(runs))) for run in runs)
    return [row for run in runs for place, row in enumerate(run, start=1) if (len(run) - place) % step == 0]


def _aligned(column: TextColumn, rows: Sequence[int]) -> list[str]:
    texts = [_cut(harmless_text(column.texts[row])) for row in rows]
    head = _cut(harmless_text(column.name))
    if column.number:
        behind = [len(text) - text.find(".") if "." in text else 0 for text in texts]
        most = max(behind, default=0)
        texts = [text + " " * (most - after) for text, after in zip(texts, behind, strict=True)]
    width = max(map(text_width, [head, *texts]))
    return [padded(text, width, right=column.number) for text in (head, *texts)]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
