"""The numbers of a release as a table, each with its interval: what stands in it, for a template to lay out."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.release import Release
from sfumato.reports.catalogue import message
from sfumato.reports.columns import AnswerColumn, columns_of
from sfumato.reports.particulars import column
from sfumato.reports.words.rendering import render

__all__ = ["Cell", "Sheet", "SheetRow", "sheet"]

LONG = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A text, and a smaller one under it."""

    text: str
    under: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRow:
    """The names at the head of a row, and its numbers."""

    names: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table; one with ``long`` scrolls in a window of its own. ``note`` says what was left out. Plain text."""

    labels: tuple[str, ...]
    heads: tuple[Cell, ...]
    rows: tuple[SheetRow, ...]
    long: bool
    note: str


def sheet(release: Release, language: str, *, most: int) -> Sheet:
    """The table, cut after a number of rows, with a note about those left out.

    One column has its interval in two columns beside it; several have theirs under each number. Names that were chosen
    stand at the head of their rows, as labels do.
    """
    labels = release.labels
    found = columns_of(release)
    names, columns = [each for each in found if each.named], [each for each in found if not each.named]
    total = len(found[0].values)
    shown = min(total, most)
    alone = len(columns) == 1
    rows = tuple(
        SheetRow(
            names=(*(str(label[place]) for label in labels.values()), *(each.text(place) for each in names)),
            cells=tuple(cell for each in columns for cell in _cells(each, place, language, alone=alone)),
        )
        for place in range(shown)
    )
    return Sheet(
        labels=(*labels, *(each.name for each in names)),
        heads=_heads(release, columns, language),
        rows=rows,
        long=shown > LONG,
        note=_note(release, language, shown=most, total=total),
    )


def _note(release: Release, language: str, *, shown: int, total: int) -> str:
    if total <= shown:
        return ""
    name = "page.first" if release.measure is not None else "page.cells"
    return message(language, name, shown=f"{shown:,}", numbers=f"{total:,}")


def _heads(release: Release, columns: Sequence[AnswerColumn], language: str) -> tuple[Cell, ...]:
    """The names of the columns, with what each of them is."""
    heads = []
    for each in columns:
        if each.measured is None:
            drawn = each.figure is None
            name = column(each.name, language) if drawn else each.name
            heads.append(Cell(text=name, under=release.limit_words(language) if drawn else ""))
        else:
            words = [render(each.measured.words, language)]
            if len(columns) > 1 and any(other.sampled for other in columns) and not each.chosen:
                words.append(message(language, f"population.short{'' if each.sampled else '_data'}"))
            heads.append(Cell(text=each.name, under=" · ".join(words)))
    under = message(language, "population.short") if columns and columns[0].sampled else ""
    ends = [Cell(text=column("low", language), under=under), Cell(text=column("high", language))]
    return (*heads, *ends) if len(columns) == 1 and not columns[0].chosen else tuple(heads)


def _cells(each: AnswerColumn, place: int, language: str, *, alone: bool) -> list[Cell]:
    """A number and its interval: three cells, or one with the interval under the number."""
    if each.chosen:
        return [Cell(text=each.text(place))]
    ends = each.interval(place)
    nothing = message(language, "page.interval_untold" if each.ends is None else "page.interval_open")
    if alone:
        return [Cell(text=text) for text in (each.text(place), *(ends or (nothing, nothing)))]
    under = nothing if ends is None else message(language, "page.interval", low=ends[0], high=ends[1])
    return [Cell(text=each.text(place), under=under)]
